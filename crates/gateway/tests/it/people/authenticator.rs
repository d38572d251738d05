//! A passkey in software, with the browser around it: keys of each algorithm, and whatever a test
//! wants it to say instead of the truth.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::rsa::PublicKeyComponents;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub const ORIGIN: &str = "https://gate.example.com";
pub const RP_ID: &str = "gate.example.com";

/// User present, user verified.
pub const UP: u8 = 1;
pub const UV: u8 = 1 << 2;
pub const BE: u8 = 1 << 3;
pub const BS: u8 = 1 << 4;
pub const AT: u8 = 1 << 6;
pub const ED: u8 = 1 << 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Es256,
    EdDsa,
    Rs256,
}

enum PrivateKey {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(Box<RsaKeyPair>),
}

/// One passkey, with its secret.
pub struct SoftPasskey {
    pub id: Vec<u8>,
    key: PrivateKey,
    pub count: u32,
    /// Of the person it was made for.
    pub handle: Vec<u8>,
    /// Whether it says of itself that it may be backed up.
    pub synced: bool,
}

/// What is said, before it is packed: tests change it.
#[derive(Clone, Debug)]
pub struct Saying {
    pub client: Value,
    /// Instead of `client`.
    pub client_text: Option<Vec<u8>>,
    pub rp_id: String,
    pub flags: u8,
    pub count: u32,
    pub id: Vec<u8>,
    pub cose: Vec<u8>,
    /// Behind all of it.
    pub tail: Vec<u8>,
    pub format: &'static str,
    /// CBOR.
    pub statement: Vec<u8>,
    /// Instead of the whole attestation object.
    pub object: Option<Vec<u8>>,
    pub handle: Option<Vec<u8>>,
    /// Instead of the right one.
    pub signature: Option<Vec<u8>>,
}

pub fn packed(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The head of a CBOR value.
pub fn head(kind: u8, number: usize) -> Vec<u8> {
    let number = u64::try_from(number).expect("a number");
    let first = kind << 5;
    let short = |byte: u8| first | byte;
    match number {
        0..24 => vec![short(u8::try_from(number).expect("a byte"))],
        24..0x100 => vec![short(24), u8::try_from(number).expect("a byte")],
        0x100..0x1_0000 => [&[short(25)][..], &number.to_be_bytes()[6..]].concat(),
        _ => [&[short(26)][..], &number.to_be_bytes()[4..]].concat(),
    }
}

pub fn cbor_bytes(bytes: &[u8]) -> Vec<u8> {
    [head(2, bytes.len()), bytes.to_vec()].concat()
}

pub fn cbor_text(text: &str) -> Vec<u8> {
    [head(3, text.len()), text.as_bytes().to_vec()].concat()
}

impl SoftPasskey {
    pub fn new(algorithm: Algorithm) -> SoftPasskey {
        let random = SystemRandom::new();
        let mut id = vec![0; 32];
        random.fill(&mut id).expect("random");
        let key = match algorithm {
            Algorithm::Es256 => {
                let kind = &signature::ECDSA_P256_SHA256_ASN1_SIGNING;
                let made = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
                PrivateKey::Es256(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).expect("a key"))
            }
            Algorithm::EdDsa => {
                let mut seed = [0; 32];
                random.fill(&mut seed).expect("random");
                PrivateKey::EdDsa(Ed25519KeyPair::from_seed_unchecked(&seed).expect("a key"))
            }
            Algorithm::Rs256 => {
                let pem = include_str!("../../../../sim/src/clouds/account.pem");
                let text: String = pem.lines().filter(|line| !line.starts_with("---")).collect();
                let der = BASE64_STANDARD.decode(text).expect("base64");
                PrivateKey::Rs256(Box::new(RsaKeyPair::from_pkcs8(&der).expect("a key")))
            }
        };
        SoftPasskey { id, key, count: 0, handle: Vec::new(), synced: false }
    }

    /// The public half (COSE).
    pub fn cose(&self) -> Vec<u8> {
        match &self.key {
            PrivateKey::Es256(key) => {
                let point = key.public_key().as_ref();
                let head = [0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21];
                [&head[..], &cbor_bytes(&point[1..33]), &[0x22], &cbor_bytes(&point[33..])].concat()
            }
            PrivateKey::EdDsa(key) => {
                let head = [0xa4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21];
                [&head[..], &cbor_bytes(key.public_key().as_ref())].concat()
            }
            PrivateKey::Rs256(key) => {
                let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(key.public());
                rsa_cose(&n, &e)
            }
        }
    }

    fn signs(&self, text: &[u8]) -> Vec<u8> {
        match &self.key {
            PrivateKey::Es256(key) => key.sign(&SystemRandom::new(), text).expect("signed").as_ref().to_vec(),
            PrivateKey::EdDsa(key) => key.sign(text).as_ref().to_vec(),
            PrivateKey::Rs256(key) => {
                let mut by = vec![0; key.public().modulus_len()];
                key.sign(&signature::RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut by).expect("signed");
                by
            }
        }
    }

    /// What is said when it is made by these options.
    pub fn create(&mut self, options: &Value) -> Saying {
        let asked = &options["publicKey"];
        let handle = asked["user"]["id"].as_str().expect("a user");
        self.handle = BASE64_URL_SAFE_NO_PAD.decode(handle).expect("base64url");
        let mut said = self.said(asked, "webauthn.create", asked["rp"]["id"].as_str());
        said.flags |= AT;
        said
    }

    /// The same when it is shown; its counter goes on.
    pub fn get(&mut self, options: &Value) -> Saying {
        self.count += 1;
        let asked = &options["publicKey"];
        self.said(asked, "webauthn.get", asked["rpId"].as_str())
    }

    fn said(&self, asked: &Value, kind: &str, rp_id: Option<&str>) -> Saying {
        let client = json!({ "type": kind, "challenge": asked["challenge"], "origin": ORIGIN, "crossOrigin": false });
        Saying {
            client,
            client_text: None,
            rp_id: rp_id.expect("a domain").to_owned(),
            flags: UP | UV | if self.synced { BE | BS } else { 0 },
            count: self.count,
            id: self.id.clone(),
            cose: self.cose(),
            tail: Vec::new(),
            format: "none",
            statement: vec![0xa0],
            object: None,
            handle: Some(self.handle.clone()),
            signature: None,
        }
    }
}

