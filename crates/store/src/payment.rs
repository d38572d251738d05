//! Money that customers pay in: an order is written down before anybody is asked for money, and
//! every later change of it is a step with a version, so that replicas and repeated news of one
//! payment agree. Credit enters the ledger in the transaction that changes the order (`plan.rs`).

pub(crate) mod plan;

use serde::{Deserialize, Serialize};
use tollgate_catalog::Money;

use crate::account::Account;
use crate::error::StoreError;
use crate::ids::{AccountId, OrderId};

/// The most orders of a page.
pub(crate) const ORDERS_PAGE: u32 = 500;

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// Written down; the payment provider has not been asked yet, or did not answer.
    New,
    /// The customer can pay.
    Pending,
    /// Paid, and not credited yet.
    Paid,
    Credited,
    Expired,
    Failed,
    /// All of it was given back to the customer by the payment provider.
    Refunded,
    /// The customer's bank takes it back, or has done so.
    Disputed,
    /// What was paid is not what was ordered: an operator must look.
    Mismatch,
}

impl OrderState {
    pub const ALL: [Self; 9] = [
        Self::New,
        Self::Pending,
        Self::Paid,
        Self::Credited,
        Self::Expired,
        Self::Failed,
        Self::Refunded,
        Self::Disputed,
        Self::Mismatch,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Credited => "credited",
            Self::Expired => "expired",
            Self::Failed => "failed",
            Self::Refunded => "refunded",
            Self::Disputed => "disputed",
            Self::Mismatch => "mismatch",
        }
    }

    /// The customer may still pay, as far as we know.
    pub fn is_open(self) -> bool {
        matches!(self, Self::New | Self::Pending)
    }
}

/// An order as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayOrder {
    #[serde(rename = "order_id")]
    pub id: OrderId,
    #[serde(rename = "account_id")]
    pub account: AccountId,
    /// Who takes the money: `stripe`.
    pub provider: String,
    /// In the smallest unit of the currency.
    pub amount_minor: i64,
    /// Three lower-case letters.
    pub currency: String,
    /// What is credited for it, by the rate of the day it was made.
    #[serde(rename = "credit_nano_usd")]
    pub credit: Money,
    /// Real money, not that of a test.
    pub live: bool,
    pub state: OrderState,
    /// The payment provider's id of the page where it is paid.
    pub session: Option<String>,
    /// The payment provider's id of the payment.
    pub payment: Option<String>,
    /// Where it is paid.
    pub url: Option<String>,
    #[serde(rename = "created_at_ms")]
    pub created_at: i64,
    #[serde(rename = "changed_at_ms")]
    pub changed_at: i64,
    #[serde(rename = "expires_at_ms")]
    pub expires_at: i64,
    #[serde(rename = "credited_at_ms")]
    pub credited_at: Option<i64>,
    /// What the payment provider has given back.
    pub refunded_minor: i64,
    /// What a bank has taken back, or holds back while it looks.
    pub disputed_minor: i64,
    /// Taken out of the account again.
    #[serde(rename = "taken_back_nano_usd")]
    pub taken: Money,
    /// To be taken out of it, once it has money.
    #[serde(rename = "owed_nano_usd")]
    pub owed: Money,
    /// An operator has let go of it.
    #[serde(rename = "forgiven_nano_usd")]
    pub forgiven: Money,
    /// What is wrong with it, for people.
    pub note: String,
    /// Who asked for it.
    pub actor: String,
    /// The account was suspended because of it.
    pub stops_account: bool,
    /// Entries that took credit back or gave it again.
    pub moves: u32,
    /// How often the payment provider was asked about it since the last change.
    pub looks: u32,
    /// When the payment provider is asked about it next; none: never.
    pub next_look_at: Option<i64>,
    /// Counts its changes.
    pub version: i64,
}

/// Wish for a new order.
#[derive(Clone, Debug)]
pub struct NewOrder {
    pub account: AccountId,
    pub provider: String,
    pub amount_minor: i64,
    pub currency: String,
    pub credit: Money,
    pub live: bool,
    pub expires_at: i64,
    pub next_look_at: i64,
    pub actor: String,
    /// What makes a repeated wish the same order.
    pub idem: Option<OrderIdem>,
}

/// The caller's own name of an order, and of what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderIdem {
    pub key_hash: [u8; 32],
    pub fingerprint: [u8; 32],
}

impl NewOrder {
    pub(crate) fn made(&self, id: OrderId, now: i64) -> Result<PayOrder, StoreError> {
        crate::ledger::bounds::amount(self.credit)?;
        if self.amount_minor <= 0 || self.credit.nano() <= 0 {
            return Err(StoreError::Conflict("the amount must be above zero".into()));
        }
        Ok(PayOrder {
            id,
            account: self.account,
            provider: self.provider.clone(),
            amount_minor: self.amount_minor,
            currency: self.currency.clone(),
            credit: self.credit,
            live: self.live,
            state: OrderState::New,
            session: None,
            payment: None,
            url: None,
            created_at: now,
            changed_at: now,
            expires_at: self.expires_at,
            credited_at: None,
            refunded_minor: 0,
            disputed_minor: 0,
            taken: Money::ZERO,
            owed: Money::ZERO,
            forgiven: Money::ZERO,
            note: String::new(),
            actor: self.actor.clone(),
            stops_account: false,
            moves: 0,
            looks: 0,
            next_look_at: Some(self.next_look_at),
            version: 1,
        })
    }
}

/// How many orders an account may have.
#[derive(Clone, Copy, Debug)]
pub struct OrderLimits {
    /// That wait to be paid.
    pub open: u32,
    /// Made within an hour.
    pub hour: u32,
}

/// What became of a wish for an order.
#[derive(Clone, Debug)]
pub enum OrderMade {
    Made(Box<PayOrder>),
    /// The same wish was heard before.
    Before(Box<PayOrder>),
    /// The same key came with another wish.
    OtherWish,
    TooManyOpen,
    TooManyInAnHour,
}

pub(crate) const HOUR_MS: i64 = 3_600_000;

/// Which orders are wanted, newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderFilter {
    pub account: Option<AccountId>,
    pub state: Option<OrderState>,
    /// The last order of the page before.
    pub before: Option<OrderId>,
    pub limit: u32,
}

/// What a payment provider says about a payment has become of its order.
#[derive(Clone, Debug)]
pub struct OrderSettled {
    pub order: PayOrder,
    pub account: Account,
    /// Something was changed.
    pub changed: bool,
    /// The credit entered the ledger just now.
    pub credited: bool,
}

/// News of a payment provider: that there is something to look at, and nothing else. What is true
/// is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayEvent {
    /// The payment provider's own id.
    pub id: String,
    pub provider: String,
    /// Its own word.
    pub kind: String,
    /// Our order, where it says so.
    pub order: Option<OrderId>,
    /// A session or a payment of the provider.
    pub subject: Option<String>,
    pub received_at: i64,
    pub tries: u32,
    pub next_at: i64,
}
