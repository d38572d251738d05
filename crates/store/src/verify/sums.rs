//! Ledger against usage log, with memory for accounts and not for calls: what the entries of an
//! account charged, wrote off and gave back is added up, what its usage rows say is taken off, and
//! nothing may be left. A fingerprint of each call and amount goes along, so that two mistakes
//! which cancel out in the sum still show.

use crate::ids::CallId;
use crate::ledger::EntryKind;

use super::rows::{ChargeRow, EntryRow};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    charged: i64,
    written_off: i64,
    refunded: i64,
    calls: i64,
    print: u64,
}

const CHARGED: u64 = 1;
const WRITTEN_OFF: u64 = 2;
const REFUNDED: u64 = 3;

impl Sums {
    pub fn entry(&mut self, e: &EntryRow<'_>) {
        let Some(call) = e.call else { return };
        match e.kind {
            EntryKind::Settle | EntryKind::Void | EntryKind::Expire => {
                self.charged = self.charged.wrapping_add(e.take.total());
                self.calls += 1;
                self.add(call, CHARGED, e.take.total());
            }
            // Given up by another replica before: that end does not count any more.
            EntryKind::Reopen => {
                self.calls -= 1;
                self.take(call, CHARGED, 0);
            }
            EntryKind::WriteOff => {
                self.written_off = self.written_off.wrapping_add(e.pots.paid);
                self.add(call, WRITTEN_OFF, e.pots.paid);
            }
            EntryKind::Refund => {
                self.refunded = self.refunded.wrapping_add(e.pots.total());
                self.add(call, REFUNDED, e.pots.total());
            }
            EntryKind::Hold | EntryKind::Extend | EntryKind::TopUp | EntryKind::Adjust | EntryKind::Lapse => {}
        }
    }

    pub fn usage(&mut self, row: &ChargeRow) {
        self.charged = self.charged.wrapping_sub(row.charge);
        self.written_off = self.written_off.wrapping_sub(row.write_off);
        self.refunded = self.refunded.wrapping_sub(row.refunded);
        if row.price_id.is_some() {
            self.calls -= 1;
            self.take(row.call, CHARGED, row.charge);
        }
        for (what, amount) in [(WRITTEN_OFF, row.write_off), (REFUNDED, row.refunded)] {
            if amount != 0 {
                self.take(row.call, what, amount);
            }
        }
    }

    /// What another half of the audit has added up and taken off.
    pub fn join(&mut self, other: &Self) {
        self.charged = self.charged.wrapping_add(other.charged);
        self.written_off = self.written_off.wrapping_add(other.written_off);
        self.refunded = self.refunded.wrapping_add(other.refunded);
        self.calls = self.calls.wrapping_add(other.calls);
        self.print = self.print.wrapping_add(other.print);
    }

    /// What is left over, in words; `None` when nothing is.
    pub fn left(&self) -> Option<String> {
        (*self != Self::default()).then(|| {
            format!(
                "usage log and ledger differ: charged by {}, written off by {}, refunded by {}, calls by {}{}",
                self.charged,
                self.written_off,
                self.refunded,
                self.calls,
                if self.print == 0 { "" } else { ", and not in the sums alone" }
            )
        })
    }

    fn add(&mut self, call: CallId, what: u64, amount: i64) {
        self.print = self.print.wrapping_add(print(call, what, amount));
    }

    fn take(&mut self, call: CallId, what: u64, amount: i64) {
        self.print = self.print.wrapping_sub(print(call, what, amount));
    }
}

/// Well spread, not secret: it is to find mistakes; those who mean it meet the hash chain.
pub(super) fn print(call: CallId, what: u64, amount: i64) -> u64 {
    let (time, random) = call.0.split_at(8);
    let word = |bytes: &[u8]| bytes.iter().fold(0u64, |word, byte| (word << 8) | u64::from(*byte));
    let mut z = word(time);
    for next in [word(random), what, amount.cast_unsigned()] {
        z = (z ^ next).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    z
}
