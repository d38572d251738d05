//! Speech that Gemini's models make by `generateContent`: it passes as it is, whole and in pieces,
//! each token of it is charged at the price of audio, and only a model that makes it is asked.

use super::client::Client;
use super::scripted::{Scripted, Written};
use crate::house::{House, Plan, call_id, error_of};
use serde_json::{Value, json};
use tollgate_wire::Dialect;

const INPUT: i64 = 1_000;
const TEXT: i64 = 2_000;
const VOICE: i64 = 20_000;
/// The longest answer that is asked for.
const MOST: i64 = 2_000;

/// Text at 2,000 nano-USD a token and voices at ten times as much; a model of text; one whose
/// entry says neither what it makes nor what a voice costs.
const CATALOG: &str = r#"
[model."gemini-speaks"]
context_window = 100_000
max_output_tokens = 10_000
output_modalities = ["text", "audio"]
supported_endpoint_types = ["openai", "gemini"]
price = { input = 1_000_000, output = 2_000_000, audio_output = 20_000_000 }
route = [{ provider = "script", upstream_model = "up" }]

[model."gemini-writes"]
context_window = 100_000
max_output_tokens = 10_000
output_modalities = ["text"]
supported_endpoint_types = ["openai", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "up" }]

[model."gemini-unlisted"]
context_window = 100_000
max_output_tokens = 10_000
supported_endpoint_types = ["openai", "gemini"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "script", upstream_model = "up" }]
"#;

const GEMINI: Client = Client(Dialect::Gemini);

fn wish() -> Value {
    let mut body = GEMINI.body("", "Say: a bridge", false);
    body["generationConfig"] = json!({
        "responseModalities": ["AUDIO"], "maxOutputTokens": MOST,
        "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}},
    });
    body
}

/// A piece of 24 kHz samples, as letters.
fn letters(seed: usize, length: usize) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..length).map(|at| char::from(letters[(at * 7 + seed * 13 + at / 64) % 64])).collect()
}

fn event(data: &str, finish: Option<&str>, usage: Option<&Value>) -> Value {
    let part = json!({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": data}});
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": [part]}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let mut event = json!({"candidates": [candidate], "modelVersion": "up", "responseId": "r"});
    if let Some(usage) = usage {
        event["usageMetadata"] = usage.clone();
    }
    event
}

/// Ten tokens read, so many of a voice and three of text made.
fn report(voice: i64) -> Value {
    json!({"promptTokenCount": 10, "candidatesTokenCount": voice + 3, "totalTokenCount": voice + 13,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}],
        "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": voice}, {"modality": "TEXT", "tokenCount": 3}]})
}

async fn house_of(answers: Vec<Written>) -> House {
    house_of_kind("gemini", answers).await
}

async fn house_of_kind(kind: &str, answers: Vec<Written>) -> House {
    let config = Scripted::start(answers).await.config(kind);
    House::with(Plan { catalog: CATALOG, config, ..Plan::default() }).await
}

async fn ask(house: &House, model: &str, stream: bool) -> reqwest::Response {
    let reply = GEMINI.post(house, &GEMINI.path(model, stream), &wish()).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    reply
}

