//! From the books to a signed receipt. A receipt is made when it is asked for, from the usage row,
//! its frozen price and the ledger's verdict, so that one asked for after a refund says so. What
//! does not add up is not signed.

use sha2::{Digest, Sha256};
use tollgate_catalog::{Line, Price, total};

use super::form::{FORMAT, canonical};
use super::keys::SecretKey;
use super::{Receipt, ReceiptCalculation, Signed};
use crate::call::UsageRow;
use crate::error::StoreError;

/// Signs what the row says. `now_ms` is the time of asking.
pub(crate) fn sign(row: &UsageRow, key_prefix: String, secret: &SecretKey, now_ms: i64) -> Result<Signed, StoreError> {
    let receipt = receipt(row, key_prefix, secret, now_ms)?;
    let value = serde_json::to_value(&receipt).map_err(StoreError::broken)?;
    let signature = secret.sign(canonical(&value).as_bytes());
    Ok(Signed { receipt, signature })
}

fn receipt(row: &UsageRow, key_prefix: String, secret: &SecretKey, now_ms: i64) -> Result<Receipt, StoreError> {
    let charge = row.charge.checked_add(row.write_off).ok_or_else(|| not_explained(row))?;
    let calculation = match &row.price {
        Some(price) => Some(calculation(row, price)?),
        None if charge.is_zero() => None,
        None => return Err(not_explained(row)),
    };
    Ok(Receipt {
        format: FORMAT.to_owned(),
        kid: secret.kid(),
        // The key may have been made by a replica whose clock is a little ahead of ours.
        issued_at_ms: now_ms.max(secret.from_ms),
        call_id: row.call,
        account_id: row.account,
        key_id: row.key,
        key_prefix,
        endpoint: row.endpoint.clone(),
        model: row.model.clone(),
        started_at_ms: row.at,
        ended_at_ms: row.ended_at,
        ending: row.ending,
        reason: row.reason.clone(),
        status: row.status,
        estimated: row.estimated,
        tier: row.tier.clone(),
        raw_usage_sha256: row.raw_usage.as_ref().map(|raw| hex(&Sha256::digest(raw))),
        calculation,
        hold_nano_usd: row.hold.nano(),
        total_nano_usd: charge.nano(),
        charge_nano_usd: row.charge.nano(),
        write_off_nano_usd: row.write_off.nano(),
        refunded_nano_usd: row.refunded.nano(),
    })
}

fn calculation(row: &UsageRow, written: &serde_json::Value) -> Result<ReceiptCalculation, StoreError> {
    let price: Price = serde_json::from_value(written.clone()).map_err(StoreError::broken)?;
    let lines = lines(row, &price)?;
    Ok(ReceiptCalculation {
        price_id: hex(&price.id()),
        price_sha256: hex(&Sha256::digest(canonical(written))),
        pricing_version: price.version,
        group: price.group,
        paid_prices: price.paid,
        billing_unit: price.unit,
        multiplier: price.multiplier,
        lines,
    })
}

/// The lines that come to the charge; none for a call that produced something and is free all the
/// same.
fn lines(row: &UsageRow, price: &Price) -> Result<Vec<Line>, StoreError> {
    let charge = row.charge.checked_add(row.write_off);
    let lines = row.counters.quantities(price).and_then(|used| price.lines(&used)).unwrap_or_default();
    if total(&lines, price.multiplier).ok() == charge {
        return Ok(lines);
    }
    if charge.is_some_and(|charge| charge.is_zero()) {
        return Ok(Vec::new());
    }
    Err(not_explained(row))
}

fn not_explained(row: &UsageRow) -> StoreError {
    StoreError::broken(format!("the charge of {} is not what its lines come to", row.call))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
