//! A form that is sent on while its file still arrives, and whose end is withheld until the caller
//! of this says that it may go. Before that the provider has a part of a request, which is none: it
//! can be given up without a trace, and nothing of it is sent twice.
//!
//! There is no task of its own. Whoever hands on a piece polls the request until it has taken the
//! piece, so that a provider that reads slowly slows the client down. A provider that breaks off or
//! answers before the end has its say at the end: what still comes is read and dropped.

use super::{Inner, Payload, PayloadPart};
use crate::{Client, Fault, IncomingBody, Outgoing, Provider};
use bytes::{Bytes, BytesMut};
use http::Response;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// So much of what came last is withheld with the end.
const WITHHELD: usize = 64 << 10;
/// Pieces up to this size are put together.
const TOGETHER: usize = 8 << 10;
/// A provider that closes after it has waited for the client for so long is not to blame.
const WAITED: Duration = Duration::from_secs(5);
/// What makes a form as long as it was announced, behind its last boundary.
static PADDING: [u8; 1 << 12] = [b'\n'; 1 << 12];

/// The beginning of a form whose file still arrives.
#[derive(Debug)]
pub struct PassingForm {
    /// Without a body.
    pub request: Outgoing,
    /// The form up to the first byte of its file.
    pub before: Bytes,
    /// The most that can follow: it is announced.
    pub length: u64,
}

type Sending = Pin<Box<dyn Future<Output = Result<Response<IncomingBody>, Fault>> + Send>>;

/// A request whose body is handed on piece by piece.
pub struct PassingUpload {
    sending: Sending,
    slot: Slot,
    /// What came of it; nothing more is sent then.
    outcome: Option<Result<Response<IncomingBody>, Fault>>,
    withheld: VecDeque<Bytes>,
    /// Bytes of them.
    held: usize,
    /// Bytes that were announced and have not been given to this.
    left: u64,
    /// When the last piece was taken.
    taken_at: Instant,
    /// The provider had waited for the piece on which it broke off.
    kept_waiting: bool,
}

/// The next piece, until the request takes it. Empty: there is none.
#[derive(Clone, Default)]
struct Slot(Arc<Mutex<Bytes>>);

impl Slot {
    fn put(&self, piece: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = piece;
    }

    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// The body as the request sees it.
pub(super) struct PassingPieces {
    slot: Slot,
    length: u64,
    left: u64,
}

impl PassingPieces {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Nobody is woken for the next piece: whoever brings it polls.
    pub(super) fn poll_piece(&mut self) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.slot.take();
        if piece.is_empty() {
            return Poll::Pending;
        }
        match self.left.checked_sub(piece.len() as u64) {
            Some(left) => self.left = left,
            None => return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into()))),
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

impl Client {
    /// Begins a form whose file still arrives. Nothing is connected before the first piece of it is
    /// handed on.
    pub fn pass(&self, provider: &Arc<Provider>, form: PassingForm) -> PassingUpload {
        let PassingForm { mut request, before, length } = form;
        let slot = Slot::default();
        let pieces = PassingPieces { slot: slot.clone(), length, left: length };
        *request.body_mut() = Payload::of_parts([before.into(), PayloadPart(Inner::Passing(pieces))]);
        let (client, provider) = (self.clone(), provider.clone());
        PassingUpload {
            sending: Box::pin(async move { client.send(&provider, request).await }),
            slot,
            outcome: None,
            withheld: VecDeque::new(),
            held: 0,
            left: length,
            taken_at: Instant::now(),
            kept_waiting: false,
        }
    }
}

impl PassingUpload {
    /// The next piece of the file. What was sent to us before it goes on, as far as it is not
    /// withheld.
    pub async fn push(&mut self, piece: Bytes) {
        if self.outcome.is_some() || piece.is_empty() {
            return;
        }
        self.left = self.left.saturating_sub(piece.len() as u64);
        self.held += piece.len();
        match self.withheld.back_mut() {
            // Each piece is an entry, and a client may send them byte by byte.
            Some(last) if last.len() + piece.len() <= TOGETHER => *last = joined(std::mem::take(last), &piece),
            _ => self.withheld.push_back(piece),
        }
        while let Some(first) = self.withheld.front().map(Bytes::len).filter(|first| self.held - first >= WITHHELD) {
            self.held -= first;
            let piece = self.withheld.pop_front().unwrap_or_default();
            self.hand_on(piece).await;
        }
    }

    async fn hand_on(&mut self, piece: Bytes) {
        if self.outcome.is_some() {
            return;
        }
        let waited = self.taken_at.elapsed() >= WAITED;
        self.slot.put(piece);
        poll_fn(|cx| match self.sending.as_mut().poll(cx) {
            Poll::Ready(outcome) => {
                self.outcome = Some(outcome);
                Poll::Ready(())
            }
            Poll::Pending if self.slot.is_empty() => Poll::Ready(()),
            Poll::Pending => Poll::Pending,
        })
        .await;
        self.kept_waiting = waited;
        self.taken_at = Instant::now();
    }

    /// Lets the rest go, with `end` behind the file, and waits for the answer. From here on the
    /// provider has a whole request and may begin. A fault that came before it is not charged for,
    /// and whoever sent the upload may send it again.
    pub async fn release(mut self, end: Bytes) -> Result<Response<IncomingBody>, Fault> {
        let mut rest = self.left.checked_sub(end.len() as u64).ok_or_else(Fault::upload_broken)?;
        let mut pieces = std::mem::take(&mut self.withheld);
        let first = usize::try_from(rest).unwrap_or(usize::MAX).min(2);
        rest -= first as u64;
        let mut last = BytesMut::from(end.as_ref());
        last.extend_from_slice(&b"\r\n"[..first]);
        pieces.push_back(last.freeze());
        loop {
            let piece = match pieces.pop_front() {
                Some(piece) => piece,
                None => {
                    let more = usize::try_from(rest).unwrap_or(usize::MAX).min(PADDING.len());
                    rest -= more as u64;
                    Bytes::from_static(&PADDING[..more])
                }
            };
            if let Some(outcome) = self.outcome.take() {
                return self.before_the_end(outcome);
            }
            if pieces.is_empty() && rest == 0 {
                self.slot.put(piece);
                return self.sending.await;
            }
            self.hand_on(piece).await;
        }
    }

    /// What it means that something came before the request was whole. A refusal of the provider's
    /// passes as it is.
    fn before_the_end(&self, outcome: Result<Response<IncomingBody>, Fault>) -> Result<Response<IncomingBody>, Fault> {
        match outcome {
            // Nobody can have listened to what was not there.
            Ok(reply) if reply.status().is_success() => Err(Fault::garbage()),
            Ok(refused) => Ok(refused),
            Err(fault) if self.kept_waiting && fault == Fault::reset() => Err(Fault::upload_slow()),
            Err(fault) => Err(Fault { maybe_charged: false, ..fault }),
        }
    }
}

fn joined(first: Bytes, second: &[u8]) -> Bytes {
    let mut both = first.try_into_mut().unwrap_or_else(|shared| {
        let mut own = BytesMut::with_capacity(TOGETHER);
        own.extend_from_slice(&shared);
        own
    });
    both.extend_from_slice(second);
    both.freeze()
}

impl fmt::Debug for PassingUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassingUpload").field("left", &self.left).finish_non_exhaustive()
    }
}
