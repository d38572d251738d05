//! Which records of the price list are wanted: the query string of `GET /api/pricing`. A filter
//! that is not known, or a word that no model can have, is refused by its name.

use crate::refusal::Refusal;
use tollgate_catalog::form::did_you_mean;
use tollgate_catalog::{CAPABILITIES, EndpointType, MODEL_TYPES, Model, Snapshot, TASKS};
use tollgate_media::social::pairs;
use tollgate_wire::error::Code;

/// Characters of a text that is looked for, or of a name.
const LONGEST: usize = 200;
const MOST_RECORDS: usize = 10_000;
const NAMES: [&str; 9] = ["type", "capability", "task", "endpoint_type", "vendor", "group", "q", "limit", "after"];

/// What is asked for; all of it must hold.
#[derive(Debug, Default)]
pub struct PriceFilter {
    kind: Option<String>,
    capability: Option<String>,
    task: Option<String>,
    endpoint_type: Option<String>,
    vendor: Option<String>,
    group: Option<String>,
    text: Option<String>,
    after: Option<String>,
    pub limit: Option<usize>,
}

impl PriceFilter {
    /// None where everything is wanted.
    pub fn read(query: &str) -> Result<Option<PriceFilter>, Refusal> {
        let pairs = pairs(query).map_err(|_| Refusal::new(Code::InvalidRequest, "The query string cannot be read."))?;
        let mut filter = PriceFilter::default();
        for (name, value) in &pairs {
            filter.set(name, value)?;
        }
        Ok((!pairs.is_empty()).then_some(filter))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let endpoint_types = EndpointType::names();
        let (place, known): (&mut Option<String>, &[&str]) = match name {
            "type" => (&mut self.kind, MODEL_TYPES),
            "capability" => (&mut self.capability, CAPABILITIES),
            "task" => (&mut self.task, TASKS),
            "endpoint_type" => (&mut self.endpoint_type, &endpoint_types),
            "vendor" => (&mut self.vendor, &[]),
            "group" => (&mut self.group, &[]),
            "q" => (&mut self.text, &[]),
            "after" => (&mut self.after, &[]),
            "limit" => return self.set_limit(value),
            other => {
                let shown: String = other.chars().take(64).collect();
                let hint = did_you_mean(&shown, NAMES);
                let text = format!("`{shown}` is not a filter of the price list{hint}.");
                return Err(Refusal::about(Code::UnknownParameter, &shown, text));
            }
        };
        let wrong = |text: String| Err(Refusal::about(Code::InvalidParameter, name, text));
        if place.is_some() {
            return wrong(format!("`{name}` is given twice."));
        }
        if value.is_empty() || value.chars().count() > LONGEST {
            return wrong(format!("`{name}` has 1 to {LONGEST} characters."));
        }
        if !known.is_empty() && !known.contains(&value) {
            return wrong(format!("`{name}` is one of {}.", known.join(", ")));
        }
        *place = Some(if name == "q" { value.to_lowercase() } else { value.to_owned() });
        Ok(())
    }

    fn set_limit(&mut self, value: &str) -> Result<(), Refusal> {
        let limit = value.parse().ok().filter(|limit| (1..=MOST_RECORDS).contains(limit) && self.limit.is_none());
        self.limit = Some(limit.ok_or_else(|| {
            let text = format!("`limit` is a number from 1 to {MOST_RECORDS}, given once.");
            Refusal::about(Code::InvalidParameter, "limit", text)
        })?);
        Ok(())
    }

    /// Whether a model is wanted. `knows` says whether the viewer may know of a group.
    pub fn wants(&self, catalog: &Snapshot, model: &Model, knows: impl Fn(&str) -> bool) -> bool {
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|word| word == own);
        let among = |wanted: &Option<String>, own: &[String]| wanted.as_ref().is_none_or(|word| own.contains(word));
        is(&self.kind, &model.kind)
            && among(&self.capability, &model.capabilities)
            && among(&self.task, &model.tasks)
            && among(&self.endpoint_type, &model.supported_endpoint_types)
            && among(&self.group, &model.enable_groups)
            && self.group.as_ref().is_none_or(|group| knows(group))
            && self.after.as_ref().is_none_or(|after| model.name > *after)
            && self.vendor.as_ref().is_none_or(|wanted| is_vendor(catalog, model, wanted))
            && self.text.as_ref().is_none_or(|text| has_text(model, text))
    }
}

/// By its number, its table or its name.
fn is_vendor(catalog: &Snapshot, model: &Model, wanted: &str) -> bool {
    let table = model.vendor.as_ref().and_then(|name| catalog.vendors.get(name));
    let id = table.map(|vendor| vendor.id).or(model.vendor_id);
    id.is_some_and(|id| id.to_string() == wanted)
        || model.vendor.as_deref() == Some(wanted)
        || model.owner(catalog).is_some_and(|owner| owner.eq_ignore_ascii_case(wanted))
}

/// In its name, description or tags, whatever the case.
fn has_text(model: &Model, text: &str) -> bool {
    let within = |own: &str| own.to_lowercase().contains(text);
    within(&model.name) || within(&model.description) || model.tags.iter().any(|tag| within(tag))
}
