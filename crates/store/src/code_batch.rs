//! Redemption codes: credit that is given to whoever types a code in. Codes are made in batches,
//! shown once, and stored as hashes; each is good for one credit.

use serde::{Deserialize, Serialize};
use tollgate_catalog::Money;

use crate::account::{Account, Credit, CreditKind, Pot};
use crate::error::StoreError;
use crate::ids::{AccountId, BatchId};
use crate::ledger::bounds;

/// The most codes of a batch.
pub const CODES_AT_ONCE: usize = 10_000;
const NOTE: usize = 500;

/// Codes that were made together, and how many of them were used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeBatch {
    #[serde(rename = "batch_id")]
    pub id: BatchId,
    /// What each is worth.
    #[serde(rename = "amount_nano_usd")]
    pub amount: Money,
    pub pot: Pot,
    pub count: u32,
    /// How many of them an account may use.
    pub per_account: u32,
    /// When they stop working; none: never.
    #[serde(rename = "ends_at_ms")]
    pub ends_at: Option<i64>,
    pub note: String,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "created_by")]
    pub actor: String,
    #[serde(rename = "revoked_at_ms")]
    pub revoked_at: Option<i64>,
    pub used: u32,
}

/// Wish for a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewCodeBatch {
    pub amount: Money,
    pub pot: Pot,
    pub per_account: u32,
    pub ends_at: Option<i64>,
    pub note: String,
    pub actor: String,
    pub reason: String,
    /// What the codes are known by ([`hash_secret`](crate::hash_secret) of their letters).
    #[serde(with = "hex_list")]
    pub hashes: Vec<[u8; 32]>,
}

/// Hashes as text: a list of numbers would be three times as long.
mod hex_list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(hashes: &[[u8; 32]], s: S) -> Result<S::Ok, S::Error> {
        let text = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        hashes.iter().map(text).collect::<Vec<_>>().serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<[u8; 32]>, D::Error> {
        let texts = Vec::<String>::deserialize(d)?;
        let hash = |text: &String| {
            let byte = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
            let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
            bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok())
        };
        let hashes: Option<Vec<[u8; 32]>> = texts.iter().map(hash).collect();
        hashes.ok_or_else(|| serde::de::Error::custom("not a list of hashes"))
    }
}

impl NewCodeBatch {
    pub(crate) fn made(&self, id: BatchId, now: i64) -> Result<CodeBatch, StoreError> {
        bounds::amount(self.amount)?;
        let wrong = |why: &str| Err(StoreError::Conflict(why.to_owned()));
        if self.amount.nano() <= 0 {
            return wrong("the amount must be above zero");
        }
        if !(1..=CODES_AT_ONCE).contains(&self.hashes.len()) {
            return Err(StoreError::Conflict(format!("a batch has 1 to {CODES_AT_ONCE} codes")));
        }
        if self.per_account == 0 || self.note.chars().count() > NOTE {
            return wrong("an account may use one code at least, and a note has 500 characters at most");
        }
        if self.ends_at.is_some_and(|at| at <= now) {
            return wrong("the end of the codes has passed");
        }
        Ok(CodeBatch {
            id,
            amount: self.amount,
            pot: self.pot,
            count: u32::try_from(self.hashes.len()).unwrap_or(u32::MAX),
            per_account: self.per_account,
            ends_at: self.ends_at,
            note: self.note.clone(),
            created_at: now,
            actor: self.actor.clone(),
            revoked_at: None,
            used: 0,
        })
    }
}

/// Why a code gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeRefused {
    /// There is none, it was used by somebody else, it has ended or was revoked. One answer for
    /// all: whoever guesses learns nothing.
    Unknown,
    /// This account has used it before.
    Before,
    /// The account has used as many codes of the batch as it may.
    Enough,
}

/// The answer to a code.
#[derive(Clone, Debug)]
pub struct Redeemed {
    pub amount: Money,
    pub pot: Pot,
    pub account: Account,
}

/// The credit of a code. Its id is the code's own, so the ledger takes it once whatever happens.
pub(crate) fn credit_of(batch: &CodeBatch, hash: &[u8; 32], account: AccountId, actor: String) -> Credit {
    let name: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    Credit {
        id: format!("code:{name}"),
        account,
        kind: CreditKind::TopUp,
        pot: batch.pot,
        amount: batch.amount,
        expires_at: None,
        reason: format!("code of {}", batch.id),
        actor,
    }
}

/// How the engines number what became of a code.
pub(crate) fn refused(number: u64) -> Option<CodeRefused> {
    match number {
        1 => None,
        2 => Some(CodeRefused::Before),
        3 => Some(CodeRefused::Enough),
        _ => Some(CodeRefused::Unknown),
    }
}
