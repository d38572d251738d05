//! Many operations of all kinds at one moment: an engine that does the plain ones together must not
//! be distinguished from one that does them one by one.

use std::sync::Arc;

use futures_util::future::join_all;
use tollgate_catalog::Money;
use tollgate_store::{CallId, Change, HoldRefused, Limits, NewKey, NewLimits, UsagePage};

use crate::common::{Customer, House, idem};

pub async fn many_kinds_in_one_group(h: House) {
    let h = Arc::new(h);
    let rich = Arc::new(h.customer(0, 10_000).await);
    let trial = Arc::new(h.customer(500, 500).await);
    let capped = Arc::new(h.capped_customer(0, 1_000, Some(250)).await);
    let poor = Arc::new(h.customer(0, 250).await);
    for round in 0..3 {
        let mut wishes = tokio::task::JoinSet::new();
        for n in 0..12_u8 {
            for (who, customer, most) in [(0, &rich, 12), (1, &trial, 4), (2, &capped, 4), (3, &poor, 4)] {
                if n < most {
                    let mut wish = h.wish(customer, 100);
                    // Some of them with a key of their own.
                    wish.idem = (who == 0 && n >= 9).then(|| idem(100 + 10 * round + n, n));
                    let (h, customer) = (h.clone(), customer.clone());
                    wishes.spawn(async move { (who, customer, h.hold(wish).await) });
                }
            }
        }
        let mut held: [Vec<(Arc<Customer>, CallId)>; 4] = Default::default();
        while let Some(done) = wishes.join_next().await {
            let (who, customer, verdict) = done.expect("no panic");
            match (who, verdict) {
                (_, Ok(hold)) => held[who].push((customer, hold.call)),
                (2, Err(HoldRefused::Limit(_))) | (3, Err(HoldRefused::Insufficient { .. })) => {}
                (_, Err(other)) => panic!("{who}: {other}"),
            }
        }
        let counts = held.each_ref().map(Vec::len);
        let fit = 2 - usize::from(round);
        assert_eq!(counts, [12, 4, fit, fit], "round {round}: 250 less 60 for each call before");
        assert_eq!(h.pots(&poor).await.3, 100 * counts[3] as i64);

        let mut closes = tokio::task::JoinSet::new();
        let mut expected = Vec::new();
        for (who, calls) in held.into_iter().enumerate() {
            for (n, (customer, call)) in calls.into_iter().enumerate() {
                let charge = if who == 0 { [60, 0, 100, 130][n % 4] } else { 60 };
                expected.push((customer.account, call, charge));
                // Each is closed twice at the same moment; one of them counts.
                for _ in 0..2 {
                    let (h, close) = (h.clone(), h.ending(&customer, call, charge));
                    closes.spawn(async move { h.store.close(close).await.expect("closed") });
                }
            }
        }
        let (mut captured, mut applied) = (0, 0);
        while let Some(done) = closes.join_next().await {
            let closed = done.expect("no panic");
            if closed.applied {
                captured += closed.captured.nano();
                applied += 1;
            }
        }
        assert_eq!(applied, expected.len());
        assert_eq!(captured, expected.iter().map(|(_, _, charge)| charge).sum::<i64>());
        for (account, call, charge) in expected {
            let row = h.store.usage_of(account, call).await.expect("reading").expect("a row");
            assert_eq!((row.charge.nano(), row.write_off.nano()), (charge, 0));
            assert!(row.hold.nano() >= 100 && row.price.is_some(), "{row:?}");
        }
    }
    assert_eq!(h.pots(&rich).await, (0, 10_000 - 3 * 3 * (60 + 100 + 130), 0, 0));
    assert_eq!(h.pots(&trial).await, (20, 260, 0, 0), "trial money first, in each call");
    assert_eq!(h.pots(&capped).await, (0, 1_000 - 3 * 60, 0, 0));
    assert_eq!(h.pots(&poor).await, (0, 250 - 3 * 60, 0, 0));
    let used = h.store.account(rich.account).await.expect("reading").expect("the account").used;
    assert_eq!(used.day.nano(), 3 * 3 * (60 + 100 + 130), "what was charged counts in the day");
    Arc::into_inner(h).expect("all tasks are done").close().await;
}

