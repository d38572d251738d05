//! Alerts: what is watched for operators, where they hear of it, what fires and what fired. Rules
//! are rows, so that they change while the house runs. That something changed is written together
//! with what is to be sent about it, in one transaction: whoever dies in between loses nothing, and
//! of two replicas one writes it.

pub(crate) mod notice;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::ids::{AccountId, AlertEventId, AlertPlaceId, AlertRuleId};

pub const MOST_ALERT_RULES: i64 = 100;
pub const MOST_ALERT_PLACES: i64 = 50;
/// Accounts that one rule watches, and so the most for which it fires.
pub const MOST_ALERT_SUBJECTS: usize = 100;
/// News of operators that wait to be sent; what comes on top is in the list of what fired, and
/// nowhere else. Of accounts there are ten times as many.
pub(crate) const MOST_WAITING: i64 = 1_000;
/// News of one rule that are sent within a day: one that swings says nothing more after that.
pub(crate) const MOST_A_DAY: i64 = 48;
pub(crate) const DAY_MS: i64 = 86_400_000;

/// How a place is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertPlaceKind {
    /// Standard Webhooks, signed.
    Webhook,
    Mail,
    Slack,
    Discord,
    Feishu,
    Dingtalk,
    Wecom,
    Telegram,
}

impl AlertPlaceKind {
    pub const ALL: [AlertPlaceKind; 8] = [
        Self::Webhook,
        Self::Mail,
        Self::Slack,
        Self::Discord,
        Self::Feishu,
        Self::Dingtalk,
        Self::Wecom,
        Self::Telegram,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Mail => "mail",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Feishu => "feishu",
            Self::Dingtalk => "dingtalk",
            Self::Wecom => "wecom",
            Self::Telegram => "telegram",
        }
    }
}

impl FromStr for AlertPlaceKind {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.word() == word).ok_or(())
    }
}

/// A place that is to be. The store sees of its address what may be shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAlertPlace {
    pub name: String,
    pub kind: AlertPlaceKind,
    /// The host, or whom mail goes to.
    pub shown: String,
    /// Address and secret.
    pub sealed: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertPlace {
    #[serde(rename = "place_id")]
    pub id: AlertPlaceId,
    pub name: String,
    pub kind: AlertPlaceKind,
    pub shown: String,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
}

/// A place with its sealed address.
#[derive(Clone, Debug)]
pub struct SealedAlertPlace {
    pub place: AlertPlace,
    pub sealed: Vec<u8>,
}

/// What is watched. Amounts are nano-USD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AlertCondition {
    /// What an account has, held money included, is below a bound.
    Balance { accounts: Vec<AccountId>, amount_nano_usd: i64 },
    /// An account, or with none named the house, was charged so much within the window.
    Spend { accounts: Vec<AccountId>, amount_nano_usd: i64, window_minutes: i64 },
    /// So many attempts of a provider, or calls of a model, failed, and at least this share.
    Faults { model: Option<String>, provider: Option<String>, percent: i64, count: i64, window_minutes: i64 },
    /// So many tasks whose state nobody knows for so long.
    UnknownTasks { count: i64, minutes: i64 },
    /// An audit of the ledger found something, or there was none for so long.
    Drift { minutes: i64 },
    /// The disk of a replica has less than so many bytes free.
    Disk { bytes: i64 },
    /// The certificate of a replica's port ends within so many days.
    Certificate { days: i64 },
    /// A key of an account, or with none named one of the operators, ends within so many days.
    KeyEnd { accounts: Vec<AccountId>, days: i64 },
}

