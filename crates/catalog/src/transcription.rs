//! What the catalog says of a model that writes recordings down, besides prices and the fields of
//! its public record (`accepted_upload_formats`, `max_duration_seconds`). Which formats there are
//! is not known here; whoever knows them checks it.

use crate::LineInFile;

/// The `transcription` table of a model.
#[derive(Clone, Debug)]
pub struct TranscriptionTable {
    /// Values of `response_format` on sale; empty: those that can be made of a text alone.
    pub response_formats: Vec<String>,
    /// The largest recording in bytes.
    pub max_bytes: Option<u64>,
    /// A wav file has to hold 16-bit PCM.
    pub wav_16_bit: bool,
    /// `stream` is passed on; otherwise the transcript comes in one piece.
    pub stream: bool,
    /// It also translates into English.
    pub translations: bool,
    /// Where it is written, for messages.
    pub place: LineInFile,
}
