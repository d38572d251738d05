//! Matroska and WebM: tracks, then blocks of frames. Times of blocks are not looked at.
//!
//! Elements are read one after another without regard to nesting: names tell them apart, and those
//! of unknown size need no other care.

use super::ebml::{self, Element, Read};
use super::length::{Length, Tally};
use super::packets::{self, MatroskaTrack, Packets};
use super::{AudioCodec, Container, Format, MOST_HEADERS, Measured, Next, Unmeasured, opus};

/// More tracks than this, and the file is not honest.
const MOST_TRACKS: usize = 64;
/// The largest element that is read, but for blocks: the headers of a Vorbis track.
const MOST_ELEMENT: u64 = 512 << 10;
/// The longest name of a codec that is kept; no known one is as long.
const MOST_NAME: usize = 64;
/// The largest block with several frames in it.
const MOST_LACED: u64 = 1 << 20;
/// Of a block with one frame this much is looked at: its own head, and the frame's.
const BLOCK: usize = 12 + packets::HEAD;

const CLUSTER: [u8; 4] = [0x1f, 0x43, 0xb6, 0x75];

#[derive(Debug, Default)]
struct Track {
    number: u64,
    kind: u64,
    codec: Vec<u8>,
    private: Vec<u8>,
    rate: u64,
    channels: u64,
    bits: u16,
    /// Nanoseconds that are cut off at the beginning, and at the end of the last block.
    before: u64,
    after: u64,
    packets: Option<Result<Packets, Unmeasured>>,
    tally: Tally,
}

#[derive(Debug, Default)]
pub(super) struct Matroska {
    webm: bool,
    tracks: Vec<Track>,
    /// The track of the last block, for what is said about that block.
    last: Option<usize>,
    /// Nothing is believed before the next cluster, wherever the pieces of the file end.
    lost: bool,
}

impl Format for Matroska {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        if self.lost {
            let found = memchr::memmem::find(seen, &CLUSTER);
            self.lost = found.is_none();
            return match found {
                Some(at) => Next::used(at, 1),
                None => Next::used(seen.len().saturating_sub(3), 4),
            };
        }
        let element = match ebml::read(seen) {
            Read::Element(element) => element,
            Read::Short => return Next::used(0, seen.len() + 1),
            Read::Never if self.tracks.is_empty() => return Err(Unmeasured::Broken),
            Read::Never => {
                self.lost = true;
                return Next::used(1, 4);
            }
        };
        match element.id {
            // Those whose contents are read: the head of the file, segment, tracks, audio, cluster,
            // group of a block.
            0x1a45_dfa3 | 0x1853_8067 | 0x1654_ae6b | 0xe1 | 0x1f43_b675 | 0xa0 => Next::used(element.head, 1),
            0xae => {
                if self.tracks.len() >= MOST_TRACKS {
                    return Err(Unmeasured::Broken);
                }
                self.tracks.push(Track { rate: 8_000, channels: 1, ..Track::default() });
                Next::used(element.head, 1)
            }
            0xa1 | 0xa3 => self.block(seen, element),
            0x4282 | 0xd7 | 0x83 | 0x86 | 0x63a2 | 0xb5 | 0x9f | 0x6264 | 0x56aa | 0x75a2 => self.leaf(seen, element),
            _ => Next::skip(element.head, element.size.unwrap_or(0), 1),
        }
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.tracks.iter().map(|track| track.codec.capacity() + track.private.capacity()).sum()
    }

    fn end(self: Box<Self>, _rest: &[u8]) -> Result<Measured, Unmeasured> {
        let container = if self.webm { Container::WebM } else { Container::Matroska };
        let video = self.tracks.iter().any(|track| track.kind == 1);
        let sounds = || self.tracks.iter().filter(|track| track.kind == 2);
        let longest = sounds().max_by_key(|track| track.length()).ok_or(Unmeasured::Silent)?;
        let codec = match &longest.packets {
            Some(Ok(packets)) => packets.codec(),
            Some(Err(why)) => return Err(*why),
            None => AudioCodec::Other,
        };
        Ok(Measured { container, codec, length: longest.length(), video })
    }
}

