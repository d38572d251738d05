//! Vertex AI: tokens for the statements of a service account, and three formats below a project.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{Inside, header, with_model};
use crate::fault;
use crate::server::World;

pub const GOOGLE_PROJECT: &str = "sim-project";
pub(super) const TOKEN: &str = "/vertex/token";
const EMAIL: &str = "gateway@sim-project.iam.gserviceaccount.com";
/// Of an account that exists here only.
const PRIVATE: &str = include_str!("account.pem");
const PUBLIC: &str = "MIIBCgKCAQEAr0ovP1122B2W9PK2DRdKSQxe8kxwqDCxfINSi9t+sGN+HM8i2ZpoOopIlOgBb1QhykmF1ckNxu/IOQJLq820Y7pXo9JpKbMr8UljpSd0StLxCT04EaC5KFsLi68BJCB55sPjHCVMMJTeAPIpzAyYviTi6RY/uXpD/qYJiEVBwJeFIk3SBPoY5cKMeXi2To2AWHIqY+61XMs1gmHRljWt8ood2RTPd5CNhiiLKolG8BrDb2zUNlefzSeG0cu3Rb/721LcYitBRlv94y6lrgLTLHAAikTRVTVPUyYvBQWFK52f2PlXn24nr94RTvqLTmdIjFJAB/HiKmiOA9wk3b/afwIDAQAB";

/// How many tokens were given out, and which is good.
#[derive(Default)]
pub(crate) struct Tokens(AtomicU64);

impl Tokens {
    pub fn given(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The file of a service account whose tokens are fetched at this simulator.
pub fn google_account(base: &str) -> String {
    json!({
        "type": "service_account", "project_id": GOOGLE_PROJECT, "private_key_id": "sim-key-1",
        "private_key": PRIVATE, "client_email": EMAIL, "token_uri": format!("{base}{TOKEN}"),
    })
    .to_string()
}

pub(super) fn token(world: &World, body: &[u8]) -> Response<Bytes> {
    let form = String::from_utf8_lossy(body).into_owned();
    let field = |name: &str| form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let right_grant = field("grant_type") == Some("urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer");
    if !right_grant || !field("assertion").is_some_and(is_signed) {
        let error = json!({"error": "invalid_grant", "error_description": "Invalid JWT Signature."});
        return fault::response(400, "application/json", error.to_string().into());
    }
    let number = world.tokens.0.fetch_add(1, Relaxed) + 1;
    let reply = json!({"access_token": format!("ya29.sim-{number}"), "expires_in": 3599, "token_type": "Bearer"});
    fault::response(200, "application/json", reply.to_string().into())
}

/// A statement of the account, signed with its key, for an hour at most.
fn is_signed(statement: &str) -> bool {
    let check = || {
        let (signed, signature) = statement.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        let json = |text: &str| serde_json::from_slice::<Value>(&decode(text)?).ok();
        let (head, claims) = (json(head)?, json(claims)?);
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, BASE64_STANDARD.decode(PUBLIC).ok()?);
        key.verify(signed.as_bytes(), &decode(signature)?).ok()?;
        let (from, to) = (claims["iat"].as_i64()?, claims["exp"].as_i64()?);
        let right = head == json!({"alg": "RS256", "kid": "sim-key-1", "typ": "JWT"})
            && claims["iss"] == EMAIL
            && claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
            && claims["aud"].as_str()?.ends_with(TOKEN)
            && from > 0
            && (1..=3600).contains(&(to - from));
        right.then_some(())
    };
    check().is_some()
}

pub(super) fn inside(world: &World, parts: &Parts, path: &str, body: Bytes) -> Inside {
    let error = |code: u16, status: &str, message: &str| {
        (code, json!({"error": {"code": code, "message": message, "status": status}}))
    };
    let good = format!("Bearer ya29.sim-{}", world.tokens.given());
    if header(parts, "authorization") != Some(good.as_str()) {
        return Err(error(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."));
    }
    let missing = || error(404, "NOT_FOUND", "The requested URL was not found on this server.");
    let rest = path.strip_prefix(&format!("/v1/projects/{GOOGLE_PROJECT}/locations/")).ok_or_else(missing)?;
    let (_region, rest) = rest.split_once('/').ok_or_else(missing)?;
    if rest == "endpoints/openapi/chat/completions" {
        return Ok(("/v1/chat/completions".to_string(), body));
    }
    if let Some(model) = rest.strip_prefix("publishers/google/models/") {
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        return Ok((format!("/v1beta/models/{model}{query}"), body));
    }
    let (model, verb) =
        rest.strip_prefix("publishers/anthropic/models/").and_then(|rest| rest.split_once(':')).ok_or_else(missing)?;
    let bad =
        |message: &str| (400, json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}));
    let mut asked: Value = serde_json::from_slice(&body).map_err(|_| bad("not JSON"))?;
    if asked.get("model").is_some() {
        return Err(bad("model: Extra inputs are not permitted"));
    }
    let version = asked.as_object_mut().and_then(|asked| asked.remove("anthropic_version"));
    if version != Some(json!("vertex-2023-10-16")) {
        return Err(bad("anthropic_version: Field required"));
    }
    let streams = asked["stream"] == true;
    match (verb, streams) {
        ("rawPredict", false) | ("streamRawPredict", true) => {}
        _ => return Err(missing()),
    }
    let body = with_model(asked.to_string().as_bytes(), model).ok_or_else(missing)?;
    Ok(("/v1/messages".to_string(), body))
}
