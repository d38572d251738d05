//! What every endpoint does first: find the caller, read the body within its limits, turn a refusal
//! into a reply.

use super::unpack::Unpacking;
use crate::app::App;
use crate::call::{self, Needed};
use crate::door::bodies::{BodyShare, SMALL, Whose};
use crate::refusal::Refusal;
use crate::who::caller::{self, Caller};
use axum::body::Body;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::BodyExt as _;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tollgate_catalog::Money;
use tollgate_store::Idem;
use tollgate_wire::error::{Code, ErrorFormat};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Finds the caller of a request that has no body worth reading.
pub async fn caller(app: &App, parts: &Parts) -> Result<Arc<Caller>, Refusal> {
    caller::authenticate(&app.register(), parts).await
}

/// The same where a key may be left out. One that does not work is refused: what everybody sees
/// would be taken for its own.
pub async fn caller_if_any(app: &App, parts: &Parts) -> Result<Option<Arc<Caller>>, Refusal> {
    let presented = [header::AUTHORIZATION.as_str(), "x-api-key", "x-goog-api-key"];
    if presented.iter().any(|name| parts.headers.contains_key(*name)) {
        return caller(app, parts).await.map(Some);
    }
    Ok(None)
}

/// Reads a JSON body within the limits of size and time.
pub async fn json_body(app: &App, caller: &Caller, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
    only_json(parts)?;
    form_body(app, caller, parts, body).await
}

/// Reads a JSON body that has no reason to be large.
pub async fn small_json_body(app: &App, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
    only_json(parts)?;
    let largest = SMALL.min(app.settings.limits.body_bytes);
    Reading { app, parts, payer: None, largest }.whole(body).await
}

/// Reads a body of any kind with at most so many bytes, from somebody who may have no key.
pub async fn raw_body(app: &App, parts: &Parts, body: Body, most: usize) -> Result<Bytes, Refusal> {
    let largest = most.min(app.settings.limits.body_bytes);
    Reading { app, parts, payer: None, largest }.whole(body).await
}

/// Reads a body of any kind that may be packed with zstd. What is inside is counted as what came
/// is, and is no longer than any other body.
pub async fn unpacked_body(app: &App, caller: &Caller, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
    let reading = Reading { app, parts, payer: Some(caller), largest: app.settings.limits.body_bytes };
    if !is_packed(&parts.headers) {
        return reading.whole(body).await;
    }
    let (packed, mut room) = reading.packed(body).await?;
    let (mut unpacking, mut all) = (Unpacking::new(), BytesMut::new());
    unpacking.push(&packed);
    while let Some(piece) = unpacking.piece(true)? {
        if all.len() + piece.len() > reading.largest {
            return Err(too_large_unpacked(reading.largest));
        }
        let needed = packed.len() + all.len() + piece.len() + unpacking.held();
        if needed > room.bytes() {
            let twice = room.bytes().saturating_mul(2);
            reading.make_room(&mut room, needed.max(twice)).await?;
        }
        all.extend_from_slice(&piece);
    }
    room.shrink(all.len());
    Ok(room.keep(all.freeze()))
}

/// What is said of a body that is too long once it is unpacked.
pub fn too_large_unpacked(most: usize) -> Refusal {
    Refusal::new(Code::BodyTooLarge, format!("The body has more than {most} bytes when it is unpacked."))
}

/// Whether the body is packed as one SDK packs its own.
pub fn is_packed(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_some_and(|value| value == "zstd")
}

pub fn only_json(parts: &Parts) -> Result<(), Refusal> {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::about(
            Code::UnsupportedMediaType,
            "Content-Type",
            "The body must be JSON with `Content-Type: application/json`.",
        ));
    }
    Ok(())
}

/// Reads a body of any kind within the limits of size and time.
pub async fn form_body(app: &App, caller: &Caller, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
    Reading { app, parts, payer: Some(caller), largest: app.settings.limits.body_bytes }.whole(body).await
}

