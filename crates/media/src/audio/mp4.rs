//! MP4 and its relatives: tables of how long each sample is to be shown, of the whole file or of
//! each fragment.
//!
//! Boxes are read one after another without regard to nesting, wherever in the file the tables
//! stand; media data are passed over. A table that makes AAC shorter than its frames are is not
//! believed.

use super::length::Length;
use super::packets::aac_config;
use super::{AudioCodec, Container, Format, Measured, Next, Unmeasured};

/// More tracks than this, and the file is not honest.
const MOST_TRACKS: usize = 64;
/// The largest table that is read.
const MOST_TABLE: u64 = 4 << 20;
/// An edit may cut off what an encoder added, and no more.
const MOST_ADDED: u64 = 8_192;
/// AAC has at least so many samples in a frame, MP3 so many.
const LEAST_AAC: u64 = 960;
const LEAST_MP3: u64 = 576;

#[derive(Debug)]
struct Track {
    id: u32,
    timescale: u64,
    kind: [u8; 4],
    codec: AudioCodec,
    /// Of the sound itself, where it is known.
    rate: u64,
    ticks: u64,
    samples: u64,
    /// What the edit keeps, in the time of the file.
    edit: Option<u64>,
    edits: u32,
    /// How long a sample of a fragment is where nothing else is said.
    usual: u64,
}

#[derive(Debug, Default)]
pub(super) struct Mp4 {
    timescale: u64,
    tracks: Vec<Track>,
    /// The track of the fragment that is being read, and its usual length of a sample.
    fragment: Option<(usize, u64)>,
}

impl Format for Mp4 {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        let (mut size, kind, mut head) = (u64::from(big(&seen[..4])), &seen[4..8], 8);
        if size == 1 {
            let Some(long) = seen.get(8..16) else { return Next::used(0, 16) };
            (size, head) = (u64::from(big(&long[..4])) << 32 | u64::from(big(&long[4..])), 16);
        }
        // A size of zero means up to the end of the file.
        let inside = if size == 0 { u64::MAX } else { size.checked_sub(head as u64).ok_or(Unmeasured::Broken)? };
        match kind {
            b"moov" | b"mdia" | b"minf" | b"stbl" | b"edts" | b"mvex" | b"moof" | b"traf" => Next::used(head, 8),
            b"trak" => self.track(head),
            b"mvhd" | b"tkhd" | b"mdhd" | b"hdlr" | b"stsd" | b"stts" | b"elst" | b"trex" | b"tfhd" | b"trun" => {
                if inside > MOST_TABLE {
                    return Err(Unmeasured::Broken);
                }
                let whole = head + inside as usize;
                let Some(bytes) = seen.get(head..whole) else { return Next::used(0, whole) };
                self.table(kind, bytes).ok_or(Unmeasured::Broken)?;
                Next::used(whole, 8)
            }
            b"stsz" | b"stz2" => {
                let Some(bytes) = seen.get(head..head + 12) else { return Next::used(0, head + 12) };
                if let Some(track) = self.tracks.last_mut() {
                    track.samples += u64::from(big(&bytes[8..]));
                }
                Next::skip(head, inside, 8)
            }
            _ => Next::skip(head, inside, 8),
        }
    }

    fn end(self: Box<Self>, _rest: &[u8]) -> Result<Measured, Unmeasured> {
        let sounds = self.tracks.iter().filter(|track| &track.kind == b"soun");
        let (length, codec) = sounds
            .map(|track| (track.length(self.timescale), track.codec))
            .max_by_key(|(length, _)| *length)
            .ok_or(if self.tracks.is_empty() { Unmeasured::Broken } else { Unmeasured::Silent })?;
        if length > Length::of(86_400, 1) {
            return Err(Unmeasured::TooLong);
        }
        let video = self.tracks.iter().any(|track| &track.kind == b"vide");
        Ok(Measured { container: Container::Mp4, codec, length, video })
    }
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// A table that is read from its beginning on.
struct Table<'a>(&'a [u8]);

impl Table<'_> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        Some(big(word))
    }

    fn long(&mut self, wide: bool) -> Option<u64> {
        let high = if wide { self.word()? } else { 0 };
        Some(u64::from(high) << 32 | u64::from(self.word()?))
    }

    fn skip(&mut self, words: usize) -> Option<()> {
        self.0 = self.0.get(4 * words..)?;
        Some(())
    }
}

impl Mp4 {
    fn track(&mut self, head: usize) -> Result<Next, Unmeasured> {
        if self.tracks.len() >= MOST_TRACKS {
            return Err(Unmeasured::Broken);
        }
        self.tracks.push(Track {
            id: 0,
            timescale: 0,
            kind: [0; 4],
            codec: AudioCodec::Other,
            rate: 0,
            ticks: 0,
            samples: 0,
            edit: None,
            edits: 0,
            usual: 0,
        });
        Next::used(head, 8)
    }

