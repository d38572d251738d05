//! Public keys of passkeys (COSE, RFC 9053), and signatures by them: ES256, EdDSA and RS256. A key
//! verifies the one algorithm that it names.

use super::cbor::{self, CborValue};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

/// What may be made, the most wanted first.
pub const ALGORITHMS: [i64; 3] = [EDDSA, ES256, RS256];
const ES256: i64 = -7;
const EDDSA: i64 = -8;
const RS256: i64 = -257;
/// RSA from 2048 to 4096 bits: longer ones cost us more than they are worth.
const SHORTEST_RSA: usize = 256;
const LONGEST_RSA: usize = 512;

/// A key that verifies.
#[derive(Debug, PartialEq, Eq)]
pub enum PasskeyKey {
    Es256(Vec<u8>),
    EdDsa(Vec<u8>),
    Rs256 { n: Vec<u8>, e: Vec<u8> },
}

impl PasskeyKey {
    /// The key at the beginning of these bytes, and what is behind it.
    pub fn first(bytes: &[u8]) -> Result<(PasskeyKey, &[u8]), &'static str> {
        let (map, rest) = cbor::first(bytes)?;
        Ok((key(&map)?, rest))
    }

    /// A key that was stored.
    pub fn read(bytes: &[u8]) -> Option<PasskeyKey> {
        PasskeyKey::first(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(key, _)| key)
    }

    pub fn has_signed(&self, text: &[u8], by: &[u8]) -> bool {
        match self {
            PasskeyKey::Es256(point) => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_ASN1, point).verify(text, by).is_ok()
            }
            PasskeyKey::EdDsa(point) => UnparsedPublicKey::new(&signature::ED25519, point).verify(text, by).is_ok(),
            PasskeyKey::Rs256 { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&signature::RSA_PKCS1_2048_8192_SHA256, text, by).is_ok()
            }
        }
    }
}

fn key(map: &CborValue<'_>) -> Result<PasskeyKey, &'static str> {
    let CborValue::Map(all) = map else { return Err("the public key is no map") };
    let value = |label: i64| map.get(&CborValue::Int(label));
    let number = |label: i64| match value(label) {
        Some(CborValue::Int(number)) => Some(*number),
        _ => None,
    };
    let bytes = |label: i64| value(label).and_then(CborValue::bytes);
    let point = |label: i64| bytes(label).filter(|bytes| bytes.len() == 32).ok_or("the public key has no such point");
    let (key, members) = match (number(1), number(3)) {
        (Some(2), Some(ES256)) if number(-1) == Some(1) => {
            (PasskeyKey::Es256([&[4][..], point(-2)?, point(-3)?].concat()), 5)
        }
        (Some(1), Some(EDDSA)) if number(-1) == Some(6) => (PasskeyKey::EdDsa(point(-2)?.to_vec()), 4),
        (Some(3), Some(RS256)) => {
            let n = bytes(-1).filter(|n| (SHORTEST_RSA..=LONGEST_RSA).contains(&n.len()));
            let n = n.filter(|n| n.first() != Some(&0)).ok_or("an RSA key has 2048 to 4096 bits")?;
            let e = bytes(-2).filter(|e| (1..=4).contains(&e.len())).ok_or("the exponent of the key is none")?;
            (PasskeyKey::Rs256 { n: n.to_vec(), e: e.to_vec() }, 4)
        }
        _ => return Err("the algorithm of the public key is none that was offered"),
    };
    // Nothing but what belongs to it (WebAuthn, 6.5.1.1).
    if all.len() == members { Ok(key) } else { Err("the public key has more members than belong to it") }
}
