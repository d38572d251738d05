//! Wrong clocks: by +400 days and back, in a running process and across starts. What cannot be
//! undone waits until the time is certain; what was dated wrongly is put right.

use std::time::Duration;

use tollgate_catalog::Money;
use tollgate_store::{
    Change, ClockStanding, Credit, CreditKind, Hold, HoldRefused, LimitKind, NewLimits, Options, Pot, StoredResponse,
};

use crate::common::{Customer, House, idem, options, reply};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const WRONG: i64 = 400 * DAY;

/// A house in which a time is certain only after a day, and which has run for longer than that.
async fn careful(h: House) -> House {
    let url = h.place.url.clone();
    h.close().await;
    let h = House::open_with(&url, Options { clock_confirm: Duration::from_secs(86_400), ..options() }).await;
    h.clock.advance(26 * HOUR);
    h.store.beat().await.expect("a beat");
    assert_eq!(h.store.clock_state().state, ClockStanding::Right);
    h
}

/// 1,000 paid, 1,000 of trial credit for 30 days, at most 100 a day.
async fn customer(h: &House) -> Customer {
    let c = h.customer(0, 1_000).await;
    let credit = Credit {
        id: format!("gift {}", c.account),
        account: c.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: Money::from_nano(1_000),
        expires_at: Some(h.clock.now() + 30 * DAY),
        reason: "test".into(),
        actor: "tester".into(),
    };
    h.store.credit(credit).await.expect("trial credit");
    let day = NewLimits { day: Change::Set(Money::from_nano(100)), ..NewLimits::default() };
    h.store.change_key(c.key, day.into(), Default::default()).await.expect("limited");
    c
}

async fn spend(h: &House, c: &Customer, amount: i64) {
    let call = h.held(c, amount).await;
    h.store.close(h.ending(c, call, amount)).await.expect("closed");
}

/// How much more may be spent today: found out by asking.
async fn left_today(h: &House, c: &Customer) -> i64 {
    for amount in (1..=100).rev() {
        match h.hold(h.wish(c, amount)).await {
            Ok(held) => {
                h.store.close(h.ending(c, held.call, 0)).await.expect("given back");
                return amount;
            }
            Err(HoldRefused::Limit(reached)) => assert_eq!(reached.kind, LimitKind::KeyDay),
            Err(other) => panic!("{other:?}"),
        }
    }
    0
}

async fn lapsed(h: &House) -> u64 {
    h.store.sweep(h.clock.now()).await.expect("a sweep").lapsed
}

async fn credit_left(h: &House, c: &Customer) -> i64 {
    h.store.expiring(c.account).await.expect("read").iter().map(|one| one.available.nano()).sum()
}

pub async fn a_clock_that_jumps_takes_no_credit_and_moves_no_day(h: House) {
    let h = careful(h).await;
    let (c, other) = (customer(&h).await, customer(&h).await);
    let mut spent = 60;
    spend(&h, &c, 60).await;
    for wrong in [WRONG, -WRONG, 2 * HOUR] {
        h.clock.set_wrong(wrong);
        h.store.beat().await.expect("a beat");
        assert_eq!(left_today(&h, &c).await, 100 - spent, "the day goes on");
        spend(&h, &c, 10).await;
        spent += 10;
        assert_eq!(lapsed(&h).await, 0);
        assert_eq!((credit_left(&h, &c).await, credit_left(&h, &other).await), (1_000 - spent, 1_000));
        let state = h.store.clock_state();
        assert_eq!((state.state, state.wall_ms - state.now_ms), (ClockStanding::Refused, wrong));
        h.clock.set_wrong(0);
        h.store.beat().await.expect("a beat");
        let state = h.store.clock_state();
        assert_eq!((state.state, state.now_ms), (ClockStanding::Right, h.clock.now()));
        assert_eq!(left_today(&h, &c).await, 100 - spent, "{wrong}");
    }
    assert_eq!(h.store.clock_state().refusals, 3);
    h.clock.advance(DAY);
    assert_eq!(left_today(&h, &c).await, 100, "a new day");
    h.clock.advance(30 * DAY);
    assert_eq!(lapsed(&h).await, 2, "credit expires in its time");
    assert_eq!(h.pots(&c).await, (0, 1_000, 0, 0));
    let strict = h.store.verify_strictly().await.expect("audited").breaches;
    assert!(strict.is_empty(), "{strict:?}");
    h.close().await;
}

pub async fn a_start_under_a_wrong_clock_is_healed_by_the_next(h: House) {
    let h = careful(h).await;
    let c = customer(&h).await;
    spend(&h, &c, 60).await;
    h.clock.set_wrong(WRONG);
    let h = h.reopen().await;
    assert_eq!(h.store.clock_state().state, ClockStanding::Unconfirmed);
    spend(&h, &c, 50).await;
    let running = h.held(&c, 20).await;
    assert_eq!((lapsed(&h).await, credit_left(&h, &c).await), (0, 870));
    h.clock.set_wrong(0);
    let h = h.reopen().await;
    assert_eq!(h.store.clock_state().state, ClockStanding::Right);
    assert!(!h.store.close(h.ending(&c, running, 20)).await.is_ok_and(|closed| closed.applied), "the restart ended it");
    assert_eq!(left_today(&h, &c).await, 50, "what was spent under the wrong clock counts today");
    spend(&h, &c, 50).await;
    assert_eq!((lapsed(&h).await, credit_left(&h, &c).await), (0, 840));
    h.clock.advance(DAY);
    assert_eq!(left_today(&h, &c).await, 100, "a new day");
    let strict = h.store.verify_strictly().await.expect("audited").breaches;
    assert_eq!(
        strict.iter().map(|breach| breach.invariant).collect::<Vec<_>>(),
        ["I20"],
        "reported, strictly: {strict:?}"
    );
    h.clock.advance(30 * DAY);
    assert_eq!(lapsed(&h).await, 1);
    h.close().await;
}

