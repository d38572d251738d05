//! Operators and what they did: the keys of the operator's API, and one row for each thing that was
//! done to them, to accounts, keys, money, pauses and workflows, whoever did it.

pub(crate) mod pause;
pub(crate) mod workflow;

use serde::{Deserialize, Serialize};

use crate::account::hash_secret;
use crate::error::StoreError;
use crate::ids::{AccountId, AdminKeyId, PersonId};

/// A key of the operator's API. It belongs to no account and pays for nothing; its name is what
/// stands in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminKey {
    #[serde(rename = "admin_key_id")]
    pub id: AdminKeyId,
    #[serde(skip)]
    pub hash: [u8; 32],
    /// The first seven characters of the secret, for people to recognise it.
    #[serde(rename = "key_prefix")]
    pub prefix: String,
    pub name: String,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: Option<i64>,
    #[serde(rename = "revoked_at_ms")]
    pub revoked_at: Option<i64>,
}

/// Wish for a new admin key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAdminKey {
    pub name: String,
    #[serde(default)]
    pub expires_at: Option<i64>,
    pub done: Attribution,
}

/// Who does something, and why. What nobody did leaves no row in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    pub actor: String,
    pub reason: String,
    /// The request it came with, if any.
    #[serde(default)]
    pub request: Option<String>,
    /// The person, where it is one who is signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<PersonId>,
}

impl Attribution {
    pub fn by(actor: impl Into<String>, reason: impl Into<String>) -> Attribution {
        Attribution { actor: actor.into(), reason: reason.into(), request: None, person: None }
    }

    pub(crate) fn is_nobody(&self) -> bool {
        self.actor.is_empty()
    }
}

/// The most characters of what became what, and of who, why and what in the log: a row has a bound.
const MOST_DETAIL: usize = 4_000;
const MOST_WORDS: usize = 1_000;

/// A row of the log that is to be written.
#[derive(Clone, Debug)]
pub(crate) struct AuditRow {
    pub at: i64,
    pub actor: String,
    pub action: String,
    pub subject: String,
    pub reason: String,
    pub detail: String,
    pub account: Option<AccountId>,
    pub request: Option<String>,
}

impl AuditRow {
    /// Nothing, where nobody did it.
    pub fn new(at: i64, done: &Attribution, action: &str, subject: &str, account: Option<AccountId>) -> Option<Self> {
        let cut = |text: &str| text.chars().take(MOST_WORDS).collect::<String>();
        (!done.is_nobody()).then(|| AuditRow {
            at,
            actor: cut(&done.actor),
            action: action.to_owned(),
            subject: cut(subject),
            reason: cut(&done.reason),
            detail: String::new(),
            account,
            request: done.request.as_deref().map(cut),
        })
    }

    pub fn detail(mut self, detail: &str) -> AuditRow {
        self.detail = bounded_detail(detail);
        self
    }
}

/// Of a long one the beginning.
pub(crate) fn bounded_detail(detail: &str) -> String {
    if detail.chars().count() <= MOST_DETAIL {
        return detail.to_owned();
    }
    detail.chars().take(MOST_DETAIL - 1).chain(['…']).collect()
}

/// Which rows of the log are wanted, newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditPage {
    /// The last row of the page before.
    pub before: Option<i64>,
    pub limit: u32,
    pub account: Option<AccountId>,
    pub actor: Option<String>,
    pub action: Option<String>,
    pub subject: Option<String>,
    pub from_ms: Option<i64>,
    pub to_ms: Option<i64>,
}

/// Something that was done. Rows are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEvent {
    pub seq: i64,
    #[serde(rename = "at_ms")]
    pub at: i64,
    pub actor: String,
    /// Such as `account.create`, `key.update`, `credit.top_up`, `pause.model` or `workflow.lock`.
    pub action: String,
    /// What it was done to.
    pub subject: String,
    pub reason: String,
    /// What was changed into what.
    pub detail: String,
    /// Whose it is, where it is an account's.
    #[serde(default)]
    pub account_id: Option<AccountId>,
    #[serde(default)]
    pub request_id: Option<String>,
}

pub(crate) const CREATED: &str = "admin_key.create";
pub(crate) const REVOKED: &str = "admin_key.revoke";

impl AdminKey {
    /// One that was revoked never works again, whatever a clock says: two processes have two.
    pub fn works_at(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }

    /// How it signs what is done with it.
    pub fn actor(&self) -> String {
        format!("{} ({})", self.name, self.id)
    }
}

impl NewAdminKey {
    /// The key as it is stored, and the row about it. What stands in a log must say somebody.
    pub(crate) fn made(self, id: AdminKeyId, secret: &str, now: i64) -> Result<(AdminKey, Attribution), StoreError> {
        let length = self.name.trim().chars().count();
        if length == 0 || length > 100 {
            return Err(StoreError::Conflict("an admin key has a name of 1 to 100 characters".into()));
        }
        let key = AdminKey {
            id,
            hash: hash_secret(secret),
            prefix: secret.chars().take(7).collect(),
            name: self.name,
            created_at: now,
            expires_at: self.expires_at,
            revoked_at: None,
        };
        Ok((key, self.done))
    }
}
