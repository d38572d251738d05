//! What a call comes to, as a value: the answer with all that is certain of it before it leaves.
//! Whoever asked takes it as it is; `endpoints` make HTTP of it.

use super::begun::{Started, WholeAnswer};
use super::events::Events;
use super::open::Call;
use super::pass::{BrokenOff, Passed, PassingBody};
use super::work::Work;
use super::{elsewhere, stored_refusal};
use crate::refusal::Refusal;
use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use http::HeaderValue;
use std::pin::Pin;
use std::task::{Context, Poll};
use tollgate_catalog::Money;
use tollgate_store::{AccountId, CallId, Ending, Store, StoredReply};
use tollgate_wire::error::Code;

/// An answer, and what is known of its call.
pub struct CallAnswer {
    /// Which call it is the answer of: of a repeated one, the first with its Idempotency-Key.
    pub call: CallId,
    pub content_type: HeaderValue,
    /// What the customer pays, where that is certain before the body leaves.
    pub charge: Option<Money>,
    /// Fields of the request that the provider did not get, and of the answer that its client has
    /// no form for.
    pub dropped: Option<String>,
    /// All that the account could pay for: the limit that the provider was given.
    pub limit: Option<u64>,
    /// It was stored by an earlier call with the same Idempotency-Key.
    pub replayed: bool,
    pub body: AnswerBody,
}

/// The answer itself. One that goes both ways (realtime) will be another form of it. What is not
/// whole carries the rest of its call's life: dropped, it ends the call as if its client had left.
pub enum AnswerBody {
    /// In one piece; its call is closed.
    Whole(Bytes),
    /// Bytes that pass while they are rewritten.
    Passing(Box<PassingBody>),
    /// Events, as they come.
    Stream(Box<Events>),
    /// It was stored by an earlier call, whose it is.
    Stored(StoredPieces),
}

/// A stored answer, piece by piece.
pub type StoredPieces = BoxStream<'static, Result<Bytes, BrokenOff>>;

impl AnswerBody {
    /// All of it in one piece.
    pub async fn whole(mut self) -> Result<Bytes, BrokenOff> {
        if let AnswerBody::Whole(bytes) = self {
            return Ok(bytes);
        }
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await {
            all.extend_from_slice(&piece?);
        }
        Ok(all.freeze())
    }
}

/// Piece by piece, each read from the provider when it is asked for.
impl Stream for AnswerBody {
    type Item = Result<Bytes, BrokenOff>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            AnswerBody::Whole(bytes) => {
                let piece = std::mem::take(bytes);
                Poll::Ready((!piece.is_empty()).then_some(Ok(piece)))
            }
            AnswerBody::Passing(passing) => passing.poll_next_unpin(cx),
            AnswerBody::Stream(events) => events.poll_next_unpin(cx).map(|piece| piece.map(Ok)),
            AnswerBody::Stored(pieces) => pieces.poll_next_unpin(cx),
        }
    }
}

/// What is certain of an answer as soon as it has begun.
fn begun(call: &Call, content_type: HeaderValue, body: AnswerBody) -> CallAnswer {
    CallAnswer {
        call: call.id,
        content_type,
        charge: None,
        dropped: (!call.dropped.is_empty()).then(|| call.dropped.to_string()),
        limit: call.limit,
        replayed: false,
        body,
    }
}

/// An answer in one piece closes its call.
pub(super) fn whole(mut call: Call, answer: WholeAnswer) -> CallAnswer {
    let whole = begun(&call, answer.content_type, AnswerBody::Whole(answer.body));
    let stored = call.answer.take();
    let reason = if call.meter.is_empty() { "empty_answer" } else { "" };
    CallAnswer { charge: call.close_with_reply(Ending::Answered, 200, reason, stored), ..whole }
}

/// The charge is made when the answer has passed. It is not stated before: an answer that breaks
/// off costs nothing.
pub(super) fn passing(call: Call, passed: Passed) -> CallAnswer {
    // The body is put in its place last: it takes the call along.
    let head = begun(&call, passed.content_type.clone(), AnswerBody::Whole(Bytes::new()));
    CallAnswer { body: AnswerBody::Passing(Box::new(PassingBody::new(call, passed))), ..head }
}

pub(super) fn stream(call: Call, started: Started) -> CallAnswer {
    let head = begun(&call, started.content_type.clone(), AnswerBody::Whole(Bytes::new()));
    CallAnswer { body: AnswerBody::Stream(Box::new(Events::new(call, started))), ..head }
}

/// The answer to a repeated Idempotency-Key whose first call is finished.
pub(super) async fn replay(
    store: &Store,
    account: AccountId,
    first: CallId,
    reply: Option<StoredReply>,
    work: &impl Work,
) -> Result<CallAnswer, Refusal> {
    let Some(stored) = reply else { return Err(not_stored(first)) };
    if let Some(refusal) = stored_refusal::read(&stored) {
        return Err(refusal);
    }
    // What was left out is named again.
    let dropped = store.usage_of(account, first).await?.and_then(|row| row.dropped);
    let unknown = || HeaderValue::from_static("application/octet-stream");
    let (content_type, body) = match elsewhere::read(&stored) {
        Some((name, content_type)) => {
            (content_type, AnswerBody::Stored(work.stored(&name).await.ok_or_else(|| not_stored(first))?))
        }
        None => (stored.content_type, AnswerBody::Whole(stored.body)),
    };
    Ok(CallAnswer {
        call: first,
        content_type: HeaderValue::try_from(content_type).unwrap_or_else(|_| unknown()),
        charge: None,
        dropped,
        limit: None,
        replayed: true,
        body,
    })
}

fn not_stored(first: CallId) -> Refusal {
    let text = format!(
        "The call {first} with this Idempotency-Key is finished and its reply was not stored (streamed, failed or too large). It was charged at most once; use a new key to run it again."
    );
    Refusal::about(Code::IdempotencyConflict, "Idempotency-Key", text)
}
