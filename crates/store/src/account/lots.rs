//! Trial credit that expires. Each such credit is a lot with a free and a held part; the rest of
//! the trial pot never expires. What expires first is spent first. A hold remembers how much it
//! took from which lot: expiry takes the free part only, and what a call gives back to a lot past
//! its time expires in that moment. PostgreSQL does the same in `functions.sql`.

use std::sync::Arc;

use tollgate_catalog::Money;

use crate::account::Expiring;

/// Identity of a credit: the first half of the hash of its id, as in its ledger entry.
pub(crate) type CreditKey = [u8; 16];

/// How much of an amount comes from which lot, in the order it is spent. What is left over never
/// expires.
pub(crate) type Parts = Vec<(CreditKey, i64)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lot {
    pub credit: CreditKey,
    /// The id its giver gave it.
    pub reference: Arc<str>,
    pub expires_at: i64,
    pub free: i64,
    pub held: i64,
    /// How often a part of it has expired.
    pub lapses: u32,
}

/// A part of a lot that has expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lapse {
    pub credit: CreditKey,
    pub reference: Arc<str>,
    pub expires_at: i64,
    /// Counts the lapses of this lot from 1.
    pub number: u32,
    pub amount: i64,
}

/// The lots of one account, the earliest to expire first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lots(Vec<Lot>);

impl Lots {
    pub fn new(lots: impl IntoIterator<Item = Lot>) -> Self {
        let mut all = Self::default();
        lots.into_iter().for_each(|lot| all.add(lot));
        all
    }

