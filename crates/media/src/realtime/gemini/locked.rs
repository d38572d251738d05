//! Setups that somebody else has fixed: what an ephemeral token says about the sessions that it
//! opens, and the setup of the client that presents it.

use serde_json::{Map, Value, json};

use super::super::form::LiveFault;
use super::super::json::put;
use super::client::model_name;
use super::keys::{at, camel, get, set};
use super::setup::check_setup;

/// What is the client's own, also where everything else is fixed.
const OWN: &str = "sessionResumption";

/// What a token fixes of a setup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockedSetup {
    /// Null: nothing.
    setup: Value,
    /// The fields that are fixed, as paths; all of them without it.
    mask: Option<Vec<String>>,
}

impl LockedSetup {
    /// `mask` is a field mask, as Google writes them: paths with dots, between commas.
    pub fn new(setup: Value, mask: Option<&str>) -> Result<LockedSetup, LiveFault> {
        if !setup.is_null() && !setup.is_object() {
            return Err(LiveFault("bidiGenerateContentSetup: an object is expected".to_string()));
        }
        check_setup(&setup)?;
        let mask = mask.map(|mask| {
            let paths = mask.split(',').map(str::trim).filter(|path| !path.is_empty());
            paths.map(|path| path.split('.').map(camel).collect::<Vec<_>>().join(".")).collect()
        });
        Ok(LockedSetup { setup, mask })
    }

    /// As it is stored.
    pub fn to_json(&self) -> Value {
        json!({ "setup": self.setup, "mask": self.mask })
    }

    pub fn from_json(stored: &Value) -> LockedSetup {
        let paths = stored["mask"].as_array();
        let mask = paths.map(|paths| paths.iter().filter_map(|path| Some(path.as_str()?.to_string())).collect());
        LockedSetup { setup: stored["setup"].clone(), mask }
    }

    /// The model that it names.
    pub fn model(&self) -> Option<&str> {
        get(&self.setup, "model").as_str().map(model_name).filter(|name| !name.is_empty())
    }

    /// The client's first message with what is fixed.
    pub(super) fn applied(&self, message: Value) -> Value {
        if self.setup.is_null() && self.mask.is_none() {
            return message;
        }
        let asked = get(&message, "setup");
        let mut setup = match &self.mask {
            Some(paths) => self.masked(asked, paths),
            None => self.whole(asked),
        };
        if self.model().is_none() {
            set(&mut setup, "model", get(asked, "model").clone());
        }
        json!({ "setup": setup })
    }

    fn whole(&self, asked: &Value) -> Map<String, Value> {
        let mut setup = self.setup.as_object().cloned().unwrap_or_default();
        let own = get(asked, OWN);
        if !own.is_null() {
            set(&mut setup, OWN, own.clone());
        }
        setup
    }

    /// The client's setup with the values of these fields, which may be none.
    fn masked(&self, asked: &Value, paths: &[String]) -> Map<String, Value> {
        let members = asked.as_object().into_iter().flatten();
        let mut setup: Map<String, Value> = members.map(|(name, value)| (camel(name), inner_camel(value))).collect();
        for path in paths.iter().map(String::as_str).chain(["model"]) {
            let path: Vec<&str> = path.split('.').collect();
            match at(&self.setup, &path) {
                Value::Null => take_out(&mut setup, &path),
                value => put(&mut setup, &path, value.clone()),
            }
        }
        setup
    }
}

/// The members of an object in one spelling: masks go down to the second level.
fn inner_camel(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (camel(name), value.clone())).collect())
        }
        other => other.clone(),
    }
}

fn take_out(object: &mut Map<String, Value>, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            object.remove(*last);
        }
        [first, rest @ ..] => {
            if let Some(Value::Object(inner)) = object.get_mut(*first) {
                take_out(inner, rest);
            }
        }
    }
}
