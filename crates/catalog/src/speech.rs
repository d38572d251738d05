//! What the catalog says of a model that makes speech, besides prices: which voices and formats it
//! has, how long a text it takes and how fast it speaks.

use crate::LineInFile;

/// The formats that speech can have.
pub const SPEECH_FORMATS: &[&str] = &["mp3", "opus", "aac", "flac", "wav", "pcm"];

/// The `speech` table of a model.
#[derive(Clone, Debug)]
pub struct SpeechTable {
    /// Names of its voices; none: whatever its providers know.
    pub voices: Vec<String>,
    /// What `response_format` may be.
    pub formats: Vec<String>,
    /// What its providers make of these; the others are the same samples in another wrapping.
    pub made: Vec<String>,
    /// Most characters of one text.
    pub max_characters: u64,
    /// The range of `speed` in hundredths, where it can be chosen.
    pub speed: Option<(u32, u32)>,
    /// It takes `instructions`.
    pub instructions: bool,
    /// Samples in a second of what it makes without a wrapping.
    pub sample_rate: u32,
    /// Fields of requests, outside the common ones, that cost nothing and are passed on.
    pub extra: Vec<String>,
    /// Where it is written, for messages.
    pub place: LineInFile,
}
