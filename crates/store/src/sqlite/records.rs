//! Accounts, keys, credit, usage and housekeeping on the embedded engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;
use tollgate_catalog::Money;

use super::books::KeyBalance;
use super::read::give_way::GiveWay;
use super::read::whole::WholeAudit;
use super::writer::ops::{CommitReply, CreditOp, Op};
use super::{Audited, SqliteEngine, lock};
use crate::account::limits::{Limits, Used};
use crate::account::lots::Parts;
use crate::account::{
    Account, ChangedKeys, Credit, CreditKind, Credited, Key, KeyAndAccount, KeyOrigin, NewAccount, NewKey, Pot,
    hash_secret, in_groups,
};
use crate::call::wish::CallEntry;
use crate::call::{UsagePage, UsageRow};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::ledger::entries::{Entry, EntryPage};
use crate::ledger::{self, Pots};
use crate::margin::MarginRow;
use crate::operator::Attribution;
use crate::report::{AuditReport, Swept};
use crate::verify::AuditedFor;
use crate::workflow_run::RUNS_RETAINED_MS;

impl SqliteEngine {
    /// As [`SqliteEngine::ask`], for as long as a hold would be waited for. Not in time: the
    /// operation stays queued, and is done when the database takes it.
    pub(super) async fn ask_in_time<T>(&self, make: impl FnOnce(CommitReply<T>) -> Op) -> Result<T, StoreError> {
        let asked = tokio::time::timeout(self.options.hold_deadline, self.ask(make)).await;
        asked.unwrap_or_else(|_| Err(StoreError::away("the commit takes too long")))
    }

    /// Queues an operation and waits for its outcome.
    pub(super) async fn ask<T>(&self, make: impl FnOnce(CommitReply<T>) -> Op) -> Result<T, StoreError> {
        let (send, receive) = oneshot::channel();
        {
            let mut books = lock(&self.shared.books);
            if books.stop {
                return Err(StoreError::away("the store is shut"));
            }
            books.push(make(Some(send)));
            self.shared.ring(books);
        }
        receive.await.map_err(|_| StoreError::away("the store was shut"))?
    }

    pub async fn create_account(&self, new: NewAccount, done: Attribution) -> Result<Account, StoreError> {
        let id = new.id.unwrap_or_else(|| self.ids.account());
        let now = self.now();
        let account = Account {
            id,
            name: new.name,
            created_at: now,
            changed_at: now,
            trial_available: Money::ZERO,
            paid_available: Money::ZERO,
            trial_held: Money::ZERO,
            paid_held: Money::ZERO,
            topped_up: false,
            groups: in_groups(new.groups),
            suspended_at: None,
            limits: Limits { total: None, ..new.limits },
            used: Used::default(),
            webhook_url: None,
            members_see_all: false,
            closed_at: None,
            erased_at: None,
        };
        self.ask(|reply| Op::Account(Box::new((account, done)), reply)).await?;
        self.account(id).await?.ok_or_else(|| StoreError::broken("a new account is gone"))
    }

