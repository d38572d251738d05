//! The simulated outside world: a provider that speaks OpenAI chat completions, well or badly, on
//! demand.
//!
//! It is written from the published format, never from the adaptors that talk to it, so that it
//! cannot share their mistakes. A call picks a **scenario** by its model name
//! (`sim-<scenario>[-arg]`, for example `sim-error_midstream-3`) or by a marker in the last user
//! message, which wins: `[[sim:cut_midstream after=3 cut=reset]]`. A marker may also carry options
//! alone: `[[sim:tokens=40 think_ms=20]]`. Models that do not start with `sim` are answered
//! plainly. [`scenarios`] lists what there is.
//!
//! # Options
//! `tokens` words of the reply (12) · `chunks` content events (one per word; alone it also sets
//! `tokens`) · `size` bytes of each word (of each event in `faststream`) · `prompt` overrides the
//! prompt count · `think_ms` before the first byte · `delay_ms` between events · `after` content
//! events before a fault (3) · `cut=reset|fin|eof` TCP reset, socket closed without the last HTTP
//! chunk, or HTTP body ended as if complete · `kind` flavour of `wrong_usage` and `garbage` ·
//! `cached`, `written`, `reasoning` token counts · `mib` length of `huge_line` (0 = endless) ·
//! `retry_after` seconds · `code` of an error · `calls` number of tool calls · `tool` the name of
//! the tool to call · `args` its arguments, as JSON without spaces · `reply_model` the model name
//! in the reply · `door` pieces of a stream before the door `/_door`, which a test may shut.
//!
//! # What a call costs
//! Everything is computable from the request, so a test can know the bill beforehand:
//! - `prompt_tokens` = whitespace-separated words over all message contents (strings and text
//!   parts, marker included; images, tool definitions and earlier tool calls count nothing), unless
//!   `prompt` says otherwise;
//! - `completion_tokens` = words produced, times `n`; hidden reasoning words are added and reported
//!   in `reasoning_tokens`; a tool call counts one for its name plus the words of its arguments;
//! - `max_completion_tokens` (else `max_tokens`) limits reasoning plus words per choice, and the
//!   reply then ends with `finish_reason: "length"`, except in `ignore_max_tokens`.
//!
//! # Dialects
//! The same scenarios are played at `/v1/messages` (Anthropic), `/v1/responses` and Gemini's
//! `/v1beta/models/…:…`, each as strict about requests as its provider, and in its shapes: see the
//! module `dialect`.
//!
//! Social data is played too, under `/api/v1` (and `/api`, as self-hosted sources do): see the
//! module `social`. Makers of pictures are played at `/v1/images/…` and beside the videos of
//! theirs: see the module `image`. Video makers are played too, below `/video/…` and `/v1/videos`:
//! see [`video`]. So are makers of speech: see [`voice_scenarios`], and those who write recordings
//! down: see [`hearing_scenarios`]. Providers of embeddings are in the module `vectors`,
//! those that are talked to over a WebSocket in the module `realtime`.
//!
//! The reply is the same for the same request; only its `id` counts up (`same_id` keeps even that).

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod ask;
pub mod clouds;
mod control;
mod dialect;
mod events;
mod fast;
mod fault;
mod hear;
mod image;
mod made;
mod realtime;
mod record;
mod refusal;
mod reply;
mod scenario;
mod script;
mod server;
mod social;
mod socket;
mod speech;
mod stripe;
mod vectors;
pub mod video;
mod voice;

// The tests from outside, in the executable of the unit tests: every executable more is linked
// once more.
#[cfg(test)]
extern crate self as tollgate_sim;
#[cfg(test)]
#[path = "../tests/it/main.rs"]
mod it;

pub use hear::scenarios as hearing_scenarios;
pub use image::scenarios as image_scenarios;
pub use realtime::{SeenSession, scenarios as realtime_scenarios};
pub use record::{Counts, Received};
pub use scenario::scenarios;
pub use server::{Sim, SimSettings};
pub use social::scenarios as social_scenarios;
pub use stripe::{STRIPE_KEY, STRIPE_WEBHOOK_SECRET, Storm, StormAct, StormStep, StripeBook, StripeSim, left_of};
pub use voice::scenarios as voice_scenarios;
