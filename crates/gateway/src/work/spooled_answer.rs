//! Answers that are spooled until they are whole, because they come by several requests or are
//! judged as a whole: in memory while they are small, else in a file of the spool. Their charge is
//! certain before the first byte leaves.

use crate::call::{Begun, Call, Passed, Rewrite, WholeAnswer};
use crate::door::bodies::Whose;
use crate::door::spool::{IN_MEMORY, SpoolDisk, SpoolTerms, Spooling};
use crate::refusal::Refusal;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::HeaderValue;
use std::future::poll_fn;
use std::sync::Arc;
use tollgate_upstream::{Blame, Fault, ReplyBody, SpooledFile};
use tollgate_wire::error::Code;

/// An answer that is being spooled.
pub struct SpooledAnswer(Spooling<()>);

impl SpooledAnswer {
    /// For an answer of at most so many bytes.
    pub async fn begin(spool: &Arc<SpoolDisk>, call: &Call, most: usize) -> Result<SpooledAnswer, Fault> {
        let whose = Some(Whose::Account(call.caller.account.id));
        let terms = SpoolTerms { whose, most: most as u64, in_memory: IN_MEMORY };
        Ok(SpooledAnswer(spool.begin(terms, ()).await.map_err(no_room)?))
    }

    pub async fn push(&mut self, piece: &Bytes) -> Result<(), Fault> {
        self.0.push(piece).await.map_err(no_room)
    }

    /// All that came is written.
    pub async fn flush(&mut self) -> Result<(), Fault> {
        self.0.flush().await.map_err(no_room)
    }

    /// What came until there was no room for more, piece by piece.
    pub fn given_back(self) -> Result<impl Stream<Item = Result<Bytes, Fault>> + Send, Fault> {
        let lost = || no_room(Refusal::new(Code::Internal, "The answer is lost."));
        let (file, behind) = self.0.given_back().ok_or_else(lost)?;
        Ok(pieces(file).chain(stream::iter(behind.into_iter().map(Ok))))
    }

    /// It is whole: the file.
    pub async fn finish(self) -> Result<SpooledFile, Fault> {
        Ok(self.0.finish().await.map_err(no_room)?.file)
    }

    /// It is whole.
    pub async fn answer(self, content_type: HeaderValue) -> Result<Begun, Fault> {
        let file = self.finish().await?;
        if let Some(body) = file.bytes() {
            return Ok(Begun::Whole(WholeAnswer { content_type, body: body.clone(), completion: None }));
        }
        Ok(passing(content_type, Bytes::new(), pieces(file)))
    }
}

/// What comes of pieces that are ours already.
pub fn passing(
    content_type: HeaderValue,
    first: Bytes,
    pieces: impl Stream<Item = Result<Bytes, Fault>> + Send + 'static,
) -> Begun {
    let body = ReplyBody::made(pieces);
    Begun::Passing(Box::new(Passed { content_type, first, body, rewrite: Box::new(AsItIs), left: usize::MAX }))
}

/// A spooled file, piece by piece.
pub fn pieces(file: SpooledFile) -> impl Stream<Item = Result<Bytes, Fault>> + Send {
    stream::unfold(file.pieces(), |mut pieces| async move {
        let piece = poll_fn(|cx| pieces.poll_piece(cx)).await?;
        Some((piece.map_err(|_| Fault::cut()), pieces))
    })
    .fuse()
}

/// Our disk is full, or does not work. What the provider made is lost with it, so nobody else is
/// asked. The spool speaks of uploads; this is the answer.
pub fn no_room(refusal: Refusal) -> Fault {
    let message = match refusal.code {
        Code::BodyTooLarge => return Fault::too_long(),
        Code::StorageFull => "The gateway's disk has no room for this answer at the moment.",
        Code::RateLimitExceeded => {
            "The large answers of this account that are under way take all the room it may have."
        }
        Code::Overloaded => "The gateway has no room for this answer: too many large ones are under way.",
        _ => "The gateway could not store this answer.",
    };
    Fault { code: refusal.code, message: message.to_owned(), blame: Blame::Network, try_other: false, ..Fault::cut() }
}

/// It is ours already.
struct AsItIs;

impl Rewrite for AsItIs {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        Ok(piece)
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        Ok(Bytes::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_room_is_not_asked_for_again_and_is_no_upload() {
        for code in [Code::StorageFull, Code::RateLimitExceeded, Code::Overloaded, Code::Internal] {
            let fault = no_room(Refusal::new(code, "no room for this upload"));
            assert_eq!((fault.code, fault.try_other, fault.may_have_begun()), (code, false, true));
            assert!(!fault.message.contains("upload") && fault.message.contains("answer"), "{}", fault.message);
        }
        let long = no_room(Refusal::new(Code::BodyTooLarge, "The file is larger than 7 bytes."));
        assert_eq!((long.code, long.blame), (Code::UpstreamInvalidReply, Blame::Provider), "not the caller's body");
    }
}
