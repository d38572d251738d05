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
    /// The beginning of what the format wants to see in one piece, behind what is done with.
    carry: Vec<u8>,
    /// So much of it is done with. It is cut off when it is most of it: each time would move the
    /// rest once for each byte that is used.
    done: usize,
    /// Bytes still to be passed over.
    skip: u64,
    /// How many bytes the format wants to see at least.
    need: usize,
    stopped: Option<Unmeasured>,
    #[cfg(test)]
    pub(crate) work: MeterWork,
}

/// What a file has cost, for tests.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MeterWork {
    /// How often the format was shown something.
    pub(crate) steps: u64,
    /// Bytes that were copied or moved.
    pub(crate) moved: u64,
    /// The most memory that was held.
    pub(crate) held: usize,
}

impl Default for AudioMeter {
    fn default() -> AudioMeter {
        AudioMeter {
            format: None,
            carry: Vec::new(),
            done: 0,
            skip: 0,
            need: sniff::ENOUGH,
            stopped: None,
            #[cfg(test)]
            work: MeterWork::default(),
        }
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
            self.carry_on(bytes);
            return &[];
        }
        let used = self.step(bytes);
        &bytes[used..]
    }

    /// Completes what is carried, and shows it with some of what follows. Once all that was carried
    /// is used, the format goes on in the piece itself: nothing of it is carried in vain.
    fn join<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (carried, need) = (self.carry.len() - self.done, self.need.max(1));
        let more = (need + need.min(AHEAD)).saturating_sub(carried).min(bytes.len());
        self.carry_on(&bytes[..more]);
        if carried + more < need {
            return &bytes[more..];
        }
        let carry = std::mem::take(&mut self.carry);
        let used = self.step(&carry[self.done..]);
        self.carry = carry;
        if used >= carried {
            self.carry.clear();
            self.done = 0;
            return &bytes[used - carried..];
        }
        let left = carried + more - used;
        let over = usize::try_from(self.skip).unwrap_or(usize::MAX).min(left);
        self.skip -= over as u64;
        self.done += used + over;
        if self.done > self.carry.len() / 2 {
            self.carry.drain(..self.done);
            self.done = 0;
            #[cfg(test)]
            {
                self.work.moved += self.carry.len() as u64;
            }
        }
        &bytes[more..]
    }

    fn carry_on(&mut self, bytes: &[u8]) {
        self.carry.extend_from_slice(bytes);
        #[cfg(test)]
        {
            self.work.moved += bytes.len() as u64;
            let format = self.format.as_ref().map_or(0, |format| format.held());
            self.work.held = self.work.held.max(self.carry.capacity() + format);
        }
    }

    fn step(&mut self, seen: &[u8]) -> usize {
        #[cfg(test)]
        {
            self.work.steps += 1;
        }
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
            self.stopped = sniff::step(&carry[self.done..], &mut self.format).err();
            self.carry = carry;
        }
        match (self.format, self.stopped) {
            (_, Some(Unmeasured::TooLong)) => Err(Unmeasured::TooLong),
            (None, stopped) => Err(stopped.unwrap_or(Unmeasured::Unknown)),
            // A file that breaks after some sound is as long as what came before.
            (Some(format), Some(why)) => format.end(&[]).and_then(sounding).map_err(|_| why),
            (Some(format), None) => format.end(&self.carry[self.done..]).and_then(sounding),
        }
    }
}

fn sounding(measured: Measured) -> Result<Measured, Unmeasured> {
    if measured.length == Length::ZERO { Err(Unmeasured::Silent) } else { Ok(measured) }
}

/// The largest piece of a file that is ever held.
const MOST_NEED: usize = 4 << 20;
/// What is carried is shown with so much more of what follows, at most.
const AHEAD: usize = 16 << 10;
/// What all tracks of a file together may have that is kept: the headers of their codecs.
const MOST_HEADERS: usize = 1 << 20;

/// One container: shown bytes from where it left off, it says how far to go on.
trait Format: Send {
    /// `seen` has at least as many bytes as were asked for, and often many more.
    fn step(&mut self, seen: &[u8]) -> Result<Next, Unmeasured>;

    /// Bytes of the file that it keeps.
    #[cfg(test)]
    fn held(&self) -> usize {
        0
    }

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
