//! Bits of a few bytes, from the first or from the last.

/// Reads from the highest bit of the first byte on.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0 }
    }

    pub(super) fn take(&mut self, count: usize) -> Option<u64> {
        let mut value = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value = value << 1 | u64::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }
}

/// Reads backwards, from the highest bit of the last byte on, as one must where only the end of a
/// packet is known.
#[derive(Clone, Copy)]
pub(super) struct BackBits<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> BackBits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> BackBits<'a> {
        BackBits { bytes, left: bytes.len() * 8 }
    }

    pub(super) fn take(&mut self, count: usize) -> Option<u64> {
        let mut value = 0;
        for _ in 0..count {
            self.left = self.left.checked_sub(1)?;
            value = value << 1 | u64::from(self.bytes[self.left / 8] >> (self.left % 8) & 1);
        }
        Some(value)
    }

    pub(super) fn left(&self) -> usize {
        self.left
    }
}
