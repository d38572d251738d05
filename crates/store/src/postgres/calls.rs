//! Holds, closes, marks and refusals on PostgreSQL, queued.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tollgate_catalog::Money;

use super::batch::stored_reply;
use super::ops::{Hex, RefusalBody, RowBody, bytes, text};
use super::queue::{Closer, OpReply, PendingOp};
use super::queued::{QueuedClose, QueuedHold, QueuedOp};
use super::records::SqlParam;
use super::rows::id;
use super::{PostgresEngine, Running, lock};
use crate::call::group::{Closing, ClosingWait, Held, HeldWait};
use crate::call::row_hash::{Decided, RowFacts};
use crate::call::{Close, Closed, Ending, Extend, Hold, HoldRefused, Idem, Mark, UsageFacts, tidy_raw_usage};
use crate::error::StoreError;
use crate::ids::{AccountId, CallId, KeyId};
use crate::journal::record;
use crate::ledger::extend_op_id;

/// Above this many queued operations nothing new is taken in.
const QUEUE_LIMIT: usize = 50_000;
/// Above this many the usage rows of refusals are left out.
const REFUSAL_LIMIT: usize = 10_000;

type HoldVerdict = oneshot::Receiver<Result<(i64, i64), HoldRefused>>;

impl PostgresEngine {
    pub async fn hold(self: &Arc<Self>, hold: Hold) -> Result<Held, HoldRefused> {
        let receive = match self.queue_hold(&hold, None) {
            Err(HoldRefused::Unavailable) => return Err(self.repeated_without_ledger(&hold).await),
            queued => queued?,
        };
        // Dropped before the answer (a client that left, or the deadline): whatever was applied is
        // undone.
        let mut guard =
            Undo { engine: self, hold: Some((hold.call, hold.account, hold.key, hold.model.clone(), hold.endpoint)) };
        match tokio::time::timeout(self.options.hold_deadline, receive).await {
            Ok(Ok(verdict)) => {
                guard.hold = None;
                verdict.map(|pots| held(hold.call, pots))
            }
            Ok(Err(_)) | Err(_) => Err(self.repeated_without_ledger(&hold).await),
        }
    }

