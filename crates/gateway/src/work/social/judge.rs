//! Data, nothing, or a failure in disguise? The rule of the cell applied to an answer; and the
//! parameters of the next page.

use bytes::Bytes;
use tollgate_catalog::social::{Cell, Checked, Paging, PagingStep, ParamValue, Status};
use tollgate_media::social::{CheckedData, Outline, Picked, PlaceLookup, pairs, read_envelope};

/// What an answer of status 200 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Result,
    NoResult,
    /// It cannot be read, or a status says that the fetch failed.
    Failed,
}

/// The supplier's own status says that there is no answer; without one there may be.
pub fn is_bad(code: Option<i64>) -> bool {
    code.is_some_and(|code| code != 200 && code != 0)
}

/// Takes an answer out of its envelope; the error says what it is if it is no result.
pub fn open(cell: &Cell, bytes: &Bytes) -> Result<CheckedData, Judged> {
    let envelope = read_envelope(bytes).map_err(|_| Judged::Failed)?;
    if is_bad(envelope.code) {
        return Err(Judged::Failed);
    }
    let data = envelope.data.ok_or(Judged::NoResult)?;
    match judge(cell, &data, data.outline(&cell.drop)) {
        Judged::Result => Ok(data),
        other => Err(other),
    }
}

/// A whole answer by the rule of its cell. `outline` is of what is left without the members that
/// are the supplier's.
pub fn judge(cell: &Cell, data: &impl PlaceLookup, outline: Outline) -> Judged {
    let rule = &cell.answer;
    match outline {
        Outline::Nothing => return Judged::NoResult,
        Outline::Single => return Judged::Failed,
        Outline::Something => {}
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
    // A place that was only inferred may be somewhere else in truth: then there is nothing to judge
    // by.
    if found.peek().is_none() && !rule.evidence.is_strict() {
        return Judged::Result;
    }
    if found.any(|found| !found.is_nothing()) { Judged::Result } else { Judged::NoResult }
}

/// What an answer of which only the beginning was seen is so far: a result, unless something seen
/// speaks against it.
pub fn judge_begun(cell: &Cell, seen: &impl PlaceLookup, outline: Outline) -> Judged {
    if outline == Outline::Single {
        return Judged::Failed;
    }
    let statuses = cell.answer.ok.iter().map(|status| judge_status(status, seen).unwrap_or(Judged::Result));
    if let Some(bad) = statuses.into_iter().find(|judged| *judged != Judged::Result) {
        return bad;
    }
    let empty = |at: &String| seen.find(at).is_some_and(|found| found.is_true());
    if cell.answer.marks_empty.iter().any(empty) { Judged::NoResult } else { Judged::Result }
}

/// What one status field says; `None` where it is absent.
fn judge_status(status: &Status, data: &impl PlaceLookup) -> Option<Judged> {
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
                PagingStep::From(at) | PagingStep::FromLink { at, .. } => places.push(at),
                PagingStep::Anywhere => names.push(cell.params[*param].name.as_str()),
                PagingStep::PlusOne | PagingStep::PlusCount => {}
            }
        }
    }
    Picked::new(places, names)
}

/// The parameters of the next page, ready to be sent; empty when there is none or nobody can tell.
pub fn next_page<'c>(cell: &'c Cell, checked: &Checked, data: &impl PlaceLookup) -> Vec<(&'c str, String)> {
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
        progress |= *step != PagingStep::Anywhere && given.is_none_or(|given| given.to_string() != value);
        moved.push((*at, value));
    }
    if !progress {
        return Vec::new();
    }
    let mut next = Vec::new();
    for (at, param) in cell.params.iter().enumerate() {
        let value = match moved.iter().find(|(place, _)| *place == at) {
            Some((_, value)) => Some(value.clone()),
            None => checked.get(cell, &param.name).map(ParamValue::to_string),
        };
        next.extend(value.filter(|value| !value.is_empty()).map(|value| (param.name.as_str(), value)));
    }
    // Where we would refuse the next page ourselves, the list ends for our callers.
    if cell.check(&next).is_err() { Vec::new() } else { next }
}