pub async fn a_wrong_clock_put_right_while_running_is_followed(h: House) {
    let h = careful(h).await;
    let c = customer(&h).await;
    h.clock.set_wrong(WRONG);
    let h = h.reopen().await;
    let call = h.held(&c, 70).await;
    assert_eq!(left_today(&h, &c).await, 30);
    h.clock.set_wrong(0);
    h.store.beat().await.expect("a beat");
    assert_eq!(h.store.clock_state().now_ms, h.clock.now());
    assert_eq!(left_today(&h, &c).await, 30);
    h.store.close(h.ending(&c, call, 20)).await.expect("closed");
    assert_eq!(left_today(&h, &c).await, 80, "what the call gives back is given back to today");
    assert_eq!((lapsed(&h).await, credit_left(&h, &c).await), (0, 980));
    h.close().await;
}

/// Each account's time goes on by itself: not back to a clock that is right but a little behind,
/// nor from an entry of the clock that was ahead to an earlier one, when the time comes near it.
pub async fn a_clock_put_right_dates_no_account_back(h: House) {
    let (mine, other) = (h.customer(0, 1_000).await, h.customer(0, 1_000).await);
    h.clock.advance(20_000);
    spend(&h, &mine, 10).await;
    h.clock.set_wrong(2 * HOUR);
    let h = h.reopen().await;
    spend(&h, &other, 10).await;
    h.clock.set_wrong(-15_000);
    let h = h.reopen().await;
    // The time of the other has gone back, and with it that of all who have had nothing since.
    spend(&h, &h.customer(0, 1_000).await, 10).await;
    spend(&h, &mine, 10).await;
    for minutes in [90, 60] {
        h.clock.advance(minutes * 60_000);
        spend(&h, &other, 10).await;
        spend(&h, &mine, 10).await;
    }
    let found = h.store.verify().await.expect("audited").breaches;
    assert!(found.is_empty(), "{found:?}");
    h.close().await;
}

pub async fn credit_that_ended_while_off_lapses_when_it_is_certain(h: House) {
    let h = careful(h).await;
    let c = customer(&h).await;
    let h = h.reopen_after(WRONG).await;
    assert_eq!(h.store.clock_state().state, ClockStanding::Unconfirmed);
    spend(&h, &c, 60).await;
    assert_eq!((lapsed(&h).await, credit_left(&h, &c).await), (0, 940), "it may be the clock");
    h.clock.advance(DAY);
    assert_eq!((lapsed(&h).await, credit_left(&h, &c).await), (1, 0), "it was not");
    // Or an operator says so.
    let c = customer(&h).await;
    h.store.beat().await.expect("a beat");
    let h = h.reopen_after(WRONG).await;
    assert_eq!(lapsed(&h).await, 0);
    let accepted = h.store.accept_clock().await.expect("accepted");
    assert_eq!((accepted.state, accepted.sure_ms), (ClockStanding::Right, h.clock.now()));
    assert_eq!((lapsed(&h).await, credit_left(&h, &c).await), (1, 0));
    let strict = h.store.verify_strictly().await.expect("audited").breaches;
    assert!(strict.is_empty(), "{strict:?}");
    h.close().await;
}

pub async fn nothing_is_forgotten_by_a_time_that_is_not_certain(h: House) {
    let h = careful(h).await;
    let c = h.customer(0, 1_000).await;
    let wish = |h: &House| Hold { idem: Some(idem(1, 1)), ..h.wish(&c, 100) };
    let call = h.hold(wish(&h)).await.expect("a hold").call;
    let mut close = h.ending(&c, call, 60);
    close.reply = Some(reply("stored"));
    h.store.close(close).await.expect("closed");
    h.clock.set_wrong(WRONG);
    let h = h.reopen().await;
    // The steady clock of a process begins where the wall clock stands.
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("a sweep").forgotten, 0);
    assert!(matches!(h.hold(wish(&h)).await, Err(HoldRefused::IdemDone { call: first, .. }) if first == call));
    let stored = StoredResponse {
        id: "resp_1".into(),
        previous: None,
        conversation: None,
        created_at: h.clock.now() - WRONG,
        expires_at: h.clock.now() - WRONG + 30 * DAY,
        input: "[]".into(),
        object: "{}".into(),
    };
    assert!(stored.expires_at > h.store.clock().sure(), "responses are erased by the time that is certain");
    h.clock.set_wrong(0);
    let h = h.reopen().await;
    h.clock.advance(25 * HOUR);
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("a sweep").forgotten, 1);
    h.close().await;
}
