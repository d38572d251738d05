//! One group of operations as one transaction: entries and usage rows are inserted one by one with
//! prepared statements, balances are updated once per account and key.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rusqlite::{CachedStatement, Connection, params};

use crate::account::limits::Used;
use crate::account::lots::{self, CreditKey};
use crate::call::counters::{COUNTERS, Counter};
use crate::call::price::KnownPrices;
use crate::call::row_hash::{self, Decided, RowFacts};
use crate::call::{Ending, UsageFacts};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, IdMap, KeyId};
use crate::ledger::chain::{ChainLink, Content, Hash};
use crate::ledger::{self, EntryKind, Pots, op_id};
use crate::sqlite::payments::MoneyDone;
use crate::sqlite::writer::entries::{ENTRY, ENTRY_COLUMNS};
use crate::sqlite::writer::ops::{CloseOp, CreditDone, HoldOp, Op, RefusalOp};
use crate::sqlite::writer::row_hashes::RowHashes;
use crate::sqlite::writer::row_statement::{RowStatement, RowValue};
use crate::sqlite::writer::whole::WholeCalls;
use crate::sums::SummedUntil;
use crate::sums::pending::PendingSums;
use crate::task::Webhook;

/// The columns of a usage row but for its counters, which come after them.
const USAGE: &str = "account_id, call_id, key_id, at, ended_at, endpoint, model, provider, upstream_model, ending, reason, status, estimated, \
     hold, charge, write_off, price_id, raw_usage, attempts, first_byte_ms, tier, dropped, hash, tools, cost";
const USAGE_COLUMNS: usize = 25;
static INSERT_USAGE: LazyLock<String> = LazyLock::new(|| {
    let counters = COUNTERS.replace("u.", "");
    let values = vec!["?"; USAGE_COLUMNS + Counter::COUNT].join(", ");
    format!("INSERT INTO usage ({USAGE}{counters}) VALUES ({values})")
});
const ACCOUNT: &str = "UPDATE account SET trial_available = trial_available + ?2, paid_available = paid_available + ?3, \
     trial_held = trial_held + ?4, paid_held = paid_held + ?5, day = coalesce(?6, day), \
     day_used = coalesce(?7, day_used), month = coalesce(?8, month), month_used = coalesce(?9, month_used), \
     links = coalesce(?10, links), head = coalesce(?11, head), last_at = coalesce(?12, last_at) WHERE id = ?1";
const KEY: &str = "UPDATE key SET spent = spent + ?2, held = held + ?3, day = coalesce(?4, day), \
     day_used = coalesce(?5, day_used), month = coalesce(?6, month), month_used = coalesce(?7, month_used) WHERE id = ?1";

/// What an operation answers, beyond being durable.
pub(in crate::sqlite) enum Outcome {
    Plain,
    Done(Result<(), StoreError>),
    Credit(Result<CreditDone, StoreError>),
    Count(u64),
    Webhooks(Vec<Webhook>),
    Money(Result<MoneyDone, StoreError>),
}

#[derive(Default)]
pub(in crate::sqlite) struct AccountDelta {
    pub available: Pots,
    pub held: Pots,
    /// As it is after the last operation.
    pub used: Option<Used>,
    /// The end of the hash chain.
    pub end: Option<ChainLink>,
    /// The time of the last entry.
    pub last_at: Option<i64>,
}

#[derive(Default)]
pub(in crate::sqlite) struct KeyDelta {
    pub spent: i64,
    pub held: i64,
    pub used: Option<Used>,
}

