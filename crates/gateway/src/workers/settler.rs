//! The settler closes the calls that were dropped in the middle: the client left, or a handler died.
//! It is where `Drop` sends its message; nothing important happens in `Drop` itself.

use crate::app::App;
use crate::call::OpenCall;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tollgate_dialects::Stream as Reader;
use tollgate_store::Ending;
use tollgate_upstream::Body;

/// Status of a call whose client is gone; it is seen in the log only.
const CLIENT_CLOSED: u16 = 499;

pub enum Abandoned {
    Call(Box<OpenCall>),
    /// A stream of a provider that bills to the end: it is read on, within bounds, to learn the true usage.
    Stream {
        call: Box<OpenCall>,
        body: Box<Body>,
        reader: Box<Reader>,
    },
}

/// Runs until all senders are gone.
pub async fn run(app: Arc<App>, mut inbox: mpsc::UnboundedReceiver<Abandoned>) {
    while let Some(one) = inbox.recv().await {
        match one {
            Abandoned::Call(mut call) => {
                let answer = call.answer.take();
                call.close(Ending::ClientLeft, CLIENT_CLOSED, "client_gone", answer);
            }
            Abandoned::Stream { call, body, reader } => {
                app.tracker.spawn(read_on(call, *body, *reader));
            }
        }
    }
}

async fn read_on(mut call: Box<OpenCall>, mut body: Body, mut reader: Reader) {
    let settings = call.provider.as_ref().map(|one| one.settings.clone()).unwrap_or_default();
    let until = Instant::now() + settings.drain_time;
    let mut left = settings.drain_bytes;
    let cut = call.app.cut.clone();
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
    call.meter.tokens().read(&reader);
    call.note_dropped(reader.dropped());
    call.close(Ending::ClientLeft, CLIENT_CLOSED, "client_gone_read_on", None);
}
