//! How to tell an answer with data from an empty one and from an error in disguise. Places are JSON
//! pointers into `data` as the source sent it: `/a/0/b`, `-1` for the last entry of a list, the
//! empty text for `data` itself.
//!
//! In every cell `data` that is null, `{}` or `[]` is no result.

/// The rule of one cell.
#[derive(Clone, Debug, Default)]
pub struct AnswerRule {
    pub evidence: Evidence,
    /// Status fields and the values that mean success; anything else is a failed fetch.
    pub ok: Vec<Status>,
    /// A result has something in at least one of these places.
    pub items: Vec<String>,
    /// Something here (not null, empty, 0 or false) marks an empty page.
    pub marks_empty: Vec<String>,
}

/// A status field inside `data`.
#[derive(Clone, Debug)]
pub struct Status {
    pub at: String,
    /// Accepted values, as plain text: `0`, `true`, `ok`.
    pub is: Vec<String>,
    /// Values that mean "there is no such thing".
    pub not_found: Vec<String>,
    /// May be absent even where the rule was observed, because another form of the answer lacks it.
    pub optional: bool,
}

/// How a rule is known. An observed place must be there; another one is believed only when it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    Observed,
    Documented,
    #[default]
    Inferred,
}

impl Evidence {
    pub const ALL: [(&'static str, Evidence); 3] =
        [("observed", Evidence::Observed), ("documented", Evidence::Documented), ("inferred", Evidence::Inferred)];

    pub fn is_strict(self) -> bool {
        self == Evidence::Observed
    }
}
