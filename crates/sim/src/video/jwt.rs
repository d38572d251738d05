//! Checks the token Kling's keys are made into, and says what is wrong with it in Kling's numbers.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::Value;

use super::{KLING_ACCESS, KLING_SECRET};

/// The access key a token names, whether or not the token is good.
pub(super) fn issuer(token: &str) -> Option<String> {
    let claims = token.split('.').nth(1).filter(|_| token.split('.').count() == 3)?;
    let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    claims["iss"].as_str().map(str::to_string)
}

/// `Ok` for a token that is good now; otherwise the provider's code and text.
pub(super) fn check(token: &str, now: i64) -> Result<(), (i64, &'static str)> {
    const INVALID: (i64, &str) = (1002, "Authorization is invalid");
    let (signed, signature) = token.rsplit_once('.').ok_or(INVALID)?;
    let (head, claims) = signed.split_once('.').ok_or(INVALID)?;
    let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| INVALID);
    let json = |text: &str| serde_json::from_slice::<Value>(&decode(text)?).map_err(|_| INVALID);
    let key = hmac::Key::new(hmac::HMAC_SHA256, KLING_SECRET.as_bytes());
    let (head, claims) = (json(head)?, json(claims)?);
    if head["alg"] != "HS256"
        || head["typ"] != "JWT"
        || !claims["iss"].as_str().is_some_and(|access| access.starts_with(KLING_ACCESS))
    {
        return Err(INVALID);
    }
    hmac::verify(&key, signed.as_bytes(), &decode(signature)?).map_err(|_| (1000, "signature is invalid"))?;
    let (begins, ends) = (claims["nbf"].as_i64().ok_or(INVALID)?, claims["exp"].as_i64().ok_or(INVALID)?);
    if begins > now {
        return Err((1003, "Authorization is not active yet"));
    }
    if ends <= now {
        return Err((1004, "Authorization is expired"));
    }
    Ok(())
}
