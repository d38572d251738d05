//! Recordings that are written down: what is asked of which model, what it costs, and how it is
//! done at a provider.
//!
//! The charge goes by the length of the recording as it was measured while it arrived. What a
//! provider says of it is stored with the call and changes nothing.

mod asked;
mod call;
mod pass;
mod passing;
mod rewriting;
mod task;

pub use asked::AskedTranscription;
pub use call::TranscriptionCall;
pub use pass::{BegunForm, RecordingPass};
