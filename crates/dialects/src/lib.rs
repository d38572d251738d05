//! The four chat dialects, and the pure translations between them.
//!
//! No input or output, no clock, no prices, no accounts: bytes in, bytes and facts out.
//! Same-dialect bytes pass through untouched wherever that is possible, so much of this
//! room is about *finding* things in JSON and events, not about rebuilding them.
//!
//! # A call in any pair of dialects
//!
//! | step | what to call |
//! |---|---|
//! | the client's body | [`CheckedRequest::read`]: checked, with what admission and the quote need |
//! | to a provider | [`CheckedRequest::upstream_body`] with a [`Target`]: the body, what was [`Dropped`], the [`ToolNames`] of tools |
//! | links for a provider that takes none | [`CheckedRequest::links`], then [`CheckedRequest::with_data`] |
//! | a whole reply | [`convert`]: the body for the client and the [`ChatReply`] facts for the meter |
//! | a stream | [`ReplyStream::new`] with a [`Setup`], then `feed`, `finish`, `usage`, `error_event`, `heartbeat` |
//! | state of Responses | [`responses::Named`], [`responses::with_input`], [`ReplyStream::response_object`] |
//! | tokens of a prompt | [`CheckedRequest::read_prompt`], then [`Dialect::token_count`](tollgate_wire::Dialect::token_count) |
//! | an error of ours | [`tollgate_wire::error::body`] in [`Dialect::errors`](tollgate_wire::Dialect::errors) |
//!
//! ```
//! use bytes::Bytes;
//! use tollgate_dialects::{CheckedRequest, Target, Voice, convert};
//! use tollgate_wire::Dialect;
//!
//! let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"seed":1}"#;
//! let request = CheckedRequest::read(Dialect::Chat, Bytes::from(body), None).unwrap();
//! let sent = request.upstream_body(&Target::new(Dialect::Anthropic, "claude")).unwrap();
//! assert_eq!(sent.dropped.to_string(), "seed");
//!
//! let reply = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude",
//!     "content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","usage":{"input_tokens":2,"output_tokens":3}}"#;
//! let voice = Voice { id: "call_1".into(), model: "m".into(), created: 1, ..Voice::default() };
//! let converted = convert(Dialect::Anthropic, Dialect::Chat, Bytes::from(reply), &sent.names, &voice).unwrap();
//! assert!(converted.body.starts_with(br#"{"id":"chatcmpl-1","object":"chat.completion""#));
//! assert_eq!(converted.facts.usage.unwrap().output, 3);
//! ```
//!
//! Between two dialects everything goes by way of one form in the middle (`hub`): four readers and
//! four writers, no translations between pairs.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod anthropic;
pub mod chat;
mod exchange;
mod gemini;
mod hub;
mod pattern;
mod reads;
pub mod responses;

pub use chat::{BrokenStream, ChatReply, NotAReply, StreamEnd};
pub use exchange::{
    CheckedRequest, Converted, Given, LinkContent, LinkKind, MediaLink, ModelRules, Path, ReplyStream, SealNeeds, Sent,
    Setup, convert, own_seals, scheme, without_reasoning,
};
pub use hub::{Dropped, Echo, Target, ToolNames, Voice};
pub use reads::{Hosted, Modality, Reads, TOOLS, ToolUses, hosted_names, limit_uses};
