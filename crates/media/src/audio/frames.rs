//! Sound as frames one after another, each with a header that tells its length: the walk that MP3
//! and AAC share.

use super::length::Tally;
use super::{AudioCodec, Container, Format, Measured, Next, Unmeasured};

/// One frame, by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AudioFrame {
    /// Bytes, header included.
    pub(super) size: usize,
    pub(super) samples: u64,
    pub(super) rate: u64,
}

/// Longest frame of either format, and a header after it.
pub(super) const MOST_FRAME: usize = 8_192 + HEADER;
/// Enough of a frame to know it by.
pub(super) const HEADER: usize = 8;
/// Bytes without a frame before the first one is found, and the file is something else.
const MOST_NOISE: usize = 64 << 10;

/// What a walk finds where a frame should begin.
pub(super) enum FoundFrame {
    Frame(AudioFrame),
    /// Something that is no sound, to be passed over.
    Other(u64),
    Nothing,
}

/// Steps from frame to frame; lost, it looks for a frame that another one follows.
#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) tally: Tally,
    lost: bool,
    noise: usize,
}

impl Walk {
    /// A walk that has yet to find its first frame.
    pub(super) fn lost() -> Walk {
        Walk { lost: true, ..Walk::default() }
    }

    /// A frame is known to begin here.
    pub(super) fn found(&mut self) {
        self.lost = false;
    }

    /// At the beginning of what was shown: from header to header as far as they are here, up to
    /// something that is no sound; or on in the search for a frame.
    #[inline]
    pub(super) fn step(&mut self, seen: &[u8], find: &mut impl FnMut(&[u8]) -> FoundFrame) -> Result<Next, Unmeasured> {
        if self.lost {
            return self.search(seen, find);
        }
        let mut at = 0;
        loop {
            match find(&seen[at..]) {
                FoundFrame::Frame(frame) => {
                    self.tally.add(frame.samples, frame.rate)?;
                    at += frame.size;
                }
                FoundFrame::Other(size) => return Next::skip(at, size, HEADER),
                FoundFrame::Nothing => {
                    self.lost = true;
                    return Next::used(at, MOST_FRAME);
                }
            }
            if at + HEADER > seen.len() {
                let beyond = at.saturating_sub(seen.len());
                return Next::skip(at - beyond, beyond as u64, HEADER);
            }
        }
    }

    fn search(&mut self, seen: &[u8], find: &mut impl FnMut(&[u8]) -> FoundFrame) -> Result<Next, Unmeasured> {
        let Some(last) = seen.len().checked_sub(MOST_FRAME) else { return Next::used(0, MOST_FRAME) };
        for at in 0..=last {
            if self.certain(&seen[at..], find) {
                self.lost = false;
                return Next::used(at, HEADER);
            }
        }
        self.noise += last + 1;
        if self.tally.is_empty() && self.noise > MOST_NOISE {
            return Err(Unmeasured::Unknown);
        }
        Next::used(last + 1, MOST_FRAME)
    }

    /// A frame, and another one where it ends; or something else that is known.
    fn certain(&self, seen: &[u8], find: &mut impl FnMut(&[u8]) -> FoundFrame) -> bool {
        match find(seen) {
            FoundFrame::Frame(frame) => seen.get(frame.size..).is_some_and(|next| {
                next.is_empty() || matches!(find(next), FoundFrame::Frame(next) if next.rate == frame.rate)
            }),
            FoundFrame::Other(_) => true,
            FoundFrame::Nothing => false,
        }
    }

    /// What is left at the end was too little for a search, or for a header.
    pub(super) fn end(&mut self, rest: &[u8], find: &mut impl FnMut(&[u8]) -> FoundFrame) -> Result<(), Unmeasured> {
        let mut at = 0;
        while at < rest.len() {
            if self.lost && !self.certain(&rest[at..], find) {
                at += 1;
                continue;
            }
            self.lost = false;
            match find(&rest[at..]) {
                FoundFrame::Frame(frame) => {
                    self.tally.add(frame.samples, frame.rate)?;
                    at += frame.size;
                }
                FoundFrame::Other(size) => at = at.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)),
                FoundFrame::Nothing => self.lost = true,
            }
        }
        Ok(())
    }
}

/// AAC frames with their own headers.
#[derive(Debug)]
pub(super) struct Adts(Walk);

impl Default for Adts {
    fn default() -> Adts {
        Adts(Walk::lost())
    }
}

const RATES: [u64; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// The rate that AAC has a number for.
pub(super) fn aac_rate(number: u8) -> Option<u64> {
    RATES.get(usize::from(number)).copied()
}

fn find(seen: &[u8]) -> FoundFrame {
    let &[0xff, second, third, fourth, fifth, sixth, seventh, ..] = seen else { return FoundFrame::Nothing };
    let size = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
    match aac_rate(third >> 2 & 15) {
        Some(rate) if second & 0xf6 == 0xf0 && size >= 7 => {
            FoundFrame::Frame(AudioFrame { size, samples: 1024 * (u64::from(seventh & 3) + 1), rate })
        }
        _ => FoundFrame::Nothing,
    }
}

impl Format for Adts {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        self.0.step(seen, &mut find)
    }

    fn container(&self) -> Option<Container> {
        (!self.0.tally.is_empty()).then_some(Container::Adts)
    }

    fn end(mut self: Box<Self>, rest: &[u8]) -> Result<Measured, Unmeasured> {
        self.0.end(rest, &mut find)?;
        let length = self.0.tally.length();
        Ok(Measured { container: Container::Adts, codec: AudioCodec::Aac, length, video: false })
    }
}
