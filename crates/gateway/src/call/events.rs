//! The events of a streamed answer. The client's reading drives the provider's: no task and no
//! queue in between, so memory per stream is bounded by one event, and a client that leaves drops
//! the upstream connection with it.
//!
//! Exactly one of these ends the call: `[DONE]` (answered), a fault or a cut in mid-stream
//! (upstream fault, what was produced is paid), the client's leaving (client left), the end of the
//! money (refused), the end of the server's patience at a stop.

use super::abandoned::Abandoned;
use super::begun::Started;
use super::complete::{Completing, Completion, StreamEnding};
use super::cover::{Cover, Covered, why_uncovered};
use super::open::Call;
use super::reader::{EventReader, EventsEnd};
use super::refused::{Needed, why_refused};
use bytes::Bytes;
use futures_util::Stream;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tollgate_store::Ending;
use tollgate_upstream::{Alarm, Fault, ReplyBody};
use tollgate_wire::StreamFault;
use tollgate_wire::error::Code;

/// A mark is written at the first output, then no later than this after the one before, if there
/// was more output: what a killed process charges goes by its last mark. Clocks are looked at in
/// rounds: half of the time passes for sure, the other half may.
const MARK_EVERY: Duration = Duration::from_secs(5);
const ROUND: Duration = Duration::from_millis(2_500);
const MARK_TOKENS: u64 = 4_096;
/// After `[DONE]` the provider gets this long to end its reply properly, so that its connection can
/// be used again.
const LAST_WORD: Duration = Duration::from_millis(100);
const BEYOND_LIMIT: &str =
    "The provider went on beyond the limit of this answer and was stopped. No more than the limit is charged.";
/// A stream that never pauses looks at the clocks this often, in pieces.
const CLOCKS_EVERY: u32 = 64;

pub struct Events {
    call: Call,
    body: Option<ReplyBody>,
    reader: Box<dyn EventReader>,
    first: Option<Bytes>,
    fault: Option<StreamFault>,
    phase: Phase,
    /// How far the hold reaches.
    cover: Cover,
    /// A piece that the hold does not cover yet.
    withheld: Option<Bytes>,
    /// Something was let go out.
    begun: bool,
    /// What is done before the last event goes out, and the doing once it has begun.
    completion: Option<Arc<dyn Completion>>,
    completing: Option<Box<Completing>>,
    /// Output as counted up to the last piece that went out.
    delivered: u64,
    /// One timer for heartbeat, longest stream and last word; set again only when it rings.
    timer: Alarm,
    /// Wakes this stream at the stop. Asked once: the same task goes on polling, so its wake-up
    /// stays registered.
    cut: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Something was sent since the timer last rang.
    sent: bool,
    ends_at: Instant,
    ring: Duration,
    /// The last ring before which something was sent.
    silent_since: Instant,
    marked_at: Option<Instant>,
    marked_tokens: u64,
    since_clocks: u32,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Streaming,
    /// Closed and paid; only the upstream's own end is awaited.
    Closing,
    Ended,
}

impl Events {
    pub fn new(call: Call, started: Started) -> Events {
        let limits = &call.till.limits;
        let now = Instant::now();
        let ring = (limits.heartbeat / 2).min(ROUND);
        let ends_at = call.deadline;
        Events {
            ends_at,
            cut: None,
            cover: Cover::new(&call),
            withheld: None,
            begun: false,
            completion: started.completion,
            completing: None,
            delivered: 0,
            call,
            body: Some(started.body),
            reader: started.reader,
            first: Some(started.first),
            fault: started.fault,
            phase: Phase::Streaming,
            timer: Alarm::at(ends_at.min(now + ring)),
            sent: true,
            ring,
            silent_since: now,
            marked_at: None,
            marked_tokens: 0,
            since_clocks: 0,
        }
    }

    /// Copies what the reader has seen into the call's meter, but for what the client did not get.
    fn sync(&mut self) {
        let meter = self.call.meter.tokens();
        self.reader.measure(meter);
        if self.withheld.is_some() {
            meter.only(self.delivered);
        }
        self.call.note_dropped(self.reader.dropped());
    }

    /// What was produced until now, as far as anybody has said: checked with every piece. A report
    /// in the middle, which a provider may make with every event, does not stand against our own
    /// count: what it leaves out could not be held for any more.
    fn produced(&self) -> u64 {
        match self.reader.usage() {
            None => self.reader.counted_output(),
            Some(usage) if self.reader.saw_done() && self.reader.usage_is_current() => usage.output_total(),
            Some(usage) => usage.output_total().max(self.reader.counted_output()),
        }
    }

