//! Compares three witnesses: what clients saw, what the simulator received, and what the books say.

use crate::house::{House, text};
use crate::kinds::{CHARACTER, PICTURE, RECORDING, SOCIAL, SONG, TOKEN, tag_of};
use crate::seen::{Record, Seen};
use crate::tasks::{self, NEVER_SENT};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Nano-USD per token of `plain`.
const INPUT: i64 = 1_000;
const OUTPUT: i64 = 2_000;

/// What the simulator received.
#[derive(Default)]
struct Sent {
    /// Conversations and creations of videos, by call.
    calls: HashMap<String, Asked>,
    /// Questions for social data, which name no call, by tag.
    social: BTreeMap<String, usize>,
}

/// One call as the simulator received it.
struct Asked {
    tag: String,
    /// What the whole reply costs, and the prompt alone; of a video, what it costs once it is made.
    cost: i64,
    prompt: i64,
    /// The provider took it on. For a video: there is one.
    taken: bool,
    is_video: bool,
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
        before = page.last().map(|row| text(&row["call_id"]));
        for row in page {
            let call = text(&row["call_id"]);
            assert!(rows.insert(call.clone(), row.clone()).is_none(), "{call} has two rows");
        }
        if page.len() < PAGE {
            return rows;
        }
    }
}

async fn sent(house: &House) -> Sent {
    let mut sent = Sent::default();
    for one in house.received().await {
        let path = text(&one["path"]);
        if path.starts_with("/api/") {
            let tag = tag_of(one["query"].as_str().unwrap_or_default()).unwrap_or_default();
            *sent.social.entry(tag.to_owned()).or_default() += 1;
            continue;
        }
        let (call, asked) = match path.strip_prefix("/video/") {
            None if path != "/v1/chat/completions" => media(&one, &path),
            Some(song) if song.ends_with("/music_generation") => media(&one, &path),
            // Questions about its task name no call.
            Some(picture) if picture.ends_with("/images/generations") => media(&one, &path),
            None => conversation(&one),
            Some(_) if one["method"] == "POST" => creation(&one),
            Some(_) => continue,
        };
        let before = sent.calls.insert(call.clone(), asked);
        assert!(before.is_none(), "{call} was sent twice");
    }
    sent
}

fn conversation(one: &Value) -> (String, Asked) {
    let words = one["body"]["messages"][0]["content"].as_str().unwrap_or_default();
    let tag = words.rsplit(' ').next().unwrap_or_default().to_owned();
    let tokens = |name: &str| one[name].as_i64().expect("a number");
    let prompt = tokens("prompt_tokens") * INPUT;
    let cost = prompt + tokens("completion_tokens") * OUTPUT;
    let call = text(&one["headers"]["x-client-request-id"]);
    (call, Asked { tag, cost, prompt, taken: one["accepted"] == true, is_video: false })
}

/// What costs everything or nothing, and how much that is. A form is text.
fn media(one: &Value, path: &str) -> (String, Asked) {
    let body = &one["body"];
    let said = [&body["prompt"], &body["input"], &body["input"][0], &body["query"], body];
    let said = said.into_iter().find_map(Value::as_str).unwrap_or_default();
    let tag = tag_of(said).unwrap_or_default().to_owned();
    let cost = match path {
        path if path.contains("/images/") => PICTURE,
        "/v1/embeddings" | "/v1/rerank" | "/v1/decisions" => one["prompt_tokens"].as_i64().expect("a number") * TOKEN,
        "/v1/audio/transcriptions" => RECORDING,
        path if path.ends_with("/music_generation") => SONG,
        _ => i64::try_from(said.chars().count()).expect("short") * CHARACTER,
    };
    let names = [&one["headers"]["x-client-request-id"], &body["external_task_id"]];
    let call = text(names.into_iter().find(|name| name.is_string()).expect("the call is named"));
    (call, Asked { tag, cost, prompt: 0, taken: one["accepted"] == true, is_video: false })
}

fn creation(one: &Value) -> (String, Asked) {
    let tag = tag_of(one["body"]["prompt"].as_str().unwrap_or_default()).unwrap_or_default().to_owned();
    let taken = one["accepted"] == true;
    let cost = if taken && one["scenario"] != "fail" { tasks::PRICE } else { 0 };
    (call_of(&text(&one["body"]["external_task_id"])), Asked { tag, cost, prompt: 0, taken, is_video: true })
}

/// A task is named after the call that began it.
fn call_of(task: &str) -> String {
    task.replace("task_", "call_")
}

