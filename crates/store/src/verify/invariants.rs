//! The invariants by number, and what becomes of each in an audit. Those about what a provider
//! received or what a stranger can read do not show in a ledger; the tests of the gateway hold
//! them.

/// Which audit looks at an invariant: the one named and those that look harder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Looked {
    /// Also the audit of what has changed, at what has changed.
    EveryMinute,
    /// One that reads everything.
    InFull,
    Strictly,
    /// None: it does not show in a ledger.
    Elsewhere,
}

/// Number, what it says, and which audit looks at it.
pub const INVARIANTS: [(&str, &str, Looked); 21] = [
    ("I1", "balances, key spending, trial credit and who has topped up are what the entries say", Looked::EveryMinute),
    ("I2", "every debit has its credit: all books together sum to zero", Looked::InFull),
    ("I3", "no pot was ever below zero", Looked::EveryMinute),
    ("I4", "a call has one hold", Looked::EveryMinute),
    ("I5", "a hold ends once", Looked::EveryMinute),
    ("I6", "what is captured was held", Looked::EveryMinute),
    ("I7", "no hold outlives its time", Looked::EveryMinute),
    ("I8", "nothing is sent without a hold", Looked::Elsewhere),
    ("I9", "whatever a provider accepted is accounted for", Looked::Elsewhere),
    ("I10", "a video task is created once", Looked::Elsewhere),
    ("I11", "each call has one usage row with the charge of the ledger", Looked::EveryMinute),
    ("I12", "a refund is within its charge, once", Looked::EveryMinute),
    ("I13", "an idempotency key has one call", Looked::InFull),
    ("I14", "a task and its entry end together, and only a finished one costs", Looked::InFull),
    ("I15", "nobody reads what belongs to another", Looked::Elsewhere),
    ("I16", "trial money never pays where only paid money may", Looked::EveryMinute),
    ("I17", "write-offs stay below a ten-thousandth of what is captured, per day (strict)", Looked::Strictly),
    ("I18", "each charge can be computed again from its counters and its frozen price", Looked::EveryMinute),
    ("I19", "no entry was changed, removed, added or cut off, and no usage row was changed", Looked::EveryMinute),
    (
        "I20",
        "the time of an account's entries never goes back, but where a clock that was far ahead was put right",
        Looked::EveryMinute,
    ),
    ("I21", "sums by quarter of an hour are those of the usage log, and so of the ledger", Looked::InFull),
];

/// The invariants that an audit of this kind has looked at.
pub(super) fn looked_at(how: Looked) -> Vec<&'static str> {
    INVARIANTS.iter().filter(|(.., looked)| *looked <= how).map(|(number, ..)| *number).collect()
}
