//! What a browser sends of a passkey: the client's data, and the authenticator's (WebAuthn Level 3,
//! 5.8.1 and 6.1). Read strictly, within bounds; what it says is judged by the desk.

use super::cbor::{self, CborValue};
use super::cose::PasskeyKey;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;

/// Decoded.
pub const LONGEST_CLIENT_DATA: usize = 4 << 10;
pub const LONGEST_ATTESTATION: usize = 16 << 10;
pub const LONGEST_AUTHENTICATOR_DATA: usize = 4 << 10;
pub const LONGEST_SIGNATURE: usize = 512;
pub const LONGEST_USER_HANDLE: usize = 64;
/// 100 random bits at least, and the most that the standard has (4.).
pub const SHORTEST_ID: usize = 16;
pub const LONGEST_ID: usize = 1_023;

/// As `PublicKeyCredential.toJSON()` writes one that was made. Members that are not here are of no
/// use to us.
#[derive(Debug, Deserialize)]
pub struct MadeCredential {
    pub id: String,
    #[serde(rename = "rawId")]
    pub raw_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub response: MadeResponse,
}

#[derive(Debug, Deserialize)]
pub struct MadeResponse {
    #[serde(rename = "clientDataJSON")]
    pub client_data: String,
    #[serde(rename = "attestationObject")]
    pub attestation: String,
    #[serde(default)]
    pub transports: Vec<String>,
}

/// The same for one that was shown.
#[derive(Debug, Deserialize)]
pub struct ShownCredential {
    pub id: String,
    #[serde(rename = "rawId")]
    pub raw_id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub response: ShownResponse,
}

#[derive(Debug, Deserialize)]
pub struct ShownResponse {
    #[serde(rename = "clientDataJSON")]
    pub client_data: String,
    #[serde(rename = "authenticatorData")]
    pub authenticator_data: String,
    pub signature: String,
    #[serde(rename = "userHandle", default)]
    pub user_handle: Option<String>,
}

/// What the browser says of the page that asked. A member that is there twice is refused.
#[derive(Debug, Deserialize)]
pub struct ClientData {
    #[serde(rename = "type")]
    pub kind: String,
    pub challenge: String,
    pub origin: String,
    #[serde(rename = "crossOrigin", default)]
    pub cross_origin: Option<bool>,
    #[serde(rename = "topOrigin", default)]
    pub top_origin: Option<String>,
}

/// What the authenticator says.
#[derive(Debug)]
pub struct AuthenticatorData<'a> {
    pub rp_id_hash: &'a [u8],
    flags: u8,
    pub sign_count: u32,
    pub made: Option<MadeKey<'a>>,
}

/// The passkey that it has made.
#[derive(Debug)]
pub struct MadeKey<'a> {
    pub credential_id: &'a [u8],
    /// As it is stored.
    pub public_key: &'a [u8],
}

const EXTENSIONS: u8 = 1 << 7;
const ATTESTED: u8 = 1 << 6;

impl<'a> AuthenticatorData<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<AuthenticatorData<'a>, &'static str> {
        let short = "it breaks off";
        let (rp_id_hash, rest) = bytes.split_at_checked(32).ok_or(short)?;
        let (&flags, rest) = rest.split_first().ok_or(short)?;
        let (count, mut rest) = rest.split_first_chunk::<4>().ok_or(short)?;
        let mut made = None;
        if flags & ATTESTED != 0 {
            let (_aaguid, after) = rest.split_at_checked(16).ok_or(short)?;
            let (length, after) = after.split_first_chunk::<2>().ok_or(short)?;
            let length = usize::from(u16::from_be_bytes(*length));
            if !(SHORTEST_ID..=LONGEST_ID).contains(&length) {
                return Err("the identifier of a passkey has 16 to 1023 bytes");
            }
            let (credential_id, after) = after.split_at_checked(length).ok_or(short)?;
            let (_, behind) = PasskeyKey::first(after)?;
            let public_key = after.get(..after.len() - behind.len()).ok_or(short)?;
            made = Some(MadeKey { credential_id, public_key });
            rest = behind;
        }
        if flags & EXTENSIONS != 0 {
            let (extensions, behind) = cbor::first(rest)?;
            if !matches!(extensions, CborValue::Map(_)) {
                return Err("its extensions are no map");
            }
            rest = behind;
        }
        if !rest.is_empty() {
            return Err("bytes follow its end");
        }
        Ok(AuthenticatorData { rp_id_hash, flags, sign_count: u32::from_be_bytes(*count), made })
    }

    pub fn present(&self) -> bool {
        self.flags & 1 != 0
    }

    pub fn verified(&self) -> bool {
        self.flags & (1 << 2) != 0
    }

    pub fn backup_eligible(&self) -> bool {
        self.flags & (1 << 3) != 0
    }

    pub fn backed_up(&self) -> bool {
        self.flags & (1 << 4) != 0
    }
}

/// The authenticator's data inside an attestation object. We ask for no attestation, so whatever
/// stands in its statement is not looked at; where there is none, it must be empty.
pub fn attested(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let object = cbor::whole(bytes)?;
    let member = |name: &'static str| object.get(&CborValue::Text(name));
    let Some(CborValue::Text(format)) = member("fmt") else { return Err("`fmt` is missing") };
    let Some(CborValue::Map(statement)) = member("attStmt") else { return Err("`attStmt` is missing") };
    if *format == "none" && !statement.is_empty() {
        return Err("`attStmt` must be empty where `fmt` is none");
    }
    member("authData").and_then(CborValue::bytes).ok_or("`authData` is missing")
}

/// Unpadded base64url, so long at most.
pub fn unpacked(text: &str, longest: usize) -> Result<Vec<u8>, &'static str> {
    if text.len() > longest.div_ceil(3) * 4 {
        return Err("it is too long");
    }
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| "it is not base64url without padding")?;
    if bytes.len() > longest { Err("it is too long") } else { Ok(bytes) }
}
