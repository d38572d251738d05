//! Closes that the database refuses for good, because it is damaged or we are wrong. Their
//! operation is over, but what the call cost is in no ledger: the record stays in the journal,
//! carried over like a mark, and every start tries it again until one brings it in. Without it the
//! next start would find an open hold, and give a delivered call away.

use std::io;

use super::record::CLOSE;
use super::{Inner, Journal, LiveMark, RECORD_HEADER, read_segment};
use crate::ids::CallId;

impl Journal {
    /// Keeps the close of a call. Said before its operation counts as committed; the record is
    /// written already, or comes in a moment.
    pub fn keep_close(&self, call: CallId) {
        let mut inner = self.lock();
        inner.refused.insert(call, ());
        let written =
            inner.find_close(call).and_then(|found| found.map_or(Ok(()), |payload| inner.keep(call, payload)));
        drop(inner);
        match written {
            Ok(()) => self.sync(),
            Err(error) => tracing::error!(%error, %call, "cannot keep a close the database refuses"),
        }
    }

    /// Whether the close of this call is retained: nobody else may end it.
    pub fn keeps_close(&self, call: CallId) -> bool {
        let inner = self.lock();
        inner.refused.contains_key(&call) && inner.marks.contains_key(&call)
    }
}

impl Inner {
    fn keep(&mut self, call: CallId, mut payload: Vec<u8>) -> io::Result<()> {
        let segment = self.active;
        self.segments[segment].append(&mut payload)?;
        self.marks.insert(call, LiveMark { segment, payload });
        Ok(())
    }

    /// The first close of a call among the records, with room for a header: a second one is none.
    fn find_close(&self, call: CallId) -> io::Result<Option<Vec<u8>>> {
        let mut found = Vec::new();
        for segment in &self.segments {
            let (epoch, _, records) = read_segment(&segment.tape.read()?);
            let is_it = |payload: &Vec<u8>| payload.first() == Some(&CLOSE) && payload.get(1..17) == Some(&call.0[..]);
            found.extend(records.into_iter().filter(is_it).map(|payload| (epoch, payload)));
        }
        found.sort_by_key(|(epoch, _)| *epoch);
        Ok(found.into_iter().next().map(|(_, payload)| [&[0; RECORD_HEADER], &payload[..]].concat()))
    }

    /// Writes what is still wanted of a segment into the other one.
    pub(super) fn carry(&mut self, from: usize, to: usize) -> io::Result<()> {
        for mark in self.marks.values_mut().filter(|mark| mark.segment == from) {
            self.segments[to].append(&mut mark.payload)?;
            mark.segment = to;
        }
        if !self.refused.is_empty() {
            self.segments[to].tape.sync(None)?;
        }
        Ok(())
    }
}
