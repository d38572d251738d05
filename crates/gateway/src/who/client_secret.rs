//! Who opens a realtime session: an application with its key, or whoever it gave a client secret
//! to. A secret stands for its key, so that key's limits, its revocation and the suspension of its
//! account hold for it at once. Unknown, used and expired secrets get one and the same
//! answer.

use super::Register;
use super::caller::{self, Caller};
use super::key_cache::{KeyLookup, hash};
use crate::refusal::Refusal;
use http::request::Parts;
use std::sync::Arc;
use tollgate_wire::error::Code;

/// How a client secret begins: the agents' SDK takes nothing else in a browser.
pub const PREFIX: &str = "ek_";

/// Whoever opens a session.
pub struct RealtimeCaller {
    pub caller: Arc<Caller>,
    /// What the session is bound to, where a client secret opens it.
    pub bound: Option<BoundSession>,
}

/// What was said when the secret was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundSession {
    /// Empty where it may be any of the key's.
    pub model: String,
    /// A JSON object: what the client's first `session.update` would say, or what is fixed of a
    /// setup of Gemini Live.
    pub session: String,
    /// The hash of the secret, where its uses are counted.
    pub counted: Option<[u8; 32]>,
}

impl BoundSession {
    /// Takes one use, where they are counted.
    pub async fn take_use(&self, register: &Register<'_>) -> Result<(), Refusal> {
        let Some(hash) = self.counted else { return Ok(()) };
        match register.store.use_client_secret(hash).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(no_such_secret()),
            Err(_) => Err(caller::cannot_tell()),
        }
    }
}

/// A client secret as Gemini's clients show it is the name of a resource.
pub const TOKENS: &str = "auth_tokens/";

/// The client secret in what a client presents, if it is one.
pub(super) fn secret_in(presented: &str) -> Option<&str> {
    // In a query the slash may be written otherwise.
    let bare = presented.strip_prefix(TOKENS).or_else(|| presented.strip_prefix("auth_tokens%2F"));
    Some(bare.unwrap_or(presented)).filter(|secret| secret.starts_with(PREFIX))
}

/// Finds whoever opens a session or says why not.
pub async fn open_realtime(register: &Register<'_>, parts: &Parts) -> Result<RealtimeCaller, Refusal> {
    let presented = caller::presented(parts)?;
    let Some(presented) = secret_in(presented) else {
        return Ok(RealtimeCaller { caller: caller::authenticate(register, parts).await?, bound: None });
    };
    let hash = hash(presented);
    let found = register.store.client_secret(hash).await.map_err(|_| caller::cannot_tell())?;
    let secret = found.filter(|found| found.uses_left != Some(0)).ok_or_else(no_such_secret)?;
    let caller = match register.keys.find_hash(register.store, secret.key_hash, register.world).await {
        KeyLookup::Known(caller) => caller,
        KeyLookup::Unknown => return Err(no_such_secret()),
        KeyLookup::CannotTell => return Err(caller::cannot_tell()),
    };
    caller::admitted(register, parts, &caller)?;
    let bound = BoundSession { model: secret.model, session: secret.session, counted: secret.uses_left.map(|_| hash) };
    Ok(RealtimeCaller { caller, bound: Some(bound) })
}

fn no_such_secret() -> Refusal {
    Refusal::new(Code::InvalidApiKey, "The client secret is unknown, used up or expired: ask for a new one.")
}
