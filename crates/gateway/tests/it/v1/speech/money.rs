//! What speech costs: characters, whatever becomes of the audio.

use super::{CHARACTER, ask, house, post, speak, spoken};
use crate::house::call_id;
use serde_json::{Value, json};
use tollgate_store::Ending;

/// Text in ten scripts: each Unicode scalar value is one character, and one billed token
/// (docs/billing.md).
const SCRIPTS: [(&str, u64); 12] = [
    ("Hello, world!", 13),
    ("Grüße aus Köln", 14),
    ("Привет, мир!", 12),
    ("Γειά σου Κόσμε", 14),
    ("שלום עולם", 9),
    ("مرحبا بالعالم", 13),
    ("नमस्ते दुनिया", 13),
    ("สวัสดีชาวโลก", 12),
    ("你好，世界。", 6),
    ("こんにちは世界", 7),
    ("안녕하세요 세계", 8),
    ("👩‍👩‍👧 e\u{301}\r\n", 10),
];

#[tokio::test(flavor = "multi_thread")]
async fn characters_in_ten_scripts_cost_the_same_each() {
    let house = house().await;
    for (text, characters) in SCRIPTS {
        assert_eq!(text.chars().count() as u64, characters, "{text}");
        let (row, _, _) = spoken(&house, &ask(text)).await;
        assert_eq!(row.counters.input, characters, "{text}");
        assert_eq!(row.charge.nano(), characters as i64 * CHARACTER, "{text}");
        assert_eq!(row.hold, row.charge, "what is held is what it costs");
    }
}

async fn quoted(house: &crate::house::House, body: &Value) -> Value {
    let url = house.url("/v1/quote?endpoint=/v1/audio/speech");
    let reply = house.http.post(url).bearer_auth(&house.key).json(body).send().await.expect("a reply");
    reply.json().await.expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quote_is_the_hold_and_the_charge() {
    let house = house().await;
    for model in [
        "demo-speech",
        "step-tts-mini",
        "speech-2.8-turbo",
        "eleven_multilingual_v2",
        "gemini-2.5-flash-tts",
        "qwen3-tts-flash",
        "cosyvoice-v3-flash",
    ] {
        for length in [1, 99, 600] {
            let mut body = json!({ "model": model, "input": "字".repeat(length) });
            let voice = match model {
                "eleven_multilingual_v2" => Some("v"),
                _ => None,
            };
            if let Some(voice) = voice {
                body["voice"] = json!(voice);
            }
            let quote = quoted(&house, &body).await;
            let (row, _, _) = spoken(&house, &body).await;
            assert_eq!(quote["kind"], "exact", "{quote}");
            for amount in ["total_nano_usd", "hold_nano_usd", "most_nano_usd"] {
                assert_eq!(quote[amount], row.charge.nano(), "{model} {amount}: {quote}");
            }
            assert_eq!(row.hold, row.charge);
            assert!(row.charge.nano() > 0 && row.counters.audio_output > 0, "shown, and free: {row:?}");
        }
    }
    let refused = quoted(&house, &json!({ "model": "step-tts-mini", "input": "x".repeat(1_001) })).await;
    assert_eq!(refused["error"]["param"], "input", "a quote refuses what the call would: {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_names_the_characters() {
    let house = house().await;
    let (row, _, _) = spoken(&house, &ask("Hello, world!")).await;
    let receipt: Value = house
        .get(&format!("/v1/usage/{}/receipt", row.call))
        .send()
        .await
        .expect("a reply")
        .json()
        .await
        .expect("JSON");
    let text = receipt.to_string();
    assert!(text.contains("\"character\"") && text.contains("13"), "{text}");
}

/// A client that leaves after audio has come pays all characters: the provider has read them.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_in_the_middle_of_audio_pays_all_characters() {
    let house = house().await;
    let input = "[[sim:door ms=4000]]";
    for events in [false, true] {
        house.sim.shut("/_door");
        let mut body = ask(input);
        body["stream_format"] = json!(if events { "sse" } else { "audio" });
        let mut reply = speak(&house, &body).await;
        let call = call_id(&reply);
        reply.chunk().await.expect("a chunk").expect("bytes");
        drop(reply);
        let row = house.row(call).await;
        assert_eq!((row.ending, row.charge.nano()), (Ending::ClientLeft, input.len() as i64 * CHARACTER));
        house.sim.open();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_before_any_audio_pays_nothing() {
    let house = house().await;
    let before = house.available().await;
    house.sim.shut("/v1/audio/speech");
    house.leave(post(&house, &ask("Hello."))).await;
    house.quiet().await;
    house.sim.open();
    let rows = house.all_rows().await;
    assert!(rows.values().all(|row| row.ending == Ending::ClientLeft && row.charge.nano() == 0), "{rows:?}");
    assert_eq!((rows.len(), house.available().await), (1, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_money_no_request() {
    let house = crate::house::House::with(crate::house::Plan {
        catalog: super::CATALOG,
        usd: "0.0001",
        ..crate::house::Plan::default()
    })
    .await;
    let (status, error) = crate::house::error_of(speak(&house, &ask("Hello, world!")).await).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")));
    assert_eq!((&error["needed_nano_usd"], &error["available_nano_usd"]), (&json!(13 * CHARACTER), &json!(100_000)));
    assert!(house.sim.received().is_empty());
}
