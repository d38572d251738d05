//! Operators and what they did: the keys of the operator's API, and one row for each thing that was
//! done to them, to accounts and to keys. Money has its own rows in the ledger, pauses theirs in
//! `social_change`.

pub(crate) mod pause;
pub(crate) mod workflow;

use serde::{Deserialize, Serialize};

use crate::account::hash_secret;
use crate::error::StoreError;
use crate::ids::AdminKeyId;

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

/// Who does something, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    pub actor: String,
    pub reason: String,
}

/// Something an operator did. Rows are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorEvent {
    pub seq: i64,
    #[serde(rename = "at_ms")]
    pub at: i64,
    pub actor: String,
    /// `admin_key.create`, `admin_key.revoke`, `account.update`, `account.suspend`,
    /// `account.reopen`, `key.update`, `workflow.lock` or `workflow.unlock`.
    pub action: String,
    /// What it was done to.
    pub subject: String,
    pub reason: String,
    /// What was changed into what.
    pub detail: String,
}

pub(crate) const CREATED: &str = "admin_key.create";
pub(crate) const REVOKED: &str = "admin_key.revoke";

impl AdminKey {
    pub fn works_at(&self, now: i64) -> bool {
        self.revoked_at.is_none_or(|at| at > now) && self.expires_at.is_none_or(|at| at > now)
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
