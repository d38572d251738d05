//! Accounts, keys and credit: the records and the requests that make or change them.

pub(crate) mod change;
pub(crate) mod limits;
pub(crate) mod lots;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tollgate_catalog::{Group, Money};

use crate::account::limits::{Limits, Used};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId, PersonId};
use crate::operator::{Attribution, AuditRow};

/// One customer: two pots of money, each with a part that is free and a part that is held for
/// running calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    #[serde(rename = "account_id")]
    pub id: AccountId,
    pub name: String,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "changed_at_ms")]
    pub changed_at: i64,
    #[serde(rename = "trial_available_nano_usd")]
    pub trial_available: Money,
    #[serde(rename = "paid_available_nano_usd")]
    pub paid_available: Money,
    #[serde(rename = "trial_held_nano_usd")]
    pub trial_held: Money,
    #[serde(rename = "paid_held_nano_usd")]
    pub paid_held: Money,
    /// A paid top-up has happened at least once.
    pub topped_up: bool,
    /// The price groups it is in; never none.
    pub groups: Vec<String>,
    /// Since when nothing new begins in it. The column is called `closed_at`.
    #[serde(rename = "suspended_at_ms")]
    pub suspended_at: Option<i64>,
    /// The most all keys together may spend in a UTC day and month.
    pub limits: Limits,
    /// What counts against the limits now.
    pub used: Used,
    /// Where it wants to hear of all its tasks.
    #[serde(default)]
    pub webhook_url: Option<String>,
    /// Members see what all keys of the account use, and not only those they made.
    #[serde(default, rename = "members_see_all_usage")]
    pub members_see_all: bool,
    /// Since when it is closed: nobody is in it, and its keys are revoked. The column is called
    /// `ended_at`.
    #[serde(default, rename = "closed_at_ms")]
    pub closed_at: Option<i64>,
    /// Since when it cannot be reopened, and nothing is known of its people.
    #[serde(default, rename = "erased_at_ms")]
    pub erased_at: Option<i64>,
}

/// Wish for a new account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewAccount {
    /// Given by callers that repeat the request; the second one answers with the account that
    /// exists.
    #[serde(default)]
    pub id: Option<AccountId>,
    pub name: String,
    /// None: the default group.
    #[serde(default)]
    pub groups: Vec<String>,
    /// By day and month.
    #[serde(default)]
    pub limits: Limits,
}

/// The groups of an account for which these are written down: who was put into none is in the
/// default one.
pub(crate) fn in_groups(written: Vec<String>) -> Vec<String> {
    if written.is_empty() { vec![Group::DEFAULT.to_owned()] } else { written }
}

/// Keys that a cache of keys must forget, and when that was asked, by the clock their changes are
/// written down with.
#[derive(Clone, Debug)]
pub struct ChangedKeys {
    pub keys: Vec<KeyAndAccount>,
    pub read_at: i64,
}

/// An API key. The secret itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    #[serde(rename = "key_id")]
    pub id: KeyId,
    #[serde(rename = "account_id")]
    pub account: AccountId,
    #[serde(skip)]
    pub hash: [u8; 32],
    /// The first seven characters of the secret, for people to recognise it.
    #[serde(rename = "key_prefix")]
    pub prefix: String,
    pub name: String,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "changed_at_ms")]
    pub changed_at: i64,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: Option<i64>,
    #[serde(rename = "revoked_at_ms")]
    pub revoked_at: Option<i64>,
    /// Models the key may use; `None` = all.
    pub models: Option<Vec<String>>,
    /// Networks the key may be used from; `None` = all.
    pub cidrs: Option<Vec<String>>,
    /// The most the key may spend.
    pub limits: Limits,
    /// Ever, refunds taken off; what counts against the total together with what is held.
    #[serde(rename = "spent_nano_usd")]
    pub spent: Money,
    #[serde(rename = "held_nano_usd")]
    pub held: Money,
    /// What counts against the limits by day and month now.
    pub used: Used,
    /// What it is for.
    #[serde(default)]
    pub scope: KeyScope,
    /// Until when the secret before this one works, where it was changed.
    #[serde(default, rename = "former_secret_until_ms")]
    pub former_until: Option<i64>,
    /// Who made it, where that was a person who was signed in.
    #[serde(default, rename = "made_by")]
    pub person: Option<PersonId>,
    /// Where it comes from.
    #[serde(default)]
    pub origin: KeyOrigin,
}