impl Matroska {
    fn leaf(&mut self, seen: &[u8], element: Element) -> Result<Next, Unmeasured> {
        let size = element.size.filter(|size| *size <= MOST_ELEMENT).ok_or(Unmeasured::Broken)? as usize;
        let whole = element.head + size;
        let Some(bytes) = seen.get(element.head..whole) else { return Next::used(0, whole) };
        if element.id == 0x4282 {
            self.webm = bytes.starts_with(b"webm");
        } else if element.id == 0x75a2 {
            // Signed; only what is cut off at the end counts.
            let nanos = ebml::whole(bytes);
            if let Some(track) = self.last.and_then(|at| self.tracks.get_mut(at))
                && nanos < 1_000_000_000
            {
                track.after = nanos;
            }
        } else if element.id == 0x63a2 && bytes.len() + self.headers() > MOST_HEADERS {
            return Err(Unmeasured::Broken);
        } else if let Some(track) = self.tracks.last_mut() {
            match element.id {
                0xd7 => track.number = ebml::whole(bytes),
                0x83 => track.kind = ebml::whole(bytes),
                0x86 => track.codec = bytes[..bytes.len().min(MOST_NAME)].to_vec(),
                0x63a2 => track.private = bytes.to_vec(),
                0xb5 => track.rate = ebml::rate(bytes),
                0x9f => track.channels = ebml::whole(bytes).min(64),
                0x6264 => track.bits = ebml::whole(bytes).min(64) as u16,
                _ => track.before = ebml::whole(bytes).min(1_000_000_000),
            }
        }
        Next::used(whole, 1)
    }

    /// What is kept of all tracks.
    fn headers(&self) -> usize {
        self.tracks.iter().map(|track| track.private.len()).sum()
    }

    fn block(&mut self, seen: &[u8], element: Element) -> Result<Next, Unmeasured> {
        let size = element.size.ok_or(Unmeasured::Broken)?;
        let shown = element.head + usize::try_from(size).unwrap_or(usize::MAX).min(BLOCK);
        let Some(head) = seen.get(element.head..shown) else { return Next::used(0, shown) };
        let over = |used: usize| Next::skip(used, element.head as u64 + size - used as u64, 1);
        let Some((Some(number), wide)) = ebml::number(head) else { return over(shown) };
        let Some(frames) = head.get(wide + 3..) else { return over(shown) };
        let flags = head[wide + 2];
        self.last = self.tracks.iter().position(|track| track.number == number && track.kind == 2);
        let Some(track) = self.last.and_then(|at| self.tracks.get_mut(at)) else { return over(shown) };
        if flags & 6 == 0 {
            track.frame(frames, size - wide as u64 - 3)?;
            return over(shown);
        }
        if size > MOST_LACED {
            return Err(Unmeasured::Broken);
        }
        let whole = element.head + size as usize;
        let Some(frames) = seen.get(element.head + wide + 3..whole) else { return Next::used(0, whole) };
        for frame in laced(frames, flags >> 1 & 3).ok_or(Unmeasured::Broken)? {
            track.frame(frame, frame.len() as u64)?;
        }
        Next::used(whole, 1)
    }
}

impl Track {
    fn frame(&mut self, head: &[u8], size: u64) -> Result<(), Unmeasured> {
        let packets = self.packets.get_or_insert_with(|| {
            Packets::of_matroska(&MatroskaTrack {
                codec: &self.codec,
                private: &self.private,
                rate: self.rate,
                channels: self.channels,
                bits: self.bits,
            })
        });
        if let Ok(packets) = packets {
            let (samples, rate) = packets.samples(head, size);
            self.tally.add(samples, rate)?;
        }
        Ok(())
    }

    fn length(&self) -> Length {
        let most = Length::of(opus::MOST_AFTER, opus::RATE);
        let nanos = |nanos: u64| Length::of(nanos, 1_000_000_000);
        self.tally.length().less(nanos(self.before)).less(nanos(self.after).min(most))
    }
}

/// The frames of a block that has several: their sizes come first, in one of three forms.
fn laced(bytes: &[u8], form: u8) -> Option<Vec<&[u8]>> {
    let (&count, mut rest) = bytes.split_first()?;
    let count = usize::from(count) + 1;
    let mut sizes = Vec::with_capacity(count);
    match form {
        1 => {
            while sizes.len() + 1 < count {
                let end = rest.iter().position(|byte| *byte < 255)?;
                sizes.push(end * 255 + usize::from(rest[end]));
                rest = &rest[end + 1..];
            }
        }
        3 => {
            while sizes.len() + 1 < count {
                let (size, wide) = ebml::number(rest)?;
                let size = i64::try_from(size?).ok()?;
                // After the first, differences: half of the range is below zero.
                let size = match sizes.last() {
                    None => size,
                    Some(last) => i64::try_from(*last).ok()? + size - ((1i64 << (7 * wide - 1)) - 1),
                };
                sizes.push(usize::try_from(size).ok()?);
                rest = rest.get(wide..)?;
            }
        }
        _ => sizes = vec![rest.len() / count; count - 1],
    }
    let mut frames = Vec::with_capacity(count);
    for size in sizes {
        frames.push(rest.get(..size)?);
        rest = &rest[size..];
    }
    frames.push(rest);
    Some(frames)
}
