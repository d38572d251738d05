//! Bodies that nobody read. A reply to a request whose body has not come yet (401, 404, 413, …)
//! leaves that body on the connection.
//!
//! On HTTP/1 a small one is read and thrown away, so that the connection can be used again;
//! otherwise the reply says `Connection: close`, so that a client, or a proxy with a pool, sends
//! nothing more on it (`http1`).
//!
//! On HTTP/2 the reply goes out at once, and then the body is thrown away up to the limits of a
//! connection that is closed. Letting go of it together with the reply would send RST_STREAM
//! NO_ERROR in the same breath, which RFC 9113 8.1 allows; but clients that are still sending
//! (curl 7.88, httpcore) take it for a failure and drop the reply that they have. After the limits
//! the stream ends in that way.

use super::write_timeout::{LINGER, LINGER_BYTES};
use axum::body::{Bytes, HttpBody};
use bytes::Buf as _;
use http::Request;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// How much is thrown away, and how long it may take to come.
const SMALL: u64 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a handler leaves the body that it did not read to the end.
#[derive(Clone, Default)]
pub struct Unread(Arc<Mutex<Option<Incoming>>>);

impl Unread {
    fn give_back(&self, body: Incoming) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    }

    pub fn take_back(&self) -> Option<Incoming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The body of a request on its way to a handler.
struct Lent {
    body: Option<Incoming>,
    unread: Unread,
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
            self.unread.give_back(body);
        }
    }
}

/// Lends the body of a request to its handler, if it has one.
pub fn lend(request: Request<Incoming>) -> (Request<axum::body::Body>, Option<Unread>) {
    if request.body().is_end_stream() {
        return (request.map(|_| axum::body::Body::empty()), None);
    }
    let unread = Unread::default();
    let lent = request.map(|body| axum::body::Body::new(Lent { body: Some(body), unread: unread.clone() }));
    (lent, Some(unread))
}

/// Whether the body is small and came to its end.
pub async fn small_and_whole(body: impl HttpBody + Unpin) -> bool {
    body.size_hint().lower() <= SMALL && throw_away(body, SMALL, PATIENCE).await
}

/// Reads on after the complete reply of an HTTP/2 stream. What is left then ends with the stream.
pub async fn linger(body: Incoming) {
    throw_away(body, LINGER_BYTES as u64, LINGER).await;
}

/// Whether the body came to its end within so many bytes and so much time.
async fn throw_away(mut body: impl HttpBody + Unpin, most: u64, patience: Duration) -> bool {
    let mut left = most;
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            let length = frame.data_ref().map_or(0, |data| data.remaining() as u64);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return false,
            }
        }
        true
    };
    tokio::time::timeout(patience, reading).await.unwrap_or(false)
}
