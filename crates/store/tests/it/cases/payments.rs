//! Orders and codes: what is paid is credited once, whoever hears of it how often.

use tollgate_catalog::Money;
use tollgate_store::{
    AccountId, Attribution, CodeRefused, NewCodeBatch, NewOrder, OrderIdem, OrderLimits, OrderMade, OrderSettled,
    OrderState, OrderTruth, PayEvent, PayOrder, PaymentStanding, Pot, hash_secret,
};

use crate::common::House;

const LIMITS: OrderLimits = OrderLimits { open: 3, hour: 5 };
const USD: i64 = 1_000_000_000;

fn wish(h: &House, account: AccountId, idem: Option<u8>) -> NewOrder {
    let now = h.clock.now();
    NewOrder {
        account,
        provider: "stripe".into(),
        amount_minor: 500,
        currency: "usd".into(),
        credit: Money::from_nano(5 * USD),
        live: false,
        expires_at: now + 3_600_000,
        next_look_at: now + 60_000,
        actor: "test".into(),
        idem: idem.map(|n| OrderIdem { key_hash: [n; 32], fingerprint: [7; 32] }),
    }
}

async fn order(h: &House, account: AccountId) -> PayOrder {
    let limits = OrderLimits { open: 10_000, hour: 10_000 };
    match h.store.create_order(wish(h, account, None), limits).await.expect("asked") {
        OrderMade::Made(order) => *order,
        other => panic!("{other:?}"),
    }
}

/// As the order is now.
async fn settle(h: &House, order: &PayOrder, said: &OrderTruth) -> OrderSettled {
    let seen = h.store.order(order.id).await.expect("asked").expect("there");
    h.store.settle_order(&seen, said).await.expect("settled").expect("nobody else changes it")
}

fn truth(order: &PayOrder, standing: PaymentStanding) -> OrderTruth {
    OrderTruth {
        session: format!("cs_{}", order.id),
        reference: order.id.to_string(),
        amount_minor: order.amount_minor,
        currency: order.currency.clone(),
        live: false,
        payment: Some(format!("pi_{}", order.id)),
        standing,
        refunded_minor: 0,
        disputed_minor: 0,
    }
}

pub async fn orders_of_an_account_have_a_number(h: House) {
    let c = h.customer(0, 0).await;
    let made = |outcome: &OrderMade| matches!(outcome, OrderMade::Made(_));
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (store, wish) = (h.store.clone(), wish(&h, c.account, None));
        asked.spawn(async move { store.create_order(wish, LIMITS).await.expect("asked") });
    }
    let outcomes = asked.join_all().await;
    assert_eq!(outcomes.iter().filter(|one| made(one)).count(), 3, "open at once");
    h.clock.advance(3_600_001 - 60_000);
    h.clock.advance(60_000);
    // Those are over: they count no more, whatever their rows say.
    let again = h.store.create_order(wish(&h, c.account, Some(1)), LIMITS).await.expect("asked");
    assert!(made(&again), "{again:?}");
    let same = h.store.create_order(wish(&h, c.account, Some(1)), LIMITS).await.expect("asked");
    assert!(matches!(same, OrderMade::Before(_)), "{same:?}");
    let mut other = wish(&h, c.account, Some(1));
    other.idem = Some(OrderIdem { key_hash: [1; 32], fingerprint: [8; 32] });
    assert!(matches!(h.store.create_order(other, LIMITS).await.expect("asked"), OrderMade::OtherWish));
    h.close().await;
}

/// The same news, at the same moment, many times.
pub async fn an_order_is_credited_once(h: House) {
    let c = h.customer(0, 0).await;
    let one = order(&h, c.account).await;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (store, said, one) = (h.store.clone(), truth(&one, PaymentStanding::Paid), one.clone());
        asked.spawn(async move { store.settle_order(&one, &said).await.expect("settled").is_some_and(|s| s.credited) });
    }
    let credited = asked.join_all().await.into_iter().filter(|credited| *credited).count();
    assert_eq!(credited, 1);
    let after = h.store.order(one.id).await.expect("asked").expect("there");
    assert_eq!(after.state, OrderState::Credited);
    let account = h.store.account(c.account).await.expect("asked").expect("there");
    assert_eq!((account.paid_available.nano(), account.topped_up), (5 * USD, true));
    let found = h.store.order_of("stripe", &format!("pi_{}", one.id)).await.expect("asked");
    assert_eq!(found.map(|order| order.id), Some(one.id));
    h.close().await;
}

/// Refunds take back what is there; the rest is owed, and taken when money comes.
pub async fn what_was_refunded_is_taken_back(h: House) {
    let c = h.customer(0, 0).await;
    let (first, second) = (order(&h, c.account).await, order(&h, c.account).await);
    settle(&h, &first, &truth(&first, PaymentStanding::Paid)).await;
    let spent = h.wish(&c, 2 * USD);
    assert!(h.hold(spent).await.is_ok());
    let mut said = truth(&first, PaymentStanding::Paid);
    said.refunded_minor = 500;
    let settled = settle(&h, &first, &said).await;
    assert_eq!((settled.order.state, settled.order.owed.nano()), (OrderState::Refunded, 2 * USD));
    assert_eq!(settled.account.paid_available.nano(), 0);
    settle(&h, &second, &truth(&second, PaymentStanding::Paid)).await;
    let settled = settle(&h, &first, &said).await;
    assert_eq!((settled.order.owed.nano(), settled.account.paid_available.nano()), (0, 3 * USD));
    let forgiven = h.store.forgive_order(first.id, Attribution::by("test", "test")).await.expect("asked");
    assert_eq!(forgiven.forgiven.nano(), 0, "nothing is owed");
    h.store.sweep(i64::MAX / 2).await.expect("swept");
    h.close().await;
}

