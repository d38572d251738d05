//! Links of our own to finished files: `/v1/videos/{id}/content?Expires=…&Signature=…`. Whoever has
//! one may fetch that file until it ends, without a key, as with the links of providers.

use crate::refusal::Refusal;
use crate::secrets::Secrets;
use tollgate_store::TaskId;
use tollgate_wire::error::Code;

const PURPOSE: &str = "video link";

/// A link that ends at this unix second.
pub fn sign(secrets: &Secrets, base: &str, id: TaskId, expires_at: i64) -> String {
    let signature = secrets.sign(PURPOSE, &signed(id, expires_at));
    format!("{base}/v1/videos/{id}/content?Expires={expires_at}&Signature={signature}")
}

fn signed(id: TaskId, expires_at: i64) -> String {
    format!("{id} {expires_at}")
}

/// What a query says about a signature: none, a good one, or why not.
pub fn check(secrets: &Secrets, id: TaskId, query: &str, now: i64) -> Result<bool, Refusal> {
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    };
    let Some(signature) = value("Signature") else { return Ok(false) };
    let expires_at = value("Expires").and_then(|text| text.parse::<i64>().ok());
    let good = expires_at.is_some_and(|at| secrets.has_signed(PURPOSE, &signed(id, at), signature));
    if !good {
        return Err(Refusal::about(Code::LinkInvalid, "Signature", "This link was not signed by this gateway."));
    }
    if expires_at.is_none_or(|at| at <= now) {
        let text = "This link has ended; read the task again for a fresh one.";
        return Err(Refusal::about(Code::LinkInvalid, "Expires", text));
    }
    Ok(true)
}