    pub fn add(&mut self, lot: Lot) {
        let place = self.0.partition_point(|other| (other.expires_at, other.credit) < (lot.expires_at, lot.credit));
        self.0.insert(place, lot);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Lot> {
        self.0.iter()
    }

    pub fn expiring(&self) -> Vec<Expiring> {
        let left = self.0.iter().filter(|lot| lot.free + lot.held > 0);
        left.map(|lot| Expiring {
            credit: lot.reference.to_string(),
            expires_at: lot.expires_at,
            available: Money::from_nano(lot.free),
            held: Money::from_nano(lot.held),
        })
        .collect()
    }

    /// A part of some lot expires now, or has and was not taken away yet.
    pub fn is_due(&self, at: i64) -> bool {
        self.0.iter().take_while(|lot| lot.expires_at <= at).any(|lot| lot.free > 0)
    }

    /// Takes as much of `amount` as the lots have free; it is held from now on.
    pub fn hold(&mut self, amount: i64) -> Parts {
        let parts = self.take(amount);
        self.each(&parts, |lot, part| lot.held += part);
        parts
    }

    /// Takes as much of `amount` as the lots have free; it is gone from now on.
    pub fn take(&mut self, amount: i64) -> Parts {
        let mut left = amount;
        let mut parts = Parts::new();
        for lot in &mut self.0 {
            let part = left.min(lot.free);
            if part > 0 {
                lot.free -= part;
                left -= part;
                parts.push((lot.credit, part));
            }
        }
        parts
    }

    /// Undoes [`Lots::take`].
    pub fn give_back(&mut self, parts: &[(CreditKey, i64)]) {
        self.each(parts, |lot, part| lot.free += part);
    }

    /// Ends a hold that took `parts` and cost `spent` of trial money: the first parts are spent,
    /// the others free again. Says what went back to which lot.
    pub fn close(&mut self, parts: &[(CreditKey, i64)], spent: i64) -> Parts {
        let mut left = spent;
        let mut back = Parts::new();
        for &(credit, part) in parts {
            let gone = left.min(part);
            left -= gone;
            if part > gone {
                back.push((credit, part - gone));
            }
        }
        self.each(parts, |lot, part| lot.held -= part);
        self.each(&back, |lot, part| lot.free += part);
        back
    }

    /// Moves what an entry says was moved. `false`: there is no such lot, or it did not have that
    /// much.
    pub fn shift(&mut self, credit: CreditKey, free: i64, held: i64) -> bool {
        let Some(lot) = self.0.iter_mut().find(|lot| lot.credit == credit) else { return false };
        lot.free += free;
        lot.held += held;
        lot.free >= 0 && lot.held >= 0
    }

    /// Whether each of these parts is free.
    pub fn have(&self, parts: &[(CreditKey, i64)]) -> bool {
        let free = |credit: &CreditKey| self.0.iter().find(|lot| lot.credit == *credit).map_or(0, |lot| lot.free);
        parts.iter().all(|(credit, part)| free(credit) >= *part)
    }

    /// Takes away what is free of lots past their time.
    pub fn lapse(&mut self, at: i64) -> Vec<Lapse> {
        let due = self.0.iter_mut().take_while(|lot| lot.expires_at <= at).filter(|lot| lot.free > 0);
        let lapses = due
            .map(|lot| {
                lot.lapses += 1;
                Lapse {
                    credit: lot.credit,
                    reference: lot.reference.clone(),
                    expires_at: lot.expires_at,
                    number: lot.lapses,
                    amount: std::mem::take(&mut lot.free),
                }
            })
            .collect();
        self.0.retain(|lot| lot.held > 0 || lot.expires_at > at);
        lapses
    }

    fn each(&mut self, parts: &[(CreditKey, i64)], change: impl Fn(&mut Lot, i64)) {
        for &(credit, part) in parts {
            if let Some(lot) = self.0.iter_mut().find(|lot| lot.credit == credit) {
                change(lot, part);
            }
        }
    }
}

/// Parts as a ledger entry keeps them: `credit:amount` pairs, or nothing.
pub(crate) fn to_text(parts: &[(CreditKey, i64)]) -> Option<String> {
    let pairs: Vec<String> =
        parts.iter().map(|(credit, part)| format!("{:032x}:{part}", u128::from_be_bytes(*credit))).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

pub(crate) fn from_text(text: Option<&str>) -> Parts {
    let pair = |pair: &str| {
        let (credit, part) = pair.split_once(':')?;
        Some((u128::from_str_radix(credit, 16).ok()?.to_be_bytes(), part.parse().ok()?))
    };
    text.unwrap_or_default().split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lot(name: u8, expires_at: i64, free: i64) -> Lot {
        Lot { credit: [name; 16], reference: name.to_string().into(), expires_at, free, held: 0, lapses: 0 }
    }

    fn shown(lots: &Lots) -> Vec<(u8, i64, i64)> {
        lots.iter().map(|l| (l.credit[0], l.free, l.held)).collect()
    }

    fn lapsed(lots: &mut Lots, at: i64) -> Vec<(u8, i64)> {
        lots.lapse(at).iter().map(|l| (l.credit[0], l.amount)).collect()
    }

    #[test]
    fn what_expires_first_is_spent_first() {
        let mut lots = Lots::new([lot(2, 20, 50), lot(3, 10, 30), lot(1, 20, 5)]);
        let parts = lots.hold(40);
        assert_eq!(parts, [([3; 16], 30), ([1; 16], 5), ([2; 16], 5)]);
        assert_eq!(shown(&lots), [(3, 0, 30), (1, 0, 5), (2, 45, 5)]);
        assert_eq!(lots.close(&parts, 32), [([1; 16], 3), ([2; 16], 5)]);
        assert_eq!(shown(&lots), [(3, 0, 0), (1, 3, 0), (2, 50, 0)]);
        assert_eq!(lots.hold(1_000).iter().map(|p| p.1).sum::<i64>(), 53, "no more than there is");
    }

    #[test]
    fn expiry_leaves_what_is_held() {
        let mut lots = Lots::new([lot(1, 10, 50), lot(2, 20, 50)]);
        let early = lots.hold(30);
        assert!(!lots.is_due(9) && lots.is_due(10));
        assert_eq!(lapsed(&mut lots, 10), [(1, 20)]);
        assert!(!lots.is_due(10));
        let late = lots.hold(30);
        assert_eq!(late, [([2; 16], 30)], "nothing new is taken from what has expired");
        lots.close(&early, 10);
        assert_eq!(lapsed(&mut lots, 15), [(1, 20)], "the call gave back what had expired meanwhile");
        assert_eq!(shown(&lots), [(2, 20, 30)]);
        lots.close(&late, 0);
        assert_eq!(lapsed(&mut lots, 19), []);
        assert_eq!(lapsed(&mut lots, 20), [(2, 50)]);
        assert_eq!(shown(&lots), []);
    }

    #[test]
    fn every_lapse_of_a_credit_has_a_number_of_its_own() {
        let mut lots = Lots::new([lot(1, 10, 50)]);
        let held = lots.hold(30);
        assert_eq!(lots.lapse(10).iter().map(|lapse| lapse.number).collect::<Vec<_>>(), [1]);
        lots.close(&held, 0);
        assert_eq!(lots.lapse(11).iter().map(|lapse| lapse.number).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn no_more_is_moved_than_a_lot_has() {
        for (free, held, sound) in [(-50, 50, true), (-51, 51, false), (0, -1, false), (-50, -1, false), (0, 0, true)] {
            let mut lots = Lots::new([lot(1, 10, 50)]);
            assert_eq!(lots.shift([1; 16], free, held), sound, "{free} {held}");
        }
        assert!(!Lots::new([lot(1, 10, 50)]).shift([2; 16], 0, 0), "no such lot");
    }

    #[test]
    fn parts_come_back_from_text() {
        let parts = vec![([7; 16], 12), ([255; 16], 1)];
        assert_eq!(from_text(to_text(&parts).as_deref()), parts);
        assert_eq!(to_text(&[]), None);
        assert_eq!(from_text(None), []);
    }
}
