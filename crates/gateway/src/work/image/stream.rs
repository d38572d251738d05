//! A provider that streams pictures, previews before them where they are on sale: its events pass
//! as they are. A fault ends them with an event that says so, and what was finished until then is
//! paid.

use super::call::{EVENTS, Making, broke, metered, no_picture};
use crate::call::{Begun, Call, Meter, Passed, Rewrite};
use bytes::{Bytes, BytesMut};
use tokio::time::Instant;
use tollgate_media::image::{EventPass, PictureTally};
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
        let mut pass = EventPass::default();
        let mut left = self.most_bytes(self.plan.n.saturating_mul(1 + self.plan.partials));
        loop {
            let piece = body.chunk().await?.ok_or_else(no_picture)?;
            if call.first_byte_at.is_none() {
                call.first_byte_at = Some(self.till.world.now_ms());
            }
            if Instant::now() > self.deadline {
                return Err(Fault::late());
            }
            left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
            let first = pass.feed(&piece).map_err(broke)?;
            if let Some(event) = &pass.error {
                let body = event.to_string().into();
                return Err(self.maker.refused(&WholeReply { status: 400, headers: http::HeaderMap::new(), body }));
            }
            if !first.is_empty() {
                let tally = PictureTally { asked: self.plan.n, delivered: self.plan.n, ..PictureTally::default() };
                call.meter = metered(&tally);
                let rewrite = Box::new(PassedEvents { pass, asked: self.plan.n, over: false });
                let passed = Passed { content_type: EVENTS, first, body, rewrite, left };
                return Ok(Begun::Passing(Box::new(passed)));
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
        out.extend_from_slice(b"event: error\ndata: ");
        out.extend_from_slice(&error::body(ErrorFormat::OpenAi, fault.code, &fault.message, None, ""));
        out.extend_from_slice(b"\n\n");
        out.freeze()
    }
}

impl Rewrite for PassedEvents {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        if self.over {
            return Ok(Bytes::new());
        }
        let out = match self.pass.feed(&piece) {
            Ok(out) => out,
            Err(why) => return Ok(self.failed(b"", &broke(why))),
        };
        if self.pass.error.is_some() {
            let fault =
                Fault { message: "The provider failed in the middle of its pictures.".to_owned(), ..Fault::cut() };
            return Ok(self.failed(&out, &fault));
        }
        // All that was asked for is there; what else comes is not handed over.
        self.over = self.pass.completed >= self.asked;
        Ok(out)
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        let missing = self.pass.completed < self.asked && !self.over;
        Ok(if missing { self.failed(b"", &no_picture()) } else { Bytes::new() })
    }

    fn meter(&mut self) -> Option<Meter> {
        let delivered = self.pass.completed.min(self.asked);
        let usage = self.pass.usage.clone();
        Some(metered(&PictureTally { asked: self.asked, delivered, usage, ..PictureTally::default() }))
    }

    /// What was finished before is paid; nothing of a call without a finished picture.
    fn broke(&mut self, fault: &Fault) -> Option<Bytes> {
        (self.pass.completed > 0).then(|| if self.over { Bytes::new() } else { self.failed(b"", fault) })
    }

    fn goes_on(&self) -> bool {
        true
    }
}
