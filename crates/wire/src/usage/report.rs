//! Reads a usage report of any shape; absent is not zero.
//!
//! Null counts as absent. Any other value that is no whole number between 0 and [`MOST`] (text,
//! fraction, exponent, negative, absurdly large) makes the whole report unusable: who writes one
//! number so cannot be believed about the others, and the caller falls back on its own count.
//! Unknown names are passed over.

use super::names::{Name, SLOTS, Slot, UsageShape};
use super::{MOST, Usage, counters};
use crate::json::{BrokenJson, Scan, whole_number};

/// The numbers of one report, or of several reports of the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageReport {
    shape: UsageShape,
    numbers: [Option<u64>; SLOTS],
}

impl UsageReport {
    /// Nothing reported yet.
    pub fn new(shape: UsageShape) -> UsageReport {
        UsageReport { shape, numbers: [None; SLOTS] }
    }

    /// Reads the JSON text of a usage object; `None` when its shape is odd.
    pub fn read(shape: UsageShape, text: &[u8]) -> Option<UsageReport> {
        let mut scan = Scan::new(text);
        let read = Self::scan(shape, &mut scan).ok()?;
        scan.end().ok()?;
        read
    }

    /// Disjoint counters; `None` when the report says nothing usable.
    pub fn usage(&self) -> Option<Usage> {
        counters::counters(self.shape, self)
    }

    /// Takes a later report of the same stream: per number the last non-null wins, nothing is
    /// added up, and an all-zero report after a non-zero one is ignored.
    /// False when it was ignored.
    pub fn merge(&mut self, later: &UsageReport) -> bool {
        if later.all_zero() && !self.all_zero() {
            return false;
        }
        for (old, new) in self.numbers.iter_mut().zip(later.numbers) {
            *old = new.or(*old);
        }
        true
    }

    pub(super) fn get(&self, slot: Slot) -> Option<u64> {
        self.numbers[slot as usize]
    }

    fn all_zero(&self) -> bool {
        self.numbers.iter().all(|number| number.unwrap_or(0) == 0)
    }

    /// Reads the object the scan stands on. `Ok(None)`: valid JSON, odd shape.
    pub fn scan(shape: UsageShape, scan: &mut Scan<'_>) -> Result<Option<UsageReport>, BrokenJson> {
        if scan.peek() != Some(b'{') {
            scan.skip()?;
            return Ok(None);
        }
        let mut reading = Reading { standard: [None; SLOTS], other: [None; SLOTS], odd: false };
        reading.object(shape.names(), scan)?;
        let mut numbers = reading.standard;
        for (number, other) in numbers.iter_mut().zip(reading.other) {
            *number = number.or(other);
        }
        Ok((!reading.odd).then_some(UsageReport { shape, numbers }))
    }
}

struct Reading {
    standard: [Option<u64>; SLOTS],
    other: [Option<u64>; SLOTS],
    odd: bool,
}

impl Reading {
    fn object(&mut self, names: &'static [Name], scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        scan.object(|key, scan| match names.iter().find(|name| key.raw() == name.key().as_bytes()) {
            Some(name) => self.member(name, scan),
            None => scan.skip(),
        })
    }

    fn member(&mut self, name: &'static Name, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        match name {
            Name::Number(_, slot) => {
                if let Some(number) = self.number(scan)? {
                    self.standard[*slot as usize] = Some(number);
                }
            }
            Name::Also(_, slot) => {
                if let Some(number) = self.number(scan)? {
                    self.other[*slot as usize] = Some(number);
                }
            }
            Name::Aside(_) | Name::Other(..) => scan.skip()?,
            Name::Object(_, names) if scan.peek() == Some(b'{') => self.object(names, scan)?,
            Name::Modes(_, sound, pictures) if scan.peek() == Some(b'[') => {
                scan.array(|scan| self.mode(*sound, *pictures, scan))?;
            }
            Name::Entries(_, kinds, names) if scan.peek() == Some(b'[') => {
                scan.array(|scan| self.entry(kinds, names, scan))?;
            }
            // Where an object or a list belongs, null is fine and anything else is odd.
            Name::Object(..) | Name::Modes(..) | Name::Entries(..) => self.odd |= scan.value()? != b"null",
        }
        Ok(())
    }

    fn number(&mut self, scan: &mut Scan<'_>) -> Result<Option<u64>, BrokenJson> {
        let text = scan.value()?;
        let number = whole_number(text).filter(|number| *number <= MOST);
        self.odd |= number.is_none() && text != b"null";
        Ok(number)
    }

    /// One `{modality, tokenCount}`; several of the same kind add up.
    fn mode(&mut self, sound: Slot, pictures: Slot, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        if scan.peek() != Some(b'{') {
            self.odd = true;
            return scan.skip();
        }
        let mut slot = None;
        let mut count = None;
        scan.object(|key, scan| match key.raw() {
            b"modality" => {
                slot = match scan.value()? {
                    b"\"AUDIO\"" => Some(sound),
                    b"\"IMAGE\"" => Some(pictures),
                    _ => None,
                };
                Ok(())
            }
            b"tokenCount" | b"token_count" => {
                count = self.number(scan)?;
                Ok(())
            }
            _ => scan.skip(),
        })?;
        if let (Some(slot), Some(count)) = (slot, count) {
            self.add(slot, count);
        }
        Ok(())
    }

    /// One iteration, added when it is of a kind that the totals leave out.
    fn entry(&mut self, kinds: &[&str], names: &'static [Name], scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        if scan.peek() != Some(b'{') {
            self.odd = true;
            return scan.skip();
        }
        let text = scan.value()?;
        let mut beside = false;
        Scan::new(text).object(|key, scan| {
            if key.raw() == b"type" && scan.peek() == Some(b'"') {
                let kind = scan.string()?;
                beside |= kinds.iter().any(|known| kind.is(known));
                return Ok(());
            }
            scan.skip()
        })?;
        if !beside {
            return Ok(());
        }
        let mut one = Reading { standard: [None; SLOTS], other: [None; SLOTS], odd: false };
        one.object(names, &mut Scan::new(text))?;
        self.odd |= one.odd;
        for (at, number) in one.standard.into_iter().enumerate() {
            if let Some(number) = number {
                let sum = self.standard[at].unwrap_or(0).saturating_add(number);
                self.odd |= sum > MOST;
                self.standard[at] = Some(sum);
            }
        }
        Ok(())
    }

    fn add(&mut self, slot: Slot, count: u64) {
        let sum = self.standard[slot as usize].unwrap_or(0).saturating_add(count);
        self.odd |= sum > MOST;
        self.standard[slot as usize] = Some(sum);
    }
}
