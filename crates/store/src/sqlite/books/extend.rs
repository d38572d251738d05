//! More for a call that outgrows its hold: decided in memory under the rules of a hold, written
//! with the group. The journal does not know of it: if the process dies before the commit, the
//! close takes what it needs itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;
use tollgate_catalog::Money;

use crate::account::lots;
use crate::call::group::{CommitGroup, Held, HeldWait};
use crate::call::{Extend, HoldRefused};
use crate::ledger::chain::Content;
use crate::ledger::{EntryKind, Pots, extend_op_id};
use crate::sqlite::books::{Books, QUEUE_LIMIT, Reserved, reserve};
use crate::sqlite::writer::apply::Apply;
use crate::sqlite::writer::ops::{ExtendOp, Op};
use crate::sqlite::{SqliteEngine, lock};

impl SqliteEngine {
    #[expect(clippy::unused_async, reason = "the verb waits on the other engine")]
    pub async fn extend(&self, extend: Extend) -> Result<Held, HoldRefused> {
        let shared = &self.shared;
        if shared.down.load(Ordering::Acquire) || !shared.journal.accepts(shared.durable()) {
            return Err(HoldRefused::Unavailable);
        }
        let now = self.now();
        let mut books = lock(&shared.books);
        let (held, op, group) = books.extend(&extend, now)?;
        shared.ring(books);
        let until = Instant::now() + self.options.hold_deadline;
        Ok(Held {
            call: extend.call,
            trial: Money::from_nano(held.trial),
            paid: Money::from_nano(held.paid),
            wait: HeldWait::Group { group, op, until },
        })
    }
}

impl Books {
    /// The whole hold as it is then, and what to wait for.
    pub(in crate::sqlite) fn extend(
        &mut self,
        extend: &Extend,
        now: i64,
    ) -> Result<(Pots, u64, Arc<CommitGroup>), HoldRefused> {
        let open = self.open.get(&extend.call).filter(|open| open.account == extend.account);
        let open = open.ok_or(HoldRefused::NotOpen)?;
        let (key_id, paid_only) = (open.key, open.paid_only);
        if let Some((step, op, group)) = &open.extended
            && *step >= extend.step
        {
            return Ok((open.held, *op, group.clone()));
        }
        if self.queue.len() >= QUEUE_LIMIT || self.stop {
            return Err(HoldRefused::Unavailable);
        }
        let at = self.time_of(extend.account, now);
        self.lapse(extend.account, at);
        let (Some(account), Some(key)) = (self.accounts.get_mut(&extend.account), self.keys.get_mut(&key_id)) else {
            return Err(HoldRefused::NoAccount);
        };
        let Reserved { pots, lots, spent } =
            reserve(account, key, (extend.more.nano(), extend.least.nano()), paid_only, at)?;
        let op = self.push(Op::Extend(Box::new(ExtendOp {
            call: extend.call,
            account: extend.account,
            key: key_id,
            step: extend.step,
            pots,
            lots: lots.clone(),
            spent,
            at,
        })));
        let group = self.group.clone();
        let open = self.open.get_mut(&extend.call).ok_or(HoldRefused::NotOpen)?;
        open.held = open.held.plus(pots);
        open.lots.extend(lots);
        open.counted.add(at, pots.total());
        open.extended = Some((extend.step, op, group.clone()));
        Ok((open.held, op, group))
    }
}

impl Apply<'_> {
    pub(in crate::sqlite) fn extend(&mut self, e: &ExtendOp) -> rusqlite::Result<()> {
        self.entry(
            e.account,
            &Content {
                op_id: &extend_op_id(&e.call.0, e.step),
                kind: EntryKind::Extend as i64,
                key: Some(&e.key.0),
                trial: e.pots.trial,
                paid: e.pots.paid,
                at: e.at,
                lots: lots::to_text(&e.lots).as_deref(),
                ..Content::default()
            },
        )?;
        self.hold_lots(e.account, &e.lots);
        let account = self.accounts.entry(e.account).or_default();
        account.available = account.available.minus(e.pots);
        account.held = account.held.plus(e.pots);
        account.used = Some(e.spent.account);
        let key = self.keys.entry(e.key).or_default();
        key.held += e.pots.total();
        key.used = Some(e.spent.key);
        Ok(())
    }
}
