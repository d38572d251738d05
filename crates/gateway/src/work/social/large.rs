//! An answer that is too large to be held, on its way: it is judged at its end by the same rule as
//! a whole one.

use super::judge::{Judged, is_bad, judge, judge_begun, next_page, wanted};
use super::no_data;
use super::track::Track;
use crate::call::Rewrite;
use bytes::Bytes;
use std::sync::Arc;
use tollgate_catalog::social::Checked;
use tollgate_media::social::Flow;
use tollgate_upstream::Fault;

pub struct Large {
    track: Arc<Track>,
    checked: Checked,
    flow: Flow,
}

impl Large {
    /// From its beginning, with what may go out of that; or what speaks against it.
    pub fn begin(track: Arc<Track>, checked: Checked, held: &[u8]) -> Result<(Large, Bytes), Judged> {
        let cell = track.cell();
        let mut flow = Flow::new(&cell.platform, cell.capability.name(), &cell.drop, wanted(cell));
        let first = flow.feed(held).map_err(|_| Judged::Failed)?;
        match judge_begun(cell, flow.picked(), flow.outline()) {
            Judged::Result if is_bad(flow.code()) => Err(Judged::Failed),
            Judged::Result => Ok((Large { track, checked, flow }, first)),
            other => Err(other),
        }
    }
}

impl Rewrite for Large {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        self.flow.feed(&piece).map_err(|_| no_data())
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        self.flow.finish().map_err(|_| no_data())?;
        let (cell, seen) = (self.track.cell(), self.flow.picked());
        if is_bad(self.flow.code()) || judge(cell, seen, self.flow.outline()) != Judged::Result {
            return Err(no_data());
        }
        self.track.works();
        Ok(Flow::end(&next_page(cell, &self.checked, seen)))
    }

    fn broke(&mut self, _: &Fault) -> Option<Bytes> {
        self.track.failed(&no_data());
        None
    }
}
