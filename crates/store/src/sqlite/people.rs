//! People on the embedded engine: written by the one writer.

use rusqlite::types::ValueRef;
use rusqlite::{Row, params_from_iter};

use super::writer::apply::Apply;
use super::writer::ops::Op;
use super::{SqliteEngine, lock};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::person::statement::{LATER, PersonStatement, SqlRow, SqlValue, must, values};
use crate::store::closing::LeftMoney;
use tokio::sync::oneshot;

impl SqliteEngine {
    /// All of it, or the number of the statement that should have changed something and did not.
    pub(crate) async fn write_people(&self, write: Vec<PersonStatement>) -> Result<Option<usize>, StoreError> {
        let stopped = self.ask_in_time(|reply| Op::People(write, reply)).await?;
        Ok(usize::try_from(stopped).ok().and_then(|number| number.checked_sub(1)))
    }

    /// Closes an account in which nothing is held and exactly so much is left, with what belongs to
    /// that. `false`: it is another one by now. The books decide, and nothing begins from here on.
    pub(crate) async fn close_account(
        &self,
        id: AccountId,
        left: LeftMoney,
        now: i64,
        mut write: Vec<PersonStatement>,
    ) -> Result<bool, StoreError> {
        const SQL: &str = "UPDATE account SET closed_at = coalesce(closed_at, $1), ended_at = $1, given_up_trial = $3, \
             given_up_paid = $4, changed_at = greatest(tollgate_now(), changed_at + 1) WHERE id = $2 AND ended_at IS NULL";
        if !self.load_account(id).await? {
            return Ok(false);
        }
        write.insert(0, must(SQL, values![now, id.0, left.trial, left.paid]));
        let (send, receive) = oneshot::channel();
        let suspended = {
            let mut books = lock(&self.shared.books);
            if books.stop {
                return Err(StoreError::away("the store is shut"));
            }
            let Some(account) = books.accounts.get_mut(&id) else { return Ok(false) };
            let (held, available) = (&account.held, &account.available);
            if held.trial != 0 || held.paid != 0 || available.trial != left.trial || available.paid != left.paid {
                return Ok(false);
            }
            let suspended = std::mem::replace(&mut account.suspended, true);
            books.keys.values_mut().filter(|key| key.account == id).for_each(|key| key.revoked = true);
            books.push(Op::People(write, Some(send)));
            self.shared.ring(books);
            suspended
        };
        let done = receive.await.map_err(|_| StoreError::away("the store was shut"))?? == 0;
        if !done && let Some(account) = lock(&self.shared.books).accounts.get_mut(&id) {
            account.suspended = suspended;
        }
        Ok(done)
    }

    /// Opens it again, suspended or not.
    pub(crate) async fn reopen_account(
        &self,
        id: AccountId,
        suspended: bool,
        write: Vec<PersonStatement>,
    ) -> Result<bool, StoreError> {
        self.load_account(id).await?;
        let done = self.write_people(write).await?.is_none();
        if done && let Some(account) = lock(&self.shared.books).accounts.get_mut(&id) {
            account.suspended = suspended;
        }
        Ok(done)
    }

    pub(crate) async fn people_rows(
        &self,
        sql: &'static str,
        values: Vec<SqlValue>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        let read = move |c: &rusqlite::Connection| {
            let mut statement = c.prepare_cached(&numbered(sql))?;
            let rows = statement.query_map(params_from_iter(values), row)?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        self.readers.read(read).await
    }

    pub(crate) fn people_ids(&self) -> &crate::ids::Maker {
        &self.ids
    }
}

/// As this engine writes parameters, and the time of a change: its clock is the caller's.
pub(super) fn numbered(sql: &str) -> String {
    sql.replace(LATER, "max($1, changed_at + 1)").replace('$', "?")
}

pub(super) fn row(r: &Row<'_>) -> rusqlite::Result<SqlRow> {
    let columns = 0..r.as_ref().column_count();
    let value = |at| {
        Ok(match r.get_ref(at)? {
            ValueRef::Integer(value) => SqlValue::Int(value),
            ValueRef::Text(value) => SqlValue::Text(String::from_utf8_lossy(value).into_owned()),
            ValueRef::Blob(value) => SqlValue::Bytes(value.to_vec()),
            ValueRef::Null | ValueRef::Real(_) => SqlValue::Null,
        })
    };
    columns.map(value).collect::<rusqlite::Result<_>>().map(SqlRow)
}

impl Apply<'_> {
    /// Nothing, or one more than the number of the statement that stopped it.
    pub(super) fn people(&mut self, write: &[PersonStatement]) -> rusqlite::Result<u64> {
        self.conn.execute_batch("SAVEPOINT people")?;
        for (number, one) in (1..).zip(write) {
            let changed = self.statement(&numbered(one.sql))?.execute(params_from_iter(&one.values))?;
            if one.must && changed == 0 {
                self.conn.execute_batch("ROLLBACK TO people; RELEASE people")?;
                return Ok(number);
            }
        }
        self.conn.execute_batch("RELEASE people")?;
        Ok(0)
    }
}
