//! A statement that writes one row after the other. SQLite keeps what is bound to a parameter until
//! something else is bound to it, and rows that follow each other are much alike: most counters are
//! zero, many columns NULL, and names come again. So only what differs from the row before is
//! bound.

use rusqlite::CachedStatement;
use rusqlite::types::Null;

/// What is longer is bound for every row: names are shorter, hashes and reports never come twice.
const KEPT_BYTES: usize = 30;

pub(in crate::sqlite) struct RowStatement<'a, const COLUMNS: usize> {
    statement: CachedStatement<'a>,
    /// What is bound to each parameter.
    bound: Vec<Bound>,
}

/// A value of a row that is written.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) enum RowValue<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// What is bound to a parameter.
#[derive(Clone, Copy)]
struct Bound {
    kind: BoundKind,
    number: i64,
    length: u8,
    bytes: [u8; KEPT_BYTES],
}

#[derive(Clone, Copy)]
enum BoundKind {
    Unknown,
    Null,
    Integer,
    Text,
    Blob,
}

impl<'a, const COLUMNS: usize> RowStatement<'a, COLUMNS> {
    /// Of a statement whose parameters are numbered in the order of the columns.
    pub fn new(statement: CachedStatement<'a>) -> Self {
        debug_assert_eq!(statement.parameter_count(), COLUMNS);
        Self { statement, bound: vec![Bound::UNKNOWN; COLUMNS] }
    }

    pub fn write(&mut self, row: &[RowValue<'_>; COLUMNS]) -> rusqlite::Result<()> {
        for ((parameter, value), bound) in (1..).zip(row).zip(&mut self.bound) {
            if bound.is(value) {
                continue;
            }
            // What a refused value leaves behind nobody says.
            bound.kind = BoundKind::Unknown;
            match *value {
                RowValue::Null => self.statement.raw_bind_parameter(parameter, Null)?,
                RowValue::Integer(number) => self.statement.raw_bind_parameter(parameter, number)?,
                RowValue::Text(text) => self.statement.raw_bind_parameter(parameter, text)?,
                RowValue::Blob(bytes) => self.statement.raw_bind_parameter(parameter, bytes)?,
            }
            bound.keep(value);
        }
        self.statement.raw_execute()?;
        Ok(())
    }
}

impl Bound {
    const UNKNOWN: Self = Self { kind: BoundKind::Unknown, number: 0, length: 0, bytes: [0; KEPT_BYTES] };

    #[inline]
    fn is(&self, value: &RowValue<'_>) -> bool {
        match (self.kind, value) {
            (BoundKind::Null, RowValue::Null) => true,
            (BoundKind::Integer, RowValue::Integer(number)) => self.number == *number,
            (BoundKind::Text, RowValue::Text(text)) => self.kept() == text.as_bytes(),
            (BoundKind::Blob, RowValue::Blob(bytes)) => self.kept() == *bytes,
            _ => false,
        }
    }

    fn keep(&mut self, value: &RowValue<'_>) {
        self.kind = match value {
            RowValue::Null => BoundKind::Null,
            RowValue::Integer(number) => {
                self.number = *number;
                BoundKind::Integer
            }
            RowValue::Text(text) if self.keep_bytes(text.as_bytes()) => BoundKind::Text,
            RowValue::Blob(bytes) if self.keep_bytes(bytes) => BoundKind::Blob,
            RowValue::Text(_) | RowValue::Blob(_) => BoundKind::Unknown,
        };
    }

    /// Whether they are short enough.
    fn keep_bytes(&mut self, bytes: &[u8]) -> bool {
        let (Some(place), Ok(length)) = (self.bytes.get_mut(..bytes.len()), u8::try_from(bytes.len())) else {
            return false;
        };
        place.copy_from_slice(bytes);
        self.length = length;
        true
    }

    fn kept(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl From<i64> for RowValue<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for RowValue<'_> {
    fn from(flag: bool) -> Self {
        Self::Integer(flag.into())
    }
}

impl<'a> From<&'a str> for RowValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for RowValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(bytes)
    }
}

