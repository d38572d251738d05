//! How long an audio file plays, measured from its packets while its bytes pass.
//!
//! What a header declares is not believed: it is often wrong, and a charge goes by the result.
//! Packets are counted instead, in pieces of any size, without seeking and without decoding. Memory
//! is bounded by one page, table or block of the container.
//!
//! ```
//! use tollgate_media::audio::AudioMeter;
//!
//! let mut meter = AudioMeter::default();
//! meter.feed(b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0");
//! meter.feed(&[0; 16_002]);
//! let measured = meter.finish().unwrap();
//! assert_eq!(measured.length.whole_seconds(), 2);
//! ```

mod bits;
mod ebml;
mod flac;
mod frames;
mod length;
mod matroska;
mod mp3;
mod mp4;
mod ogg;
mod opus;
mod packets;
mod sniff;
mod vorbis;
mod wav;

pub use length::Length;

/// The wrapping of an audio file, known by its content and never by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    Wav,
    Mp3,
    /// AAC frames one after another, each with its own header.
    Adts,
    Flac,
    Ogg,
    Mp4,
    WebM,
    Matroska,
}

/// How the sound itself is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    Pcm {
        bits: u16,
        float: bool,
    },
    ALaw,
    MuLaw,
    Mp3,
    Aac,
    Flac,
    Opus,
    Vorbis,
    /// A track whose container tells its length without our knowing its codec.
    Other,
}

/// What was found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub container: Container,
    /// Of the longest track.
    pub codec: AudioCodec,
    pub length: Length,
    /// There are pictures beside the sound.
    pub video: bool,
}

/// Why a file has no length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unmeasured {
    /// No container that we know.
    Unknown,
    /// It breaks off or breaks the rules of its container before any sound.
    Broken,
    /// No sound in it.
    Silent,
    /// Sound in a codec or form that cannot be measured.
    Unsupported,
    /// More than a day, or more packets than an honest file has.
    TooLong,
}

/// Counts a file that is fed piece by piece.
pub struct AudioMeter {
    format: Option<Box<dyn Format>>,
    /// The beginning of what the format wants to see in one piece.
    carry: Vec<u8>,
    /// Bytes still to be passed over.
    skip: u64,
    /// How many bytes the format wants to see at least.
    need: usize,
    stopped: Option<Unmeasured>,
}

impl Default for AudioMeter {
    fn default() -> AudioMeter {
        AudioMeter { format: None, carry: Vec::new(), skip: 0, need: sniff::ENOUGH, stopped: None }
    }
}

impl std::fmt::Debug for AudioMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AudioMeter")
            .field("carry", &self.carry.len())
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl AudioMeter {
    /// The next piece of the file.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.stopped.is_none() {
            let over = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
            bytes = &bytes[over..];
            self.skip -= over as u64;
            if bytes.is_empty() {
                return;
            }
            bytes = if self.carry.is_empty() { self.take(bytes) } else { self.join(bytes) };
        }
    }

    /// Lets the format see as much of these bytes as it takes; what is too little for it is
    /// carried.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if bytes.len() < self.need.max(1) {
            self.carry.extend_from_slice(bytes);
            return &[];
        }
        let used = self.step(bytes);
        &bytes[used..]
    }

    /// Completes what is carried, as far as is wanted, and shows it.
    fn join<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let more = self.need.max(1).saturating_sub(self.carry.len()).min(bytes.len());
        self.carry.extend_from_slice(&bytes[..more]);
        if self.carry.len() >= self.need {
            let carry = std::mem::take(&mut self.carry);
            let used = self.step(&carry);
            self.carry = carry;
            self.carry.drain(..used);
            let over = usize::try_from(self.skip).unwrap_or(usize::MAX).min(self.carry.len());
            self.carry.drain(..over);
            self.skip -= over as u64;
        }
        &bytes[more..]
    }

    fn step(&mut self, seen: &[u8]) -> usize {
        let next = match &mut self.format {
            Some(format) => format.step(seen),
            None => sniff::step(seen, &mut self.format),
        };
        match next {
            Ok(next) if next.need <= MOST_NEED => {
                (self.skip, self.need) = (next.skip, next.need);
                next.used.min(seen.len())
            }
            Ok(_) => self.stop(Unmeasured::Broken, seen),
            Err(why) => self.stop(why, seen),
        }
    }

    fn stop(&mut self, why: Unmeasured, seen: &[u8]) -> usize {
        self.stopped = Some(why);
        seen.len()
    }

    /// What it is, once the bytes so far make that certain. An MP4, WebM or Matroska file does not
    /// say by its beginning what there is in it, so this never tells.
    pub fn container(&self) -> Option<Container> {
        self.format.as_ref().filter(|_| self.stopped.is_none())?.container()
    }

    /// That was all of it.
    pub fn finish(mut self) -> Result<Measured, Unmeasured> {
        if self.format.is_none() && self.stopped.is_none() {
            let carry = std::mem::take(&mut self.carry);
            // Shorter than what tells most containers apart: what is there decides.
            self.stopped = sniff::step(&carry, &mut self.format).err();
            self.carry = carry;
        }
        match (self.format, self.stopped) {
            (_, Some(Unmeasured::TooLong)) => Err(Unmeasured::TooLong),
            (None, stopped) => Err(stopped.unwrap_or(Unmeasured::Unknown)),
            // A file that breaks after some sound is as long as what came before.
            (Some(format), Some(why)) => format.end(&[]).and_then(sounding).map_err(|_| why),
            (Some(format), None) => format.end(&self.carry).and_then(sounding),
        }
    }
}

fn sounding(measured: Measured) -> Result<Measured, Unmeasured> {
    if measured.length == Length::ZERO { Err(Unmeasured::Silent) } else { Ok(measured) }
}

/// The largest piece of a file that is ever held.
const MOST_NEED: usize = 4 << 20;

/// One container: shown bytes from where it left off, it says how far to go on.
trait Format: Send {
    /// `seen` has at least as many bytes as were asked for, and often many more.
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured>;

    /// Its container, where what was shown so far leaves no doubt about the whole file's.
    fn container(&self) -> Option<Container> {
        None
    }

    /// The file has ended; `rest` was too little to be shown.
    fn end(self: Box<Self>, rest: &[u8]) -> Result<Measured, Unmeasured>;
}

/// How to go on: `used` bytes are done with, `skip` more are passed over unseen, then `need` are
/// wanted in one piece.
struct Next {
    used: usize,
    skip: u64,
    need: usize,
}

impl Next {
    fn used(used: usize, need: usize) -> Result<Next, Unmeasured> {
        Ok(Next { used, skip: 0, need })
    }

    fn skip(used: usize, skip: u64, need: usize) -> Result<Next, Unmeasured> {
        Ok(Next { used, skip, need })
    }
}
