//! Where answers and refusals become HTTP, and nowhere else: status, headers, and the body in the
//! client's dialect.

use crate::call::{AnswerBody, BrokenOff, CallAnswer};
use crate::refusal::Refusal;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};
use tollgate_wire::error::{self, Code, ErrorFormat, Retry};

// Read once: a name given as text is read again with every insert.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CHARGE: HeaderName = HeaderName::from_static("x-tollgate-charge-usd");
const DROPPED: HeaderName = HeaderName::from_static("x-tollgate-dropped");
const LIMIT: HeaderName = HeaderName::from_static("x-tollgate-output-limit");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
const NO: HeaderValue = HeaderValue::from_static("false");

impl CallAnswer {
    /// The reply to a call.
    pub fn into_reply(self) -> Response {
        let CallAnswer { call, content_type, charge, dropped, limit, replayed, body } = self;
        let streamed = content_type.as_bytes().starts_with(b"text/event-stream");
        let mut reply = Response::new(match body {
            AnswerBody::Whole(bytes) => Body::from(bytes),
            pieces => Body::new(Pieces(pieces)),
        });
        let headers = reply.headers_mut();
        headers.insert(header::CONTENT_TYPE, content_type);
        headers.insert(REQUEST_ID, text(call).unwrap_or_else(|| HeaderValue::from_static("call")));
        let facts =
            [(DROPPED, dropped.and_then(text)), (LIMIT, limit.map(HeaderValue::from)), (CHARGE, charge.and_then(text))];
        headers.extend(facts.into_iter().filter_map(|(name, value)| Some((name, value?))));
        if replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        if streamed {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            headers.insert(BUFFERING, HeaderValue::from_static("no"));
        }
        reply
    }
}

fn text(value: impl ToString) -> Option<HeaderValue> {
    HeaderValue::try_from(value.to_string()).ok()
}

/// The body of an answer that is not whole: the client's reading drives it.
struct Pieces(AnswerBody);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Pin::new(&mut self.0).poll_next(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

impl Refusal {
    /// The reply in the caller's dialect. `request_id` is the call id where there is one.
    pub fn into_reply(self, dialect: ErrorFormat, request_id: &str) -> Response {
        let (code, param) = (self.code, self.param.as_deref());
        let body = error::body_with(dialect, code, &self.message, param, request_id, &self.more());
        let mut reply = Response::new(Body::from(body));
        *reply.status_mut() = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = reply.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if !request_id.is_empty()
            && let Ok(id) = HeaderValue::from_str(request_id)
        {
            headers.insert(REQUEST_ID, id);
        }
        advise(&self, headers);
        if code == Code::InvalidApiKey {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

/// When, and whether, the request is worth sending again.
fn advise(refusal: &Refusal, headers: &mut HeaderMap) {
    let advised = match refusal.code.retry() {
        _ if refusal.once => {
            headers.insert(SHOULD_RETRY, NO);
            None
        }
        // A limit by day or month is a "no" that ends; its refusal says when, if that is soon.
        Retry::Never if refusal.retry_after.is_some() => None,
        Retry::Never => {
            headers.insert(SHOULD_RETRY, NO);
            None
        }
        Retry::Soon => None,
        Retry::After(seconds) => Some(seconds),
    };
    if let Some(seconds) = refusal.retry_after.filter(|_| !refusal.once).or(advised) {
        // Some SDKs sleep as long as Retry-After says: never ask them for more than a minute. What
        // is used up for the day or the hour is the exception, and such a call is not worth
        // repeating before.
        let used_up = matches!(refusal.reason, Some("daily" | "no_result_limit"));
        headers.insert(header::RETRY_AFTER, HeaderValue::from(if used_up { seconds } else { seconds.min(60) }));
        if used_up {
            headers.insert(SHOULD_RETRY, NO);
        }
    }
}
