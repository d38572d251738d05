//! How to ask a provider, how to read its answer, and who is to blame when it fails.
//!
//! A kind of provider is one row of abilities in [`KINDS`]; what a maker is sent and answers is in
//! `makers/`. This room knows bytes and connections; it knows no price, no account and no database.
//! Secrets enter as [`Secret`] and leave only inside a request; messages made here are safe to show
//! to a client.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod alarm;
mod body;
mod cable;
mod chat;
mod clean;
mod client;
mod decide;
mod embed;
mod fault;
mod fetch;
mod http1;
mod image;
mod kind;
mod link;
mod makers;
mod making;
mod music;
mod oidc;
mod outgoing;
mod pace;
mod payload;
mod preset;
mod provider;
mod reach;
mod realtime;
mod reply;
mod rerank;
mod secret;
mod signing;
mod sniff;
mod social;
mod speech;
mod stripe;
pub mod transcription;
pub mod video;

// The tests from outside, in the executable of the unit tests: every executable more is linked
// once more.
#[cfg(test)]
extern crate self as tollgate_upstream;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;

pub use alarm::Alarm;
pub use body::{HeldReply, ReplyBody, read_whole};
#[cfg(feature = "testing")]
pub use cable::Dial;
pub use chat::{Chat, ChatAsk, ReplyShape};
pub use clean::safe_text;
pub use client::{Client, ClientSettings, Upgrade};
pub use decide::Decides;
pub use embed::{EmbedAsk, EmbedSent, Embeddings};
pub use fault::{Blame, Fault};
pub use fetch::{Address, ByteBudget, FetchedFile, Unfetched};
pub use http1::{IncomingBody, Upgraded};
pub use image::{ImageJob, ImageMaker, PictureFile, PictureLimits, PictureReply};
pub use kind::{Ability, KINDS, ProviderKind, kind};
pub use link::{open_link, send_to_link};
pub use music::{MusicAsk, MusicMaker};
pub use oidc::{GITHUB, Issuer, IssuerClaims, IssuerFault, IssuerKind, IssuerWay};
pub use outgoing::Outgoing;
pub use pace::{Busy, Pace};
pub use payload::{
    FormPayload, PassingForm, PassingUpload, Payload, PayloadPart, SpooledFile, SpooledPieces, Streamed, UploadStream,
};
pub use preset::{AddressSource, KeyNeed, Preset, preset, presets};
pub use provider::{BadProvider, BaseUrl, Provider, ProviderSettings};
pub use reach::{NameSource, Reachable, is_inside_name, is_public};
pub use realtime::{Realtime, RealtimeAsk};
pub use reply::{WholeReply, is_encoded};
pub use rerank::{Rerank, RerankSent};
pub use secret::Secret;
pub use signing::Signing;
pub use social::{SocialAsk, SocialData};
pub use speech::{AudioReader, SpeechAsk, SpeechMaker};
pub use stripe::{
    CheckoutSession, CheckoutWish, SIGNED_WITHIN, StripeAccount, StripeEvent, StripeFault, StripeSignature, Unsigned,
};
