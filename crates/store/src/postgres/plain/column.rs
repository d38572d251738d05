//! A column of many rows as one array, in PostgreSQL's binary form. The client library writes an
//! array value by value through three layers, which took a tenth of a call. Here each value is
//! added to the bytes as it comes.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, WrongType};

/// Dimensions, whether there are nulls, and the type; how many values, and the number of the first.
const HEADER: usize = 20;
/// Where the header says that there are nulls, and how many values.
const NULLS: std::ops::Range<usize> = 4..8;
const LENGTH: std::ops::Range<usize> = 12..16;

#[derive(Debug)]
pub(super) struct Column {
    of: Type,
    bytes: Vec<u8>,
}

/// A value of a column.
pub(super) trait ArrayValue {
    const TYPE: Type;

    /// Its length and its bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// Whether it is what the database puts where an array has ended: null, or zero in a column
    /// that is never null.
    fn is_blank(&self) -> bool {
        false
    }

    fn is_null(&self) -> bool {
        false
    }
}

impl Column {
    /// Of all rows. Where none has anything to say, the array is empty.
    pub fn of<'r, R, C: ArrayValue>(rows: &'r [R], cell: impl Fn(&'r R) -> C) -> Self {
        let mut bytes = Vec::with_capacity(HEADER + rows.len() * 24);
        bytes.extend_from_slice(&header::<C>());
        let (mut blank, mut nulls) = (true, false);
        for row in rows {
            let cell = cell(row);
            blank &= cell.is_blank();
            nulls |= cell.is_null();
            cell.write(&mut bytes);
        }
        if blank {
            bytes.truncate(HEADER);
        } else {
            bytes[NULLS].copy_from_slice(&i32::from(nulls).to_be_bytes());
            bytes[LENGTH].copy_from_slice(&length(rows.len()));
        }
        Self { of: C::TYPE, bytes }
    }
}

/// Of an empty array: one dimension, counted from one.
fn header<C: ArrayValue>() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&1i32.to_be_bytes());
    header[8..12].copy_from_slice(&C::TYPE.oid().to_be_bytes());
    header[16..].copy_from_slice(&1i32.to_be_bytes());
    header
}

/// What is longer no statement can take: the database refuses it.
fn length(of: usize) -> [u8; 4] {
    i32::try_from(of).unwrap_or(i32::MAX).to_be_bytes()
}

fn write_fixed<const N: usize>(bytes: [u8; N], to: &mut Vec<u8>) {
    to.extend_from_slice(&length(N));
    to.extend_from_slice(&bytes);
}

fn write_long(bytes: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&length(bytes.len()));
    to.extend_from_slice(bytes);
}

impl ArrayValue for i64 {
    const TYPE: Type = Type::INT8;

    fn write(&self, to: &mut Vec<u8>) {
        write_fixed(self.to_be_bytes(), to);
    }

    fn is_blank(&self) -> bool {
        *self == 0
    }
}

impl ArrayValue for i32 {
    const TYPE: Type = Type::INT4;

    fn write(&self, to: &mut Vec<u8>) {
        write_fixed(self.to_be_bytes(), to);
    }
}

impl ArrayValue for i16 {
    const TYPE: Type = Type::INT2;

    fn write(&self, to: &mut Vec<u8>) {
        write_fixed(self.to_be_bytes(), to);
    }
}

impl ArrayValue for bool {
    const TYPE: Type = Type::BOOL;

    fn write(&self, to: &mut Vec<u8>) {
        write_fixed([u8::from(*self)], to);
    }
}

impl ArrayValue for &str {
    const TYPE: Type = Type::TEXT;

    fn write(&self, to: &mut Vec<u8>) {
        write_long(self.as_bytes(), to);
    }
}

impl ArrayValue for &[u8] {
    const TYPE: Type = Type::BYTEA;

    fn write(&self, to: &mut Vec<u8>) {
        write_long(self, to);
    }
}

impl<C: ArrayValue> ArrayValue for Option<C> {
    const TYPE: Type = C::TYPE;

    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Some(cell) => cell.write(to),
            None => to.extend_from_slice(&(-1i32).to_be_bytes()),
        }
    }

    fn is_blank(&self) -> bool {
        self.is_none()
    }

    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl ToSql for Column {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.bytes);
        Ok(IsNull::No)
    }

    /// Which array it is, its values say.
    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Array(_))
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match ty.kind() {
            Kind::Array(of) if *of == self.of => self.to_sql(ty, out),
            _ => Err(Box::new(WrongType::new::<Self>(ty.clone()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(value: &dyn ToSql, of: &Type) -> Vec<u8> {
        let mut out = BytesMut::new();
        value.to_sql_checked(of, &mut out).expect("an array of this type");
        out.to_vec()
    }

    /// What the client library makes of the same values.
    fn same<T: ArrayValue + ToSql + Sync + Copy>(values: &[T], array: &Type) {
        let column = Column::of(values, |value| *value);
        assert_eq!(sent(&column, array), sent(&values, array), "{array}");
    }

    #[test]
    fn an_array_is_what_the_library_would_send() {
        let long = "x".repeat(70_000);
        same(&[1i64, 0, -1, i64::MAX, i64::MIN], &Type::INT8_ARRAY);
        same(&[0i32, 200, i32::MIN], &Type::INT4_ARRAY);
        same(&[0i16, 7, -7], &Type::INT2_ARRAY);
        same(&[true, false], &Type::BOOL_ARRAY);
        same(&["", "a", "grün", &long], &Type::TEXT_ARRAY);
        same(&[&b""[..], &[0, 255], long.as_bytes()], &Type::BYTEA_ARRAY);
        same(&[Some(1i64), None, Some(0)], &Type::INT8_ARRAY);
        same(&[None, Some("a")], &Type::TEXT_ARRAY);
        same(&[Some(&b"a"[..])], &Type::BYTEA_ARRAY);
        same(&[0i16], &Type::INT2_ARRAY);
        same(&[false, false], &Type::BOOL_ARRAY);
        same(&[""], &Type::TEXT_ARRAY);
    }

    #[test]
    fn a_column_that_says_nothing_is_an_empty_array() {
        let none: [i64; 0] = [];
        let empty = sent(&&none[..], &Type::INT8_ARRAY);
        for column in [Column::of(&none, |n| *n), Column::of(&[0i64, 0], |n| *n), Column::of(&[0], |_| None::<i64>)] {
            assert_eq!(sent(&column, &Type::INT8_ARRAY), empty);
        }
    }

    #[test]
    fn an_array_is_not_sent_as_one_of_another_type() {
        let column = Column::of(&[1i64], |n| *n);
        for other in [Type::INT4_ARRAY, Type::INT8, Type::TEXT_ARRAY] {
            assert!(column.to_sql_checked(&other, &mut BytesMut::new()).is_err(), "{other}");
        }
    }
}
