//! An ID token: who somebody is, in the signed words of an issuer. Checked in full before anything
//! in it is believed (OpenID Connect Core, 3.1.3.7).

use super::keys::{IssuerKeys, SignedWith};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::Value;

/// How far two clocks may be apart, in seconds.
const CLOCKS_APART: i64 = 60;
/// A token is made for the code that it comes for.
const OLDEST: i64 = 10 * 60;
const LONGEST: usize = 64 << 10;

/// What an issuer says of somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerClaims {
    pub subject: String,
    pub email: Option<String>,
    /// As the issuer says; nothing is not yes.
    pub email_verified: bool,
    pub name: Option<String>,
    /// When they last showed the issuer who they are, in seconds since 1970.
    pub auth_time: Option<i64>,
    /// The groups they are in; none where nobody asked which claim they are in.
    pub groups: Vec<String>,
}

/// What a token must fit.
pub(super) struct ExpectedToken<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    /// Seconds since 1970.
    pub now: i64,
    /// The claim with the groups.
    pub groups: Option<&'a str>,
}

/// The three parts, and the head read.
pub(super) struct RawToken<'a> {
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
    with: SignedWith,
    pub key_id: Option<String>,
}

fn json(part: &str) -> Option<Value> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

impl<'a> RawToken<'a> {
    pub fn read(text: &'a str) -> Option<RawToken<'a>> {
        let (signed, signature) = text.rsplit_once('.').filter(|_| text.len() <= LONGEST)?;
        let (head, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.'))?;
        let head = json(head)?;
        // An extension that must be understood is one that is not understood here.
        if head.get("crit").is_some() {
            return None;
        }
        let with = SignedWith::of(head.get("alg")?.as_str()?)?;
        let key_id = head.get("kid").and_then(Value::as_str).map(str::to_owned);
        Some(RawToken { signed, claims, signature: BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?, with, key_id })
    }

    /// What it says, if these keys signed it and it is for us and now. The word says what is wrong.
    pub fn checked(&self, keys: &IssuerKeys, expected: &ExpectedToken<'_>) -> Result<IssuerClaims, &'static str> {
        if !keys.have_signed(self.with, self.key_id.as_deref(), self.signed.as_bytes(), &self.signature) {
            return Err("signature");
        }
        let claims = json(self.claims).ok_or("claims")?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(expected.issuer) {
            return Err("iss");
        }
        let ours = |value: &Value| value.as_str() == Some(expected.client_id);
        let (for_us, others) = match claims.get("aud") {
            Some(Value::Array(all)) => (all.iter().any(ours), !all.iter().all(ours)),
            Some(one) => (ours(one), false),
            None => (false, false),
        };
        if !for_us {
            return Err("aud");
        }
        match claims.get("azp") {
            Some(azp) if !ours(azp) => return Err("azp"),
            None if others => return Err("azp"),
            _ => {}
        }
        let time = |name: &str| claims.get(name).and_then(seconds);
        if time("exp").is_none_or(|exp| exp.saturating_add(CLOCKS_APART) <= expected.now) {
            return Err("exp");
        }
        let fresh = expected.now.saturating_sub(OLDEST + CLOCKS_APART)..=expected.now.saturating_add(CLOCKS_APART);
        if time("iat").is_none_or(|iat| !fresh.contains(&iat)) {
            return Err("iat");
        }
        if time("nbf").is_some_and(|nbf| nbf > expected.now.saturating_add(CLOCKS_APART)) {
            return Err("nbf");
        }
        // Hashes: how much of a guess is right takes no measurable time.
        let hash = |nonce: &str| digest(&SHA256, nonce.as_bytes());
        if text("nonce").is_none_or(|nonce| hash(nonce).as_ref() != hash(expected.nonce).as_ref()) {
            return Err("nonce");
        }
        claims_of(&claims, expected.groups).ok_or("sub")
    }
}

/// Whole seconds, which some write with a point.
fn seconds(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|at| (0.0..1e12).contains(at)).map(|at| at as i64))
}

/// Who it is about, of a token or of what the issuer says beside it.
pub(super) fn claims_of(claims: &Value, groups: Option<&str>) -> Option<IssuerClaims> {
    let text = |name: &str, most: usize| {
        let text = claims.get(name).and_then(Value::as_str)?;
        (!text.is_empty() && text.len() <= most && !text.contains(char::is_control)).then(|| text.to_owned())
    };
    let verified = match claims.get("email_verified") {
        Some(Value::Bool(yes)) => *yes,
        Some(Value::String(word)) => word == "true",
        _ => false,
    };
    let auth_time = claims.get("auth_time").and_then(seconds);
    let (email, name) = (text("email", 254), text("name", 200));
    let groups = groups.map(|name| groups_of(claims, name)).unwrap_or_default();
    Some(IssuerClaims { subject: text("sub", 255)?, email, email_verified: verified, name, auth_time, groups })
}

/// A claim by its name, or inside others by names with dots between; a list of words, or one.
fn groups_of(claims: &Value, name: &str) -> Vec<String> {
    let inside = || name.split('.').try_fold(claims, |value, part| value.get(part));
    match claims.get(name).or_else(inside) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
