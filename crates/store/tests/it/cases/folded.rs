//! Time that is over, added up once more: no answer changes by it, at no step, after no crash and
//! while calls end; and what is changed in them by hand is found.

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::Value;
use tollgate_store::{CallId, CreditKind, Hold, NewAccount, Pot, StoreError, SumAsk, SumViewer};

use crate::common::{Customer, House};
use crate::hand::Hand;

const DAY: i64 = 86_400_000;

/// A call that began at a time and ends now.
async fn call_at(h: &House, c: &Customer, number: u8, at: i64, charge: i64) -> CallId {
    let mut id = [number; 16];
    id[..6].copy_from_slice(&at.to_be_bytes()[2..]);
    let call = CallId(id);
    h.hold(Hold { call, ..h.wish(c, 100) }).await.expect("a hold");
    let mut close = h.ending(c, call, charge);
    close.row.model = format!("m{}", number % 3);
    close.row.provider = (!number.is_multiple_of(5)).then(|| format!("p{}", number % 2));
    h.store.close(close).await.expect("closed");
    call
}

fn began(h: &House, n: u8) -> i64 {
    h.clock.now() - 5 * DAY + i64::from(n) * 7_127_000
}

/// Two accounts, one of them in a group, with calls of five days.
async fn busy(h: &House) -> [Customer; 2] {
    let new = NewAccount { name: "grouped".into(), groups: vec!["vip".into()], ..NewAccount::default() };
    let account = h.store.create_account(new).await.expect("an account").id;
    let one = Customer { account, key: h.key(account, None).await.id };
    h.credit(&one, "start", CreditKind::TopUp, Pot::Paid, 100_000).await.expect("credit");
    let customers = [one, h.customer(0, 100_000).await];
    for n in 0..60u8 {
        // In every part of the day, and in each of the days.
        let at = began(h, n);
        call_at(h, &customers[usize::from(n % 2)], n, at, 1 + i64::from(n)).await;
    }
    customers
}

/// Every kind of question, in zones whose days begin at different quarters.
fn questions(h: &House, c: &Customer) -> Vec<SumAsk> {
    let text = |text: &str| Some(text.to_owned());
    let day = h.clock.now().div_euclid(DAY) * DAY;
    let all = [
        "day",
        "hour",
        "week,account",
        "account",
        "key",
        "group",
        "model",
        "route,ending",
        "day,key",
        "hour,account,group",
        "month,model",
    ];
    let mut asked = Vec::new();
    for tz in ["UTC", "Asia/Kathmandu", "Australia/Lord_Howe"] {
        for by in all {
            let ask = SumAsk {
                from: Some((day - 7 * DAY + 4_500_000).to_string()),
                to: Some((day + 2 * DAY).to_string()),
                tz: text(tz),
                by: text(by),
                limit: Some(1_000),
                ..SumAsk::default()
            };
            asked.push(SumAsk { key: Some(c.key.to_string()), ..ask.clone() });
            asked.push(SumAsk { account: Some(c.account.to_string()), ..ask.clone() });
            asked.push(SumAsk { model: text("m1"), ..ask.clone() });
            asked.push(ask);
        }
    }
    asked
}

async fn answers(h: &House, asked: &[SumAsk]) -> Vec<Value> {
    let mut all = Vec::new();
    for ask in asked {
        let query = ask.checked(SumViewer::Operator, h.clock.now()).unwrap_or_else(|wrong| panic!("{ask:?}: {wrong}"));
        all.push(h.store.usage_sums(&query).await.unwrap_or_else(|error| panic!("{ask:?}: {error}")));
    }
    all
}

fn same(found: &[Value], expected: &[Value], asked: &[SumAsk], when: &str) {
    for ((found, expected), ask) in found.iter().zip(expected).zip(asked) {
        assert_eq!(found, expected, "{when}: {ask:?}");
    }
}

async fn breaches(h: &House) -> Vec<String> {
    let report = h.store.verify().await.expect("the audit runs");
    report.breaches.iter().map(|breach| format!("{} {:?}", breach.invariant, breach.rows)).collect()
}

