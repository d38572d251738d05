//! Speech: what is asked for, in which formats it goes out, and how long what passes plays.
//!
//! Nothing is transcoded. A format is what a provider makes, or the same samples in another
//! wrapping (`wrap.rs`).

mod decode;
mod events;
mod format;
mod measure;
mod request;
mod rules;
mod wrap;

pub use decode::{Base64Pieces, HexPieces, Undecodable};
pub use events::{speech_delta, speech_done};
pub use format::SpeechFormat;
pub use measure::SpeechMeasure;
pub use request::{SpeechRequest, Voice};
pub use rules::{SettledSpeech, SpeechRules};
pub use wrap::{NotWrapped, Wrapping};