    /// What goes out now, and what it means for the call.
    fn passed(&mut self, out: Bytes) -> Option<Bytes> {
        let produced = self.produced();
        // There is nothing left to be stopped of an answer that is whole.
        let seen = if self.reader.saw_done() { 0 } else { self.reader.counted_output() };
        match self.cover.check(produced, seen, &self.call) {
            Covered::Yes => {}
            Covered::NotYet => {
                self.withheld = Some(out);
                return None;
            }
            // This piece is not for the client; that it was made is seen in the write-off.
            Covered::Never => return Some(self.fail(Code::UpstreamInvalidReply, BEYOND_LIMIT, "limit_ignored")),
        }
        self.delivered = produced;
        self.begun |= !out.is_empty();
        if self.reader.saw_done() {
            return self.upstream_ended(out);
        }
        self.since_clocks += 1;
        let first = self.marked_at.is_none() && self.reader.has_output();
        if first || self.since_clocks >= CLOCKS_EVERY {
            self.since_clocks = 0;
            let now = Instant::now();
            self.mark_when_due(now);
            if let Some(last) = self.out_of_time(now) {
                return Some(joined(out, last));
            }
        }
        (!out.is_empty()).then_some(out)
    }

    /// Is it time to end, whatever comes from upstream?
    fn out_of_time(&mut self, now: Instant) -> Option<Bytes> {
        if self.call.till.shutdown.is_cutting() {
            let text = "The server is stopping. What was produced is charged; send the request again.";
            return Some(self.fail(Code::ServerDraining, text, "server_draining"));
        }
        let late = now >= self.ends_at;
        late.then(|| self.fail(Code::UpstreamTimeout, "The stream took too long.", "stream_too_long"))
    }

    fn mark_when_due(&mut self, now: Instant) {
        if !self.reader.has_output() {
            return;
        }
        let counted = self.reader.counted_output();
        let old = |at| now - at >= MARK_EVERY - ROUND && counted > self.marked_tokens;
        let due = self.marked_at.is_none_or(old) || counted >= self.marked_tokens + MARK_TOKENS;
        if due {
            self.sync();
            self.call.mark();
            self.marked_at = Some(now);
            self.marked_tokens = counted;
        }
    }

    /// A client that is given the time of its end gets the right one.
    fn set_time(&mut self) {
        if self.reader.needs_time() {
            let now = self.call.till.world.now_ms() / 1_000;
            self.reader.now(u64::try_from(now).unwrap_or(0));
        }
    }

    fn feed(&mut self, chunk: Bytes) -> Option<Bytes> {
        self.set_time();
        match self.reader.feed(chunk) {
            Ok(out) => self.passed(out),
            Err(broken) => {
                self.begun |= !broken.before.is_empty();
                let event = self.broke(&broken.fault);
                Some(joined(broken.before, event))
            }
        }
    }

    fn broke(&mut self, fault: &StreamFault) -> Bytes {
        let reason = match fault {
            StreamFault::Upstream(_) => "upstream_error",
            StreamFault::TooLong => "event_too_long",
            StreamFault::Garbage => "garbage",
        };
        let chat = self.call.provider.as_ref().and_then(|one| one.kind.chat);
        let fault = chat.map(|chat| Fault::of_stream(chat, fault));
        let fault = fault.unwrap_or_else(Fault::garbage);
        self.fail(fault.code, &fault.message, reason)
    }

    fn fail(&mut self, code: Code, message: &str, reason: &str) -> Bytes {
        self.end(Ending::UpstreamFault, code, message, reason)
    }

    /// Ends the stream with an explicit error event: clients take a silent cut for success.
    fn end(&mut self, ending: Ending, code: Code, message: &str, reason: &str) -> Bytes {
        self.sync();
        self.call.close(ending, 200, reason);
        self.phase = Phase::Ended;
        self.body = None;
        if !self.begun {
            self.reader.forget_unsent();
        }
        self.reader.error_event(code, message)
    }

    /// The provider has said all; `out` goes out before what is left to say. Nothing, where its
    /// last step must be taken first.
    fn upstream_ended(&mut self, out: Bytes) -> Option<Bytes> {
        self.set_time();
        match self.reader.finish() {
            EventsEnd::Complete { tail } => {
                let last = joined(out, tail);
                if let Some(step) = self.completion.take() {
                    // There is none of a stream that ended without saying all of its answer again.
                    let answer = Bytes::copy_from_slice(self.reader.whole_answer().unwrap_or_default().as_bytes());
                    self.completing = Some(Box::new(Completing::new(step, answer, last)));
                    return None;
                }
                self.answered(last)
            }
            EventsEnd::Truncated { rest } => {
                self.begun |= !rest.is_empty();
                let fault = Fault::truncated();
                let event = self.fail(fault.code, &fault.message, "truncated");
                Some(joined(joined(out, rest), event))
            }
            EventsEnd::Fault(fault) => Some(joined(out, self.broke(&fault))),
        }
    }

    /// The last step is taken, and the client learns what came of it.
    fn completed(&mut self, step: StreamEnding) -> Option<Bytes> {
        match step {
            StreamEnding::Answered(last) => self.answered(last),
            StreamEnding::Failed { before, message, reason } => {
                Some(joined(before, self.fail(Code::LedgerUnavailable, message, reason)))
            }
        }
    }

    fn answered(&mut self, last: Bytes) -> Option<Bytes> {
        self.sync();
        let reason = if self.call.meter.is_empty() { "empty_answer" } else { "" };
        self.call.close(Ending::Answered, 200, reason);
        self.phase = Phase::Closing;
        self.timer.set(Instant::now() + LAST_WORD);
        (!last.is_empty()).then_some(last)
    }

