//! Music at a provider: what is asked, how one maker's request is written, and how a song is taken
//! out of its answer.

use crate::{AudioReader, Fault, Outgoing, Provider, WholeReply};
use http::HeaderMap;
use tollgate_media::music::SettledSong;
use tollgate_media::speech::SpeechFormat;

/// How one kind of provider makes music.
pub trait MusicMaker: Sync + std::fmt::Debug {
    /// Whether it can be asked for this format.
    fn makes(&self, format: SpeechFormat) -> bool;

    /// Whether this can be asked of it: `lyrics`, `duration`, or a `link` to the song.
    fn takes(&self, field: &str) -> bool;

    /// `None` when it makes no address.
    fn request(&self, provider: &Provider, ask: &MusicAsk<'_>) -> Option<Outgoing>;

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault;

    /// Reads an answer of status 200 with the song in it.
    fn reader(&self, headers: &HeaderMap) -> Box<dyn AudioReader>;

    /// The link in an answer of status 200, and how many milliseconds the song plays.
    fn link(&self, reply: &WholeReply) -> Result<(String, u64), Fault>;
}

/// What is asked of a provider.
#[derive(Clone, Copy, Debug)]
pub struct MusicAsk<'a> {
    pub song: &'a SettledSong,
    /// The provider's name for the model.
    pub model: &'a str,
    pub call_id: &'a str,
}
