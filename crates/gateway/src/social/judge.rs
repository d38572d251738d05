//! Data, nothing, or a failure in disguise? The rule of the cell applied to an answer; and the parameters of the next page.

use tollgate_catalog::social::{Cell, Checked, Paging, Status, Step, Value};
use tollgate_wire::social::{Picked, Places, pairs};

/// What an answer of status 200 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Result,
    NoResult,
    /// A status field says that the fetch failed.
    Failed,
}

pub fn judge(cell: &Cell, data: &impl Places) -> Judged {
    let rule = &cell.answer;
    if data.find("").is_none_or(|whole| whole.is_nothing()) {
        return Judged::NoResult;
    }
    for status in &rule.ok {
        match judge_status(status, data) {
            Some(Judged::Result) => {}
            Some(judged) => return judged,
            None if rule.evidence.is_strict() && !status.optional => return Judged::Failed,
            None => {}
        }
    }
    if rule.marks_empty.iter().any(|at| data.find(at).is_some_and(|found| found.is_true())) {
        return Judged::NoResult;
    }
    if rule.items.is_empty() {
        return Judged::Result;
    }
    let mut found = rule.items.iter().filter_map(|at| data.find(at)).peekable();
    // A place that was only inferred may be somewhere else in truth: then there is nothing to judge by.
    if found.peek().is_none() && !rule.evidence.is_strict() {
        return Judged::Result;
    }
    if found.any(|found| !found.is_nothing()) { Judged::Result } else { Judged::NoResult }
}

/// What an answer of which only the beginning was seen is so far: a result, unless something seen speaks against it.
pub fn judge_begun(cell: &Cell, seen: &impl Places) -> Judged {
    let statuses = cell.answer.ok.iter().map(|status| judge_status(status, seen).unwrap_or(Judged::Result));
    if let Some(bad) = statuses.into_iter().find(|judged| *judged != Judged::Result) {
        return bad;
    }
    let empty = |at: &String| seen.find(at).is_some_and(|found| found.is_true());
    if cell.answer.marks_empty.iter().any(empty) { Judged::NoResult } else { Judged::Result }
}

/// What one status field says; `None` where it is absent.
fn judge_status(status: &Status, data: &impl Places) -> Option<Judged> {
    let value = data.find(&status.at).and_then(|found| found.plain())?;
    Some(match () {
        () if status.is.iter().any(|good| *good == value) => Judged::Result,
        () if status.not_found.iter().any(|none| *none == value) => Judged::NoResult,
        () => Judged::Failed,
    })
}

/// All that `judge` and `next_page` will want to know of an answer of this cell.
pub fn wanted(cell: &Cell) -> Picked {
    let rule = &cell.answer;
    let mut places: Vec<&str> = rule.ok.iter().map(|status| status.at.as_str()).collect();
    places.extend(rule.marks_empty.iter().chain(&rule.items).map(String::as_str));
    let mut names = Vec::new();
    if let Some(paging) = &cell.paging {
        places.extend(paging.more.iter().map(|more| more.at.as_str()));
        for (param, step) in &paging.next {
            match step {
                Step::From(at) | Step::FromLink { at, .. } => places.push(at),
                Step::Anywhere => names.push(cell.params[*param].name.as_str()),
                Step::PlusOne | Step::PlusCount => {}
            }
        }
    }
    Picked::new(places, names)
}

/// The parameters of the next page, ready to be sent; empty when there is none or nobody can tell.
pub fn next_page<'c>(cell: &'c Cell, checked: &Checked, data: &impl Places) -> Vec<(&'c str, String)> {
    let Some(paging) = &cell.paging else { return Vec::new() };
    if let Some(more) = &paging.more
        && let Some(found) = data.find(&more.at)
        && found.is_true() == more.negated
    {
        return Vec::new();
    }
    let mut moved = Vec::new();
    let mut progress = false;
    for (at, step) in &paging.next {
        let given = checked.get(cell, &cell.params[*at].name);
        let Some(value) = step_to(cell, *at, step, paging, given, data) else { return Vec::new() };
        progress |= *step != Step::Anywhere && given.is_none_or(|given| given.to_string() != value);
        moved.push((*at, value));
    }
    if !progress {
        return Vec::new();
    }
    let mut next = Vec::new();
    for (at, param) in cell.params.iter().enumerate() {
        let value = match moved.iter().find(|(place, _)| *place == at) {
            Some((_, value)) => Some(value.clone()),
            None => checked.get(cell, &param.name).map(Value::to_string),
        };
        next.extend(value.filter(|value| !value.is_empty()).map(|value| (param.name.as_str(), value)));
    }
    next
}

/// The next value of one parameter; `None` at the end of the list.
fn step_to(
    cell: &Cell,
    at: usize,
    step: &Step,
    paging: &Paging,
    given: Option<&Value>,
    data: &impl Places,
) -> Option<String> {
    let param = &cell.params[at];
    let found = |place: &str| data.find(place).and_then(|found| found.plain()).map(|text| text.into_owned());
    let start = || given.or(param.default.as_ref()).or(param.upstream_default.as_ref()).map(Value::to_string);
    let number = || start().map_or(Some(param.min.unwrap_or(0)), |text| text.parse::<i64>().ok());
    match step {
        Step::From(place) => found(place).filter(|value| !value.is_empty() && !paging.end.contains(value)),
        Step::FromLink { at, name } => {
            let link = found(at)?;
            let query = link.split_once('?')?.1;
            let value = pairs(query).ok()?.into_iter().find(|(known, _)| known == name)?.1.into_owned();
            Some(value).filter(|value| !value.is_empty())
        }
        Step::Anywhere => {
            let fresh = data.find_anywhere(&param.name).and_then(|found| found.plain()).map(|text| text.into_owned());
            Some(fresh.or_else(|| given.map(Value::to_string)).unwrap_or_default())
        }
        Step::PlusOne => number()?.checked_add(1).map(|next| next.to_string()),
        Step::PlusCount => {
            let counts = cell.answer.items.iter().filter_map(|place| data.find(place)).map(|found| found.count());
            let count = counts.max().filter(|count| *count > 0)?;
            number()?.checked_add(i64::try_from(count).ok()?).map(|next| next.to_string())
        }
    }
}
