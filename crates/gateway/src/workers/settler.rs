//! The settler closes the calls that were dropped in the middle: the client left, or a handler
//! died. It is where `Drop` sends its message; nothing important happens in `Drop` itself.

use crate::call::{Abandoned, CLIENT_CLOSED, EventReader, OpenCall, Rewrite, Till, may_have_begun};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tollgate_store::Ending;
use tollgate_upstream::ReplyBody;

/// Runs until all senders are gone.
pub async fn run(till: Arc<Till>, mut inbox: mpsc::UnboundedReceiver<Abandoned>) {
    while let Some(one) = inbox.recv().await {
        match one {
            Abandoned::Call(mut call) => {
                let answer = call.answer.take();
                call.close(Ending::ClientLeft, CLIENT_CLOSED, "client_gone", answer);
            }
            Abandoned::Stream { call, body, reader } => {
                till.tracker.spawn(read_on(call, *body, reader));
            }
            Abandoned::Passing { call, body, rewrite, left } => {
                till.tracker.spawn(pass_on(call, *body, rewrite, left));
            }
        }
    }
}

async fn read_on(mut call: Box<OpenCall>, mut body: ReplyBody, mut reader: Box<dyn EventReader>) {
    let settings = call.provider.as_ref().map(|one| one.settings.clone()).unwrap_or_default();
    let until = Instant::now() + settings.drain_time;
    let mut left = settings.drain_bytes;
    let cut = call.till.shutdown.cut.clone();
    while !reader.saw_done() {
        // A stop does not wait for it: what was read is what is known.
        let chunk = tokio::select! {
            chunk = body.chunk() => chunk,
            () = tokio::time::sleep_until(until) => break,
            () = cut.cancelled() => break,
        };
        let Ok(Some(chunk)) = chunk else { break };
        left = left.saturating_sub(chunk.len() as u64);
        if reader.feed(chunk).is_err() || left == 0 {
            break;
        }
    }
    reader.measure(call.meter.tokens());
    call.note_dropped(reader.dropped());
    call.close(Ending::ClientLeft, CLIENT_CLOSED, "client_gone_read_on", None);
}

/// What would have passed is read and counted; nobody gets it.
async fn pass_on(mut call: Box<OpenCall>, mut body: ReplyBody, mut rewrite: Box<dyn Rewrite>, mut left: usize) {
    let settings = call.provider.as_ref().map(|one| one.settings.clone()).unwrap_or_default();
    let until = Instant::now() + settings.drain_time;
    let cut = call.till.shutdown.cut.clone();
    let mut said = Ok(());
    loop {
        let piece = tokio::select! {
            piece = body.chunk() => piece,
            () = tokio::time::sleep_until(until) => break,
            () = cut.cancelled() => break,
        };
        let Ok(Some(piece)) = piece else { break };
        let Some(rest) = left.checked_sub(piece.len()) else { break };
        left = rest;
        said = rewrite.feed(piece).map(drop);
        if said.is_err() {
            break;
        }
    }
    // As far as it came: what was made until then is what is known.
    let ended = rewrite.end().map(drop);
    if let Err(fault) = said.and(ended.clone()) {
        // A provider that says no behind the beginning of its answer has made nothing.
        call.may_be_made &= may_have_begun(&fault);
    }
    if let Some(meter) = rewrite.meter() {
        call.meter = meter;
    }
    let reason = if ended.is_ok() { "client_gone_read_on" } else { "client_gone" };
    call.close(Ending::ClientLeft, CLIENT_CLOSED, reason, None);
}
