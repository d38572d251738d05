//! Our own count of what a response has produced, for the case that nobody reports it.

use std::time::Duration;
use tollgate_wire::count::TokenCounter;

/// How audio is written down, as far as its length depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioFormat {
    pub bytes_per_second: u64,
}

impl AudioFormat {
    /// 16 bits at 24 kHz: what everybody speaks who says nothing else.
    pub const PCM: AudioFormat = AudioFormat { bytes_per_second: 48_000 };
    /// One byte at 8 kHz.
    pub const TELEPHONE: AudioFormat = AudioFormat { bytes_per_second: 8_000 };

    /// By the words of a session's `format`.
    pub fn named(kind: &str, rate: Option<u64>) -> AudioFormat {
        match kind {
            "audio/pcmu" | "audio/pcma" | "g711_ulaw" | "g711_alaw" => AudioFormat::TELEPHONE,
            _ => AudioFormat {
                bytes_per_second: rate.filter(|rate| (8_000..=96_000).contains(rate)).unwrap_or(24_000) * 2,
            },
        }
    }

    /// The one of two in which the same bytes last longer.
    pub fn longer(self, other: AudioFormat) -> AudioFormat {
        AudioFormat { bytes_per_second: self.bytes_per_second.min(other.bytes_per_second) }
    }

    /// How long so many bytes last.
    pub fn length(self, bytes: u64) -> Duration {
        Duration::from_micros(bytes.saturating_mul(1_000_000) / self.bytes_per_second)
    }

    /// Tokens of so many bytes at so many for a second, rounded up.
    pub fn tokens(self, bytes: u64, per_second: u64) -> u64 {
        bytes.saturating_mul(per_second).div_ceil(self.bytes_per_second)
    }
}

/// Bytes behind so many letters of base64.
pub fn base64_bytes(letters: usize) -> u64 {
    (letters as u64).saturating_mul(3) / 4
}

/// What a response has produced so far.
#[derive(Clone, Debug, Default)]
pub struct OutputCount {
    audio_bytes: u64,
    text: TokenCounter,
}

impl OutputCount {
    /// One more delta, as it stands between its quotes. `type` is that of its event.
    pub fn delta(&mut self, kind: &str, raw: &[u8]) {
        match kind {
            "response.output_audio.delta" => {
                self.audio_bytes = self.audio_bytes.saturating_add(base64_bytes(raw.len()))
            }
            _ => self.text.json(raw),
        }
    }

    /// Tokens of text, and of audio at so many for a second. Spoken words are both: providers count
    /// them so.
    pub fn tokens(&self, format: AudioFormat, per_second: u64) -> (u64, u64) {
        (self.text.tokens(), format.tokens(self.audio_bytes, per_second))
    }

    pub fn is_empty(&self) -> bool {
        self.audio_bytes == 0 && self.text.tokens() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_counts_by_its_length() {
        assert_eq!(AudioFormat::PCM.tokens(48_000, 20), 20);
        assert_eq!(AudioFormat::PCM.length(48_000), Duration::from_secs(1));
        assert_eq!(AudioFormat::PCM.longer(AudioFormat::TELEPHONE), AudioFormat::TELEPHONE);
        assert_eq!((AudioFormat::PCM.tokens(1, 20), AudioFormat::PCM.tokens(0, 20)), (1, 0));
        assert_eq!(AudioFormat::named("audio/pcm", Some(16_000)).length(32_000), Duration::from_secs(1));
        assert_eq!(AudioFormat::named("audio/pcm", Some(1)), AudioFormat::PCM, "no rate at all");
        assert_eq!(AudioFormat::named("audio/pcmu", None).tokens(8_000, 25), 25);
    }

    #[test]
    fn deltas_add_up() {
        let mut count = OutputCount::default();
        assert!(count.is_empty());
        count.delta("response.output_audio.delta", "A".repeat(64_000).as_bytes());
        assert_eq!(count.tokens(AudioFormat::PCM, 20), (0, 20));
        count.delta("response.output_text.delta", b"Hello there");
        let (text, audio) = count.tokens(AudioFormat::PCM, 20);
        assert!(text >= 2 && audio == 20, "{text}");
    }
}