impl Key {
    /// What a new one may do, in the words of the log.
    pub(crate) fn summary(&self) -> String {
        let mut lines = vec![format!("name: {}", self.name), format!("prefix: {}", self.prefix)];
        lines.extend(self.scope.word().map(|scope| format!("scope: {scope}")));
        lines.extend(self.origin.word().map(|origin| format!("origin: {origin}")));
        lines.extend(self.expires_at.map(|at| format!("expires_at_ms: {at}")));
        lines.extend(self.models.as_ref().map(|list| format!("models: {}", list.join(","))));
        lines.extend(self.cidrs.as_ref().map(|list| format!("networks: {}", list.join(","))));
        let Limits { total, day, month } = self.limits;
        let limits = [("limit_total", total), ("limit_day", day), ("limit_month", month)];
        lines.extend(limits.into_iter().filter_map(|(name, limit)| Some(format!("{name}: {}", limit?))));
        lines.join("; ")
    }
}

/// What the log says of another address for news.
pub(crate) fn webhook_detail(before: Option<&str>, after: Option<&str>) -> String {
    // An address may carry a password of its receiver: where it leads is enough.
    let shown = |url: Option<&str>| match url.and_then(|url| url.split_once("://")) {
        None => "none".to_owned(),
        Some((scheme, rest)) => {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            format!("{scheme}://{}/…", host.rsplit('@').next().unwrap_or_default())
        }
    };
    format!("webhook: {} -> {}", shown(before), shown(after))
}

/// What a key is for. One that manages its account buys nothing, and one that buys changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Calls, which are charged.
    #[default]
    Call,
    /// The account: its keys, figures and settings.
    Manage,
}

impl KeyScope {
    /// As it is written down; a key from before there were scopes has none.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            KeyScope::Call => None,
            KeyScope::Manage => Some("manage"),
        }
    }

    /// A word of a later version opens nothing that costs money.
    pub(crate) fn of(word: Option<&str>) -> KeyScope {
        if word.is_some() { KeyScope::Manage } else { KeyScope::Call }
    }
}

/// Where a key comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyOrigin {
    /// Somebody made it and has it somewhere.
    #[default]
    Made,
    /// The playground of the person who is named: it lives an hour, and ends with their session.
    Console,
}

impl KeyOrigin {
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            KeyOrigin::Made => None,
            KeyOrigin::Console => Some("console"),
        }
    }

    pub(crate) fn of(word: Option<&str>) -> KeyOrigin {
        if word.is_some() { KeyOrigin::Console } else { KeyOrigin::Made }
    }
}

/// Wish for a new key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewKey {
    pub account: AccountId,
    pub name: String,
    #[serde(default)]
    pub expires_at: Option<i64>,
    #[serde(default)]
    pub models: Option<Vec<String>>,
    #[serde(default)]
    pub cidrs: Option<Vec<String>>,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub scope: KeyScope,
}

/// What authentication needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyAndAccount {
    pub key: Key,
    pub account: Account,
}

impl KeyAndAccount {
    /// The same for who shows a secret that works until then.
    pub(crate) fn by_former(mut self, hash: [u8; 32], until: i64) -> KeyAndAccount {
        self.key.hash = hash;
        self.key.expires_at = Some(self.key.expires_at.map_or(until, |at| at.min(until)));
        self
    }
}

/// Which pot. Trial credit is spent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pot {
    Trial,
    Paid,
}

/// Why money enters (or, for a negative adjustment, leaves) an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreditKind {
    TopUp,
    /// May be negative; never takes the balance below zero.
    Adjust,
    /// Gives back part or all of what a call was charged, once per call; goes to the pots it came
    /// from, paid first.
    Refund {
        call: CallId,
    },
}