impl AlertCondition {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Balance { .. } => "balance",
            Self::Spend { .. } => "spend",
            Self::Faults { .. } => "faults",
            Self::UnknownTasks { .. } => "unknown_tasks",
            Self::Drift { .. } => "drift",
            Self::Disk { .. } => "disk",
            Self::Certificate { .. } => "certificate",
            Self::KeyEnd { .. } => "key_end",
        }
    }

    /// What is wrong with it, whoever made it.
    fn checked(&self) -> Result<(), StoreError> {
        let within = |name: &str, value: i64, least: i64, most: i64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(StoreError::Conflict(format!("`{name}` is from {least} to {most}"))),
        };
        let few = |accounts: &[AccountId]| match accounts.len() <= MOST_ALERT_SUBJECTS {
            true => Ok(()),
            false => Err(StoreError::Conflict(format!("a rule watches at most {MOST_ALERT_SUBJECTS} accounts"))),
        };
        match self {
            Self::Balance { accounts, .. } if accounts.is_empty() => {
                Err(StoreError::Conflict("a rule of balances names accounts".into()))
            }
            Self::Balance { accounts, amount_nano_usd } => {
                within("amount_nano_usd", *amount_nano_usd, 1, i64::MAX / 4).and(few(accounts))
            }
            Self::Spend { accounts, amount_nano_usd, window_minutes } => {
                within("amount_nano_usd", *amount_nano_usd, 1, i64::MAX / 4)
                    .and(within("window_minutes", *window_minutes, 15, 1_440))
                    .and(few(accounts))
            }
            Self::Faults { percent, count, window_minutes, .. } => within("percent", *percent, 1, 100)
                .and(within("count", *count, 1, 1_000_000_000))
                .and(within("window_minutes", *window_minutes, 15, 1_440)),
            Self::UnknownTasks { count, minutes } => {
                within("count", *count, 1, 1_000).and(within("minutes", *minutes, 1, 100_000))
            }
            Self::Drift { minutes } => within("minutes", *minutes, 90, 100_000),
            Self::Disk { bytes } => within("bytes", *bytes, 1, i64::MAX / 4),
            Self::Certificate { days } => within("days", *days, 1, 1_000),
            Self::KeyEnd { accounts, days } => within("days", *days, 1, 1_000).and(few(accounts)),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAlertRule {
    pub name: String,
    pub condition: AlertCondition,
    pub places: Vec<AlertPlaceId>,
}

impl NewAlertRule {
    pub(crate) fn checked(&self) -> Result<(), StoreError> {
        named(&self.name)?;
        if self.places.len() > 20 {
            return Err(StoreError::Conflict("a rule has at most 20 places".into()));
        }
        self.condition.checked()
    }
}

pub(crate) fn named(name: &str) -> Result<(), StoreError> {
    let length = name.trim().chars().count();
    let fits = (1..=100).contains(&length) && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(StoreError::Conflict("a name has 1 to 100 characters".into())) }
}

/// What is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertChange {
    pub name: Option<String>,
    pub condition: Option<AlertCondition>,
    pub places: Option<Vec<AlertPlaceId>>,
    pub enabled: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertRule {
    #[serde(rename = "rule_id")]
    pub id: AlertRuleId,
    pub name: String,
    pub condition: AlertCondition,
    pub places: Vec<AlertPlaceId>,
    pub enabled: bool,
    /// Nothing is sent before this moment.
    #[serde(rename = "silenced_until_ms")]
    pub silenced_until: Option<i64>,
    pub silence_reason: Option<String>,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "changed_at_ms")]
    pub changed_at: i64,
}

impl AlertRule {
    pub fn is_silent_at(&self, now: i64) -> bool {
        self.silenced_until.is_some_and(|until| until > now)
    }
}

/// Until when nothing is sent, and why; nothing: it is sent again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AlertSilence {
    pub until_ms: Option<i64>,
}

/// A rule that fires for a subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertFiring {
    pub rule_id: AlertRuleId,
    pub subject: String,
    #[serde(rename = "since_ms")]
    pub since: i64,
    #[serde(rename = "notified_at_ms")]
    pub notified_at: Option<i64>,
    pub message: String,
}

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertMove {
    Firing,
    /// It still fires, a day after somebody last heard of it.
    Reminder,
    Cleared,
    /// Sent by hand.
    Test,
}

impl AlertMove {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Firing => "firing",
            Self::Reminder => "reminder",
            Self::Cleared => "cleared",
            Self::Test => "test",
        }
    }
}

impl FromStr for AlertMove {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Self::Firing, Self::Reminder, Self::Cleared, Self::Test].into_iter().find(|one| one.word() == word).ok_or(())
    }
}

/// What is said about it, as it waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertNews {
    pub what: AlertMove,
    pub rule: String,
    pub kind: String,
    pub subject: String,
    pub message: String,
    pub at_ms: i64,
}

/// Something that fired or ceased to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertEvent {
    #[serde(rename = "alert_id")]
    pub id: AlertEventId,
    pub rule_id: AlertRuleId,
    pub subject: String,
    pub what: AlertMove,
    #[serde(rename = "at_ms")]
    pub at: i64,
    pub message: String,
    /// Somebody was to hear of it: it was not silenced, and not one too many of a day.
    pub sent: bool,
    pub deliveries: Vec<AlertDelivery>,
}

/// One of the places, and what it said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertDelivery {
    pub place_id: Option<AlertPlaceId>,
    pub tries: i64,
    pub status: Option<i64>,
    /// `waiting`, `delivered`, `refused`, `not_reached`, `given_up`.
    pub outcome: String,
}

/// News that are to be sent now, by whoever took them.
#[derive(Clone, Debug)]
pub struct DueAlert {
    pub id: [u8; 16],
    pub event: AlertEventId,
    pub place: Option<AlertPlaceId>,
    pub account: Option<AccountId>,
    /// As it was queued: [`AlertNews`], or what a customer hears.
    pub news: String,
    pub created_at: i64,
    /// This one counted.
    pub tries: i64,
    pub(crate) lease: i64,
}

impl DueAlert {
    /// The place or the account.
    pub fn whose(&self) -> [u8; 16] {
        self.place.map(|place| place.0).or(self.account.map(|account| account.0)).unwrap_or_default()
    }
}

/// What a replica saw of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertFact {
    pub replica: String,
    pub value: i64,
    pub at: i64,
}
