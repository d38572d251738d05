//! One process owns a SQLite file, so the command line reaches a running server through a socket in
//! its data directory: one JSON command per line, one JSON answer per line. Only the owner of the
//! files may connect.

mod alerts;
mod money;
mod people;

pub use money::Refund;

use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use tollgate_catalog::Money;

use crate::account::change::{AccountChange, KeyChange};
use crate::account::limits::Change;
use crate::account::{Credit, CreditKind, Credited, EventPage, NewAccount, NewKey, Pot};
use crate::alert::notice::NoticeWish;
use crate::alert::{AlertChange, AlertSilence, NewAlertPlace, NewAlertRule};
use crate::call::UsagePage;
use crate::catalog_version::NewCatalogVersion;
use crate::code_batch::NewCodeBatch;
use crate::error::StoreError;
use crate::ids::{
    AccountId, AdminKeyId, AlertEventId, AlertPlaceId, AlertRuleId, BatchId, CallId, InviteId, KeyId, OrderId,
    PersonId, RunId,
};
use crate::ledger::entries::EntryPage;
use crate::operator::pause::PauseChange;
use crate::operator::workflow::WorkflowMove;
use crate::operator::{Attribution, AuditPage, NewAdminKey};
use crate::payment::OrderFilter;
use crate::person::{AccountRole, HouseRole, NewInvite, NewMailToken, NewPerson};
use crate::store::{Receipted, Store};
use crate::sums::SumAsk;
use crate::workflow_run::{NewWorkflowRun, WorkflowRunLimits};

/// A command longer than this is not one of ours. The longest publishes a catalog, whose text is
/// escaped twice.
const LINE_LIMIT: u64 = 32 << 20;

