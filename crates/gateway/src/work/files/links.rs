//! Links to files of ours that need no key: the link is the right to read, until it ends.

use crate::refusal::Refusal;
use crate::secrets::Secrets;
use tollgate_wire::error::Code;

/// The query of a link that opens this file until then, in unix seconds.
pub fn signed_query(secrets: &Secrets, purpose: &str, name: &str, expires_at: i64) -> String {
    let signature = secrets.sign(purpose, &format!("{name} {expires_at}"));
    format!("Expires={expires_at}&Signature={signature}")
}

/// Whether a link of ours opens this file now.
pub fn opens(secrets: &Secrets, purpose: &str, name: &str, query: &str, now: i64) -> Result<(), Refusal> {
    let value = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == wanted).map(|(_, value)| value)
    };
    let expires_at = value("Expires").and_then(|text| text.parse::<i64>().ok());
    let signature = value("Signature").unwrap_or_default();
    let signed = |at: i64| secrets.has_signed(purpose, &format!("{name} {at}"), signature);
    match expires_at.filter(|at| signed(*at)) {
        None => Err(Refusal::about(Code::LinkInvalid, "Signature", "This link was not signed by this gateway.")),
        Some(at) if at <= now => Err(link_ended()),
        Some(_) => Ok(()),
    }
}

/// The file is gone.
pub fn link_ended() -> Refusal {
    Refusal::about(Code::LinkInvalid, "Expires", "This link has ended, and its file is stored no longer.")
}
