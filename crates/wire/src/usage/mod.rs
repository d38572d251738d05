//! What a call used, in disjoint counters.
//!
//! Providers report overlapping numbers, each in its own shape (cached tokens inside the prompt or
//! beside it, reasoning inside the completion or beside it). Here each token is in exactly one
//! counter, none is ever negative, and the sums give the provider's totals back.
//! [`UsageReport`] reads a shape, [`Usage::write`] writes one.

mod counters;
mod duration;
mod names;
mod report;
mod write;

pub use duration::read_duration_ms;
pub use names::UsageShape;
pub use report::UsageReport;

use serde::{Deserialize, Serialize};

/// Above this a counter is taken for nonsense.
pub const MOST: u64 = 1_000_000_000;

/// Tokens by the face that prices them; disjoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Uncached input: text, and whatever has no counter of its own (video, documents, tool
    /// results).
    pub input: u64,
    pub cache_read: u64,
    /// Written to a cache that lives for minutes (5 at Anthropic, 30 at OpenAI), or for a time not
    /// reported.
    pub cache_write_5m: u64,
    /// Written to a cache that lives for hours (1 at Anthropic, 12 at OpenAI).
    pub cache_write_1h: u64,
    pub image_input: u64,
    pub audio_input: u64,
    /// Output text, tool calls and rejected predictions included.
    pub output: u64,
    pub reasoning: u64,
    pub image_output: u64,
    pub audio_output: u64,
}

impl Usage {
    /// Everything that went in.
    pub fn input_total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h, self.image_input, self.audio_input]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// Everything that came out.
    pub fn output_total(&self) -> u64 {
        [self.output, self.reasoning, self.image_output, self.audio_output].into_iter().fold(0, u64::saturating_add)
    }
}