    /// The ledger takes no hold. Who repeats a request whose answer is stored needs none.
    pub(super) async fn repeated_without_ledger(&self, hold: &Hold) -> HoldRefused {
        let Some(idem) = hold.idem else { return HoldRefused::Unavailable };
        let sql = "SELECT call_id, fingerprint, done, status, content_type, reply FROM idem \
                   WHERE account_id = $1 AND key_hash = $2 AND call_id <> $3";
        let slot: [SqlParam<'_>; 3] = [&hold.account.0.as_slice(), &idem.key_hash.as_slice(), &hold.call.0.as_slice()];
        let known = async {
            let rows = self.rows_within(self.options.hold_deadline, sql, &slot).await?;
            rows.first().map(|row| repeated(row, &idem)).transpose()
        };
        known.await.ok().flatten().unwrap_or(HoldRefused::Unavailable)
    }

    /// Asks for a hold, and for the task it is for.
    pub(super) fn queue_hold(&self, hold: &Hold, task: Option<Value>) -> Result<HoldVerdict, HoldRefused> {
        let shared = &self.shared;
        self.takes_more()?;
        if hold.amount.is_negative() {
            return Err(HoldRefused::Insufficient { available: Money::ZERO });
        }
        let price_id = hold.price.id();
        let waits = QueuedHold {
            hold: hold.clone(),
            price_id,
            price_is_new: !shared.known_prices.has(&price_id),
            life: hold.expires_at.saturating_sub(self.steady()).max(0),
            at: self.now(),
            sure: self.clock.sure(),
        };
        let op = match task {
            None => QueuedOp::Hold(Box::new(waits)),
            task => QueuedOp::Written(waits.written(&shared.replica, task)),
        };
        let (send, receive) = oneshot::channel();
        lock(&shared.open).insert(hold.call, Running { at: self.steady(), given_up: false });
        shared.queue.push(PendingOp { op, answer: OpReply::Hold(hold.call, price_id, send) });
        Ok(receive)
    }

    /// A wisher who leaves before the answer needs no undoing: the close ends the whole hold,
    /// however large.
    pub async fn extend(&self, extend: Extend) -> Result<Held, HoldRefused> {
        self.takes_more()?;
        if extend.more.is_negative() {
            return Err(HoldRefused::Insufficient { available: Money::ZERO });
        }
        let body = json!({
            "kind": "extend",
            "op": bytes(&extend_op_id(&extend.call.0, extend.step)),
            "call": bytes(&extend.call.0),
            "account": bytes(&extend.account.0),
            "amount": extend.more.nano(),
            "least": extend.least.nano(),
            "at": self.now(),
            "sure": self.clock.sure(),
            "replica": bytes(&self.shared.replica),
        });
        let (send, receive) = oneshot::channel();
        let op = QueuedOp::Written(body.to_string());
        self.shared.queue.push(PendingOp { op, answer: OpReply::Extend(send) });
        match tokio::time::timeout(self.options.hold_deadline, receive).await {
            Ok(Ok(verdict)) => verdict.map(|pots| held(extend.call, pots)),
            Ok(Err(_)) | Err(_) => Err(HoldRefused::Unavailable),
        }
    }

    /// Whether holds can be taken, or made larger, at all.
    fn takes_more(&self) -> Result<(), HoldRefused> {
        let shared = &self.shared;
        let refuse = shared.down.load(Ordering::Acquire)
            || shared.queue.is_stopped()
            || shared.queue.len() >= QUEUE_LIMIT
            || !shared.journal.accepts(shared.queue.durable());
        if refuse { Err(HoldRefused::Unavailable) } else { Ok(()) }
    }

    pub fn close(self: &Arc<Self>, mut close: Close) -> Closing {
        close.row.raw_usage = tidy_raw_usage(close.row.raw_usage.take());
        let mut written = record::write_close(&close, None, &self.shared.known_prices);
        let call = close.call;
        let (op, receive) = self.queue_close(close, None, None);
        self.shared.journal.append_close(call, op, &mut written, self.shared.queue.durable());
        Closing { wait: ClosingWait::Reply(receive) }
    }

    /// The close without the journal: for recovery and sweeps. `known` learns whether there ever
    /// was such a hold.
    pub(super) fn queue_close(
        &self,
        close: Close,
        price_id: Option<[u8; 16]>,
        known: Option<oneshot::Sender<bool>>,
    ) -> (u64, oneshot::Receiver<Closed>) {
        let (send, receive) = oneshot::channel();
        let closer = Closer { call: close.call, send, known, estimated: close.estimated_for() };
        let op = QueuedOp::Close(Box::new(self.waiting_close(close, price_id)));
        let number = self.shared.queue.push(PendingOp { op, answer: OpReply::Close(Box::new(closer)) });
        (number, receive)
    }

    pub(super) fn waiting_close(&self, close: Close, price_id: Option<[u8; 16]>) -> QueuedClose {
        let price = close.row.price.as_ref().map(|price| price.id());
        QueuedClose {
            price_id: price.or(price_id),
            price_is_new: price.is_some_and(|id| !self.shared.known_prices.has(&id)),
            at: self.now(),
            sure: self.clock.sure(),
            reply_room: self.options.reply_bytes,
            close,
        }
    }

    pub fn mark(&self, mut mark: Mark) {
        if !lock(&self.shared.open).contains_key(&mark.call) {
            return;
        }
        mark.row.raw_usage = tidy_raw_usage(mark.row.raw_usage.take());
        let written = record::write_mark(&mark, &self.shared.known_prices);
        self.shared.journal.append_mark(mark.call, written, self.shared.queue.durable());
    }

    pub fn note_refusal(&self, call: CallId, account: AccountId, reason: String, mut row: UsageFacts) {
        row.raw_usage = tidy_raw_usage(row.raw_usage.take());
        let shared = &self.shared;
        if shared.queue.len() >= REFUSAL_LIMIT || shared.down.load(Ordering::Relaxed) {
            shared.refusals_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let decided = Decided { key: &row.key.0, price_id: None, hold: 0, charge: 0, write_off: 0 };
        let facts = RowFacts::of(&call, &account, Ending::Refused, &reason, &row);
        let of_facts = facts.hash();
        let hash = decided.hash(&of_facts);
        let mut written = RowBody::of(&facts, &row.key.0, &of_facts);
        written.hash = Some(Hex(&hash));
        let refusal = RefusalBody { kind: "refusal", account: Hex(&account.0), row: written };
        let op = QueuedOp::Written(text(&refusal));
        shared.queue.push(PendingOp { op, answer: OpReply::Nobody });
    }
}

/// What a stored idempotency key says to one who comes with it again.
fn repeated(row: &Row, idem: &Idem) -> Result<HoldRefused, StoreError> {
    let call = CallId(id(row, 0)?);
    if row.try_get::<_, &[u8]>(1)? != idem.fingerprint {
        return Ok(HoldRefused::IdemConflict);
    }
    if row.try_get::<_, i16>(2)? == 0 {
        return Ok(HoldRefused::IdemRunning(call));
    }
    Ok(HoldRefused::IdemDone { call, reply: stored_reply(row, 3)? })
}

fn held(call: CallId, (trial, paid): (i64, i64)) -> Held {
    Held { call, trial: Money::from_nano(trial), paid: Money::from_nano(paid), wait: HeldWait::Done }
}

/// Voids a hold whose wisher did not learn that it was granted.
struct Undo<'a> {
    engine: &'a PostgresEngine,
    hold: Option<(CallId, AccountId, KeyId, String, &'static str)>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        let Some((call, account, key, model, endpoint)) = self.hold.take() else { return };
        let now = self.engine.now();
        let row = UsageFacts::unanswered(key, now, now, endpoint.into(), model);
        let close = Close::unanswered(call, account, Ending::Refused, "ledger_unavailable", row);
        self.engine.queue_close(close, None, None);
    }
}
