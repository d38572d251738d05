//! How to ask a provider, how to read its answer, and who is to blame when it fails.
//!
//! One adaptor file per kind of provider and one line in [`KINDS`]. This room knows bytes and
//! connections; it knows no price, no account and no database. Secrets enter as [`Secret`] and
//! leave only inside a request; messages made here are safe to show to a client.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod alarm;
mod anthropic;
mod ask;
mod body;
mod cable;
mod clean;
mod client;
mod fault;
mod fetch;
mod gemini;
mod http1;
mod judge;
mod openai;
mod pace;
mod provider;
mod reach;
mod responses;
mod secret;
mod sniff;
mod social;
pub mod video;
mod video_kinds;

pub use alarm::Alarm;
pub use anthropic::Anthropic;
pub use ask::{ChatAsk, is_encoded};
pub use body::{Body, read_whole};
#[cfg(feature = "testing")]
pub use cable::Dial;
pub use clean::safe_text;
pub use client::{Client, ClientSettings};
pub use fault::{Blame, Fault};
pub use fetch::{Address, Fetched, Room, Unfetched};
pub use http1::Answer;
pub use openai::OpenAi;
pub use pace::{Busy, Pace};
pub use provider::{BadProvider, BaseUrl, Provider, Settings};
pub use reach::{Names, Reachable, is_inside_name, is_public};
pub use responses::OpenAiResponses;
pub use secret::Secret;
pub use social::{SocialAsk, SocialSource, TikHub};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::Full;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

/// One way to speak to providers.
pub trait Adaptor: Sync + std::fmt::Debug {
    /// The word used for it in the configuration.
    fn kind(&self) -> &'static str;

    /// It answers for social data, and for nothing else.
    fn sells_social(&self) -> bool {
        false
    }

    /// Its key may be a pair, an access key and a secret, joined by `|`.
    fn takes_pair(&self) -> bool {
        false
    }

    /// How it makes videos, if it does.
    fn video(&self) -> Option<&'static dyn video::Video> {
        None
    }

    /// The dialect it takes conversations in, if it takes any.
    fn dialect(&self) -> Option<Dialect> {
        None
    }

    /// Path below the base address for conversations, with its leading slash.
    fn chat_path(&self) -> &'static str;

    /// The request for a conversation; its body is already in the provider's dialect.
    fn chat(&self, provider: &Provider, ask: ChatAsk<'_>) -> http::Request<Full<Bytes>>;

    /// What an answer with an error status means.
    fn fault(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Fault;

    /// What an error object inside a reply of status 200 or inside a stream means.
    fn error_inside(&self, error: &UpstreamError) -> Fault;
}

/// Every kind of provider there is.
pub const KINDS: &[&'static dyn Adaptor] = &[
    &OpenAi,
    &OpenAiResponses,
    &Anthropic,
    &video::Gemini,
    &TikHub,
    &SocialSource,
    &video::DashScope,
    &video::Ark,
    &video::Kling,
    &video::MiniMax,
];

/// The adaptor with this name.
pub fn kind(name: &str) -> Option<&'static dyn Adaptor> {
    KINDS.iter().copied().find(|k| k.kind() == name)
}
