//! What whoever manages an account asks for beside its records: a new secret of a key, the answer
//! to a change that is repeated, tries of webhooks, and rows of the usage log by what they are
//! about.

use serde::Serialize;

use crate::account::{Account, Key};
use crate::ids::{AccountId, CallId, PersonId, TaskId};
use crate::sums::{SumViewer, UsageFilter};
use sha2::{Digest, Sha256};

/// Secrets of one key that still work beside its own.
pub(crate) const MOST_FORMER: u32 = 3;
/// How long a secret that has ended is remembered.
pub(crate) const FORMER_REMEMBERED_MS: i64 = 86_400_000;
/// How long the reply to a change is remembered, and how many of one owner.
pub(crate) const REPLY_REMEMBERED_MS: i64 = 86_400_000;
pub(crate) const MOST_REPLIES: u32 = 1_000;
/// Tries of webhooks that are remembered of one account.
pub(crate) const MOST_DELIVERIES: u32 = 500;

/// A change that may be repeated.
#[derive(Clone, Debug)]
pub struct ChangeKey {
    /// Whose key it is: two owners may use the same.
    pub owner: String,
    pub key_hash: [u8; 32],
    pub fingerprint: [u8; 32],
}

/// What is known of a change that may be a repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeClaim {
    /// It is new, and now under way.
    Begun,
    /// It was made, with this status and answer.
    Before(u16, String),
    /// It is under way, or broke off: nobody knows whether it was made.
    UnderWay,
    /// The key came with another request.
    Another,
    /// Too many of this owner are remembered.
    Full,
}

/// A try to deliver a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookTry {
    pub seq: i64,
    pub task_id: TaskId,
    pub at_ms: i64,
    pub url: String,
    /// The first is 1.
    pub attempt: u32,
    /// What the receiver answered; nothing where it was not reached.
    pub status: Option<u16>,
    /// `delivered`, `refused` or `not_reached`.
    pub outcome: String,
}

/// Whose calls somebody may read: all of an account, or those of the keys that one person made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallReach {
    pub account: AccountId,
    pub person: Option<PersonId>,
}

impl From<AccountId> for CallReach {
    fn from(account: AccountId) -> CallReach {
        CallReach { account, person: None }
    }
}

impl CallReach {
    pub fn is_whole(&self) -> bool {
        self.person.is_none()
    }

    /// The same for questions about sums.
    pub fn viewer(self) -> SumViewer {
        match self.person {
            Some(person) => SumViewer::Person(self.account, person),
            None => SumViewer::Customer(self.account),
        }
    }

    /// All rows of the usage log that it has.
    pub fn filter(self) -> UsageFilter {
        UsageFilter { account: Some(self.account), made_by: self.person, ..UsageFilter::default() }
    }
}

/// Rows of the usage log, newest first.
#[derive(Clone, Debug)]
pub struct UsageSearch {
    pub filter: UsageFilter,
    /// Of calls that began from here to before there.
    pub from_ms: i64,
    pub to_ms: i64,
    /// The last row of the page before.
    pub before: Option<CallId>,
    pub limit: u32,
}

/// What an operator looks for an account by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountSearch {
    Id(AccountId),
    Call(CallId),
    /// The first characters of a key.
    KeyPrefix(String),
    /// A part of a name, in any case.
    Name(String),
}

/// Of what can be edited: another version is another text.
fn version(of: &impl Serialize) -> String {
    let text = serde_json::to_string(of).unwrap_or_default();
    Sha256::digest(text)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Account {
    /// The version of what can be changed in it.
    pub fn version(&self) -> String {
        let set = (&self.webhook_url, self.members_see_all);
        version(&(&self.name, &self.groups, &self.limits, self.suspended_at.is_some(), set))
    }
}

impl Key {
    /// The version of what can be changed in it.
    pub fn version(&self) -> String {
        let may = (&self.models, &self.cidrs, &self.limits, self.expires_at);
        version(&(&self.name, may, self.revoked_at.is_some(), &self.prefix))
    }
}