/// Everything that must hold once all is quiet; how the videos ended. `funded` is what was paid in,
/// in nano-USD.
pub async fn check(house: &House, records: &[Record], funded: i64) -> BTreeMap<&'static str, usize> {
    let states = tasks::all_ended(house).await;
    house.quiet().await;
    house.verified().await;
    let rows = usage(house).await;
    let sent = sent(house).await;

    let missing: Vec<&String> = sent.calls.keys().filter(|call| !rows.contains_key(*call)).collect();
    assert!(
        missing.is_empty(),
        "{} of {} calls the provider saw are in no books: {missing:?}",
        missing.len(),
        sent.calls.len()
    );
    for (call, row) in &rows {
        let (charge, hold) = (amount(row, "charge_nano_usd"), amount(row, "hold_nano_usd"));
        assert!(charge <= hold, "{call}: {row}");
        let seen = is_social(row) || sent.calls.contains_key(call);
        assert!(charge == 0 || seen, "{call} was charged and never sent: {row}");
        assert_eq!(amount(row, "write_off_nano_usd"), 0, "{row}");
    }
    for record in records {
        check_one(record, &rows, &sent);
    }
    check_tags(records, &rows, &sent);
    check_social(records, &rows, &sent);
    let ends = check_videos(records, &states, &rows, &sent);

    let charged: i64 = rows.values().map(|row| amount(row, "charge_nano_usd")).sum();
    let balance = house.balance(0).await;
    assert_eq!(balance["available_nano_usd"].as_i64(), Some(funded - charged), "{balance}");
    assert_eq!(balance["held_nano_usd"], 0);
    ends
}

fn check_one(record: &Record, rows: &HashMap<String, Value>, sent: &Sent) {
    let row_of = |call: &str| rows.get(call).unwrap_or_else(|| panic!("{record:?} has no row"));
    let prompt = |call: &str| sent.calls[call].prompt;
    match &record.seen {
        // That a video is being made costs nothing yet.
        Seen::Answered { call, .. } if record.kind.is_video() => drop(row_of(call)),
        Seen::Answered { call, charge, .. } => {
            let row = row_of(call);
            let cost = if record.kind.is_social() {
                SOCIAL
            } else {
                sent.calls.get(call).unwrap_or_else(|| panic!("{record:?} was never sent")).cost
            };
            assert_eq!(amount(row, "charge_nano_usd"), cost, "{record:?}: {row}");
            assert_eq!((&row["ending"], &row["estimated"]), (&"answered".into(), &false.into()), "{record:?}: {row}");
            if let Some(charge) = charge {
                assert_eq!(nano(charge), cost, "{record:?}");
            }
        }
        // Its fate was not known: that of a video is shown by its task. Pictures and songs were cut
        // off with their gateway, or their hold was not durable in time; they are free.
        seen @ Seen::Failed { call, .. } if seen.is_unknown() => {
            let row = if sent.calls.contains_key(call) { Some(row_of(call)) } else { rows.get(call) };
            let charge = row.map_or(0, |row| amount(row, "charge_nano_usd"));
            let free = record.kind.is_begun_once() && charge == 0;
            assert!(record.kind.is_video() || free, "{record:?} was charged {charge}");
        }
        // All of it or nothing: what broke off is free, also with a gateway that died.
        Seen::Lost { call: Some(call), .. } | Seen::Left { call, .. }
            if record.kind.is_media() && rows.contains_key(call) =>
        {
            let (row, cost) = (row_of(call), sent.calls[call].cost);
            let left = row["ending"] == "client_left" && matches!(record.seen, Seen::Left { .. });
            let charge = amount(row, "charge_nano_usd");
            assert!(charge == cost || (charge == 0 && !left), "{record:?}: {row}");
        }
        // What a failed call had produced is paid only if it was delivered, as the first part of a
        // stream.
        Seen::Failed { call, status, .. } => {
            let charge = rows.get(call).map_or(0, |row| amount(row, "charge_nano_usd"));
            assert!(charge == 0 || *status == 200, "{record:?}: {:?}", rows[call]);
        }
        // A key that is spent stands for a call that was paid.
        Seen::Spent { call } => assert!(amount(row_of(call), "charge_nano_usd") > 0, "{record:?}: {:?}", rows[call]),
        // The first word is marked before it is handed out, so a crash does not make it free. No
        // stream of this load lasts until the next mark.
        Seen::Lost { call: Some(call), words } if *words > 0 => {
            let (row, least) = (row_of(call), prompt(call) + OUTPUT);
            assert!(amount(row, "charge_nano_usd") >= least, "{record:?}, {least} at least: {row}");
        }
        // Who leaves pays at least for the prompt and for what has come in.
        Seen::Left { call, words } if *words > 0 => {
            let (row, least) = (row_of(call), prompt(call) + i64::try_from(*words).expect("few") * OUTPUT);
            assert!(amount(row, "charge_nano_usd") >= least, "{record:?} got {least} and paid less: {row}");
        }
        Seen::Left { .. } | Seen::Lost { .. } => {}
    }
}

