//! The verbs. Each goes to one of two engines; a storage engine is a closed set, so this is an enum and not a trait.

use std::sync::Arc;

use crate::account::{
    Account, ChangedKeys, Charged, Credit, Credited, Event, EventPage, Expiring, Key, KeyAndAccount, NewAccount, NewKey,
};
use crate::call::{Close, Closed, Extend, Hold, HoldRefused, Mark, Page, UsageFacts, UsageRow};
use crate::change::{AccountChange, KeyChange};
use crate::clock::{Clock, ClockState};
use crate::entries::{Entry, EntryPage};
use crate::error::StoreError;
use crate::group::{Closing, Held};
use crate::ids::{AccountId, AdminKeyId, CallId, KeyId, TaskId};
use crate::operator::{AdminKey, Done, NewAdminKey, OperatorEvent};
use crate::pause::PauseChange;
use crate::receipt::{self, PublicKeys, Signed};
use crate::refusals::{Refusals, Refused};
use crate::report::{Gauges, Recovered, Report, Swept};
use crate::row_hash::Seal;
use crate::social::{SocialDay, SocialFull, SocialTake, SocialTurn, SocialVain};
use crate::task::{
    BegunTask, Leased, Named, NewTask, OpenTasks, SentTo, Task, TaskEnd, TaskPage, TaskStep, Told, Webhook, WebhookWish,
};
use crate::turns::{TurnWish, Turns};
use crate::wish::CallEntry;
use crate::world::{Options, Place, World};
use crate::{bounds, postgres, sqlite};

/// The store. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    refusals: Arc<Refusals>,
}

#[derive(Clone)]
enum Engine {
    Sqlite(Arc<sqlite::Engine>),
    Postgres(Arc<postgres::Engine>),
}

/// A store ready for use, and what opening it had to put right.
pub struct Opened {
    pub store: Store,
    pub recovered: Recovered,
}

/// The answer to a wish for a receipt.
pub enum Receipted {
    Signed(Box<Signed>),
    /// The call runs: what it will cost is not known.
    StillOpen,
    NoSuchCall,
}

macro_rules! on_engine {
    ($self:ident, $engine:ident => $body:expr) => {
        match &$self.engine {
            Engine::Sqlite($engine) => $body,
            Engine::Postgres($engine) => $body,
        }
    };
}

mod responses;

impl Store {
    /// Opens the place, brings the schema up to date, replays the journal and resolves what a crash left open.
    pub async fn open(place: Place, options: Options, world: World) -> Result<Opened, StoreError> {
        let (engine, recovered) = if place.url == "sqlite" {
            let (engine, recovered) = sqlite::Engine::open(&place, options, world).await?;
            (Engine::Sqlite(engine), recovered)
        } else if place.url.starts_with("postgres://") || place.url.starts_with("postgresql://") {
            let (engine, recovered) = postgres::Engine::open(&place, options, world).await?;
            (Engine::Postgres(engine), recovered)
        } else {
            return Err(StoreError::broken("the database must be `sqlite` or `postgres://…`"));
        };
        Ok(Opened { store: Self { engine, refusals: Arc::default() }, recovered })
    }

    /// Commits all that is queued and stops. Calls still open stay open; the next start resolves them.
    pub async fn shut(&self) {
        self.write_refusals(self.refusals.due(None));
        on_engine!(self, e => e.shut().await);
    }

    /// Ready to take holds.
    pub fn ready(&self) -> bool {
        on_engine!(self, e => e.ready())
    }

    /// The time the store goes by. Whoever dates what it keeps goes by the same.
    pub fn clock(&self) -> Arc<Clock> {
        on_engine!(self, e => e.clock().clone())
    }

    pub fn clock_state(&self) -> ClockState {
        on_engine!(self, e => e.clock_state())
    }

    /// An operator has looked at the clock: it is right, whatever the store thinks of it.
    pub async fn accept_clock(&self) -> Result<ClockState, StoreError> {
        on_engine!(self, e => e.accept_clock().await)
    }

