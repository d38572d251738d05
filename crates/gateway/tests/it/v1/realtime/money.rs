//! Money of sessions: held before, charged once, never without a hold.

use super::{Talker, audio, cost, house, house_with, kinds, rows};
use crate::house::{House, Plan};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Error;
use tollgate_store::Ending;

/// A response costs what is held for it, to the nano: its input is free, and it is as long as it
/// may be.
pub const FIXED: &str = r#"
[model."voice"]
context_window = 32000
supported_endpoint_types = ["realtime"]
price = { input = 0, output = 1_000_000, audio_input = 0, audio_output = 1_000_000, cache_read = 0 }
route = [{ provider = "sim", upstream_model = "gpt-realtime+plain+tokens=100" }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn without_money_there_is_no_session_and_nobody_is_dialled() {
    let house = house_with(Plan { usd: "0.001", ..Plan::default() }).await;
    let Err(Error::Http(refused)) = Talker::with_key(&house, &house.key, "voice").await else { panic!("a session") };
    assert_eq!(refused.status(), 402);
    let body: Value = serde_json::from_slice(refused.body().as_deref().unwrap_or_default()).expect("JSON");
    assert_eq!(body["error"]["code"], "insufficient_balance");
    assert_eq!(house.sim.received().len(), 0, "nobody was dialled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_makes_nothing_costs_nothing() {
    let house = house().await;
    let before = house.available().await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(0, 2_000) })).await;
    talker.leave().await;
    assert_eq!(rows(&house).await.len(), 0);
    assert_eq!(house.available().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sum_of_all_rows_is_the_sum_of_all_usage() {
    let house = house().await;
    let before = house.available().await;
    let mut talker = Talker::open(&house).await;
    let mut sum = 0;
    for at in 0..5 {
        let done = talker.turn(&format!("turn {at}")).await;
        sum += cost(&done["response"]["usage"]);
    }
    talker.leave().await;
    let rows = rows(&house).await;
    assert_eq!(rows.len(), 5, "one row per response: {rows:?}");
    assert_eq!(rows.iter().map(|row| row.charge.nano()).sum::<i64>(), sum);
    assert_eq!(before - house.available().await, sum, "and nothing beside them");
    let sessions: std::collections::BTreeSet<String> = rows
        .iter()
        .map(|row| {
            let raw: Value = serde_json::from_str(row.raw_usage.as_deref().expect("usage")).expect("JSON");
            raw["session_id"].as_str().expect("an id").to_owned()
        })
        .collect();
    assert_eq!(sessions.len(), 1, "under one session");
}

#[tokio::test(flavor = "multi_thread")]
async fn money_for_ten_responses_buys_ten_in_five_hundred_sessions() {
    // 100 tokens at a thousandth of a cent each, and 10 of them.
    let plan = Plan {
        usd: "0.001",
        catalog: FIXED,
        config: "[realtime]\nfirst_hold = 100\nmax_output_tokens = 100\nsessions_per_key = 1000".to_owned(),
        ..Plan::default()
    };
    let house = std::sync::Arc::new(House::with(plan).await);
    let mut all = JoinSet::new();
    for _ in 0..500 {
        let house = house.clone();
        all.spawn(async move {
            let Ok(mut talker) = Talker::with_key(&house, &house.key, "voice").await else { return 0_usize };
            talker.send(json!({ "type": "session.update", "session": { "type": "realtime", "output_modalities": ["text"] } })).await;
            let mut done = 0;
            talker.ask("as long as you may").await;
            while let Some(event) = talker.event().await {
                if event["type"] == "response.done" {
                    assert_eq!(event["response"]["usage"]["output_tokens"], 100, "{event}");
                    done += 1;
                }
            }
            assert_eq!(talker.closed.as_ref().map(|(code, _)| *code), Some(1008));
            done
        });
    }
    let mut responses = 0;
    while let Some(done) = all.join_next().await {
        responses += done.expect("a session");
    }
    assert_eq!(responses, 10);
    let rows = rows(&house).await;
    assert_eq!(rows.iter().filter(|row| row.charge.nano() > 0).count(), 10);
    assert_eq!(house.available().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_response_asks_for_more_on_the_way() {
    let config = "[realtime]\nfirst_hold = 20\nmax_output_tokens = 4096".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    let done = talker.turn("[[sim:plain ms=5000]]").await;
    assert_eq!(done["response"]["usage"]["output_token_details"]["audio_tokens"], 100);
    talker.leave().await;
    let rows = rows(&house).await;
    assert_eq!(rows[0].charge.nano(), cost(&done["response"]["usage"]));
    assert!(rows[0].hold >= rows[0].charge, "it was held for before it went out: {:?}", rows[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_nobody_can_pay_any_more_is_stopped() {
    let config = "[realtime]\nfirst_hold = 20\nmax_output_tokens = 4096".to_owned();
    let house = house_with(Plan { usd: "0.01", config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:plain ms=100000]]").await;
    let (events, code) = talker.rest().await;
    assert_eq!(code, 1008, "{:?}", kinds(&events));
    let error = events.iter().rfind(|event| event["type"] == "error").expect("an error");
    assert_eq!(error["error"]["code"], "insufficient_balance");
    let rows = rows(&house).await;
    let charged: i64 = rows.iter().map(|row| row.charge.nano()).sum();
    assert!(charged > 0 && charged <= 10_000_000, "{rows:?}");
    assert!(house.available().await >= 0);
}

pub async fn a_session_ends_with_the_response_after_which_there_is_no_money() {
    let config = "[realtime]\nfirst_hold = 100\nmax_output_tokens = 100".to_owned();
    // The first hold and not the second.
    let plan = Plan { usd: "0.00015", catalog: FIXED, config, ..Plan::default() };
    let house = House::with(plan).await;
    let mut talker = Talker::open(&house).await;
    talker.text_only().await;
    talker.ask("hello").await;
    let (events, code) = talker.rest().await;
    assert!(kinds(&events).contains(&"response.done"), "it may finish: {:?}", kinds(&events));
    let last = events.last().expect("an event");
    assert_eq!(
        (last["type"].as_str(), last["error"]["code"].as_str(), code),
        (Some("error"), Some("insufficient_balance"), 1008)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_pays_for_what_was_made() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:hold after=4 ms=2000]]").await;
    talker.until("response.output_audio.delta").await;
    drop(talker);
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].reason.as_str(), rows[0].estimated), (1, "cancelled", false), "{rows:?}");
    assert!(rows[0].charge.nano() > 0);
    let billed = house.sim.sessions()[0].billed.clone();
    assert_eq!(rows[0].charge.nano(), cost(&billed[0]), "by what the provider says");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_never_ends_is_counted_by_us() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:hang after=4 ms=2000]]").await;
    for _ in 0..4 {
        talker.until("response.output_audio.delta").await;
    }
    drop(talker);
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].ending, rows[0].estimated), (1, Ending::ClientLeft, true), "{rows:?}");
    assert_eq!(rows[0].counters.audio_output, 8, "400 ms of audio: {:?}", rows[0]);
    assert!(rows[0].charge.nano() > 0 && rows[0].hold >= rows[0].charge);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_breaks_off_is_paid_for_what_came() {
    for (script, produced) in [("cut after=3", true), ("cut after=3 cut=fin", true), ("cut after=0", false)] {
        let house = house().await;
        let mut talker = Talker::open(&house).await;
        talker.ask(&format!("[[sim:{script} ms=2000]]")).await;
        let (events, code) = talker.rest().await;
        assert_eq!(code, 1011, "{script}");
        assert_eq!(events.last().expect("an event")["error"]["code"], "upstream_error", "{script}");
        let rows = rows(&house).await;
        assert_eq!((rows.len(), rows[0].ending), (1, Ending::UpstreamFault), "{script}: {rows:?}");
        assert_eq!((rows[0].charge.nano() > 0, rows[0].estimated), (produced, produced), "{script}: {rows:?}");
    }
}

