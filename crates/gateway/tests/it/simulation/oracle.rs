//! The oracle: what must be true, said without the ledger's help, from what clients learned, what
//! the provider received, and what was promised to survive which crash. It reads the usage log and
//! the balances and nothing else; the audit runs beside it.

use super::media;
use super::outside::{Attempt, Fate, Outside, Raw, Request, Seen, lock};
use super::provider::{Ending, PROMPT};
use super::runs;
use super::sessions;
use super::tasks;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tollgate_gateway::app::App;
use tollgate_store::Ending::Expired;
use tollgate_store::testing::Crash;
use tollgate_store::{EventPage, UsagePage, UsageRow};

/// Nano-USD per token, and per call of the model that is sold by the call.
pub const INPUT: i64 = 1_000;
pub const OUTPUT: i64 = 2_000;
pub const PER_CALL: i64 = 90_000;
/// A mark is at most this old.
const MARK_MS: i64 = 5_000;

pub type Rows = HashMap<String, UsageRow>;

pub async fn check(outside: &Outside, app: &App, when: &str) {
    let rows = rows(app).await;
    let report = app.store.verify().await.expect("the audit runs");
    assert!(report.breaches.is_empty(), "{when}: the audit found {:#?}", report.breaches);
    for attempt in lock(&outside.attempts).iter() {
        let request = &outside.requests()[attempt.request];
        let wrong = check_attempt(attempt, request, &rows);
        assert!(wrong.is_none(), "{when}: {}\n{attempt:#?}\n{request:#?}", wrong.unwrap_or_default());
    }
    for raw in lock(&outside.raws).iter().filter(|raw| raw.granted) {
        let wrong = check_raw(raw, &rows);
        assert!(wrong.is_none(), "{when}: {}\n{raw:#?}", wrong.unwrap_or_default());
    }
    for received in outside.all_received() {
        let row = rows.get(&received.call);
        assert!(
            row.is_some() || received.event == 0,
            "{when}: the provider has seen a call that is in no log: {received:?}"
        );
    }
    check_keys(outside, &rows, when);
    check_begun_once(outside, &rows, when);
    sessions::check(outside, app, &rows, when).await;
    let held = tasks::check(outside, app, &rows, when).await;
    runs::check(outside, app, &rows, when).await;
    check_balances(outside, app, &rows, &held, when).await;
}

async fn rows(app: &App) -> Rows {
    let page = UsagePage { before: None, limit: 100_000 };
    let list = app.store.usage(None, page).await.expect("the log can be read");
    let count = list.len();
    let rows: Rows = list.into_iter().map(|row| (row.call.to_string(), row)).collect();
    assert_eq!(rows.len(), count, "a call has two rows");
    rows
}

/// What the provider would bill for all of it.
fn cost(request: &Request) -> i64 {
    let words = i64::try_from(request.plan.words).expect("few");
    if request.model == "by-the-call" { PER_CALL } else { PROMPT * INPUT + words * OUTPUT }
}

fn check_attempt(attempt: &Attempt, request: &Request, rows: &Rows) -> Option<String> {
    let row = attempt.call.as_ref().and_then(|call| rows.get(call));
    let seen = matches!(&attempt.seen, Some((Seen::Answered { .. } | Seen::Left, _))) || !attempt.words.is_empty();
    if seen && row.is_none() {
        return Some("a client learned something of a call that is in no log".to_owned());
    }
    let row = row?;
    let (charge, loss) = (row.charge.nano(), row.write_off.nano());
    if loss != 0 {
        return Some(format!("a call within its hold made a loss: {row:#?}"));
    }
    if charge > row.hold.nano() {
        return Some(format!("more was charged than held: {row:#?}"));
    }
    let lost_power = matches!(attempt.fate, Fate::InDoubt | Fate::CutOff(Crash::PowerCut, _));
    let right = match &attempt.seen {
        _ if media::is_media(request.model) => media::is_right(attempt, request, row, lost_power),
        Some((Seen::Failed { status, .. }, _)) if *status != 200 => charge == 0,
        _ if lost_power => true,
        Some((Seen::Answered { charge: seen, .. }, _)) => {
            seen.is_none_or(|seen| seen == charge)
                && match request.plan.ending {
                    // By our own count, which may differ from the provider's.
                    Ending::NoReport if request.model != "by-the-call" => charge > 0 && row.estimated,
                    _ => charge == cost(request),
                }
        }
        _ if attempt.words.is_empty() => true,
        // What was delivered is paid, and after a crash all of it that is older than a mark can be.
        _ => charge > 0 && charge >= least(attempt, request),
    };
    (!right).then(|| format!("the charge does not fit: {row:#?}"))
}

fn least(attempt: &Attempt, request: &Request) -> i64 {
    let old = match attempt.fate {
        Fate::CutOff(_, at) => attempt.words.iter().filter(|arrived| at - **arrived > MARK_MS).count(),
        _ => attempt.words.len(),
    };
    if request.model == "by-the-call" { PER_CALL } else { i64::try_from(old).expect("few") * OUTPUT }
}

