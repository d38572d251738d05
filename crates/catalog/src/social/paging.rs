//! How the parameters of the next page follow from an answer.

use super::Evidence;

/// The rule of one cell.
#[derive(Clone, Debug)]
pub struct Paging {
    pub evidence: Evidence,
    /// For each parameter that changes from page to page (its place in the cell's parameters): how.
    pub next: Vec<(usize, PagingStep)>,
    /// Where the answer says that there is more.
    pub more: Option<More>,
    /// Values of a cursor that mean the end.
    pub end: Vec<String>,
}

/// Where an answer says whether there is more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct More {
    pub at: String,
    /// The place says that this was the last page.
    pub negated: bool,
}

/// Where the next value of a parameter comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagingStep {
    /// The value at this place of the answer.
    From(String),
    /// The query parameter of this name in the link at this place.
    FromLink { at: String, name: String },
    /// The first field with the parameter's own name, wherever it stands; without one the caller's
    /// value is remembered.
    Anywhere,
    /// One more than was asked for.
    PlusOne,
    /// As many more as entries came.
    PlusCount,
}

impl PagingStep {
    /// `/cursor`, `/paging/next?offset`, `*`, `+1` or `+count`.
    pub(crate) fn parse(text: &str) -> Option<PagingStep> {
        match text {
            "*" => Some(PagingStep::Anywhere),
            "+1" => Some(PagingStep::PlusOne),
            "+count" => Some(PagingStep::PlusCount),
            _ if !text.starts_with('/') => None,
            _ => Some(match text.split_once('?') {
                Some((at, name)) => PagingStep::FromLink { at: at.to_owned(), name: name.to_owned() },
                None => PagingStep::From(text.to_owned()),
            }),
        }
    }
}

impl More {
    /// `/has_more`, or `!/is_end`.
    pub(crate) fn parse(text: &str) -> Option<More> {
        let (at, negated) = text.strip_prefix('!').map_or((text, false), |at| (at, true));
        at.starts_with('/').then(|| More { at: at.to_owned(), negated })
    }
}
