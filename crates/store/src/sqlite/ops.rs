//! What the writer thread is asked to write. Money was decided when an operation was queued; here it is only data
//! (credits excepted: whether one was applied before is known to the database alone).

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::oneshot;
use tollgate_catalog::Price;

use crate::account::{Account, Credit, Key};
use crate::call::{Ending, Idem, StoredReply, UsageFacts};
use crate::error::StoreError;
use crate::group::Group;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::{Pots, Settlement};

pub(super) enum Op {
    Hold(Box<HoldOp>),
    Extend(Box<ExtendOp>),
    Close(Box<CloseOp>),
    Refusal(Box<RefusalOp>),
    Account(Box<Account>, Reply<()>),
    Key(Box<Key>, Reply<()>),
    Revoke(KeyId, i64, Reply<()>),
    Credit(Box<CreditOp>, Reply<CreditDone>),
    ForgetIdem { before: i64, reply: Reply<u64> },
}

impl Op {
    /// The call it belongs to, if any.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::Hold(op) => Some(op.call),
            Self::Extend(op) => Some(op.call),
            Self::Close(op) => Some(op.call),
            Self::Refusal(op) => Some(op.call),
            _ => None,
        }
    }
}

/// Where the outcome goes after the commit.
pub(super) type Reply<T> = Option<oneshot::Sender<Result<T, StoreError>>>;

pub(super) struct HoldOp {
    pub call: CallId,
    pub account: AccountId,
    pub key: KeyId,
    pub pots: Pots,
    pub price: Arc<Price>,
    pub model: String,
    pub endpoint: &'static str,
    pub paid_only: bool,
    pub expires_at: i64,
    pub at: i64,
    pub idem: Option<Idem>,
}

pub(super) struct ExtendOp {
    pub call: CallId,
    pub account: AccountId,
    pub key: KeyId,
    pub step: u32,
    pub pots: Pots,
    pub at: i64,
}

pub(super) struct CloseOp {
    pub call: CallId,
    pub account: AccountId,
    /// The key of the hold, whatever the row says.
    pub key: KeyId,
    pub at: i64,
    pub ending: Ending,
    pub reason: String,
    pub held: Pots,
    pub settlement: Settlement,
    pub price_id: [u8; 16],
    pub row: UsageFacts,
    pub idem: Option<IdemEnd>,
}

/// What becomes of the call's idempotency key.
pub(super) struct IdemEnd {
    pub key_hash: [u8; 32],
    /// `false`: nothing was charged or answered, the client may try again.
    pub keep: bool,
    pub reply: Option<StoredReply>,
}

/// The row of a call without a hold: refused, or its hold was lost in a crash.
pub(super) struct RefusalOp {
    pub call: CallId,
    pub account: AccountId,
    pub ending: Ending,
    pub reason: String,
    pub row: UsageFacts,
}

pub(super) struct CreditOp {
    pub credit: Credit,
    pub at: i64,
    /// Taken from the books in memory already (a negative adjustment); given back if it was applied before.
    pub taken: Pots,
}

/// What a credit did.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreditDone {
    pub applied: bool,
    pub added: Pots,
    /// Spending given back to a key by a refund.
    pub unspent: Option<(KeyId, i64)>,
}

/// A hold that has no terminal entry yet.
pub(super) struct Open {
    pub account: AccountId,
    pub key: KeyId,
    /// The hold and its extensions.
    pub held: Pots,
    /// The last extension of this process: its step, operation and group.
    pub extended: Option<(u32, u64, Arc<Group>)>,
    pub paid_only: bool,
    pub at: i64,
    pub expires_at: i64,
    pub price_id: [u8; 16],
    pub model: String,
    pub endpoint: Cow<'static, str>,
    pub idem: Option<[u8; 32]>,
}