impl<'a, const LENGTH: usize> From<&'a [u8; LENGTH]> for RowValue<'a> {
    fn from(bytes: &'a [u8; LENGTH]) -> Self {
        Self::Blob(bytes)
    }
}

impl<'a, T: Into<RowValue<'a>>> From<Option<T>> for RowValue<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, T::into)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::types::Value;
    use rusqlite::{Connection, params};

    use super::*;

    const INSERT: &str = "INSERT INTO plain (a, b) VALUES (?1, ?2)";

    /// Values of every kind, the shortest and those around the longest that are kept.
    fn values(text: &str) -> Vec<RowValue<'_>> {
        let lengths = [0, 1, 16, KEPT_BYTES - 1, KEPT_BYTES, KEPT_BYTES + 1, 255, 256, 300];
        let texts = lengths.iter().map(|length| &text[..*length]);
        let numbers = [0, 1, -1, i64::MAX, i64::MIN].map(RowValue::Integer);
        let bytes = texts.clone().map(|text| RowValue::Blob(text.as_bytes()));
        [RowValue::Null, true.into()].into_iter().chain(numbers).chain(bytes).chain(texts.map(RowValue::Text)).collect()
    }

    fn value(of: &RowValue<'_>) -> Value {
        match of {
            RowValue::Null => Value::Null,
            RowValue::Integer(number) => Value::Integer(*number),
            RowValue::Text(text) => Value::Text((*text).to_owned()),
            RowValue::Blob(bytes) => Value::Blob(bytes.to_vec()),
        }
    }

    fn stored(conn: &Connection, sql: &str) -> Vec<(Value, Value)> {
        let mut rows = conn.prepare(sql).expect("a query");
        let read = rows.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).expect("rows");
        read.collect::<Result<_, _>>().expect("values")
    }

    /// Every value after every other, in one column; in the other one each stays for a while.
    #[test]
    fn rows_are_those_that_are_bound_anew_each_time() {
        let conn = Connection::open_in_memory().expect("a database");
        conn.execute_batch("CREATE TABLE plain (a, b); CREATE TABLE kept (a, b);").expect("tables");
        let (one, other) = ("x".repeat(300), format!("{}y", "x".repeat(299)));
        let all: Vec<RowValue<'_>> = values(&one).into_iter().chain(values(&other)).collect();
        let kept = conn.prepare_cached(&INSERT.replace("plain", "kept")).expect("a statement");
        let mut kept = RowStatement::<2>::new(kept);
        for a in &all {
            for b in &all {
                for row in [[*a, *b], [*b, *a]] {
                    kept.write(&row).expect("a row");
                    conn.execute(INSERT, params![value(&row[0]), value(&row[1])]).expect("a row");
                }
            }
        }
        let sql = "SELECT a, b FROM plain ORDER BY rowid";
        let expected = stored(&conn, sql);
        assert_eq!(expected.len(), 2 * all.len() * all.len());
        assert!(stored(&conn, &sql.replace("plain", "kept")) == expected, "some rows differ");
    }

    #[test]
    fn a_row_that_is_refused_leaves_nothing_to_the_next() {
        let conn = Connection::open_in_memory().expect("a database");
        conn.execute_batch("CREATE TABLE plain (a UNIQUE, b NOT NULL)").expect("a table");
        let mut kept = RowStatement::<2>::new(conn.prepare_cached(INSERT).expect("a statement"));
        kept.write(&[1.into(), "first".into()]).expect("a row");
        kept.write(&[1.into(), "again".into()]).expect_err("the same number");
        kept.write(&[2.into(), RowValue::Null]).expect_err("no text");
        kept.write(&[2.into(), "again".into()]).expect("a row");
        let expected = [(1, "first"), (2, "again")].map(|(a, b)| (Value::Integer(a), Value::Text(b.into())));
        assert_eq!(stored(&conn, "SELECT a, b FROM plain ORDER BY a"), expected);
    }
}
