//! A provider that streams pictures, previews before them where they are on sale: its events pass
//! as they are, but for pictures that nobody asked for. A fault ends them with an event that says
//! so, and what was finished until then is paid.

use super::call::{EVENTS, Making, broke, metered, no_picture};
use crate::call::{Begun, Call, Meter, Passed, Rewrite};
use bytes::{Bytes, BytesMut};
use tokio::time::Instant;
use tollgate_media::image::{EventPass, FlowBroke, PictureTally};
use tollgate_upstream::{Fault, WholeReply};
use tollgate_wire::error::{self, ErrorFormat};

impl Making<'_> {
    /// Waits for the first event, so that an early failure keeps its status.
    pub async fn stream(&self, call: &mut Call) -> Result<Begun, Fault> {
        let (mut body, events) = self.send(self.plan.n, true).await?;
        if !events {
            // It answered at once instead: then the events are ours.
            return self.read(call, body).await;
        }
        let mut pass = EventPass::new(self.plan.n);
        let mut left = self.most_bytes(self.plan.n.saturating_mul(1 + self.plan.partials));
        loop {
            let piece = body.chunk().await?;
            if Instant::now() > self.deadline {
                return Err(Fault::late());
            }
            let fed = match &piece {
                Some(piece) => {
                    call.first_byte_at.get_or_insert_with(|| self.till.world.now_ms());
                    left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
                    pass.feed(piece)
                }
                None => pass.end(),
            };
            let first = pass.take();
            let fails = fed.is_err() || pass.error().is_some();
            if !first.is_empty() && (!fails || pass.completed() > 0) {
                let tally = PictureTally { asked: self.plan.n, delivered: self.plan.n, ..PictureTally::default() };
                call.meter = metered(&tally);
                let mut events = PassedEvents { pass, asked: self.plan.n, over: false };
                let first = events.passed(first, fed);
                let passed = Passed { content_type: EVENTS, first, body, rewrite: Box::new(events), left };
                return Ok(Begun::Passing(Box::new(passed)));
            }
            if let Some(event) = pass.error() {
                let body = event.to_string().into();
                return Err(self.maker.refused(&WholeReply { status: 400, headers: http::HeaderMap::new(), body }));
            }
            fed.map_err(broke)?;
            if piece.is_none() {
                return Err(no_picture());
            }
        }
    }
}

/// Events on their way.
struct PassedEvents {
    pass: EventPass,
    asked: u64,
    /// Nothing more goes out.
    over: bool,
}

impl PassedEvents {
    fn failed(&mut self, before: &[u8], fault: &Fault) -> Bytes {
        self.over = true;
        let mut out = BytesMut::from(before);
        if self.pass.is_amid_event() {
            // What has left of an event ends here, so that the next one stands alone.
            out.extend_from_slice(b"\n\n");
        }
        out.extend_from_slice(b"event: error\ndata: ");
        out.extend_from_slice(&error::body(ErrorFormat::OpenAi, fault.code, &fault.message, None, ""));
        out.extend_from_slice(b"\n\n");
        out.freeze()
    }

    /// What goes out, with word of what went wrong behind it.
    fn passed(&mut self, out: Bytes, fed: Result<(), FlowBroke>) -> Bytes {
        let fault = match fed {
            Err(why) => broke(why),
            Ok(()) if self.pass.error().is_some() => {
                Fault { message: "The provider failed in the middle of its pictures.".to_owned(), ..Fault::cut() }
            }
            Ok(()) => return out,
        };
        if self.pass.is_complete() {
            // All that was asked for is there; what comes behind it does not matter.
            self.over = true;
            return out;
        }
        self.failed(&out, &fault)
    }
}

impl Rewrite for PassedEvents {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        if self.over {
            return Ok(Bytes::new());
        }
        let fed = self.pass.feed(&piece);
        let out = self.pass.take();
        Ok(self.passed(out, fed))
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        if self.over {
            return Ok(Bytes::new());
        }
        let fed = self.pass.end();
        let out = self.pass.take();
        let out = self.passed(out, fed);
        Ok(if self.over || self.pass.is_complete() { out } else { self.failed(&out, &no_picture()) })
    }

    fn meter(&mut self) -> Option<Meter> {
        let (delivered, usage) = (self.pass.completed(), self.pass.usage().map(str::to_owned));
        Some(metered(&PictureTally { asked: self.asked, delivered, usage, ..PictureTally::default() }))
    }

    /// What was finished before is paid; nothing of a call without a finished picture.
    fn broke(&mut self, fault: &Fault) -> Option<Bytes> {
        let is_over = self.over || self.pass.is_complete();
        (self.pass.completed() > 0).then(|| if is_over { Bytes::new() } else { self.failed(b"", fault) })
    }

    fn goes_on(&self) -> bool {
        true
    }
}
