//! All that survives a restart: accounts, keys, the ledger, the usage log. The ledger decides a hold before anything
//! is sent upstream and closes it exactly once, in one transaction with the usage row that explains the money.
//!
//! Two engines behind the same verbs: SQLite (embedded, one process owns the file) and PostgreSQL (several
//! replicas). A close is first written to a local journal, so that a killed process loses neither the charge nor
//! the customer's money. Start with [`Store`]; `ledger.rs` has the arithmetic, `journal.rs` the journal.

#![deny(clippy::float_arithmetic, clippy::float_cmp)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod account;
pub mod admin;
mod bounds;
mod call;
mod chain;
mod change;
mod clock;
mod entries;
mod error;
mod group;
pub mod ids;
mod journal;
mod ledger;
mod limits;
mod lots;
mod operator;
mod owner;
mod pause;
mod postgres;
mod price;
mod quota;
pub mod receipt;
mod refusals;
mod report;
mod response;
mod row_hash;
mod social;
mod sqlite;
mod store;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod turns;
mod used;
mod verify;
mod wish;
mod world;

pub use account::{
    Account, ChangedKeys, Charged, Credit, CreditKind, Credited, Event, EventPage, Expiring, Key, KeyAndAccount,
    NewAccount, NewKey, Pot, hash_secret,
};
pub use bounds::{MOST_AT_ONCE, MOST_IN_ACCOUNT};
pub use call::{
    Close, Closed, Counters, Ending, Extend, Hold, HoldRefused, Idem, Mark, Page, REPLY_KEPT, StoredReply, UsageFacts,
    UsageRow,
};
pub use change::{AccountChange, KeyChange};
pub use clock::{Clock, ClockState, Standing};
pub use entries::{Entry, EntryPage};
pub use error::StoreError;
pub use group::{Closing, Held};
pub use ids::{AccountId, AdminKeyId, CallId, KeyId, TaskId};
pub use limits::{Change, LimitKind, LimitReached, Limits, NewLimits, Used, date, next_day, next_month};
pub use operator::{AdminKey, Done, NewAdminKey, OperatorEvent};
pub use pause::{PauseChange, PauseKind};
pub use quota::{NoRoom, Quota, ROW_BYTES, Stored};
pub use refusals::REFUSALS_PER_MINUTE;
pub use report::{Breach, Gauges, Recovered, Report, Swept};
pub use response::{CHAIN_BYTES, CHAIN_LENGTH, Chain, Conversation, Item, ItemPage, NewResponse, Said, StoredResponse};
pub use social::{SocialDay, SocialFull, SocialLimit, SocialTake, SocialTurn, SocialVain};
pub use store::{Opened, Receipted, Store};
pub use task::{
    BegunTask, Leased, Named, NewTask, OpenTasks, SentTo, Task, TaskEnd, TaskFailure, TaskPage, TaskState, TaskStep,
    Told, Webhook, WebhookWish, Word,
};
pub use turns::{TurnWish, Turns};
pub use verify::{INVARIANTS, Looked};
pub use wish::CallEntry;
pub use world::{FillRandom, NowMs, Options, Place, World};
