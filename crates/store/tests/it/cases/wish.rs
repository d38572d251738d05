//! What is said about money without moving any.

use crate::common::House;
use tollgate_catalog::Money;
use tollgate_store::{CreditKind, HoldRefused, Pot};

pub async fn the_entries_of_a_call_tell_all_its_movements(h: House) {
    let c = h.customer(30, 1_000).await;
    let other = h.held(&c, 5).await;
    let call = h.held(&c, 20).await;
    h.extend(h.more(&c, call, 1, 50)).await.expect("it fits");
    h.store.close(h.ending(&c, call, 60)).await.expect("closed");
    assert_eq!(h.credit(&c, "r", CreditKind::Refund { call }, Pot::Paid, 10).await, Ok(true));
    let sums = |entries: Vec<tollgate_store::CallEntry>| -> Vec<(&str, i64, i64, i64)> {
        entries.iter().map(|one| (one.kind, one.trial.nano(), one.paid.nano(), one.taken.nano())).collect()
    };
    let entries = h.store.entries_of(c.account, call).await.expect("read");
    // 5 of the trial credit are held for the other call.
    let expected = [("hold", 20, 0, 0), ("extend", 5, 45, 0), ("settle", 25, 45, 60), ("refund", 0, 10, 0)];
    assert_eq!(sums(entries), expected);
    let stranger = h.customer(0, 0).await;
    assert!(h.store.entries_of(stranger.account, call).await.expect("read").is_empty(), "another account's call");
    h.store.close(h.ending(&c, other, 0)).await.expect("closed");
    let entries = h.store.entries_of(c.account, other).await.expect("read");
    assert_eq!(sums(entries), [("hold", 5, 0, 0), ("void", 5, 0, 0)]);
    h.close().await;
}

pub async fn a_wish_is_answered_as_the_hold_would_be(h: House) {
    for (trial, paid, cap) in [(30, 100, None), (30, 100, Some(40)), (0, 0, None), (100, 0, Some(100))] {
        let c = h.capped_customer(trial, paid, cap).await;
        let hash = h.store.keys(c.account).await.expect("keys")[0].hash;
        let wishes =
            [(0, 0, false), (30, 30, false), (40, 40, true), (41, 41, false), (100, 100, true), (131, 131, false)];
        for (amount, least, paid_only) in
            wishes.into_iter().chain([(500, 30, false), (500, 101, true), (41, 40, false)])
        {
            let now = h.store.key_by_hash(hash).await.expect("read").expect("the key");
            let (amount, least) = (Money::from_nano(amount), Money::from_nano(least));
            let would = now.would_hold(amount, least, paid_only, h.clock.now());
            let mut wish = h.wish(&c, amount.nano());
            (wish.least, wish.paid_only) = (least, paid_only);
            match (h.hold(wish).await, would) {
                (Ok(held), Ok(said)) => {
                    assert_eq!(held.trial.nano() + held.paid.nano(), said.nano());
                    h.store.close(h.ending(&c, held.call, 0)).await.expect("closed");
                }
                (
                    Err(HoldRefused::Insufficient { available: is }),
                    Err(HoldRefused::Insufficient { available: said }),
                ) => {
                    assert_eq!(is, said);
                }
                (Err(HoldRefused::Limit(is)), Err(HoldRefused::Limit(said))) => assert_eq!(is, said),
                (is, said) => panic!("{amount} of {trial}+{paid}, cap {cap:?}: said {said:?}, was {:?}", is.err()),
            }
        }
    }
    h.close().await;
}
