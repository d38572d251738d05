//! Holds and extensions that take what there is, and charges of which the customer pays a part.

use std::sync::Arc;

use tollgate_catalog::Money;
use tollgate_store::{Change, Extend, Hold, HoldRefused, NewLimits};

use crate::common::{Customer, House};

fn wish(h: &House, c: &Customer, wanted: i64, least: i64, paid_only: bool) -> Hold {
    Hold { least: Money::from_nano(least), paid_only, ..h.wish(c, wanted) }
}

fn outcome_text(outcome: Result<(i64, i64), HoldRefused>) -> String {
    match outcome {
        Ok((trial, paid)) => format!("{trial}+{paid}"),
        Err(HoldRefused::Insufficient { available }) => format!("has {}", available.nano()),
        Err(HoldRefused::Limit(reached)) => format!("limit {}", reached.limit.nano()),
        Err(other) => panic!("{other}"),
    }
}

/// Trial and paid credit, the key's cap; wanted and least, paid money only; what is granted, or why
/// nothing is.
type Row = (i64, i64, Option<i64>, i64, i64, bool, &'static str);
const TABLE: [Row; 14] = [
    (30, 70, None, 80, 10, false, "30+50"),
    (30, 70, None, 100, 10, false, "30+70"),
    (30, 70, None, 101, 10, false, "30+70"),
    (30, 70, None, 500, 100, false, "30+70"),
    (30, 70, None, 500, 101, false, "has 100"),
    (30, 70, None, 101, 101, false, "has 100"),
    (30, 70, None, 500, 70, true, "0+70"),
    (30, 70, None, 500, 71, true, "has 70"),
    (30, 70, Some(40), 500, 10, false, "30+10"),
    (30, 70, Some(40), 500, 40, false, "30+10"),
    (30, 70, Some(40), 500, 41, false, "limit 40"),
    (30, 70, Some(200), 500, 101, false, "has 100"),
    (0, 0, None, 500, 1, false, "has 0"),
    (0, 0, None, 500, 0, false, "0+0"),
];

pub async fn a_hold_takes_what_there_is(h: House) {
    for line in TABLE {
        let (trial, paid, cap, wanted, least, paid_only, expected) = line;
        let c = h.capped_customer(trial, paid, cap).await;
        let held = h.hold(wish(&h, &c, wanted, least, paid_only)).await;
        if let Ok(held) = &held {
            assert_eq!(
                h.pots(&c).await,
                (trial - held.trial.nano(), paid - held.paid.nano(), held.trial.nano(), held.paid.nano())
            );
        }
        assert_eq!(outcome_text(held.map(|held| (held.trial.nano(), held.paid.nano()))), expected, "{line:?}");
    }
    h.close().await;
}

pub async fn an_extension_takes_what_there_is(h: House) {
    for line in TABLE {
        let (trial, paid, cap, wanted, least, paid_only, expected) = line;
        let c = h.capped_customer(trial, paid, cap).await;
        let call = h.hold(wish(&h, &c, 0, 0, paid_only)).await.expect("a hold of nothing").call;
        let more = Extend { least: Money::from_nano(least), ..h.more(&c, call, 1, wanted) };
        let first = outcome_text(h.extend(more).await);
        assert_eq!(first, expected, "{line:?}");
        if expected.contains('+') {
            assert_eq!(outcome_text(h.extend(more).await), expected, "the same step again changes nothing: {line:?}");
        }
    }
    h.close().await;
}

/// Limits of days and months leave what they leave, too: those of the key, those of the account.
pub async fn a_hold_takes_what_its_limits_leave(h: House) {
    let set = |nano| Change::Set(Money::from_nano(nano));
    let none = NewLimits::default();
    for (key, account, granted) in [
        (NewLimits { day: set(50), ..none }, none, 30),
        (NewLimits { month: set(45), ..none }, none, 25),
        (NewLimits { day: set(50), month: set(45), total: set(30) }, none, 10),
        (none, NewLimits { day: set(42), ..none }, 22),
        (none, NewLimits { month: set(41), ..none }, 21),
        (NewLimits { day: set(50), ..none }, NewLimits { day: set(60), month: set(32), ..none }, 12),
    ] {
        let c = h.customer(0, 1_000).await;
        h.store.change_key(c.key, key.into(), Default::default()).await.expect("limits").expect("a key");
        h.store
            .change_account(c.account, account.into(), Default::default())
            .await
            .expect("limits")
            .expect("an account");
        h.held(&c, 20).await;
        let held = h.hold(wish(&h, &c, 500, 5, false)).await.expect("something");
        assert_eq!(held.paid.nano(), granted, "{key:?} {account:?}");
        assert!(matches!(h.hold(wish(&h, &c, 500, 5, false)).await, Err(HoldRefused::Limit(_))));
    }
    h.close().await;
}

pub async fn many_at_once_share_what_there_is(h: House) {
    let c = Arc::new(h.customer(100, 900).await);
    let h = Arc::new(h);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (h, c) = (h.clone(), c.clone());
        tasks.spawn(async move {
            match h.hold(wish(&h, &c, 70, 10, false)).await {
                Ok(held) => Some((held.call, held.trial.nano() + held.paid.nano())),
                Err(HoldRefused::Insufficient { available }) => {
                    assert!(available.nano() < 10);
                    None
                }
                Err(other) => panic!("{other}"),
            }
        });
    }
    let granted: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    // Fourteen whole ones, and one that takes the rest.
    assert_eq!(granted.iter().map(|(_, nano)| nano).sum::<i64>(), 1_000);
    assert_eq!(granted.iter().filter(|(_, nano)| *nano == 70).count(), 14);
    assert_eq!(h.pots(&c).await, (0, 0, 100, 900));
    for (call, nano) in granted {
        h.store.close(h.ending(&c, call, nano)).await.expect("closed");
    }
    assert_eq!(h.pots(&c).await, (0, 0, 0, 0));
    Arc::into_inner(h).expect("all tasks are done").close().await;
}