/// What an operator can ask of a store.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum AdminCommand {
    AccountCreate {
        account: NewAccount,
        #[serde(default)]
        done: Attribution,
    },
    AccountList {
        after: Option<AccountId>,
        limit: u32,
    },
    AccountShow {
        account: AccountId,
    },
    AccountChange {
        account: AccountId,
        change: AccountChange,
        done: Attribution,
        /// The version that was seen; another one is left as it is.
        #[serde(default)]
        seen: Option<String>,
    },
    AccountWebhook {
        account: AccountId,
        url: Option<String>,
        #[serde(default)]
        done: Attribution,
    },
    AccountClose {
        account: AccountId,
        give_up: Option<Money>,
        done: Attribution,
    },
    AccountReopen {
        account: AccountId,
        done: Attribution,
    },
    AccountExpiring {
        account: AccountId,
    },
    AccountEvents {
        account: AccountId,
        page: EventPage,
    },
    Credit {
        credit: Credit,
        #[serde(default)]
        request: Option<String>,
    },
    Refund {
        refund: Refund,
        #[serde(default)]
        request: Option<String>,
    },
    KeyCreate {
        key: NewKey,
        secret: String,
        #[serde(default)]
        done: Attribution,
    },
    KeyList {
        account: AccountId,
    },
    KeyRevoke {
        key: KeyId,
        #[serde(default)]
        done: Attribution,
    },
    KeyChange {
        key: KeyId,
        change: KeyChange,
        done: Attribution,
        #[serde(default)]
        seen: Option<String>,
    },
    KeyRotate {
        key: KeyId,
        secret: String,
        grace_ms: i64,
        done: Attribution,
    },
    AdminKeyCreate {
        key: NewAdminKey,
        secret: String,
    },
    AdminKeyList,
    AdminKeyRevoke {
        key: AdminKeyId,
        done: Attribution,
    },
    Audit {
        page: AuditPage,
    },
    UsageList {
        account: Option<AccountId>,
        page: UsagePage,
    },
    UsageShow {
        account: AccountId,
        call: CallId,
    },
    Margins {
        from_ms: i64,
        to_ms: i64,
    },
    UsageSums {
        asked: Box<SumAsk>,
    },
    LedgerVerify {
        how: Audit,
    },
    PersonCreate {
        new: Box<NewPerson>,
        done: Attribution,
    },
    PersonList {
        after: Option<PersonId>,
        limit: u32,
    },
    PersonShow {
        person: PersonId,
    },
    PersonChange {
        person: PersonId,
        house_role: Change<HouseRole>,
        disabled: Option<bool>,
        done: Attribution,
    },
    PersonLink {
        email: String,
        token: NewMailToken,
        done: Attribution,
    },
    PersonSignOut {
        person: PersonId,
        done: Attribution,
    },
    PersonPasskeysRemove {
        person: PersonId,
        done: Attribution,
    },
    MembershipPut {
        account: AccountId,
        person: PersonId,
        role: AccountRole,
        done: Attribution,
    },
    InviteCreate {
        new: NewInvite,
        done: Attribution,
    },
    InviteList,
    InviteRevoke {
        invite: InviteId,
        done: Attribution,
    },
    LedgerLast,
    LedgerEntries {
        page: EntryPage,
    },
    Receipt {
        account: AccountId,
        call: CallId,
    },
    ReceiptKeys,
    PriceVersion {
        id: [u8; 16],
    },
    ReceiptRotate {
        #[serde(default)]
        done: Attribution,
    },
    PauseChange {
        change: PauseChange,
    },
    PauseChanges {
        limit: u32,
    },
    PauseStates,
    WorkflowMove {
        moved: WorkflowMove,
    },
    WorkflowStates,
    WorkflowRunCreate {
        new: Box<NewWorkflowRun>,
    },
    WorkflowRunShow {
        id: RunId,
    },
    WorkflowMoves {
        slug: String,
        limit: u32,
    },
    ClockShow,
    ClockAccept {
        #[serde(default)]
        done: Attribution,
    },
    SocialDays {
        day: i64,
    },
    Statement {
        account: AccountId,
        month: String,
        tz: Option<String>,
    },
    OrderList {
        filter: OrderFilter,
    },
    OrderShow {
        order: OrderId,
    },
    OrderForgive {
        order: OrderId,
        done: Attribution,
    },
    CodesCreate {
        batch: Box<NewCodeBatch>,
    },
    CodesList {
        before: Option<BatchId>,
        limit: u32,
    },
    CodesRevoke {
        batch: BatchId,
        done: Attribution,
    },
    AlertPlaceCreate {
        new: NewAlertPlace,
        done: Attribution,
    },
    AlertPlaceList,
    AlertPlaceRemove {
        place: AlertPlaceId,
        done: Attribution,
    },
    AlertRuleCreate {
        new: Box<NewAlertRule>,
        done: Attribution,
    },
    AlertRuleList,
    AlertRuleChange {
        rule: AlertRuleId,
        change: Box<AlertChange>,
        done: Attribution,
    },
    AlertRuleRemove {
        rule: AlertRuleId,
        done: Attribution,
    },
    AlertSilence {
        rule: AlertRuleId,
        silence: AlertSilence,
        done: Attribution,
    },
    AlertsFiring,
    AlertEvents {
        before: Option<AlertEventId>,
        limit: u32,
    },
    NoticeShow {
        account: AccountId,
    },
    NoticeSet {
        account: AccountId,
        wish: NoticeWish,
        done: Attribution,
    },
    /// Version, hash and files of what is on sale out of the database; `null`: nothing was
    /// published.
    CatalogOnSale,
    /// Puts a catalog on sale that was checked; `null`: another one is on sale than was seen.
    CatalogPublish {
        new: NewCatalogVersion,
        seen: Option<String>,
        done: Attribution,
    },
}

/// Runs that operators begin are counted with all others of their account, and have more room.
const OPERATORS_RUNS: WorkflowRunLimits = WorkflowRunLimits { open: 1_000, stored: 1_000 };

/// How thoroughly to audit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audit {
    #[default]
    Full,
    /// Full, and nothing is let pass.
    Strict,
    /// What has changed since the last audit of the server.
    Changed,
}

/// Why a command over the socket has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// No server listens there: open the store and execute the command yourself.
    #[error("no server is running in this data directory")]
    NoServer,
    #[error("{0}")]
    Refused(String),
    #[error("the server did not answer properly: {0}")]
    Garbled(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Error(String),
}