/// The public name stands where the provider's did; nothing else may differ.
fn as_made(mut written: Value, model: &str) -> Value {
    assert_eq!(written["modelVersion"], model);
    written["modelVersion"] = json!("up");
    written
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_passes_whole_and_costs_what_audio_costs() {
    // The last is as long as it may be: what is held still covers it.
    for voice in [1, 1_290, MOST - 3] {
        let answer = event(&letters(1, 400_000), Some("STOP"), Some(&report(voice)));
        let house = house_of(vec![Written::json(&answer)]).await;
        let reply = ask(&house, "gemini-speaks", false).await;
        let call = call_id(&reply);
        let written = as_made(reply.json().await.expect("JSON"), "gemini-speaks");
        assert!(written == answer, "the answer was changed");
        let row = house.row(call).await;
        let counters = &row.counters;
        assert_eq!((counters.input, counters.output), (10, 3), "{row:?}");
        assert_eq!((counters.audio_output, counters.image_output), (u64::try_from(voice).expect("few"), 0), "{row:?}");
        assert_eq!((row.charge.nano(), row.estimated), (10 * INPUT + 3 * TEXT + voice * VOICE, false), "{row:?}");
        assert!(row.hold.nano() >= MOST * VOICE && row.hold >= row.charge, "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_passes_in_pieces_and_costs_what_audio_costs() {
    let pieces: Vec<String> = (0..5).map(|seed| letters(seed, 90_000)).collect();
    let events = pieces.iter().enumerate().map(|(at, data)| {
        let last = at + 1 == pieces.len();
        event(data, last.then_some("STOP"), last.then_some(&report(1_290)))
    });
    let sent: Vec<Value> = events.collect();
    let text: String = sent.iter().map(|event| format!("data: {event}\n\n")).collect();
    let house = house_of(vec![Written::events(text)]).await;
    let reply = ask(&house, "gemini-speaks", true).await;
    let call = call_id(&reply);
    let text = reply.text().await.expect("events");
    let got: Vec<Value> = text
        .split("\n\n")
        .filter_map(|event| event.trim().strip_prefix("data: "))
        .map(|event| as_made(serde_json::from_str(event).expect("JSON"), "gemini-speaks"))
        .collect();
    assert!(got == sent, "{} of {} events, or changed", got.len(), sent.len());
    let row = house.row(call).await;
    assert_eq!((row.counters.output, row.counters.audio_output, row.estimated), (3, 1_290, false), "{row:?}");
    assert_eq!(row.charge.nano(), 10 * INPUT + 3 * TEXT + 1_290 * VOICE);
    assert!(row.hold >= row.charge, "{row:?}");
}

/// What the quote says is what is held.
#[tokio::test(flavor = "multi_thread")]
async fn a_voice_is_held_for_at_the_price_of_audio() {
    let house = house_of(vec![Written::json(event("QUJD", Some("STOP"), Some(&report(5))))]).await;
    let path = GEMINI.path("gemini-speaks", false);
    let quote = GEMINI.post(&house, &format!("/v1/quote?endpoint={path}"), &wish()).send().await.expect("a reply");
    let quote: Value = quote.json().await.expect("JSON");
    let row = house.row(call_id(&ask(&house, "gemini-speaks", false).await)).await;
    assert_eq!(quote["hold_nano_usd"].as_i64(), Some(row.hold.nano()), "{quote}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_of_a_model_that_makes_none_is_refused_by_name_and_free() {
    let house = house_of(Vec::new()).await;
    let spellings = [
        ("responseModalities", json!(["AUDIO"]), "generationConfig.responseModalities[0]"),
        ("responseModalities", json!(["TEXT", "audio"]), "generationConfig.responseModalities[1]"),
        ("response_modalities", json!(["IMAGE"]), "generationConfig.response_modalities[0]"),
        ("responseModalities", json!("AUDIO"), "generationConfig.responseModalities"),
    ];
    let models = [("gemini-writes", "it makes: text"), ("gemini-unlisted", "has no price for output of the kind")];
    for (stream, (model, why)) in [false, true].into_iter().flat_map(|stream| models.map(|model| (stream, model))) {
        for (member, words, field) in &spellings {
            let mut body = GEMINI.body("", "Say: a bridge", false);
            body["generationConfig"] = json!({ *member: words });
            let path = GEMINI.path(model, stream);
            let bare = path.split('?').next().expect("a path");
            for path in [path.as_str(), &format!("/v1/quote?endpoint={bare}")] {
                let (status, error) = error_of(GEMINI.post(&house, path, &body).send().await.expect("a reply")).await;
                assert_eq!(status, 400, "{path}: {error}");
                let text = error.to_string();
                assert!(text.contains(field) && text.contains(why), "{path}: {text}");
            }
        }
    }
    assert_eq!((house.all_rows().await.len(), house.available().await), (0, 10_000_000_000));
    // The same where chat completions are spoken to.
    let house = house_of_kind("openai", Vec::new()).await;
    for (model, _) in models {
        let mut body = Client(Dialect::Chat).body(model, "Say: a bridge", false);
        body["modalities"] = json!(["text", "audio"]);
        body["audio"] = json!({"voice": "alloy", "format": "wav"});
        let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
        assert_eq!((status, &error["param"]), (400, &json!("modalities[1]")), "{model}: {error}");
    }
    assert_eq!((house.all_rows().await.len(), house.available().await), (0, 10_000_000_000));
}

/// Nobody is asked for a voice in another dialect than the one that was spoken to.
#[tokio::test(flavor = "multi_thread")]
async fn a_voice_is_not_translated_and_refused_by_the_field() {
    let house = house_of(Vec::new()).await;
    let chat = Client(Dialect::Chat);
    for (member, value) in
        [("modalities", json!(["text", "audio"])), ("audio", json!({"voice": "alloy", "format": "wav"}))]
    {
        let mut body = chat.body("gemini-speaks", "Say: a bridge", false);
        body[member] = value;
        let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
        assert_eq!(status, 400, "{error}");
        assert!(error["param"].as_str().is_some_and(|param| param.starts_with(member)), "{error}");
    }
    assert_eq!(house.available().await, 10_000_000_000);
}

/// One that nobody asked for, and that has no price of its own, costs what text costs, as
/// docs/billing.md says; it is never free.
#[tokio::test(flavor = "multi_thread")]
async fn a_voice_without_a_price_of_its_own_costs_what_output_costs() {
    let answer = event(&letters(1, 4_000), Some("STOP"), Some(&report(1_290)));
    let house = house_of(vec![Written::json(&answer)]).await;
    let mut body = wish();
    body["generationConfig"] = json!({ "responseModalities": ["TEXT"], "maxOutputTokens": MOST });
    let reply = GEMINI.post(&house, &GEMINI.path("gemini-unlisted", false), &body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let row = house.row(call_id(&reply)).await;
    assert_eq!((row.counters.output, row.counters.audio_output), (3, 1_290), "{row:?}");
    assert_eq!(row.charge.nano(), 10 * INPUT + 1_293 * TEXT);
    assert!(row.hold >= row.charge);
    // And a model that is said to speak cannot be sold without.
    let mute = CATALOG.replace(", audio_output = 20_000_000", "");
    std::fs::write(house.dir.join("catalog/more.toml"), mute).expect("written");
    let mistakes = house.source.load().err().expect("mistakes");
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("model.gemini-speaks.price.audio_output: is missing"), "{lines:?}");
}
