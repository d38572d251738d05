//! WAV: bytes of sound by the size of a sample. The declared size counts only where it is possible.

use super::length::Length;
use super::{AudioCodec, Container, Format, Measured, Next, Unmeasured};

/// A format chunk is 16, 18 or 40 bytes; those with coefficients are not read.
const MOST_FORMAT: u32 = 4096;

#[derive(Clone, Copy, Debug)]
struct Samples {
    codec: AudioCodec,
    rate: u64,
    /// Bytes of one sample of all channels.
    size: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum At {
    #[default]
    Start,
    Chunk,
    Format(u32),
    /// Sizes beyond 32 bits (RF64).
    Sizes(u32),
    /// In the sound; this much is left of it, if that is known.
    Sound(Option<u64>),
    /// After the sound: perhaps one byte that makes it even.
    Padding,
    /// A chunk after the sound: its bytes, and how many of them are still to come.
    After {
        whole: u64,
        left: u64,
    },
    /// What follows the sound is no chunk, so it is sound as well.
    MoreSound,
}

#[derive(Debug, Default)]
pub(super) struct Wav {
    at: At,
    samples: Option<Samples>,
    long: Option<u64>,
    odd: bool,
    bytes: u64,
    ended: bool,
}

impl Format for Wav {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        match self.at {
            At::Start => {
                self.at = At::Chunk;
                Next::used(12, 8)
            }
            At::Chunk => self.chunk(seen),
            At::Format(size) => {
                self.samples = Some(samples(&seen[..size as usize])?);
                self.at = At::Chunk;
                Next::skip(size as usize, u64::from(size & 1), 8)
            }
            At::Sizes(size) => {
                self.long = Some(little(&seen[8..16]));
                self.at = At::Chunk;
                Next::skip(size as usize, u64::from(size & 1), 8)
            }
            At::Sound(left) => Ok(self.sound(seen, left)),
            At::Padding => {
                self.at = At::Chunk;
                Next::used(usize::from(self.odd && seen[0] == 0), 8)
            }
            At::After { whole, left } => {
                let some = left.min(seen.len() as u64);
                self.at = if some == left { At::Chunk } else { At::After { whole, left: left - some } };
                Next::used(some as usize, if some == left { 8 } else { 1 })
            }
            At::MoreSound => {
                self.bytes += seen.len() as u64;
                Next::used(seen.len(), 1)
            }
        }
    }

    fn container(&self) -> Option<Container> {
        self.samples.is_some().then_some(Container::Wav)
    }

    fn end(self: Box<Self>, _rest: &[u8]) -> Result<Measured, Unmeasured> {
        let samples = self.samples.ok_or(Unmeasured::Broken)?;
        // A last chunk that is longer than the file was none.
        let cut = match self.at {
            At::After { whole, left } => whole - left,
            _ => 0,
        };
        let length = Length::of((self.bytes + cut) / samples.size, samples.rate);
        if length > Length::of(86_400, 1) {
            return Err(Unmeasured::TooLong);
        }
        Ok(Measured { container: Container::Wav, codec: samples.codec, length, video: false })
    }
}

impl Wav {
    fn chunk(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        let size = little(&seen[4..8]) as u32;
        if self.ended {
            if !seen[..4].iter().all(|byte| (0x20..0x7f).contains(byte)) {
                self.at = At::MoreSound;
                return Next::used(0, 1);
            }
            let whole = 8 + u64::from(size) + u64::from(size & 1);
            self.at = At::After { whole, left: whole };
            return Next::used(0, 1);
        }
        match &seen[..4] {
            b"fmt " if (16..=MOST_FORMAT).contains(&size) => {
                self.at = At::Format(size);
                Next::used(8, size as usize)
            }
            b"ds64" if (24..=MOST_FORMAT).contains(&size) => {
                self.at = At::Sizes(size);
                Next::used(8, size as usize)
            }
            b"fmt " | b"ds64" => Err(Unmeasured::Broken),
            b"data" if self.samples.is_none() => Err(Unmeasured::Broken),
            b"data" => {
                let size = if size == u32::MAX { self.long.unwrap_or(0) } else { size.into() };
                self.odd = size % 2 == 1;
                self.ended = true;
                // Written to a pipe, the size is not known: the sound goes on to the end.
                self.at = At::Sound((size != 0).then_some(size));
                Next::used(8, 1)
            }
            _ => Next::skip(8, u64::from(size) + u64::from(size & 1), 8),
        }
    }

    fn sound(&mut self, seen: &[u8], left: Option<u64>) -> Next {
        let some = left.unwrap_or(u64::MAX).min(seen.len() as u64);
        self.bytes += some;
        let left = left.map(|left| left - some);
        self.at = if left == Some(0) { At::Padding } else { At::Sound(left) };
        Next { used: some as usize, skip: 0, need: 1 }
    }
}

fn little(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn samples(format: &[u8]) -> Result<Samples, Unmeasured> {
    let word = |at: usize| little(&format[at..at + 2]) as u16;
    let (channels, rate, size, bits) = (word(2), little(&format[4..8]), word(12), word(14));
    let tag = match word(0) {
        0xfffe if format.len() >= 26 => word(24),
        tag => tag,
    };
    let codec = match (tag, bits) {
        (1, 8 | 16 | 24 | 32) => AudioCodec::Pcm { bits, float: false },
        (3, 32 | 64) => AudioCodec::Pcm { bits, float: true },
        (6, 8) => AudioCodec::ALaw,
        (7, 8) => AudioCodec::MuLaw,
        _ => return Err(Unmeasured::Unsupported),
    };
    let honest = (1..=8).contains(&channels) && (4_000..=384_000).contains(&rate) && size == channels * (bits / 8);
    if !honest {
        return Err(Unmeasured::Broken);
    }
    Ok(Samples { codec, rate, size: size.into() })
}
