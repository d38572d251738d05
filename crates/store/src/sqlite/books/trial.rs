//! Trial credit that expires, on the embedded engine: taken out of the books in memory when its
//! time has come, written with the group, and looked for by the sweep in accounts that nobody uses.

use rusqlite::params;

use crate::account::Expiring;
use crate::account::lots::CreditKey;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::ledger::chain::Content;
use crate::ledger::{EntryKind, Pots, lapse_op_id};
use crate::sqlite::books::Books;
use crate::sqlite::writer::apply::Apply;
use crate::sqlite::writer::ops::{LapseOp, Op};
use crate::sqlite::{SqliteEngine, lock};

impl Books {
    /// Takes away what has expired of the account's trial credit and is not held, by the time that
    /// is certain. Says how many credits that were.
    pub fn lapse(&mut self, account: AccountId, at: i64) -> u64 {
        // The time that is certain is never later, and is asked for only where it matters.
        let Some(book) = self.accounts.get_mut(&account).filter(|book| book.lots.is_due(at)) else { return 0 };
        let sure = self.clock.as_ref().map_or(at, |clock| clock.sure().min(at));
        if !book.lots.is_due(sure) {
            return 0;
        }
        let lapses = book.lots.lapse(sure);
        let gone = Pots { trial: lapses.iter().map(|lapse| lapse.amount).sum(), paid: 0 };
        book.available = book.available.minus(gone);
        let count = lapses.len() as u64;
        self.push(Op::Lapse(Box::new(LapseOp { account, at, lapses })));
        count
    }
}

impl SqliteEngine {
    pub async fn expiring(&self, account: AccountId) -> Result<Vec<Expiring>, StoreError> {
        if !self.load_account(account).await? {
            return Ok(Vec::new());
        }
        let now = self.now();
        let mut books = lock(&self.shared.books);
        let at = books.time_of(account, now);
        books.lapse(account, at);
        let found = books.accounts.get(&account).map(|book| book.lots.expiring()).unwrap_or_default();
        self.shared.nudge(books);
        Ok(found)
    }

    /// Expires what is due in all accounts, also in those the books do not know yet.
    pub(in crate::sqlite) async fn lapse_due(&self) -> Result<u64, StoreError> {
        let now = self.now();
        let mut lapsed = 0;
        for account in self.readers.accounts_with_due_credit(self.clock.sure()).await? {
            self.load_account(account).await?;
            let mut books = lock(&self.shared.books);
            let at = books.time_of(account, now);
            lapsed += books.lapse(account, at);
            self.shared.nudge(books);
        }
        Ok(lapsed)
    }
}

impl Apply<'_> {
    pub(in crate::sqlite) fn lapse(&mut self, op: &LapseOp) -> rusqlite::Result<()> {
        for lapse in &op.lapses {
            self.entry(
                op.account,
                &Content {
                    op_id: &lapse_op_id(&lapse.credit, lapse.number),
                    kind: EntryKind::Lapse as i64,
                    trial: lapse.amount,
                    at: op.at,
                    reference: Some(&lapse.reference),
                    actor: Some("tollgate"),
                    reason: Some("expired"),
                    ..Content::default()
                },
            )?;
            self.statement("UPDATE trial_lot SET lapses = ?3 WHERE account_id = ?1 AND credit = ?2")?
                .execute(params![op.account.0, lapse.credit, lapse.number])?;
            self.move_lot(op.account, lapse.credit, -lapse.amount, 0);
            let account = self.accounts.entry(op.account).or_default();
            account.available = account.available.minus(Pots { trial: lapse.amount, paid: 0 });
        }
        Ok(())
    }

    pub(in crate::sqlite) fn hold_lots(&mut self, account: AccountId, parts: &[(CreditKey, i64)]) {
        for &(credit, part) in parts {
            self.move_lot(account, credit, -part, part);
        }
    }

    pub(in crate::sqlite) fn move_lot(&mut self, account: AccountId, credit: CreditKey, free: i64, held: i64) {
        let delta = self.lots.entry((account, credit)).or_default();
        delta.0 += free;
        delta.1 += held;
    }

    pub(in crate::sqlite) fn flush_lots(&mut self) -> rusqlite::Result<()> {
        let sql = "UPDATE trial_lot SET free = free + ?3, held = held + ?4 WHERE account_id = ?1 AND credit = ?2";
        for ((account, credit), (free, held)) in std::mem::take(&mut self.lots) {
            self.statement(sql)?.execute(params![account.0, credit, free, held])?;
        }
        Ok(())
    }
}