/// The next value of one parameter; `None` at the end of the list.
fn step_to(
    cell: &Cell,
    at: usize,
    step: &PagingStep,
    paging: &Paging,
    given: Option<&ParamValue>,
    data: &impl PlaceLookup,
) -> Option<String> {
    let param = &cell.params[at];
    let found = |place: &str| data.find(place).and_then(|found| found.plain()).map(|text| text.into_owned());
    let start = || given.or(param.default.as_ref()).or(param.upstream_default.as_ref()).map(ParamValue::to_string);
    let number = || start().map_or(Some(param.min.unwrap_or(0)), |text| text.parse::<i64>().ok());
    match step {
        PagingStep::From(place) => found(place).filter(|value| !value.is_empty() && !paging.end.contains(value)),
        PagingStep::FromLink { at, name } => {
            let link = found(at)?;
            let query = link.split_once('?')?.1;
            let value = pairs(query).ok()?.into_iter().find(|(known, _)| known == name)?.1.into_owned();
            Some(value).filter(|value| !value.is_empty())
        }
        PagingStep::Anywhere => {
            let fresh = data.find_anywhere(&param.name).and_then(|found| found.plain()).map(|text| text.into_owned());
            Some(fresh.or_else(|| given.map(ParamValue::to_string)).unwrap_or_default())
        }
        PagingStep::PlusOne => number()?.checked_add(1).map(|next| next.to_string()),
        PagingStep::PlusCount => {
            let counts = cell.answer.items.iter().filter_map(|place| data.find(place)).map(|found| found.count());
            let count = counts.max().filter(|count| *count > 0)?;
            number()?.checked_add(i64::try_from(count).ok()?).map(|next| next.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_catalog::social::SHIPPED;
    use tollgate_catalog::{Snapshot, load};

    fn shipped() -> Snapshot {
        let files: Vec<(String, String)> =
            SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        load(&files).expect("a catalog")
    }

    #[test]
    fn an_answer_is_data_nothing_or_a_failure() {
        use Judged::{Failed, NoResult, Result as Data};
        let catalog = shipped();
        let cases = [
            // Observed: a status that must be there, a value that means "none", a place that must
            // hold something.
            ("bilibili/search", r#"{"code":0,"data":{"result":[{"id":1}]}}"#, Data),
            ("bilibili/search", r#"{"code":0,"data":{"result":[]}}"#, NoResult),
            ("bilibili/search", r#"{"code":0,"data":{}}"#, NoResult),
            ("bilibili/search", r#"{"code":-404,"data":{"result":[{"id":1}]}}"#, NoResult),
            ("bilibili/search", r#"{"code":-412,"data":{"result":[{"id":1}]}}"#, Failed),
            ("bilibili/search", r#"{"data":{"result":[{"id":1}]}}"#, Failed),
            // Observed, with a place and no status.
            ("douyin/post", r#"{"aweme_detail":{"id":1}}"#, Data),
            ("douyin/post", r#"{"aweme_detail":null,"filter_detail":{"notice":"deleted"}}"#, NoResult),
            ("douyin/post", r#"{"something_else":{"id":1}}"#, NoResult),
            // Inferred: a place that is not there tells nothing, one that is there does.
            ("douyin/user", r#"{"profile":{"id":1}}"#, Data),
            ("douyin/user", r#"{"user":{"id":1}}"#, Data),
            ("douyin/user", r#"{"user":null}"#, NoResult),
            // A status that one form of the answer lacks.
            ("wechat-channels/user", r#"{"contact":{"nickname":"x"}}"#, Data),
            ("wechat-channels/user", r#"{"baseResponse":{"ret":0},"contact":{"nickname":"x"}}"#, Data),
            ("wechat-channels/user", r#"{"baseResponse":{"ret":-1},"contact":{"nickname":"x"}}"#, Failed),
            // Marks of emptiness.
            ("wechat-search/search", r#"{"items":[{"id":1}],"no_more":""}"#, Data),
            ("wechat-search/search", r#"{"items":[{"id":1}],"no_more":"no more"}"#, NoResult),
            ("toutiao/post", r#"{"message":"success","data":{"id":1,"delete":0}}"#, Data),
            ("toutiao/post", r#"{"message":"success","data":{"id":1,"delete":1}}"#, NoResult),
            // Whatever the cell: nothing, nothing but the supplier's own, or no answer of a
            // platform at all.
            ("douyin/user", "null", NoResult),
            ("douyin/user", "{}", NoResult),
            ("douyin/user", "[]", NoResult),
            ("douyin/user", r#"{"cookie":"x","debug_id":"y"}"#, NoResult),
            ("douyin/user", r#"{"cookie":"x","user":{"id":1}}"#, Data),
            ("douyin/user", r#""try again""#, Failed),
            ("douyin/user", "7", Failed),
            ("douyin/user", "true", Failed),
            ("kuaishou/trending", r#"[{"word":"x"}]"#, Data),
        ];
        for (name, data, expected) in cases {
            let (platform, capability) = name.split_once('/').expect("a cell");
            let cell = catalog.social.cell(platform, capability).expect("a cell");
            let answer = Bytes::from(format!(r#"{{"code":200,"data":{data}}}"#));
            let judged = open(cell, &answer).map_or_else(|judged| judged, |_| Judged::Result);
            assert_eq!(judged, expected, "{name} {data}");
        }
        let cell = catalog.social.cell("douyin", "user").expect("a cell");
        for (answer, expected) in
            [(r#"{"code":200}"#, NoResult), (r#"{"code":500,"data":{"user":{"id":1}}}"#, Failed), ("<", Failed)]
        {
            assert_eq!(open(cell, &Bytes::from_static(answer.as_bytes())).err(), Some(expected), "{answer}");
        }
    }
}