pub async fn no_answer_changes_when_days_are_folded(h: House) {
    let customers = busy(&h).await;
    let asked = questions(&h, &customers[0]);
    let before = answers(&h, &asked).await;
    assert_eq!(before.last().expect("an answer")["totals"]["requests"], 60);
    let mut steps = 0;
    while h.store.fold_sums().await.expect("a step") {
        steps += 1;
        // A third of the questions after each step, and all of them at the end.
        let third = |n: &usize| (n + steps).is_multiple_of(3);
        let some: Vec<SumAsk> = (0..asked.len()).filter(third).map(|n| asked[n].clone()).collect();
        let expected: Vec<Value> = (0..asked.len()).filter(third).map(|n| before[n].clone()).collect();
        same(&answers(&h, &some).await, &expected, &some, "on the way");
        assert_eq!(breaches(&h).await, Vec::<String>::new());
        if h.place.url == "sqlite" {
            // Killed between two steps.
            let copy = h.crashed_copy().await;
            same(&answers(&copy, &asked).await, &before, &asked, "after a crash");
            if steps % 9 == 0 {
                while copy.store.fold_sums().await.expect("a step") {}
                same(&answers(&copy, &asked).await, &before, &asked, "folded after a crash");
                assert_eq!(breaches(&copy).await, Vec::<String>::new());
            }
            copy.close().await;
        }
        assert!(steps < 100, "it comes to an end");
    }
    let (least, most) = if h.place.url == "sqlite" {
        // In parts of twelve sums.
        (20, 80)
    } else {
        // Each is packed in a step of its own. And once for each day of two zones, one of which may
        // have changed its clocks.
        (2 * 5 + 2 * 5, 2 * 8 + 3 * 9)
    };
    same(&answers(&h, &asked).await, &before, &asked, "folded");
    assert!((least..=most).contains(&steps), "each day, and once to say which are over: {steps}");

    // A call that ended late and a refund, both of folded days.
    let late = call_at(&h, &customers[1], 200, h.clock.now() - 3 * DAY, 50).await;
    h.credit(&customers[1], "sorry", CreditKind::Refund { call: late }, Pot::Paid, 20).await.expect("refunded");
    let after = answers(&h, &asked).await;
    let total = |all: &[Value], name: &str| all.last().expect("an answer")["totals"][name].as_i64().expect("a number");
    assert_eq!(total(&after, "requests"), 61);
    assert_eq!(total(&after, "charge_nano_usd"), total(&before, "charge_nano_usd") + 50);
    assert_eq!(total(&after, "refunded_nano_usd"), 20);
    assert_eq!(breaches(&h).await, Vec::<String>::new());
    // Steps that are given up on the way have done all or nothing.
    for moments in 0..6u64 {
        let step = h.store.fold_sums();
        let _ = tokio::time::timeout(std::time::Duration::from_millis(moments), step).await;
        same(&answers(&h, &asked).await, &after, &asked, "given up");
    }
    while h.store.fold_sums().await.expect("a step") {}
    same(&answers(&h, &asked).await, &after, &asked, "folded again");
    // After another day the one that was today is folded too.
    h.clock.advance(2 * DAY);
    while h.store.fold_sums().await.expect("a step") {}
    same(&answers(&h, &asked).await, &after, &asked, "a day later");
    damaged(&h).await;
    let h = h.reopen().await;
    same(&answers(&h, &asked).await, &after, &asked, "after a restart");
    h.close().await;
}

/// Whatever is changed by hand in what was folded is found, and not again once it is undone.
async fn damaged(h: &House) {
    assert_eq!(breaches(h).await, Vec::<String>::new());
    let hand = Hand::of(h).await;
    for (damage, undo) in [
        ("UPDATE usage_account_sum SET charge = charge + 1", "UPDATE usage_account_sum SET charge = charge - 1"),
        (
            "UPDATE usage_account_sum SET seconds = seconds + 1 WHERE width = 24",
            "UPDATE usage_account_sum SET seconds = seconds - 1 WHERE width = 24",
        ),
        (
            "UPDATE usage_account_sum SET seconds = seconds + 1 WHERE width = 96 AND shift = 0",
            "UPDATE usage_account_sum SET seconds = seconds - 1 WHERE width = 96 AND shift = 0",
        ),
        (
            "UPDATE usage_account_sum SET quarter = quarter + 96000",
            "UPDATE usage_account_sum SET quarter = quarter - 96000",
        ),
        (
            "UPDATE usage_account_sum SET quarter = quarter + 1 WHERE width = 96",
            "UPDATE usage_account_sum SET quarter = quarter - 1 WHERE width = 96",
        ),
        (
            "UPDATE usage_house_sum SET requests = requests + 1 WHERE width = 1",
            "UPDATE usage_house_sum SET requests = requests - 1 WHERE width = 1",
        ),
        (
            "UPDATE usage_house_sum SET cost = cost + 1 WHERE width = 4",
            "UPDATE usage_house_sum SET cost = cost - 1 WHERE width = 4",
        ),
        (
            "UPDATE usage_house_sum SET model = 'y' || model WHERE width = 96",
            "UPDATE usage_house_sum SET model = substr(model, 2) WHERE width = 96",
        ),
        ("UPDATE usage_house_sum SET width = width + 2", "UPDATE usage_house_sum SET width = width - 2"),
        ("UPDATE usage_day_packed SET model = 'y' || model", "UPDATE usage_day_packed SET model = substr(model, 2)"),
        ("UPDATE usage_day_packed SET day = day + 1000", "UPDATE usage_day_packed SET day = day - 1000"),
        (
            "UPDATE usage_day_packed SET quarters = CAST(quarters || x'05' AS BLOB)",
            "UPDATE usage_day_packed SET quarters = substr(quarters, 1, length(quarters) - 1)",
        ),
        // Of days of zones, which there are on PostgreSQL.
        (
            "UPDATE usage_account_sum SET refunded = refunded + 1 WHERE shift = 23",
            "UPDATE usage_account_sum SET refunded = refunded - 1 WHERE shift = 23",
        ),
    ] {
        if h.place.url == "sqlite" && damage.contains("shift = 23") {
            continue;
        }
        hand.change(damage).await.unwrap_or_else(|error| panic!("{damage}: {error}"));
        let found = breaches(h).await;
        assert!(!found.is_empty() && found.iter().all(|one| one.starts_with("I21")), "{damage}: {found:?}");
        hand.change(undo).await.unwrap_or_else(|error| panic!("{undo}: {error}"));
        assert_eq!(breaches(h).await, Vec::<String>::new(), "{undo}");
    }
}

