//! Passkeys (WebAuthn Level 3): what a ceremony carries, and how its end is judged (7.1 and 7.2).
//!
//! The challenge is sealed into a cookie together with what it is for, so whoever begins a million
//! ceremonies fills nothing here. That each ends once is seen to by the store. A passkey is shown
//! with the user verified, so it is both factors.

mod cbor;
mod cose;
mod data;

use crate::secrets::Secrets;
use crate::settings::PasskeySettings;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
pub use cose::ALGORITHMS;
use cose::PasskeyKey;
use data::{AuthenticatorData, ClientData, attested, unpacked};
pub use data::{MadeCredential, ShownCredential};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tollgate_store::{NewPasskey, PasskeyRecord, SessionId, UsedPasskey, UsedWay};

/// How long somebody may look for their passkey.
pub const CEREMONY_MS: i64 = 5 * 60_000;
const PURPOSE: &str = "passkey ceremony";
/// What browsers know to say; other words are passed over.
const TRANSPORTS: [&str; 6] = ["usb", "nfc", "ble", "smart-card", "hybrid", "internal"];

/// What a ceremony is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PasskeyGoal {
    SignIn,
    /// One more for whoever is signed in by this session.
    Add(SessionId),
    /// Whoever is signed in by this session proves again who they are.
    StepUp(SessionId),
}

/// What a browser carries, sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PasskeyCeremony {
    pub goal: PasskeyGoal,
    /// As the browser repeats it.
    pub challenge: String,
    began_at: i64,
}

impl PasskeyCeremony {
    pub fn new(goal: PasskeyGoal, now: i64, fill: impl FnOnce(&mut [u8])) -> PasskeyCeremony {
        let mut challenge = [0; 32];
        fill(&mut challenge);
        PasskeyCeremony { goal, challenge: BASE64_URL_SAFE_NO_PAD.encode(challenge), began_at: now }
    }

    /// By hashes: how much of a guess is right takes no measurable time.
    fn fits(&self, challenge: &str) -> bool {
        Sha256::digest(self.challenge.as_bytes()) == Sha256::digest(challenge.as_bytes())
    }

    /// It ends once.
    pub fn used(&self) -> UsedWay {
        let hash = Sha256::digest(format!("passkey {}", self.challenge).as_bytes());
        UsedWay { hash: hash.into(), expires_at: self.began_at + CEREMONY_MS }
    }
}

/// Why a credential is not accepted, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasskeyFault {
    pub field: &'static str,
    pub why: String,
}

fn fault(field: &'static str, why: impl Into<String>) -> PasskeyFault {
    PasskeyFault { field, why: why.into() }
}

const ID: &str = "credential.id";
const CLIENT_DATA: &str = "credential.response.clientDataJSON";
const ATTESTATION: &str = "credential.response.attestationObject";
const AUTHENTICATOR_DATA: &str = "credential.response.authenticatorData";

/// A passkey that was shown as it must be; whose it is, and whether it has signed, comes next.
pub struct ShownProof {
    pub credential_id: Vec<u8>,
    user_handle: Option<Vec<u8>>,
    signed: Vec<u8>,
    signature: Vec<u8>,
    pub sign_count: i64,
    backup_eligible: bool,
    backed_up: bool,
}

impl ShownProof {
    /// Whether this passkey has signed it, for its own person. Where nobody is signed in the
    /// browser must say whose it is.
    pub fn is_of(&self, passkey: &PasskeyRecord, nobody_yet: bool) -> bool {
        let theirs = match &self.user_handle {
            Some(handle) => *handle == passkey.person.0,
            None => !nobody_yet,
        };
        let key = PasskeyKey::read(&passkey.public_key);
        theirs
            && self.backup_eligible == passkey.backup_eligible
            && key.is_some_and(|key| key.has_signed(&self.signed, &self.signature))
    }

