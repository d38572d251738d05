//! Tables inside a table: one, several in a list, or several by name.

use std::collections::BTreeMap;

use super::node::FormValue;
use super::{Form, FormNode, join};

impl<'m> Form<'m> {
    /// A sub-table that need not be written: without it every field of it takes its default, and a
    /// needed field is missing.
    pub fn table(&mut self, key: &str) -> Form<'m> {
        let place = self.place_of(key);
        let fields = self.take(key).unwrap_or_default();
        self.child(self.field(key), place, fields)
    }

    /// A sub-table that may be left out as a whole.
    pub fn opt_table(&mut self, key: &str) -> Option<Form<'m>> {
        let place = self.place_of(key);
        let fields = self.take(key)?;
        Some(self.child(self.field(key), place, fields))
    }

    /// The tables of an array of tables, `[[key]]`, in their order; empty when left out.
    pub fn tables(&mut self, key: &str) -> Vec<Form<'m>> {
        self.ask(key);
        let path = self.field(key);
        let Some(node) = self.fields.get_mut(key) else {
            return Vec::new();
        };
        let items = match std::mem::replace(&mut node.value, FormValue::Taken) {
            FormValue::List(items) => items,
            other => {
                let reason = format!("must be a list of tables, [[{path}]], not {}", other.kind());
                self.mistake(key, reason);
                return Vec::new();
            }
        };
        let mut forms = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            match item.value {
                FormValue::Table(fields) => {
                    forms.push(self.child(format!("{path}[{at}]"), item.place, fields));
                }
                other => self.mistake(key, format!("must hold tables, not {}", other.kind())),
            }
        }
        forms
    }

    /// The tables by name below a key, `[key.NAME]`, in the order of the file; empty when left out.
    pub fn named(&mut self, key: &str) -> Vec<(String, Form<'m>)> {
        let path = self.field(key);
        let mut forms = Vec::new();
        for (name, node) in self.take(key).unwrap_or_default() {
            let path = join(&path, &name);
            match node.value {
                FormValue::Table(fields) => {
                    forms.push((name, self.child(path, node.place, fields)));
                }
                other if !self.muted => {
                    self.mistakes.add(&node.place, &path, format!("must be a table, not {}", other.kind()))
                }
                _ => {}
            }
        }
        forms.sort_by(|(_, a), (_, b)| a.place.cmp(&b.place));
        forms
    }

    fn take(&mut self, key: &str) -> Option<BTreeMap<String, FormNode>> {
        self.ask(key);
        let node = self.fields.get_mut(key)?;
        match std::mem::replace(&mut node.value, FormValue::Taken) {
            FormValue::Table(fields) => Some(fields),
            other => {
                self.mistake(key, format!("must be a table, not {}", other.kind()));
                None
            }
        }
    }
}
