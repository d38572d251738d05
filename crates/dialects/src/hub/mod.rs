//! The form in the middle: what any dialect can say, in an order no dialect loses.
//!
//! Each dialect has one reader into this form and one writer out of it, for requests ([`Ask`]),
//! whole replies ([`Answer`]) and streams ([`Event`]); there are no translations between pairs.
//! Conversations are turns of ordered parts, never sorted by kind. What a dialect alone knows is
//! carried as the text it came in, with its origin; for another one it is dropped and recorded, or
//! refused with its name. Within one dialect the bytes themselves pass.
//!
//! | word | what it is |
//! |---|---|
//! | ask, answer | a request and a whole reply in this form; an answer is gathered from its events |
//! | turn, part | a message, and a piece of what it says: text, picture, call, result, thought |
//! | target, voice | what is known of the model that a request goes to; who the client hears (ids, public name) |
//! | carry | a request on its way out: where it goes, and the record of what it loses |
//! | rest | members that a reader did not take, with the place they stood in |
//! | dropped, lost | what a provider does not get of a request; what a client does not get of an answer |
//! | seal, bound | reasoning that only its maker can read; the call or text that it belongs to |
//! | mark | a place up to which the provider is asked to cache |
//! | lane | blocks that a dialect cannot interleave, one after the other |
//! | place (of a citation) | where in what was said it belongs, in characters |
//! | restore | the caller's own names of tools, put back into an answer |
//! | foreign, hosted | what only its own dialect knows; a tool that runs at the provider |

mod answer;
mod ask;
pub(crate) mod base64;
mod carry;
mod effort;
mod event;
mod fields;
mod hosted;
mod ids;
mod kinds;
mod lane;
mod lost;
mod names;
mod pairs;
mod part;
mod places;
mod policy;
mod rest;
mod restore;
mod schema;
mod seal;
mod strict;
mod target;
mod tier;
mod voice;

pub(crate) use answer::{Answer, Choice, Gather, OutputBlock, owned_seal};
pub(crate) use ask::{Ask, Member, OutputFormat, Reasoning, Tool, ToolChoice, ToolKind};
pub(crate) use base64::standard as base64_standard;
pub(crate) use carry::{Carry, data_url, others, place_of_url, tidy_data_url, tidy_mime};
pub(crate) use effort::Effort;
pub(crate) use event::{Citation, Details, Event, Finish, Sink, Stop};
pub(crate) use fields::Fields;
pub(crate) use ids::{fitting_id, fitting_user, made_id};
pub(crate) use lane::{HeldBack, Lane, ObjectTracker, Saying, Waiting};
pub(crate) use lost::Lost;
pub use names::ToolNames;
pub(crate) use names::{FREE_TEXT, chosen_name, sent_name};
pub(crate) use pairs::{Merge, paired};
pub(crate) use part::{CallKind, Media, MediaSource, Part, Role, Thought, ToolCall, Turn};
pub(crate) use places::CitationPlaces;
pub(crate) use rest::{Known, Rest, RestMembers};
#[cfg(test)]
pub(crate) use rest::{entry, says};
pub(crate) use restore::Restore;
pub(crate) use schema::{NO_ARGUMENTS, any_text, free_text_schema, grammar, quoted_text};
pub(crate) use seal::{MARK, NEXT_TEXT, Seal, SealMaker, UNSIGNED};
pub use target::Target;
pub(crate) use tier::{tier_asked, tier_in};
pub use tollgate_wire::Dropped;
pub(crate) use voice::{CONVERSATION, REPEATED};
pub use voice::{Echo, Voice};
