//! People: who they are, what they may do in accounts and in the house, and where they are signed
//! in. The store sees hashes and sealed bytes only; what opens a session never reaches it.
//!
//! Every verb is written once for both engines, as statements that both understand
//! (`person/statement.rs`).

pub mod passkey;
pub(crate) mod statement;

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ids::{AccountId, InviteId, PersonId, SessionId};

/// What somebody may do in an account; each may what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountRole {
    /// Reads everything of the account, changes nothing.
    Viewer,
    /// Makes keys of their own and calls.
    Member,
    /// All of the account.
    Owner,
}

/// What a person may do in the house.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HouseRole {
    /// Reads what operators see, changes nothing.
    Auditor,
    Operator,
}

/// The text is no role of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a role")]
pub struct NotARole;

impl AccountRole {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Owner => "owner",
        }
    }
}

impl FromStr for AccountRole {
    type Err = NotARole;

    fn from_str(word: &str) -> Result<Self, NotARole> {
        [Self::Viewer, Self::Member, Self::Owner].into_iter().find(|role| role.word() == word).ok_or(NotARole)
    }
}

impl HouseRole {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auditor => "auditor",
            Self::Operator => "operator",
        }
    }
}

impl FromStr for HouseRole {
    type Err = NotARole;

    fn from_str(word: &str) -> Result<Self, NotARole> {
        [Self::Auditor, Self::Operator].into_iter().find(|role| role.word() == word).ok_or(NotARole)
    }
}

/// A person as it is stored, with what they may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonRecord {
    #[serde(rename = "person_id")]
    pub id: PersonId,
    /// As it was written.
    pub email: String,
    pub name: String,
    pub locale: String,
    pub time_zone: String,
    /// The name of the account that is made once the e-mail is verified.
    #[serde(skip)]
    pub wished_account: Option<String>,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "verified_at_ms")]
    pub verified_at: Option<i64>,
    #[serde(rename = "disabled_at_ms")]
    pub disabled_at: Option<i64>,
    pub house_role: Option<HouseRole>,
    pub memberships: Vec<Membership>,
}

impl PersonRecord {
    /// How they sign what they do.
    pub fn actor(&self) -> String {
        format!("{} ({})", self.email, self.id)
    }
}

/// A person's role in an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    #[serde(rename = "account_id")]
    pub account: AccountId,
    pub role: AccountRole,
}

impl Membership {
    /// Of what can be edited of it.
    pub fn version(&self, person: PersonId) -> String {
        let text = format!("{} {person} {}", self.account, self.role.word());
        Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Somebody of an account, as its members see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountMember {
    #[serde(rename = "person_id")]
    pub person: PersonId,
    pub email: String,
    pub name: String,
    pub role: AccountRole,
    #[serde(rename = "created_at_ms")]
    pub since: i64,
    /// When one of their sessions was last used.
    #[serde(rename = "seen_at_ms")]
    pub seen_at: Option<i64>,
}

/// By which an e-mail is found: without case, and without what stands around it. Providers of mail
/// differ in what else is the same; nothing else is folded.
pub fn folded_email(email: &str) -> String {
    email.trim().to_lowercase()
}

/// What somebody proves who they are with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCredential {
    pub kind: CredentialKind,
    /// Hashed or sealed.
    pub secret: Vec<u8>,
    /// How it was hashed.
    pub parameters: String,
    /// Of a second factor: the last step that was used.
    pub used_at: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    Password,
    Totp,
    /// Not confirmed by a first code.
    TotpNew,
    Recovery,
}

impl CredentialKind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Totp => "totp",
            Self::TotpNew => "totp_new",
            Self::Recovery => "recovery",
        }
    }

    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Password, Self::Totp, Self::TotpNew, Self::Recovery].into_iter().find(|kind| kind.word() == word)
    }
}

/// A password as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordHash {
    pub secret: Vec<u8>,
    pub parameters: String,
}

/// A one-time token that is mailed or printed; its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMailToken {
    pub hash: [u8; 32],
    pub purpose: TokenPurpose,
    pub expires_at: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPurpose {
    /// The e-mail belongs to its person.
    Verify,
    /// A new password.
    Reset,
    /// One sign-in without a password.
    SignIn,
    /// Whoever has it becomes the first operator.
    FirstOperator,
}

impl TokenPurpose {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Reset => "reset",
            Self::SignIn => "sign_in",
            Self::FirstOperator => "first_operator",
        }
    }
}

/// Wish for a new person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewPerson {
    pub email: String,
    pub name: String,
    pub locale: String,
    pub time_zone: String,
    /// The e-mail is known to be theirs.
    pub verified: bool,
    pub wished_account: Option<String>,
    pub password: Option<PasswordHash>,
    pub house_role: Option<HouseRole>,
    pub membership: Option<Membership>,
    pub token: Option<NewMailToken>,
    /// Mail that is sent about it, sealed.
    pub mail: Option<Vec<u8>>,
}

/// A session that begins.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Of the cookie's value.
    pub hash: [u8; 32],
    pub person: PersonId,
    pub address: String,
    pub agent: String,
    /// The session whose cookie was sent along; it ends.
    pub replaces: Option<[u8; 32]>,
    /// They have proved just now who they are; an issuer may have vouched for somebody of
    /// yesterday.
    pub strong: bool,
    /// What an issuer says that they may do in the house, as long as the session lasts.
    pub issuer_role: Option<HouseRole>,
}

/// Who somebody is at an issuer of OpenID Connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerSubject {
    pub issuer: String,
    pub subject: String,
    /// What the issuer said, for people to recognise it.
    pub email: String,
    /// What they may do in the house, by the groups they are in there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub house_role: Option<HouseRole>,
}

/// The same as its person sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerLink {
    #[serde(flatten)]
    pub is: IssuerSubject,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "used_at_ms")]
    pub used_at: i64,
}

/// A way through an issuer that comes to its end: once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedWay {
    pub hash: [u8; 32],
    pub expires_at: i64,
}

/// A second factor that is used with a change: once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedCode {
    /// The step of a time-based code.
    Totp(i64),
    /// The hash of a recovery code.
    Recovery([u8; 32]),
}

/// A session and its person.
#[derive(Clone, Debug)]
pub struct FoundSession {
    pub session: SessionRecord,
    pub person: PersonRecord,
    /// The account that they look at as its customers see it.
    pub viewing: Option<AccountView>,
}

/// Somebody of the house looks at an account, until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    #[serde(rename = "account_id")]
    pub account: AccountId,
    #[serde(rename = "until_ms")]
    pub until: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    #[serde(rename = "session_id")]
    pub id: SessionId,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "seen_at_ms")]
    pub seen_at: i64,
    #[serde(rename = "strong_at_ms")]
    pub strong_at: i64,
    pub address: String,
    pub agent: String,
}

/// What somebody is invited into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum InvitedInto {
    Account { account_id: AccountId, role: AccountRole },
    House { house_role: HouseRole },
}

/// Wish for an invite.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewInvite {
    pub hash: [u8; 32],
    pub email: String,
    pub into: InvitedInto,
    pub expires_at: i64,
    pub mail: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteRecord {
    #[serde(rename = "invite_id")]
    pub id: InviteId,
    pub email: String,
    #[serde(flatten)]
    pub into: InvitedInto,
    pub invited_by: String,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: i64,
}

/// Mail that is to be sent now.
#[derive(Clone, Debug)]
pub struct DueMail {
    pub id: [u8; 16],
    pub sealed: Vec<u8>,
    pub tries: i64,
    pub created_at: i64,
}
