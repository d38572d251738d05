//! Replies that are rewritten into the format that was asked for. They are spooled first, in memory
//! while they are small, and read again for each part of what is written: no transcript sits in
//! memory as a whole, however long its recording is.

use super::call::{TranscriptionCall, Way};
use crate::call::{Begun, Call};
use crate::door::bodies::Whose;
use crate::door::spool::{IN_MEMORY, SpoolTerms};
use crate::work::spooled_answer::{SpooledAnswer, no_room};
use http::HeaderValue;
use std::future::poll_fn;
use tokio::time::Instant;
use tollgate_media::transcription::{NoTranscript, TranscriptRewrite, TranscriptShape};
use tollgate_upstream::transcription::TranscriptionUsage;
use tollgate_upstream::{Fault, ReplyBody, SpooledFile};

impl TranscriptionCall {
    /// All of a reply.
    pub(super) async fn spooled(&self, call: &Call, mut body: ReplyBody, most: usize) -> Result<SpooledFile, Fault> {
        let whose = Some(Whose::Account(call.caller.account.id));
        let terms = SpoolTerms { whose, most: u64::MAX, in_memory: IN_MEMORY };
        let mut file = self.spool.begin(terms, ()).await.map_err(no_room)?;
        let mut left = most;
        while let Some(piece) = body.chunk().await? {
            left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            if Instant::now() > call.deadline {
                return Err(Fault::idle());
            }
            file.push(&piece).await.map_err(no_room)?;
        }
        Ok(file.finish().await.map_err(no_room)?.file)
    }

    /// The transcript of a reply. `report` is what the provider says of its length elsewhere.
    pub(super) async fn rewritten(
        &self,
        call: &mut Call,
        way: &Way<'_>,
        shape: &'static TranscriptShape,
        reply: &SpooledFile,
        report: Option<TranscriptionUsage>,
    ) -> Result<Begun, Fault> {
        let mut rewrite = TranscriptRewrite::new(shape, way.ask.target());
        let mut out = SpooledAnswer::begin(&self.spool, call, usize::MAX).await?;
        fed(&mut rewrite, reply, &mut out).await?;
        let heard = way.maker.facts(&way.ask, &rewrite.seen().map_err(garbage)?)?;
        out.push(&rewrite.begin(heard.facts).map_err(garbage)?).await?;
        while !rewrite.is_over() {
            fed(&mut rewrite, reply, &mut out).await?;
            out.push(&rewrite.end_part().map_err(garbage)?).await?;
        }
        call.meter = self.measuring(call, way.provider).meter(report.unwrap_or(heard.usage));
        out.answer(HeaderValue::from_static(self.asked.request.format.content_type())).await
    }
}

/// The reply once, from its beginning.
async fn fed(rewrite: &mut TranscriptRewrite, reply: &SpooledFile, out: &mut SpooledAnswer) -> Result<(), Fault> {
    let mut pieces = reply.pieces();
    while let Some(piece) = poll_fn(|cx| pieces.poll_piece(cx)).await {
        let written = rewrite.feed(&piece.map_err(|_| Fault::cut())?).map_err(garbage)?;
        if !written.is_empty() {
            out.push(&written).await?;
        }
    }
    Ok(())
}

fn garbage(_: NoTranscript) -> Fault {
    Fault::garbage()
}