impl Store {
    /// Executes an operator's command; the same over the socket and in process.
    pub async fn execute(&self, command: AdminCommand) -> Result<Value, StoreError> {
        let missing = |what: String| StoreError::NotFound(what);
        match command {
            AdminCommand::AccountCreate { account, done } => value(self.create_account_as(account, done).await?),
            AdminCommand::AccountList { after, limit } => value(self.accounts(after, limit).await?),
            AdminCommand::AccountShow { account } => {
                value(self.account(account).await?.ok_or_else(|| missing(account.to_string()))?)
            }
            AdminCommand::AccountChange { account, change, done, seen } => {
                let changed = self.change_account_if(account, change, done, seen).await?;
                value(changed.ok_or_else(|| missing(account.to_string()))?)
            }
            AdminCommand::AccountWebhook { account, url, done } => {
                value(self.set_webhook(account, url, done).await?.ok_or_else(|| missing(account.to_string()))?)
            }
            AdminCommand::AccountExpiring { account } => value(self.expiring(account).await?),
            AdminCommand::AccountEvents { account, page } => value(self.events(account, page).await?),
            AdminCommand::Credit { credit, request } => value(self.credit_as(credit, request).await?),
            AdminCommand::Refund { refund, request } => value(self.refund(refund, request).await?),
            AdminCommand::KeyCreate { key, secret, done } => value(self.create_key_as(key, &secret, done).await?),
            AdminCommand::KeyList { account } => value(self.keys(account).await?),
            AdminCommand::KeyRotate { key, secret, grace_ms, done } => {
                let rotated = self.rotate_key(key, &secret, grace_ms, done).await?;
                value(rotated.ok_or_else(|| missing(key.to_string()))?)
            }
            AdminCommand::KeyRevoke { key, done } => {
                value(self.revoke_key_as(key, done).await?.ok_or_else(|| missing(key.to_string()))?)
            }
            AdminCommand::KeyChange { key, change, done, seen } => {
                value(self.change_key_if(key, change, done, seen).await?.ok_or_else(|| missing(key.to_string()))?)
            }
            AdminCommand::AdminKeyCreate { key, secret } => value(self.create_admin_key(key, &secret).await?),
            AdminCommand::AdminKeyList => value(self.admin_keys().await?),
            AdminCommand::AdminKeyRevoke { key, done } => {
                value(self.revoke_admin_key(key, done).await?.ok_or_else(|| missing(key.to_string()))?)
            }
            AdminCommand::Audit { page } => value(self.audit_page(page).await?),
            AdminCommand::PersonCreate { .. }
            | AdminCommand::PersonList { .. }
            | AdminCommand::PersonShow { .. }
            | AdminCommand::PersonChange { .. }
            | AdminCommand::PersonLink { .. }
            | AdminCommand::PersonSignOut { .. }
            | AdminCommand::PersonPasskeysRemove { .. }
            | AdminCommand::MembershipPut { .. }
            | AdminCommand::InviteCreate { .. }
            | AdminCommand::InviteList
            | AdminCommand::InviteRevoke { .. } => self.execute_about_people(command).await,
            AdminCommand::UsageList { account, page } => {
                let rows = self.usage(account, page).await?;
                value(self.records(&rows).await?)
            }
            AdminCommand::UsageShow { account, call } => {
                let row = self.usage_of(account, call).await?.ok_or_else(|| missing(call.to_string()))?;
                value(self.records(&[row]).await?.pop())
            }
            AdminCommand::Margins { from_ms, to_ms } => value(self.margins(from_ms, to_ms).await?),
            AdminCommand::UsageSums { asked } => self.answer_sums(&asked).await,
            AdminCommand::PauseChange { change } => value(self.change_pause(change).await?),
            AdminCommand::PauseChanges { limit } => value(self.pause_changes(limit).await?),
            AdminCommand::PauseStates => value(self.pause_states().await?),
            AdminCommand::WorkflowMove { moved } => value(self.move_workflow(moved).await?),
            AdminCommand::WorkflowRunCreate { new } => value(self.create_run(*new, OPERATORS_RUNS).await?),
            AdminCommand::WorkflowRunShow { id } => {
                value(self.any_run(id).await?.ok_or_else(|| missing(id.to_string()))?)
            }
            AdminCommand::WorkflowStates => value(self.workflow_states().await?),
            AdminCommand::WorkflowMoves { slug, limit } => value(self.workflow_moves(slug, limit).await?),
            AdminCommand::SocialDays { day } => value(self.social_days(day).await?),
            AdminCommand::LedgerVerify { how } => self.audited(how).await,
            AdminCommand::LedgerLast => value(self.last_entry().await?),
            AdminCommand::LedgerEntries { page } => value(self.entries(page).await?),
            AdminCommand::Receipt { account, call } => match self.receipt(account, call).await? {
                Receipted::Signed(signed) => value(signed),
                Receipted::StillOpen => Err(StoreError::Conflict(format!("{call} has not ended yet"))),
                Receipted::NoSuchCall => Err(missing(call.to_string())),
            },
            AdminCommand::PriceVersion { id } => value(
                self.price_version(id).await?.ok_or_else(|| missing("no call was ever held at this price".into()))?,
            ),
            AdminCommand::ReceiptKeys => value(self.receipt_keys().await?),
            AdminCommand::ReceiptRotate { done } => {
                let rotated = self.rotate_receipt_key().await?;
                self.note_audit(&done, "receipt_key.rotate", "receipts", None, "").await?;
                value(rotated)
            }
            AdminCommand::ClockShow => value(self.clock_state()),
            AdminCommand::ClockAccept { done } => {
                let accepted = self.accept_clock().await?;
                self.note_audit(&done, "clock.accept", "clock", None, "").await?;
                value(accepted)
            }
            AdminCommand::CatalogOnSale => self.catalog_on_sale().await,
            AdminCommand::CatalogPublish { new, seen, done } => value(self.publish_catalog(new, seen, done).await?),
            // Money that comes in, alerts and notices.
            command => self.execute_about_money(command).await,
        }
    }