pub async fn usage_that_cannot_be_true_is_not_believed() {
    for script in
        ["no_usage", "wrong_usage", "wrong_usage kind=negative", "wrong_usage kind=huge", "wrong_usage kind=cached"]
    {
        let house = house().await;
        let mut talker = Talker::open(&house).await;
        talker.turn(&format!("[[sim:{script} ms=800]]")).await;
        talker.leave().await;
        let rows = rows(&house).await;
        assert_eq!((rows.len(), rows[0].estimated), (1, true), "{script}: {rows:?}");
        assert_eq!(rows[0].counters.audio_output, 16, "{script}");
        assert!(rows[0].charge.nano() > 0 && rows[0].hold >= rows[0].charge, "{script}");
    }
}

/// How many tokens a second of sound has is known of some providers only: it is a setting.
#[tokio::test(flavor = "multi_thread")]
async fn sound_is_counted_at_the_rate_of_its_provider() {
    let catalog = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1_000_000, output = 1_000_000, audio_input = 1_000_000, audio_output = 1_000_000, cache_read = 0 }
route = [{ provider = "rated", upstream_model = "gpt-realtime" }]
"#;
    for (setting, said, heard) in [("", 20, 10), ("live_said = 40\nlive_heard = 30\n", 40, 30)] {
        let config = format!(
            "[provider.rated]\nkind = \"openai\"\nbase_url = \"{{host}}/v1\"\nsecret_file = \"sim.key\"\n{setting}"
        );
        let house = House::with(Plan { catalog, config, ..Plan::default() }).await;
        let mut talker = Talker::open(&house).await;
        talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(0, 10_000) })).await;
        talker.turn("[[sim:no_usage ms=1000]]").await;
        talker.leave().await;
        let used = rows(&house).await[0].counters;
        assert_eq!(used.audio_output, said, "{setting}");
        let most = 10 * heard;
        assert!(used.audio_input > most * 9 / 10 && used.audio_input <= most + 1, "{setting}: {}", used.audio_input);
    }
}

pub async fn a_response_that_fails_is_free_and_says_nothing_of_the_provider() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let done = talker.turn("[[sim:failed]]").await;
    assert_eq!(done["response"]["status"], "failed");
    assert!(!done.to_string().contains("sim-worker-3") && !done.to_string().contains("req_0123"), "{done}");
    assert_eq!(talker.turn("[[sim:plain]]").await["response"]["status"], "completed", "the session goes on");
    talker.ask("[[sim:error_event]]").await;
    let error = talker.until("error").await.pop().expect("an event");
    assert!(!error.to_string().contains("sim-worker-3") && !error.to_string().contains("req_0123"), "{error}");
    assert_eq!(talker.turn("[[sim:plain]]").await["response"]["status"], "completed", "the session goes on");
    talker.leave().await;
    let rows = rows(&house).await;
    assert_eq!(rows.iter().filter(|row| row.charge.nano() > 0).count(), 2, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_is_told_twice_is_charged_once() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    let done = talker.turn("[[sim:twice]]").await;
    let second = talker.turn("[[sim:plain]]").await;
    talker.leave().await;
    let charged: i64 = rows(&house).await.iter().map(|row| row.charge.nano()).sum();
    assert_eq!(charged, cost(&done["response"]["usage"]) + cost(&second["response"]["usage"]));
}
