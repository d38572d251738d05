//! Sums of the usage log: written with its rows, added once where rows are older than they are, and
//! the same as the ledger in any time zone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;
use tollgate_catalog::Money;
use tollgate_store::{
    AccountId, CallId, CreditKind, Ending, ExportPage, Hold, NewAccount, Pot, StoreError, SumAsk, SumViewer,
    UsageFacts, UsageRow,
};

use crate::common::{Customer, House};
use crate::hand::Hand;

const QUARTER: i64 = 900_000;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// All that began on the day of the test's clock and the one after.
fn days(h: &House, by: &str) -> SumAsk {
    let from = h.clock.now().div_euclid(86_400_000) * 86_400_000;
    let to = from + 2 * 86_400_000;
    SumAsk { from: Some(from.to_string()), to: Some(to.to_string()), by: text(by), ..SumAsk::default() }
}

async fn sums(h: &House, viewer: SumViewer, ask: &SumAsk) -> Result<Value, StoreError> {
    let query = ask.checked(viewer, h.clock.now()).unwrap_or_else(|wrong| panic!("{ask:?}: {wrong}"));
    h.store.usage_sums(&query).await
}

async fn all(h: &House, ask: &SumAsk) -> Value {
    sums(h, SumViewer::Operator, ask).await.expect("added up")
}

/// One call with everything said of it.
async fn call(h: &House, c: &Customer, charge: i64, change: impl FnOnce(&mut UsageFacts)) -> CallId {
    let call = h.held(c, 500).await;
    let mut close = h.ending(c, call, charge);
    change(&mut close.row);
    assert!(h.store.close(close).await.expect("closed").applied);
    call
}

/// What a row is of, and what it comes to.
fn shown(report: &Value, parts: &[&str]) -> Vec<(Vec<String>, i64, i64)> {
    let rows = report["data"].as_array().expect("rows");
    let row = |row: &Value| {
        let of = parts.iter().map(|part| row[*part].as_str().unwrap_or("?").to_owned()).collect();
        (of, row["requests"].as_i64().expect("a number"), row["charge_nano_usd"].as_i64().expect("a number"))
    };
    rows.iter().map(row).collect()
}

fn of(parts: &[&str], requests: i64, charge: i64) -> (Vec<String>, i64, i64) {
    (parts.iter().map(|part| (*part).to_owned()).collect(), requests, charge)
}