    /// What is on sale, with its files as they are stored.
    async fn catalog_on_sale(&self) -> Result<Value, StoreError> {
        let Some((version, hash)) = self.catalog_head().await? else { return Ok(Value::Null) };
        let files = self.catalog_text(&hash).await?;
        Ok(json!({ "version": version, "hash": hash, "files": files }))
    }

    async fn audited(&self, how: Audit) -> Result<Value, StoreError> {
        match how {
            Audit::Full => value(self.verify().await?),
            Audit::Strict => value(self.verify_strictly().await?),
            Audit::Changed => value(self.verify_changed().await?),
        }
    }

    /// A call is refunded once: asking again for as much changes nothing, for another amount is
    /// refused.
    async fn refund(&self, refund: Refund, request: Option<String>) -> Result<Credited, StoreError> {
        let Refund { call, amount, reason, actor } = refund;
        let nothing = || StoreError::NotFound(format!("no charge for {call}"));
        let charged = self.charged(call).await?.ok_or_else(nothing)?;
        let credit = Credit {
            id: format!("refund-{call}"),
            account: charged.account,
            kind: CreditKind::Refund { call },
            // It goes back to the pots it came from, whatever is said here.
            pot: Pot::Paid,
            amount: amount.unwrap_or(charged.captured),
            expires_at: None,
            reason,
            actor,
        };
        match self.credit_as(credit, request).await {
            // The ledger knows it as an id that was used before; whoever refunds wants to hear of
            // the refund.
            Err(StoreError::Conflict(why)) => {
                let before = self.usage_of(charged.account, call).await?.map_or(Money::ZERO, |row| row.refunded);
                Err(StoreError::Conflict(if before.is_zero() {
                    why
                } else {
                    format!("{call} was refunded {before} USD before; a call is refunded once")
                }))
            }
            done => done,
        }
    }
}

fn value(result: impl Serialize) -> Result<Value, StoreError> {
    serde_json::to_value(result).map_err(StoreError::broken)
}

/// The socket of operators, for this user alone. The data directory must be ours: a socket left
/// behind is removed. From here on commands find it, and wait for [`listen`].
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves commands until `shutdown` completes.
pub async fn listen(
    (path, listener): (&Path, UnixListener),
    store: Store,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, store.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "admin socket");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
    std::fs::remove_file(path)
}

async fn serve(stream: UnixStream, store: Store) {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read.take(LINE_LIMIT));
    let mut line = String::new();
    while read.read_line(&mut line).await.is_ok_and(|n| n > 0) {
        let answer = match serde_json::from_str::<AdminCommand>(&line) {
            // The text of a bad command is not repeated: it may carry a secret.
            Err(error) => Answer::Error(format!("not a command (line {}, column {})", error.line(), error.column())),
            Ok(command) => match store.execute(command).await {
                Ok(result) => Answer::Ok(result),
                Err(error) => Answer::Error(error.to_string()),
            },
        };
        let mut text = json!(answer).to_string();
        text.push('\n');
        if write.write_all(text.as_bytes()).await.is_err() {
            return;
        }
        line.clear();
        read.get_mut().set_limit(LINE_LIMIT);
    }
}

/// Sends one command to the server that owns the data directory.
pub async fn call(path: &Path, command: &AdminCommand) -> Result<Value, CallError> {
    let garbled = |e: &dyn std::fmt::Display| CallError::Garbled(e.to_string());
    let stream = UnixStream::connect(path).await.map_err(|_| CallError::NoServer)?;
    let (read, mut write) = stream.into_split();
    let mut text = serde_json::to_string(command).map_err(|e| garbled(&e))?;
    text.push('\n');
    write.write_all(text.as_bytes()).await.map_err(|e| garbled(&e))?;
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).await.map_err(|e| garbled(&e))?;
    match serde_json::from_str(&line).map_err(|e| garbled(&e))? {
        Answer::Ok(result) => Ok(result),
        Answer::Error(message) => Err(CallError::Refused(message)),
    }
}
