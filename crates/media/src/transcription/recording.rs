//! A recording that was sent to be written down: what it is by its content, and whether a model
//! takes it. Names and headers of the upload are not looked at.

use crate::audio::{AudioCodec, Container, Length, Measured, Unmeasured};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// The words of `accepted_upload_formats`, each with the container it stands for.
pub const UPLOAD_FORMATS: &[(&str, Container)] = &[
    ("wav", Container::Wav),
    ("mp3", Container::Mp3),
    ("mpeg", Container::Mp3),
    ("mpga", Container::Mp3),
    ("aac", Container::Adts),
    ("flac", Container::Flac),
    ("ogg", Container::Ogg),
    ("oga", Container::Ogg),
    ("opus", Container::Ogg),
    ("m4a", Container::Mp4),
    ("mp4", Container::Mp4),
    ("webm", Container::WebM),
    ("mkv", Container::Matroska),
];

/// Encoders round a recording up to whole packets: so many milliseconds more than a limit are not
/// the caller's doing.
const PADDING_MS: u64 = 90;

/// The name of the file for the provider: `audio.` and this.
pub fn file_ending(measured: &Measured) -> &'static str {
    match measured.container {
        Container::Wav => "wav",
        Container::Mp3 => "mp3",
        Container::Adts => "aac",
        Container::Flac => "flac",
        Container::Ogg => "ogg",
        Container::Mp4 if measured.video => "mp4",
        Container::Mp4 => "m4a",
        Container::WebM => "webm",
        Container::Matroska => "mkv",
    }
}

pub fn media_type(measured: &Measured) -> &'static str {
    match measured.container {
        Container::Wav => "audio/wav",
        Container::Mp3 => "audio/mpeg",
        Container::Adts => "audio/aac",
        Container::Flac => "audio/flac",
        Container::Ogg => "audio/ogg",
        Container::Mp4 if measured.video => "video/mp4",
        Container::Mp4 => "audio/mp4",
        Container::WebM if measured.video => "video/webm",
        Container::WebM => "audio/webm",
        Container::Matroska => "video/x-matroska",
    }
}

/// The ending of the file's name and its type, where the container alone says both: before the
/// whole file is there.
pub fn named_by(container: Container) -> Option<(&'static str, &'static str)> {
    if matches!(container, Container::Mp4 | Container::WebM | Container::Matroska) {
        return None;
    }
    let measured = Measured { container, codec: AudioCodec::Other, length: Length::ZERO, video: false };
    Some((file_ending(&measured), media_type(&measured)))
}

/// Why a file cannot be listened to.
pub fn what_is_wrong(why: Unmeasured) -> Problem {
    let text = match why {
        Unmeasured::Unknown => "`file` is not in an audio format that the gateway recognizes by its content.",
        Unmeasured::Broken => "`file` is damaged: no audio can be read from it.",
        Unmeasured::Silent => "`file` contains no audio.",
        Unmeasured::Unsupported => "The length of `file` cannot be measured: its audio codec is not supported.",
        Unmeasured::TooLong => "`file` is longer than 24 hours, or has too many packets.",
    };
    Problem::new(Code::InvalidParameter, "file", text)
}

/// A recording as far as limits go by it. What is not known, as in a quote, is not held against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    pub length: Length,
    pub bytes: Option<u64>,
    pub container: Option<Container>,
    pub codec: Option<AudioCodec>,
}

impl Recording {
    pub fn of(measured: &Measured, bytes: u64) -> Recording {
        Recording {
            length: measured.length,
            bytes: Some(bytes),
            container: Some(measured.container),
            codec: Some(measured.codec),
        }
    }

    /// What is charged for: whole seconds, rounded up, at least one.
    pub fn billed_seconds(&self) -> u64 {
        self.length.whole_seconds().max(1)
    }
}

/// What a model takes.
#[derive(Clone, Copy, Debug)]
pub struct FileRules<'a> {
    /// Words of [`UPLOAD_FORMATS`]; none: all of them.
    pub formats: &'a [String],
    pub max_seconds: Option<u64>,
    pub max_bytes: Option<u64>,
    /// A wav file has to hold 16-bit PCM.
    pub wav_16_bit: bool,
}

