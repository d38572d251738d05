//! The invariants by number, and what becomes of each in an audit. Those about what a provider received or what a stranger can
//! read do not show in a ledger; the tests of the gateway hold them.

/// Number, what it says, and whether an audit checks it.
pub const INVARIANTS: [(&str, &str, bool); 20] = [
    ("I1", "balances, key spending and trial credit are what the entries say", true),
    ("I2", "every debit has its credit: all books together sum to zero", true),
    ("I3", "no pot was ever below zero", true),
    ("I4", "a call has one hold", true),
    ("I5", "a hold ends once", true),
    ("I6", "what is captured was held", true),
    ("I7", "no hold outlives its time", true),
    ("I8", "nothing is sent without a hold", false),
    ("I9", "whatever a provider accepted is accounted for", false),
    ("I10", "a video task is created once", false),
    ("I11", "each call has one usage row with the charge of the ledger", true),
    ("I12", "a refund is within its charge, once", true),
    ("I13", "an idempotency key has one call", true),
    ("I14", "a task and its entry end together, and only a finished one costs", true),
    ("I15", "nobody reads what belongs to another", false),
    ("I16", "trial money never pays where only paid money may", true),
    ("I17", "write-offs stay below a ten-thousandth of what is captured, per day (strict)", true),
    ("I18", "each charge can be computed again from its counters and its frozen price", true),
    ("I19", "no entry was changed, removed, added or cut off", true),
    ("I20", "time in the ledger never goes back", true),
];
