//! An answer that passes while it is rewritten, because it is too large to be held. The client's
//! reading drives the provider's, as with streams; what makes it an answer is certain at its end
//! only, so the call is settled there, before the last bytes go out. When it turns out to be none,
//! the call costs nothing and the transfer is broken off: a client must not take half an answer for
//! a whole one.
//!
//! A client that reads so slowly that its time is up, or that the provider has given up meanwhile,
//! has left: it pays as one that hangs up does.

use super::abandoned::Abandoned;
use super::dispatch::may_have_begun;
use super::meter::Meter;
use super::open::Call;
use super::waits::Waits;
use crate::world::Millis;
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
    /// What is left of ours behind the piece that was handed on last: it need not wait for the
    /// provider's next one.
    fn rest(&mut self) -> Bytes {
        Bytes::new()
    }
    /// The provider is at its end: the rest, if it was an answer.
    fn end(&mut self) -> Result<Bytes, Fault>;
    /// The provider has broken off, or what it sent is of no use: what is still said where that
    /// which was handed over before is an answer all the same. Without it, it was none.
    fn broke(&mut self, _fault: &Fault) -> Option<Bytes> {
        None
    }
    /// What it has used, where only its end tells that: asked when all of it has passed, or all
    /// that is an answer.
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
    waits: Waits,
    /// When its time is up, by the steady clock.
    until: Millis,
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

/// Why an answer ends before its end.
enum Stopped {
    Broken(Fault),
    /// Its client was too slow: for the time that there is, or for the provider, which has gone.
    TooSlow {
        provider_gone: bool,
    },
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Stopped {
        Stopped::Broken(fault)
    }
}

/// Status of a call whose client is gone or as good as gone; it is seen in the log only.
pub const CLIENT_CLOSED: u16 = 499;

/// The transfer is broken off.
#[derive(Debug, thiserror::Error)]
#[error("the provider's answer broke off")]
pub struct BrokenOff;

impl PassingBody {
    pub fn new(call: Call, passed: Passed) -> PassingBody {
        let cut = Box::pin(call.till.shutdown.cut.clone().cancelled_owned());
        let Passed { first, body, rewrite, left, content_type, .. } = passed;
        let mut replay =
            ReplayBuffer { content_type, all: (call.idempotent && call.answer.is_none()).then(BytesMut::new) };
        replay.add(&first);
        let now = call.till.world.steady_ms();
        let left_ms = call.deadline.saturating_duration_since(Instant::now()).as_millis();
        let until = now.saturating_add(Millis::try_from(left_ms).unwrap_or(Millis::MAX));
        let (first, waits) = (Some(first), Waits::new(now));
        PassingBody { call, first, body, rewrite, left, waits, until, cut, replay, leaving: false, ended: false }
    }

    /// The next bytes for the client; `None` when the piece gave none.
    fn pass(&mut self, piece: Option<Bytes>) -> Result<Option<Bytes>, Fault> {
        let Some(piece) = piece else {
            let last = self.rewrite.end()?;
            if let Some(meter) = self.rewrite.meter() {
                self.call.meter = meter;
            }
            self.replay.add(&last);
            let reply = self.call.answer.take().or_else(|| self.replay.reply());
            self.call.close_with_reply(Ending::Answered, 200, "", reply);
            self.ended = true;
            return Ok(Some(last));
        };
        self.left = self.left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
        let out = self.rewrite.feed(piece)?;
        self.replay.add(&out);
        Ok((!out.is_empty()).then_some(out))
    }

    fn poll_pass(&mut self, cx: &mut Context<'_>, now: Millis) -> Poll<Result<Bytes, Stopped>> {
        loop {
            if self.cut.as_mut().poll(cx).is_ready() {
                let message = "The server is stopping; send the request again.".to_owned();
                return Poll::Ready(Err(Fault { code: Code::ServerDraining, message, ..Fault::cut() }.into()));
            }
            let rest = self.rewrite.rest();
            if !rest.is_empty() {
                self.replay.add(&rest);
                return Poll::Ready(Ok(rest));
            }
            let piece = match ready!(self.body.poll_chunk(cx)) {
                Ok(piece) => piece,
                Err(_) if self.waits.left_alone() => {
                    return Poll::Ready(Err(Stopped::TooSlow { provider_gone: true }));
                }
                Err(fault) => return Poll::Ready(Err(fault.into())),
            };
            if piece.is_some() && now > self.until {
                let slow = Stopped::TooSlow { provider_gone: false };
                return Poll::Ready(Err(if self.waits.dawdled() { slow } else { Fault::idle().into() }));
            }
            if let Some(out) = self.pass(piece).transpose() {
                return Poll::Ready(out.map_err(Stopped::from));
            }
        }
    }

    /// Ends it before its end.
    fn stopped(&mut self, why: &Stopped) -> Result<Bytes, BrokenOff> {
        self.ended = true;
        let fault = match why {
            Stopped::Broken(fault) => fault,
            Stopped::TooSlow { provider_gone } => {
                if *provider_gone || !self.goes_on() {
                    let reply = self.call.answer.take();
                    self.call.close_with_reply(Ending::ClientLeft, CLIENT_CLOSED, "client_too_slow", reply);
                }
                return Err(BrokenOff);
            }
        };
        tracing::info!(call = %self.call.id, code = fault.code.code(), "an answer broke off on its way");
        if let Some(last) = self.rewrite.broke(fault) {
            self.call.meter = self.rewrite.meter().unwrap_or_default();
            self.call.close(Ending::UpstreamFault, 200, "broken_off");
            return Ok(last);
        }
        // A provider that says no behind the beginning of its answer has made nothing.
        self.call.may_be_made &= may_have_begun(fault);
        self.call.close_free(Ending::UpstreamFault, 200, "broken_off");
        Err(BrokenOff)
    }

    /// Hands over what is read on although nobody gets it.
    fn goes_on(&mut self) -> bool {
        if !self.rewrite.goes_on() {
            return false;
        }
        let Some(call) = self.call.take() else { return false };
        let to = call.till.abandoned.clone();
        let body = Box::new(std::mem::replace(&mut self.body, ReplyBody::empty()));
        let rewrite = std::mem::replace(&mut self.rewrite, Box::new(Nothing));
        let _ = to.send(Abandoned::Passing { call, body, rewrite, left: self.left });
        true
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
        let now = this.call.till.world.steady_ms();
        this.waits.asked(now);
        let Poll::Ready(out) = this.poll_pass(cx, now) else {
            this.waits.silent();
            return Poll::Pending;
        };
        this.waits.handed();
        Poll::Ready(Some(out.or_else(|why| this.stopped(&why))))
    }
}

impl Drop for PassingBody {
    fn drop(&mut self) {
        // Otherwise the call's own guard reports it.
        self.goes_on();
    }
}