impl FileRules<'_> {
    /// Whether the model takes the recording; if not, why.
    pub fn check(&self, recording: &Recording) -> Result<(), Problem> {
        if let Some(container) = recording.container {
            self.check_kind(container, recording.codec)?;
        }
        if let (Some(most), Some(bytes)) = (self.max_bytes, recording.bytes)
            && bytes > most
        {
            return Err(Problem::large_file(most).about("file"));
        }
        if let Some(most) = self.max_seconds
            && recording.length.millis() > most.saturating_mul(1_000).saturating_add(PADDING_MS)
        {
            let length = recording.length.millis();
            let text = format!(
                "`file` is {}.{:03} s long; this model takes {most} s at most.",
                length / 1_000,
                length % 1_000
            );
            return Err(Problem::new(Code::InvalidParameter, "file", text));
        }
        Ok(())
    }

    fn check_kind(&self, container: Container, codec: Option<AudioCodec>) -> Result<(), Problem> {
        let names = |one: Container| UPLOAD_FORMATS.iter().filter(move |(_, own)| *own == one).map(|(name, _)| *name);
        if !self.formats.is_empty() && !names(container).any(|name| self.formats.iter().any(|own| own == name)) {
            let found = names(container).next().unwrap_or("something else");
            let text = format!("`file` is {found} by its content; this model takes {}.", self.formats.join(", "));
            return Err(Problem::unsupported("file", text));
        }
        let pcm = AudioCodec::Pcm { bits: 16, float: false };
        if self.wav_16_bit && container == Container::Wav && codec.is_some_and(|codec| codec != pcm) {
            return Err(Problem::unsupported("file", "This model takes wav files with 16-bit PCM only."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(millis: u64, bytes: u64, container: Container, codec: AudioCodec) -> Recording {
        let length = Length::of(millis, 1_000);
        Recording { length, bytes: Some(bytes), container: Some(container), codec: Some(codec) }
    }

    const PCM16: AudioCodec = AudioCodec::Pcm { bits: 16, float: false };

    #[test]
    fn seconds_are_whole_and_at_least_one() {
        for (millis, seconds) in [(1, 1), (200, 1), (999, 1), (1_000, 1), (1_001, 2), (30_000, 30), (30_100, 31)] {
            assert_eq!(recording(millis, 1, Container::Wav, PCM16).billed_seconds(), seconds, "{millis}");
        }
    }

    #[test]
    fn limits_hold_to_the_byte_and_to_a_tenth_of_a_second() {
        let most = 25 << 20;
        let rules = FileRules { formats: &[], max_seconds: Some(30), max_bytes: Some(most), wav_16_bit: false };
        for (millis, bytes, refused) in [
            (30_000, most, None),
            (30_090, most - 1, None),
            (30_091, 1, Some(Code::InvalidParameter)),
            (30_100, 1, Some(Code::InvalidParameter)),
            (1_000, most + 1, Some(Code::BodyTooLarge)),
        ] {
            let checked = rules.check(&recording(millis, bytes, Container::Mp3, AudioCodec::Mp3));
            assert_eq!(checked.as_ref().err().map(|problem| problem.code), refused, "{millis} ms, {bytes} bytes");
            assert!(checked.is_ok() || checked.is_err_and(|problem| problem.param.as_deref() == Some("file")));
        }
        let unknown = Recording { length: Length::of(7, 1), bytes: None, container: None, codec: None };
        assert_eq!(rules.check(&unknown), Ok(()), "what is not known is not held against it");
    }

    #[test]
    fn formats_go_by_content() {
        let formats = ["wav".to_owned(), "ogg".to_owned()];
        let rules = FileRules { formats: &formats, max_seconds: None, max_bytes: None, wav_16_bit: true };
        let float = AudioCodec::Pcm { bits: 32, float: true };
        let deep = AudioCodec::Pcm { bits: 24, float: false };
        for (container, codec, fits) in [
            (Container::Wav, PCM16, true),
            (Container::Wav, deep, false),
            (Container::Wav, float, false),
            (Container::Wav, AudioCodec::MuLaw, false),
            (Container::Ogg, AudioCodec::Opus, true),
            (Container::Ogg, AudioCodec::Vorbis, true),
            (Container::Mp3, AudioCodec::Mp3, false),
            (Container::Mp4, AudioCodec::Aac, false),
            (Container::WebM, AudioCodec::Opus, false),
        ] {
            assert_eq!(rules.check(&recording(1, 1, container, codec)).is_ok(), fits, "{container:?} {codec:?}");
        }
    }
}
