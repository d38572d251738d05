//! People on PostgreSQL. Writes of all replicas take turns: that an account has an owner, and the
//! house one first operator, is then decided by what is there.

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PostgresEngine;
use super::records::{READ_TIME, SqlParam};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::person::statement::{PersonStatement, SqlRow, SqlValue, must, values};
use crate::store::closing::LeftMoney;

/// "people" as a number: nobody else uses this lock.
const TURN: i64 = 0x7065_6f70_6c65;

impl PostgresEngine {
    /// All of it, or the number of the statement that should have changed something and did not.
    pub(crate) async fn write_people(&self, write: Vec<PersonStatement>) -> Result<Option<usize>, StoreError> {
        let writing = self.write_in_turn(&write);
        tokio::time::timeout(READ_TIME, writing).await.map_err(|_| StoreError::away("the database does not answer"))?
    }

    async fn write_in_turn(&self, write: &[PersonStatement]) -> Result<Option<usize>, StoreError> {
        let mut slot = self.connector.people.lock().await;
        // Taken out: a write that is dropped half-way takes its connection, and with it the
        // transaction, along.
        let mut link = match slot.take().filter(|link| !link.client.is_closed()) {
            Some(link) => link,
            None => self.connector.connect().await?,
        };
        let tx = link.client.transaction().await?;
        if write.len() > 1 {
            tx.execute("SELECT pg_advisory_xact_lock($1)", &[&TURN]).await?;
        }
        for (number, one) in write.iter().enumerate() {
            let values: Vec<SqlParam<'_>> = one.values.iter().map(|value| value as SqlParam<'_>).collect();
            if tx.execute(one.sql, &values).await? == 0 && one.must {
                tx.rollback().await?;
                *slot = Some(link);
                return Ok(Some(number));
            }
        }
        tx.commit().await?;
        *slot = Some(link);
        Ok(None)
    }

    /// Closes an account in which nothing is held and exactly so much is left, with what belongs to
    /// that. `false`: it is another one by now.
    pub(crate) async fn close_account(
        &self,
        id: AccountId,
        left: LeftMoney,
        now: i64,
        mut write: Vec<PersonStatement>,
    ) -> Result<bool, StoreError> {
        const SQL: &str = "UPDATE account SET closed_at = coalesce(closed_at, $1), ended_at = $1, given_up_trial = $3, \
             given_up_paid = $4, changed_at = greatest(tollgate_now(), changed_at + 1) WHERE id = $2 AND ended_at IS NULL \
             AND trial_held = 0 AND paid_held = 0 AND trial_available = $3 AND paid_available = $4";
        self.catch_up().await;
        write.insert(0, must(SQL, values![now, id.0, left.trial, left.paid]));
        Ok(self.write_people(write).await?.is_none())
    }

    /// Opens it again.
    pub(crate) async fn reopen_account(
        &self,
        _: AccountId,
        _: bool,
        write: Vec<PersonStatement>,
    ) -> Result<bool, StoreError> {
        Ok(self.write_people(write).await?.is_none())
    }

    pub(crate) async fn people_rows(
        &self,
        sql: &'static str,
        values: Vec<SqlValue>,
    ) -> Result<Vec<SqlRow>, StoreError> {
        let values: Vec<SqlParam<'_>> = values.iter().map(|value| value as SqlParam<'_>).collect();
        self.rows(sql, &values).await?.iter().map(row).collect()
    }

    pub(crate) fn replica_name(&self) -> String {
        self.shared.replica.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn people_ids(&self) -> &crate::ids::Maker {
        &self.ids
    }
}

pub(super) fn row(r: &Row) -> Result<SqlRow, StoreError> {
    let value = |(at, column): (usize, &tokio_postgres::Column)| {
        let value = match *column.type_() {
            Type::INT8 => r.try_get::<_, Option<i64>>(at)?.map(SqlValue::Int),
            Type::TEXT => r.try_get::<_, Option<String>>(at)?.map(SqlValue::Text),
            Type::BYTEA => r.try_get::<_, Option<Vec<u8>>>(at)?.map(SqlValue::Bytes),
            _ => return Err(StoreError::broken("a column of people has a strange type")),
        };
        Ok(value.unwrap_or(SqlValue::Null))
    };
    r.columns().iter().enumerate().map(value).collect::<Result<_, _>>().map(SqlRow)
}