/// A change of balance that is not a call. Repeating it with the same `id` changes nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Credit {
    /// The caller's own id of this credit (a payment reference); what makes it happen once.
    pub id: String,
    pub account: AccountId,
    pub kind: CreditKind,
    pub pot: Pot,
    pub amount: Money,
    /// When what is left of trial credit is taken away again; `None` = never.
    #[serde(default)]
    pub expires_at: Option<i64>,
    pub reason: String,
    pub actor: String,
}

impl Credit {
    /// What can be said about a credit without looking at the account.
    pub(crate) fn check(&self, now: i64) -> Result<(), StoreError> {
        crate::ledger::bounds::amount(self.amount)?;
        let amount = self.amount.nano();
        let why = if amount == 0 || (amount < 0 && self.kind != CreditKind::Adjust) {
            "the amount must be above zero"
        } else if self.expires_at.is_some() && (amount < 0 || self.pot != Pot::Trial || self.is_refund()) {
            "only trial credit that is given can expire"
        } else if self.expires_at.is_some_and(|at| at <= now) {
            "the time of expiry has passed"
        } else {
            return Ok(());
        };
        Err(StoreError::Conflict(why.into()))
    }

    /// The row of the log about it.
    pub(crate) fn audit_row(&self, at: i64, request: Option<String>) -> Option<AuditRow> {
        let done = Attribution { request, ..Attribution::by(self.actor.clone(), self.reason.clone()) };
        let (action, pot) = match (self.kind, self.pot) {
            (CreditKind::TopUp, Pot::Trial) => ("credit.top_up", "trial"),
            (CreditKind::TopUp, Pot::Paid) => ("credit.top_up", "paid"),
            (CreditKind::Adjust, Pot::Trial) => ("credit.adjust", "trial"),
            (CreditKind::Adjust, Pot::Paid) => ("credit.adjust", "paid"),
            (CreditKind::Refund { .. }, _) => ("credit.refund", "refund"),
        };
        let row = AuditRow::new(at, &done, action, &self.account.to_string(), Some(self.account))?;
        Some(row.detail(&format!("{pot}: {} USD; reference: {}", self.amount, self.id)))
    }

    fn is_refund(&self) -> bool {
        matches!(self.kind, CreditKind::Refund { .. })
    }
}

/// Trial credit that will expire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expiring {
    /// The id of the credit.
    pub credit: String,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: i64,
    #[serde(rename = "available_nano_usd")]
    pub available: Money,
    /// Held for running calls. What they do not use of it expires with the rest, or when they end.
    #[serde(rename = "held_nano_usd")]
    pub held: Money,
}

/// A change of balance that was not a call, as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceEvent {
    pub seq: i64,
    #[serde(rename = "at_ms")]
    pub at: i64,
    /// `top_up` (money that came in), `trial_credit` (that nobody paid), `adjust`, `refund` or
    /// `lapse` (trial credit that expired).
    pub kind: String,
    #[serde(rename = "trial_nano_usd")]
    pub trial: Money,
    #[serde(rename = "paid_nano_usd")]
    pub paid: Money,
    /// The id of the credit; of a lapse: the id of the credit that expired.
    pub reference: String,
    /// The call that was refunded.
    #[serde(rename = "call_id")]
    pub call: Option<CallId>,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: Option<i64>,
    pub actor: String,
    pub reason: String,
}

/// Newest first; `before` is the last event of the page before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EventPage {
    pub before: Option<i64>,
    pub limit: u32,
}

impl Default for EventPage {
    fn default() -> Self {
        Self { before: None, limit: 50 }
    }
}

/// What a call was charged, for who wants to refund it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charged {
    pub account: AccountId,
    pub captured: Money,
}

/// The answer to a [`Credit`].
#[derive(Clone, Debug, Serialize)]
pub struct Credited {
    /// `false`: this id had been applied before.
    pub applied: bool,
    pub account: Account,
}

/// The stored form of a secret: SHA-256 is enough because secrets are long and random.
pub fn hash_secret(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
