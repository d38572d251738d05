//! Which entry of a list of objects a field belongs to, when its name only says `[]`.
//!
//! Entry after entry: a name seen before begins the next one. Names gathered: the first of each
//! name belongs to the first entry, the second to the second. A name that fewer entries have
//! belongs to those whose `type` is that name (`image_url` to the pictures); otherwise nobody can
//! tell, and the caller is asked for JSON or numbers.

use super::super::VideoRefusal;
use super::{Field, Step};
use std::collections::HashMap;

/// Puts a number in place of every `[]` that holds more than text, outermost first.
pub(super) fn number(fields: &mut [Field]) -> Result<(), VideoRefusal> {
    for depth in 0..super::DEPTH {
        let mut lists: Vec<(String, Vec<Step>)> = Vec::new();
        for field in fields.iter() {
            let list = (field.first.clone(), field.path.iter().take(depth).cloned().collect());
            if holds_objects(field, depth) && !lists.contains(&list) {
                lists.push(list);
            }
        }
        for (first, prefix) in lists {
            let inside = |field: &Field| {
                holds_objects(field, depth) && field.first == first && field.path[..depth] == prefix[..]
            };
            let places: Vec<usize> = (0..fields.len()).filter(|at| inside(&fields[*at])).collect();
            place(fields, &places, depth)?;
        }
    }
    Ok(())
}

fn holds_objects(field: &Field, depth: usize) -> bool {
    field.path.get(depth) == Some(&Step::Next) && field.path.len() > depth + 1
}

/// Numbers the fields of one list and brings them into the order of their entries.
fn place(fields: &mut [Field], places: &[usize], depth: usize) -> Result<(), VideoRefusal> {
    let names: Vec<Vec<Step>> = places.iter().map(|at| fields[*at].path[depth + 1..].to_vec()).collect();
    let gathered = names.windows(2).any(|pair| pair[0] == pair[1] && !repeats(&pair[0]));
    let entries = if gathered { by_name(fields, places, &names)? } else { in_order(&names) };
    let mut numbered: Vec<(usize, Field)> = Vec::with_capacity(places.len());
    for (at, entry) in places.iter().zip(&entries) {
        let mut field = fields[*at].clone();
        field.path[depth] = Step::At(*entry);
        numbered.push((*entry, field));
    }
    numbered.sort_by_key(|(entry, _)| *entry);
    for (at, (_, field)) in places.iter().zip(numbered) {
        fields[*at] = field;
    }
    Ok(())
}

/// A name with a list inside may come several times in one entry.
fn repeats(name: &[Step]) -> bool {
    name.contains(&Step::Next)
}

fn in_order(names: &[Vec<Step>]) -> Vec<usize> {
    let mut entry = 0;
    let mut seen: Vec<&Vec<Step>> = Vec::new();
    let mut entries = Vec::with_capacity(names.len());
    for name in names {
        if !repeats(name) && seen.contains(&name) {
            entry += 1;
            seen.clear();
        }
        seen.push(name);
        entries.push(entry);
    }
    entries
}

fn by_name(fields: &[Field], places: &[usize], names: &[Vec<Step>]) -> Result<Vec<usize>, VideoRefusal> {
    let mut counts: HashMap<&Vec<Step>, usize> = HashMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let size = counts.iter().filter(|(name, _)| !repeats(name)).map(|(_, count)| *count).max().unwrap_or(1);
    let kinds: Vec<&str> = places
        .iter()
        .zip(names)
        .filter(|(_, name)| name[..] == [Step::Name("type".to_owned())])
        .map(|(at, _)| fields[*at].text.as_str())
        .collect();
    let mut used: HashMap<&Vec<Step>, usize> = HashMap::new();
    let mut entries = Vec::with_capacity(names.len());
    for (at, name) in places.iter().zip(names) {
        let count = counts[name];
        let nth = used.entry(name).or_default();
        let entry = if count == size {
            Some(*nth)
        } else {
            let Some(Step::Name(word)) = name.first() else { return Err(unclear(&fields[*at])) };
            let fitting: Vec<usize> = (0..kinds.len()).filter(|entry| kinds[*entry] == word).collect();
            fitting.get(*nth).copied().filter(|_| kinds.len() == size && fitting.len() == count)
        };
        *nth += 1;
        entries.push(entry.ok_or_else(|| unclear(&fields[*at]))?);
    }
    Ok(entries)
}

fn unclear(field: &Field) -> VideoRefusal {
    let name = &field.name;
    let message =
        format!("It is not clear which entry `{name}` belongs to: send JSON, or number the entries (`[0]`, `[1]`).");
    VideoRefusal::invalid(name, message)
}
