//! Music: what is asked for, by which rules, and the result, whose song passes as base64.

mod request;
mod result;
mod rules;

pub use request::MusicRequest;
pub use result::{SongText, song_link};
pub use rules::{MusicRules, SettledSong};
