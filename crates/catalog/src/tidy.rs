//! Price changes of the past, folded into the prices of their models. Only text is moved: what an
//! operator wrote beside prices stays as it is. Whoever writes it compares the catalogs of before
//! and after ([`same_prices_from`]).

use crate::load::pages::{self, ModelPage};
use crate::{Model, Snapshot, View};

/// The fields that a change replaces as a whole.
const REPLACED: [&str; 4] = ["price", "paid", "tier", "list"];

/// What was folded in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TidiedFile {
    pub text: String,
    /// Models, and how many of their changes are gone.
    pub folded: Vec<(String, usize)>,
}

/// The file without changes up to an instant; `None` where it has none. The catalog is the one it
/// belongs to.
pub fn tidied(text: &str, catalog: &Snapshot, now_ms: i64) -> Result<Option<TidiedFile>, String> {
    let passed = |model: &Model| model.changes.len() - model.coming(now_ms).len();
    let Some(cut) = pages::cut(text) else {
        let named = |model: &&std::sync::Arc<Model>| passed(model) > 0 && text.contains(&model.name);
        return match catalog.models.values().find(named) {
            Some(model) => {
                Err(format!("the tables of {:?} are not written one below the other: fold them by hand", model.name))
            }
            None => Ok(None),
        };
    };
    let mut whole = String::with_capacity(text.len());
    let mut folded = Vec::new();
    let mut rest = text;
    for page in cut.pages {
        let Some(count) = catalog.models.get(page.model).map(|model| passed(model)).filter(|count| *count > 0) else {
            continue;
        };
        let (before, behind) = rest.split_once(page.text).ok_or("the file cannot be cut")?;
        whole.push_str(before);
        let new = fold(&page, count).ok_or_else(|| {
            format!(
                "the changes of {:?} are not written as [[model.{:?}.change]]: fold them by hand",
                page.model, page.model
            )
        })?;
        whole.push_str(&new);
        rest = behind;
        folded.push((page.model.to_owned(), count));
    }
    whole.push_str(rest);
    Ok((!folded.is_empty()).then_some(TidiedFile { text: whole, folded }))
}

/// One table of a page: its header and what follows.
struct Segment<'t> {
    header: &'t str,
    /// Below the model; empty for the model itself.
    path: &'t str,
    statements: Vec<&'t str>,
}

fn fold(page: &ModelPage<'_>, count: usize) -> Option<String> {
    let segments = segments(page.text)?;
    let (base, others) = segments.split_first()?;
    let mut number = 0;
    let (mut own, mut below, mut stay) = (Vec::new(), String::new(), String::new());
    for segment in others {
        number += usize::from(segment.path == "change");
        let of_change = segment.path == "change" || segment.path.starts_with("change.");
        let replaced =
            REPLACED.iter().any(|name| segment.path == *name || segment.path.starts_with(&format!("{name}.")));
        match () {
            () if replaced || of_change && number < count => {}
            () if of_change && number == count && segment.path == "change" => {
                own = segment.statements.iter().copied().filter(|one| key(one) != "from").collect();
            }
            () if of_change && number == count => {
                below.push_str(&segment.header.replacen(".change.", ".", 1));
                below.extend(segment.statements.iter().copied());
            }
            () => {
                stay.push_str(segment.header);
                stay.extend(segment.statements.iter().copied());
            }
        }
    }
    if number < count {
        return None;
    }
    let kept = base.statements.iter().copied().filter(|one| !REPLACED.contains(&key(one)));
    let mut text: String = std::iter::once(base.header).chain(kept).collect();
    let end = text.trim_end().len();
    let gap = text.split_off(end);
    text.push('\n');
    text.push_str(own.concat().trim_end());
    text.push_str(if gap.trim_start_matches('\n').is_empty() && gap.len() > 1 { &gap } else { "\n" });
    text.push_str(&below);
    text.push_str(&stay);
    Some(text)
}

fn segments(text: &str) -> Option<Vec<Segment<'_>>> {
    let mut all: Vec<Segment<'_>> = Vec::new();
    for statement in pages::statements(text)? {
        if statement.trim_start().starts_with('[') {
            let path = if all.is_empty() { "" } else { pages::inside(statement)? };
            all.push(Segment { header: statement, path, statements: Vec::new() });
        } else {
            all.last_mut()?.statements.push(statement);
        }
    }
    Some(all)
}

/// The key of a statement, up to its first dot.
fn key(statement: &str) -> &str {
    let key = statement.split_once('=').map_or("", |(key, _)| key.trim());
    key.split('.').next().unwrap_or(key).trim_matches(['"', '\'', ' '])
}

/// Whether nothing that is sold or shown of prices differs from an instant on.
pub fn same_prices_from(old: &Snapshot, new: &Snapshot, now_ms: i64) -> bool {
    let groups: Vec<&str> = old.groups.keys().map(String::as_str).collect();
    let mut at = Some(now_ms);
    while let Some(at_ms) = at {
        let shown = |catalog: &Snapshot| {
            [false, true].map(|topped_up| {
                serde_json::to_string(&catalog.record(&View { groups: &groups, topped_up, known: true, at_ms })).ok()
            })
        };
        if old.pricing_version(at_ms) != new.pricing_version(at_ms) || shown(old) != shown(new) {
            return false;
        }
        if old.next_change(at_ms) != new.next_change(at_ms) {
            return false;
        }
        at = old.next_change(at_ms);
    }
    true
}
