//! The signed key of one provider: a JSON web token, HS256, good for half an hour.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::HeaderValue;
use ring::hmac;

/// How long a token is good.
const GOOD_FOR: i64 = 1800;
/// Clocks differ; it is good from a little earlier.
const EARLIER: i64 = 5;

/// `Bearer …` for an access key and its secret.
pub(super) fn bearer(access: &str, secret: &str, now: i64) -> Option<HeaderValue> {
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let claims = serde_json::json!({"iss": access, "exp": now + GOOD_FOR, "nbf": now - EARLIER});
    let signed = format!("{}.{}", encode(br#"{"alg":"HS256","typ":"JWT"}"#), encode(claims.to_string().as_bytes()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    let mut value = HeaderValue::try_from(format!("Bearer {signed}.{}", encode(tag.as_ref()))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signature was made with another implementation (Python's hmac).
    #[test]
    fn a_known_token() {
        let value = bearer("ak", "sk", 1_700_000_000).expect("a token");
        assert!(value.is_sensitive());
        let expected = "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3MDAwMDE4MDAsImlzcyI6ImFrIiwibmJmIjoxNjk5OTk5OTk1fQ.h2Ib2cfDM6pOpdPWBmbO7GDw67oBqBvAPTDCgWpgtek";
        assert_eq!(value.to_str().expect("text"), expected);
    }
}