    pub fn gauges(&self) -> Gauges {
        Gauges { refusals_summed: self.refusals.summed(), ..on_engine!(self, e => e.gauges()) }
    }

    // Accounts and keys.

    pub async fn create_account(&self, new: NewAccount) -> Result<Account, StoreError> {
        bounds::limits(&new.limits)?;
        on_engine!(self, e => e.create_account(new).await)
    }

    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        on_engine!(self, e => e.account(id).await)
    }

    /// Accounts in order of creation.
    pub async fn accounts(&self, after: Option<AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        on_engine!(self, e => e.accounts(after, limit).await)
    }

    pub async fn credit(&self, credit: Credit) -> Result<Credited, StoreError> {
        on_engine!(self, e => e.credit(credit).await)
    }

    /// The caller made the secret and shows it once; kept are its hash and first characters.
    pub async fn create_key(&self, new: NewKey, secret: &str) -> Result<Key, StoreError> {
        bounds::limits(&new.limits)?;
        on_engine!(self, e => e.create_key(new, secret).await)
    }

    pub async fn key_by_hash(&self, hash: [u8; 32]) -> Result<Option<KeyAndAccount>, StoreError> {
        on_engine!(self, e => e.key_by_hash(hash).await)
    }

    pub async fn keys(&self, account: AccountId) -> Result<Vec<Key>, StoreError> {
        on_engine!(self, e => e.keys(account).await)
    }

    /// `None`: no such key. Revoking twice keeps the first time.
    pub async fn revoke_key(&self, id: KeyId) -> Result<Option<Key>, StoreError> {
        on_engine!(self, e => e.revoke_key(id).await)
    }

    /// In force with the next hold, and on other replicas when they look for changed keys. `None`: no such key.
    pub async fn change_key(&self, id: KeyId, change: KeyChange, done: Done) -> Result<Option<Key>, StoreError> {
        change.check()?;
        let Some(before) = on_engine!(self, e => e.key(id).await)? else { return Ok(None) };
        if change == KeyChange::default() {
            return Ok(Some(before));
        }
        let logged = change.logged(&before, done);
        on_engine!(self, e => e.change_key(id, change, logged).await)
    }

    /// The same of an account.
    pub async fn change_account(
        &self,
        id: AccountId,
        change: AccountChange,
        done: Done,
    ) -> Result<Option<Account>, StoreError> {
        change.check()?;
        let Some(before) = self.account(id).await? else { return Ok(None) };
        if change == AccountChange::default() {
            return Ok(Some(before));
        }
        let logged = change.logged(&before, done);
        on_engine!(self, e => e.change_account(id, change, logged).await)
    }

    /// How many accounts are in which groups, for every set of groups there is.
    pub async fn groups_in_use(&self) -> Result<Vec<(Vec<String>, u64)>, StoreError> {
        on_engine!(self, e => e.groups_in_use().await)
    }

    /// Where an account hears of all its tasks from now on; `None`: nowhere. The answer is `None` where there is no such account.
    pub async fn set_webhook(&self, id: AccountId, url: Option<String>) -> Result<Option<Account>, StoreError> {
        on_engine!(self, e => e.set_webhook(id, url).await)
    }

    /// Keys whose own record, or whose account's, changed at `since` or later, or up to `overlap` milliseconds before. `since` is the
    /// `read_at` of the answer before: the clock is the store's own, which is nobody else's. One to come is now.
    pub async fn keys_changed_since(&self, since: i64, overlap: i64) -> Result<ChangedKeys, StoreError> {
        on_engine!(self, e => e.keys_changed_since(since, overlap).await)
    }

    // Operators.

    /// The caller made the secret and shows it once. Who asked for it, and why, is a row.
    pub async fn create_admin_key(&self, new: NewAdminKey, secret: &str) -> Result<AdminKey, StoreError> {
        on_engine!(self, e => e.create_admin_key(new, secret).await)
    }

    pub async fn admin_key_by_hash(&self, hash: [u8; 32]) -> Result<Option<AdminKey>, StoreError> {
        on_engine!(self, e => e.admin_key_by_hash(hash).await)
    }

    pub async fn admin_keys(&self) -> Result<Vec<AdminKey>, StoreError> {
        on_engine!(self, e => e.admin_keys().await)
    }

    /// `None`: no such key. Revoking twice keeps the first time, and the first row.
    pub async fn revoke_admin_key(&self, id: AdminKeyId, done: Done) -> Result<Option<AdminKey>, StoreError> {
        on_engine!(self, e => e.revoke_admin_key(id, done).await)
    }

    /// What operators did to admin keys, accounts and keys, newest first.
    pub async fn operator_events(&self, limit: u32) -> Result<Vec<OperatorEvent>, StoreError> {
        on_engine!(self, e => e.operator_events(limit).await)
    }

    // The ledger.

    /// Reserves money for a call. On SQLite the decision is made in memory and the hold is durable a little later
    /// ([`Held::durable`]); on PostgreSQL it is durable when this returns.
    pub async fn hold(&self, hold: Hold) -> Result<Held, HoldRefused> {
        on_engine!(self, e => e.hold(hold).await)
    }

    /// Reserves more for a call that outgrows its hold, under the same rules; the answer is the whole hold as it is then, and
    /// durable as that of a hold is. Refused, or asked for a second time: nothing changes.
    pub async fn extend(&self, extend: Extend) -> Result<Held, HoldRefused> {
        on_engine!(self, e => e.extend(extend).await)
    }

    /// Ends a held call. Survives a crash of the process when this returns; never waits for the database.
    pub fn close(&self, close: Close) -> Closing {
        on_engine!(self, e => e.close(close))
    }

    /// Remembers, in the journal only, what a running call has produced so far.
    pub fn mark(&self, mark: Mark) {
        on_engine!(self, e => e.mark(mark));
    }

    /// Usage row of a call that was refused before it had a hold; of many of one key in a minute, one row for the rest of them
    /// ([`crate::REFUSALS_PER_MINUTE`]). Left out when the store is under pressure.
    pub fn note_refusal(&self, call: CallId, account: AccountId, reason: String, row: UsageFacts) {
        self.write_refusals(self.refusals.note(Refused { call, account, reason, row }));
    }

    fn write_refusals(&self, rows: Vec<Refused>) {
        for Refused { call, account, reason, row } in rows {
            on_engine!(self, e => e.note_refusal(call, account, reason, row));
        }
    }

    // Reading.

    /// Trial credit of an account that will expire, the earliest first.
    pub async fn expiring(&self, account: AccountId) -> Result<Vec<Expiring>, StoreError> {
        on_engine!(self, e => e.expiring(account).await)
    }

    /// Top-ups, adjustments, refunds and expired credit of an account, newest first.
    pub async fn events(&self, account: AccountId, page: EventPage) -> Result<Vec<Event>, StoreError> {
        on_engine!(self, e => e.events(account, page).await)
    }

    /// What a call was charged, whoever's it is; `None` when nothing was.
    pub async fn charged(&self, call: CallId) -> Result<Option<Charged>, StoreError> {
        on_engine!(self, e => e.charged(call).await)
    }

    /// The usage log, newest first; of all accounts when none is named.
    pub async fn usage(&self, account: Option<AccountId>, page: Page) -> Result<Vec<UsageRow>, StoreError> {
        on_engine!(self, e => e.usage(account, page).await)
    }

    /// One call of an account, with its frozen price. Another account's call is not found.
    pub async fn usage_of(&self, account: AccountId, call: CallId) -> Result<Option<UsageRow>, StoreError> {
        on_engine!(self, e => e.usage_of(account, call).await)
    }

    /// The number of the last entry, once all before it are committed: up to there the ledger is as it was at this moment.
    pub async fn last_entry(&self) -> Result<i64, StoreError> {
        on_engine!(self, e => e.last_entry().await)
    }

    /// Ledger entries, a page at a time.
    pub async fn entries(&self, page: EntryPage) -> Result<Vec<Entry>, StoreError> {
        on_engine!(self, e => e.entries(page).await)
    }

    // Receipts.

    /// The receipt of a call that has ended, made and signed now.
    pub async fn receipt(&self, account: AccountId, call: CallId) -> Result<Receipted, StoreError> {
        // In this order: a call that ends in between is found by the second question.
        if on_engine!(self, e => e.is_open(account, call).await)? {
            return Ok(Receipted::StillOpen);
        }
        let Some(row) = self.usage_of(account, call).await? else {
            return Ok(Receipted::NoSuchCall);
        };
        if on_engine!(self, e => e.seal_of(account, call).await)? == Seal::Changed {
            return Err(StoreError::broken(format!("the usage row of {call} is not the one that was written")));
        }
        let now = on_engine!(self, e => e.now());
        let secret = on_engine!(self, e => e.receipt_secret().await)?;
        let prefix = on_engine!(self, e => e.key_prefix(row.key).await)?.unwrap_or_default();
        Ok(Receipted::Signed(Box::new(receipt::sign(&row, prefix, &secret, now)?)))
    }

    /// A price that calls were held at, whatever the catalog says today, in the form whose hash receipts name. `None`: no call ever was, or what
    /// is stored under this id is something else by now.
    pub async fn price_version(&self, id: [u8; 16]) -> Result<Option<String>, StoreError> {
        let Some(text) = on_engine!(self, e => e.price_json(id).await)? else { return Ok(None) };
        let written: serde_json::Value = serde_json::from_str(&text).map_err(StoreError::broken)?;
        let price: tollgate_catalog::Price = serde_json::from_value(written.clone()).map_err(StoreError::broken)?;
        Ok((price.id() == id).then(|| receipt::price_text(&written)))
    }

    /// The public keys of receipts, those of before included; the one that signs first.
    pub async fn receipt_keys(&self) -> Result<PublicKeys, StoreError> {
        Ok(PublicKeys { keys: on_engine!(self, e => e.receipt_keys().await)? })
    }

    /// Ends the key that signs receipts, erases its secret, and begins a new one; for all replicas.
    pub async fn rotate_receipt_key(&self) -> Result<PublicKeys, StoreError> {
        on_engine!(self, e => e.rotate_receipt_key().await)?;
        self.receipt_keys().await
    }

    // The secrets that sign links and webhooks, by names that tell nothing of them.

    /// Those that this store was ever served with.
    pub async fn signing_secrets(&self) -> Result<Vec<String>, StoreError> {
        on_engine!(self, e => e.signing_secrets().await)
    }

    /// It is served with these from now on.
    pub async fn note_signing_secrets(&self, names: Vec<String>) -> Result<(), StoreError> {
        on_engine!(self, e => e.note_signing_secrets(names).await)
    }

    // Social data.

    /// Pauses or resumes a cell: a row with time, actor and reason.
    pub async fn change_pause(&self, change: PauseChange) -> Result<(), StoreError> {
        on_engine!(self, e => e.change_pause(change).await)
    }

    /// The log of pauses, newest first.
    pub async fn pause_changes(&self, limit: u32) -> Result<Vec<PauseChange>, StoreError> {
        on_engine!(self, e => e.pause_changes(limit).await)
    }

    /// The newest change of each cell that was ever paused.
    pub async fn pause_states(&self) -> Result<Vec<PauseChange>, StoreError> {
        on_engine!(self, e => e.pause_states().await)
    }

    /// Takes a call's part of a day's capacity, or says which limit was met. Exact over all replicas.
    pub async fn social_take(&self, take: SocialTake) -> Result<Result<(), SocialFull>, StoreError> {
        on_engine!(self, e => e.social_take(take).await)
    }

    /// Gives back the cost of a call that turned out to be free; the call stays counted.
    pub async fn social_give_back(&self, take: SocialTake) -> Result<(), StoreError> {
        on_engine!(self, e => e.social_give_back(take).await)
    }

    /// What was used of a day: all platforms together under an empty name, then each.
    pub async fn social_days(&self, day: i64) -> Result<Vec<SocialDay>, StoreError> {
        on_engine!(self, e => e.social_days(day).await)
    }

    // Video tasks. Times to come are given in milliseconds from now.

    /// Holds the money of a task and writes it down, in one transaction; durable when this returns. Nothing was sent yet.
    pub async fn begin_task(&self, hold: Hold, new: NewTask) -> Result<BegunTask, HoldRefused> {
        on_engine!(self, e => e.begin_task(hold, new).await)
    }

    /// It is about to be sent to this provider: durable when this returns. `false`: others look after it by now, do not send.
    pub async fn task_sending(&self, begun: BegunTask, to: SentTo, lease_ms: i64) -> Result<bool, StoreError> {
        on_engine!(self, e => e.task_sending(begun, to, lease_ms).await)
    }

    /// The provider has taken it under this name: its creator knows, so no fence is asked for. Durable when this returns. Where another
    /// task has the name, this one's fate is unknown from now on.
    pub async fn task_accepted(&self, id: TaskId, upstream_id: String, after_ms: i64) -> Result<Named, StoreError> {
        on_engine!(self, e => e.task_accepted(id, upstream_id, after_ms).await)
    }

    /// Gives a task back that goes on, with the name under which its provider was found to have it. Durable when this returns. Where
    /// another task has the name nothing changes, and whoever looked for it still has it.
    pub async fn task_found(&self, step: TaskStep, upstream_id: String) -> Result<Named, StoreError> {
        on_engine!(self, e => e.task_found(step, upstream_id).await)
    }

    /// Open tasks that are due, but not those at these providers, the longest due first, each for one taker at a time.
    pub async fn take_tasks(&self, limit: u32, lease_ms: i64, except: &[String]) -> Result<Vec<Leased>, StoreError> {
        on_engine!(self, e => e.take_tasks(limit, lease_ms, except).await)
    }

    /// One open task before it is due; `None` when it has ended, somebody has it, or its provider is to be left alone until then.
    pub async fn take_task(&self, id: TaskId, lease_ms: i64) -> Result<Option<Leased>, StoreError> {
        on_engine!(self, e => e.take_task(id, lease_ms).await)
    }

    /// Gives a task back that goes on. `false`: somebody else has it by now, nothing changed.
    pub async fn put_back_task(&self, step: TaskStep) -> Result<bool, StoreError> {
        on_engine!(self, e => e.put_back_task(step).await)
    }

    /// Ends a task: its terminal state, its money, its usage row and its webhook in one transaction, durable when this returns.
    /// `None`: somebody else has it by now, or it has ended; nothing changed.
    pub async fn finish_task(&self, end: TaskEnd) -> Result<Option<Closed>, StoreError> {
        on_engine!(self, e => e.finish_task(end).await)
    }

    /// A task of an account, however it stands. Another account's, or one that was hidden, is not found.
    pub async fn task(&self, account: AccountId, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_engine!(self, e => e.task(account, id).await)
    }

    /// A task by its id alone, for those who have a right to it by another way than its account: a signed link, a webhook.
    pub async fn any_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_engine!(self, e => e.any_task(id).await)
    }

    /// The task a webhook tells of, also where its account has hidden it since.
    pub async fn told_task(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        on_engine!(self, e => e.told_task(id).await)
    }

    /// Which of these names at providers belong to tasks of ours, whosever they are and however they stand.
    pub async fn tasks_named(&self, upstream_ids: &[String]) -> Result<Vec<String>, StoreError> {
        on_engine!(self, e => e.tasks_named(upstream_ids).await)
    }

    /// Tasks begun between two moments that may have been sent and have no name at their provider: those being sent, those whose
    /// creation was lost, and those given up without ever having been found. Hidden ones too.
    pub async fn nameless_tasks(&self, created: (i64, i64), limit: u32) -> Result<Vec<Task>, StoreError> {
        on_engine!(self, e => e.nameless_tasks(created, limit).await)
    }

    /// A page of the tasks an account can see.
    pub async fn tasks(&self, account: AccountId, page: TaskPage) -> Result<Vec<Task>, StoreError> {
        on_engine!(self, e => e.tasks(account, page).await)
    }

    /// Hides a task from its account. Its money goes its way. `false`: there is no such task to be seen.
    pub async fn hide_task(&self, account: AccountId, id: TaskId) -> Result<bool, StoreError> {
        on_engine!(self, e => e.hide_task(account, id).await)
    }

    /// Another way to the finished file (a newer link, a copy).
    pub async fn keep_result(&self, id: TaskId, result: String) -> Result<(), StoreError> {
        on_engine!(self, e => e.keep_result(id, result).await)
    }

    /// Open tasks by state.
    pub async fn open_tasks(&self) -> Result<Vec<OpenTasks>, StoreError> {
        on_engine!(self, e => e.open_tasks().await)
    }

    /// Turns at a provider, over all replicas: each begins at an even distance from the one before.
    pub async fn turns(&self, wish: TurnWish<'_>) -> Result<Turns, StoreError> {
        on_engine!(self, e => e.turns(wish).await)
    }

    /// Webhooks that are due, each for one taker at a time.
    pub async fn take_webhooks(&self, wish: WebhookWish, lease_ms: i64) -> Result<Vec<Webhook>, StoreError> {
        on_engine!(self, e => e.take_webhooks(wish, lease_ms).await)
    }

    /// What became of one; nothing changes when somebody else has it by now.
    pub async fn told(&self, webhook: &Webhook, told: Told) -> Result<(), StoreError> {
        on_engine!(self, e => e.told(webhook, told).await)
    }

    /// Remembers that a call found nothing.
    pub async fn social_vain(&self, vain: SocialVain) -> Result<(), StoreError> {
        on_engine!(self, e => e.social_vain(vain).await)
    }

    /// Calls that found nothing at `since` or later, newest first, as far as that still means something.
    pub async fn social_vains(&self, since: i64) -> Result<Vec<SocialVain>, StoreError> {
        on_engine!(self, e => e.social_vains(since).await)
    }

    /// A turn on a route that takes so many requests a second, over all replicas.
    pub async fn social_turn(&self, route: &str, per_second: u32, patience_ms: u64) -> Result<SocialTurn, StoreError> {
        on_engine!(self, e => e.social_turn(route, per_second, patience_ms).await)
    }

    /// The ledger entries of one call of an account, in their order.
    pub async fn entries_of(&self, account: AccountId, call: CallId) -> Result<Vec<CallEntry>, StoreError> {
        on_engine!(self, e => e.entries_of(account, call).await)
    }

    // Housekeeping.

    /// Resolves holds past their time (and those of dead replicas), forgets old idempotency keys, takes back trial credit past
    /// its time.
    pub async fn sweep(&self, now: i64) -> Result<Swept, StoreError> {
        self.write_refusals(self.refusals.due(Some(on_engine!(self, e => e.now()))));
        on_engine!(self, e => e.sweep(now).await)
    }

    /// Says that this replica lives; every five seconds or so.
    pub async fn beat(&self) -> Result<(), StoreError> {
        on_engine!(self, e => e.beat().await)
    }

    /// Recomputes every balance, every charge and every hash from the entries.
    pub async fn verify(&self) -> Result<Report, StoreError> {
        on_engine!(self, e => e.verify(false).await)
    }

    /// The same, and nothing is let pass that a healthy ledger may have: losses, entries from before there was a hash chain.
    pub async fn verify_strictly(&self) -> Result<Report, StoreError> {
        on_engine!(self, e => e.verify(true).await)
    }

    /// The same for what has changed since the last audit of this process, or for everything when there is none to go on from:
    /// at the start, and after one that failed.
    pub async fn verify_changed(&self) -> Result<Report, StoreError> {
        on_engine!(self, e => e.verify_changed().await)
    }
}
