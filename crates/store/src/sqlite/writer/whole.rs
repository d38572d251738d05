//! Calls that begin and end within one group of the writer. Such a call is one entry: the one that
//! ends it carries what its hold would have said too (price, model, endpoint, when it would have
//! expired). Nobody can have seen the hold in the database, and a crash before the commit leaves
//! both to the journal.

use crate::account::limits::day_of;
use crate::ids::{CallId, IdMap};
use crate::sqlite::writer::ops::{CloseOp, HoldOp, Op};

/// The holds of these calls, each until its end is written.
pub(in crate::sqlite) type WholeCalls<'a> = IdMap<CallId, &'a HoldOp>;

/// The calls among these operations that are one entry.
pub(in crate::sqlite) fn whole_calls(ops: &[Op]) -> WholeCalls<'_> {
    let mut begun = WholeCalls::default();
    let mut whole = WholeCalls::default();
    for op in ops {
        match op {
            Op::Hold(hold) => {
                begun.insert(hold.call, hold);
            }
            Op::Extend(extend) => {
                begun.remove(&extend.call);
            }
            Op::Close(close) => {
                if let Some(hold) = begun.remove(&close.call).filter(|hold| is_simple(hold, close)) {
                    whole.insert(close.call, hold);
                }
            }
            _ => {}
        }
    }
    whole
}

/// What has more to say than one entry can is written as several: trial credit that expires, more
/// than was held, a hold that counts for another day than its end, a time that goes back because a
/// clock was put right.
fn is_simple(hold: &HoldOp, close: &CloseOp) -> bool {
    hold.lots.is_empty()
        && hold.task.is_none()
        && close.lot_moves.is_empty()
        && close.settlement.extend.is_zero()
        && close.settlement.write_off == 0
        && close.held == hold.pots
        && day_of(hold.at) == day_of(close.at)
        && !hold.goes_back
        && hold.at <= close.at
}