    fn table(&mut self, kind: &[u8], bytes: &[u8]) -> Option<()> {
        let mut table = Table(bytes);
        let first = table.word()?;
        let (wide, flags) = (first >> 24 == 1, first & 0xff_ffff);
        match kind {
            b"mvhd" => {
                table.skip(if wide { 4 } else { 2 })?;
                self.timescale = table.word()?.into();
            }
            b"trex" => {
                let id = table.word()?;
                table.skip(1)?;
                let usual = u64::from(table.word()?);
                self.tracks.iter_mut().filter(|track| track.id == id).for_each(|track| track.usual = usual);
            }
            b"tfhd" => {
                let id = table.word()?;
                table.skip(
                    [(1, 2), (2, 1)].iter().filter(|(flag, _)| flags & flag != 0).map(|(_, words)| words).sum(),
                )?;
                let said = if flags & 8 == 0 { None } else { Some(u64::from(table.word()?)) };
                let at = self.tracks.iter().position(|track| track.id == id);
                self.fragment = at.map(|at| (at, said.unwrap_or(self.tracks[at].usual)));
            }
            b"trun" => self.run(&mut table, flags)?,
            _ => {
                let track = self.tracks.last_mut()?;
                track.table(kind, &mut table, wide)?;
            }
        }
        Some(())
    }

    /// Samples of a fragment: each says how long it is, or all are as usual.
    fn run(&mut self, table: &mut Table<'_>, flags: u32) -> Option<()> {
        let Some((at, usual)) = self.fragment else { return Some(()) };
        let track = &mut self.tracks[at];
        let count = table.word()?;
        table.skip([1, 4].iter().filter(|flag| flags & **flag != 0).count())?;
        let others = [0x200, 0x400, 0x800].iter().filter(|flag| flags & **flag != 0).count();
        track.samples += u64::from(count);
        if flags & 0x100 == 0 {
            track.ticks = track.ticks.saturating_add(usual.saturating_mul(count.into()));
            return Some(());
        }
        for _ in 0..count {
            track.ticks = track.ticks.saturating_add(table.word()?.into());
            table.skip(others)?;
        }
        Some(())
    }
}

impl Track {
    fn table(&mut self, kind: &[u8], table: &mut Table<'_>, wide: bool) -> Option<()> {
        match kind {
            b"tkhd" => {
                table.skip(if wide { 4 } else { 2 })?;
                self.id = table.word()?;
            }
            b"mdhd" => {
                table.skip(if wide { 4 } else { 2 })?;
                self.timescale = table.word()?.into();
            }
            b"hdlr" => {
                table.skip(1)?;
                // A handler of the media comes before those of other things.
                if self.kind == [0; 4] {
                    self.kind = table.word()?.to_be_bytes();
                }
            }
            b"elst" => {
                self.edits = table.word()?;
                let edited = table.long(wide)?;
                self.edit = Some(edited);
            }
            b"stts" => {
                for _ in 0..table.word()? {
                    let (count, each) = (u64::from(table.word()?), u64::from(table.word()?));
                    self.ticks = self.ticks.saturating_add(count.saturating_mul(each));
                }
            }
            _ => self.described(table)?,
        }
        Some(())
    }

    /// The first description of samples: which codec, and at what rate.
    fn described(&mut self, table: &mut Table<'_>) -> Option<()> {
        table.skip(2)?;
        let name = table.word()?.to_be_bytes();
        let body = table.0;
        let rate = body.get(24..26).map_or(0, |rate| u64::from(big(rate)));
        (self.codec, self.rate) = match &name {
            b"mp4a" => match configured(body) {
                Some((0x69 | 0x6b, _)) => (AudioCodec::Mp3, rate),
                Some((_, config)) => (AudioCodec::Aac, aac_config(config).map_or(rate, |(rate, _)| rate)),
                None => (AudioCodec::Aac, rate),
            },
            b".mp3" => (AudioCodec::Mp3, rate),
            b"Opus" => (AudioCodec::Opus, rate),
            b"fLaC" => (AudioCodec::Flac, rate),
            _ => (AudioCodec::Other, rate),
        };
        Some(())
    }

    fn length(&self, file: u64) -> Length {
        let shown = Length::of(self.ticks, self.timescale);
        let least = match self.codec {
            AudioCodec::Aac => Length::of(self.samples.saturating_mul(LEAST_AAC), self.rate),
            AudioCodec::Mp3 => Length::of(self.samples.saturating_mul(LEAST_MP3), self.rate),
            _ => Length::ZERO,
        };
        if shown < least {
            return least;
        }
        let edited = self.edit.filter(|_| self.edits == 1).map_or(shown, |edited| Length::of(edited, file));
        let honest = edited > Length::ZERO && edited < shown && shown.less(edited) <= Length::of(MOST_ADDED, self.rate);
        if honest { edited } else { shown }
    }
}

/// The kind of object in a description of sound (`esds`), and its decoder's configuration where
/// there is one.
fn configured(body: &[u8]) -> Option<(u8, &[u8])> {
    let at = memchr::memmem::find(body, b"esds")?;
    let mut rest = body.get(at + 8..)?;
    let mut kind = None;
    while let Some((&tag, after)) = rest.split_first() {
        let Some((size, inside)) = descriptor_size(after) else { break };
        rest = match tag {
            3 => inside.get(3..)?,
            4 => {
                kind = inside.first().copied();
                inside.get(13..)?
            }
            5 => return Some((kind?, inside.get(..size)?)),
            _ => break,
        };
    }
    kind.map(|kind| (kind, &[][..]))
}

/// A size in up to four bytes, seven bits of each.
fn descriptor_size(mut bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut size = 0;
    for _ in 0..4 {
        let (&byte, rest) = bytes.split_first()?;
        bytes = rest;
        size = size << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((size, bytes))
}
