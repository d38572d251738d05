//! Ogg: pages with pieces of packets. Where each page claims to be in time is used only to cut the
//! last packet.

use super::length::{Length, Tally};
use super::packets::{HEAD, Packets};
use super::vorbis::Vorbis;
use super::{AudioCodec, Container, Format, MOST_HEADERS, Measured, Next, Unmeasured, flac, opus};

/// The head of a page, before its list of pieces.
pub(super) const HEADER: usize = 27;
/// The longest head of a stream: a Vorbis set-up with its codebooks.
const MOST_SETUP: usize = 512 << 10;
/// More streams than this, side by side or one after another, and the file is not honest.
const MOST_STREAMS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Ogg {
    streams: Vec<Track>,
    /// Which of the files that were joined this is.
    link: usize,
    /// Sound has begun in this one, so a stream that begins now belongs to the next.
    sounding: bool,
    /// Bytes of all packets that go on.
    held: usize,
}

/// One stream.
#[derive(Debug)]
struct Track {
    serial: [u8; 4],
    link: usize,
    codec: Codec,
    /// The packet that goes on, as far as it is looked at, and its size so far.
    packet: Vec<u8>,
    size: u64,
    tally: Tally,
    /// The last moment that a page named, in samples.
    ends: Option<u64>,
    /// Cut off at the beginning.
    before: u64,
}

#[derive(Debug)]
enum Codec {
    /// The first packet will tell.
    Unknown,
    /// More headers come before the sound.
    Head(Packets),
    Sound(Packets),
    /// Pictures, text, or a codec that is not measured.
    Other {
        video: bool,
    },
}

impl Format for Ogg {
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured> {
        if !seen.starts_with(b"OggS") {
            // Lost: on to the next page.
            let at = memchr::memmem::find(&seen[1..], b"OggS").map_or(seen.len() - 3, |at| at + 1);
            return Next::used(at, HEADER);
        }
        let pieces = usize::from(seen[26]);
        let Some(list) = seen.get(HEADER..HEADER + pieces) else { return Next::used(0, HEADER + pieces) };
        let size = HEADER + pieces + list.iter().map(|piece| usize::from(*piece)).sum::<usize>();
        match seen.get(..size) {
            None => Next::used(0, size),
            Some(page) => {
                self.page(page, pieces)?;
                Next::used(size, HEADER)
            }
        }
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.streams.iter().map(|track| track.packet.capacity()).sum()
    }

    fn container(&self) -> Option<Container> {
        Some(Container::Ogg)
    }

    fn end(self: Box<Self>, _rest: &[u8]) -> Result<Measured, Unmeasured> {
        let longest = |link: usize| {
            let tracks = self.streams.iter().filter(|track| track.link == link);
            tracks.map(Track::length).max().unwrap_or(Length::ZERO)
        };
        let length = (0..=self.link).map(longest).fold(Length::ZERO, Length::plus);
        let codec = self.streams.iter().max_by_key(|track| track.length()).and_then(Track::codec);
        let video = self.streams.iter().any(|track| matches!(track.codec, Codec::Other { video: true }));
        let unsupported = if self.streams.is_empty() { Unmeasured::Broken } else { Unmeasured::Unsupported };
        Ok(Measured { container: Container::Ogg, codec: codec.ok_or(unsupported)?, length, video })
    }
}

impl Ogg {
    fn page(&mut self, page: &[u8], pieces: usize) -> Result<(), Unmeasured> {
        let (continued, begins) = (page[5] & 1 == 1, page[5] & 2 == 2);
        let serial = [page[14], page[15], page[16], page[17]];
        if begins {
            self.begin(serial)?;
        }
        let Some(track) = self.streams.iter_mut().rev().find(|track| track.serial == serial) else { return Ok(()) };
        let before = track.packet.len();
        if !continued {
            track.packet.clear();
            track.size = 0;
        }
        let (list, mut body) = page[HEADER..].split_at(pieces);
        for piece in list {
            let (bytes, rest) = body.split_at(usize::from(*piece));
            body = rest;
            track.piece(bytes)?;
            if *piece < 255 {
                self.sounding |= matches!(track.codec, Codec::Sound(_));
                track.whole()?;
            }
        }
        let time = u64::from_le_bytes([page[6], page[7], page[8], page[9], page[10], page[11], page[12], page[13]]);
        track.ends = (time != u64::MAX).then_some(time).or(track.ends);
        self.held = self.held + track.packet.len() - before;
        if self.held > MOST_HEADERS { Err(Unmeasured::Broken) } else { Ok(()) }
    }