    pub async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        let found = self.readers.account(id).await?;
        Ok(found.map(|a| self.with_live_pots(a)))
    }

    pub async fn accounts(&self, after: Option<AccountId>, limit: u32) -> Result<Vec<Account>, StoreError> {
        let found = self.readers.accounts(after, limit).await?;
        Ok(found.into_iter().map(|a| self.with_live_pots(a)).collect())
    }

    pub async fn groups_in_use(&self) -> Result<Vec<(Vec<String>, u64)>, StoreError> {
        let read = |r: &rusqlite::Row<'_>| {
            let groups = serde_json::from_str(&r.get::<_, String>(0)?).unwrap_or_default();
            Ok((in_groups(groups), r.get::<_, i64>(1)?.unsigned_abs()))
        };
        let sql = "SELECT groups, count(*) FROM account GROUP BY groups";
        self.readers.read(move |c| Ok(c.prepare_cached(sql)?.query_map([], read)?.collect::<Result<_, _>>()?)).await
    }

    /// Balances as they are now: the database is a few milliseconds behind the books.
    fn with_live_pots(&self, mut account: Account) -> Account {
        if let Some(book) = lock(&self.shared.books).accounts.get(&account.id) {
            account.trial_available = Money::from_nano(book.available.trial);
            account.paid_available = Money::from_nano(book.available.paid);
            account.trial_held = Money::from_nano(book.held.trial);
            account.paid_held = Money::from_nano(book.held.paid);
            (account.topped_up, account.limits, account.used) = (book.topped_up, book.limits, book.used);
        }
        account.used = account.used.at(self.now());
        account
    }

    pub(super) fn with_live_spending(&self, mut key: Key) -> Key {
        if let Some(book) = lock(&self.shared.books).keys.get(&key.id) {
            key.spent = Money::from_nano(book.spent);
            key.held = Money::from_nano(book.held);
            (key.limits, key.used) = (book.limits, book.used);
        }
        key.used = key.used.at(self.now());
        key
    }

    fn live(&self, found: KeyAndAccount) -> KeyAndAccount {
        KeyAndAccount { key: self.with_live_spending(found.key), account: self.with_live_pots(found.account) }
    }

    pub async fn credit(&self, credit: Credit, request: Option<String>) -> Result<Credited, StoreError> {
        let now = self.now();
        credit.check(now)?;
        let id = credit.account;
        // A refund gives spending back to the key; the books must know the key before the database
        // changes.
        let key = match credit.kind {
            CreditKind::Refund { call } => self.readers.usage_of(id, call).await?.map(|row| row.key),
            _ => None,
        };
        if !self.load_account(id).await? {
            return Err(StoreError::NotFound(id.to_string()));
        }
        if let Some(key) = key {
            self.load_key(key).await?;
        }
        let op = match self.take_in_advance(credit, now, request)? {
            Ok(op) => op,
            // Too much to take, unless it was taken before.
            Err(op) if self.readers.entry_exists(ledger::credit_op_id(&op.credit.id)).await? => op,
            Err(_) => return Err(StoreError::Conflict("the adjustment is above the available balance".into())),
        };
        let done = self.ask(|reply| Op::Credit(Box::new(op), reply)).await?;
        let account = self.account(id).await?.ok_or_else(|| StoreError::broken("an account is gone"))?;
        Ok(Credited { applied: done.applied, account })
    }

    /// Money that an adjustment takes away must not be spent by a hold in the meantime.
    pub(super) fn take_in_advance(
        &self,
        credit: Credit,
        now: i64,
        request: Option<String>,
    ) -> Result<Result<CreditOp, CreditOp>, StoreError> {
        let wanted = (-credit.amount.nano()).max(0);
        let taken = match credit.pot {
            Pot::Trial => Pots { trial: wanted, paid: 0 },
            Pot::Paid => Pots { trial: 0, paid: wanted },
        };
        let mut books = lock(&self.shared.books);
        let at = books.time_of(credit.account, now);
        books.lapse(credit.account, at);
        let Some(account) = books.accounts.get_mut(&credit.account) else {
            return Err(StoreError::NotFound(credit.account.to_string()));
        };
        let left = account.available.minus(taken);
        if left.trial < 0 || left.paid < 0 {
            return Ok(Err(CreditOp { credit, at, taken: Pots::default(), taken_lots: Parts::new(), request }));
        }
        account.available = left;
        let taken_lots = account.lots.take(taken.trial);
        Ok(Ok(CreditOp { credit, at, taken, taken_lots, request }))
    }

    pub async fn create_key(
        &self,
        new: NewKey,
        secret: &str,
        origin: KeyOrigin,
        done: Attribution,
    ) -> Result<Key, StoreError> {
        let now = self.now();
        let key = Key {
            id: self.ids.key(),
            account: new.account,
            hash: hash_secret(secret),
            prefix: secret.chars().take(7).collect(),
            name: new.name,
            created_at: now,
            changed_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            models: new.models,
            cidrs: new.cidrs,
            limits: new.limits,
            spent: Money::ZERO,
            held: Money::ZERO,
            used: Used::default().at(now),
            scope: new.scope,
            former_until: None,
            person: done.person,
            origin,
        };
        let made = key.clone();
        self.ask(|reply| Op::Key(Box::new((key, done)), reply)).await?;
        Ok(made)
    }

    pub async fn key_by_hash(&self, hash: [u8; 32]) -> Result<Option<KeyAndAccount>, StoreError> {
        Ok(self.readers.key_by_hash(hash).await?.map(|found| self.live(found)))
    }

    pub async fn keys(&self, account: AccountId) -> Result<Vec<Key>, StoreError> {
        let found = self.readers.keys(account).await?;
        Ok(found.into_iter().map(|k| self.with_live_spending(k)).collect())
    }

    pub async fn revoke_key(&self, id: KeyId, done: Attribution) -> Result<Option<Key>, StoreError> {
        let now = self.now();
        // The books must know the key before the database changes: one that is read meanwhile is
        // not revoked yet.
        self.load_key(id).await?;
        self.ask(|reply| Op::Revoke(Box::new((id, now, done)), reply)).await?;
        if let Some(key) = lock(&self.shared.books).keys.get_mut(&id) {
            key.revoked = true;
        }
        self.key(id).await
    }

    pub async fn keys_changed_since(&self, since: i64, overlap: i64) -> Result<ChangedKeys, StoreError> {
        let read_at = self.now();
        let found = self.readers.keys_changed_since(since.min(read_at).saturating_sub(overlap)).await?;
        Ok(ChangedKeys { keys: found.into_iter().map(|found| self.live(found)).collect(), read_at })
    }

    pub async fn usage(&self, account: Option<AccountId>, page: UsagePage) -> Result<Vec<UsageRow>, StoreError> {
        self.catch_up().await;
        self.readers.usage(account, page).await
    }

    pub async fn usage_of(&self, account: AccountId, call: CallId) -> Result<Option<UsageRow>, StoreError> {
        self.catch_up().await;
        self.readers.usage_of(account, call).await
    }

    pub async fn margins(&self, from_ms: i64, to_ms: i64) -> Result<Vec<MarginRow>, StoreError> {
        self.catch_up().await;
        self.readers.margins(from_ms, to_ms).await
    }

    pub async fn entries_of(&self, account: AccountId, call: CallId) -> Result<Vec<CallEntry>, StoreError> {
        self.catch_up().await;
        self.readers.entries_of(account, call).await
    }

    /// Brings an account and a key into the books. `false`: one of them does not exist.
    pub(super) async fn load(&self, account: AccountId, key: KeyId) -> Result<bool, StoreError> {
        Ok(self.load_account(account).await? && self.load_key(key).await?)
    }

    pub(super) async fn load_account(&self, id: AccountId) -> Result<bool, StoreError> {
        if lock(&self.shared.books).accounts.contains_key(&id) {
            return Ok(true);
        }
        let Some(found) = self.readers.account_balance(id).await? else { return Ok(false) };
        // Nothing can be under way for an account the books do not know, so what was read is
        // current.
        lock(&self.shared.books).accounts.entry(id).or_insert(found);
        Ok(true)
    }

    pub(super) async fn load_key(&self, id: KeyId) -> Result<bool, StoreError> {
        if lock(&self.shared.books).keys.contains_key(&id) {
            return Ok(true);
        }
        let Some(found) = self.readers.key(id).await? else { return Ok(false) };
        lock(&self.shared.books).keys.entry(id).or_insert_with(|| KeyBalance::of(&found));
        Ok(true)
    }

    pub async fn sweep(self: &Arc<Self>, now: i64) -> Result<Swept, StoreError> {
        let due: Vec<CallId> = {
            let mut books = lock(&self.shared.books);
            books.drop_finished_idem(self.shared.durable());
            books
                .open
                .iter()
                .filter(|(call, o)| o.expires_at <= now && !books.leases.has(**call))
                .map(|(call, _)| *call)
                .collect()
        };
        let expired = due.into_iter().filter(|call| self.resolve(*call, "expired")).count() as u64;
        let retention = i64::try_from(self.options.idem_retention.as_millis()).unwrap_or(i64::MAX);
        let sure = now.min(self.clock.sure());
        let before = sure.saturating_sub(retention);
        let forgotten = self.ask(|reply| Op::ForgetIdem { before, reply }).await?;
        self.forget_vain(sure);
        self.forget_client_secrets(sure);
        self.forget_managed(sure);
        self.tend_runs(sure.saturating_sub(RUNS_RETAINED_MS));
        let lapsed = self.lapse_due().await?;
        Ok(Swept { expired, orphaned: 0, forgotten, lapsed })
    }

    pub async fn entries(&self, page: EntryPage) -> Result<Vec<Entry>, StoreError> {
        self.catch_up().await;
        self.readers.read(move |c| super::read::audit::entries(c, page)).await
    }

    pub async fn last_entry(&self) -> Result<i64, StoreError> {
        self.catch_up().await;
        let last = "SELECT coalesce(max(seq), 0) FROM entry";
        self.readers.read(move |c| Ok(c.query_row(last, [], |r| r.get(0))?)).await
    }

    pub async fn verify(&self, strict: bool, whom: AuditedFor) -> Result<AuditReport, StoreError> {
        let mut audited = self.shared.audited.lock().await;
        self.verify_all(&mut audited, strict, whom).await
    }

    async fn verify_all(
        &self,
        audited: &mut Option<Audited>,
        strict: bool,
        whom: AuditedFor,
    ) -> Result<AuditReport, StoreError> {
        self.flush().await?;
        // What the audit before has learnt is not needed any more, and is not to be gone on from if
        // this one fails.
        *audited = None;
        let now = self.steady().min(self.clock.sure());
        let auditor = crate::verify::Auditor::new(&self.world.random);
        let way = GiveWay::new((!self.options.is_simulated()).then(|| self.shared.clone()));
        let beside = self.readers.beside().filter(|_| whom == AuditedFor::Somebody);
        let audit = WholeAudit { auditor, now, strict, way, beside };
        let (report, auditor) = self.readers.read(move |c| audit.run(c)).await?;
        self.shared.breaches.store(report.breaches.len() as u64, Ordering::Relaxed);
        *audited = Some((auditor, report.last_seq));
        Ok(report)
    }

    pub async fn verify_changed(&self) -> Result<AuditReport, StoreError> {
        let mut audited = self.shared.audited.lock().await;
        // While the ledger takes nothing there is nothing to look at, and what the audit knows
        // stays for the next round.
        self.flush().await?;
        // A round that fails on the way leaves nothing behind, and the next one looks at
        // everything.
        let Some((auditor, after)) = audited.take() else {
            return self.verify_all(&mut audited, false, AuditedFor::Nobody).await;
        };
        let now = self.steady().min(self.clock.sure());
        let changed = move |c: &rusqlite::Connection| super::read::audit::audit_changed(c, auditor, after, now);
        let (report, auditor) = self.readers.read(changed).await?;
        // What was found broken stays so until a full audit says otherwise.
        self.shared.breaches.fetch_max(report.breaches.len() as u64, Ordering::Relaxed);
        *audited = Some((auditor, report.last_seq.max(after)));
        Ok(report)
    }
}
