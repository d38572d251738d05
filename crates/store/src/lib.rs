//! All that survives a restart: accounts, keys, the ledger, the usage log. The ledger decides a
//! hold before anything is sent upstream and closes it exactly once, in one transaction with the
//! usage row that explains the money.
//!
//! Two engines behind the same verbs: SQLite (embedded, one process owns the file) and PostgreSQL
//! (several replicas). A close is first written to a local journal, so that a killed process loses
//! neither the charge nor the customer's money. Start with [`Store`]; `ledger.rs` has the
//! arithmetic, `journal.rs` the journal.

#![deny(clippy::float_arithmetic, clippy::float_cmp)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod account;
pub mod admin;
mod alert;
mod call;
mod catalog_version;
mod client_secret;
mod clock;
mod code_batch;
mod error;
pub mod ids;
mod journal;
mod ledger;
mod live;
mod manage;
mod margin;
mod migration;
mod operator;
mod operator_job;
mod owner;
mod payment;
mod peek;
mod person;
mod postgres;
mod probe;
pub mod receipt;
mod report;
mod response;
mod route_health;
mod social;
mod sqlite;
mod statement;
mod store;
mod sums;
mod task;
#[cfg(feature = "testing")]
pub mod testing;
mod trial_grant;
mod verify;
mod workflow_run;
mod world;

pub use account::change::{AccountChange, KeyChange};
pub use account::limits::{Change, LimitKind, LimitReached, Limits, NewLimits, Used, date, next_day, next_month};
pub use account::{
    Account, BalanceEvent, ChangedKeys, Charged, Credit, CreditKind, Credited, EventPage, Expiring, Key, KeyAndAccount,
    KeyOrigin, KeyScope, NewAccount, NewKey, Pot, hash_secret,
};
pub use alert::notice::{
    AccountLetter, BalanceNotice, DueNotice, LetterCause, NOTICES_A_DAY, NoticeMail, NoticeOwner, NoticeWish,
};
pub use alert::{
    AlertChange, AlertCondition, AlertDelivery, AlertEvent, AlertFact, AlertFiring, AlertMove, AlertNews, AlertPlace,
    AlertPlaceKind, AlertRule, AlertSilence, DueAlert, MOST_ALERT_PLACES, MOST_ALERT_RULES, MOST_ALERT_SUBJECTS,
    NewAlertPlace, NewAlertRule, SealedAlertPlace,
};
pub use call::counters::{Counter, Counters, Side};
pub use call::group::{Closing, Held};
pub use call::refusals::REFUSALS_PER_MINUTE;
pub use call::wish::CallEntry;
pub use call::{
    Close, Closed, Ending, Extend, Hold, HoldRefused, Idem, MAX_STORED_REPLY, Mark, StoredReply, UsageFacts, UsagePage,
    UsageRow,
};
pub use catalog_version::{CATALOG_TEXTS, CatalogVersion, NewCatalogVersion};
pub use client_secret::{ClientSecret, ClientSecretLimits, ClientSecretsFull, NewClientSecret};
pub use clock::{Clock, ClockStanding, ClockState};
pub use code_batch::{CODES_AT_ONCE, CodeBatch, CodeRefused, NewCodeBatch, Redeemed};
pub use error::StoreError;
pub use ids::{
    AccountId, AdminKeyId, AlertEventId, AlertPlaceId, AlertRuleId, BatchId, CallId, InviteId, KeyId, OrderId,
    PasskeyId, PersonId, RunId, SessionId, TaskId,
};
pub use ledger::bounds::{MOST_AT_ONCE, MOST_IN_ACCOUNT};
pub use ledger::entries::{ENTRY_COLUMNS, Entry, EntryPage};
pub use live::{
    LIVE_ENTRIES, LIVE_KEYS_MS, LIVE_TASKS, LiveAlert, LiveCall, LiveCalls, LiveChange, LiveHouse, LiveJob, LiveKey,
    LivePause, LivePlace, LiveRun, LiveStanding, LiveState, LiveTask, LiveTraffic,
};
pub use manage::{AccountSearch, CallReach, ChangeClaim, ChangeKey, UsageSearch, WebhookTry};
pub use margin::{LONGEST_REPORT_MS, MarginRow};
pub use operator::pause::{PauseChange, PauseKind};
pub use operator::workflow::{WorkflowMove, WorkflowVerb};
pub use operator::{AdminKey, Attribution, AuditPage, NewAdminKey, OperatorEvent};
pub use operator_job::{
    ExportPut, JOB_SILENCE_MS, JOBS_AT_ONCE, JobProgress, JobState, OperatorJob, STORED_JOBS, SharedExport,
};
pub use payment::plan::{OrderTruth, PaymentStanding};
pub use payment::{
    NewOrder, OrderFilter, OrderIdem, OrderLimits, OrderMade, OrderSettled, OrderState, PayEvent, PayOrder,
};
pub use peek::{CatalogOnSale, peek_catalog};
pub use person::passkey::{AddedPasskey, NewPasskey, PasskeyRecord, PasskeyUse, UsedPasskey};
pub use person::{
    AccountMember, AccountRole, AccountView, CredentialKind, DueMail, FoundSession, HouseRole, InviteRecord,
    InvitedInto, IssuerLink, IssuerSubject, Membership, NewInvite, NewMailToken, NewPerson, NewSession, NotARole,
    PasswordHash, PersonRecord, SessionRecord, StoredCredential, TokenPurpose, UsedCode, UsedWay, folded_email,
};
pub use probe::{ProbeClaim, ProbeDay, ProbeLimits, ProbeTurn};
pub use report::{AuditReport, Breach, Gauges, Recovered, Swept};
pub use response::quota::{NoRoom, Quota, ROW_BYTES, StorageUsed};
pub use response::{
    AddedItem, CHAIN_BYTES, CHAIN_LENGTH, Chain, Item, ItemPage, NewResponse, StoredConversation, StoredResponse,
};
pub use route_health::{CountedRoute, RouteCounts, quarter_of};
pub use social::{SocialDay, SocialFull, SocialLimit, SocialTake, SocialTurn, SocialVain};
pub use statement::{STATEMENT_EVENTS, Statement, StatementLine, StatementSpan};
pub use store::closing::CLOSE_GRACE_MS;
pub use store::passkeys::MOST_PASSKEYS;
pub use store::sums::{ExportPage, USAGE_EXPORT_PAGE};
pub use store::{OpenedStore, Receipted, Store};
pub use sums::{FILL_STEP, MOST_GROUPS, SumAsk, SumFault, SumQuery, SumViewer, UsageFilter, UsageSum, WrongSum};
pub use task::turns::{TurnWish, Turns};
pub use task::{
    BegunTask, Leased, NewTask, OpenTasks, SentTo, Task, TaskEnd, TaskFailure, TaskNaming, TaskPage, TaskState,
    TaskStep, Webhook, WebhookOutcome, WebhookWish, Word,
};
pub use trial_grant::{NewTrialGrant, TRIAL_REFERENCE, TrialGrant, TrialLimits};
pub use verify::{INVARIANTS, Looked};
pub use workflow_run::{
    KeyedCall, NewWorkflowRun, WorkflowRun, WorkflowRunLimits, WorkflowRunMade, WorkflowRunNext, WorkflowRunPage,
    WorkflowRunWrite,
};
pub use world::{Clocks, DataLocation, FillRandom, NowMs, Options};
