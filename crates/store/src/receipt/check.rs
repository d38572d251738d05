//! Verifying a receipt with nothing but its own text and a copy of the published keys: is it signed
//! by a key of that time, and do its own lines come to the charge? Any change of what it says, be
//! it one digit, fails.

use serde_json::Value;
use sha2::{Digest, Sha256};
use tollgate_catalog::{Line, Price, total};

use super::form::{FORMAT, canonical, has_broken_numbers};
use super::make::hex;
use super::{PublicKeys, Receipt, Signed};

/// A receipt that holds.
#[derive(Clone, Debug)]
pub struct Verified {
    pub receipt: Receipt,
}

/// Why a receipt proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("this is not a receipt: {0}")]
    NotAReceipt(String),
    #[error("the receipt is of another format ({0}); this program knows {FORMAT}")]
    OtherFormat(String),
    #[error("the receipt was signed with the key {0}, which is not among the keys given; fetch them again")]
    UnknownKey(String),
    #[error("the key {0} among the keys given is not the key that its name says")]
    FalseKey(String),
    #[error("the key {kid} did not sign at the time the receipt names ({issued_at_ms})")]
    NotItsTime { kid: String, issued_at_ms: i64 },
    #[error("the signature does not belong to what the receipt says: it was changed, or never signed by this key")]
    BadSignature,
    #[error("the lines come to {lines} nano-USD but the receipt says {says}")]
    WrongTotal { lines: String, says: i64 },
    #[error("the amounts do not fit together: {0}")]
    WrongSum(&'static str),
    #[error("this is not a price: {0}")]
    NotAPrice(String),
    #[error("the price is not the one of the receipt: {0} differs")]
    OtherPrice(&'static str),
}

pub fn verify(text: &str, keys: &PublicKeys) -> Result<Verified, Invalid> {
    let not_a_receipt = |why: serde_json::Error| Invalid::NotAReceipt(why.to_string());
    // Read twice: as the form we know (which refuses a name that stands twice), and as whatever it
    // says, because the signature is over all of it.
    let signed: Signed = serde_json::from_str(text).map_err(not_a_receipt)?;
    let value: Value = serde_json::from_str(text).map_err(not_a_receipt)?;
    let Signed { receipt, signature } = signed;
    let value = &value["receipt"];
    if has_broken_numbers(value) {
        return Err(Invalid::NotAReceipt("it contains a number that is not a whole one".to_owned()));
    }
    if receipt.format != FORMAT {
        return Err(Invalid::OtherFormat(receipt.format));
    }
    let key = keys.keys.iter().find(|key| key.kid == receipt.kid);
    let key = key.ok_or_else(|| Invalid::UnknownKey(receipt.kid.clone()))?;
    if !key.is_named_after_itself() {
        return Err(Invalid::FalseKey(receipt.kid));
    }
    if !key.has_signed(canonical(value).as_bytes(), &signature) {
        return Err(Invalid::BadSignature);
    }
    if !key.was_valid_at(receipt.issued_at_ms) {
        return Err(Invalid::NotItsTime { kid: receipt.kid, issued_at_ms: receipt.issued_at_ms });
    }
    adds_up(&receipt)?;
    Ok(Verified { receipt })
}

/// Whether a receipt that holds was computed with this price, as
/// `GET /api/pricing/versions/{price_id}` serves it.
pub fn verify_price(receipt: &Receipt, text: &str) -> Result<(), Invalid> {
    let not_a_price = |why: serde_json::Error| Invalid::NotAPrice(why.to_string());
    let written: Value = serde_json::from_str(text).map_err(not_a_price)?;
    let price: Price = serde_json::from_value(written.clone()).map_err(not_a_price)?;
    let Some(said) = &receipt.calculation else {
        return Err(Invalid::OtherPrice("the receipt has no price, and this"));
    };
    let hash = hex(&Sha256::digest(canonical(&written)));
    let line_differs = |line: &Line| price.faces.get(line.face) != Some(line.micro_usd);
    let differences = [
        ("price_sha256", said.price_sha256 != hash),
        ("price_id", said.price_id != hex(&price.id())),
        ("model", price.model != receipt.model),
        ("pricing_version", price.version != said.pricing_version),
        ("tier", price.tier != receipt.tier),
        ("group", price.group != said.group),
        ("paid_prices", price.paid != said.paid_prices),
        ("billing_unit", price.unit != said.billing_unit),
        ("multiplier", price.multiplier != said.multiplier),
        ("micro_usd of a line", said.lines.iter().any(line_differs)),
    ];
    match differences.into_iter().find(|(_, differs)| *differs) {
        Some((what, _)) => Err(Invalid::OtherPrice(what)),
        None => Ok(()),
    }
}

/// The id of a price as a receipt writes it: thirty-two digits.
pub fn price_id(text: &str) -> Option<[u8; 16]> {
    let mut id = [0u8; 16];
    if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (n, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(id)
}

/// A price in the form that is served, whose hash a receipt names.
pub fn price_text(written: &Value) -> String {
    canonical(written)
}

/// The charge again, from the lines alone, and what became of it.
fn adds_up(receipt: &Receipt) -> Result<(), Invalid> {
    let says = receipt.total_nano_usd;
    let lines = match &receipt.calculation {
        Some(calculation) => total(&calculation.lines, calculation.multiplier)
            .map_err(|why| Invalid::WrongTotal { lines: why.to_string(), says })?
            .nano(),
        None => 0,
    };
    if lines != says {
        return Err(Invalid::WrongTotal { lines: lines.to_string(), says });
    }
    let amounts =
        [receipt.hold_nano_usd, receipt.charge_nano_usd, receipt.write_off_nano_usd, receipt.refunded_nano_usd];
    if amounts.iter().any(|amount| *amount < 0) {
        return Err(Invalid::WrongSum("an amount is below zero"));
    }
    if receipt.charge_nano_usd.checked_add(receipt.write_off_nano_usd) != Some(says) {
        return Err(Invalid::WrongSum("what was charged and what was written off are not the total"));
    }
    if receipt.refunded_nano_usd > receipt.charge_nano_usd {
        return Err(Invalid::WrongSum("more was refunded than was charged"));
    }
    Ok(())
}
