//! The public record of a model (specification 2.6) and the catalog made of them. Ratios are
//! derived from the faces, digit by digit: there is one definition of a price.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::decimal::Decimal;
use crate::vendor::ListRecord;
use crate::{Face, Faces, Fraction, Group, Model, RouteHealth, Snapshot, Tier, Unit, Vendor};

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
}

impl View<'_> {
    /// What anybody may see, who is in these groups as far as prices go.
    pub fn of_anybody<'a>(public: &'a [&'a str]) -> View<'a> {
        View { groups: public, topped_up: false, known: false }
    }

    /// Whether the viewer may know of a group: it is public, or one of his own.
    pub fn knows(&self, catalog: &Snapshot, group: &str) -> bool {
        self.groups.contains(&group) || catalog.groups.get(group).is_some_and(|group| group.public)
    }
}

impl Default for View<'static> {
    fn default() -> View<'static> {
        View { groups: &[Group::DEFAULT], topped_up: false, known: true }
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
    /// How its routes did lately; for the caller to add, because a catalog has no memory. The last
    /// member, so that it can be put into a record that is written already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_health: Option<RouteHealth>,
}

/// `quota_type`, `model_ratio` (1 = 2 USD per million input tokens) and its relatives, or
/// `model_price` (USD).
#[derive(Serialize)]
struct Ratios {
    quota_type: u8,
    model_ratio: Decimal,
    model_price: Decimal,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    create_cache_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_ratio: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio_completion_ratio: Option<Decimal>,
}

#[derive(Serialize)]
struct BookRecord<'a> {
    standard: &'a Faces,
    paid: Option<&'a Faces>,
    route_count: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    tiers: Option<TiersRecord<'a>>,
}

#[derive(Serialize)]
struct TiersRecord<'a> {
    tier_count: usize,
    has_request_condition: bool,
    has_time_condition: bool,
    tiers: Vec<TierRecord<'a>>,
}

#[derive(Serialize)]
struct TierRecord<'a> {
    tier: &'a str,
    standard: Faces,
    paid: Option<Faces>,
    /// For tiers that are a multiple of the base price: what is charged is that, exactly; the faces
    /// beside it are rounded up to whole micro-USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    multiplier: Option<Fraction>,
    when: Vec<Value>,
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
        let written = self.book.written(view.topped_up);
        let vendor = self.vendor.as_ref().and_then(|name| catalog.vendors.get(name));
        Some(ModelRecord {
            model_name: &self.name,
            description: &self.description,
            specs: self.specs(),
            login_required: u8::from(self.login_required),
            icon: self.icon.as_deref().or(vendor.and_then(|vendor| vendor.icon.as_deref())),
            tags: self.tags.join(","),
            vendor_id: vendor.map(|vendor| vendor.id).or(self.vendor_id),
            ratios: self.ratios(view.topped_up),
            owner_by: self.owner(catalog),
            enable_groups: self.enable_groups.iter().map(String::as_str).filter(known).collect(),
            supported_endpoint_types: &self.supported_endpoint_types,
            capabilities: &self.capabilities,
            tasks: &self.tasks,
            billing_rate: rate(multiplier),
            billing_rate_source,
            pricing_version: &catalog.pricing_version,
            billing_unit: self.billing_unit.name(),
            default_voice: self.default_voice.as_deref(),
            default_response_format: self.default_response_format.as_deref().or(self.usual_format()),
            speech_input: self.speech_input.as_deref().or(self.speech.as_ref().map(|_| "text")),
            accepted_upload_formats: &self.accepted_upload_formats,
            vendor_list: self.list.as_ref().map(|list| list.record(written, multiplier, self.billing_unit)),
            book_faces: self.book_faces(),
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

    /// The JSON text in `specs`.
    fn specs(&self) -> String {
        #[derive(Serialize)]
        struct Specs<'a> {
            r#type: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            context_window: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_input_tokens: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            max_output_tokens: Option<u64>,
            #[serde(skip_serializing_if = "is_empty")]
            input_modalities: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            output_modalities: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            reasoning_efforts: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            resolutions: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            max_duration_seconds: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pricing_notes: Option<&'a str>,
            #[serde(skip_serializing_if = "is_empty")]
            voices: &'a [String],
            #[serde(skip_serializing_if = "is_empty")]
            response_formats: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            max_characters: Option<u64>,
        }
        let speech = self.speech.as_ref();
        let specs = Specs {
            r#type: &self.kind,
            context_window: self.context_window,
            max_input_tokens: self.max_input_tokens,
            max_output_tokens: self.max_output_tokens,
            input_modalities: &self.input_modalities,
            output_modalities: &self.output_modalities,
            reasoning_efforts: &self.reasoning_efforts,
            resolutions: &self.resolutions,
            max_duration_seconds: self.max_duration_seconds,
            pricing_notes: self.pricing_notes.as_deref(),
            voices: speech.map_or(&[][..], |speech| &speech.voices),
            response_formats: speech.map_or(&[][..], |speech| &speech.formats),
            max_characters: speech.map(|speech| speech.max_characters),
        };
        serde_json::to_string(&specs).unwrap_or_default()
    }

    fn ratios(&self, topped_up: bool) -> Ratios {
        let written = self.book.written(topped_up);
        let main = self.billing_unit.main_face();
        let faces = self.billing_unit.complete(written);
        let price = |face| u128::from(faces.get(face).unwrap_or(0));
        let by_tokens = main.unit() == Unit::MillionTokens;
        // Each ratio is relative to another face; without one there is nothing to be relative to.
        let relative = |face, base| {
            let shown = by_tokens && (written.has(face) || face == Face::Output) && price(base) > 0;
            shown.then(|| Decimal::quotient(price(face), price(base)))
        };
        let zero = Decimal::zero;
        Ratios {
            quota_type: u8::from(!by_tokens),
            model_ratio: if by_tokens { Decimal::quotient(price(main), 2_000_000) } else { zero() },
            model_price: if by_tokens { zero() } else { Decimal::quotient(price(main), 1_000_000) },
            completion_ratio: relative(Face::Output, Face::Input),
            cache_ratio: relative(Face::CacheRead, Face::Input),
            create_cache_ratio: relative(Face::CacheWrite, Face::Input),
            image_ratio: relative(Face::ImageInput, Face::Input),
            audio_ratio: relative(Face::AudioInput, Face::Input),
            audio_completion_ratio: relative(Face::AudioOutput, Face::AudioInput),
        }
    }

    fn book_faces(&self) -> BookRecord<'_> {
        let book = &self.book;
        let mut conditions = book.tiers.iter().flat_map(|tier| &tier.when);
        let tiers = (!book.tiers.is_empty()).then(|| TiersRecord {
            tier_count: book.tiers.len(),
            has_request_condition: conditions.clone().any(|when| when.is_about_request()),
            has_time_condition: conditions.any(|when| when.is_about_time()),
            tiers: book.tiers.iter().map(tier_record).collect(),
        });
        BookRecord { standard: &book.standard, paid: book.paid.as_ref(), route_count: self.routes.len(), tiers }
    }
}

fn tier_record(tier: &Tier) -> TierRecord<'_> {
    let scaled = |faces: &Faces| {
        faces.iter().fold(Faces::NONE, |sum, (face, price)| sum.with(face, tier.multiplier.of(price).unwrap_or(price)))
    };
    TierRecord {
        tier: &tier.name,
        standard: scaled(&tier.standard),
        paid: tier.paid.as_ref().map(scaled),
        multiplier: (tier.multiplier != Fraction::ONE).then_some(tier.multiplier),
        when: tier.when.iter().map(|when| when.record()).collect(),
    }
}
