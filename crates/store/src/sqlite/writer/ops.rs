//! What the writer thread is asked to write. Money was decided when an operation was queued; here
//! it is only data (credits excepted: whether one was applied before is known to the database
//! alone).

use std::borrow::Cow;
use std::sync::Arc;

use tokio::sync::oneshot;
use tollgate_catalog::Price;

use crate::account::limits::Used;
use crate::account::lots::{CreditKey, Lapse, Lot, Parts};
use crate::account::{Account, Credit, Key};
use crate::call::group::CommitGroup;
use crate::call::{Ending, Idem, StoredReply, UsageFacts};
use crate::clock::Saved;
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::{Pots, Settlement};
use crate::operator::Attribution;
use crate::person::statement::PersonStatement;
use crate::receipt::KeyRecord;
use crate::sqlite::changes::ChangeOp;
use crate::sqlite::client_secrets::ClientSecretOp;
use crate::sqlite::fold::FoldStep;
use crate::sqlite::manage::ManageOp;
use crate::sqlite::operator::OperatorOp;
use crate::sqlite::payments::{MoneyDone, MoneyOp};
use crate::sqlite::probes::ProbeOp;
use crate::sqlite::route_health::RouteHealthOp;
use crate::sqlite::social::SocialOp;
use crate::sqlite::tasks::rows::{TaskDone, TaskOp};
use crate::sqlite::workflow_runs::WorkflowRunOp;
use crate::task::{NewTask, Webhook, WebhookWish};

pub(in crate::sqlite) enum Op {
    Hold(Box<HoldOp>),
    Extend(Box<ExtendOp>),
    Close(Box<CloseOp>),
    Refusal(Box<RefusalOp>),
    Account(Box<(Account, Attribution)>, CommitReply<()>),
    Key(Box<(Key, Attribution)>, CommitReply<()>),
    Revoke(Box<(KeyId, i64, Attribution)>, CommitReply<()>),
    Change(Box<ChangeOp>, CommitReply<()>),
    /// Where an account hears of its tasks.
    Webhook(Box<(AccountId, Option<String>, i64, Attribution)>, CommitReply<()>),
    Lapse(Box<LapseOp>),
    /// What the next start must know of the time.
    Clock(Saved),
    /// What counts in the day and month, after an operation was taken back.
    Recount(AccountId, KeyId, Spent),
    Credit(Box<CreditOp>, CommitReply<CreditDone>),
    ReceiptKey(Box<KeyRecord>, CommitReply<()>),
    SigningSecrets(Vec<String>, i64, CommitReply<()>),
    Social(Box<SocialOp>, CommitReply<()>),
    ClientSecret(Box<ClientSecretOp>, CommitReply<u64>),
    Manage(Box<ManageOp>, CommitReply<u64>),
    WorkflowRun(Box<WorkflowRunOp>, CommitReply<u64>),
    RouteHealth(Box<RouteHealthOp>, CommitReply<()>),
    Probe(Box<ProbeOp>, CommitReply<u64>),
    Task(Box<TaskOp>, CommitReply<()>),
    TakeWebhooks {
        now: i64,
        until: i64,
        wish: WebhookWish,
        reply: CommitReply<Vec<Webhook>>,
    },
    Operator(Box<OperatorOp>, CommitReply<()>),
    Money(Box<MoneyOp>, CommitReply<MoneyDone>),
    People(Vec<PersonStatement>, CommitReply<u64>),
    /// So many rows of the usage log from before there were sums.
    FillSums(i64, CommitReply<u64>),
    /// One day of sums, added up.
    FoldSums(Box<FoldStep>, CommitReply<u64>),
    ForgetIdem {
        before: i64,
        reply: CommitReply<u64>,
    },
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

    /// The account whose ledger it goes on, and when.
    pub fn dated(&self) -> Option<(AccountId, i64)> {
        let credit = |op: &CreditOp| (op.credit.account, op.at);
        match self {
            Self::Hold(op) => Some((op.account, op.at)),
            Self::Extend(op) => Some((op.account, op.at)),
            Self::Close(op) => Some((op.account, op.at)),
            Self::Lapse(op) => Some((op.account, op.at)),
            Self::Credit(op, _) => Some(credit(op)),
            Self::Money(op, _) => op.credit().map(credit),
            _ => None,
        }
    }
}

/// What counts in the current day and month once an operation is done.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::sqlite) struct Spent {
    pub account: Used,
    pub key: Used,
}