pub async fn news_of_payments_are_one_workers_at_a_time(h: House) {
    let now = h.clock.now();
    let event = |n: u8| PayEvent {
        id: format!("evt_{n}"),
        provider: "stripe".into(),
        kind: "x".into(),
        order: None,
        subject: Some("cs".into()),
        received_at: now,
        tries: 0,
        next_at: now,
    };
    assert!(h.store.note_pay_event(event(1)).await.expect("written"));
    assert!(!h.store.note_pay_event(event(1)).await.expect("written"), "heard before");
    assert!(h.store.note_pay_event(event(2)).await.expect("written"));
    let mut taken = Vec::new();
    let (one, two) = tokio::join!(h.store.take_pay_events(60_000, 10), h.store.take_pay_events(60_000, 10));
    taken.extend(one.expect("asked"));
    taken.extend(two.expect("asked"));
    assert_eq!(taken.len(), 2, "{taken:?}");
    h.store.end_pay_event(&taken[0], "done", None).await.expect("written");
    h.store.end_pay_event(&taken[1], "later", Some(now + 5)).await.expect("written");
    h.clock.advance(60_001);
    let again = h.store.take_pay_events(60_000, 10).await.expect("asked");
    assert_eq!(again.iter().map(|event| &event.id).collect::<Vec<_>>(), [&taken[1].id]);
    h.store.forget_pay_events(h.clock.now() + 1).await.expect("forgotten");
    assert!(h.store.note_pay_event(event(3)).await.expect("written"));
    h.close().await;
}

fn batch(codes: &[&str], per_account: u32, ends_at: Option<i64>) -> NewCodeBatch {
    NewCodeBatch {
        amount: Money::from_nano(3 * USD),
        pot: Pot::Paid,
        per_account,
        ends_at,
        note: "a fair".into(),
        actor: "test".into(),
        reason: "test".into(),
        hashes: codes.iter().map(|code| hash_secret(code)).collect(),
    }
}

/// Two hundred at the same moment, of several accounts: one credit.
pub async fn a_code_is_good_once(h: House) {
    let (c, d) = (h.customer(0, 0).await, h.customer(0, 0).await);
    h.store.create_codes(batch(&["a", "b", "c"], 1, None)).await.expect("made");
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..200 {
        let (store, account) = (h.store.clone(), if n % 2 == 0 { c.account } else { d.account });
        asked
            .spawn(async move { store.redeem(hash_secret("a"), account, "test".into()).await.expect("asked").is_ok() });
    }
    assert_eq!(asked.join_all().await.into_iter().filter(|good| *good).count(), 1);
    let mut sum = 0;
    for account in [c.account, d.account] {
        sum += h.store.account(account).await.expect("asked").expect("there").paid_available.nano();
    }
    assert_eq!(sum, 3 * USD);
    let mine = if h.store.account(c.account).await.expect("asked").expect("there").topped_up { &c } else { &d };
    let again = h.store.redeem(hash_secret("a"), mine.account, "test".into()).await.expect("asked");
    assert_eq!(again.err(), Some(CodeRefused::Before));
    let more = h.store.redeem(hash_secret("b"), mine.account, "test".into()).await.expect("asked");
    assert_eq!(more.err(), Some(CodeRefused::Enough));
    let none = h.store.redeem(hash_secret("z"), mine.account, "test".into()).await.expect("asked");
    assert_eq!(none.err(), Some(CodeRefused::Unknown));
    h.close().await;
}

pub async fn codes_end_and_are_revoked(h: House) {
    let c = h.customer(0, 0).await;
    let ends = h.clock.now() + 1_000;
    h.store.create_codes(batch(&["late"], 1, Some(ends))).await.expect("made");
    let gone = h.store.create_codes(batch(&["gone", "more"], 9, None)).await.expect("made");
    let done = || Attribution::by("test", "lost");
    let revoked = h.store.revoke_codes(gone.id, done()).await.expect("asked").expect("there");
    let first = revoked.revoked_at;
    assert!(first.is_some());
    h.clock.advance(2_000);
    let twice = h.store.revoke_codes(gone.id, done()).await.expect("asked").expect("there");
    assert_eq!(twice.revoked_at, first, "revoking twice keeps the first time");
    for code in ["late", "gone"] {
        let refused = h.store.redeem(hash_secret(code), c.account, "test".into()).await.expect("asked");
        assert_eq!(refused.err(), Some(CodeRefused::Unknown), "{code}");
    }
    let listed = h.store.code_batches(None, 10).await.expect("listed");
    assert_eq!(listed.iter().map(|one| (one.count, one.used)).collect::<Vec<_>>(), [(2, 0), (1, 0)]);
    h.close().await;
}
