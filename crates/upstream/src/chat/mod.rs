//! Conversations at a provider: what is asked, how one maker's request is written, and what its
//! errors mean.

pub(crate) mod judge;

use crate::outgoing::outgoing;
use crate::{Fault, Outgoing, Provider, Secret, WholeReply};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method, Uri};
use tollgate_wire::{Dialect, Dropped, Problem, UpstreamError};

/// How one kind of provider takes conversations.
pub trait Chat: Sync + std::fmt::Debug {
    /// The dialect of its requests, replies and streams.
    fn dialect(&self) -> Dialect;

    /// Path below the base address, with its leading slash.
    fn path(&self) -> &'static str;

    /// The request, whose body is already in the provider's dialect; `uri` is the address of
    /// [`Chat::path`].
    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing;

    /// Its requests have the same address and headers for every call, but for the call's id and
    /// what a client passes.
    fn is_steady(&self) -> bool {
        false
    }

    /// Its bodies are not quite those of its dialect, see [`Chat::fit`].
    fn fits_bodies(&self) -> bool {
        false
    }

    /// Headers by which clients of its dialect ask for features reach it.
    fn takes_headers(&self) -> bool {
        true
    }

    /// A body of its dialect as it takes it, and what it does not get of it.
    fn fit(&self, body: Bytes) -> Result<(Bytes, Dropped), Problem> {
        Ok((body, Dropped::default()))
    }

    /// What makes an answer of its dialect out of its own; `None` where it is one.
    fn reshape(&self, _stream: bool, _call_id: &str) -> Option<Box<dyn ReplyShape>> {
        None
    }

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }

    /// What an error object inside a reply of status 200 or inside a stream means.
    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::inside(error)
    }
}

/// An answer on its way from a form of the maker's own into a dialect, in whatever pieces it comes.
pub trait ReplyShape: Send {
    /// The next piece; what there is to say of it by now.
    fn feed(&mut self, piece: &[u8]) -> Result<Bytes, Fault>;

    /// The answer is over; what is left to say.
    fn end(&mut self) -> Result<Bytes, Fault>;
}

/// What is asked of a provider.
#[derive(Clone, Debug)]
pub struct ChatAsk<'a> {
    /// In the provider's dialect.
    pub body: Bytes,
    pub call_id: &'a str,
    /// The provider's name for the model; one dialect has it in the path.
    pub model: &'a str,
    pub stream: bool,
    /// Headers of a client that speaks the provider's dialect, for features that are asked for so.
    pub passed: &'a [(HeaderName, HeaderValue)],
}

const CALL_ID: HeaderName = HeaderName::from_static("x-client-request-id");

/// A request with everything but the key.
pub(crate) fn post(uri: Uri, body: Bytes, call_id: &str) -> Outgoing {
    let mut request = outgoing(Method::POST, uri, "application/json, text/event-stream", body);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(value) = HeaderValue::try_from(call_id) {
        headers.insert(CALL_ID, value);
    }
    request
}

/// Adds the key as a bearer, or in the header that the kind has for it.
pub(crate) fn bearer(request: &mut Outgoing, provider: &Provider) {
    if let Some((name, value)) = provider.authorization() {
        request.headers_mut().insert(name, value);
    }
}

/// Adds the bare key in a header of its own.
pub(crate) fn key_in(request: &mut Outgoing, name: &'static str, provider: &Provider) {
    if let Some(value) = provider.secret().and_then(Secret::bare) {
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
}
