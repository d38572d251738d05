//! Streams that outgrow their hold: more is held while they run, or they end properly with what was
//! paid for.

use crate::engine::Engine;
use crate::house::{House, Plan, call_id, counted, events, text_of};
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot, UsageRow};

/// A model without a limit of its own: the first hold of a stream is made for 4,096 tokens of
/// output, 2,000 nano-USD each.
const CATALOG: &str = r#"
[model."long"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."long-tiered"]
price = { input = 1_000_000, output = 1_000_000, image_output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[[model."long-tiered".tier]]
name = "fast"
when = [{ dim = "request_attr", path = "service_tier", equals = "fast" }]
multiplier = 3
[model."bounded"]
max_output_tokens = 5000
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

const HELD: u64 = 4_096;

fn long(text: &str) -> Value {
    json!({ "model": "long", "stream": true, "messages": [{ "role": "user", "content": text }] })
}

async fn house(database: &str, nano: i64) -> House {
    let plan = Plan { usd: "0", catalog: CATALOG, database: database.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    house.credit("all", Pot::Paid, Money::from_nano(nano)).await;
    house
}

/// The events that are here as a whole.
fn whole(text: &str) -> &str {
    &text[..text.rfind("\n\n").unwrap_or(0)]
}

/// Plays one stream to its end: what came, and its row.
async fn play(house: &House, body: &Value) -> (String, UsageRow) {
    let reply = house.post(body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    let call = call_id(&reply);
    let text = reply.text().await.expect("a whole stream");
    house.quiet().await;
    (text, house.row(call).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn with_money_a_long_stream_runs_to_its_end_and_pays_what_it_used() {
    for engine in Engine::both().await {
        let house = house(&engine.url, 1_000_000_000).await;
        let (text, row) = play(&house, &long("go on [[sim:tokens=10000 chunks=400]]")).await;
        assert!(text.ends_with("data: [DONE]\n\n"), "{}: {}", engine.name, &text[text.len() - 300..]);
        assert_eq!((row.ending, row.counters.output, row.estimated), (Ending::Answered, 10_000, false));
        assert_eq!(row.charge.nano(), i64::try_from(row.counters.input).expect("fits") * 1_000 + 10_000 * 2_000);
        assert!(row.write_off.is_zero());
        // Extended twice, by the size of the first output part.
        assert!(row.hold.nano() >= 3 * 4_096 * 2_000 && row.hold.nano() < 3 * 4_096 * 2_000 + 100_000, "{}", row.hold);
        assert_eq!(house.available().await, 1_000_000_000 - row.charge.nano(), "{}", engine.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_money_for_more_it_ends_with_what_is_paid_for() {
    for engine in Engine::both().await {
        let house = house(&engine.url, 8_250_000).await;
        let (text, row) = play(&house, &long("go on [[sim:tokens=9000 chunks=300 delay_ms=3]]")).await;
        let events = events(&text);
        let last = &events.last().expect("events")["error"];
        assert_eq!((&last["code"], &last["type"]), (&json!("insufficient_balance"), &json!("insufficient_quota")));
        assert!(!text.contains("[DONE]"));
        assert_eq!((row.ending, row.reason.as_str()), (Ending::Refused, "insufficient_balance"), "{}", engine.name);
        // All that the hold covers was delivered, and not a piece more; exactly that is charged.
        let got = counted(&text_of(&events));
        assert!(got <= HELD + 30 && got > HELD - 100, "{got}");
        assert_eq!((row.counters.output, row.estimated), (got, true));
        let expected = row.counters.input * 1_000 + got * 2_000;
        assert_eq!(row.charge.nano(), i64::try_from(expected).expect("fits"));
        assert!(row.charge <= row.hold && row.write_off.is_zero());
        assert_eq!(house.available().await, 8_250_000 - row.charge.nano());
        let seen = house.sim.received();
        assert!(seen.last().is_some_and(|one| !one.finished), "the provider was let go");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_streams_compete_for_one_extension() {
    for engine in Engine::both().await {
        // Two first holds of 8.192 million and what their prompts cost, and one extension of as
        // much.
        let house = house(&engine.url, 24_700_000).await;
        let mut first = house
            .post(&long("go on [[sim:hang_midstream after=170 tokens=5000 chunks=200]]"))
            .send()
            .await
            .expect("a reply");
        let first_call = call_id(&first);
        let mut seen = String::new();
        // Beyond the first hold: the extension was granted.
        while counted(&text_of(&events(whole(&seen)))) <= HELD {
            let chunk = first.chunk().await.expect("a chunk").expect("more");
            seen.push_str(&String::from_utf8_lossy(&chunk));
        }
        let reply = house.post(&long("go on [[sim:tokens=5000 chunks=200]]")).send().await.expect("a reply");
        let second_call = call_id(&reply);
        let text = reply.text().await.expect("a whole stream");
        assert_eq!(events(&text).last().expect("events")["error"]["code"], "insufficient_balance", "{}", engine.name);
        drop(first);
        house.quiet().await;
        let (first, second) = (house.row(first_call).await, house.row(second_call).await);
        assert_eq!((first.ending, second.ending), (Ending::ClientLeft, Ending::Refused));
        assert!(first.counters.output > HELD && second.counters.output <= HELD + 60);
        assert!(first.charge > second.charge && first.write_off.is_zero() && second.write_off.is_zero());
        assert_eq!(house.available().await, 24_700_000 - first.charge.nano() - second.charge.nano());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_comes_in_between_is_asked_for_again_at_the_end_of_the_cover() {
    let house = house("sqlite", 8_220_000).await;
    let mut reply =
        house.post(&long("go on [[sim:tokens=5000 chunks=200 delay_ms=10]]")).send().await.expect("a reply");
    let call = call_id(&reply);
    let mut text = String::new();
    // Four fifths are through: the first extension has been refused.
    while counted(&text_of(&events(whole(&text)))) < HELD * 9 / 10 {
        text.push_str(&String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("more")));
    }
    house.top_up("late", "1").await;
    while let Some(chunk) = reply.chunk().await.expect("a chunk") {
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert_eq!(house.row(call).await.counters.output, 5_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_for_all_that_was_asked_is_not_outgrown_by_our_own_count() {
    // Words of which we count more than the provider says: one token each for it, several for us.
    let house = house("sqlite", 40_000_000).await;
    let mut body = long("go on [[sim:tokens=300 size=6 chunks=60]]");
    body["max_tokens"] = json!(300);
    let (text, row) = play(&house, &body).await;
    assert!(counted(&text_of(&events(&text))) > 300, "otherwise this test shows nothing");
    assert!(text.ends_with("data: [DONE]\n\n"));
    assert_eq!((row.ending, row.counters.output), (Ending::Answered, 300));
    assert!(row.charge <= row.hold);
    let prompt = row.hold.nano() - 300 * 2_000;
    assert!((1_000..100_000).contains(&prompt), "held once, for the prompt and what was asked: {prompt}");
}

/// Our own count may be several times the provider's; beyond that it is not the count, and somebody
/// pays for every word.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_ignores_the_limit_is_stopped_where_it_surely_has() {
    for engine in Engine::both().await {
        let house = house(&engine.url, 100_000_000).await;
        let mut body = long("go on [[sim:ignore_max_tokens tokens=5000 chunks=500]]");
        body["max_tokens"] = json!(300);
        let (text, row) = play(&house, &body).await;
        assert_eq!(events(&text).last().expect("events")["error"]["code"], "upstream_invalid_reply");
        assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "limit_ignored"));
        let got = counted(&text_of(&events(&text)));
        assert!(got > 1_400 && got <= 4 * 300 + 256, "{got}");
        // No more is charged than was asked for and held; what was delivered beyond is the
        // operator's loss.
        let input = i64::try_from(row.counters.input).expect("fits") * 1_000;
        assert_eq!(row.charge.nano(), input + 300 * 2_000, "{}", engine.name);
        assert!(row.charge <= row.hold);
        let words = i64::try_from(row.counters.output).expect("fits");
        assert!(words > 4 * 300 + 256, "{words}");
        assert_eq!(row.write_off.nano(), (words - 300) * 2_000, "{}", engine.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_is_bounded_by_what_the_model_can_still_produce_and_follows_tier_and_dearest_face() {
    let house = house("sqlite", 1_000_000_000).await;
    let mut body = long("go on [[sim:tokens=4800 chunks=190]]");
    body["model"] = json!("bounded");
    let (_, row) = play(&house, &body).await;
    assert_eq!(row.counters.output, 4_800);
    assert_eq!(row.hold.nano() / 1_000_000, 10, "5,000 tokens in all: {}", row.hold);
    let mut body = long("go on [[sim:tokens=5000 chunks=200]]");
    body["model"] = json!("long-tiered");
    body["service_tier"] = json!("fast");
    let (_, row) = play(&house, &body).await;
    assert_eq!(row.charge.nano(), 3 * (i64::try_from(row.counters.input).expect("fits") * 1_000 + 5_000 * 1_000));
    assert_eq!(row.hold.nano() / 1_000_000, 2 * 4_096 * 2_000 * 3 / 1_000_000, "{}", row.hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_room_under_its_cap_ends_the_stream_too() {
    let mut house = house("sqlite", 1_000_000_000).await;
    house.key = house.new_key(|key| key.limits.total = Some(Money::from_nano(9_000_000))).await;
    let (text, row) = play(&house, &long("go on [[sim:tokens=5000 chunks=200]]")).await;
    assert_eq!(events(&text).last().expect("events")["error"]["code"], "key_spend_cap_reached");
    assert_eq!((row.ending, row.reason.as_str()), (Ending::Refused, "key_spend_cap_reached"));
    assert!(row.charge <= row.hold);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_of_an_extended_stream_settles_it() {
    for engine in Engine::both().await {
        let plan = Plan {
            usd: "0",
            catalog: CATALOG,
            database: engine.url.clone(),
            config: "[limits]\ndrain_time = \"300ms\"\n".to_owned(),
            ..Plan::default()
        };
        let mut house = House::with(plan).await;
        house.credit("all", Pot::Paid, Money::from_nano(1_000_000_000)).await;
        // Stops around the moment at which the first extension is asked for, a little earlier or
        // later each time.
        for after in [125, 131, 135, 165] {
            let text = format!("go on [[sim:hang_midstream after={after} tokens=5000 chunks=200]]");
            let mut reply = house.post(&long(&text)).send().await.expect("a reply");
            let call = call_id(&reply);
            let mut text = String::from_utf8_lossy(&reply.chunk().await.expect("a chunk").expect("bytes")).into_owned();
            let rest = async {
                while let Some(chunk) = reply.chunk().await.expect("a proper end") {
                    text.push_str(&String::from_utf8_lossy(&chunk));
                }
                text
            };
            let (text, ()) = tokio::join!(rest, house.restart());
            assert_eq!(events(&text).last().expect("events")["error"]["code"], "server_draining");
            assert_eq!(house.running().recovered, Default::default(), "settled before the exit");
            let row = house.row(call).await;
            assert_eq!(row.counters.output, counted(&text_of(&events(&text))), "{}", engine.name);
            assert!(row.charge <= row.hold && row.write_off.is_zero());
        }
    }
}
