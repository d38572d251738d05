//! The form in the middle: what any dialect can say, in an order no dialect loses.
//!
//! Each dialect has one reader into this form and one writer out of it, for requests ([`Ask`]), whole replies
//! ([`Answer`]) and streams ([`Event`]); there are no translations between pairs. Conversations are turns of ordered
//! parts, never sorted by kind. What a dialect alone knows is carried as the text it came in, with its origin, and
//! written again only for that dialect; for another one it is dropped and recorded, or refused with its name.

mod answer;
mod ask;
pub(crate) mod base64;
mod carry;
mod dropped;
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

pub(crate) use answer::{Answer, Choice, Gather, Output, owned_seal};
pub(crate) use ask::{Ask, Format, Group, Member, Reasoning, Tool, ToolChoice, ToolKind};
pub(crate) use base64::standard as base64_standard;
pub(crate) use carry::{Carry, data_url, others, place_of_url, tidy_mime};
pub use dropped::Dropped;
pub(crate) use effort::Effort;
pub(crate) use event::{Citation, Details, Event, Finish, Sink, Stop};
pub(crate) use fields::Fields;
pub(crate) use ids::{fitting_id, fitting_user, made_id};
pub(crate) use lane::{Held, Lane, Saying, Waiting, Whole};
pub(crate) use lost::Lost;
pub use names::Names;
pub(crate) use names::{FREE_TEXT, chosen_name, sent_name};
pub(crate) use pairs::{Merge, paired};
pub(crate) use part::{Call, CallKind, Media, Part, Place, Role, Shape, Thought, Turn};
pub(crate) use places::Places;
pub(crate) use rest::{Known, Members, Rest};
#[cfg(test)]
pub(crate) use rest::{entry, says};
pub(crate) use restore::Restore;
pub(crate) use schema::{NO_ARGUMENTS, any_text, free_text_schema, grammar, quoted_text};
pub(crate) use seal::{MARK, NEXT_TEXT, Origin, Seal, UNSIGNED};
pub use target::Target;
pub(crate) use tier::{tier_asked, tier_in};
pub(crate) use voice::{CONVERSATION, REPEATED};
pub use voice::{Echo, Voice};
