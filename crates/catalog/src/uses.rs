//! How often the tools of a provider were used in a call. Small and copied like any counter;
//! written as text where it is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Face;

/// Uses by tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Uses([u32; Face::TOOLS.len()]);

impl Uses {
    pub const NONE: Uses = Uses([0; Face::TOOLS.len()]);

    /// The uses of one tool; a face that is no tool has none.
    pub fn get(&self, face: Face) -> u64 {
        place(face).map_or(0, |at| u64::from(self.0[at]))
    }

    #[must_use]
    pub fn with(mut self, face: Face, uses: u64) -> Uses {
        if let Some(at) = place(face) {
            self.0[at] = u32::try_from(uses).unwrap_or(u32::MAX);
        }
        self
    }

    pub fn is_empty(&self) -> bool {
        *self == Uses::NONE
    }

    /// The tools that were used at all.
    pub fn iter(&self) -> impl Iterator<Item = (Face, u64)> + '_ {
        Face::TOOLS.iter().zip(self.0).filter(|(_, uses)| *uses > 0).map(|(face, uses)| (*face, u64::from(uses)))
    }

    /// `tool:web_search=3,tool:maps=1`; nothing where nothing was used.
    pub fn text(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let parts: Vec<String> = self.iter().map(|(face, uses)| format!("{}={uses}", face.name())).collect();
        Some(parts.join(","))
    }

    /// Reads what [`Uses::text`] wrote; what cannot be read was not used.
    pub fn of_text(text: &str) -> Uses {
        let parts = text.split(',').filter_map(|part| part.split_once('='));
        parts.fold(Uses::NONE, |all, (name, uses)| match (Face::named(name), uses.parse()) {
            (Some(face), Ok(uses)) => all.with(face, uses),
            _ => all,
        })
    }
}

fn place(face: Face) -> Option<usize> {
    Face::TOOLS.into_iter().position(|tool| tool == face)
}

impl Serialize for Uses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(face, uses)| (face.name(), uses)))
    }
}

impl<'de> Deserialize<'de> for Uses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Uses, D::Error> {
        let written = BTreeMap::<String, u64>::deserialize(deserializer)?;
        Ok(written.into_iter().fold(Uses::NONE, |all, (name, uses)| match Face::named(&name) {
            Some(face) => all.with(face, uses),
            None => all,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_come_back_from_text_and_json() {
        let uses = Uses::NONE.with(Face::WebSearch, 3).with(Face::Maps, 1).with(Face::Input, 9);
        assert_eq!(uses.text().as_deref(), Some("tool:web_search=3,tool:maps=1"));
        assert_eq!(Uses::of_text("tool:web_search=3,tool:maps=1"), uses);
        assert_eq!(Uses::NONE.text(), None);
        assert_eq!(Uses::of_text("nonsense,input=3,tool:maps=x"), Uses::NONE);
        let json = serde_json::to_string(&uses).expect("JSON");
        assert_eq!(json, r#"{"tool:web_search":3,"tool:maps":1}"#);
        assert_eq!(serde_json::from_str::<Uses>(&json).expect("uses"), uses);
        assert_eq!(uses.with(Face::Maps, u64::MAX).get(Face::Maps), u64::from(u32::MAX), "as many as can be stored");
    }
}
