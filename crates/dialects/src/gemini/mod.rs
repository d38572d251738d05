//! Gemini generateContent: requests, replies and streamed events, into the hub and out of it.
//!
//! The official client mixes both spellings of a name (`inlineData`, `inline_data`); both are read
//! everywhere.

pub(crate) mod answer_out;
pub(crate) mod ask_in;
pub(crate) mod ask_out;
mod cites;
pub(crate) mod events_in;
pub(crate) mod events_out;
mod known;
mod parts_in;
mod parts_out;
mod schema;
mod tools_in;
mod tools_out;

/// Stands for a signature that is not there; Google documents it for conversations that began
/// elsewhere.
pub(crate) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// What a role is called.
fn role_word(role: crate::hub::Role) -> &'static str {
    match role {
        crate::hub::Role::Assistant => "model",
        crate::hub::Role::System | crate::hub::Role::Developer => "system",
        crate::hub::Role::User => "user",
    }
}
