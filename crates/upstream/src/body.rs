//! Reads a reply's body chunk by chunk, or whole within a limit, with one idle timer.
//!
//! A timer reset per chunk would cost more than the chunk, and so would the clock. So one timer
//! rings every quarter of the idle limit; a reply that was silent for four rings in a row is idle.

use crate::http1::IncomingBody;
use crate::{Alarm, Fault, ReplyShape};
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// The longest reading of a whole reply when nothing else is said.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// The body of a reply.
#[derive(Debug)]
pub struct ReplyBody {
    inner: Origin,
    idle: Duration,
    timer: Option<Alarm>,
    /// Rings since the last chunk.
    silent: u32,
}

/// Where the pieces come from.
enum Origin {
    Provider(IncomingBody),
    /// Made of several replies, or of none.
    Made(Pin<Box<dyn Stream<Item = Result<Bytes, Fault>> + Send>>),
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Provider(body) => body.fmt(f),
            Origin::Made(_) => f.write_str("Made"),
        }
    }
}

/// A body as far as it is held.
#[derive(Debug)]
pub enum HeldReply {
    Whole(Bytes),
    /// What was read of a body that is too large to be held.
    Large {
        start: Bytes,
        rest: ReplyBody,
    },
}

/// A silent reply is idle after this many rings.
const RINGS: u32 = 4;

impl ReplyBody {
    pub fn new(inner: IncomingBody, idle: Duration) -> ReplyBody {
        ReplyBody { inner: Origin::Provider(inner), idle, timer: None, silent: 0 }
    }

    /// A body of pieces that are not one provider's reply. Whoever makes them minds the time.
    pub fn made(pieces: impl Stream<Item = Result<Bytes, Fault>> + Send + 'static) -> ReplyBody {
        ReplyBody { inner: Origin::Made(Box::pin(pieces)), idle: LONGEST, timer: None, silent: 0 }
    }

    /// The same in another form, made while it comes.
    pub fn reshaped(self, shape: Box<dyn ReplyShape>) -> ReplyBody {
        let state = Some((self, shape));
        ReplyBody::made(futures_util::stream::unfold(state, async |state| {
            let (mut body, mut shape) = state?;
            loop {
                match body.chunk().await {
                    Ok(Some(piece)) => match shape.feed(&piece) {
                        // Nothing to say of it yet.
                        Ok(said) if said.is_empty() => {}
                        Ok(said) => return Some((Ok(said), Some((body, shape)))),
                        Err(fault) => return Some((Err(fault), None)),
                    },
                    Ok(None) => return Some((shape.end(), None)),
                    Err(fault) => return Some((Err(fault), None)),
                }
            }
        }))
    }

    /// A body without anything in it.
    pub fn empty() -> ReplyBody {
        ReplyBody::made(futures_util::stream::empty())
    }

    /// The next chunk; `None` at the end. May be dropped and called again.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// The poll under [`ReplyBody::chunk`].
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let piece = match &mut self.inner {
            Origin::Provider(body) => body.poll_data(cx).map(|data| data.transpose().map_err(|_| Fault::cut())),
            Origin::Made(pieces) => pieces.as_mut().poll_next(cx).map(Option::transpose),
        };
        if let Poll::Ready(Ok(Some(_))) = &piece {
            self.silent = 0;
        }
        if piece.is_pending() { self.poll_idle(cx) } else { piece }
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let ring = self.idle / RINGS;
        let timer = self.timer.get_or_insert_with(|| Alarm::at(Instant::now() + ring));
        while timer.poll(cx).is_ready() {
            self.silent += 1;
            if self.silent > RINGS {
                return Poll::Ready(Err(Fault::idle()));
            }
            timer.set(Instant::now() + ring);
        }
        Poll::Pending
    }

    /// At least so many bytes are still to come, as the provider says.
    pub fn expected(&self) -> u64 {
        match &self.inner {
            Origin::Provider(body) => body.expected(),
            Origin::Made(_) => 0,
        }
    }

    /// True when nothing more can come.
    pub fn is_end(&self) -> bool {
        matches!(&self.inner, Origin::Provider(body) if body.is_end())
    }

    /// The whole body, at most `limit` bytes and not after `until`; more or later is a fault. One
    /// chunk is returned as it came. The clock is looked at between chunks: the idle timer bounds
    /// each wait.
    pub async fn whole(mut self, limit: usize, until: Instant) -> Result<Bytes, Fault> {
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > limit {
            return Err(Fault::too_long());
        }
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let rest = usize::try_from(self.expected()).unwrap_or(usize::MAX);
        let expected = first.len().saturating_add(second.len()).saturating_add(rest);
        if expected > limit {
            return Err(Fault::too_long());
        }
        let mut all = BytesMut::with_capacity(expected);
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(chunk) = self.chunk().await? {
            if all.len() + chunk.len() > limit {
                return Err(Fault::too_long());
            }
            if Instant::now() > until {
                return Err(Fault::idle());
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }

    /// The whole body if it has at most `held` bytes, else what has come of it until then. More
    /// than `most`, or later than `until`, is a fault.
    pub async fn up_to(mut self, held: usize, most: usize, until: Instant) -> Result<HeldReply, Fault> {
        let expected = usize::try_from(self.expected()).unwrap_or(usize::MAX);
        if expected > most {
            return Err(Fault::too_long());
        }
        let Some(first) = self.chunk().await? else { return Ok(HeldReply::Whole(Bytes::new())) };
        if self.is_end() && first.len() <= most {
            return Ok(HeldReply::Whole(first));
        }
        let mut all = BytesMut::with_capacity(expected.max(first.len()).min(held));
        let mut next = Some(first);
        while let Some(chunk) = next {
            if all.len() + chunk.len() > most {
                return Err(Fault::too_long());
            }
            if Instant::now() > until {
                return Err(Fault::idle());
            }
            all.extend_from_slice(&chunk);
            if all.len() > held {
                return Ok(HeldReply::Large { start: all.freeze(), rest: self });
            }
            next = self.chunk().await?;
        }
        Ok(HeldReply::Whole(all.freeze()))
    }

    /// The start of the body, at most `limit` bytes, whatever happens after it. For error texts.
    pub async fn start(mut self, limit: usize) -> Bytes {
        let mut all = BytesMut::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = limit - all.len();
            all.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if all.len() == limit {
                break;
            }
        }
        all.freeze()
    }
}

/// Reads a whole reply.
pub async fn read_whole(body: IncomingBody, limit: usize, idle: Duration) -> Result<Bytes, Fault> {
    ReplyBody::new(body, idle).whole(limit, Instant::now() + LONGEST).await
}
