//! What comes back, in every format, and what it costs.

use super::{KIND, SECOND, form, house, post, row_of, sent, transcribe, wav};
use crate::house::{call_id, error_of};
use serde_json::{Value, json};

/// MM23: transcripts as text or subtitles brought no usage and were free; seconds that a provider
/// reported were not read.
#[tokio::test(flavor = "multi_thread")]
async fn every_format_and_every_report_of_usage_costs_the_same() {
    let house = house().await;
    let file = wav(2_345);
    let before = house.available().await;
    let mut calls = 0;
    for format in ["json", "text", "srt", "vtt", "verbose_json"] {
        for usage in ["", "[[sim:usage=none]]", "[[sim:usage=mistral seconds=3]]", "[[sim:seconds=2.345]]"] {
            let reply = transcribe(&house, "whisper", &[("response_format", format), ("prompt", usage)], &file).await;
            assert_eq!(reply.status(), 200, "{format} {usage}");
            let charge = reply.headers()["x-tollgate-charge-usd"].to_str().expect("text").to_owned();
            assert_eq!(charge, "0.018", "{format} {usage}");
            let row = row_of(&house, &reply).await;
            assert_eq!((row.charge.nano(), row.counters.seconds), (3 * SECOND, 3));
            assert_eq!((row.counters.audio_input, row.counters.output), (50, 0), "shown, and not charged again");
            assert_eq!(row.hold, row.charge, "what is held is what is charged");
            calls += 1;
        }
    }
    house.quiet().await;
    assert_eq!(before - house.available().await, calls * 3 * SECOND);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_format_has_its_shape() {
    let house = house().await;
    let file = wav(1_000);
    let said = format!("sim heard {} bytes", file.len());
    for (format, kind, expected) in [
        ("text", "text/plain; charset=utf-8", format!("{said}\n")),
        ("srt", "text/plain; charset=utf-8", format!("1\n00:00:00,000 --> 00:00:03,000\n{said}\n\n")),
        ("vtt", "text/plain; charset=utf-8", format!("WEBVTT\n\n00:00:00.000 --> 00:00:03.000\n{said}\n\n")),
    ] {
        let reply = transcribe(&house, "whisper", &[("response_format", format)], &file).await;
        assert_eq!(reply.headers()["content-type"], kind, "{format}");
        assert_eq!(reply.text().await.expect("text"), expected);
    }
    let reply = transcribe(&house, "whisper", &[], &file).await;
    assert_eq!(reply.headers()["content-type"], "application/json");
    let json: Value = reply.json().await.expect("JSON");
    assert_eq!(
        json,
        json!({ "text": said, "usage": { "type": "duration", "seconds": 3.0 } }),
        "no id of the provider's"
    );
    let words = [("response_format", "verbose_json"), ("timestamp_granularities[]", "word")];
    let verbose: Value = transcribe(&house, "whisper", &words, &file).await.json().await.expect("JSON");
    assert_eq!((&verbose["segments"][0]["text"], &verbose["words"][0]["word"]), (&json!(said), &json!("sim")));
    // What only words have is asked of a model that has it.
    let (status, error) = error_of(transcribe(&house, "gpt-ears", &[("response_format", "srt")], &file).await).await;
    assert_eq!(
        (status, &error["code"], &error["param"]),
        (400, &json!("unsupported_value"), &json!("response_format"))
    );
}

/// MM26: a form that was sent on without its boundary was refused. Ours is a new one.
#[tokio::test(flavor = "multi_thread")]
async fn fields_may_stand_in_any_order_and_go_on_with_a_name_of_ours() {
    let house = house().await;
    let file = wav(500);
    let fields = [
        ("file", ""),
        ("language", "de"),
        ("timestamp_granularities[0]", "segment"),
        ("response_format", "verbose_json"),
        ("temperature", "0.2"),
        ("model", "whisper"),
        ("stream", "false"),
    ];
    let body = form(&fields, "C:\\my \"song\".exe", &file);
    let reply = post(&house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let received = house.sim.received().pop().expect("a request");
    let call: tollgate_store::CallId = received.header("x-client-request-id").expect("an id").parse().expect("ours");
    assert_eq!(call, call_id(&reply));
    let (mut fields, name, bytes) = sent(&received.body);
    fields.sort();
    let pairs: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("language", "de"),
            ("model", "whisper-sim"),
            ("response_format", "verbose_json"),
            ("temperature", "0.2"),
            ("timestamp_granularities[]", "segment"),
        ]
    );
    assert_eq!(name, "audio.wav");
    assert!(bytes == file, "the same bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_translation_is_for_models_that_translate() {
    let house = house().await;
    let body = |model: &str| form(&[("model", model), ("prompt", "p"), ("file", "")], "a.wav", &wav(1_500));
    let reply = post(&house, "/v1/audio/translations", KIND, body("whisper")).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let row = row_of(&house, &reply).await;
    assert_eq!((row.charge.nano(), row.endpoint.as_str()), (2 * SECOND, "/v1/audio/translations"));
    assert_eq!(house.sim.received()[0].path, "/v1/audio/translations");
    let reply = post(&house, "/v1/audio/translations", KIND, body("gpt-ears")).send().await.expect("a reply");
    let (status, error) = error_of(reply).await;
    assert_eq!((status, &error["param"]), (400, &json!("model")));
    assert_eq!(house.sim.received().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named_before_anything_is_held() {
    let house = house().await;
    let file = wav(1_000);
    for (model, more, param, code) in [
        ("whisper", ("response_format", "html"), "response_format", "invalid_parameter"),
        ("whisper", ("temperature", "warm"), "temperature", "invalid_parameter"),
        ("whisper", ("url", "https://a.example/b.mp3"), "url", "unknown_parameter"),
        ("whisper", ("use_multi_channel", "true"), "use_multi_channel", "unknown_parameter"),
        ("nobody", ("language", "de"), "model", "model_not_found"),
        ("plain", ("language", "de"), "model", "unsupported_value"),
    ] {
        let (status, error) = error_of(transcribe(&house, model, &[more], &file).await).await;
        assert!((400..405).contains(&status), "{status} {error}");
        assert_eq!((&error["param"], &error["code"]), (&json!(param), &json!(code)), "{model} {more:?}: {error}");
    }
    for (fields, param) in [(vec![("model", "whisper")], "file"), (vec![("file", "")], "model")] {
        let body = form(&fields, "a", &file);
        let reply = post(&house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, &error["code"], &error["param"]), (400, &json!("missing_parameter"), &json!(param)));
    }
    let two = [form(&[("model", "whisper"), ("file", "")], "a", &file), form(&[("file", "")], "b", &file)];
    let cut = two[0].len() - "--a-b--\r\n".len();
    let body = [&two[0][..cut], &two[1]].concat();
    let reply = post(&house, "/v1/audio/transcriptions", KIND, body).send().await.expect("a reply");
    assert_eq!(error_of(reply).await.1["param"], "file");
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}

/// The same form with another boundary.
fn with_boundary(body: &[u8], boundary: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), body);
    while let Some(at) = rest.windows(5).position(|window| window == b"--a-b") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(format!("--{boundary}").as_bytes());
        rest = &rest[at + 5..];
    }
    out.extend_from_slice(rest);
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_finds_the_same_transcript_whatever_the_boundary() {
    let house = house().await;
    let ask = |boundary: &str, file: &[u8]| {
        let body = form(&[("model", "whisper"), ("file", "")], "a.wav", file);
        let body = with_boundary(&body, boundary);
        let kind = format!("multipart/form-data; boundary={boundary}");
        post(&house, "/v1/audio/transcriptions", &kind, body).header("idempotency-key", "once")
    };
    let file = wav(1_000);
    let first = ask("first", &file).send().await.expect("a reply");
    assert_eq!(first.status(), 200);
    let (call, text) = (call_id(&first), first.text().await.expect("text"));
    house.row(call).await;
    let again = ask("second", &file).send().await.expect("a reply");
    assert_eq!((again.headers()["idempotency-replayed"].as_bytes(), call_id(&again)), (&b"true"[..], call));
    assert_eq!(again.text().await.expect("text"), text);
    let mut other = file.clone();
    *other.last_mut().expect("a byte") = 1;
    let (status, error) = error_of(ask("third", &other).send().await.expect("a reply")).await;
    assert_eq!((status, &error["code"]), (409, &json!("idempotency_conflict")));
    assert_eq!((house.sim.received().len(), house.all_rows().await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_is_what_is_held_and_charged() {
    let house = house().await;
    let quote = |body: Value| {
        let url = house.url("/v1/quote?endpoint=/v1/audio/transcriptions");
        house.http.post(url).bearer_auth(&house.key).json(&body).send()
    };
    for (millis, seconds) in [(200, 1), (1_000, 1), (1_001, 2), (12_345, 13), (30_000, 30)] {
        let asked = json!({ "model": "short-ears", "seconds": f64::from(millis) / 1_000.0 });
        let quoted: Value = quote(asked).await.expect("a reply").json().await.expect("JSON");
        assert_eq!(
            (&quoted["kind"], &quoted["total_nano_usd"]),
            (&json!("exact"), &json!(seconds * SECOND)),
            "{quoted}"
        );
        assert_eq!(quoted["hold_nano_usd"], quoted["total_nano_usd"]);
        let reply = transcribe(&house, "short-ears", &[], &wav(millis)).await;
        let row = row_of(&house, &reply).await;
        assert_eq!((row.charge.nano(), row.hold.nano()), (seconds * SECOND, seconds * SECOND), "{millis}");
    }
    let long = quote(json!({ "model": "short-ears", "seconds": 30.1 })).await.expect("a reply");
    assert_eq!(error_of(long).await.1["param"], "file");
    let large = quote(json!({ "model": "short-ears", "seconds": 3, "bytes": 26_214_401 })).await.expect("a reply");
    assert_eq!(error_of(large).await.0, 413);
    let other = quote(json!({ "model": "bigmodel-streaming", "seconds": 3, "format": "mp3" })).await.expect("a reply");
    assert_eq!(error_of(other).await.0, 400);
    let flat = transcribe(&house, "flat-ears", &[], &wav(9_000)).await;
    assert_eq!(row_of(&house, &flat).await.charge.nano(), 1_000_000);
}
