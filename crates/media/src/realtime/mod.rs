//! Realtime sessions: the events of OpenAI's GA interface, which everything in the middle speaks,
//! what they count for, and the forms of those who speak otherwise.

mod count;
mod form;
mod scan;
mod usage;

pub use count::{AudioFormat, OutputCount, base64_bytes};
pub use form::{LiveFault, LiveForm, LiveFrame};
pub use scan::{BadEvent, EventParts, event_parts, event_type, strict_event_type};
pub use usage::live_usage;