/// A body that is being read. It has room in the budget for all bodies before it is read, and keeps
/// it.
struct Reading<'a> {
    app: &'a App,
    parts: &'a Parts,
    payer: Option<&'a Caller>,
    largest: usize,
}

impl Reading<'_> {
    async fn whole(&self, body: Body) -> Result<Bytes, Refusal> {
        not_compressed(&self.parts.headers)?;
        let (bytes, room) = self.packed(body).await?;
        Ok(room.keep(bytes))
    }

    /// The body as it comes, and its room.
    async fn packed(&self, body: Body) -> Result<(Bytes, BodyShare), Refusal> {
        let declared = said_length(&self.parts.headers, self.largest)?;
        let mut room = self.app.bodies.room(Whose::Penniless, 0).await?;
        if let Some(length) = declared {
            self.make_room(&mut room, length).await?;
        }
        let bytes = {
            let mut pieces = pin!(self.pieces(body, &mut room));
            // What came with its head needs no timer.
            match poll_fn(|cx| Poll::Ready(pieces.as_mut().poll(cx))).await {
                Poll::Ready(bytes) => bytes?,
                Poll::Pending => tokio::time::timeout(self.app.settings.limits.body_time, pieces)
                    .await
                    .unwrap_or_else(|_| Err(late_body()))?,
            }
        };
        Ok((bytes, room))
    }

    /// All pieces as one; a body that came in one piece is not copied.
    async fn pieces(&self, mut body: Body, room: &mut BodyShare) -> Result<Bytes, Refusal> {
        let (mut first, mut all) = (Bytes::new(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame.map_err(|_| broken_body())?.into_data() else { continue };
            let length = first.len() + all.len() + piece.len();
            if length > self.largest {
                return Err(too_large(self.largest));
            }
            if length > room.bytes() {
                // Its size was not said: it doubles.
                self.make_room(room, length.max(room.bytes() * 2).min(self.largest)).await?;
            }
            if length == piece.len() {
                first = piece;
                continue;
            }
            if all.is_empty() {
                all.reserve(room.bytes());
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&piece);
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }

    /// Room for so many bytes in all. A large body is read for accounts that can pay; the others
    /// wait for each other, where what they ask for may be paid for already, and are refused
    /// otherwise.
    async fn make_room(&self, room: &mut BodyShare, length: usize) -> Result<(), Refusal> {
        if length > SMALL && room.bytes() <= SMALL {
            room.belongs_to(match self.payer {
                Some(caller) => whose(self.app, caller, &self.parts.headers).await?,
                None => Whose::Penniless,
            });
        }
        room.grow(length).await
    }
}

/// The length that a body is said to have; an error, where that is too much or it is compressed.
pub fn declared_length(headers: &HeaderMap, largest: usize) -> Result<Option<usize>, Refusal> {
    not_compressed(headers)?;
    said_length(headers, largest)
}

fn not_compressed(headers: &HeaderMap) -> Result<(), Refusal> {
    if headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity") {
        return Err(Refusal::about(
            Code::UnsupportedMediaType,
            "Content-Encoding",
            "A compressed body is not accepted; send it as it is.",
        ));
    }
    Ok(())
}

fn said_length(headers: &HeaderMap, largest: usize) -> Result<Option<usize>, Refusal> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > largest) { Err(too_large(largest)) } else { Ok(declared) }
}

/// For whom a large body is counted, or why it is not read.
pub async fn whose(app: &App, caller: &Caller, headers: &HeaderMap) -> Result<Whose, Refusal> {
    match reads_large(app, caller).await? {
        Ok(()) => Ok(Whose::Account(caller.account.id)),
        // Its call may be paid for already, and its answer stored.
        Err(_) if headers.contains_key(IDEMPOTENCY_KEY) => Ok(Whose::Penniless),
        Err(refusal) => Err(refusal),
    }
}

pub fn late_body() -> Refusal {
    Refusal::new(Code::RequestTimeout, "The body took too long to arrive.")
}

pub fn broken_body() -> Refusal {
    Refusal::new(Code::InvalidRequest, "The body could not be read to its end.")
}

