//! MP3: frames between tags. The first frame often is a table of contents without sound, which also
//! tells what an encoder added.

use super::frames::{AudioFrame, FoundFrame, Walk};
use super::length::Length;
use super::{AudioCodec, Container, Format, Measured, Next, Unmeasured};

/// An encoder adds at most so many samples at either end.
const MOST_ADDED: u64 = 4_095;
/// Of the first frame this much is looked at.
const CONTENTS: usize = 200;

#[derive(Debug)]
pub(super) struct Mp3 {
    walk: Walk,
    /// The next frame may be a table of contents.
    first: bool,
    added: Length,
}

impl Default for Mp3 {
    fn default() -> Mp3 {
        Mp3 { walk: Walk::lost(), first: true, added: Length::ZERO }
    }
}

impl Format for Mp3 {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        if self.first && seen.len() < CONTENTS {
            return Next::used(0, CONTENTS);
        }
        if self.first
            && let Some((frame, added)) = contents(seen)
        {
            self.added = self.added.plus(added);
            self.walk.found();
            self.first = false;
            return Next::skip(0, frame.size as u64, super::frames::HEADER);
        }
        let (before, mut tag, mut last) = (self.walk.tally.packets(), false, KnownHeader::default());
        let mut next = self.walk.step(seen, &mut |seen| {
            if let Some(frame) = last.frame(seen) {
                return FoundFrame::Frame(frame);
            }
            let found = find(seen);
            match &found {
                FoundFrame::Frame(frame) => last = KnownHeader::of(seen, *frame),
                FoundFrame::Other(_) => tag = true,
                FoundFrame::Nothing => {}
            }
            found
        })?;
        // Where files were joined, another table may follow the next tag.
        if next.used > 0 || next.skip > 0 {
            self.first = tag || (self.first && self.walk.tally.packets() == before);
        }
        if self.first {
            next.need = next.need.max(CONTENTS);
        }
        Ok(next)
    }

    /// What nobody recognizes is looked through as MP3, so a frame has to be there.
    fn container(&self) -> Option<Container> {
        (!self.walk.tally.is_empty()).then_some(Container::Mp3)
    }

    fn end(mut self: Box<Self>, rest: &[u8]) -> Result<Measured, Unmeasured> {
        let mut rest = rest;
        if self.first
            && let Some((frame, added)) = contents(rest)
        {
            self.added = self.added.plus(added);
            self.walk.found();
            rest = rest.get(frame.size..).unwrap_or_default();
        }
        self.walk.end(rest, &mut find)?;
        let length = self.walk.tally.length().less(self.added);
        Ok(Measured { container: Container::Mp3, codec: AudioCodec::Mp3, length, video: false })
    }
}

/// Headers of a file are mostly alike but for their padding: what the last one said is looked up.
#[derive(Default)]
struct KnownHeader {
    /// The first three bytes without the bit for padding; zeros before there is any.
    bytes: [u8; 3],
    unpadded: Option<AudioFrame>,
}

/// The bit of the third byte that says that a frame is padded.
const PADDED: u8 = 2;

impl KnownHeader {
    fn of(seen: &[u8], frame: AudioFrame) -> KnownHeader {
        let &[first, second, third, ..] = seen else { return KnownHeader::default() };
        // Layer I is padded by four bytes: its frames are few and are read each time.
        let known = second >> 1 & 3 != 3;
        let unpadded = AudioFrame { size: frame.size - usize::from(third & PADDED != 0), ..frame };
        KnownHeader { bytes: [first, second, third & !PADDED], unpadded: known.then_some(unpadded) }
    }

    #[inline]
    fn frame(&self, seen: &[u8]) -> Option<AudioFrame> {
        let (&[first, second, third, ..], Some(frame)) = (seen, self.unpadded) else { return None };
        let padding = usize::from(third & PADDED != 0);
        ([first, second, third & !PADDED] == self.bytes).then_some(AudioFrame { size: frame.size + padding, ..frame })
    }
}

/// How long a tag at the beginning of a file is: seven bits of each byte count.
pub(super) fn tag_length(seen: &[u8]) -> u64 {
    let size = seen[6..10].iter().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
    let footer = if seen[5] & 0x10 == 0 { 0 } else { 10 };
    10 + size + footer
}

fn find(seen: &[u8]) -> FoundFrame {
    match seen {
        [b'I', b'D', b'3', _, _, _, six, seven, eight, nine, ..] if (six | seven | eight | nine) & 0x80 == 0 => {
            FoundFrame::Other(tag_length(seen))
        }
        [b'T', b'A', b'G', ..] => FoundFrame::Other(128),
        _ => header(seen).map_or(FoundFrame::Nothing, FoundFrame::Frame),
    }
}

/// Kilobits a second, by layer (I, II, III of MPEG 1; I, then II and III of the later ones).
const BITRATES: [[u16; 15]; 5] = [
    [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// The frame that begins with these bytes. Frames of a free bit rate are not known.
pub(super) fn header(seen: &[u8]) -> Option<AudioFrame> {
    let &[0xff, second, third, ..] = seen else { return None };
    let (version, layer) = (second >> 3 & 3, 4 - (second >> 1 & 3));
    if second & 0xe0 != 0xe0 || version == 1 || layer == 4 || third >> 4 == 15 {
        return None;
    }
    let halves = match version {
        3 => 0,
        2 => 1,
        _ => 2,
    };
    let rate = *[44_100u32, 48_000, 32_000].get(usize::from(third >> 2 & 3))? >> halves;
    let row = match (halves, layer) {
        (0, layer) => layer - 1,
        (_, 1) => 3,
        _ => 4,
    };
    let bits = u32::from(BITRATES[usize::from(row)][usize::from(third >> 4)]) * 1000;
    if bits == 0 {
        return None;
    }
    let samples = match (layer, halves) {
        (1, _) => 384,
        (3, 1..) => 576,
        _ => 1152,
    };
    let padding = u32::from(third >> 1 & 1);
    let size = if layer == 1 { (12 * bits / rate + padding) * 4 } else { samples / 8 * bits / rate + padding };
    Some(AudioFrame { size: size as usize, samples: samples.into(), rate: rate.into() })
}

/// A first frame without sound, and how much an encoder says it added before and after the sound.
fn contents(seen: &[u8]) -> Option<(AudioFrame, Length)> {
    let frame = header(seen)?;
    let (old, mono) = (seen[1] >> 3 & 3 == 3, seen.get(3)? >> 6 == 3);
    let side = match (old, mono) {
        (true, false) => 32,
        (true, true) | (false, false) => 17,
        (false, true) => 9,
    };
    if seen.get(36..40)? == b"VBRI" {
        return Some((frame, Length::ZERO));
    }
    // A checksum of two bytes may stand between header and side information.
    let table = [4 + side, 6 + side].into_iter().find_map(|at| {
        let table = seen.get(at..)?;
        (table.starts_with(b"Xing") || table.starts_with(b"Info")).then_some(table)
    })?;
    let flags = *table.get(7)?;
    let sizes = [(1, 4), (2, 4), (4, 100), (8, 4)];
    let at = 8 + sizes.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, size)| size).sum::<usize>();
    let Some(&[one, two, three]) = table.get(at + 21..at + 24) else { return Some((frame, Length::ZERO)) };
    let (before, after) = (u64::from(one) << 4 | u64::from(two >> 4), u64::from(two & 15) << 8 | u64::from(three));
    let known = table.get(at).is_some_and(u8::is_ascii_alphabetic);
    let added = if known { before.min(MOST_ADDED) + after.min(MOST_ADDED) } else { 0 };
    Some((frame, Length::of(added, frame.rate)))
}
