//! `announced`: prices that will change, with what they are before and from which instant they are
//! others.

use serde::Serialize;

use super::{BookRecord, ModelRecord};
use crate::{Model, Snapshot, instant};

#[derive(Serialize)]
pub(super) struct AnnouncedRecord<'a> {
    /// Left out in the record of the model itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<&'a str>,
    from: String,
    /// What is charged until then.
    old: BookRecord<'a>,
    new: BookRecord<'a>,
}

impl Model {
    pub(super) fn announced(&self, at_ms: i64) -> impl Iterator<Item = AnnouncedRecord<'_>> {
        self.coming(at_ms).iter().map(|change| AnnouncedRecord {
            model_name: None,
            from: instant(change.from_ms),
            old: BookRecord::of(self.book_at(change.from_ms - 1), None),
            new: BookRecord::of(&change.book, None),
        })
    }
}

impl Snapshot {
    /// All that will change of these models, by time.
    pub(super) fn announced<'a>(&'a self, data: &[ModelRecord<'a>], at_ms: i64) -> Vec<AnnouncedRecord<'a>> {
        if self.next_change(at_ms).is_none() {
            return Vec::new();
        }
        let models = data.iter().filter_map(|one| self.models.get(one.model_name));
        let of = |model: &'a Model| {
            model.announced(at_ms).map(|one| AnnouncedRecord { model_name: Some(&model.name), ..one })
        };
        let mut all: Vec<AnnouncedRecord<'a>> = models.flat_map(|model| of(model)).collect();
        all.sort_by(|a, b| (&a.from, a.model_name).cmp(&(&b.from, b.model_name)));
        all
    }
}
