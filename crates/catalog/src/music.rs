//! What the catalog says of a model that makes music, besides prices.

use crate::LineInFile;

/// The formats that a song can have.
pub const MUSIC_FORMATS: &[&str] = &["mp3", "opus", "flac", "wav"];

/// The `music` table of a model.
#[derive(Clone, Debug)]
pub struct MusicTable {
    /// What `response_format` may be.
    pub formats: Vec<String>,
    /// Most characters of `prompt`.
    pub max_prompt: u64,
    /// Most characters of `lyrics`; none where it takes no lyrics.
    pub max_lyrics: Option<u64>,
    /// It can leave out the voice.
    pub instrumental: bool,
    /// The range of `duration`, where it can be chosen.
    pub seconds: Option<(u64, u64)>,
    /// Links can be asked for.
    pub links: bool,
    /// Where it is written, for messages.
    pub place: LineInFile,
}
