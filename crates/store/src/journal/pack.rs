//! The bytes of a record: numbers of seven bits a byte, texts with their length in front. Two
//! records are written for every call, so they are small and cheap; `format` in `record.rs` says
//! which fields follow each other.

use crate::call::counters::{Counter, Counters};

/// Writes behind what the buffer holds already.
pub(super) struct Pack(pub Vec<u8>);

impl Pack {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    pub fn id(&mut self, id: &[u8; 16]) {
        self.0.extend_from_slice(id);
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            #[expect(clippy::cast_possible_truncation, reason = "the low seven bits are meant")]
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 0x80")]
        self.0.push(number as u8);
    }

    /// Times and money: small when near zero on either side.
    pub fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Pack, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub fn counters(&mut self, counters: &Counters) {
        for number in counters.columns() {
            self.signed(number);
        }
    }
}

/// Reads what [`Pack`] wrote; `None` when the bytes are not that.
pub(super) struct Unpack<'a>(pub &'a [u8]);

impl<'a> Unpack<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn flag(&mut self) -> Option<bool> {
        self.byte().map(|byte| byte != 0)
    }

    pub fn id(&mut self) -> Option<[u8; 16]> {
        let (id, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*id)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub fn text(&mut self) -> Option<String> {
        Some(std::str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    /// `None`: broken. `Some(None)`: there was no value.
    #[expect(clippy::option_option, reason = "the outer one is the reading, the inner one the value")]
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Unpack<'a>) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    pub fn counters(&mut self) -> Option<Counters> {
        let mut columns = [0i64; Counter::COUNT];
        for column in &mut columns {
            *column = self.signed()?;
        }
        Some(Counters::from_columns(columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut pack = Pack(Vec::new());
            pack.number(number);
            assert_eq!(Unpack(&pack.0).number(), Some(number));
        }
        for number in [0, 1, -1, 1_700_000_000_000, i64::MAX, i64::MIN] {
            let mut pack = Pack(Vec::new());
            pack.signed(number);
            assert_eq!(Unpack(&pack.0).signed(), Some(number));
        }
    }

    #[test]
    fn broken_bytes_are_nothing() {
        assert_eq!(Unpack(&[0x80]).number(), None);
        assert_eq!(Unpack(&[0xff; 12]).number(), None);
        assert_eq!(Unpack(&[5, b'a']).bytes(), None);
        assert_eq!(Unpack(&[1, 0xff]).text(), None);
    }
}
