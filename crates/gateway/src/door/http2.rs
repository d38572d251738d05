//! HTTP/2 with clients, by hyper: windows, streams and pings set by hand. What a client may leave
//! undone on a stream is in `stalled_streams` and `unread`.

use super::connections::{RequestUnderWay, Seat};
use super::protocol::BegunStream;
use super::stalled_streams::StalledStreams;
use super::unread::{self, Unread};
use crate::settings::ServerLimits;
use crate::shutdown::Shutdown;
use axum::body::{Body, Bytes, HttpBody};
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How connections are served.
pub struct Http2 {
    builder: http2::Builder<StalledStreams>,
    stalled: StalledStreams,
    rest: Arc<RestOfBodies>,
}

/// Where bodies are read to their end after their replies.
struct RestOfBodies {
    tracker: TaskTracker,
    shutdown: Arc<Shutdown>,
}

impl Http2 {
    pub fn new(limits: &ServerLimits, stalled: StalledStreams, tracker: TaskTracker, shutdown: Arc<Shutdown>) -> Http2 {
        let mut builder = http2::Builder::new(stalled.clone());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.h2_streams)
            .initial_stream_window_size(limits.h2_window)
            .initial_connection_window_size(limits.h2_window.saturating_mul(4))
            .max_header_list_size(32 << 10)
            .max_send_buf_size(256 << 10)
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(20));
        Http2 { builder, stalled, rest: Arc::new(RestOfBodies { tracker, shutdown }) }
    }

    /// Serves a connection until it ends. After a stop it takes no further request.
    pub async fn serve<F>(
        &self,
        begun: BegunStream,
        seat: Arc<Seat>,
        stop: CancellationToken,
        answer: impl Fn(Request<Body>) -> F,
    ) where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let (seat, stalled, rest) = (seat.clone(), self.stalled.clone(), self.rest.clone());
            let (request, unread) = unread::lend(request);
            let answering = answer(request);
            async move {
                let Some(busy) = seat.begin(true) else {
                    // The connection was asked to go; its task ends here.
                    return std::future::pending().await;
                };
                let reply = answering.await;
                let lingering = unread.map(|unread| Lingering { unread, rest });
                let held = |body| StreamReply { body: stalled.hold(body), ended: false, lingering, busy: Some(busy) };
                Ok::<_, Infallible>(reply.map(held))
            }
        });
        let mut connection = pin!(self.builder.serve_connection(TokioIo::new(begun), service));
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// The body of a reply. Its request is under way until it is sent.
struct StreamReply {
    body: Body,
    ended: bool,
    /// What may be left of the request.
    lingering: Option<Lingering>,
    busy: Option<RequestUnderWay>,
}

struct Lingering {
    unread: Unread,
    rest: Arc<RestOfBodies>,
}

impl HttpBody for StreamReply {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.ended = matches!(frame, Poll::Ready(None));
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for StreamReply {
    fn drop(&mut self) {
        let Some(Lingering { unread, rest }) = self.lingering.take() else { return };
        // A reply that was broken off ends its stream at once, and what is left goes with it.
        if let Some(left) = unread.take_back().filter(|_| self.ended || self.body.is_end_stream()) {
            let (ended, busy) = (rest.shutdown.ended.clone(), self.busy.take());
            rest.tracker.spawn(async move {
                let _busy = busy;
                ended.run_until_cancelled(unread::linger(left)).await
            });
        }
    }
}
