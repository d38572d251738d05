//! What a call used, for modalities that are not measured in language tokens. Each says its
//! counters in full, what is charged and what is only shown; the price then takes what it charges
//! for (`price.rs`). `None`: more than can be counted, a refusal.

use std::time::Duration;

use tollgate_catalog::measure::{audio_tokens, billed_seconds, characters};

use crate::call::counters::Counters;

impl Counters {
    /// Images: each is one call; the usage log shows one prompt token as an accounting entry.
    pub fn images(n: u64) -> Counters {
        Counters { calls: n, input: 1, ..Counters::default() }
    }

    /// A video of so many whole seconds.
    pub fn video(seconds: u64) -> Counters {
        Counters { calls: 1, seconds, ..Counters::default() }
    }

    /// Speech made from a text: every character is one token; what was generated is shown as output
    /// tokens, a thousand a minute of whole seconds. `Duration::ZERO`: not generated yet, for the
    /// hold.
    pub fn speech(text: &str, generated: Duration) -> Option<Counters> {
        let shown = if generated.is_zero() { 0 } else { audio_tokens(billed_seconds(generated)?)? };
        Some(Counters { calls: 1, input: characters(text), audio_output: shown, ..Counters::default() })
    }

    /// A song of so many whole seconds, which are shown as output tokens too.
    pub fn song(seconds: u64) -> Option<Counters> {
        Some(Counters { calls: 1, seconds, audio_output: audio_tokens(seconds)?, ..Counters::default() })
    }

    /// A recording that was listened to: its whole seconds are charged, and shown as audio input
    /// tokens.
    pub fn recording(length: Duration) -> Option<Counters> {
        let seconds = billed_seconds(length)?;
        Some(Counters { calls: 1, seconds, audio_input: audio_tokens(seconds)?, ..Counters::default() })
    }
}
