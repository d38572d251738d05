//! Bodies that nobody read. A reply to a request whose body has not come yet (401, 404, 413, …)
//! leaves that body on the connection. A small one is read and thrown away, so that the connection
//! can be used again; otherwise the reply says `Connection: close`, so that a client, or a proxy
//! with a pool, sends nothing more on it. HTTP/2 resets the stream and needs neither.

use crate::door::connections::Seat;
use axum::body::{Bytes, HttpBody};
use axum::response::Response;
use http::{HeaderValue, Request, StatusCode, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How much is thrown away, and how long it may take to come.
const SMALL: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// The body of an HTTP/1 request on its way to a handler. Whatever of it is not read goes back to
/// the connection.
pub struct Lent {
    body: Option<Incoming>,
    seat: Arc<Seat>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(cx);
        if !matches!(frame, Poll::Pending | Poll::Ready(Some(Ok(_)))) {
            // Read to its end, or broken: nothing is left of it.
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            self.seat.give_back(body);
        }
    }
}

/// Lends the body of a request to its handler. Also: whether the client waits for a word before it
/// sends the body.
pub fn lend(request: Request<Incoming>, seat: &Arc<Seat>) -> (Request<axum::body::Body>, bool) {
    let waits = request.headers().contains_key(header::EXPECT);
    let lent = request.map(|body| match body.is_end_stream() {
        true => axum::body::Body::empty(),
        false => axum::body::Body::new(Lent { body: Some(body), seat: seat.clone() }),
    });
    (lent, waits)
}

/// Makes a reply true for its connection: either nothing is left of the request, or the reply says
/// that it is the last.
pub async fn settle(reply: &mut Response, seat: &Seat, waits: bool) {
    let Some(body) = seat.take_back() else { return };
    // Reading would tell a client that waits to send what nobody wants; and one that was too slow
    // will not be quick now.
    if !waits && reply.status() != StatusCode::REQUEST_TIMEOUT && throw_away(body).await {
        return;
    }
    reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    seat.linger();
}

/// Whether the body is small and came to its end.
async fn throw_away(mut body: Incoming) -> bool {
    if body.size_hint().lower() > SMALL {
        return false;
    }
    let mut left = SMALL;
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let length = frame.data_ref().map_or(0, |data| data.len() as u64);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        true
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or(false)
}
