//! Vectors that are too many to be held, rewritten one by one while they pass. What they cost is in
//! the report behind the last of them.

use crate::call::{Meter, Rewrite};
use crate::work::texts;
use bytes::Bytes;
use tollgate_media::TextTally;
use tollgate_media::embed::VectorFlow;
use tollgate_store::Counters;
use tollgate_upstream::Fault;

pub struct VectorRewrite {
    pub flow: VectorFlow,
    pub tally: TextTally,
    /// Our own count.
    pub counted: Counters,
    /// The provider reports what it read.
    pub reports: bool,
}

impl Rewrite for VectorRewrite {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        self.flow.feed(&piece).map_err(|_| Fault::garbage())
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        self.flow.end_reply(self.tally.texts).map_err(|_| Fault::garbage())?;
        self.flow.end().map_err(|_| Fault::garbage())
    }

    fn meter(&mut self) -> Option<Meter> {
        Some(texts::meter(&self.tally, self.counted, self.flow.tokens(), self.flow.raw_usage(), self.reports))
    }
}