/// A request is charged at most once, also one that was repeated with its Idempotency-Key; a video
/// is made at most once.
fn check_tags(records: &[Record], rows: &HashMap<String, Value>, sent: &Sent) {
    let mut by_tag: HashMap<&str, Vec<&String>> = HashMap::new();
    for (call, one) in &sent.calls {
        by_tag.entry(&one.tag).or_default().push(call);
    }
    for record in records {
        let calls = by_tag.get(record.tag.as_str()).map_or(&[][..], Vec::as_slice);
        let charged = calls.iter().filter(|call| amount(&rows[**call], "charge_nano_usd") > 0).count();
        assert!(charged <= 1, "{record:?} was charged {charged} times: {calls:?}");
        let made = calls.iter().filter(|call| sent.calls[**call].is_video && sent.calls[**call].taken).count();
        assert!(made <= 1, "{record:?} was made {made} times: {calls:?}");
        let asked = calls.len() + sent.social.get(&record.tag).copied().unwrap_or(0);
        let again = record.kind.persists() && !record.kind.is_begun_once();
        assert!(again || asked <= 1, "{record:?} was sent again: {calls:?}");
    }
}

fn is_social(row: &Value) -> bool {
    row["endpoint"].as_str().is_some_and(|endpoint| endpoint.starts_with("/v1/social/"))
}

/// A question for social data names no call, so they are counted: none was asked without a hold,
/// and of each cell as many are paid as were answered, or may have been when the connection broke.
/// What is asked with an Idempotency-Key has a cell of its own.
fn check_social(records: &[Record], rows: &HashMap<String, Value>, sent: &Sent) {
    let held = rows.values().filter(|row| is_social(row)).count();
    let asked: usize = sent.social.values().sum();
    assert!(asked <= held, "{asked} questions were asked, {held} times money was held for one");
    for keyed in [false, true] {
        let ours = || records.iter().filter(|record| record.kind.is_social() && record.kind.persists() == keyed);
        let model = if keyed { "social-zhihu-comments" } else { "social-zhihu-user" };
        let paid = rows.values().filter(|row| row["model"] == model && amount(row, "charge_nano_usd") > 0).count();
        let answered: HashMap<&str, &str> = ours()
            .filter_map(|record| match &record.seen {
                Seen::Answered { call, .. } => Some((call.as_str(), record.tag.as_str())),
                _ => None,
            })
            .collect();
        let calls: HashSet<&str> = answered.values().copied().collect();
        assert_eq!(answered.len(), calls.len(), "each was answered by one call");
        let in_doubt = |record: &&Record| matches!(record.seen, Seen::Lost { .. } | Seen::Left { .. });
        let perhaps: HashSet<&str> = ours().filter(in_doubt).map(|record| record.tag.as_str()).collect();
        let most = calls.union(&perhaps).count();
        assert!((calls.len()..=most).contains(&paid), "{model}: {paid} paid, {} answered, {most} at most", calls.len());
    }
}

/// Every task ended once: made once and paid, made in vain and free, or never made and free. And
/// every one that the provider took on is ours.
fn check_videos(
    records: &[Record],
    states: &HashMap<String, String>,
    rows: &HashMap<String, Value>,
    sent: &Sent,
) -> BTreeMap<&'static str, usize> {
    let mut ends = BTreeMap::new();
    let by_call: HashMap<String, &str> = states.iter().map(|(task, state)| (call_of(task), state.as_str())).collect();
    for (call, state) in &by_call {
        let row = rows.get(call).unwrap_or_else(|| panic!("{call} is {state} and has no row"));
        let (taken, cost) = sent.calls.get(call).map_or((false, 0), |one| (one.taken, one.cost));
        let name = match *state {
            "completed" => "videos completed and charged once",
            NEVER_SENT => "videos never made and free",
            _ => "videos failed and free",
        };
        let fits = (taken, cost > 0) == (*state != NEVER_SENT, *state == "completed");
        assert!(fits, "{call} is {state}; taken by the provider: {taken}, worth {cost}");
        assert_eq!(amount(row, "charge_nano_usd"), cost, "{call} is {state}: {row}");
        *ends.entry(name).or_default() += 1;
    }
    for (call, _) in sent.calls.iter().filter(|(_, one)| one.is_video && one.taken) {
        assert!(by_call.contains_key(call), "the provider took {call}, and nobody knows it");
    }
    for record in records.iter().filter(|record| record.kind.is_video()) {
        if let Seen::Answered { call, .. } = &record.seen {
            assert!(by_call.contains_key(call), "{record:?} was reported, and is gone");
        }
    }
    ends
}

pub fn amount(row: &Value, name: &str) -> i64 {
    row[name].as_i64().unwrap_or_else(|| panic!("{name} of {row}"))
}

/// An amount in USD as nano-USD.
pub fn nano(usd: &str) -> i64 {
    let (whole, part) = usd.split_once('.').unwrap_or((usd, ""));
    format!("{whole}{part:0<9}").parse().expect("an amount")
}