/// Hold, charge, the most of it that is to be paid; captured and written off.
pub async fn what_is_above_the_most_is_written_off(h: House) {
    for (hold, charge, most, captured, lost) in [
        (40, 30, Some(40), 30, 0),
        (40, 60, Some(40), 40, 20),
        (40, 60, Some(50), 50, 10),
        (40, 60, Some(0), 0, 60),
        (40, 60, Some(-1), 0, 60),
        (40, 60, Some(100), 60, 0),
        (40, 500, Some(200), 100, 400),
        (40, 60, None, 60, 0),
    ] {
        let c = h.customer(10, 90).await;
        let call = h.held(&c, hold).await;
        let mut close = h.ending(&c, call, charge);
        close.most = most.map(Money::from_nano);
        let closed = h.store.close(close).await.expect("closed");
        assert_eq!((closed.captured.nano(), closed.write_off.nano()), (captured, lost), "{charge} {most:?}");
        let (trial, paid, ..) = h.pots(&c).await;
        assert_eq!(trial + paid, 100 - captured);
        let row = h.store.usage_of(c.account, call).await.expect("reading").expect("a row");
        assert_eq!((row.charge.nano(), row.write_off.nano()), (captured, lost));
    }
    h.close().await;
}

/// In a group that is large enough to be done all at once.
pub async fn a_large_group_grants_and_writes_off_alike(h: House) {
    let c = Arc::new(h.customer(0, 1_000).await);
    let h = Arc::new(h);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..24 {
        let (h, c) = (h.clone(), c.clone());
        tasks.spawn(async move {
            let held = h.hold(wish(&h, &c, 30, 10, false)).await.expect("there is enough");
            let mut close = h.ending(&c, held.call, 30);
            close.most = (number % 2 == 0).then(|| Money::from_nano(20));
            let closed = h.store.close(close).await.expect("closed");
            (closed.captured.nano(), closed.write_off.nano())
        });
    }
    let done = tasks.join_all().await;
    assert_eq!(done.iter().filter(|one| **one == (20, 10)).count(), 12);
    assert_eq!(done.iter().filter(|one| **one == (30, 0)).count(), 12);
    assert_eq!(h.pots(&c).await, (0, 1_000 - 12 * 50, 0, 0));
    Arc::into_inner(h).expect("all tasks are done").close().await;
}
