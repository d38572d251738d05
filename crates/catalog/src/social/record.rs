//! What the public sees of a cell: its line in the catalog (specification 2.2) and the JSON Schema
//! of its parameters.

use serde_json::{Map, Value, json};

use super::{Cell, Param, ParamKind};
use crate::decimal::decimal;
use crate::{Face, Group, Money, PriceFacts, Quantities};

impl Cell {
    /// The price of a successful call for an account of this group that has topped up, as all
    /// callers of social data have.
    pub fn price_in(&self, group: &str) -> Option<Money> {
        let price = self.model.price(&PriceFacts { topped_up: true, group, ..PriceFacts::at(0) }).ok()?;
        price.charge(&Quantities::NONE.with(Face::PerCall, 1)).ok()
    }

    /// The price in the default group, or in the first the cell is sold to.
    pub fn price(&self) -> Option<Money> {
        self.price_in(self.usual_group())
    }

    fn usual_group(&self) -> &str {
        let first = self.model.enable_groups.first().map_or(Group::DEFAULT, String::as_str);
        self.model.group_for([Group::DEFAULT]).unwrap_or(first)
    }

    /// The cell's line in the catalog as operators see it.
    pub fn record(&self, paused: bool) -> Value {
        self.record_in(self.usual_group(), paused)
    }

    /// The cell's line in the catalog for who buys in this group.
    pub fn record_in(&self, group: &str, paused: bool) -> Value {
        let mut record = json!({
            "platform": self.platform,
            "capability": self.capability.name(),
            "model": self.model.name,
            "method": "GET",
            "path": self.path(),
            "params": self.params.iter().map(Param::record).collect::<Vec<_>>(),
        });
        if !self.require_one_of.is_empty() {
            record["require_one_of"] = json!(self.groups());
        }
        let price = self.price_in(group).and_then(|price| u128::try_from(price.nano()).ok());
        record["price_usd"] = price.map_or(Value::Null, |nano| decimal(nano, 1_000_000_000));
        record["unit"] = json!("call");
        record["status"] = json!(if paused { "paused" } else { "available" });
        record
    }

    /// The at-least-one-of groups by name.
    pub fn groups(&self) -> Vec<Vec<&str>> {
        let name = |at: &usize| self.params[*at].name.as_str();
        self.require_one_of.iter().map(|group| group.iter().map(name).collect()).collect()
    }

    /// One sentence for people and for programs that choose among cells.
    pub fn summary(&self) -> String {
        let what = match self.capability.name() {
            "search" => "Search",
            "post" => "One post of",
            "user" => "A user's profile on",
            "comments" => "Comments of a post on",
            "user-posts" => "Posts of a user on",
            _ => "What is trending on",
        };
        format!("{what} {}", self.platform_name_en)
    }

    /// All parameters as one object, for tools that take JSON.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.params.iter().map(|param| (param.name.clone(), param.schema())).collect();
        // A required parameter with a default need not be sent.
        let required: Vec<&str> =
            self.params.iter().filter(|p| p.required && p.default.is_none()).map(|p| p.name.as_str()).collect();
        let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }
}

impl Param {
    fn record(&self) -> Value {
        let mut record = json!({
            "name": self.name,
            "type": self.kind.name(),
            "required": self.required,
        });
        if let Some(default) = &self.default {
            record["default"] = default.json();
        }
        if let Some(example) = &self.example {
            record["example"] = json!(example);
        }
        record["description"] = json!(self.description());
        record
    }

    /// The JSON Schema of one value.
    pub fn schema(&self) -> Value {
        let mut schema = json!({ "type": self.kind.name(), "description": self.description() });
        let mut put = |key: &str, value: Value| schema[key] = value;
        if let Some(default) = &self.default {
            put("default", default.json());
        }
        if let Some(example) = &self.example {
            put("examples", json!([example]));
        }
        match self.kind {
            ParamKind::Text => {
                put("maxLength", json!(self.max_length));
                if self.min_length > 0 {
                    put("minLength", json!(self.min_length));
                }
                let choices = self.choices();
                if !choices.is_empty() {
                    put("enum", json!(choices));
                }
            }
            ParamKind::Integer => {
                self.min.into_iter().for_each(|min| put("minimum", json!(min)));
                self.max.into_iter().for_each(|max| put("maximum", json!(max)));
            }
            ParamKind::Boolean => {}
        }
        schema
    }
}