    fn upstream_broke(&mut self, fault: &Fault) -> Bytes {
        let reason = if fault.code == Code::UpstreamTimeout { "upstream_silent" } else { "upstream_reset" };
        self.fail(fault.code, &fault.message, reason)
    }

    /// The answer to the wish for a larger hold, and what it means for a piece that waits for it.
    fn poll_cover(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let answer = ready!(self.cover.poll(cx));
        let Some(out) = self.withheld.take() else { return Poll::Ready(None) };
        let Err(refused) = answer else { return Poll::Ready(self.passed(out)) };
        self.withheld = Some(out);
        let code = why_refused(&refused, Needed::NOTHING, self.call.began).code;
        Poll::Ready(Some(self.end(Ending::Refused, code, why_uncovered(code), code.code())))
    }

    fn poll_streaming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(completing) = &mut self.completing {
                return Poll::Ready(match completing.poll(cx) {
                    Poll::Ready(step) => {
                        self.completing = None;
                        self.completed(step)
                    }
                    Poll::Pending => Some(ready!(self.poll_clocks(cx))),
                });
            }
            if self.cover.is_asking() {
                match self.poll_cover(cx) {
                    Poll::Ready(None) if self.phase == Phase::Streaming => continue,
                    Poll::Ready(out) => return Poll::Ready(out),
                    Poll::Pending if self.withheld.is_some() => {
                        return Poll::Ready(Some(ready!(self.poll_clocks(cx))));
                    }
                    Poll::Pending => {}
                }
            }
            let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
            let out = match body.poll_chunk(cx) {
                Poll::Ready(Ok(Some(chunk))) => match self.feed(chunk) {
                    Some(out) => out,
                    None if self.phase == Phase::Streaming => continue,
                    None => return Poll::Ready(None),
                },
                Poll::Ready(Err(fault)) => self.upstream_broke(&fault),
                Poll::Ready(Ok(None)) => {
                    self.body = None;
                    match self.upstream_ended(Bytes::new()) {
                        None if self.completing.is_some() => continue,
                        out => return Poll::Ready(out),
                    }
                }
                Poll::Pending => ready!(self.poll_clocks(cx)),
            };
            return Poll::Ready(Some(out));
        }
    }

    /// Nothing from upstream: is a heartbeat due, or is it time to end?
    fn poll_clocks(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if self.cut.is_none() {
            let mut cut = Box::pin(self.call.till.shutdown.cut.clone().cancelled_owned());
            let _ = cut.as_mut().poll(cx);
            self.cut = Some(cut);
        }
        if self.call.till.shutdown.is_cutting()
            && let Some(last) = self.out_of_time(Instant::now())
        {
            return Poll::Ready(last);
        }
        loop {
            ready!(self.timer.poll(cx));
            let now = Instant::now();
            self.mark_when_due(now);
            if let Some(last) = self.out_of_time(now) {
                return Poll::Ready(last);
            }
            self.timer.set((now + self.ring).min(self.ends_at));
            if std::mem::take(&mut self.sent) {
                self.silent_since = now;
            } else if now - self.silent_since >= self.call.till.limits.heartbeat / 2 {
                self.silent_since = now;
                return Poll::Ready(self.reader.heartbeat());
            }
        }
    }

    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(body) = self.body.as_mut() {
            loop {
                match body.poll_chunk(cx) {
                    Poll::Ready(Ok(Some(_))) => {}
                    Poll::Ready(_) => break,
                    Poll::Pending if self.timer.poll(cx).is_ready() => break,
                    Poll::Pending => return Poll::Pending,
                }
            }
            self.body = None;
        }
        self.phase = Phase::Ended;
        Poll::Ready(())
    }
}

impl Stream for Events {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take()
            && let Some(out) = this.passed(first)
        {
            return Poll::Ready(Some(out));
        }
        if let Some(fault) = this.fault.take()
            && this.phase == Phase::Streaming
        {
            return Poll::Ready(Some(this.broke(&fault)));
        }
        if this.phase == Phase::Streaming {
            let out = ready!(this.poll_streaming(cx));
            if let Some(out) = out {
                this.sent = true;
                return Poll::Ready(Some(out));
            }
        }
        if this.phase == Phase::Closing {
            ready!(this.poll_closing(cx));
        }
        Poll::Ready(None)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if !self.call.is_open() {
            return;
        }
        self.sync();
        let Some(body) = self.body.take() else { return };
        if self.call.provider.as_ref().is_some_and(|one| one.settings.bill_on_cancel) {
            let reader = self.reader.take();
            if let Some(call) = self.call.take() {
                let to = call.till.abandoned.clone();
                let _ = to.send(Abandoned::Stream { call, body: Box::new(body), reader });
            }
        }
        // Otherwise the call's own guard reports it, and the upstream connection closes with
        // `body`.
    }
}

/// Two pieces as one write.
fn joined(first: Bytes, second: Bytes) -> Bytes {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second,
        (_, true) => first,
        _ => [first, second].concat().into(),
    }
}
