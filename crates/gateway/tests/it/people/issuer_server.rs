//! An issuer of OpenID Connect that does what a test tells it, the bad included.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What it does next.
#[derive(Clone, Debug, Default)]
pub struct Conduct {
    /// Claims that are laid over the right ones; `null` takes one away.
    pub claims: Value,
    /// The head of the token, laid over the right one.
    pub head: Value,
    /// Signs with a key that is in no set.
    pub other_key: bool,
    /// Signs with the text of its public key, as HS256.
    pub hs256: bool,
    pub endless_keys: bool,
    /// Takes the connection and says nothing.
    pub silent: bool,
    /// Announces that it names itself (RFC 9207).
    pub names_itself: bool,
    /// What discovery says otherwise.
    pub discovery: Value,
}

pub struct FakeIssuer {
    pub url: String,
    pub conduct: Arc<Mutex<Conduct>>,
    /// Path and body of what was asked.
    asked: Arc<Mutex<Vec<(String, String)>>>,
    serving: tokio::task::JoinHandle<()>,
}

struct Keys {
    own: Ed25519KeyPair,
    other: Ed25519KeyPair,
}

impl Drop for FakeIssuer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl FakeIssuer {
    pub async fn new() -> FakeIssuer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let pair = |n: u8| Ed25519KeyPair::from_seed_unchecked(&[n; 32]).expect("a key");
        let keys = Arc::new(Keys { own: pair(1), other: pair(2) });
        let (conduct, asked) = (Arc::new(Mutex::new(Conduct::default())), Arc::new(Mutex::new(Vec::new())));
        let (own, behaves, noted) = (url.clone(), conduct.clone(), asked.clone());
        #[expect(clippy::disallowed_methods, reason = "a server of the test, aborted when it is dropped")]
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (url, conduct, asked, keys) = (own.clone(), behaves.clone(), noted.clone(), keys.clone());
                tokio::spawn(async move { serve(stream, &url, &conduct, &asked, &keys).await });
            }
        });
        FakeIssuer { url, conduct, asked, serving }
    }

    pub fn behave(&self, change: impl FnOnce(&mut Conduct)) {
        let mut conduct = self.conduct.lock().unwrap_or_else(PoisonError::into_inner);
        *conduct = Conduct::default();
        change(&mut conduct);
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|(own, _)| own == path).count()
    }

    /// The last form that came for a code.
    pub fn last_form(&self) -> String {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().rev().find(|(path, _)| path == "/token").map(|(_, body)| body.clone()).unwrap_or_default()
    }
}

/// A code that says what is to be in the token: the right claims of a test, as text.
pub fn code_for(claims: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(claims.to_string())
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut all = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        all.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&all).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().filter_map(|line| line.split_once(':'));
        let length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.filter_map(|(_, value)| value.trim().parse::<usize>().ok()).next().unwrap_or(0);
        if body.len() >= length {
            let path = head.split(' ').nth(1)?.to_owned();
            return Some((path, body.to_owned()));
        }
    }
}

async fn serve(
    mut stream: TcpStream,
    url: &str,
    conduct: &Mutex<Conduct>,
    asked: &Mutex<Vec<(String, String)>>,
    keys: &Keys,
) {
    let Some((path, body)) = read_request(&mut stream).await else { return };
    let conduct = conduct.lock().unwrap_or_else(PoisonError::into_inner).clone();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push((path.clone(), body.clone()));
    if conduct.silent {
        // Until the other side gives up.
        let _ = stream.read(&mut [0; 1]).await;
        return;
    }
    if conduct.endless_keys && path == "/keys" {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"keys\":[").await;
        while stream.write_all(&[b' '; 8192]).await.is_ok() {}
        return;
    }
    let (status, value) = match path.as_str() {
        "/.well-known/openid-configuration" => (200, discovery(url, &conduct)),
        "/keys" => (200, json!({ "keys": [jwk(&keys.own)] })),
        "/token" => (200, json!({ "id_token": token(url, &conduct, &body, keys), "token_type": "Bearer" })),
        _ => (404, json!({})),
    };
    let text = value.to_string();
    let head = format!("HTTP/1.1 {status} OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
    let _ = stream.write_all(format!("{head}{text}").as_bytes()).await;
}

fn laid_over(mut value: Value, over: &Value) -> Value {
    for (name, one) in over.as_object().into_iter().flatten() {
        match one {
            Value::Null => value.as_object_mut().and_then(|map| map.remove(name)),
            other => value.as_object_mut().and_then(|map| map.insert(name.clone(), other.clone())),
        };
    }
    value
}

fn discovery(url: &str, conduct: &Conduct) -> Value {
    let all = json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "jwks_uri": format!("{url}/keys"),
        "authorization_response_iss_parameter_supported": conduct.names_itself,
    });
    laid_over(all, &conduct.discovery)
}

fn jwk(key: &Ed25519KeyPair) -> Value {
    let x = BASE64_URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": "one", "alg": "EdDSA", "x": x })
}

fn token(url: &str, conduct: &Conduct, form: &str, keys: &Keys) -> String {
    let code = form.split('&').find_map(|pair| pair.strip_prefix("code=")).unwrap_or_default();
    let right: Value = BASE64_URL_SAFE_NO_PAD
        .decode(code)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let mut claims = json!({ "iss": url, "aud": "tollgate" });
    claims = laid_over(laid_over(claims, &right), &conduct.claims);
    let alg = if conduct.hs256 { "HS256" } else { "EdDSA" };
    let head = laid_over(json!({ "alg": alg, "kid": "one", "typ": "JWT" }), &conduct.head);
    let coded = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", coded(&head), coded(&claims));
    let signature = if conduct.hs256 {
        let key = hmac::Key::new(hmac::HMAC_SHA256, keys.own.public_key().as_ref());
        hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
    } else if head["alg"] == "none" {
        Vec::new()
    } else {
        let key = if conduct.other_key { &keys.other } else { &keys.own };
        key.sign(signed.as_bytes()).as_ref().to_vec()
    };
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}
