//! Notices of a low balance: an account says below what, and its owners and its webhook hear of it
//! once, and again only after it was above.

use serde::{Deserialize, Serialize};

use crate::ids::AccountId;

/// Notices of one account in a UTC day, however often its balance crosses.
pub const NOTICES_A_DAY: i64 = 3;
/// Owners that one notice goes to.
pub(crate) const MOST_OWNERS: i64 = 10;

/// What an account wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceNotice {
    pub account_id: AccountId,
    /// Below what; nothing: it wants to hear nothing.
    pub threshold_nano_usd: Option<i64>,
    pub mail: bool,
    pub webhook: bool,
    /// Since when the balance is below.
    pub low_since_ms: Option<i64>,
    pub last_sent_at_ms: Option<i64>,
    /// In this UTC day.
    pub sent_today: i64,
}

/// How it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeWish {
    pub threshold_nano_usd: Option<i64>,
    pub mail: bool,
    pub webhook: bool,
}

/// One whose balance is on the other side than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNotice {
    pub account: AccountId,
    pub threshold: i64,
    pub balance: i64,
    pub mail: bool,
    pub webhook: bool,
    /// It has fallen; else it has risen again.
    pub low: bool,
    /// Of this day there was room for another one.
    pub may_send: bool,
    pub(crate) day: i64,
    pub(crate) sent: i64,
}

/// Who is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeOwner {
    pub email: String,
    pub locale: String,
}

/// What goes out with a notice: sealed letters, and news for the webhook.
#[derive(Clone, Debug, Default)]
pub struct NoticeMail {
    pub letters: Vec<Vec<u8>>,
    pub webhook: Option<String>,
}

/// Why owners hear of their account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterCause {
    Closed,
    Reopened,
}

impl LetterCause {
    pub(crate) fn word(self) -> &'static str {
        match self {
            LetterCause::Closed => "closed",
            LetterCause::Reopened => "reopened",
        }
    }

    pub(crate) fn of(word: &str) -> LetterCause {
        if word == "reopened" { LetterCause::Reopened } else { LetterCause::Closed }
    }
}

/// What owners are to be told of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountLetter {
    pub account: AccountId,
    pub cause: LetterCause,
    pub at: i64,
    /// What the account is called.
    pub name: String,
}
