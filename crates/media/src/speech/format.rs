//! The formats of generated speech: their names, content types, and how each begins.

/// A value of `response_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpeechFormat {
    Mp3,
    /// In an Ogg container.
    Opus,
    /// Frames with ADTS headers.
    Aac,
    Flac,
    Wav,
    /// Samples of 16 bits, little-endian, one channel, without any wrapping.
    Pcm,
}

/// The rate of bare samples where a model says nothing else.
pub(super) const PCM_RATE: u32 = 24_000;

impl SpeechFormat {
    pub const ALL: [SpeechFormat; 6] = [
        SpeechFormat::Mp3,
        SpeechFormat::Opus,
        SpeechFormat::Aac,
        SpeechFormat::Flac,
        SpeechFormat::Wav,
        SpeechFormat::Pcm,
    ];

    /// How many of its first bytes tell it.
    pub const TELLING: usize = 12;

    pub const fn name(self) -> &'static str {
        match self {
            SpeechFormat::Mp3 => "mp3",
            SpeechFormat::Opus => "opus",
            SpeechFormat::Aac => "aac",
            SpeechFormat::Flac => "flac",
            SpeechFormat::Wav => "wav",
            SpeechFormat::Pcm => "pcm",
        }
    }

    pub fn named(name: &str) -> Option<SpeechFormat> {
        SpeechFormat::ALL.into_iter().find(|one| one.name() == name)
    }

    /// What a reply in it says it is. Bare samples do not tell their rate, so an unusual one is
    /// reported.
    pub fn content_type(self, rate: u32) -> String {
        match self {
            SpeechFormat::Mp3 => "audio/mpeg".to_owned(),
            SpeechFormat::Opus => "audio/ogg".to_owned(),
            SpeechFormat::Pcm if rate != PCM_RATE => format!("audio/pcm;rate={rate};channels=1"),
            other => format!("audio/{}", other.name()),
        }
    }

    /// Whether a file may begin so. A provider that sends another format under this name would be
    /// believed by nobody's player, so it is not believed here either.
    pub fn begins(self, bytes: &[u8]) -> bool {
        let sync = |mask: u8, wanted: u8| bytes.len() > 1 && bytes[0] == 0xff && bytes[1] & mask == wanted;
        match self {
            // Eleven bits of ones, and a layer that is not reserved: that is what AAC has.
            SpeechFormat::Mp3 => bytes.starts_with(b"ID3") || (sync(0xe0, 0xe0) && bytes[1] & 0x06 != 0),
            SpeechFormat::Aac => sync(0xf6, 0xf0),
            SpeechFormat::Opus => bytes.starts_with(b"OggS"),
            SpeechFormat::Flac => bytes.starts_with(b"fLaC"),
            SpeechFormat::Wav => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE"),
            // Anything may be a sample, but what has a name of its own is no sample.
            SpeechFormat::Pcm => {
                let others = [SpeechFormat::Opus, SpeechFormat::Flac, SpeechFormat::Wav];
                !bytes.is_empty() && !bytes.starts_with(b"ID3") && !others.iter().any(|one| one.begins(bytes))
            }
        }
    }

    /// What a provider that makes some formats is asked for, so that this one comes of it: itself,
    /// or the same samples in another wrapping.
    pub fn made_from(self, makes: impl Fn(SpeechFormat) -> bool) -> Option<SpeechFormat> {
        let other = match self {
            _ if makes(self) => return Some(self),
            SpeechFormat::Wav => SpeechFormat::Pcm,
            SpeechFormat::Pcm => SpeechFormat::Wav,
            _ => return None,
        };
        makes(other).then_some(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_by_its_name_and_its_beginning() {
        let beginnings: [(SpeechFormat, &[u8]); 8] = [
            (SpeechFormat::Mp3, b"ID3\x04\0\0\0\0\0\0\0\0"),
            (SpeechFormat::Mp3, b"\xff\xf3\x84\xc4\0\0\0\0\0\0\0\0"),
            (SpeechFormat::Mp3, b"\xff\xfb\x90\x64\0\0\0\0\0\0\0\0"),
            (SpeechFormat::Opus, b"OggS\0\x02\0\0\0\0\0\0"),
            (SpeechFormat::Aac, b"\xff\xf1\x50\x80\0\0\0\0\0\0\0\0"),
            (SpeechFormat::Aac, b"\xff\xf9\x50\x80\0\0\0\0\0\0\0\0"),
            (SpeechFormat::Flac, b"fLaC\0\0\0\x22\0\0\0\0"),
            (SpeechFormat::Wav, b"RIFF\xff\xff\xff\xffWAVE"),
        ];
        for (format, bytes) in beginnings {
            let found = SpeechFormat::ALL.into_iter().filter(|one| *one != SpeechFormat::Pcm && one.begins(bytes));
            assert_eq!(found.collect::<Vec<_>>(), [format]);
            assert_eq!(SpeechFormat::named(format.name()), Some(format));
        }
        assert!(SpeechFormat::Pcm.begins(&[0; 12]) && !SpeechFormat::Pcm.begins(b"RIFF....WAVE"));
        assert!(!SpeechFormat::Mp3.begins(b"{\"error\":{}}") && !SpeechFormat::Wav.begins(b"RIFF"));
        assert!(SpeechFormat::named("ogg").is_none() && SpeechFormat::named("MP3").is_none());
    }

    #[test]
    fn a_wrapping_is_all_that_is_changed() {
        let made = |wanted: SpeechFormat, makes: &[SpeechFormat]| wanted.made_from(|one| makes.contains(&one));
        use SpeechFormat::{Flac, Mp3, Pcm, Wav};
        assert_eq!(made(Wav, &[Mp3, Pcm]), Some(Pcm));
        assert_eq!(made(Pcm, &[Wav]), Some(Wav));
        assert_eq!(made(Wav, &[Wav, Pcm]), Some(Wav));
        assert_eq!(made(Mp3, &[Wav, Pcm, Flac]), None);
        assert_eq!(made(Flac, &[Wav]), None);
    }

    #[test]
    fn only_an_unusual_rate_of_bare_samples_is_named() {
        let types = SpeechFormat::ALL.map(|one| one.content_type(24_000));
        assert_eq!(types, ["audio/mpeg", "audio/ogg", "audio/aac", "audio/flac", "audio/wav", "audio/pcm"]);
        assert_eq!(SpeechFormat::Pcm.content_type(16_000), "audio/pcm;rate=16000;channels=1");
    }
}
