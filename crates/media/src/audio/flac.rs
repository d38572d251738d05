//! FLAC: frames found by their headers. A header has a checksum of its own, and the frame before it
//! ends with another.

use super::bits::Bits;
use super::length::Tally;
use super::{AudioCodec, Container, Format, Measured, Next, Unmeasured};

/// The longest header of a frame.
pub(super) const HEADER: usize = 16;

/// The header of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) samples: u64,
    /// Where it says the rate itself.
    pub(super) rate: Option<u64>,
    /// Of the frame, or of its first sample where blocks differ in length.
    number: u64,
    size: usize,
    channels: u8,
    bits: u8,
    by_sample: bool,
}

impl Header {
    pub(super) fn read(seen: &[u8]) -> Option<Header> {
        let &[0xff, second, third, fourth, ..] = seen else { return None };
        let (block, rate, channels, bits) = (third >> 4, third & 15, fourth >> 4, fourth >> 1 & 7);
        let reserved =
            second & 0xfe != 0xf8 || fourth & 1 != 0 || block == 0 || rate == 15 || channels > 10 || bits == 3;
        if reserved {
            return None;
        }
        let (number, mut at) = number(seen.get(4..)?).map(|(number, size)| (number, 4 + size))?;
        let mut word = |size: usize| {
            let bytes = seen.get(at..at + size)?;
            at += size;
            Some(bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        let samples = match block {
            1 => 192,
            2..=5 => 576 << (block - 2),
            6 => word(1)? + 1,
            7 => word(2)? + 1,
            _ => 256 << (block - 8),
        };
        let rate = match rate {
            0 => None,
            12 => Some(word(1)? * 1000),
            13 => Some(word(2)?),
            14 => Some(word(2)? * 10),
            known => Some(RATES[usize::from(known)]),
        };
        let size = at + 1;
        let sound = checksum8(seen.get(..at)?) == *seen.get(at)? && rate != Some(0);
        let header = Header { samples, rate, number, size, channels, bits, by_sample: second & 1 == 1 };
        sound.then_some(header)
    }

    /// Whether this one comes right after the other.
    fn follows(&self, before: &Header) -> bool {
        let next = before.number + if self.by_sample { before.samples } else { 1 };
        self.by_sample == before.by_sample && self.number == next
    }

    fn is_like(&self, other: &Header) -> bool {
        (self.rate, self.bits, self.by_sample) == (other.rate, other.bits, other.by_sample)
            // Two channels are stored in four ways.
            && (self.channels == other.channels || [self.channels, other.channels].iter().all(|way| matches!(way, 1 | 8..)))
    }
}

const RATES: [u64; 12] = [0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];

/// A number in one to seven bytes, written as UTF-8 writes characters.
fn number(seen: &[u8]) -> Option<(u64, usize)> {
    let first = *seen.first()?;
    let size = match first.leading_ones() {
        0 => return Some((first.into(), 1)),
        ones @ 2..=7 => ones as usize,
        _ => return None,
    };
    let head = u64::from(first) & (0x7f >> size);
    seen.get(1..size)?
        .iter()
        .try_fold(head, |sum, byte| (byte >> 6 == 2).then_some(sum << 6 | u64::from(byte & 0x3f)))
        .map(|number| (number, size))
}

fn checksum8(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0, |sum, byte| (0..8).fold(sum ^ byte, |sum, _| if sum & 0x80 == 0 { sum << 1 } else { sum << 1 ^ 7 }))
}

/// The checksum at the end of a frame, by the byte.
const CHECKSUM16: [u16; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = (at as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x8005 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};

fn checksum16(sum: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(sum, |sum, byte| sum << 8 ^ CHECKSUM16[usize::from((sum >> 8) as u8 ^ byte)])
}

#[derive(Debug, Default)]
enum At {
    #[default]
    Magic,
    Block,
    Stream,
    Frames,
}

#[derive(Debug, Default)]
pub(super) struct Flac {
    at: At,
    rate: u64,
    tally: Tally,
    last: Option<Header>,
    /// Over the frame so far.
    sum: u16,
}

impl Format for Flac {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        match self.at {
            At::Magic => {
                self.at = At::Block;
                Next::used(4, 4)
            }
            At::Block => {
                let size = seen[1..4].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                if seen[0] & 0x7f == 0 && size == 34 {
                    self.at = if seen[0] & 0x80 == 0 { At::Stream } else { At::Frames };
                    self.rate = 0;
                    return if seen[0] & 0x80 == 0 { Next::used(4, 34) } else { self.only(seen) };
                }
                let last = seen[0] & 0x80 != 0;
                self.at = if last { At::Frames } else { At::Block };
                Next::skip(4, size, if last { HEADER } else { 4 })
            }
            At::Stream => {
                self.rate = stream_rate(seen)?;
                self.at = At::Block;
                Next::used(34, 4)
            }
            At::Frames => self.frames(seen, HEADER),
        }
    }

    fn container(&self) -> Option<Container> {
        Some(Container::Flac)
    }

    fn end(mut self: Box<Self>, rest: &[u8]) -> Result<Measured, Unmeasured> {
        if matches!(self.at, At::Frames) {
            self.frames(rest, 1)?;
        }
        let length = self.tally.length();
        Ok(Measured { container: Container::Flac, codec: AudioCodec::Flac, length, video: false })
    }
}

/// The rate of the block that describes a stream.
pub(super) fn stream_rate(block: &[u8]) -> Result<u64, Unmeasured> {
    let rate = block.get(10..).and_then(|rest| Bits::new(rest).take(20)).unwrap_or(0);
    if rate == 0 { Err(Unmeasured::Broken) } else { Ok(rate) }
}

impl Flac {
    /// The description is the only block before the frames.
    fn only(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        if seen.len() < 38 {
            self.at = At::Block;
            return Next::used(0, 38);
        }
        self.rate = stream_rate(&seen[4..38])?;
        Next::used(38, HEADER)
    }

    /// Looks for headers as far as a whole one can be seen.
    fn frames(&mut self, seen: &[u8], least: usize) -> Result<Next, Unmeasured> {
        let end = (seen.len() + 1).saturating_sub(least);
        let mut at = 0;
        while at < end {
            let Some(found) = memchr::memchr(0xff, &seen[at..end]) else { break };
            self.sum = checksum16(self.sum, &seen[at..at + found]);
            at += found;
            let size = match Header::read(&seen[at..]) {
                Some(header) if self.begins(&header) => {
                    self.tally.add(header.samples, header.rate.unwrap_or(self.rate))?;
                    (self.last, self.sum) = (Some(header), 0);
                    header.size
                }
                _ => 1,
            };
            let size = size.min(seen.len() - at);
            self.sum = checksum16(self.sum, &seen[at..at + size]);
            at += size;
        }
        if at < end {
            self.sum = checksum16(self.sum, &seen[at..end]);
            at = end;
        }
        Next::used(at, HEADER)
    }

    /// A header, and not sound that looks like one: the frame before it is whole, or its number is
    /// the next.
    fn begins(&self, header: &Header) -> bool {
        self.last.is_none_or(|last| header.is_like(&last) && (self.sum == 0 || header.follows(&last)))
    }
}