pub async fn usage_is_added_up_with_its_rows(h: House) {
    let new = NewAccount { name: "grouped".into(), groups: vec!["vip".into()], ..NewAccount::default() };
    let account = h.store.create_account(new).await.expect("an account").id;
    let one = Customer { account, key: h.key(account, None).await.id };
    h.credit(&one, "start", CreditKind::TopUp, Pot::Paid, 10_000).await.expect("credit");
    let other = h.customer(0, 10_000).await;
    let refunded = call(&h, &one, 100, |row| row.first_byte_ms = Some(30)).await;
    call(&h, &one, 50, |row| (row.model, row.provider) = ("dear".into(), text("second"))).await;
    call(&h, &one, 0, |row| row.provider = None).await;
    call(&h, &other, 7, |row| (row.cost, row.estimated) = (None, true)).await;
    h.credit(&one, "sorry", CreditKind::Refund { call: refunded }, Pot::Paid, 40).await.expect("refunded");
    h.store.note_refusal(h.maker.call(), one.account, "insufficient_balance".into(), h.facts(&one, 0));

    let report = all(&h, &days(&h, "model")).await;
    assert_eq!(shown(&report, &["model"]), [of(&["dear"], 1, 50), of(&["test"], 4, 107)]);
    let totals = &report["totals"];
    let number = |name: &str| totals[name].as_i64().expect(name);
    assert_eq!((number("requests"), number("charge_nano_usd"), number("refunded_nano_usd")), (5, 157, 40));
    assert_eq!((number("net_nano_usd"), number("cost_nano_usd"), number("cost_unknown")), (117, 75, 1));
    assert_eq!((number("estimated"), number("input_tokens"), number("mean_first_byte_ms")), (1, 157_000, 15));
    assert_eq!((&totals["margin_nano_usd"], &totals["usage"]["input"]), (&Value::Null, &157_000.into()));

    let route = all(&h, &days(&h, "route,ending")).await;
    let parts = ["provider", "upstream_model", "ending"];
    let refused = of(&["sim", "test-1", "refused"], 1, 0);
    let answered = of(&["sim", "test-1", "answered"], 2, 107);
    assert_eq!(
        shown(&route, &parts),
        [of(&["", "test-1", "upstream_fault"], 1, 0), of(&["second", "test-1", "answered"], 1, 50), answered, refused]
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
    let groups = all(&h, &days(&h, "group")).await;
    assert_eq!(shown(&groups, &["groups"]), [of(&["default"], 1, 7), of(&["vip"], 4, 150)]);
    let accounts = all(&h, &SumAsk { top: Some(1), ..days(&h, "account") }).await;
    assert_eq!(shown(&accounts, &["account_id"]), [of(&[&one.account.to_string()], 4, 150)]);
    assert_eq!((&accounts["rest"]["requests"], &accounts["rest"]["charge_nano_usd"]), (&1.into(), &7.into()));
    for (narrow, requests) in [
        (SumAsk { model: text("dear"), ..days(&h, "key") }, 1),
        (SumAsk { key: Some(one.key.to_string()), ..days(&h, "key") }, 4),
        (SumAsk { account: Some(other.account.to_string()), ..days(&h, "key") }, 1),
        (SumAsk { ending: text("answered"), ..days(&h, "hour") }, 3),
        (SumAsk { provider: text("second"), ..days(&h, "day,endpoint") }, 1),
        (SumAsk { endpoint: text("/v1/other"), ..days(&h, "day") }, 0),
    ] {
        assert_eq!(all(&h, &narrow).await["totals"]["requests"], requests, "{narrow:?}");
    }
    // A customer sees his own, and no cost.
    let own = sums(&h, SumViewer::Customer(other.account), &days(&h, "model,day")).await.expect("added up");
    assert_eq!((&own["totals"]["charge_nano_usd"], own["data"].as_array().map(Vec::len)), (&7.into(), Some(1)));
    assert!(!own.to_string().contains("cost") && !own.to_string().contains("provider"), "{own}");
    exported(&h, &one, &other).await;
    h.close().await;
}

/// The log itself, page by page.
async fn exported(h: &House, one: &Customer, other: &Customer) {
    let read = async |viewer, ask: SumAsk, limit| {
        let query = ask.checked(viewer, h.clock.now()).expect("a question");
        let (from_ms, to_ms) = query.range_ms();
        let mut page = ExportPage { filter: query.filter().clone(), from_ms, to_ms, after: None, limit };
        let mut rows: Vec<UsageRow> = Vec::new();
        loop {
            let some = h.store.usage_export(page.clone()).await.expect("rows");
            let last = some.len() < limit as usize;
            rows.extend(some);
            page.after = rows.last().map(|row| (row.account, row.call));
            if last {
                return rows;
            }
        }
    };
    let by = days(h, "day");
    for limit in [1, 2, 100] {
        let rows = read(SumViewer::Operator, by.clone(), limit).await;
        assert_eq!(rows.len(), 5);
        assert!(rows.is_sorted_by_key(|row| (row.account, row.call)), "{rows:?}");
        assert_eq!(rows.iter().map(|row| row.charge.nano()).sum::<i64>(), 157);
    }
    let own = read(SumViewer::Customer(other.account), by.clone(), 2).await;
    assert!(own.len() == 1 && own[0].account == other.account);
    let dear = read(SumViewer::Customer(one.account), SumAsk { model: text("dear"), ..by.clone() }, 2).await;
    assert!(dear.len() == 1 && dear[0].ending == Ending::Answered);
    let later = SumAsk { from: by.to.clone(), to: None, ..by };
    let none = later.checked(SumViewer::Operator, h.clock.now() + 4 * 86_400_000).expect("a question");
    let (from_ms, to_ms) = none.range_ms();
    let page = ExportPage { filter: none.filter().clone(), from_ms, to_ms, after: None, limit: 9 };
    assert!(h.store.usage_export(page).await.expect("rows").is_empty());
}

/// A database from before there were sums, in the middle of a day's work.
pub async fn rows_from_before_there_were_sums_are_added_once(h: House) {
    let customers = [h.customer(0, 10_000).await, h.customer(0, 10_000).await];
    let mut calls = Vec::new();
    for n in 0..7 {
        let c = &customers[n % 2];
        calls.push(call(&h, c, 10 + n as i64, |row| row.model = format!("m{}", n % 3)).await);
    }
    let before = all(&h, &days(&h, "model,account")).await;
    let hand = Hand::of(&h).await;
    let apart = if h.place.url == "sqlite" { "DELETE FROM usage_unmerged; " } else { "" };
    let before_sums = "DELETE FROM usage_quarter; INSERT INTO usage_backfill VALUES (1, x'', x'')";
    hand.change(&format!("{apart}{before_sums}")).await.expect("as before");
    let query = days(&h, "model").checked(SumViewer::Operator, h.clock.now()).expect("a question");
    let clean = async |when: &str| {
        let report = h.store.verify().await.expect("the audit runs");
        assert!(report.breaches.is_empty(), "{when}: {:?}", report.breaches);
    };
    for step in 0.. {
        let refused = h.store.usage_sums(&query).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "what is not whole is not shown");
        clean("on the way").await;
        // Rows and refunds on either side of how far it is.
        call(&h, &customers[step % 2], 5, |_| {}).await;
        if let Some(call) = calls.pop() {
            let of = h.store.charged(call).await.expect("read").expect("a charge").account;
            let c = customers.iter().find(|c| c.account == of).expect("one of ours");
            let kind = CreditKind::Refund { call };
            h.credit(c, &format!("refund {step}"), kind, Pot::Paid, 3).await.expect("refunded");
        }
        clean("after a refund").await;
        if !h.store.fill_sums(2).await.expect("a step") {
            break;
        }
        assert!(step < 100, "it comes to an end");
    }
    assert!(!h.store.fill_sums(2).await.expect("nothing"), "once");
    clean("at the end").await;
    let after = all(&h, &days(&h, "model,account")).await;
    let rows = h.store.usage(None, tollgate_store::UsagePage { before: None, limit: 500 }).await.expect("rows");
    let sum = |of: fn(&UsageRow) -> i64| rows.iter().map(of).sum::<i64>();
    assert_eq!(after["totals"]["requests"], rows.len());
    assert_eq!(after["totals"]["charge_nano_usd"], sum(|row| row.charge.nano()));
    assert_eq!(after["totals"]["refunded_nano_usd"], sum(|row| row.refunded.nano()));
    assert!(before["totals"]["requests"].as_i64() < after["totals"]["requests"].as_i64());
    h.close().await;
}

