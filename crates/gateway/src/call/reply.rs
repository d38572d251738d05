//! What goes back to the client of a call: the whole answer with its charge, a stream, or the kept answer of an earlier call.

use super::dispatch::Whole;
use super::events::Events;
use super::open::Call;
use super::pass::{Passed, Passing};
use crate::refusal::Refusal;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tollgate_store::{AccountId, CallId, Ending, Store, StoredReply};
use tollgate_wire::error::Code;

// Read once: a name given as text is read again with every insert.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CHARGE: HeaderName = HeaderName::from_static("x-tollgate-charge-usd");
const DROPPED: HeaderName = HeaderName::from_static("x-tollgate-dropped");
const LIMIT: HeaderName = HeaderName::from_static("x-tollgate-output-limit");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What the headers of an answer say about its call.
pub struct Head {
    id: CallId,
    content_type: HeaderValue,
    dropped: Option<HeaderValue>,
    /// All that the account could pay for: the limit that the provider was given.
    limit: Option<u64>,
}

impl Head {
    pub fn of(call: &Call, content_type: HeaderValue) -> Head {
        let dropped = &call.dropped;
        let dropped = (!dropped.is_empty()).then(|| HeaderValue::try_from(dropped.to_string()).ok()).flatten();
        Head { id: call.id, content_type, dropped, limit: call.limit }
    }

    fn write(self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, self.content_type);
        headers.insert(REQUEST_ID, id_value(self.id));
        if let Some(dropped) = self.dropped {
            headers.insert(DROPPED, dropped);
        }
        if let Some(limit) = self.limit {
            headers.insert(LIMIT, HeaderValue::from(limit));
        }
    }
}

pub fn whole(mut call: Call, answer: Whole) -> Response {
    let head = Head::of(&call, answer.content_type.clone());
    let stored = call.answer.take();
    let reason = if call.meter.is_empty() { "empty_answer" } else { "" };
    let charge = call.close_with_reply(Ending::Answered, 200, reason, stored);
    let mut reply = Response::new(Body::from(answer.body));
    let headers = reply.headers_mut();
    head.write(headers);
    if let Some(value) = charge.and_then(|charge| HeaderValue::try_from(charge.to_string()).ok()) {
        headers.insert(CHARGE, value);
    }
    reply
}

/// The charge is known, as it is for an answer that is whole; it is made when the answer has passed.
pub fn passing(call: Call, passed: Passed) -> Response {
    let head = Head::of(&call, passed.content_type.clone());
    let charge = HeaderValue::try_from(call.due().to_string());
    let mut reply = Response::new(Body::new(Passing::new(call, passed)));
    let headers = reply.headers_mut();
    head.write(headers);
    if let Ok(charge) = charge {
        headers.insert("x-tollgate-charge-usd", charge);
    }
    reply
}

pub fn stream(head: Head, events: Events) -> Response {
    let mut reply = Response::new(Body::new(events));
    let headers = reply.headers_mut();
    head.write(headers);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    reply
}

fn id_value(id: CallId) -> HeaderValue {
    HeaderValue::try_from(id.to_string()).unwrap_or_else(|_| HeaderValue::from_static("call"))
}

/// The answer to a repeated Idempotency-Key whose first call is finished.
pub async fn replay(
    store: &Store,
    account: AccountId,
    first: CallId,
    reply: Option<StoredReply>,
) -> Result<Response, Refusal> {
    let Some(stored) = reply else {
        return Err(Refusal::about(
            Code::IdempotencyConflict,
            "Idempotency-Key",
            format!(
                "The call {first} with this Idempotency-Key is finished and its reply was not kept (streamed, failed or too large). It was charged at most once; use a new key to run it again."
            ),
        ));
    };
    // What was left out is told again.
    let dropped = store.usage_of(account, first).await?.and_then(|row| HeaderValue::try_from(row.dropped?).ok());
    let content_type = HeaderValue::try_from(stored.content_type);
    let mut reply = Response::new(Body::from(stored.body));
    *reply.status_mut() = http::StatusCode::from_u16(stored.status).unwrap_or(http::StatusCode::OK);
    let headers = reply.headers_mut();
    let unknown = || HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, content_type.unwrap_or_else(|_| unknown()));
    headers.insert(REQUEST_ID, id_value(first));
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    if let Some(dropped) = dropped {
        headers.insert(DROPPED, dropped);
    }
    Ok(reply)
}