/// Keys and accounts with limits, many calls at one moment: what is granted is what one after the
/// other would be, and what ends below its hold leaves room for others.
pub async fn a_large_group_keeps_limits(h: House) {
    let day = |nano| NewLimits { day: Change::Set(Money::from_nano(nano)), ..NewLimits::default() };
    let c = h.customer(0, 10_000).await;
    h.store.change_account(c.account, day(1_500).into(), Default::default()).await.expect("asked").expect("limited");
    let by_day = Customer { key: h.key(c.account, None).await.id, ..c };
    h.store.change_key(by_day.key, day(320).into(), Default::default()).await.expect("asked").expect("limited");
    let capped = Customer { key: h.key(c.account, Some(450)).await.id, ..c };
    let customers = [capped, by_day, c];
    for expected in [[4, 3, 8], [2, 1, 3]] {
        let wishes = (0..12).flat_map(|_| customers.iter().enumerate());
        let asked: Vec<_> = wishes.map(|(who, customer)| (who, h.store.hold(h.wish(customer, 100)))).collect();
        let answers = join_all(asked.into_iter().map(|(who, hold)| async move { (who, hold.await) })).await;
        let mut granted: [Vec<CallId>; 3] = Default::default();
        for (who, answer) in answers {
            match answer {
                Ok(mut held) => {
                    held.durable().await.expect("durable");
                    granted[who].push(held.call);
                }
                Err(HoldRefused::Limit(_)) => {}
                Err(other) => panic!("{who}: {other}"),
            }
        }
        assert_eq!(granted.each_ref().map(Vec::len), expected);
        let closings = granted
            .iter()
            .zip(&customers)
            .flat_map(|(calls, customer)| calls.iter().map(move |call| (customer, *call)));
        let closings: Vec<_> = closings.map(|(customer, call)| h.store.close(h.ending(customer, call, 60))).collect();
        for closing in closings {
            assert!(closing.await.expect("closed").applied);
        }
    }
    h.close().await;
}

/// So many calls end at once that no group takes them all: every one is in the books, on its own
/// key.
pub async fn a_large_batch_is_stored_whole(h: House) {
    const KEYS: usize = 1_500;
    let c = h.customer(0, 10_000_000).await;
    let mut making = tokio::task::JoinSet::new();
    for n in 0..KEYS {
        let limits = Limits { total: Some(Money::from_nano(5_000)), ..Limits::default() };
        let new = NewKey {
            account: c.account,
            name: n.to_string(),
            expires_at: None,
            models: None,
            cidrs: None,
            limits,
            scope: Default::default(),
        };
        let (store, secret) = (h.store.clone(), format!("sk-{}", h.maker.call()));
        making.spawn(async move { store.create_key(new, &secret).await.expect("a key").id });
    }
    let keys = making.join_all().await;
    let mut holding = tokio::task::JoinSet::new();
    for (charge, key) in (1..).zip(&keys) {
        let customer = Customer { account: c.account, key: *key };
        let (store, wish) = (h.store.clone(), h.wish(&customer, 4_000));
        holding.spawn(async move {
            let mut held = store.hold(wish).await.expect("a hold");
            held.durable().await.expect("durable");
            (customer, held.call, charge)
        });
    }
    let held = holding.join_all().await;
    let ending: Vec<_> =
        held.iter().map(|(customer, call, charge)| h.store.close(h.ending(customer, *call, *charge))).collect();
    for closing in ending {
        assert!(closing.await.expect("closed").applied);
    }
    let total: i64 = (1..).take(KEYS).sum();
    assert_eq!(h.pots(&c).await, (0, 10_000_000 - total, 0, 0));
    let mut spent: Vec<i64> = h
        .store
        .keys(c.account)
        .await
        .expect("keys")
        .iter()
        .filter(|key| key.id != c.key)
        .map(|key| key.spent.nano())
        .collect();
    spent.sort_unstable();
    assert_eq!(spent, (1..).take(KEYS).collect::<Vec<i64>>(), "each key has its own");
    let page = UsagePage { before: None, limit: 10_000 };
    let rows = h.store.usage(Some(c.account), page).await.expect("reading");
    assert_eq!((rows.len(), rows.iter().map(|row| row.charge.nano()).sum::<i64>()), (KEYS, total));
    h.close().await;
}
