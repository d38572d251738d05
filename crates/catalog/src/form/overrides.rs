//! Values laid over a file's before it is read. They are texts; each reader understands them in its
//! own way (a number, a list by commas …), and their mistakes name where they come from instead of
//! a line.

use std::collections::BTreeMap;

use super::node::{FormNode, FormValue};
use super::{LineInFile, Mistakes, join};

/// One value that replaces a file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The keys down to the value, such as `["server", "listen"]`. A part may be spelt in another
    /// case and with `_` for `-`, `.` and `/`, as environment variables must.
    pub path: Vec<String>,
    pub value: String,
    /// Named in mistakes, such as `TOLLGATE__SERVER__LISTEN`.
    pub origin: String,
}

pub(super) fn lay(fields: &mut BTreeMap<String, FormNode>, over: &Override, mistakes: &Mistakes) {
    let place = LineInFile::origin(&over.origin);
    let Some((last, tables)) = over.path.split_last() else {
        mistakes.add(&place, "", "names no field");
        return;
    };
    let mut fields = fields;
    let mut path = String::new();
    for part in tables {
        path = join(&path, part);
        let key = spelt(fields, part);
        let node = fields.entry(key).or_insert_with(|| FormNode::new(FormValue::Table(BTreeMap::new()), place.clone()));
        match step(node) {
            Some(inner) => fields = inner,
            None => {
                mistakes.add(&place, &path, "is not a table");
                return;
            }
        }
    }
    let key = spelt(fields, last);
    fields.insert(key, FormNode::new(FormValue::Loose(over.value.clone()), place));
}

fn step(node: &mut FormNode) -> Option<&mut BTreeMap<String, FormNode>> {
    match &mut node.value {
        FormValue::Table(inner) => Some(inner),
        _ => None,
    }
}

/// The key of the file that is meant; the part as it stands (in lower case) when there is none.
fn spelt(fields: &BTreeMap<String, FormNode>, part: &str) -> String {
    if fields.contains_key(part) {
        return part.to_owned();
    }
    let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '.', '/'], "_");
    fields.keys().find(|key| plain(key) == plain(part)).cloned().unwrap_or_else(|| part.to_ascii_lowercase())
}
