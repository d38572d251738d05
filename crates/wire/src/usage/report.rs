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
    numbers: Numbers,
}

/// Numbers by slot. A report is copied often, and no number is above [`MOST`]: so they are narrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    /// A bit for each slot that has one.
    given: u32,
    /// Zero where there is none.
    counts: [u32; SLOTS],
}

const _: () = assert!(SLOTS <= u32::BITS as usize && MOST <= u32::MAX as u64);

impl Numbers {
    fn has(&self, slot: usize) -> bool {
        self.given >> slot & 1 == 1
    }

    fn set(&mut self, slot: usize, count: u32) {
        self.given |= 1 << slot;
        self.counts[slot] = count;
    }

    /// The slots that have a number, and the numbers.
    fn each(&self) -> impl Iterator<Item = (usize, u32)> {
        self.counts.iter().copied().enumerate().filter(|(slot, _)| self.has(*slot))
    }
}

impl UsageReport {
    /// Nothing reported yet.
    pub fn new(shape: UsageShape) -> UsageReport {
        UsageReport { shape, numbers: Numbers::default() }
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
        for (slot, count) in later.numbers.each() {
            self.numbers.set(slot, count);
        }
        true
    }

    pub(super) fn get(&self, slot: Slot) -> Option<u64> {
        let slot = slot as usize;
        self.numbers.has(slot).then(|| u64::from(self.numbers.counts[slot]))
    }

    fn all_zero(&self) -> bool {
        self.numbers.counts == [0; SLOTS]
    }

    /// Reads the object the scan stands on. `Ok(None)`: valid JSON, odd shape.
    pub fn scan(shape: UsageShape, scan: &mut Scan<'_>) -> Result<Option<UsageReport>, BrokenJson> {
        if scan.peek() != Some(b'{') {
            scan.skip()?;
            return Ok(None);
        }
        let mut reading = Reading::default();
        reading.object(shape.names(), scan)?;
        Ok((!reading.odd).then_some(UsageReport { shape, numbers: reading.numbers }))
    }
}

#[derive(Default)]
struct Reading {
    numbers: Numbers,
    /// A bit for each slot whose number came under its standard name, which wins.
    standard: u32,
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
                    self.set_standard(*slot as usize, number);
                }
            }
            Name::Also(_, slot) => {
                if let Some(number) = self.number(scan)?
                    && !self.is_standard(*slot as usize)
                {
                    self.numbers.set(*slot as usize, number);
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

    fn number(&mut self, scan: &mut Scan<'_>) -> Result<Option<u32>, BrokenJson> {
        let text = scan.value()?;
        let number = whole_number(text).filter(|number| *number <= MOST).and_then(|number| u32::try_from(number).ok());
        self.odd |= number.is_none() && text != b"null";
        Ok(number)
    }

    fn is_standard(&self, slot: usize) -> bool {
        self.standard >> slot & 1 == 1
    }

    fn set_standard(&mut self, slot: usize, count: u32) {
        self.standard |= 1 << slot;
        self.numbers.set(slot, count);
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
            self.add(slot as usize, count);
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
        let mut one = Reading::default();
        one.object(names, &mut Scan::new(text))?;
        self.odd |= one.odd;
        one.numbers.each().for_each(|(slot, count)| self.add(slot, count));
        Ok(())
    }

    fn add(&mut self, slot: usize, count: u32) {
        let before = if self.is_standard(slot) { self.numbers.counts[slot] } else { 0 };
        let sum = before.saturating_add(count);
        self.odd |= u64::from(sum) > MOST;
        self.set_standard(slot, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The last number under the standard name, wherever it stands, else the last of another;
        /// null is no number.
        #[test]
        fn the_standard_name_wins(members in prop::collection::vec((any::<bool>(), prop::option::of(0..=MOST)), 0..8)) {
            let value = |count: &Option<u64>| count.map_or("null".to_owned(), |count| count.to_string());
            let written: Vec<String> = members
                .iter()
                .map(|(standard, count)| match standard {
                    true => format!(r#""prompt_tokens_details":{{"cached_tokens":{}}}"#, value(count)),
                    false => format!(r#""prompt_cache_hit_tokens":{}"#, value(count)),
                })
                .collect();
            let last = |wanted: bool| {
                let mut counts = members.iter().filter(|(standard, _)| *standard == wanted).filter_map(|(_, count)| *count);
                counts.next_back()
            };
            let text = format!("{{{}}}", written.join(","));
            let report = UsageReport::read(UsageShape::Chat, text.as_bytes()).unwrap();
            prop_assert_eq!(report.get(Slot::CacheRead), last(true).or(last(false)));
            prop_assert_eq!(report.get(Slot::Input), None);
        }

        /// Counts of a kind add up, and a sum that is absurd makes the report so.
        #[test]
        fn counts_of_a_kind_add_up(counts in prop::collection::vec(0..=MOST, 1..6)) {
            let modes: Vec<String> =
                counts.iter().map(|count| format!(r#"{{"modality":"AUDIO","tokenCount":{count}}}"#)).collect();
            let text = format!(r#"{{"promptTokensDetails":[{}]}}"#, modes.join(","));
            let sum = Some(counts.iter().sum()).filter(|sum| *sum <= MOST);
            let report = UsageReport::read(UsageShape::Gemini, text.as_bytes());
            prop_assert_eq!(report.and_then(|report| report.get(Slot::AudioIn)), sum);
        }
    }
}
