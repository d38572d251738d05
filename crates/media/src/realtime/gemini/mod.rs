//! Gemini Live on either side of a session. [`GeminiProvider`] lets clients of OpenAI's interface
//! talk to it, [`GeminiClient`] lets its clients talk to providers of OpenAI's interface. Where
//! both sides are Gemini, each event carries the frame it was made from (`gemini`), and that is
//! what the other side gets: nothing is put into other words.
//!
//! Audio: Gemini hears any rate that is named, so 24 kHz goes through as it is, and it says 24
//! kHz. Its clients send 16 kHz, which is resampled for providers that hear 24 kHz. G.711 is
//! refused by name.

mod client;
mod keys;
mod locked;
mod provider;
mod setup;
mod turn;
mod usage;

pub use client::{GeminiClient, gemini_setup_model};
pub use locked::LockedSetup;
pub use provider::{GeminiProvider, GeminiProviderSettings};
pub use usage::GeminiUsage;

/// The member of an event that carries a frame of Gemini.
const CARRIED: &str = "gemini";
/// What both forms are called.
const FORM: &str = "gemini";
/// An event that says nothing but the frame it carries.
const RAW: &str = "gemini.raw";
