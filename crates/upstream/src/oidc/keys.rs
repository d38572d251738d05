//! The keys of an issuer (a JSON web key set), and signatures by them: RS256, ES256 and EdDSA.
//! Nothing else verifies, above all neither `none` nor a shared secret.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

/// Keys of one issuer that are looked at.
const MOST_KEYS: usize = 50;

/// A key that verifies.
#[derive(Debug)]
struct IssuerKey {
    id: Option<String>,
    key: PublicPart,
}

#[derive(Debug)]
enum PublicPart {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// What a token says it was signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignedWith {
    Rs256,
    Es256,
    EdDsa,
}

impl SignedWith {
    pub fn of(name: &str) -> Option<SignedWith> {
        match name {
            "RS256" => Some(SignedWith::Rs256),
            "ES256" => Some(SignedWith::Es256),
            "EdDSA" => Some(SignedWith::EdDsa),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct IssuerKeys(Vec<IssuerKey>);

impl IssuerKeys {
    /// Reads a set; what is no key of ours is passed over.
    pub fn read(set: &Value) -> IssuerKeys {
        let all = set.get("keys").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        IssuerKeys(all.iter().take(MOST_KEYS).filter_map(key).collect())
    }

    /// Whether there is a key of this name; without a name any may do.
    pub fn has(&self, id: Option<&str>) -> bool {
        self.named(id).next().is_some()
    }

    fn named<'a>(&'a self, id: Option<&'a str>) -> impl Iterator<Item = &'a IssuerKey> {
        self.0.iter().filter(move |one| id.is_none_or(|id| one.id.as_deref() == Some(id)))
    }

    pub fn have_signed(&self, with: SignedWith, id: Option<&str>, text: &[u8], by: &[u8]) -> bool {
        self.named(id).any(|one| match (&one.key, with) {
            (PublicPart::Rsa { n, e }, SignedWith::Rs256) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, text, by).is_ok()
            }
            (PublicPart::P256(point), SignedWith::Es256) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(text, by).is_ok()
            }
            (PublicPart::Ed25519(point), SignedWith::EdDsa) => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(text, by).is_ok()
            }
            _ => false,
        })
    }
}

fn key(value: &Value) -> Option<IssuerKey> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let bytes = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(text(name)?).ok();
    if text("use").is_some_and(|used| used != "sig") {
        return None;
    }
    let made_for = |name: &str| text("alg").is_none_or(|alg| alg == name);
    let key = match (text("kty")?, text("crv")) {
        ("RSA", _) if made_for("RS256") => PublicPart::Rsa { n: bytes("n")?, e: bytes("e")? },
        ("EC", Some("P-256")) if made_for("ES256") => {
            let (x, y) = (bytes("x").filter(|x| x.len() == 32)?, bytes("y").filter(|y| y.len() == 32)?);
            PublicPart::P256([&[4][..], &x, &y].concat())
        }
        ("OKP", Some("Ed25519")) if made_for("EdDSA") => PublicPart::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
        _ => return None,
    };
    Some(IssuerKey { id: text("kid").map(str::to_owned), key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const CLAIMS: &str =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

    /// RFC 7515, appendices A.2 and A.3; RFC 8037, appendix A.4: what is signed, and its signature.
    #[test]
    fn the_published_examples() {
        let rsa = json!({ "kty": "RSA", "kid": "r", "n": N, "e": "AQAB" });
        let ec = json!({ "kty": "EC", "kid": "e", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" });
        let ed =
            json!({ "kty": "OKP", "kid": "d", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let keys = IssuerKeys::read(&json!({ "keys": [rsa, ec, ed] }));
        let all = [
            (
                "RS256",
                "r",
                format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}"),
                "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
            ),
            (
                "ES256",
                "e",
                format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}"),
                "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
            ),
            (
                "EdDSA",
                "d",
                "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".to_owned(),
                "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
            ),
        ];
        for (name, id, text, by) in &all {
            let (with, by) = (SignedWith::of(name).unwrap(), BASE64_URL_SAFE_NO_PAD.decode(by).unwrap());
            assert!(keys.have_signed(with, Some(id), text.as_bytes(), &by), "{name}");
            assert!(keys.have_signed(with, None, text.as_bytes(), &by), "{name}, by any key");
            assert!(!keys.have_signed(with, Some("other"), text.as_bytes(), &by), "{name}: another key");
            assert!(!keys.have_signed(with, Some(id), b"other", &by), "{name}: another text");
            assert!(!keys.have_signed(with, Some(id), text.as_bytes(), &by[1..]), "{name}: half a signature");
        }
        for none in ["none", "HS256", "RS1", "PS256", "ES384", "rs256", ""] {
            assert_eq!(SignedWith::of(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_no_key_for_signatures_is_none() {
        let ed = |more: Value| {
            let mut key = json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
            key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            IssuerKeys::read(&json!({ "keys": [key] })).has(None)
        };
        assert!(ed(json!({})) && ed(json!({ "use": "sig", "alg": "EdDSA" })));
        for more in [
            json!({ "use": "enc" }),
            json!({ "alg": "HS256" }),
            json!({ "kty": "oct", "k": "AAAA" }),
            json!({ "x": "AAAA" }),
        ] {
            assert!(!ed(more.clone()), "{more}");
        }
        assert!(!IssuerKeys::read(&json!({ "keys": "none" })).has(None));
    }
}
