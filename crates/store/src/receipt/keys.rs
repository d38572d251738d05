//! The keys of receipts: Ed25519. The secret lives in the store and in a value that can sign and do
//! nothing else; the public half is published as a JSON Web Key (RFC 8037), named by its thumbprint
//! (RFC 7638).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::StoreError;
use crate::world::FillRandom;

/// How far the clocks of replicas may be apart: a receipt may name a time this much outside the
/// validity of its key.
const CLOCKS_APART_MS: i64 = 5 * 60 * 1_000;

/// A key as everybody may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicKey {
    pub kid: String,
    pub kty: KeyType,
    pub crv: Curve,
    pub x: String,
    /// Receipts of this time are signed with it.
    pub from_ms: i64,
    /// `None`: it signs now.
    pub until_ms: Option<i64>,
}

/// The only kind of key there is; anything else in a file is not one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyType {
    #[serde(rename = "OKP")]
    Okp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Curve {
    Ed25519,
}

/// The published document: every key that ever signed, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicKeys {
    pub keys: Vec<PublicKey>,
}

impl PublicKey {
    pub(crate) fn new(public: &[u8], from_ms: i64, until_ms: Option<i64>) -> Self {
        let x = encode(public);
        Self { kid: thumbprint(&x), kty: KeyType::Okp, crv: Curve::Ed25519, x, from_ms, until_ms }
    }

    /// The name is what it should be: computed from the key.
    pub(super) fn is_named_after_itself(&self) -> bool {
        self.kid == thumbprint(&self.x)
    }

    pub(super) fn was_valid_at(&self, ms: i64) -> bool {
        let from = self.from_ms.saturating_sub(CLOCKS_APART_MS);
        let until = self.until_ms.map_or(i64::MAX, |until| until.saturating_add(CLOCKS_APART_MS));
        (from..=until).contains(&ms)
    }

    pub(super) fn has_signed(&self, bytes: &[u8], signature: &str) -> bool {
        let (Some(public), Some(signature)) = (decode(&self.x), decode(signature)) else { return false };
        UnparsedPublicKey::new(&ED25519, public).verify(bytes, &signature).is_ok()
    }
}

fn thumbprint(x: &str) -> String {
    // The members of the key in this order and without spaces: that is the standard's form.
    encode(&Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)))
}

/// A key that can sign. Neither printed nor written anywhere but into the store's own table.
pub(crate) struct SecretKey {
    pair: Ed25519KeyPair,
    pub from_ms: i64,
}

/// A row of the table of keys, on its way in.
pub(crate) struct KeyRecord {
    pub secret: [u8; 32],
    pub public: [u8; 32],
    pub from_ms: i64,
}

impl KeyRecord {
    pub fn draw(random: &FillRandom, now_ms: i64) -> Result<Self, StoreError> {
        let mut secret = [0u8; 32];
        random(&mut secret);
        let pair = Ed25519KeyPair::from_seed_unchecked(&secret).map_err(|_| not_a_key())?;
        let public = pair.public_key().as_ref().try_into().map_err(|_| not_a_key())?;
        Ok(Self { secret, public, from_ms: now_ms })
    }
}

impl SecretKey {
    /// From the two halves the table keeps; they must belong together.
    pub fn read(secret: &[u8], public: &[u8], from_ms: i64) -> Result<Self, StoreError> {
        let pair = Ed25519KeyPair::from_seed_and_public_key(secret, public).map_err(|_| not_a_key())?;
        Ok(Self { pair, from_ms })
    }

    pub fn kid(&self) -> String {
        thumbprint(&encode(self.pair.public_key().as_ref()))
    }

    pub fn sign(&self, bytes: &[u8]) -> String {
        encode(self.pair.sign(bytes).as_ref())
    }
}

/// Says nothing of the key itself.
fn not_a_key() -> StoreError {
    StoreError::broken("a key of the table receipt_key is not an Ed25519 key")
}

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Strict: one text for the bytes and no other.
fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_key_is_the_thumbprint_of_the_standard() {
        // The example of RFC 8037, appendix A.3.
        assert_eq!(
            thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        );
    }

    #[test]
    fn a_signature_has_one_text_only() {
        let key = KeyRecord::draw(&(std::sync::Arc::new(|b: &mut [u8]| b.fill(7)) as FillRandom), 0).expect("a key");
        let signer = SecretKey::read(&key.secret, &key.public, 0).expect("a key");
        let public = PublicKey::new(&key.public, 0, None);
        assert_eq!(public.kid, signer.kid());
        let signature = signer.sign(b"text");
        assert!(public.has_signed(b"text", &signature) && !public.has_signed(b"texu", &signature));
        // 64 bytes leave four bits of the last character unused: only zeros there are the
        // signature.
        let letters = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']);
        let accepted = letters.filter(|last| {
            let text = format!("{}{last}", &signature[..signature.len() - 1]);
            public.has_signed(b"text", &text)
        });
        assert_eq!(accepted.count(), 1);
        assert!(!public.has_signed(b"text", &format!("{signature}=")));
    }

    #[test]
    fn halves_of_two_keys_are_not_a_key() {
        let draw = |n: u8| KeyRecord::draw(&(std::sync::Arc::new(move |b: &mut [u8]| b.fill(n)) as FillRandom), 0);
        let (one, two) = (draw(1).expect("a key"), draw(2).expect("a key"));
        assert!(SecretKey::read(&one.secret, &two.public, 0).is_err());
    }
}