pub fn rsa_cose(n: &[u8], e: &[u8]) -> Vec<u8> {
    [&[0xa4, 0x01, 0x03, 0x03, 0x39, 0x01, 0x00, 0x20][..], &cbor_bytes(n), &[0x21], &cbor_bytes(e)].concat()
}

impl Saying {
    fn client_bytes(&self) -> Vec<u8> {
        self.client_text.clone().unwrap_or_else(|| self.client.to_string().into_bytes())
    }

    fn authenticator_data(&self) -> Vec<u8> {
        let mut all = Sha256::digest(self.rp_id.as_bytes()).to_vec();
        all.push(self.flags);
        all.extend(self.count.to_be_bytes());
        if self.flags & AT != 0 {
            all.extend([7; 16]);
            all.extend(u16::try_from(self.id.len()).expect("a length").to_be_bytes());
            all.extend(&self.id);
            all.extend(&self.cose);
        }
        all.extend(&self.tail);
        all
    }

    pub fn attestation(&self) -> Vec<u8> {
        let data = cbor_bytes(&self.authenticator_data());
        let (fmt, statement, name) = (cbor_text("fmt"), cbor_text("attStmt"), cbor_text("authData"));
        [vec![0xa3], fmt, cbor_text(self.format), statement, self.statement.clone(), name, data].concat()
    }

    /// As the browser sends one that was made.
    pub fn made(&self) -> Value {
        let object = self.object.clone().unwrap_or_else(|| self.attestation());
        json!({
            "id": packed(&self.id), "rawId": packed(&self.id), "type": "public-key",
            "authenticatorAttachment": "platform", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": packed(&self.client_bytes()), "attestationObject": packed(&object),
                "transports": ["internal", "hybrid", "internal", "telepathy"],
            },
        })
    }

    /// As the browser sends one that was shown.
    pub fn shown(&self, by: &SoftPasskey) -> Value {
        let (client, data) = (self.client_bytes(), self.authenticator_data());
        let text = [data.as_slice(), &Sha256::digest(&client)].concat();
        let signature = self.signature.clone().unwrap_or_else(|| by.signs(&text));
        json!({
            "id": packed(&self.id), "rawId": packed(&self.id), "type": "public-key",
            "authenticatorAttachment": "platform", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": packed(&client), "authenticatorData": packed(&data),
                "signature": packed(&signature), "userHandle": self.handle.as_ref().map(|handle| packed(handle)),
            },
        })
    }
}