/// Writes operations inside an open transaction; `flush` brings the balances along.
pub(in crate::sqlite) struct Apply<'a> {
    pub(in crate::sqlite) conn: &'a Connection,
    known: &'a KnownPrices,
    /// The statements of every call, looked up once per group.
    pub(in crate::sqlite) entry: RowStatement<'a, ENTRY_COLUMNS>,
    usage: RowStatement<'a, { USAGE_COLUMNS + Counter::COUNT }>,
    next_seq: i64,
    /// Calls that begin and end in this group.
    pub whole: WholeCalls<'a>,
    /// Hashes of rows, where they were computed together.
    pub hashes: RowHashes,
    /// How much of replies is stored for the idempotency keys of an account.
    pub(in crate::sqlite) reply_bytes: u64,
    /// How many sums wait at most to be merged.
    pub(in crate::sqlite) sums_apart: u32,
    /// Ends of hash chains: as earlier groups left them, and as this one has flushed them.
    pub(in crate::sqlite) known_ends: &'a IdMap<AccountId, ChainLink>,
    pub ends: IdMap<AccountId, ChainLink>,
    pub(in crate::sqlite) accounts: IdMap<AccountId, AccountDelta>,
    pub(in crate::sqlite) keys: IdMap<KeyId, KeyDelta>,
    /// What is free and what is held of trial credit that expires.
    pub(in crate::sqlite) lots: BTreeMap<(AccountId, CreditKey), (i64, i64)>,
    /// What the rows of this group add to the sums of the usage log.
    pub(in crate::sqlite) sums: PendingSums,
    /// Which rows are in the sums, once it was looked up; `Some(None)`: all of them.
    pub(in crate::sqlite) summed: Option<Option<SummedUntil>>,
    pub new_prices: Vec<[u8; 16]>,
    /// Holds opened (with their entry) and closed (`None`), for the watermark of open holds.
    pub holds: Vec<(CallId, Option<i64>)>,
}

