//! Compares three witnesses: what clients saw, what the simulator received, and what the books say.

use crate::house::{House, text};
use crate::load::{Kind, Record, Seen};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Nano-USD per token of `plain`.
const INPUT: i64 = 1_000;
const OUTPUT: i64 = 2_000;

/// One call as the simulator received it.
struct Sent {
    tag: String,
    /// What the whole reply costs, and the prompt alone.
    cost: i64,
    prompt: i64,
}

/// The whole usage log, by call; a call that is there twice is a mistake.
pub async fn usage(house: &House) -> HashMap<String, Value> {
    const PAGE: usize = 10_000;
    let mut rows = HashMap::new();
    let mut before: Option<String> = None;
    loop {
        let limit = PAGE.to_string();
        let mut arguments = vec!["usage", "--limit", &limit];
        if let Some(before) = &before {
            arguments.extend(["--before", before]);
        }
        let page = house.cli(&arguments).await;
        let page = page.as_array().expect("rows");
        before = page.last().map(|row| text(&row["call"]));
        for row in page {
            let call = text(&row["call"]);
            assert!(rows.insert(call.clone(), row.clone()).is_none(), "{call} has two rows");
        }
        if page.len() < PAGE {
            return rows;
        }
    }
}

async fn sent(house: &House) -> HashMap<String, Sent> {
    let mut all = HashMap::new();
    for one in house.received().await {
        let call = text(&one["headers"]["x-client-request-id"]);
        let prompt = one["body"]["messages"][0]["content"].as_str().unwrap_or_default();
        let tag = prompt.rsplit(' ').next().unwrap_or_default().to_owned();
        let tokens = |name: &str| one[name].as_i64().expect("a number");
        let prompt = tokens("prompt_tokens") * INPUT;
        let cost = prompt + tokens("completion_tokens") * OUTPUT;
        let before = all.insert(call.clone(), Sent { tag, cost, prompt });
        assert!(before.is_none(), "{call} was sent twice");
    }
    all
}

/// Everything that must hold once all is quiet. `funded` is what was paid in, in nano-USD.
pub async fn check(house: &House, records: &[Record], funded: i64) {
    house.quiet().await;
    house.verified().await;
    let rows = usage(house).await;
    let sent = sent(house).await;

    let missing: Vec<&String> = sent.keys().filter(|call| !rows.contains_key(*call)).collect();
    assert!(
        missing.is_empty(),
        "{} of {} calls the provider saw are in no books: {missing:?}",
        missing.len(),
        sent.len()
    );
    for (call, row) in &rows {
        let (charge, hold) = (amount(row, "charge"), amount(row, "hold"));
        assert!(charge <= hold, "{call}: {row}");
        assert!(charge == 0 || sent.contains_key(call), "{call} was charged and never sent: {row}");
        assert_eq!(amount(row, "write_off"), 0, "{row}");
    }
    for record in records {
        check_one(record, &rows, &sent);
    }
    check_tags(records, &rows, &sent);

    let charged: i64 = rows.values().map(|row| amount(row, "charge")).sum();
    let balance = house.balance(0).await;
    assert_eq!(balance["available_nano_usd"].as_i64(), Some(funded - charged), "{balance}");
    assert_eq!(balance["held_nano_usd"], 0);
}

fn check_one(record: &Record, rows: &HashMap<String, Value>, sent: &HashMap<String, Sent>) {
    match &record.seen {
        Seen::Answered { call, charge } => {
            let row = rows.get(call).unwrap_or_else(|| panic!("{record:?} has no row"));
            let cost = sent.get(call).unwrap_or_else(|| panic!("{record:?} was never sent")).cost;
            assert_eq!(amount(row, "charge"), cost, "{record:?}: {row}");
            assert_eq!((&row["ending"], &row["estimated"]), (&"answered".into(), &false.into()), "{record:?}: {row}");
            if let Some(charge) = charge {
                assert_eq!(nano(charge), cost, "{record:?}");
            }
        }
        // What a failed call had produced is paid only if it was delivered, as the first part of a stream.
        Seen::Failed { call, status } => {
            let charge = rows.get(call).map_or(0, |row| amount(row, "charge"));
            assert!(charge == 0 || *status == 200, "{record:?}: {:?}", rows[call]);
        }
        // The first word is marked before it is handed out, so a crash does not make it free. No stream of this load lasts until the
        // next mark.
        Seen::Lost { call: Some(call), words } if *words > 0 => {
            let row = rows.get(call).unwrap_or_else(|| panic!("{record:?} has no row"));
            let least = sent[call].prompt + OUTPUT;
            assert!(amount(row, "charge") >= least, "{record:?}, {least} at least: {row}");
        }
        // Who leaves pays at least for the prompt and for what has come in.
        Seen::Left { call, words } if *words > 0 => {
            let row = rows.get(call).unwrap_or_else(|| panic!("{record:?} has no row"));
            let least = sent[call].prompt + i64::try_from(*words).expect("few") * OUTPUT;
            assert!(amount(row, "charge") >= least, "{record:?} got {least} and paid less: {row}");
        }
        Seen::Left { .. } | Seen::Lost { .. } => {}
    }
}

/// A request is charged at most once, also one that was repeated with its Idempotency-Key.
fn check_tags(records: &[Record], rows: &HashMap<String, Value>, sent: &HashMap<String, Sent>) {
    let mut by_tag: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for (call, one) in sent {
        by_tag.entry(&one.tag).or_default().push(call);
    }
    for record in records {
        let calls = by_tag.get(record.tag.as_str()).map_or(&[][..], Vec::as_slice);
        let charged = calls.iter().filter(|call| amount(&rows[**call], "charge") > 0).count();
        assert!(charged <= 1, "{record:?} was charged {charged} times: {calls:?}");
        assert!(record.kind == Kind::Persistent || calls.len() <= 1, "{record:?} was sent again: {calls:?}");
    }
}

pub fn amount(row: &Value, name: &str) -> i64 {
    row[name].as_i64().unwrap_or_else(|| panic!("{name} of {row}"))
}

/// An amount in USD as nano-USD.
pub fn nano(usd: &str) -> i64 {
    let (whole, part) = usd.split_once('.').unwrap_or((usd, ""));
    format!("{whole}{part:0<9}").parse().expect("an amount")
}

/// How many of each outcome there were, for people and for checks that the load was real.
pub fn tally(records: &[Record]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        let name = match &record.seen {
            Seen::Answered { .. } => "answered",
            Seen::Failed { status: 503, .. } => "unavailable",
            Seen::Failed { .. } => "failed",
            Seen::Left { .. } => "left",
            Seen::Lost { words: 0, .. } => "lost",
            Seen::Lost { .. } => "lost in mid-stream",
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}