/// With whole hours, halves and quarters; with and without summer time; north, south, and on both
/// sides of the date line.
const ZONES: [&str; 30] = [
    "UTC",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Moscow",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Africa/Monrovia",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Santiago",
    "America/Caracas",
    "America/Havana",
    "Atlantic/Azores",
    "Asia/Tehran",
    "Asia/Kabul",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Yangon",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Asia/Gaza",
    "Australia/Adelaide",
    "Australia/Eucla",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Marquesas",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "Antarctica/Troll",
];

/// Numbers that look drawn, the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 16) as i64) % most
    }
}

/// The name of the span that a moment is in, by the calendar itself.
fn name_of(unit: &str, zone: &TimeZone, at_ms: i64) -> String {
    let at = Timestamp::from_millisecond(at_ms).expect("a time").to_zoned(zone.clone());
    match unit {
        "hour" => at.strftime("%Y-%m-%dT%H:00%:z").to_string(),
        "day" => at.strftime("%Y-%m-%d").to_string(),
        "month" => at.strftime("%Y-%m").to_string(),
        _ => {
            let back = i64::from(at.weekday().to_monday_zero_offset());
            at.date().checked_sub(back.days()).expect("a Monday").to_string()
        }
    }
}

pub async fn series_in_any_zone_are_the_totals_and_the_ledger(h: House) {
    let customer = h.customer(0, 1_000_000).await;
    let mut draw = Draw(20);
    // Two years around the test's clock; a third of them near the days on which clocks change.
    let start = h.clock.now() - 365 * 86_400_000;
    let mut calls: Vec<(CallId, i64)> = Vec::new();
    for n in 0..210u8 {
        let at = match n % 3 {
            0 => 1_774_746_000_000 + draw.below(3 * 86_400_000) - 86_400_000,
            _ => start + draw.below(730 * 86_400_000),
        };
        calls.push((drawn(&h, &customer, &mut draw, n, at).await, at));
    }
    let mut rows = Vec::new();
    for (call, at) in &calls {
        rows.push(by_the_ledger(&h, &customer, *call, *at).await);
    }
    // Some of the days that are over are folded from the start, some in the meantime, and some
    // calls of them end afterwards.
    for _ in 0..30 {
        assert!(h.store.fold_sums().await.expect("a step"));
    }
    let zones = TimeZoneDatabase::bundled();
    for (n, name) in (210u8..).zip(ZONES) {
        let zone = zones.get(name).expect(name);
        for _ in 0..7 {
            h.store.fold_sums().await.expect("a step");
        }
        let at = start + draw.below(364 * 86_400_000);
        let late = drawn(&h, &customer, &mut draw, n, at).await;
        rows.push(by_the_ledger(&h, &customer, late, at).await);
        for round in 0..5 {
            let unit = ["day", "hour", "week", "month", "day"][round];
            let from = (start + draw.below(400 * 86_400_000)).div_euclid(QUARTER) * QUARTER;
            let longest = if unit == "hour" { 300 } else { 500 };
            let to = from + (1 + draw.below(longest * 96)) * QUARTER;
            let ask = SumAsk {
                from: Some(from.to_string()),
                to: Some(to.to_string()),
                tz: text(name),
                by: Some(format!("{unit},model")),
                limit: Some(1_000),
                ..SumAsk::default()
            };
            compare(&h, &customer.account, &ask, &rows, &zone, unit, (from, to)).await;
        }
    }
    h.close().await;
}