    /// Counters grow, or are not used at all.
    pub fn counts_on_from(&self, passkey: &PasskeyRecord) -> bool {
        self.sign_count > passkey.sign_count || (self.sign_count == 0 && passkey.sign_count == 0)
    }

    pub fn used(&self, passkey: &PasskeyRecord) -> UsedPasskey {
        let (sign_count, backed_up) = (self.sign_count, self.backed_up);
        UsedPasskey { id: passkey.id, person: passkey.person, sign_count, backed_up }
    }
}

/// The desk of passkeys; `None` settings: there are none here.
pub struct PasskeyDesk {
    settings: Option<PasskeySettings>,
    secrets: Arc<Secrets>,
}

impl PasskeyDesk {
    pub fn new(settings: Option<&PasskeySettings>, secrets: Arc<Secrets>) -> PasskeyDesk {
        PasskeyDesk { settings: settings.cloned(), secrets }
    }

    pub fn settings(&self) -> Option<&PasskeySettings> {
        self.settings.as_ref()
    }

    /// The domain of passkeys that let somebody in here; nothing where none do.
    pub fn rp_id(&self) -> &str {
        self.settings.as_ref().map_or("", |settings| &settings.rp_id)
    }

    pub fn sealed(&self, ceremony: &PasskeyCeremony, fill: impl FnOnce(&mut [u8])) -> Option<String> {
        let text = serde_json::to_vec(ceremony).ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(self.secrets.seal(PURPOSE, "", &text, fill)?))
    }

    /// A ceremony of this kind that is still open.
    pub fn opened(&self, cookie: &str, goal: PasskeyGoal, now: i64) -> Option<PasskeyCeremony> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let text = self.secrets.open_sealed(PURPOSE, "", &sealed)?;
        let ceremony: PasskeyCeremony = serde_json::from_slice(&text).ok()?;
        let open = (0..CEREMONY_MS).contains(&(now - ceremony.began_at));
        Some(ceremony).filter(|one| open && one.goal == goal)
    }

    /// Judges a passkey that was made (7.1).
    pub fn made(
        &self,
        ceremony: &PasskeyCeremony,
        given: &MadeCredential,
        name: String,
    ) -> Result<NewPasskey, PasskeyFault> {
        let id = identifier(&given.id, &given.raw_id, &given.kind)?;
        self.client_data(ceremony, &given.response.client_data, "webauthn.create")?;
        let wrong = |why: &str| fault(ATTESTATION, why);
        let object = unpacked(&given.response.attestation, data::LONGEST_ATTESTATION).map_err(wrong)?;
        let data = AuthenticatorData::read(attested(&object).map_err(wrong)?).map_err(wrong)?;
        self.authenticator_data(&data, ATTESTATION)?;
        let made = data.made.as_ref().ok_or_else(|| wrong("it has no public key"))?;
        if made.credential_id != id {
            return Err(fault(ID, "it is not the identifier that the authenticator gave"));
        }
        let mut transports: Vec<String> = Vec::new();
        for word in &given.response.transports {
            if TRANSPORTS.contains(&word.as_str()) && !transports.contains(word) {
                transports.push(word.clone());
            }
        }
        Ok(NewPasskey {
            name,
            credential_id: id,
            public_key: made.public_key.to_vec(),
            rp_id: self.rp_id().to_owned(),
            sign_count: i64::from(data.sign_count),
            transports,
            backup_eligible: data.backup_eligible(),
            backed_up: data.backed_up(),
        })
    }

    /// Judges what a passkey says that was shown (7.2), as far as that can be without knowing it.
    pub fn shown(&self, ceremony: &PasskeyCeremony, given: &ShownCredential) -> Result<ShownProof, PasskeyFault> {
        let id = identifier(&given.id, &given.raw_id, &given.kind)?;
        let client = self.client_data(ceremony, &given.response.client_data, "webauthn.get")?;
        let wrong = |why: &str| fault(AUTHENTICATOR_DATA, why);
        let text = &given.response.authenticator_data;
        let bytes = unpacked(text, data::LONGEST_AUTHENTICATOR_DATA).map_err(wrong)?;
        let data = AuthenticatorData::read(&bytes).map_err(wrong)?;
        self.authenticator_data(&data, AUTHENTICATOR_DATA)?;
        if data.made.is_some() {
            return Err(wrong("it has a public key, and none was asked for"));
        }
        let signature = unpacked(&given.response.signature, data::LONGEST_SIGNATURE)
            .map_err(|why| fault("credential.response.signature", why))?;
        let handle = given.response.user_handle.as_deref().map(|text| unpacked(text, data::LONGEST_USER_HANDLE));
        let user_handle = handle.transpose().map_err(|why| fault("credential.response.userHandle", why))?;
        let (backup_eligible, backed_up) = (data.backup_eligible(), data.backed_up());
        let sign_count = i64::from(data.sign_count);
        let signed = [bytes.as_slice(), &Sha256::digest(&client)].concat();
        Ok(ShownProof { credential_id: id, user_handle, signed, signature, sign_count, backup_eligible, backed_up })
    }

    /// The bytes of the client's data, which are good.
    fn client_data(&self, ceremony: &PasskeyCeremony, text: &str, kind: &str) -> Result<Vec<u8>, PasskeyFault> {
        let wrong = |why: &str| fault(CLIENT_DATA, why);
        let bytes = unpacked(text, data::LONGEST_CLIENT_DATA).map_err(wrong)?;
        // A list of the same values would be read too.
        let object = Some(&bytes).filter(|bytes| bytes.first() == Some(&b'{'));
        let client: Option<ClientData> = object.and_then(|bytes| serde_json::from_slice(bytes).ok());
        let client = client
            .ok_or_else(|| wrong("it is not the JSON that browsers write: type, challenge and origin, each once"))?;
        if client.kind != kind {
            return Err(fault(CLIENT_DATA, format!("its `type` must be {kind}")));
        }
        if !ceremony.fits(&client.challenge) {
            return Err(wrong("its `challenge` is not the one that was given"));
        }
        let origins = self.settings.as_ref().map_or(&[][..], |settings| &settings.origins);
        if !origins.contains(&client.origin) {
            return Err(wrong("its `origin` is no page of ours: see public_url and [people.passkeys] origins"));
        }
        if client.cross_origin == Some(true) || client.top_origin.is_some() {
            return Err(wrong("it comes from a frame inside a page of another site"));
        }
        Ok(bytes)
    }

    fn authenticator_data(&self, data: &AuthenticatorData<'_>, field: &'static str) -> Result<(), PasskeyFault> {
        if data.rp_id_hash != Sha256::digest(self.rp_id().as_bytes()).as_slice() {
            return Err(fault(field, "it is for another domain than ours (`rp_id`)"));
        }
        if !data.present() {
            return Err(fault(field, "nobody was there (UP)"));
        }
        if !data.verified() {
            return Err(fault(field, "its user was not verified (UV): by a fingerprint, a face or a PIN"));
        }
        if data.backed_up() && !data.backup_eligible() {
            return Err(fault(field, "it is backed up, and says that it cannot be (BE, BS)"));
        }
        Ok(())
    }
}

fn identifier(id: &str, raw_id: &str, kind: &str) -> Result<Vec<u8>, PasskeyFault> {
    if kind != "public-key" {
        return Err(fault("credential.type", "it must be public-key"));
    }
    let bytes = unpacked(id, data::LONGEST_ID).map_err(|why| fault(ID, why))?;
    if raw_id != id {
        return Err(fault("credential.rawId", "it must be the same as `id`"));
    }
    if bytes.len() < data::SHORTEST_ID {
        return Err(fault(ID, "it has 16 to 1023 bytes"));
    }
    Ok(bytes)
}