fn check_raw(raw: &Raw, rows: &Rows) -> Option<String> {
    let row = raw.call.and_then(|call| rows.get(&call.to_string()));
    let Some(row) = row else {
        // Its hold may have been lost with the power, if nobody learned that it is safe.
        let lost = raw.durable.is_none() && matches!(raw.fate, Fate::CutOff(Crash::PowerCut, _));
        return (!lost).then(|| "a call has no row".to_owned());
    };
    let total = row.charge.nano() + row.write_off.nano();
    let unheld = row.hold.is_zero() && total == 0;
    if raw.durable.is_none() && raw.fate != Fate::Whole && unheld {
        return None;
    }
    let amounts: Vec<i64> = raw.said.iter().map(|(amount, _)| *amount).collect();
    let allowed: Vec<i64> = match raw.fate {
        Fate::Whole if raw.overdue => [0].into_iter().chain(amounts).collect(),
        Fate::Whole | Fate::CutOff(Crash::Killed, _) => vec![amounts.last().copied().unwrap_or(0)],
        Fate::CutOff(Crash::PowerCut, _) | Fate::InDoubt => {
            let from = raw.safe.saturating_sub(1);
            let nothing = (raw.safe == 0).then_some(0);
            nothing.into_iter().chain(amounts.into_iter().skip(from)).collect()
        }
    };
    (!allowed.contains(&total)).then(|| format!("charged {total}, and only {allowed:?} can be right: {row:#?}"))
}

/// A key of a client is charged once, and tells everybody the same.
fn check_keys(outside: &Outside, rows: &Rows, when: &str) {
    let mut calls: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    for attempt in lock(&outside.attempts).iter().filter(|attempt| outside.requests()[attempt.request].idem) {
        let Some(call) = &attempt.call else { continue };
        calls.entry(attempt.request).or_default().insert(call.clone());
        if let Some((Seen::Answered { body, .. }, _)) = &attempt.seen {
            let first = bodies.entry(call.clone()).or_insert_with(|| body.clone());
            assert_eq!(first, body, "{when}: {call} was answered in two ways");
        }
    }
    for one in outside.all_received() {
        if outside.requests()[one.request].idem {
            calls.entry(one.request).or_default().insert(one.call);
        }
    }
    for (request, calls) in calls {
        let charged = calls.iter().filter(|call| rows.get(*call).is_some_and(|row| !row.charge.is_zero())).count();
        assert!(charged <= 1, "{when}: request {request} was charged {charged} times: {calls:?}");
    }
}

/// What is begun once is sent once under one key, whatever became of it. When it was cut off, its
/// key says so for good. What a power cut made as if it had never been is begun anew.
fn check_begun_once(outside: &Outside, rows: &Rows, when: &str) {
    let received = outside.all_received();
    let attempts = lock(&outside.attempts).clone();
    for (number, request) in outside.requests().iter().enumerate() {
        if !request.idem || !media::is_begun_once(request.model) {
            continue;
        }
        let sent: Vec<_> = received.iter().filter(|one| one.request == number && one.event != 0).collect();
        assert!(sent.len() <= 1, "{when}: request {number} was sent {} times under one key: {sent:?}", sent.len());
        let Some(sent) = sent.first() else { continue };
        let cut_off = rows.get(&sent.call).is_some_and(|row| row.ending == Expired && row.charge.is_zero());
        let later = attempts.iter().filter(|attempt| attempt.request == number && attempt.fate == Fate::Whole);
        for attempt in later {
            let Some((seen, at)) = &attempt.seen else { continue };
            let waits = matches!(seen, Seen::Failed { status: 409 | 503, .. });
            let told = matches!(seen, Seen::Failed { status: 504, code } if code == "charge_state_unknown");
            assert!(!cut_off || *at < sent.event || waits || told, "{when}: {sent:?} was cut off: {attempt:#?}");
        }
    }
}

async fn check_balances(outside: &Outside, app: &App, rows: &Rows, open: &[i64], when: &str) {
    let gifts = lock(&outside.gifts).clone();
    for (number, customer) in outside.customers.iter().enumerate() {
        let page = EventPage { before: None, limit: 10_000 };
        let events = app.store.events(customer.account, page).await.expect("events can be read");
        let credited: i64 = events.iter().map(|event| event.trial.nano() + event.paid.nano()).sum();
        let mine: BTreeMap<&str, _> =
            gifts.iter().filter(|gift| gift.customer == number).map(|gift| (gift.id.as_str(), gift)).collect();
        for gift in gifts.iter().filter(|gift| gift.customer == number) {
            let found: Vec<_> = events.iter().filter(|event| event.reference == gift.id).collect();
            assert!(found.len() <= 1, "{when}: {gift:?} was made {} times", found.len());
            assert!(!gift.confirmed || found.len() == 1, "{when}: {gift:?} was confirmed and is gone");
            assert!(
                found.iter().all(|event| event.paid.nano() + event.trial.nano() == gift.amount),
                "{when}: {found:?}"
            );
        }
        let unasked = events.iter().filter(|event| !mine.contains_key(event.reference.as_str())).count();
        assert_eq!(
            unasked, 2,
            "{when}: besides the first top-up and the trial credit nobody gave more, and none of it lapsed"
        );
        let charged: i64 =
            rows.values().filter(|row| row.account == customer.account).map(|row| row.charge.nano()).sum();
        let account = app.store.account(customer.account).await.expect("read").expect("the account");
        let available = account.trial_available.nano() + account.paid_available.nano();
        let held = account.trial_held.nano() + account.paid_held.nano();
        assert_eq!(held, open[number], "{when}: held for customer {number}");
        assert_eq!(available + held, credited - charged, "{when}: balance of customer {number}");
        assert!(available >= 0, "{when}: customer {number} is overdrawn");
    }
}
