//! Audio as samples: a tone that can be heard, and an ear that tells speech from silence by the
//! samples alone, so that turns end by what was sent and never by a clock.

/// How samples are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// 16 bits, little-endian, so many a second.
    Pcm(u32),
    Ulaw,
    Alaw,
}

impl Coding {
    pub(super) fn bytes_per_ms(self) -> u64 {
        match self {
            Coding::Pcm(rate) => u64::from(rate) * 2 / 1000,
            Coding::Ulaw | Coding::Alaw => 8,
        }
    }

    /// A square wave of 200 Hz: the piece of `ms` milliseconds that begins at `from_ms`.
    pub(super) fn tone(self, from_ms: u64, ms: u64) -> Vec<u8> {
        let rate = self.bytes_per_ms() * 1000 / if matches!(self, Coding::Pcm(_)) { 2 } else { 1 };
        let half = rate / 400;
        let high = |at: u64| (at / half).is_multiple_of(2);
        let samples = from_ms * rate / 1000..(from_ms + ms) * rate / 1000;
        match self {
            Coding::Pcm(_) => samples.flat_map(|at| if high(at) { 1_000_i16 } else { -1_000 }.to_le_bytes()).collect(),
            Coding::Ulaw => samples.map(|at| if high(at) { 0xce } else { 0x4e }).collect(),
            Coding::Alaw => samples.map(|at| if high(at) { 0xfa } else { 0x7a }).collect(),
        }
    }

    fn is_loud(self, frame: &[u8]) -> bool {
        match self {
            Coding::Pcm(_) => {
                frame.chunks_exact(2).any(|pair| i16::from_le_bytes([pair[0], pair[1]]).unsigned_abs() > 300)
            }
            // Without the sign the levels next to zero are the highest codes.
            Coding::Ulaw => frame.iter().any(|byte| byte & 0x7f < 0x60),
            Coding::Alaw => frame.iter().any(|byte| (byte ^ 0x55) & 0x7f > 0x10),
        }
    }
}

/// What the ear has noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Started { at_ms: u64 },
    Stopped { at_ms: u64 },
}

/// Hears frames of 10 ms.
pub(super) struct Ear {
    pub coding: Coding,
    /// Silence that ends a turn.
    pub silence_ms: u64,
    rest: Vec<u8>,
    at_ms: u64,
    quiet_ms: u64,
    speaking: bool,
}

impl Ear {
    pub(super) fn new(coding: Coding) -> Ear {
        Ear { coding, silence_ms: 200, rest: Vec::new(), at_ms: 0, quiet_ms: 0, speaking: false }
    }

    pub(super) fn hear(&mut self, audio: &[u8]) -> Vec<Heard> {
        let frame = usize::try_from(self.coding.bytes_per_ms() * 10).unwrap_or(usize::MAX);
        self.rest.extend_from_slice(audio);
        let whole = self.rest.len() / frame * frame;
        let mut heard = Vec::new();
        for piece in self.rest[..whole].chunks_exact(frame) {
            let loud = self.coding.is_loud(piece);
            self.at_ms += 10;
            self.quiet_ms = if loud { 0 } else { self.quiet_ms + 10 };
            if loud && !self.speaking {
                self.speaking = true;
                heard.push(Heard::Started { at_ms: self.at_ms - 10 });
            } else if self.speaking && self.quiet_ms >= self.silence_ms {
                self.speaking = false;
                heard.push(Heard::Stopped { at_ms: self.at_ms });
            }
        }
        self.rest.drain(..whole);
        heard
    }

    pub(super) fn forget(&mut self) {
        self.rest.clear();
        self.speaking = false;
        self.quiet_ms = 0;
    }
}