/// What an operation moves in a lot of trial credit: (credit, free, held).
pub(in crate::sqlite) type LotMove = (CreditKey, i64, i64);

/// Where the outcome goes after the commit.
pub(in crate::sqlite) type CommitReply<T> = Option<oneshot::Sender<Result<T, StoreError>>>;

pub(in crate::sqlite) struct HoldOp {
    pub call: CallId,
    pub account: AccountId,
    pub key: KeyId,
    pub pots: Pots,
    pub lots: Parts,
    pub spent: Spent,
    pub price_id: [u8; 16],
    /// Nothing where the database is known to have it.
    pub price: Option<Arc<Price>>,
    pub model: String,
    pub endpoint: Cow<'static, str>,
    pub paid_only: bool,
    pub expires_at: i64,
    pub at: i64,
    /// The entry before it of its account was dated by a clock that was far ahead.
    pub goes_back: bool,
    pub idem: Option<Idem>,
    pub task: Option<BegunOp>,
}

/// The task a hold is for.
pub(in crate::sqlite) struct BegunOp {
    pub new: NewTask,
    /// By the wall clock: ledger time may be ahead of it, and providers are asked for what they
    /// took at about this time.
    pub created_at: i64,
    /// When others look after it, by the clock that does not jump.
    pub due_at: i64,
}

pub(in crate::sqlite) struct ExtendOp {
    pub call: CallId,
    pub account: AccountId,
    pub key: KeyId,
    pub step: u32,
    pub pots: Pots,
    pub lots: Parts,
    pub spent: Spent,
    pub at: i64,
}

pub(in crate::sqlite) struct CloseOp {
    pub call: CallId,
    pub account: AccountId,
    /// The key of the hold, whatever the row says.
    pub key: KeyId,
    pub at: i64,
    pub ending: Ending,
    pub reason: String,
    pub held: Pots,
    /// What of that counted in which day and month.
    pub counted: Used,
    pub settlement: Settlement,
    /// Of the settlement's own extension.
    pub extend_lots: Parts,
    pub lot_moves: Vec<LotMove>,
    pub spent: Spent,
    pub price_id: [u8; 16],
    pub row: UsageFacts,
    pub idem: Option<IdemEnd>,
    /// The task that ends with it.
    pub task: Option<TaskDone>,
}

/// What becomes of the call's idempotency key.
pub(in crate::sqlite) struct IdemEnd {
    pub key_hash: [u8; 32],
    /// `false`: nothing was charged or answered, the client may try again.
    pub keep: bool,
    pub reply: Option<StoredReply>,
}

/// The row of a call without a hold: refused, or its hold was lost in a crash.
pub(in crate::sqlite) struct RefusalOp {
    pub call: CallId,
    pub account: AccountId,
    pub ending: Ending,
    pub reason: String,
    pub row: UsageFacts,
}

pub(in crate::sqlite) struct CreditOp {
    pub credit: Credit,
    pub at: i64,
    /// Taken from the books in memory already (a negative adjustment); given back if it was applied
    /// before.
    pub taken: Pots,
    pub taken_lots: Parts,
    /// The request it came with.
    pub request: Option<String>,
}

/// Trial credit of an account that has expired.
pub(in crate::sqlite) struct LapseOp {
    pub account: AccountId,
    pub at: i64,
    pub lapses: Vec<Lapse>,
}

/// What a credit did.
#[derive(Clone, Debug)]
pub(in crate::sqlite) struct CreditDone {
    pub applied: bool,
    pub added: Pots,
    /// It will expire.
    pub lot: Option<Lot>,
    /// Spending given back to a key by a refund.
    pub unspent: Option<(KeyId, i64)>,
}

/// A hold that has no terminal entry yet.
pub(in crate::sqlite) struct UnsettledHold {
    pub account: AccountId,
    pub key: KeyId,
    /// The hold and its extensions.
    pub held: Pots,
    /// Where its trial money comes from, as far as that expires.
    pub lots: Parts,
    /// What of it counts in which day and month.
    pub counted: Used,
    /// The last extension of this process: its step, operation and group.
    pub extended: Option<(u32, u64, Arc<CommitGroup>)>,
    pub paid_only: bool,
    pub at: i64,
    pub expires_at: i64,
    pub price_id: [u8; 16],
    pub model: String,
    pub endpoint: Cow<'static, str>,
    pub idem: Option<[u8; 32]>,
}
