//! Statements that both engines understand: plain SQL with `$1`, and values of three kinds. A write
//! is a list of them in one transaction; one that must change something and does not takes all of
//! them back.

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::error::StoreError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SqlValue {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The time of a change that caches of all replicas hear of: by the clock of PostgreSQL, and on the
/// embedded engine the first parameter, which is the time. Either is later than the one before.
pub(crate) const LATER: &str = "greatest(tollgate_now(), changed_at + 1)";

/// One statement of a write.
pub(crate) struct PersonStatement {
    pub sql: &'static str,
    pub values: Vec<SqlValue>,
    /// Changes a row, or nothing of the write is done.
    pub must: bool,
}

/// The parameters of a statement: anything that is one of the three kinds.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::person::statement::SqlValue::from($value)),*] };
}
pub(crate) use values;

pub(crate) fn must(sql: &'static str, values: Vec<SqlValue>) -> PersonStatement {
    PersonStatement { sql, values, must: true }
}

pub(crate) fn may(sql: &'static str, values: Vec<SqlValue>) -> PersonStatement {
    PersonStatement { sql, values, must: false }
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&String> for SqlValue {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl From<String> for SqlValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<const N: usize> From<[u8; N]> for SqlValue {
    fn from(value: [u8; N]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl From<&[u8]> for SqlValue {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) => value.to_sql(ty, out),
            Self::Text(value) => value.to_sql(ty, out),
            Self::Bytes(value) => value.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

impl rusqlite::ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Self::Null => rusqlite::ToSql::to_sql(&rusqlite::types::Null),
            Self::Int(value) => rusqlite::ToSql::to_sql(value),
            Self::Text(value) => rusqlite::ToSql::to_sql(value),
            Self::Bytes(value) => rusqlite::ToSql::to_sql(value),
        }
    }
}

/// A row that was read.
pub(crate) struct SqlRow(pub Vec<SqlValue>);

impl SqlRow {
    fn odd() -> StoreError {
        StoreError::broken("a row of people has another shape than it must have")
    }

    pub fn int(&self, at: usize) -> Result<i64, StoreError> {
        self.opt_int(at)?.ok_or_else(Self::odd)
    }

    pub fn opt_int(&self, at: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Int(value)) => Ok(Some(*value)),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(Self::odd()),
        }
    }

    pub fn text(&self, at: usize) -> Result<String, StoreError> {
        self.opt_text(at)?.ok_or_else(Self::odd)
    }

    pub fn opt_text(&self, at: usize) -> Result<Option<String>, StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Text(value)) => Ok(Some(value.clone())),
            Some(SqlValue::Null) => Ok(None),
            _ => Err(Self::odd()),
        }
    }

    pub fn bytes(&self, at: usize) -> Result<Vec<u8>, StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Bytes(value)) => Ok(value.clone()),
            _ => Err(Self::odd()),
        }
    }

    pub fn id(&self, at: usize) -> Result<[u8; 16], StoreError> {
        self.bytes(at)?.try_into().map_err(|_| Self::odd())
    }

    pub fn opt_id(&self, at: usize) -> Result<Option<[u8; 16]>, StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Null) => Ok(None),
            _ => self.id(at).map(Some),
        }
    }

    /// A word that stands for something.
    pub fn word<T: std::str::FromStr>(&self, at: usize) -> Result<T, StoreError> {
        self.text(at)?.parse().map_err(|_| Self::odd())
    }
}
