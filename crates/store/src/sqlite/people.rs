//! People on the embedded engine: written by the one writer.

use rusqlite::types::ValueRef;
use rusqlite::{Row, params_from_iter};

use super::SqliteEngine;
use super::writer::apply::Apply;
use super::writer::ops::Op;
use crate::error::StoreError;
use crate::person::statement::{LATER, PersonStatement, SqlRow, SqlValue};

impl SqliteEngine {
    /// All of it, or the number of the statement that should have changed something and did not.
    pub(crate) async fn write_people(&self, write: Vec<PersonStatement>) -> Result<Option<usize>, StoreError> {
        let stopped = self.ask_in_time(|reply| Op::People(write, reply)).await?;
        Ok(usize::try_from(stopped).ok().and_then(|number| number.checked_sub(1)))
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
