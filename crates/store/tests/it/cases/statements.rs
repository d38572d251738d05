//! Statements: whatever happened, every month of every zone adds up, begins where the one before it
//! ended, and the last one ends with what the account has.

use tollgate_catalog::Money;
use tollgate_store::{Credit, CreditKind, Pot, StatementSpan};

use crate::common::House;

const ZONES: [&str; 5] = ["UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", "Europe/Berlin"];

/// A random history over several months.
pub async fn statements_add_up(h: House) {
    let c = h.customer(0, 0).await;
    let mut seed = 42u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let credit = |id: u64, kind: CreditKind, pot: Pot, amount: i64| Credit {
        id: format!("s{id}"),
        account: c.account,
        kind,
        pot,
        amount: Money::from_nano(amount),
        expires_at: None,
        reason: "test".into(),
        actor: "test".into(),
    };
    h.store.credit(credit(0, CreditKind::TopUp, Pot::Paid, 1_000_000)).await.expect("credited");
    let began = h.clock.now();
    let (mut charged, mut charges) = (Vec::new(), 0i64);
    for step in 1..300u64 {
        h.clock.advance(i64::try_from(random(86_400_000)).expect("small"));
        let amount = 1 + i64::try_from(random(2_000)).expect("small");
        let pot = if random(3) == 0 { Pot::Trial } else { Pot::Paid };
        match random(8) {
            0 => drop(h.store.credit(credit(step, CreditKind::TopUp, pot, amount)).await.expect("credited")),
            1 => {
                // What is not there is not taken.
                let _ = h.store.credit(credit(step, CreditKind::Adjust, Pot::Paid, -amount)).await;
            }
            2 if !charged.is_empty() => {
                let at = usize::try_from(random(charged.len() as u64)).expect("small");
                let (call, amount) = charged.swap_remove(at);
                h.store.credit(credit(step, CreditKind::Refund { call }, Pot::Paid, amount)).await.expect("refunded");
            }
            _ => {
                let call = h.held(&c, 2 * amount).await;
                // Longer than its quarter of an hour, and now and then into another month.
                h.clock.advance(i64::try_from(random(7_200_000)).expect("small"));
                let charge = if random(5) == 0 { 0 } else { amount };
                h.store.close(h.ending(&c, call, charge)).await.expect("closed");
                if charge > 0 {
                    charges += charge;
                    charged.push((call, charge));
                }
            }
        }
    }
    let now = h.clock.now();
    let (trial, paid, trial_held, paid_held) = h.pots(&c).await;
    let has = trial + paid + trial_held + paid_held;
    for zone in ZONES {
        let (mut before, mut sum, mut months, mut gifts) = (0, 0, 0, 0);
        for month in months_between(began, now) {
            let span = StatementSpan::read(&month, Some(zone)).expect("a month");
            let over = span.to <= now;
            let s = h.store.statement(c.account, span).await.expect("asked").expect("there");
            assert_eq!((s.opening.nano(), s.is_final), (before, over), "{zone} {month}");
            let by_day: i64 = s.charges_by_day.iter().map(|line| line.charge.nano()).sum();
            assert_eq!(by_day, s.charges.nano(), "{zone} {month}");
            assert!(s.charges_by_day.iter().all(|line| line.day.starts_with(&month)), "{zone} {:?}", s.charges_by_day);
            let (mut listed, mut expected) = (0, 0);
            for event in &s.events {
                listed += event.trial.nano() + event.paid.nano();
            }
            expected += s.top_ups.nano() + s.trial_credits.nano() + s.corrections.nano() + s.refunds.nano();
            assert_eq!(listed, expected, "{zone} {month}");
            // What nobody paid is not money that came in.
            let of = |kind: &'static str| s.events.iter().filter(move |event| event.kind == kind);
            assert_eq!(of("top_up").map(|event| event.paid.nano()).sum::<i64>(), s.top_ups.nano(), "{zone} {month}");
            let given: i64 = of("trial_credit").map(|event| event.trial.nano()).sum();
            assert_eq!(given, s.trial_credits.nano(), "{zone} {month}");
            gifts += given;
            before = s.closing.nano();
            sum += s.charges.nano();
            months += 1;
            let again = StatementSpan::read(&month, Some(zone)).expect("a month");
            let again = h.store.statement(c.account, again).await.expect("asked").expect("there");
            assert_eq!(again.content_hash, s.content_hash);
        }
        assert!(months > 3 && gifts > 0);
        assert_eq!((before, sum), (has, charges), "{zone}");
    }
    h.close().await;
}

/// A month before the first and one after the last, for zones on either side.
fn months_between(from: i64, to: i64) -> Vec<String> {
    let month = |ms: i64| tollgate_store::date(ms)[..7].to_owned();
    let day = 86_400_000;
    let mut all: Vec<String> = (from / day - 2..=to / day + 2).map(|number| month(number * day)).collect();
    all.dedup();
    all
}
