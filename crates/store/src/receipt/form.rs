//! What a receipt says, and its one form as bytes: JSON with sorted keys and without spaces. It
//! holds strings, whole numbers, booleans and nothing else, so that every language writes the same
//! bytes; the signature is over these.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_catalog::{BillingUnit, Fraction, Line};

use crate::call::Ending;
use crate::ids::{AccountId, CallId, KeyId};

/// Changes when a reader of the old form would misread the new one.
pub(super) const FORMAT: &str = "tollgate-receipt-2";

/// Everything that is needed to compute the charge of one call again, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub format: String,
    /// Which key has signed.
    pub kid: String,
    pub issued_at_ms: i64,
    pub call_id: CallId,
    pub account_id: AccountId,
    pub key_id: KeyId,
    /// The first characters of the key, by which its owner knows it.
    pub key_prefix: String,
    pub endpoint: String,
    pub model: String,
    pub started_at_ms: i64,
    pub ended_at_ms: i64,
    pub ending: Ending,
    pub reason: String,
    pub status: u16,
    /// The counts are the gateway's own, not the provider's.
    pub estimated: bool,
    /// `null`: the base prices.
    pub tier: Option<String>,
    /// Of the provider's report as `/v1/usage/{call_id}` shows it.
    pub raw_usage_sha256: Option<String>,
    /// `null` for a call that never had a price.
    pub calculation: Option<ReceiptCalculation>,
    pub hold_nano_usd: i64,
    /// What the lines come to: charged and written off together.
    pub total_nano_usd: i64,
    pub charge_nano_usd: i64,
    /// What the account could not pay, at the operator's expense.
    pub write_off_nano_usd: i64,
    pub refunded_nano_usd: i64,
}

/// The price of the call and what it was multiplied with. A call that is free has no lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptCalculation {
    /// By which the price is served for ever, and the hash of what is served then.
    pub price_id: String,
    pub price_sha256: String,
    pub pricing_version: String,
    pub group: String,
    /// These are the prices of accounts that have topped up.
    pub paid_prices: bool,
    pub billing_unit: BillingUnit,
    pub multiplier: Fraction,
    pub lines: Vec<Line>,
}

/// A receipt with its signature: the file a customer keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    pub receipt: Receipt,
    /// Base64url, without padding, of the Ed25519 signature over the receipt's bytes.
    pub signature: String,
}

impl Signed {
    /// The whole file in the same form as what was signed.
    pub fn text(&self) -> String {
        serde_json::to_value(self).map(|value| canonical(&value)).unwrap_or_default()
    }
}

/// The bytes that are signed.
pub(super) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (i, (name, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::String(text) => write_text(text, out),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

/// Escaped are quote, backslash and what is below a space, in the short form where there is one;
/// everything else stands as it is.
fn write_text(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

/// Fractions of numbers are written differently by different languages: there are none in a
/// receipt.
pub(super) fn has_broken_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => !(number.is_i64() || number.is_u64()),
        Value::Array(items) => items.iter().any(has_broken_numbers),
        Value::Object(members) => members.values().any(has_broken_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_form_for_one_content() {
        let value = json!({"b": [1, null, true, {"z": -7, "a": "x"}], "a b": "ä\"\\\n\u{1}\u{7f}😀/", "B": {}});
        assert_eq!(
            canonical(&value),
            "{\"B\":{},\"a b\":\"ä\\\"\\\\\\n\\u0001\u{7f}😀/\",\"b\":[1,null,true,{\"a\":\"x\",\"z\":-7}]}"
        );
        assert!(!has_broken_numbers(&value));
        assert!(has_broken_numbers(&json!([{"n": 1.5}])));
        assert!(has_broken_numbers(&serde_json::from_str("[1e3]").expect("JSON")));
    }
}
