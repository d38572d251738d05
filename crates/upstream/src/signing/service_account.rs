//! A service account of Google: its key signs a statement (a JSON web token, RS256), for which
//! Google gives a token that is good for an hour. It is renewed before it ends, by one request for
//! all calls.

use crate::outgoing::outgoing;
use crate::{BadProvider, Blame, Client, Fault, read_whole};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Uri};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tokio::sync::Mutex;

/// The account, and the token it has.
pub(crate) struct ServiceAccount {
    email: String,
    key_id: String,
    token_uri: Uri,
    key: RsaKeyPair,
    token: Mutex<Option<Token>>,
}

struct Token {
    value: HeaderValue,
    /// Milliseconds since 1970; a call that begins later gets a new one.
    renew_at: i64,
}

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const USUAL_TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// How long a statement is good, in seconds: the most that Google takes.
const GOOD_FOR: i64 = 3600;
/// A token is renewed so long before it ends that no call begins with one that is about to.
const EARLIER: i64 = 5 * 60 * 1000;
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_REPLY: usize = 64 << 10;

impl ServiceAccount {
    /// Reads the JSON file that Google hands out.
    pub fn read(file: &str) -> Result<ServiceAccount, BadProvider> {
        let bad = BadProvider("the secret must be the JSON file of a service account: secret_file = \"account.json\"");
        let file: Value = serde_json::from_str(file).map_err(|_| bad)?;
        let text = |name: &str| file.get(name).and_then(Value::as_str);
        let email = text("client_email").ok_or(bad)?.to_owned();
        let key = der(text("private_key").ok_or(bad)?).ok_or(bad)?;
        let key = RsaKeyPair::from_pkcs8(&key)
            .map_err(|_| BadProvider("the private_key of the service account cannot be used"))?;
        let token_uri = text("token_uri").unwrap_or(USUAL_TOKEN_URI).parse().map_err(|_| bad)?;
        let key_id = text("private_key_id").unwrap_or_default().to_owned();
        Ok(ServiceAccount { email, key_id, token_uri, key, token: Mutex::new(None) })
    }

    /// `Bearer …`, good for some minutes at least.
    pub async fn token(&self, client: &Client, now: i64) -> Result<HeaderValue, Fault> {
        // Whoever comes while one is being fetched waits for it.
        let mut token = self.token.lock().await;
        if let Some(token) = token.as_ref().filter(|token| now < token.renew_at) {
            return Ok(token.value.clone());
        }
        let fresh = self.fetch(client, now).await?;
        let value = fresh.value.clone();
        *token = Some(fresh);
        Ok(value)
    }

    async fn fetch(&self, client: &Client, now: i64) -> Result<Token, Fault> {
        let statement = self.statement(now / 1000).ok_or_else(no_token)?;
        let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer";
        let body = Bytes::from(format!("grant_type={grant}&assertion={statement}"));
        let mut request = outgoing(Method::POST, self.token_uri.clone(), "application/json", body);
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, form);
        // Nothing of the call itself has left yet.
        let reply = client.ask(request, PATIENCE).await.map_err(|fault| Fault {
            sent: false,
            maybe_charged: false,
            ..fault
        })?;
        if !reply.status().is_success() {
            return Err(no_token());
        }
        let body = read_whole(reply.into_body(), MOST_REPLY, PATIENCE).await.map_err(|_| no_token())?;
        let reply: Value = serde_json::from_slice(&body).map_err(|_| no_token())?;
        let token = reply.get("access_token").and_then(Value::as_str).ok_or_else(no_token)?;
        let seconds = reply.get("expires_in").and_then(Value::as_i64).unwrap_or(GOOD_FOR).clamp(0, GOOD_FOR);
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
        value.set_sensitive(true);
        Ok(Token { value, renew_at: now + seconds * 1000 - EARLIER })
    }

    /// What the account says of itself, signed; `now` in seconds.
    fn statement(&self, now: i64) -> Option<String> {
        let head = json!({"alg": "RS256", "kid": self.key_id, "typ": "JWT"});
        let claims = json!({
            "aud": self.token_uri.to_string(), "exp": now + GOOD_FOR, "iat": now, "iss": self.email, "scope": SCOPE,
        });
        let encode = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&head), encode(&claims));
        let signature = rs256(&self.key, signed.as_bytes())?;
        Some(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn rs256(key: &RsaKeyPair, text: &[u8]) -> Option<Vec<u8>> {
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).ok()?;
    Some(signature)
}

/// The bytes of a PEM block.
fn der(pem: &str) -> Option<Vec<u8>> {
    let lines = pem.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("-----"));
    BASE64_STANDARD.decode(lines.collect::<String>()).ok()
}

/// Ours to mend: the account, its rights, or its file.
fn no_token() -> Fault {
    Fault { blame: Blame::Operator, ..Fault::unreachable() }
}

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceAccount(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rsa::{KeyPairComponents, PublicKeyComponents};

    /// RFC 7515, appendix A.2: key, what is signed, and its signature.
    #[test]
    fn the_published_example_of_rs256() {
        let bytes = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
        let (n, e, d) = (bytes(N), bytes("AQAB"), bytes(D));
        let parts = KeyPairComponents {
            public_key: PublicKeyComponents { n: n.as_slice(), e: e.as_slice() },
            d: d.as_slice(),
            p: &bytes(P)[..],
            q: &bytes(Q)[..],
            dP: &bytes(DP)[..],
            dQ: &bytes(DQ)[..],
            qInv: &bytes(QI)[..],
        };
        let key = RsaKeyPair::from_components(&parts).unwrap();
        let signature = rs256(&key, SIGNED.as_bytes()).unwrap();
        assert_eq!(BASE64_URL_SAFE_NO_PAD.encode(signature), SIGNATURE);
    }

    #[test]
    fn a_file_that_is_none_is_refused_and_shows_nothing() {
        for bad in ["", "sk-plain-key", "{}", r#"{"client_email":"a@b","private_key":"-----BEGIN-----\nAAAA\n"}"#] {
            let message = ServiceAccount::read(bad).unwrap_err().to_string();
            assert!(message.contains("service account") && !message.contains("AAAA"), "{message}");
        }
    }

    const SIGNED: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const SIGNATURE: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    const N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const D: &str = "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ";
    const P: &str = "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc";
    const Q: &str = "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc";
    const DP: &str = "BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0";
    const DQ: &str = "h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU";
    const QI: &str = "IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U";
}
