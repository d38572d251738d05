//! Lets go of HTTP/2 clients that grant one stream no window.
//!
//! Such a client keeps its connection alive and reads other streams, so the write limit of the
//! socket never ends, and hyper does not ask the reply's body again before there is room for a
//! piece of it: the call behind it would stay open for as long as the client likes. So each HTTP/2
//! stream runs as a task of its own with a timer. The timer notes when a piece was handed out and
//! not yet asked for again; one worker for all of them looks now and then and pulls those that are
//! too old. Pulling drops the stream as if its client had left: the call settles as such, the
//! provider is let go, the client gets RST_STREAM.
//!
//! A frame costs two stores into one word; time is counted in ticks of the worker, so no clock is
//! read.

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

tokio::task_local! {
    /// The timer of the HTTP/2 stream that this task serves.
    static OWN: Arc<StreamTimer>;
}

/// A stream is pulled after this many ticks of waiting.
const PATIENCE: u64 = 4;
/// Nobody waits for the client.
const FREE: u64 = u64::MAX;
/// Larger pieces are cut: what was handed out is out of our hands, and must stay small.
const PIECE: usize = 64 << 10;

/// One stream's timer.
struct StreamTimer {
    /// The tick at which a piece was handed out that the client has not made room for yet, or
    /// [`FREE`].
    since: AtomicU64,
    task: OnceLock<AbortHandle>,
}

/// All stalled of a server. Cheap to clone.
#[derive(Clone)]
pub struct StalledStreams {
    shared: Arc<Shared>,
    tracker: TaskTracker,
}

struct Shared {
    tick: AtomicU64,
    held: Mutex<Vec<Weak<StreamTimer>>>,
}

impl StalledStreams {
    pub fn new(tracker: TaskTracker) -> StalledStreams {
        StalledStreams { shared: Arc::new(Shared { tick: AtomicU64::new(0), held: Mutex::default() }), tracker }
    }

    /// Looks at all streams four times within `limit`. Runs until it is dropped.
    pub async fn watch(self, limit: Duration) {
        let mut tick = tokio::time::interval(limit / 4);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.shared.pull_the_old();
        }
    }

    /// Puts a reply's body on the timer of the stream it answers.
    pub fn hold(&self, body: Body) -> Body {
        let Ok(timer) = OWN.try_with(Arc::clone) else { return body };
        timer.since.store(self.shared.tick.load(Ordering::Relaxed), Ordering::Relaxed);
        self.shared.lock().push(Arc::downgrade(&timer));
        Body::new(TimedBody { body, rest: None, timer, shared: self.shared.clone() })
    }
}

/// hyper hands every HTTP/2 stream to its executor as one future.
impl<F> hyper::rt::Executor<F> for StalledStreams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let timer = Arc::new(StreamTimer { since: AtomicU64::new(FREE), task: OnceLock::new() });
        let task = self.tracker.spawn(OWN.scope(timer.clone(), stream));
        let _ = timer.task.set(task.abort_handle());
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<StreamTimer>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pull_the_old(&self) {
        let now = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
        self.lock().retain(|timer| {
            let Some(timer) = timer.upgrade() else { return false };
            let since = timer.since.load(Ordering::Relaxed);
            if since == FREE || now.saturating_sub(since) <= PATIENCE {
                return true;
            }
            tracing::info!("a client makes no room for its HTTP/2 stream and is taken for gone");
            if let Some(task) = timer.task.get() {
                task.abort();
            }
            false
        });
    }
}

struct TimedBody {
    body: Body,
    /// What is left of a piece that was cut.
    rest: Option<Bytes>,
    timer: Arc<StreamTimer>,
    shared: Arc<Shared>,
}

impl TimedBody {
    fn piece(&mut self, mut data: Bytes) -> Frame<Bytes> {
        if data.len() > PIECE {
            self.rest = Some(data.split_off(PIECE));
        }
        Frame::data(data)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Some(Ok(self.piece(rest))));
        }
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => self.piece(data),
            Err(trailers) => trailers,
        })))
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        // Asked for more: the client made room for all before.
        this.timer.since.store(FREE, Ordering::Relaxed);
        let out = this.poll_piece(cx);
        if matches!(out, Poll::Ready(Some(_))) {
            this.timer.since.store(this.shared.tick.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        out
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        if let Some(rest) = &self.rest {
            let rest = rest.len() as u64;
            let (lower, upper) = (hint.lower() + rest, hint.upper().map(|upper| upper + rest));
            hint = SizeHint::new();
            hint.set_lower(lower);
            if let Some(upper) = upper {
                hint.set_upper(upper);
            }
        }
        hint
    }
}
