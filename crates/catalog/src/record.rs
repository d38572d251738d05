//! The public record of a model (specification 2.6) and the catalog made of them. Ratios are
//! derived from the faces, digit by digit: there is one definition of a price.

mod announced;
mod book;
mod ratios;
mod specs;

use std::collections::BTreeMap;

use announced::AnnouncedRecord;
use book::BookRecord;
use ratios::Ratios;
use serde::Serialize;

use crate::decimal::Decimal;
use crate::vendor::ListRecord;
use crate::{Fraction, Group, Model, RouteHealth, Snapshot, Vendor};

/// For whom a record is written.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The viewer's groups in the order they are tried: the first that a model is sold to is the
    /// one it is billed in.
    pub groups: &'a [&'a str],
    /// Whether the ratios show the prices of accounts that have topped up.
    pub topped_up: bool,
    /// The viewer has a key: models with `login_required` are shown.
    pub known: bool,
    /// When: the prices in force then are shown, and those that come.
    pub at_ms: i64,
}

impl View<'_> {
    /// What anybody may see, who is in these groups as far as prices go.
    pub fn of_anybody<'a>(public: &'a [&'a str], at_ms: i64) -> View<'a> {
        View { groups: public, topped_up: false, known: false, at_ms }
    }

    /// Whether the viewer may know of a group: it is public, or one of his own.
    pub fn knows(&self, catalog: &Snapshot, group: &str) -> bool {
        self.groups.contains(&group) || catalog.groups.get(group).is_some_and(|group| group.public)
    }
}

impl Default for View<'static> {
    fn default() -> View<'static> {
        View { groups: &[Group::DEFAULT], topped_up: false, known: true, at_ms: 0 }
    }
}

/// The whole catalog as `GET /api/pricing` answers it.
#[derive(Serialize)]
pub struct CatalogRecord<'a> {
    auto_groups: Vec<&'a str>,
    /// The multipliers of the groups the viewer may know of.
    group_ratio: BTreeMap<&'a str, Decimal>,
    /// The groups he can buy in, with what they are.
    usable_group: BTreeMap<&'a str, &'a str>,
    vendors: Vec<VendorRecord<'a>>,
    /// Prices that will change, of the models that are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    announced: Vec<AnnouncedRecord<'a>>,
    pub data: Vec<ModelRecord<'a>>,
}

/// Who makes the models with this `vendor_id`.
#[derive(Serialize)]
struct VendorRecord<'a> {
    id: i64,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<&'a str>,
}

/// One model of it. What a model does not have is left out.
#[derive(Serialize)]
pub struct ModelRecord<'a> {
    pub model_name: &'a str,
    description: &'a str,
    specs: String,
    login_required: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<&'a str>,
    tags: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor_id: Option<i64>,
    #[serde(flatten)]
    ratios: Ratios,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_by: Option<&'a str>,
    enable_groups: Vec<&'a str>,
    supported_endpoint_types: &'a [String],
    #[serde(skip_serializing_if = "is_empty")]
    capabilities: &'a [String],
    #[serde(skip_serializing_if = "is_empty")]
    tasks: &'a [String],
    billing_rate: Decimal,
    billing_rate_source: String,
    pricing_version: &'a str,
    billing_unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_voice: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_response_format: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speech_input: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    accepted_upload_formats: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor_list: Option<ListRecord<'a>>,
    book_faces: BookRecord<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    announced: Vec<AnnouncedRecord<'a>>,
    /// How its routes did lately; for the caller to add, because a catalog has no memory. The last
    /// member, so that it can be put into a record that is written already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_health: Option<RouteHealth>,
}

impl ModelRecord<'_> {
    /// Of its routes these are open: for the caller to say, because a catalog does not know what is
    /// paused.
    pub fn count_routes(&mut self, open: usize) {
        self.book_faces.route_count = Some(open);
    }
}

fn is_empty(list: &&[String]) -> bool {
    list.is_empty()
}

