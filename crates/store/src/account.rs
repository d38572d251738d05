//! Accounts, keys and credit: the records and the requests that make or change them.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tollgate_catalog::Money;

use crate::ids::{AccountId, CallId, KeyId};

/// One customer: two pots of money, each with a part that is free and a part that is held for running calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub id: AccountId,
    pub name: String,
    pub created_at: i64,
    pub changed_at: i64,
    pub trial_available: Money,
    pub paid_available: Money,
    pub trial_held: Money,
    pub paid_held: Money,
    /// A paid top-up has happened at least once.
    pub topped_up: bool,
    pub groups: Vec<String>,
    pub closed_at: Option<i64>,
}

/// Wish for a new account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewAccount {
    /// Given by callers that repeat the request; the second one answers with the account that exists.
    #[serde(default)]
    pub id: Option<AccountId>,
    pub name: String,
    #[serde(default)]
    pub groups: Vec<String>,
}

/// An API key. The secret itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub id: KeyId,
    pub account: AccountId,
    #[serde(skip)]
    pub hash: [u8; 32],
    /// The first seven characters of the secret, for people to recognise it.
    pub prefix: String,
    pub name: String,
    pub created_at: i64,
    pub changed_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Models the key may use; `None` = all.
    pub models: Option<Vec<String>>,
    /// Networks the key may be used from; `None` = all.
    pub cidrs: Option<Vec<String>>,
    /// The most the key may ever spend; `None` = no limit of its own.
    pub cap: Option<Money>,
    pub spent: Money,
    pub held: Money,
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
    pub cap: Option<Money>,
}

/// What authentication needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyAndAccount {
    pub key: Key,
    pub account: Account,
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
    /// Gives back part or all of what a call was charged, once per call; goes to the pots it came from, paid first.
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
    pub reason: String,
    pub actor: String,
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