/// Whether large bodies of this account are read before it is known what they ask for: it can pay,
/// or there is something to be had for nothing. The inner error says why not.
pub async fn reads_large(app: &App, caller: &Caller) -> Result<Result<(), Refusal>, Refusal> {
    if caller.seems_able_to_pay() || app.serving.load().catalog.gives_away() {
        return Ok(Ok(()));
    }
    let now = app.world.now_ms();
    let refused = app.keys.read_again(&app.store, caller).await?.cannot_pay(now);
    // Nobody knows yet what the call would cost; that there is nothing is enough.
    let needed = Needed { amount: Money::from_nano(1), lower: "" };
    Ok(refused.map_or(Ok(()), |refused| Err(call::why_refused(&refused, needed, now))))
}

pub fn too_large(limit: usize) -> Refusal {
    Refusal::new(Code::BodyTooLarge, format!("The body is larger than {limit} bytes."))
}

/// Whether the request may be repeated by an Idempotency-Key.
pub fn repeats(headers: &HeaderMap) -> bool {
    headers.contains_key(IDEMPOTENCY_KEY)
}

/// The caller's Idempotency-Key and a fingerprint of the body it came with.
pub fn idempotency(headers: &HeaderMap, endpoint: &str, body: &[u8]) -> Result<Option<Idem>, Refusal> {
    if !repeats(headers) {
        return Ok(None);
    }
    repeated(headers, Sha256::new().chain_update(endpoint).chain_update(body))
}

/// The same where the endpoint and the body were hashed on the way.
pub fn repeated(headers: &HeaderMap, hash: Sha256) -> Result<Option<Idem>, Refusal> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    if key.is_empty() || key.len() > 255 {
        return Err(Refusal::about(
            Code::InvalidParameter,
            "Idempotency-Key",
            "An Idempotency-Key has 1 to 255 characters.",
        ));
    }
    Ok(Some(Idem { key_hash: Sha256::digest(key.as_bytes()).into(), fingerprint: hash.finalize().into() }))
}

/// A panic of ours ends this request with 500 and nothing else: the connection and everybody's
/// streams go on. A call that was open reports to the settler as it unwinds.
///
/// Not an `async fn`: that would hold the work twice, and every call would move it.
pub fn guarded<T>(work: impl Future<Output = Result<T, Refusal>>) -> impl Future<Output = Result<T, Refusal>> {
    AssertUnwindSafe(work).catch_unwind().map(|outcome| {
        outcome.unwrap_or_else(|_| {
            tracing::error!("a handler panicked");
            Err(Refusal::new(
                Code::Internal,
                "Something went wrong in the gateway; nothing is charged for this request.",
            ))
        })
    })
}

/// A refusal as a reply, counted.
pub fn refused(app: &App, dialect: ErrorFormat, refusal: Refusal, request_id: &str) -> Response {
    app.metrics.refused(refusal.code.code());
    refusal.into_reply(dialect, request_id)
}

/// A reply with a JSON body.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let mut reply = Response::new(Body::from(text));
            reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            reply
        }
        Err(error) => {
            tracing::error!(%error, "a reply could not be written");
            Refusal::new(Code::Internal, "The reply could not be written.").into_reply(ErrorFormat::OpenAi, "")
        }
    }
}

/// Where this client reaches us: what the operator says, else what the client itself says.
pub fn base(app: &App, parts: &Parts) -> String {
    if let Some(url) = &app.settings.public_url {
        return url.clone();
    }
    let named = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let named = named.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
    let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b));
    match named.filter(plain) {
        Some(host) => format!("{}://{host}", app.settings.scheme()),
        None => format!("{}://{}", app.settings.scheme(), app.settings.listen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_500_for_that_request_only() {
        let outcome: Result<(), Refusal> = guarded(async { panic!("on purpose") }).await;
        assert_eq!(outcome.err().map(|refusal| refusal.code), Some(Code::Internal));
        assert!(guarded(async { Ok(()) }).await.is_ok());
    }
}
