//! From a request to the provider's final body, with what it will cost at most and what is to be
//! reported to the caller.

use super::fields::Fit;
use super::variant::{Api, Offer, Variant};
use super::{PictureUpload, VideoRefusal, VideoRequest, Warning, Warnings};
use serde_json::{Map, Value};

/// What goes to the provider, and what is known about it beforehand.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub variant: Variant,
    /// Which of the provider's operations, a word of its API such as `text2video`.
    pub call: &'static str,
    /// The body without the model's name, which belongs to the route.
    pub body: Map<String, Value>,
    /// A picture that goes beside the body, where the provider takes files only.
    pub upload: Option<PictureUpload>,
    /// The effective parameters after defaults, folding and `metadata`: what a price may depend on.
    pub effective: Vec<(&'static str, String)>,
    /// Seconds asked for; `None` when the provider decides.
    pub seconds: Option<u32>,
    /// The most the provider can count.
    pub bound: PlanBound,
    /// What is charged where the provider never tells what it made: what was asked for, and the
    /// least there can be of what was left to it.
    pub least: PlanBound,
    pub warnings: Vec<Warning>,
}

/// Upper bounds for the hold. Settlement follows what the provider reports, within these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanBound {
    /// Seconds made, and seconds of source material where a provider bills them.
    pub seconds: u32,
    /// For providers that bill tokens.
    pub tokens: Option<u64>,
}

impl Plan {
    pub fn api(&self) -> Api {
        self.variant.api()
    }

    /// Fields that do not count, or not as they were sent.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().filter(|warning| !warning.in_part).map(|warning| warning.field.as_str())
    }

    /// An effective parameter by its path; `metadata.mode` and `mode` are the same.
    pub fn attribute(&self, path: &str) -> Option<&str> {
        let name = path.strip_prefix("metadata.").unwrap_or(path);
        let found = self.effective.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Every fact a price may depend on. docs/video.md says which variants have which.
pub const FACTS: &[&str] =
    &["model", "seconds", "resolution", "size", "mode", "audio", "sound", "ratio", "video_input", "reference_images"];

/// The operation of a plan that makes another video out of a finished one: its body names that one
/// as the provider knows it (`remix_of`) and as we do (`remixed_from`).
pub const REMIX: &str = "remix";

/// Fields the gateway itself reads, whatever the model.
const GATEWAY: &[&str] = &["webhook_url"];

/// Applies the rules of the model's family.
pub fn plan(request: &VideoRequest, offer: &Offer) -> Result<Plan, VideoRefusal> {
    let rules = offer.variant.rules();
    let mut warnings = Warnings::default();
    for field in request.sent().filter(|field| !rules.reads.contains(field)) {
        warnings.push(Warning::new(field, "This model does not read this field; it was dropped."));
    }
    for field in request.others.keys().filter(|field| !GATEWAY.contains(&field.as_str())) {
        let message = "There is no such field; it was dropped. Fields of a provider go into `metadata`.";
        warnings.push(Warning::new(field, message));
    }
    let meta =
        Fit { loose: request.loose, warnings: &mut warnings }.object(&request.metadata, rules.metadata, "metadata")?;
    let mut case = Case { ask: request, meta, offer, warnings };
    let draft = (rules.build)(&mut case)?;
    let mut effective = draft.effective;
    effective.push(("model", request.model.clone()));
    if let Some(seconds) = draft.seconds {
        effective.push(("seconds", seconds.to_string()));
    }
    let asked = PlanBound { seconds: draft.seconds.unwrap_or(draft.bound.seconds), ..draft.bound };
    debug_assert!(effective.iter().all(|(name, _)| FACTS.contains(name)), "a fact is missing in the list");
    Ok(Plan {
        variant: offer.variant,
        call: draft.call,
        body: draft.body,
        upload: draft.upload,
        effective,
        seconds: draft.seconds,
        bound: draft.bound,
        least: draft.least.unwrap_or(asked),
        warnings: case.warnings.list(),
    })
}

/// What a family's function returns.
#[derive(Default)]
pub(crate) struct Draft {
    pub call: &'static str,
    pub body: Map<String, Value>,
    pub upload: Option<PictureUpload>,
    pub effective: Vec<(&'static str, String)>,
    pub seconds: Option<u32>,
    pub bound: PlanBound,
    /// Where that is not the seconds asked for.
    pub least: Option<PlanBound>,
}

/// What a family's function works on: the request, its `metadata` fitted to the family's list, and
/// the offer.
pub(crate) struct Case<'a> {
    pub ask: &'a VideoRequest,
    pub meta: Map<String, Value>,
    pub offer: &'a Offer,
    pub warnings: Warnings,
}

impl Case<'_> {
    pub fn warn(&mut self, field: &str, message: impl AsRef<str>) {
        self.warnings.push(Warning::new(field, message));
    }

    /// The prompt, where there must be one.
    pub fn prompt(&self) -> Result<String, VideoRefusal> {
        self.ask.prompt.clone().ok_or_else(|| VideoRefusal::missing("prompt", "`prompt` is required."))
    }

    /// Takes a value out of `metadata`.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.meta.remove(name)
    }

    /// Takes a text out of `metadata`; the kind was checked before.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        match self.meta.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Takes an object out of `metadata`.
    pub fn take_object(&mut self, name: &str) -> Map<String, Value> {
        match self.meta.remove(name) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }

    /// Takes an array out of `metadata`; `None` when it was not sent.
    pub fn take_list(&mut self, name: &str) -> Option<Vec<Value>> {
        match self.meta.remove(name) {
            Some(Value::Array(list)) => Some(list),
            _ => None,
        }
    }

    /// A parameter as it was named, or what is sent and priced where it was not.
    pub fn or_unasked(&self, named: Option<String>, parameter: &str, usual: &str) -> String {
        named.unwrap_or_else(|| self.offer.default_of(parameter, usual))
    }

    /// Refuses a value that has no price.
    pub fn sold(&self, parameter: &str, value: &str, param: &str) -> Result<(), VideoRefusal> {
        self.offer.check(parameter, value, param)
    }
}

/// An object from pairs.
pub(crate) fn object<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