    fn begin(&mut self, serial: [u8; 4]) -> Result<(), Unmeasured> {
        if std::mem::take(&mut self.sounding) {
            self.link += 1;
        }
        if self.streams.len() >= MOST_STREAMS {
            return Err(Unmeasured::Broken);
        }
        self.streams.push(Track {
            serial,
            link: self.link,
            codec: Codec::Unknown,
            packet: Vec::new(),
            size: 0,
            tally: Tally::default(),
            ends: None,
            before: 0,
        });
        Ok(())
    }
}

impl Track {
    fn piece(&mut self, bytes: &[u8]) -> Result<(), Unmeasured> {
        self.size += bytes.len() as u64;
        let most = match self.codec {
            Codec::Unknown => 128,
            // Comments hold pictures at times; only a set-up is read whole.
            Codec::Head(_) if self.packet.first().or(bytes.first()) == Some(&5) => MOST_SETUP,
            Codec::Head(_) | Codec::Sound(_) => HEAD,
            Codec::Other { .. } => 0,
        };
        if most == MOST_SETUP && self.packet.len() + bytes.len() > most {
            return Err(Unmeasured::Broken);
        }
        let room = most.saturating_sub(self.packet.len()).min(bytes.len());
        self.packet.extend_from_slice(&bytes[..room]);
        Ok(())
    }

    /// A packet is complete.
    fn whole(&mut self) -> Result<(), Unmeasured> {
        let (packet, size) = (std::mem::take(&mut self.packet), std::mem::take(&mut self.size));
        match std::mem::replace(&mut self.codec, Codec::Unknown) {
            Codec::Unknown => self.first(&packet),
            Codec::Head(packets) => self.codec = header(packets, &packet),
            Codec::Sound(mut packets) => {
                let (samples, rate) = packets.samples(&packet, size);
                self.codec = Codec::Sound(packets);
                self.tally.add(samples, rate)?;
            }
            other => self.codec = other,
        }
        Ok(())
    }

    fn first(&mut self, packet: &[u8]) {
        let other = Codec::Other { video: packet.starts_with(b"\x80theora") };
        self.codec = match packet {
            [b'O', b'p', b'u', b's', b'H', b'e', b'a', b'd', _, _, low, high, ..] => {
                self.before = u64::from(u16::from_le_bytes([*low, *high])).min(opus::MOST_BEFORE);
                Codec::Head(Packets::Opus)
            }
            [1, b'v', b'o', b'r', b'b', b'i', b's', ..] => {
                Vorbis::identified(packet).map_or(other, |vorbis| Codec::Head(Packets::Vorbis(vorbis)))
            }
            [0x7f, b'F', b'L', b'A', b'C', ..] if packet.len() >= 51 => match flac::stream_rate(&packet[17..51]) {
                // Blocks that describe more follow; they are no frames, so they have no samples.
                Ok(rate) => Codec::Sound(Packets::Flac { rate }),
                Err(_) => other,
            },
            _ => other,
        };
    }

    fn codec(&self) -> Option<AudioCodec> {
        match &self.codec {
            Codec::Head(packets) | Codec::Sound(packets) => Some(packets.codec()),
            _ => None,
        }
    }

    /// What was counted, less what is cut off at either end.
    fn length(&self) -> Length {
        let Codec::Sound(packets) = &self.codec else { return Length::ZERO };
        let rate = match packets {
            Packets::Opus => opus::RATE,
            Packets::Vorbis(vorbis) => vorbis.rate,
            _ => return self.tally.length(),
        };
        let counted = self.tally.length();
        let most_after = Length::of(packets.most_after(), rate);
        let claimed = self.ends.map_or(counted, |ends| Length::of(ends, rate));
        // A claim is good for the last packet only.
        let length = if claimed < counted && counted.less(claimed) <= most_after { claimed } else { counted };
        length.less(Length::of(self.before, rate))
    }
}

/// The headers after the first: a comment, and for Vorbis the set-up.
fn header(packets: Packets, packet: &[u8]) -> Codec {
    match packets {
        Packets::Vorbis(mut vorbis) if packet.first() == Some(&5) => match vorbis.set_up(packet) {
            Some(()) => Codec::Sound(Packets::Vorbis(vorbis)),
            None => Codec::Other { video: false },
        },
        Packets::Opus => Codec::Sound(Packets::Opus),
        other => Codec::Head(other),
    }
}
