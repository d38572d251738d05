//! An answer that passes while it is rewritten, because it is too large to be held. The client's
//! reading drives the provider's, as with streams; what makes it an answer is certain at its end
//! only, so the call is settled there, before the last bytes go out. When it turns out to be none,
//! the call costs nothing and the transfer is broken off: a client must not take half an answer for
//! a whole one.

use super::abandoned::Abandoned;
use super::meter::Meter;
use super::open::Call;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::HeaderValue;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tollgate_store::{Ending, MAX_STORED_REPLY, StoredReply};
use tollgate_upstream::{Fault, ReplyBody};
use tollgate_wire::error::Code;

/// Answers up to this size are held and judged as a whole; larger ones pass while they are judged.
pub const HELD: usize = 1 << 20;

/// What happens to an answer on its way.
pub trait Rewrite: Send {
    /// The next piece of the provider's; what goes to the client for it. What passes as it is needs
    /// no copy.
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault>;
    /// The provider is at its end: the rest, if it was an answer.
    fn end(&mut self) -> Result<Bytes, Fault>;
    /// It was none after all.
    fn broke(&mut self) {}
    /// What it has used, where only its end tells that: asked when all of it has passed.
    fn meter(&mut self) -> Option<Meter> {
        None
    }
    /// The rest of it is read although its client has left, because it is billed all the same.
    fn goes_on(&self) -> bool {
        false
    }
}

/// Nothing happens any more to an answer that goes on elsewhere.
struct Nothing;

impl Rewrite for Nothing {
    fn feed(&mut self, _: Bytes) -> Result<Bytes, Fault> {
        Ok(Bytes::new())
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        Ok(Bytes::new())
    }
}

/// An answer that has begun to pass, metered as if it were whole.
pub struct Passed {
    /// Its charge is certain before it has passed.
    pub known: bool,
    pub content_type: HeaderValue,
    /// What may go out already.
    pub first: Bytes,
    pub body: ReplyBody,
    pub rewrite: Box<dyn Rewrite>,
    /// The most bytes that may still come.
    pub left: usize,
}

/// Such an answer on its way.
pub struct PassingBody {
    call: Call,
    first: Option<Bytes>,
    body: ReplyBody,
    rewrite: Box<dyn Rewrite>,
    left: usize,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    replay: ReplayBuffer,
    /// The beginning was handed over and is to leave before anything else happens.
    leaving: bool,
    ended: bool,
}

/// What has passed of an answer that may be asked for again by its Idempotency-Key, as long as it
/// is short enough to be stored.
struct ReplayBuffer {
    content_type: HeaderValue,
    all: Option<BytesMut>,
}

impl ReplayBuffer {
    fn add(&mut self, piece: &[u8]) {
        if let Some(all) = &mut self.all {
            match all.len() + piece.len() <= MAX_STORED_REPLY {
                true => all.extend_from_slice(piece),
                false => self.all = None,
            }
        }
    }

    /// All of it.
    fn reply(&mut self) -> Option<StoredReply> {
        let content_type = self.content_type.to_str().unwrap_or("application/octet-stream").to_owned();
        self.all.take().map(|all| StoredReply { status: 200, content_type, body: all.freeze() })
    }
}

/// The transfer is broken off.
#[derive(Debug, thiserror::Error)]
#[error("the provider's answer broke off")]
pub struct BrokenOff;

impl PassingBody {
    pub fn new(call: Call, passed: Passed) -> PassingBody {
        let cut = Box::pin(call.till.shutdown.cut.clone().cancelled_owned());
        let Passed { first, body, rewrite, left, content_type, .. } = passed;
        let mut replay = ReplayBuffer { content_type, all: call.idempotent.then(BytesMut::new) };
        replay.add(&first);
        PassingBody { call, first: Some(first), body, rewrite, left, cut, replay, leaving: false, ended: false }
    }

    /// The next bytes for the client; `None` when the piece gave none.
    fn pass(&mut self, piece: Option<Bytes>) -> Result<Option<Bytes>, Fault> {
        let Some(piece) = piece else {
            let last = self.rewrite.end()?;
            if let Some(meter) = self.rewrite.meter() {
                self.call.meter = meter;
            }
            self.replay.add(&last);
            self.call.close_with_reply(Ending::Answered, 200, "", self.replay.reply());
            self.ended = true;
            return Ok(Some(last));
        };
        self.left = self.left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
        if Instant::now() > self.call.deadline {
            return Err(Fault::idle());
        }
        let out = self.rewrite.feed(piece)?;
        self.replay.add(&out);
        Ok((!out.is_empty()).then_some(out))
    }

    fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Fault>> {
        loop {
            if self.cut.as_mut().poll(cx).is_ready() {
                let message = "The server is stopping; send the request again.".to_owned();
                return Poll::Ready(Err(Fault { code: Code::ServerDraining, message, ..Fault::cut() }));
            }
            let piece = match ready!(self.body.poll_chunk(cx)) {
                Ok(piece) => piece,
                Err(fault) => return Poll::Ready(Err(fault)),
            };
            if let Some(out) = self.pass(piece).transpose() {
                return Poll::Ready(out);
            }
        }
    }
}

impl Stream for PassingBody {
    type Item = Result<Bytes, BrokenOff>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        if let Some(first) = this.first.take().filter(|first| !first.is_empty()) {
            this.leaving = true;
            return Poll::Ready(Some(Ok(first)));
        }
        if std::mem::take(&mut this.leaving) {
            // A connection sends what it has whenever there is nothing more at the moment. A client
            // that has seen the head of an answer does not repeat by itself what then breaks off.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(match ready!(this.poll_pass(cx)) {
            Ok(out) => Ok(out),
            Err(fault) => {
                tracing::info!(call = %this.call.id, code = fault.code.code(), "an answer broke off on its way");
                this.rewrite.broke();
                this.call.close_free(Ending::UpstreamFault, 200, "broken_off");
                this.ended = true;
                Err(BrokenOff)
            }
        }))
    }
}

impl Drop for PassingBody {
    fn drop(&mut self) {
        if !self.call.is_open() || !self.rewrite.goes_on() {
            return;
        }
        if let Some(call) = self.call.take() {
            let to = call.till.abandoned.clone();
            let body = Box::new(std::mem::replace(&mut self.body, ReplyBody::empty()));
            let rewrite = std::mem::replace(&mut self.rewrite, Box::new(Nothing));
            let _ = to.send(Abandoned::Passing { call, body, rewrite, left: self.left });
        }
    }
}
