//! Realtime sessions: the events of OpenAI's GA interface, which everything in the middle speaks,
//! what they count for, and the forms of those who speak otherwise.

mod append;
mod beta;
mod count;
mod form;
mod ga;
mod gemini;
mod json;
mod qwen;
mod resample;
mod scan;
mod usage;

pub use append::{append_format, split_append};
pub use beta::{BetaClient, BetaProvider};
pub use count::{AudioFormat, OutputCount, base64_bytes};
pub use form::{LiveFault, LiveForm, LiveFrame, LiveHearing};
pub use gemini::{GeminiClient, GeminiProvider, GeminiProviderSettings, GeminiUsage, LockedSetup, gemini_setup_model};
pub use qwen::{QwenAudio, QwenProvider};
pub use resample::Resampler;
pub use scan::{BadEvent, EventParts, event_parts, event_type, strict_event_type};
pub use usage::live_usage;