impl<'a> Apply<'a> {
    pub fn new(
        conn: &'a Connection,
        known: &'a KnownPrices,
        known_ends: &'a IdMap<AccountId, ChainLink>,
        next_seq: i64,
        (reply_bytes, sums_apart): (u64, u32),
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            known,
            entry: RowStatement::new(conn.prepare_cached(ENTRY)?),
            usage: RowStatement::new(conn.prepare_cached(&INSERT_USAGE)?),
            next_seq,
            whole: WholeCalls::default(),
            hashes: RowHashes::default(),
            reply_bytes,
            sums_apart,
            known_ends,
            ends: IdMap::default(),
            accounts: IdMap::default(),
            keys: IdMap::default(),
            lots: BTreeMap::new(),
            sums: PendingSums::default(),
            summed: None,
            new_prices: Vec::new(),
            holds: Vec::new(),
        })
    }

    pub fn next_seq(&self) -> i64 {
        self.next_seq
    }

    /// How much has been written, to come back to with [`Apply::discard`].
    pub fn mark(&self) -> (usize, usize, IdMap<AccountId, ChainLink>) {
        (self.holds.len(), self.new_prices.len(), self.ends.clone())
    }

    /// Forgets what an operation that was rolled back left in memory.
    pub fn discard(&mut self, (holds, prices, ends): (usize, usize, IdMap<AccountId, ChainLink>)) {
        self.ends = ends;
        self.accounts.clear();
        self.keys.clear();
        self.lots.clear();
        self.sums.clear();
        self.summed = None;
        self.holds.truncate(holds);
        self.new_prices.truncate(prices);
    }

    pub(in crate::sqlite) fn seq(&mut self) -> i64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        seq
    }

    pub(in crate::sqlite) fn statement(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.conn.prepare_cached(sql)
    }

    pub fn write(&mut self, op: &Op) -> rusqlite::Result<Outcome> {
        match op {
            Op::Hold(hold) => self.hold(hold)?,
            Op::Extend(extend) => self.extend(extend)?,
            Op::Close(close) => self.close(close)?,
            Op::Refusal(refusal) => self.refusal(refusal)?,
            Op::Account(new, _) => return Ok(Outcome::Done(self.account(&new.0, &new.1)?)),
            Op::Social(social, _) => return Ok(Outcome::Done(self.social(social)?)),
            Op::RouteHealth(health, _) => return self.route_health(health).map(|()| Outcome::Done(Ok(()))),
            Op::Probe(probe, _) => return Ok(Outcome::Count(self.probe(probe)?)),
            Op::Manage(manage, _) => return Ok(Outcome::Count(self.manage(manage)?)),
            Op::ClientSecret(secret, _) => return Ok(Outcome::Count(self.client_secret(secret)?)),
            Op::WorkflowRun(run, _) => return Ok(Outcome::Count(self.workflow_run(run)?)),
            Op::People(write, _) => return Ok(Outcome::Count(self.people(write)?)),
            Op::Task(task, _) => return Ok(Outcome::Done(self.task(task)?)),
            Op::TakeWebhooks { now, until, wish, .. } => {
                return self.take_webhooks(*now, *until, wish).map(Outcome::Webhooks);
            }
            Op::Money(money, _) => return Ok(Outcome::Money(self.money(money)?)),
            Op::Operator(operator, _) => return Ok(Outcome::Done(self.operator(operator)?)),
            Op::Key(new, _) => return Ok(Outcome::Done(self.key(&new.0, &new.1)?)),
            Op::Revoke(revoke, _) => {
                let (id, at, done) = revoke.as_ref();
                return self.revoke(*id, *at, done).map(|()| Outcome::Done(Ok(())));
            }
            Op::Change(change, _) => return Ok(Outcome::Done(self.change(change)?)),
            Op::Webhook(webhook, _) => {
                let (account, url, at, done) = webhook.as_ref();
                return self.account_webhook(*account, url.as_deref(), *at, done).map(Outcome::Done);
            }
            Op::Lapse(lapse) => self.lapse(lapse)?,
            Op::Clock(saved) => self.clock(saved)?,
            Op::Recount(account, key, spent) => {
                self.accounts.entry(*account).or_default().used = Some(spent.account);
                self.keys.entry(*key).or_default().used = Some(spent.key);
            }
            Op::Credit(credit, _) => return Ok(Outcome::Credit(self.credit(credit)?)),
            Op::ReceiptKey(key, _) => {
                self.rotate_receipt_key(key)?;
                return Ok(Outcome::Done(Ok(())));
            }
            Op::SigningSecrets(names, at, _) => {
                self.note_signing_secrets(names, *at)?;
                return Ok(Outcome::Done(Ok(())));
            }
            Op::FillSums(most, _) => return Ok(Outcome::Count(self.fill_sums(*most)?)),
            Op::FoldSums(step, _) => return Ok(Outcome::Count(self.fold_sums(step)?)),
            Op::ForgetIdem { before, .. } => {
                return Ok(Outcome::Count(self.forget_keys(*before)?));
            }
        }
        Ok(Outcome::Plain)
    }

    pub fn flush(&mut self) -> rusqlite::Result<()> {
        let mut statement = RowStatement::new(self.statement(ACCOUNT)?);
        for (id, d) in self.accounts.drain() {
            self.ends.extend(d.end.map(|end| (id, end)));
            let [day, day_used, month, month_used] = used_columns(d.used);
            statement.write(&[
                (&id.0).into(),
                d.available.trial.into(),
                d.available.paid.into(),
                d.held.trial.into(),
                d.held.paid.into(),
                day.into(),
                day_used.into(),
                month.into(),
                month_used.into(),
                d.end.map(|end| end.number).into(),
                d.end.as_ref().map(|end| &end.hash).into(),
                d.last_at.into(),
            ])?;
        }
        let mut statement = RowStatement::new(self.statement(KEY)?);
        for (id, d) in self.keys.drain() {
            let [day, day_used, month, month_used] = used_columns(d.used);
            statement.write(&[
                (&id.0).into(),
                d.spent.into(),
                d.held.into(),
                day.into(),
                day_used.into(),
                month.into(),
                month_used.into(),
            ])?;
        }
        self.flush_lots()?;
        self.flush_sums()
    }

    fn price(&mut self, price: &tollgate_catalog::Price) -> rusqlite::Result<()> {
        let id = price.id();
        if !self.known.has(&id) && !self.new_prices.contains(&id) {
            let json = serde_json::to_string(price).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
            self.statement("INSERT OR IGNORE INTO price (id, json) VALUES (?1, ?2)")?.execute(params![id, json])?;
            self.new_prices.push(id);
        }
        Ok(())
    }

    fn hold(&mut self, h: &HoldOp) -> rusqlite::Result<()> {
        if let Some(price) = &h.price {
            self.price(price)?;
        }
        if !self.whole.contains_key(&h.call) {
            let seq = self.entry(
                h.account,
                &Content {
                    op_id: &op_id(&h.call.0, ledger::CLASS_HOLD),
                    kind: EntryKind::Hold as i64,
                    key: Some(&h.key.0),
                    trial: h.pots.trial,
                    paid: h.pots.paid,
                    at: h.at,
                    lots: lots::to_text(&h.lots).as_deref(),
                    ..terms(h)
                },
            )?;
            self.hold_lots(h.account, &h.lots);
            self.holds.push((h.call, Some(seq)));
        }
        if let Some(idem) = &h.idem {
            let sql = "INSERT OR REPLACE INTO idem (account_id, key_hash, fingerprint, call_id, at) \
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            self.statement(sql)?.execute(params![h.account.0, idem.key_hash, idem.fingerprint, h.call.0, h.at])?;
        }
        if let Some(task) = &h.task {
            self.new_task(h, task)?;
        }
        let account = self.accounts.entry(h.account).or_default();
        account.available = account.available.minus(h.pots);
        account.held = account.held.plus(h.pots);
        account.used = Some(h.spent.account);
        let key = self.keys.entry(h.key).or_default();
        key.held += h.pots.total();
        key.used = Some(h.spent.key);
        Ok(())
    }

    fn close(&mut self, c: &CloseOp) -> rusqlite::Result<()> {
        let s = c.settlement;
        let captured = s.take.total();
        let row = UsageInsert::of(c);
        if !s.extend.is_zero() {
            self.movement(c, EntryKind::Extend, ledger::CLASS_EXTEND, s.extend, Pots::default(), None)?;
        }
        let kind = match (s.take.is_zero() && s.write_off == 0, c.ending) {
            (false, _) => EntryKind::Settle,
            (true, Ending::Expired) => EntryKind::Expire,
            (true, _) => EntryKind::Void,
        };
        let hash = self.hashes.take(c.call).unwrap_or_else(|| row.hash());
        let reference = row_hash::reference(&hash);
        self.movement(c, kind, ledger::CLASS_TERMINAL, s.release, s.take, Some(&reference))?;
        if s.write_off > 0 {
            let loss = Pots { trial: 0, paid: s.write_off };
            self.movement(c, EntryKind::WriteOff, ledger::CLASS_WRITE_OFF, loss, Pots::default(), None)?;
        }
        if let Some(price) = &c.row.price {
            self.price(price)?;
        }
        self.usage(&row, &hash)?;
        if let Some(task) = &c.task {
            self.end_task(c.call, c.account, task, c.at)?;
        }
        if let Some(idem) = &c.idem {
            self.end_key(c, idem)?;
        }
        let account = self.accounts.entry(c.account).or_default();
        account.available = account.available.minus(s.extend).plus(s.release.minus(s.take));
        account.held = account.held.minus(c.held);
        account.used = Some(c.spent.account);
        let key = self.keys.entry(c.key).or_default();
        key.held -= c.held.total();
        key.spent += captured;
        key.used = Some(c.spent.key);
        for &(credit, free, held) in &c.lot_moves {
            self.move_lot(c.account, credit, free, held);
        }
        if self.whole.remove(&c.call).is_none() {
            self.holds.push((c.call, None));
        }
        Ok(())
    }

    fn movement(
        &mut self,
        c: &CloseOp,
        kind: EntryKind,
        class: u8,
        pots: Pots,
        take: Pots,
        reference: Option<&str>,
    ) -> rusqlite::Result<()> {
        // The usage row has the reason of ordinary endings; the ledger repeats it only where
        // nothing was charged.
        let free = matches!(kind, EntryKind::Void | EntryKind::Expire);
        let reason = (free && !c.reason.is_empty()).then_some(c.reason.as_str());
        let lots = if kind == EntryKind::Extend { lots::to_text(&c.extend_lots) } else { None };
        let terms = self.whole.get(&c.call).map_or_else(Content::default, |hold| terms(hold));
        self.entry(
            c.account,
            &Content {
                op_id: &op_id(&c.call.0, class),
                kind: kind as i64,
                key: Some(&c.key.0),
                trial: pots.trial,
                paid: pots.paid,
                take_trial: take.trial,
                take_paid: take.paid,
                at: c.at,
                reference,
                reason,
                lots: lots.as_deref(),
                ..terms
            },
        )?;
        Ok(())
    }

    pub(in crate::sqlite) fn refusal(&mut self, r: &RefusalOp) -> rusqlite::Result<()> {
        let row = UsageInsert {
            call: r.call,
            account: r.account,
            key: r.row.key,
            ending: r.ending,
            reason: &r.reason,
            row: &r.row,
            hold: 0,
            charge: 0,
            write_off: 0,
            price_id: None,
        };
        self.usage(&row, &row.hash())
    }

    fn usage(&mut self, u: &UsageInsert<'_>, hash: &Hash) -> rusqlite::Result<()> {
        let facts = u.facts();
        let columns: [RowValue<'_>; USAGE_COLUMNS] = [
            facts.account.into(),
            facts.call.into(),
            (&u.key.0).into(),
            facts.at.into(),
            facts.ended_at.into(),
            facts.endpoint.into(),
            facts.model.into(),
            facts.provider.into(),
            facts.upstream_model.into(),
            facts.ending.into(),
            facts.reason.into(),
            facts.status.into(),
            facts.estimated.into(),
            u.hold.into(),
            u.charge.into(),
            u.write_off.into(),
            u.price_id.into(),
            facts.raw_usage.into(),
            facts.attempts.into(),
            facts.first_byte_ms.into(),
            facts.tier.into(),
            facts.dropped.into(),
            hash.into(),
            facts.tools.as_deref().into(),
            facts.cost.into(),
        ];
        let mut all = [RowValue::Null; USAGE_COLUMNS + Counter::COUNT];
        all[..USAGE_COLUMNS].copy_from_slice(&columns);
        for (place, counter) in all[USAGE_COLUMNS..].iter_mut().zip(facts.counters) {
            *place = counter.into();
        }
        self.usage.write(&all)?;
        self.sum_row((u.account, u.call, u.key), &facts, (u.charge, u.write_off))
    }
}

