//! Who opens a realtime session: an application with its key, or whoever it gave a client secret
//! to. A secret stands for its key, so that key's limits, its revocation and the suspension of its
//! account hold for it at once. Unknown and expired secrets get one and the same answer.

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
    pub model: String,
    /// A JSON object: what the client's first `session.update` would say.
    pub session: String,
}

/// Finds whoever opens a session or says why not.
pub async fn open_realtime(register: &Register<'_>, parts: &Parts) -> Result<RealtimeCaller, Refusal> {
    let presented = caller::presented(parts)?;
    if !presented.starts_with(PREFIX) {
        return Ok(RealtimeCaller { caller: caller::authenticate(register, parts).await?, bound: None });
    }
    let found = register.store.client_secret(hash(presented)).await.map_err(|_| caller::cannot_tell())?;
    let secret = found.ok_or_else(no_such_secret)?;
    let caller = match register.keys.find_hash(register.store, secret.key_hash, register.world).await {
        KeyLookup::Known(caller) => caller,
        KeyLookup::Unknown => return Err(no_such_secret()),
        KeyLookup::CannotTell => return Err(caller::cannot_tell()),
    };
    caller::admitted(register, parts, &caller)?;
    let bound = BoundSession { model: secret.model, session: secret.session };
    Ok(RealtimeCaller { caller, bound: Some(bound) })
}

fn no_such_secret() -> Refusal {
    Refusal::new(Code::InvalidApiKey, "The client secret is unknown or expired: ask for a new one.")
}
