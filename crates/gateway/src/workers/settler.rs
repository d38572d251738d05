//! The settler closes the calls that were dropped in the middle: the client left, or a handler
//! died. It is where `Drop` sends its message; nothing important happens in `Drop` itself.

use crate::call::{Abandoned, EventReader, OpenCall, Till};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tollgate_store::Ending;
use tollgate_upstream::ReplyBody;

/// Status of a call whose client is gone; it is seen in the log only.
const CLIENT_CLOSED: u16 = 499;

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
