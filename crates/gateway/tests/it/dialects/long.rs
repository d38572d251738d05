//! Streams that outlast something: their hold, the client's patience, what memory could keep of
//! them.

use super::client::{Client, code_of};
use super::{CATALOG, UPSTREAMS};
use crate::house::{House, Plan, call_id, events};
use crate::watch::HANG;
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot};
use tollgate_wire::Dialect;

/// One model per dialect of providers, without a limit of its own: the first hold is made for 4,096
/// tokens of output.
const LONG: &str = r#"
[model."gemini-long-openai"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."gemini-long-anthropic"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-plain" }]
[model."gemini-long-openai-response"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-responses", upstream_model = "sim-plain" }]
[model."gemini-long-gemini"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim-gemini", upstream_model = "sim-plain" }]
"#;

/// Money for what is held at first and no more: the stream ends there, in its client's shape, and
/// no word is given away.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_money_for_more_ends_with_what_is_paid_for() {
    for dialect in Dialect::ALL {
        let house = House::with(Plan { usd: "0", catalog: LONG, ..Plan::default() }).await;
        for client in Client::all() {
            let before = house.available().await;
            house.credit(&format!("{client:?}"), Pot::Paid, Money::from_nano(5_000 * 2_000 - before)).await;
            let model = format!("gemini-long-{}", dialect.word());
            let mut body = client.body(&model, "go on [[sim:ignore_max_tokens tokens=20000 chunks=400]]", true);
            if client.0 == Dialect::Anthropic {
                body["max_tokens"] = 2_000.into();
            }
            let reply = client.post(&house, &client.path(&model, true), &body).send().await.expect("a reply");
            let call = call_id(&reply);
            assert_eq!(reply.status(), 200, "{client:?} on {dialect:?}");
            let text = reply.text().await.expect("text");
            let events = events(&text);
            house.quiet().await;
            let row = house.row(call).await;
            let pair = format!("{client:?} on {dialect:?}");
            let error = client.error_in(&events).unwrap_or_else(|| panic!("{pair}: no error event"));
            let code = if client.0 == Dialect::Responses {
                error["type"].as_str().unwrap_or_default()
            } else {
                code_of(error)
            };
            assert!(!client.is_whole(&text, &events), "{pair}: an end that looks like a good one");
            let said = client.streamed_text(&events);
            assert!(is_what_was_said(&said), "{pair}: words are missing or out of order");
            let words = said.split(' ').count();
            if client.0 == Dialect::Anthropic {
                // A client that names its limit is measured against that.
                assert_eq!(
                    (row.ending, row.reason.as_str()),
                    (Ending::UpstreamFault, "limit_ignored"),
                    "{pair}: {error}"
                );
                assert!((2_000..=4 * 2_000 + 256).contains(&words), "{pair}: {words} words reached the client");
                assert!(row.charge <= row.hold, "{pair}: {} of {}", row.charge, row.hold);
            } else {
                // The others end at what there is.
                assert!(code == "insufficient_balance" || error["type"] == "billing_error", "{pair}: {error}");
                assert_eq!((row.ending, row.reason.as_str()), (Ending::Refused, "insufficient_balance"), "{pair}");
                assert!((3_000..=5_000).contains(&words), "{pair}: {words} words reached the client");
                assert!(row.charge <= row.hold && row.charge.nano() > 3_000 * 2_000, "{pair}: {}", row.charge);
            }
        }
    }
}

/// Case 83. The provider is silent until the client has seen that the silence is filled.
#[tokio::test(flavor = "multi_thread")]
async fn silence_is_filled_in_the_way_each_client_tolerates() {
    let plan = Plan { config: "[limits]\nheartbeat = \"20ms\"\n".to_owned(), catalog: CATALOG, ..Default::default() };
    let house = House::with(plan).await;
    for client in Client::all() {
        for model in UPSTREAMS {
            let is_filled = |text: &str| match client.0 {
                Dialect::Chat | Dialect::Responses => text.contains(": hb\n"),
                Dialect::Anthropic => text.contains("event: ping\ndata: {\"type\":\"ping\"}\n\n"),
                Dialect::Gemini => text.contains("\n\n\n") && !text.contains(": hb"),
            };
            house.sim.shut("/_door");
            let mut reply = client.ask(&house, model, "[[sim:tokens=12 door=8]]", true).await;
            let mut text = String::new();
            while !is_filled(&text) {
                let piece = tokio::time::timeout(HANG, reply.chunk()).await;
                let piece = piece.unwrap_or_else(|_| panic!("{client:?} of {model}: {text:?}"));
                let piece = piece.expect("a piece").unwrap_or_else(|| panic!("{client:?} of {model} ended: {text:?}"));
                text.push_str(&String::from_utf8_lossy(&piece));
            }
            house.sim.open();
            text.push_str(&reply.text().await.expect("the rest"));
            assert!(client.is_whole(&text, &events(&text)), "{client:?} of {model}: {text}");
        }
    }
}

/// The first of the simulator's words, none left out and none twice.
fn is_what_was_said(text: &str) -> bool {
    let words = "the gate opens for every coin and counts each one with care";
    text.split(' ').eq(words.split(' ').cycle().take(text.split(' ').count()))
}

/// Free of charge, so that nothing but bytes is moved; `sim-faststream` keeps nothing either.
const ENDLESS: &str = r#"
[model."gemini-endless-openai"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 0, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-faststream-2000" }]
[model."gemini-endless-anthropic"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 0, output = 0 }
route = [{ provider = "sim-anthropic", upstream_model = "sim-faststream-2000" }]
[model."gemini-endless-openai-response"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 0, output = 0 }
route = [{ provider = "sim-responses", upstream_model = "sim-faststream-2000" }]
[model."gemini-endless-gemini"]
supported_endpoint_types = ["openai", "anthropic", "openai-response", "gemini"]
price = { input = 0, output = 0 }
route = [{ provider = "sim-gemini", upstream_model = "sim-faststream-2000" }]
"#;
const PIECES: usize = 2_000;
const PIECE: usize = 4_096;

/// 8 MB of text in every pair, each piece of it intact, while the process grows by much less than
/// that. A client of Responses gets the whole text once more at the end, so what is said has to
/// be buffered for it, once; bytes that pass untranslated are not.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_any_length_takes_the_same_memory() {
    let house = House::with(Plan { catalog: ENDLESS, ..Plan::default() }).await;
    let mut clients = Client::all();
    // What was needed once stays with the process and would hide what others take.
    clients.sort_by_key(|client| client.0 == Dialect::Responses);
    for client in clients {
        for dialect in Dialect::ALL {
            let buffered = client.0 == Dialect::Responses && dialect != Dialect::Responses;
            // Places of citations are counted in text that is buffered up to 4 MiB
            // (docs/dialects.md).
            let cited = matches!(
                (client.0, dialect),
                (Dialect::Chat, Dialect::Gemini) | (Dialect::Gemini, Dialect::Chat | Dialect::Responses)
            );
            let most = match (buffered, cited) {
                (true, _) => 8 * PIECES * PIECE,
                (_, true) => PIECES * PIECE * 3 / 4,
                _ => PIECES * PIECE / 3,
            };
            let mut grown = usize::MAX;
            // Tests beside this one may be in the same process; what grows by itself grows every
            // time.
            for _ in 0..3 {
                grown = grown.min(growth(&house, client, dialect).await);
                if grown <= most {
                    break;
                }
            }
            assert!(grown <= most, "{client:?} on {dialect:?}: {grown} bytes more");
        }
    }
}

/// Reads one stream piece by piece; how much more memory the process had at some point after its
/// first tenth.
async fn growth(house: &House, client: Client, dialect: Dialect) -> usize {
    let model = format!("gemini-endless-{}", dialect.word());
    let mut body = client.body(&model, &format!("go on [[sim:size={PIECE}]]"), true);
    if client.0 == Dialect::Responses {
        body["store"] = false.into();
    }
    let mut reply = client.post(house, &client.path(&model, true), &body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{client:?} on {dialect:?}");
    let expected = format!("{:x<PIECE$}", " coin");
    let (mut text, mut looked, mut said, mut before, mut most) = (String::new(), 0, 0, 0, 0);
    let mut whole = false;
    while let Some(piece) = reply.chunk().await.expect("a chunk") {
        text.push_str(std::str::from_utf8(&piece).expect("letters only"));
        // From where the last look ended; one event can be all of the text.
        while let Some(end) = text[looked..].find('\n') {
            let line: String = text.drain(..=looked + end).collect();
            looked = 0;
            if line.starts_with("data: ") {
                let events = events(&line);
                whole = client.is_whole(&format!("{line}\n"), &events) || whole && events.is_empty();
                let heard = client.streamed_text(&events);
                assert!(heard.is_empty() || heard == expected, "{client:?} on {dialect:?}: piece {said}");
                said += usize::from(!heard.is_empty());
            }
            if said == PIECES / 10 {
                before = resident();
            }
        }
        looked = text.len();
        if said > PIECES / 10 && said.is_multiple_of(100) {
            most = most.max(resident());
        }
    }
    assert_eq!((said, whole), (PIECES, true), "{client:?} on {dialect:?}");
    most.max(resident()).saturating_sub(before)
}

/// Bytes of memory that this process has.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4_096
}

/// An event is as long as what was asked for allows: a provider that repeats a long system text is
/// an honest one.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_system_text_may_be_repeated_in_an_event() {
    let house = House::with(Plan { catalog: LONG, ..Plan::default() }).await;
    let body = serde_json::json!({
        "model": "gemini-long-openai-response", "stream": true, "store": false, "instructions": "be kind ".repeat(150_000),
        "input": "[[sim:tokens=3]] hello",
    });
    let reply = house.http.post(house.url("/v1/responses")).bearer_auth(&house.key).json(&body).send().await;
    let text = reply.expect("a reply").text().await.expect("a whole stream");
    assert!(text.lines().any(|line| line.len() > 1 << 20), "the text is repeated");
    assert!(text.contains("\"type\":\"response.completed\""), "{}", &text[text.len().saturating_sub(500)..]);
}
