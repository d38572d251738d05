//! Transcripts of recordings: what a caller may send, which files a model takes, and how a
//! transcript is written in the format that was asked for.

mod format;
mod recording;
mod request;
mod rewrite;
mod shape;
mod spoken;
mod transcript;

pub use format::TranscriptFormat;
pub use recording::{FileRules, Recording, UPLOAD_FORMATS, file_ending, media_type, named_by, what_is_wrong};
pub use request::TranscriptionRequest;
pub use rewrite::TranscriptRewrite;
pub use shape::{HeardItem, TranscriptShape};
pub use spoken::NoTranscript;
pub use transcript::{TimedText, TranscriptFacts, TranscriptTarget};
