//! Passkeys of people: the public half of a WebAuthn credential, and what is known of its use.

use serde::Serialize;

use crate::ids::{PasskeyId, PersonId};

/// A passkey as its person sees it. What proves it stays in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PasskeyRecord {
    #[serde(rename = "passkey_id")]
    pub id: PasskeyId,
    pub name: String,
    #[serde(skip)]
    pub person: PersonId,
    #[serde(skip)]
    pub credential_id: Vec<u8>,
    /// As the authenticator gave it (COSE).
    #[serde(skip)]
    pub public_key: Vec<u8>,
    /// The domain it was made for.
    pub rp_id: String,
    /// How it was last shown; 0 where its authenticator does not count.
    #[serde(skip)]
    pub sign_count: i64,
    pub transports: Vec<String>,
    /// It may be on several devices.
    pub backup_eligible: bool,
    pub backed_up: bool,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "used_at_ms")]
    pub used_at: Option<i64>,
    /// When its counter first went back: there may be a copy of it.
    #[serde(rename = "suspected_at_ms")]
    pub suspected_at: Option<i64>,
}

/// Wish for a passkey.
#[derive(Clone, Debug)]
pub struct NewPasskey {
    pub name: String,
    pub credential_id: Vec<u8>,
    pub public_key: Vec<u8>,
    pub rp_id: String,
    pub sign_count: i64,
    pub transports: Vec<String>,
    pub backup_eligible: bool,
    pub backed_up: bool,
}

/// What became of a wish for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedPasskey {
    Added(Box<PasskeyRecord>),
    /// The ceremony has ended before.
    WayUsed,
    /// It is somebody's already.
    Known,
    /// They have as many as a person may have.
    Full,
}

/// A passkey that was shown: what it says of itself now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedPasskey {
    pub id: PasskeyId,
    pub person: PersonId,
    pub sign_count: i64,
    pub backed_up: bool,
}

/// What became of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasskeyUse {
    Done,
    /// The ceremony has ended before.
    WayUsed,
    /// Its counter is not above the last one, or it was removed in between.
    CounterBack,
    /// The session is gone.
    NoSession,
}