/// What a hold says beside the money it sets aside.
fn terms(hold: &HoldOp) -> Content<'_> {
    Content {
        price_id: Some(&hold.price_id),
        model: Some(&hold.model),
        endpoint: Some(&hold.endpoint),
        expires_at: Some(hold.expires_at),
        paid_only: Some(hold.paid_only),
        ..Content::default()
    }
}

/// Nothing where nothing changed.
fn used_columns(used: Option<Used>) -> [Option<i64>; 4] {
    match used {
        Some(u) => [u.day_number, u.day.nano(), u.month_number, u.month.nano()].map(Some),
        None => [None; 4],
    }
}

pub(super) struct UsageInsert<'a> {
    call: CallId,
    account: AccountId,
    key: KeyId,
    ending: Ending,
    reason: &'a str,
    row: &'a UsageFacts,
    hold: i64,
    charge: i64,
    write_off: i64,
    price_id: Option<&'a [u8; 16]>,
}

impl<'a> UsageInsert<'a> {
    /// The row of a call that has ended.
    pub fn of(end: &'a CloseOp) -> UsageInsert<'a> {
        UsageInsert {
            call: end.call,
            account: end.account,
            key: end.key,
            ending: end.ending,
            reason: &end.reason,
            row: &end.row,
            hold: end.held.total(),
            charge: end.settlement.take.total(),
            write_off: end.settlement.write_off,
            price_id: Some(&end.price_id),
        }
    }

    pub fn facts(&self) -> RowFacts<'_> {
        RowFacts::of(&self.call, &self.account, self.ending, self.reason, self.row)
    }

    pub fn decided(&self) -> Decided<'_> {
        Decided {
            key: &self.key.0,
            price_id: self.price_id.map(<[u8; 16]>::as_slice),
            hold: self.hold,
            charge: self.charge,
            write_off: self.write_off,
        }
    }

    pub fn hash(&self) -> Hash {
        self.decided().hash(&self.facts().hash())
    }
}