/// Calls of a day that is folded end while it is folded and asked for.
pub async fn answers_are_exact_while_calls_end(h: House) {
    let c = h.customer(0, 100_000).await;
    let at = h.clock.now() - 3 * DAY;
    call_at(&h, &c, 255, at, 1).await;
    while h.store.fold_sums().await.expect("a step") {}
    let day = at.div_euclid(DAY) * DAY;
    let kinds = [
        ("day", "UTC"),
        ("day,account", "UTC"),
        ("model", "UTC"),
        ("key", "UTC"),
        ("day,key", "Asia/Kathmandu"),
        ("hour,account", "Asia/Kathmandu"),
    ];
    let asks = kinds.map(|(by, tz)| SumAsk {
        from: Some((day - DAY).to_string()),
        to: Some((day + 2 * DAY).to_string()),
        by: Some(by.to_owned()),
        tz: Some(tz.to_owned()),
        ..SumAsk::default()
    });
    let (begun, ended) = (AtomicI64::new(1), AtomicI64::new(1));
    let calls = async {
        for n in 0..80u8 {
            begun.fetch_add(1, Ordering::SeqCst);
            call_at(&h, &c, n, at + i64::from(n) * 1_000_000, 1).await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
    };
    let folds = async {
        while ended.load(Ordering::SeqCst) < 81 {
            h.store.fold_sums().await.expect("a step");
            tokio::task::yield_now().await;
        }
    };
    let asking = async {
        while ended.load(Ordering::SeqCst) < 81 {
            for ask in &asks {
                let least = ended.load(Ordering::SeqCst);
                let query = ask.checked(SumViewer::Operator, h.clock.now()).expect("a question");
                let answer = h.store.usage_sums(&query).await.expect("added up");
                let most = begun.load(Ordering::SeqCst);
                let charged = answer["totals"]["charge_nano_usd"].as_i64().expect("a number");
                assert!((least..=most).contains(&charged), "{least} <= {charged} <= {most}: {ask:?}");
            }
        }
    };
    tokio::join!(calls, folds, asking);
    while h.store.fold_sums().await.expect("a step") {}
    for ask in &asks {
        let query = ask.checked(SumViewer::Operator, h.clock.now()).expect("a question");
        assert_eq!(h.store.usage_sums(&query).await.expect("added up")["totals"]["charge_nano_usd"], 81);
    }
    h.close().await;
}

/// A question that would read more than is good for others is refused, and says what would not.
pub async fn a_question_that_reads_too_much_is_refused(h: House) {
    let customers = busy(&h).await;
    while h.store.fold_sums().await.expect("a step") {}
    let day = h.clock.now().div_euclid(DAY) * DAY;
    let ask = |by: &str, tz: &str| SumAsk {
        from: Some((day - 4 * DAY).to_string()),
        to: Some((day - DAY).to_string()),
        tz: Some(tz.to_owned()),
        by: Some(by.to_owned()),
        ..SumAsk::default()
    };
    let answer = async |ask: SumAsk, most| {
        let query = ask.checked(SumViewer::Operator, h.clock.now()).expect("a question");
        h.store.usage_sums(&query.reading_at_most(most)).await
    };
    // Some 36 quarters with a call each; two accounts with three models and more routes by day.
    let far = answer(ask("day,key", "Asia/Kathmandu"), 20).await;
    let Err(StoreError::Conflict(why)) = far else { panic!("{far:?}") };
    assert!(why.contains("more than 20 sums") && why.contains("`account`") && why.contains("days of UTC"), "{why}");
    let again = h.place.url != "sqlite";
    assert_eq!(why.contains("again in some minutes"), again, "days of a zone are made on PostgreSQL: {why}");
    // A packed day counts as three, also where it has one quarter.
    let enough = answer(ask("day,key", "Asia/Kathmandu"), 150).await.expect("added up");
    let asked: Vec<u8> = (0..60).filter(|n| (day - 4 * DAY..day - DAY).contains(&began(&h, *n))).collect();
    assert_eq!(enough["totals"]["requests"], asked.len());
    // The same of one account, or of the house by days of UTC, reads less.
    let one = SumAsk { account: Some(customers[0].account.to_string()), ..ask("day,key", "Asia/Kathmandu") };
    assert_eq!(
        answer(one, 20).await.expect("added up")["totals"]["requests"],
        asked.iter().filter(|n| *n % 2 == 0).count()
    );
    assert_eq!(answer(ask("month", "UTC"), 30).await.expect("added up")["totals"]["requests"], asked.len());
    h.close().await;
}
