//! Client secrets: what an application hands to a browser instead of its key. One stands for its
//! key, for realtime sessions of one model and until it expires; stored is its hash. What the
//! session is to be is text that the store does not read.

use crate::ids::{AccountId, KeyId};

/// A secret to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClientSecret {
    /// Of the whole secret, which its maker shows once.
    pub hash: [u8; 32],
    pub account: AccountId,
    pub key: KeyId,
    pub model: String,
    /// A JSON object.
    pub session: String,
    pub expires_at: i64,
    /// How many sessions it opens; without a number, as many as begin before it expires.
    pub uses: Option<u32>,
}

/// A secret that has not expired. Whether its key still works is asked of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSecret {
    pub key_hash: [u8; 32],
    pub model: String,
    pub session: String,
    pub expires_at: i64,
    pub uses_left: Option<u32>,
}

/// The most secrets at a time that have not expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSecretLimits {
    pub account: u32,
    pub key: u32,
}

/// Whose limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSecretsFull {
    Account,
    Key,
}

impl ClientSecretsFull {
    /// As both engines number them; 0 is none.
    pub(crate) fn numbered(number: u64) -> Option<ClientSecretsFull> {
        match number {
            1 => Some(ClientSecretsFull::Account),
            2 => Some(ClientSecretsFull::Key),
            _ => None,
        }
    }
}