/// A call that began then, of a model and for a charge that are drawn.
async fn drawn(h: &House, c: &Customer, draw: &mut Draw, number: u8, at: i64) -> CallId {
    let mut id = [number; 16];
    id[..6].copy_from_slice(&at.to_be_bytes()[2..]);
    h.hold(Hold { call: CallId(id), ..h.wish(c, 100) }).await.expect("a hold");
    let mut close = h.ending(c, CallId(id), 1 + draw.below(90));
    close.row.model = format!("m{}", draw.below(3));
    h.store.close(close).await.expect("closed");
    CallId(id)
}

/// When a call began, its model, and what the ledger says of it.
async fn by_the_ledger(h: &House, c: &Customer, call: CallId, at: i64) -> (i64, String, i64) {
    let entries = h.store.entries_of(c.account, call).await.expect("entries");
    let ledger: i64 = entries.iter().map(|entry| entry.taken.nano()).sum();
    let row = h.store.usage_of(c.account, call).await.expect("read").expect("a row");
    assert_eq!(row.charge, Money::from_nano(ledger));
    (at, row.model, ledger)
}

async fn compare(
    h: &House,
    account: &AccountId,
    ask: &SumAsk,
    rows: &[(i64, String, i64)],
    zone: &TimeZone,
    unit: &str,
    (from, to): (i64, i64),
) {
    let report = sums(h, SumViewer::Customer(*account), ask).await.expect("added up");
    // There is no other account: the whole house says the same, from other sums.
    let house = sums(h, SumViewer::Operator, ask).await.expect("added up");
    let spans = |report: &Value| shown(report, &[unit, "model"]);
    assert_eq!(spans(&house), spans(&report), "{ask:?}");
    assert_eq!(house["totals"]["charge_nano_usd"], report["totals"]["charge_nano_usd"], "{ask:?}");
    let mut expected: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    for (at, model, ledger) in rows.iter().filter(|(at, ..)| (from..to).contains(at)) {
        let sum = expected.entry((name_of(unit, zone, *at), model.clone())).or_default();
        *sum = (sum.0 + 1, sum.1 + ledger);
    }
    let mut found: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    for row in report["data"].as_array().expect("rows") {
        let word = |name: &str| row[name].as_str().expect(name).to_owned();
        let number = |name: &str| row[name].as_i64().expect(name);
        let before = found.insert((word(unit), word("model")), (number("requests"), number("charge_nano_usd")));
        assert_eq!(before, None, "{ask:?}: a span has one row");
        assert!(from <= number("from_ms") && number("from_ms") < number("to_ms") && number("to_ms") <= to, "{row}");
    }
    assert_eq!(found, expected, "{ask:?}");
    let ledger: i64 = expected.values().map(|(_, charge)| charge).sum();
    assert_eq!(report["totals"]["charge_nano_usd"], ledger, "{ask:?}");
}