impl Snapshot {
    /// The catalog for one viewer: what he may buy, and of the groups what he may know.
    pub fn record<'a>(&'a self, view: &View<'_>) -> CatalogRecord<'a> {
        let data: Vec<ModelRecord<'a>> = self.models.values().filter_map(|model| model.record(self, view)).collect();
        let known = self.groups.iter().filter(|(name, _)| view.knows(self, name));
        let usable = self.groups.iter().filter(|(name, _)| view.groups.contains(&name.as_str()));
        CatalogRecord {
            auto_groups: self.auto_groups.iter().map(String::as_str).filter(|group| view.knows(self, group)).collect(),
            group_ratio: known.map(|(name, group)| (name.as_str(), rate(group.multiplier))).collect(),
            usable_group: usable.map(|(name, group)| (name.as_str(), group.description.as_str())).collect(),
            vendors: self.vendors_of(&data),
            announced: self.announced(&data, view.at_ms),
            data,
        }
    }

    /// Who makes the models that are shown. A number without a table has the name that its model
    /// gives.
    fn vendors_of<'a>(&'a self, data: &[ModelRecord<'a>]) -> Vec<VendorRecord<'a>> {
        let shown: BTreeMap<i64, Option<&str>> =
            data.iter().filter_map(|one| Some((one.vendor_id?, one.owner_by))).collect();
        let tables: BTreeMap<i64, &Vendor> = self.vendors.values().map(|vendor| (vendor.id, vendor)).collect();
        let record = |(id, owner): (i64, Option<&'a str>)| match tables.get(&id) {
            Some(vendor) => Some(VendorRecord {
                id,
                name: &vendor.name,
                description: Some(&vendor.description),
                icon: vendor.icon.as_deref(),
            }),
            None => owner.map(|name| VendorRecord { id, name, description: None, icon: None }),
        };
        shown.into_iter().filter_map(record).collect()
    }
}

fn rate(multiplier: Fraction) -> Decimal {
    Decimal::quotient(u128::from(multiplier.numerator()), u128::from(multiplier.denominator()))
}

impl Model {
    /// The model's record for one viewer; none for whom it is not on sale.
    pub fn record<'a>(&'a self, catalog: &'a Snapshot, view: &View<'_>) -> Option<ModelRecord<'a>> {
        if self.login_required && !view.known {
            return None;
        }
        let group = self.group_for(view.groups.iter().copied())?;
        let multiplier = catalog.groups.get(group).map_or(Fraction::ONE, |group| group.multiplier);
        let billing_rate_source = if group == Group::DEFAULT { "default".to_owned() } else { format!("group:{group}") };
        let known = |group: &&str| view.knows(catalog, group);
        let book = self.book_at(view.at_ms);
        let written = book.written(view.topped_up);
        let vendor = self.vendor.as_ref().and_then(|name| catalog.vendors.get(name));
        Some(ModelRecord {
            model_name: &self.name,
            description: &self.description,
            specs: self.specs(),
            login_required: u8::from(self.login_required),
            icon: self.icon.as_deref().or(vendor.and_then(|vendor| vendor.icon.as_deref())),
            tags: self.tags.join(","),
            vendor_id: vendor.map(|vendor| vendor.id).or(self.vendor_id),
            ratios: self.ratios(written),
            owner_by: self.owner(catalog),
            enable_groups: self.enable_groups.iter().map(String::as_str).filter(known).collect(),
            supported_endpoint_types: &self.supported_endpoint_types,
            capabilities: &self.capabilities,
            tasks: &self.tasks,
            billing_rate: rate(multiplier),
            billing_rate_source,
            pricing_version: catalog.pricing_version(view.at_ms),
            billing_unit: self.billing_unit.name(),
            default_voice: self.default_voice.as_deref(),
            default_response_format: self.default_response_format.as_deref().or(self.usual_format()),
            speech_input: self.speech_input.as_deref().or(self.speech.as_ref().map(|_| "text")),
            accepted_upload_formats: &self.accepted_upload_formats,
            vendor_list: self.list_at(view.at_ms).map(|list| list.record(written, multiplier, self.billing_unit)),
            book_faces: BookRecord::of(book, Some(self.routes.len())),
            announced: self.announced(view.at_ms).collect(),
            route_health: None,
        })
    }

    /// Who makes it: as it says itself, or the name of its vendor.
    pub fn owner<'a>(&'a self, catalog: &'a Snapshot) -> Option<&'a str> {
        let vendor = self.vendor.as_ref().and_then(|name| catalog.vendors.get(name));
        self.owner_by.as_deref().or(vendor.map(|vendor| vendor.name.as_str()))
    }

    /// The format of speech where a request names none and the model says nothing.
    fn usual_format(&self) -> Option<&str> {
        self.speech.as_ref()?.formats.iter().map(String::as_str).find(|format| *format == "mp3")
    }
}
