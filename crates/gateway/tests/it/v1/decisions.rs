//! POST /v1/systemone and POST /v1/decisions.

use crate::house::{House, Plan, call_id, error_of};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Response;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::Ending;

/// A token that is read costs 1,000 nano-USD; answers are free.
pub const CATALOG: &str = r#"
[model."judge-one"]
type = "decision"
description = "Decides, at a provider of System One."
supported_endpoint_types = ["system-one"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim-systemone", upstream_model = "sim-plain" }]

[model."judge-openai"]
type = "decision"
description = "Decides, at OpenAI."
supported_endpoint_types = ["system-one"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]

[model."judge-two"]
type = "decision"
supported_endpoint_types = ["system-one"]
price = { input = 1_000_000, output = 0 }
route = [
  { provider = "nobody", upstream_model = "sim-plain", priority = 0 },
  { provider = "sim-systemone", upstream_model = "sim-plain", priority = 1 },
]
[[model."judge-two".tier]]
name = "decisions"
when = [{ dim = "request_attr", path = "endpoint", equals = "decisions" }]
multiplier = 2
"#;

pub const PROVIDERS: &str = "[provider.sim-systemone]\nkind = \"system-one\"\nbase_url = \"{host}\"\n";

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, config: PROVIDERS.to_owned(), ..Plan::default() }).await
}

async fn post(house: &House, path: &str, body: &Value) -> Response {
    house.http.post(house.url(path)).bearer_auth(&house.key).json(body).send().await.expect("a reply")
}

fn system_one(model: &str) -> Value {
    json!({ "model": model, "state": { "text": "I was charged twice." }, "questions": {
        "billing": { "type": "noul", "instructions": "Is this about billing?", "criteria": { "true": "money" } },
        "level": { "type": "score", "criteria": ["low", "high"] },
        "tone": { "type": "choice", "instructions": "What is the tone?", "criteria": { "angry": "loud", "calm": null } },
    } })
}

fn decisions(model: &str) -> Value {
    json!({ "model": model, "input": "I was charged twice.", "questions": [
        { "type": "predicate", "name": "billing", "instructions": "Is this about billing?" },
        { "type": "score", "name": "level", "instructions": "How bad?", "levels": [{ "label": "low" }, { "label": "high" }] },
        { "type": "choice", "instructions": "Is it?", "choices": [{ "value": false }, { "value": "yes", "description": "it is" }] },
    ] })
}

#[tokio::test(flavor = "multi_thread")]
async fn both_formats_are_answered_by_providers_of_either() {
    let house = house().await;
    for model in ["judge-one", "judge-openai", "judge-two"] {
        house.sim.clear();
        let reply = post(&house, "/v1/systemone", &system_one(model)).await;
        assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
        let call = call_id(&reply);
        assert_eq!(reply.headers()["x-typesafe-request-id"], call.to_string().as_str());
        let body: Value = reply.json().await.expect("JSON");
        let answers = &body["answers"];
        assert_eq!(body["model"], json!(model));
        assert_eq!(answers["billing"], json!({ "type": "noul", "noul": 0.75 }), "{model}");
        let tone = json!({ "type": "choice", "choice": "angry", "confidence": 0.5, "probabilities": { "angry": 0.75, "calm": 0.25 } });
        assert_eq!(answers["tone"], tone, "{model}");
        let level = json!({
            "type": "score", "score": 0.25, "confidence": 0.5, "legend": { "0": "low", "1": "high" }, "probabilities": { "0": 0.75, "1": 0.25 },
        });
        assert_eq!(answers["level"], level, "{model}");
        let row = house.row(call).await;
        assert_eq!(body["usage"]["input_tokens"], json!(row.counters.input), "{model}");
        let input = i64::try_from(row.counters.input).expect("few");
        assert_eq!((row.charge.nano(), row.estimated), (input * 1_000, false), "{model}");
        assert!(row.hold >= row.charge && row.ending == Ending::Answered, "{row:?}");
        assert_eq!(row.endpoint, "/v1/systemone");

        let reply = post(&house, "/v1/decisions", &decisions(model)).await;
        assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
        let call = call_id(&reply);
        let body: Value = reply.json().await.expect("JSON");
        let expected = json!([
            { "type": "predicate", "name": "billing", "probability": 0.75 },
            { "type": "score", "name": "level", "score": 0.25, "confidence": 0.5, "probabilities": [
                { "label": "low", "value": 0, "probability": 0.75 }, { "label": "high", "value": 1, "probability": 0.25 },
            ] },
            { "type": "choice", "name": null, "choice": false, "confidence": 0.5, "probabilities": [
                { "value": false, "probability": 0.75 }, { "value": "yes", "probability": 0.25 },
            ] },
        ]);
        assert_eq!((&body["answers"], &body["model"]), (&expected, &json!(model)));
        assert!(body["usage"]["output_tokens_details"]["reasoning_tokens"].is_u64(), "{body}");
        let row = house.row(call).await;
        // One model may have a price for each of its endpoints.
        let times = if model == "judge-two" { 2 } else { 1 };
        let input = i64::try_from(row.counters.input).expect("few");
        assert_eq!(row.charge.nano(), input * 1_000 * times, "{model}");
        assert!(row.hold >= row.charge, "{row:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_other_format_has_no_word_for_is_named() {
    let house = house().await;
    let mut asked = decisions("judge-one");
    asked["prompt_cache_key"] = json!("k");
    asked["questions"][0]["strict"] = json!(true);
    let dropped = "prompt_cache_key,questions[0].strict";
    let reply = post(&house, "/v1/decisions", &asked).await;
    assert_eq!(
        (reply.status().as_u16(), &reply.headers()["x-tollgate-dropped"]),
        (200, &dropped.parse().expect("a value"))
    );
    assert_eq!(house.row(call_id(&reply)).await.dropped.as_deref(), Some(dropped));
    let sent = house.sim.received().len();
    for (path, mut body) in [("/v1/decisions", decisions("judge-openai")), ("/v1/systemone", system_one("judge-one"))] {
        body["images"] = json!(["data:image/png;base64,AA=="]);
        let (status, error) = error_of(post(&house, path, &body).await).await;
        assert_eq!((status, &error["param"]), (400, &json!("images")), "read, and counted by nobody: {error}");
    }
    assert_eq!(house.sim.received().len(), sent);
    let mut asked = decisions("judge-openai");
    asked["prompt_cache_key"] = json!("k");
    let reply = post(&house, "/v1/decisions", &asked).await;
    assert!(reply.status().is_success() && !reply.headers().contains_key("x-tollgate-dropped"));
    assert_eq!(house.sim.received().last().expect("a request").json()["prompt_cache_key"], json!("k"));
    let mut asked = system_one("judge-openai");
    asked["seed"] = json!(7);
    let reply = post(&house, "/v1/systemone", &asked).await;
    assert_eq!(reply.headers()["x-tollgate-dropped"], "seed");
}

/// MM37: aggregators that take both formats at one path give wrong answers in silence.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_the_other_format_is_refused_with_its_endpoint() {
    let house = house().await;
    for model in ["judge-one", "judge-openai"] {
        for (path, body, other, field) in [
            ("/v1/systemone", decisions(model), "/v1/decisions", "input"),
            ("/v1/decisions", system_one(model), "/v1/systemone", "state"),
        ] {
            let (status, error) = error_of(post(&house, path, &body).await).await;
            assert_eq!((status, &error["param"]), (400, &json!(field)), "{error}");
            assert!(error["message"].as_str().expect("a message").contains(other), "{error}");
        }
        let mut both = system_one(model);
        both["input"] = json!("x");
        assert_eq!(post(&house, "/v1/systemone", &both).await.status(), 400);
        let mut mixed = system_one(model);
        mixed["questions"] = decisions(model)["questions"].clone();
        let (_, error) = error_of(post(&house, "/v1/systemone", &mixed).await).await;
        assert!(error["message"].as_str().expect("a message").contains("/v1/decisions"), "{error}");
    }
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_not_answered_is_reported_in_each_format() {
    let house = house().await;
    for model in ["judge-one", "judge-openai"] {
        let mut asked = system_one(model);
        asked["questions"]["tone"]["instructions"] = json!("[[refuse]]");
        let body: Value = post(&house, "/v1/systemone", &asked).await.json().await.expect("JSON");
        assert!(body["answers"]["billing"].is_object() && body["answers"].get("tone").is_none(), "{model}: {body}");
        let mut asked = decisions(model);
        asked["questions"][0]["instructions"] = json!("[[refuse]]");
        let body: Value = post(&house, "/v1/decisions", &asked).await.json().await.expect("JSON");
        assert_eq!(body["answers"][0], json!({ "type": "refusal", "name": "billing" }), "{model}");
    }
}

/// A PNG as far as anybody looks at it.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

fn form(model: &str, boundary: &str) -> (String, Vec<u8>) {
    form_of(model, boundary, PICTURE)
}

fn form_of(model: &str, boundary: &str, picture: &[u8]) -> (String, Vec<u8>) {
    let mut request = system_one(model);
    request["assets"] = json!({ "photo": { "type": "image", "part": "asset-0" } });
    let mut body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json\r\n\r\n{request}\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"asset-0\"; filename=\"asset-0\"\r\nContent-Type: image/png\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(picture);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_come_as_parts_of_a_form() {
    let house = house().await;
    for model in ["judge-one", "judge-openai"] {
        house.sim.clear();
        let send = |boundary: &str| {
            let (kind, body) = form(model, boundary);
            let request = house.http.post(house.url("/v1/systemone")).bearer_auth(&house.key);
            request.header("content-type", kind).header("idempotency-key", model).body(body).send()
        };
        let reply = send("first").await.expect("a reply");
        assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
        house.quiet().await;
        let again = send("second").await.expect("a reply");
        assert!(
            again.headers().contains_key("idempotency-replayed"),
            "{model}: the boundary is another with every try"
        );
        let sent = house.sim.received();
        assert_eq!(sent.len(), 1, "{model}");
        let sent = sent[0].json().to_string();
        assert!(sent.contains("iVBORw0KGgogYW5kIHNvIG9u") && !sent.contains("asset-0"), "{model}: {sent}");
    }
    let (kind, body) = form("judge-one", "x");
    let cut = &body[..body.len() / 2];
    for (kind, body) in [(kind.as_str(), cut), ("multipart/form-data", &body[..]), (kind.as_str(), b"--x--".as_slice())]
    {
        let request = house.http.post(house.url("/v1/systemone")).bearer_auth(&house.key);
        let reply = request.header("content-type", kind).body(body.to_vec()).send().await.expect("a reply");
        assert_eq!(reply.status(), 400, "{kind}");
    }
}

/// A picture of 6 MiB, as it is and packed: on disk while the provider thinks, and base64 only
/// while it is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_picture_of_a_form_never_sits_in_memory() {
    let house = house().await;
    let app = &house.running().app;
    let mut picture = PICTURE.to_vec();
    picture.extend((0..6 << 20).map(|at: u32| (at % 251) as u8));
    let data = BASE64_STANDARD.encode(&picture);
    for (model, path) in [("judge-one", "/v1/systemone"), ("judge-openai", "/v1/decisions")] {
        for packed in [false, true] {
            house.sim.clear();
            let (kind, body) = form_of(model, "x", &picture);
            let request = house.http.post(house.url("/v1/systemone")).bearer_auth(&house.key);
            let request = match packed {
                true => request.header("content-encoding", "zstd").body(windowed(&body)),
                false => request.body(body),
            };
            house.sim.shut(path);
            let mut asking = tokio::task::JoinSet::new();
            asking.spawn(request.header("content-type", kind).send());
            while house.sim.received().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(app.bodies.used() <= 128 << 10, "{model}: {} bytes in memory", app.bodies.used());
            assert!(app.spool.budget.used() >= 6 << 20, "{model}: {} bytes on disk", app.spool.budget.used());
            house.sim.open();
            let reply = asking.join_next().await.expect("one").expect("sent").expect("a reply");
            assert_eq!(reply.status(), 200, "{model}: {}", reply.text().await.unwrap_or_default());
            let sent = house.sim.received();
            assert_eq!((sent.len(), sent[0].json().to_string().contains(&data)), (1, true), "{model} {packed}");
        }
    }
    house.quiet().await;
    assert_eq!((app.spool.budget.used(), app.bodies.used()), (0, 0));
    // What cannot be looked back at is not unpacked, and neither is what comes to too much.
    let mut wide = windowed(b"{}");
    wide[5] = 14 << 3;
    let bomb = repeated(u32::MAX - (128 << 10) + 1);
    for (body, status) in [(wide, 400), (bomb, 413), (windowed(b"--x--")[..9].to_vec(), 400)] {
        let request = house.http.post(house.url("/v1/systemone")).bearer_auth(&house.key);
        let request = request.header("content-type", "multipart/form-data; boundary=x");
        let reply = request.header("content-encoding", "zstd").body(body).send().await.expect("a reply");
        assert_eq!(reply.status(), status, "{}", reply.text().await.unwrap_or_default());
    }
}

/// What System One's SDK packs, as another library packs it: `{"model":"judge-one",…}`.
#[tokio::test(flavor = "multi_thread")]
async fn packed_bodies_are_unpacked_within_a_bound() {
    let house = House::with(Plan {
        catalog: CATALOG,
        config: format!("[limits]\nbody_bytes = \"64KiB\"\n{PROVIDERS}"),
        ..Plan::default()
    })
    .await;
    let send = |body: Vec<u8>, encoding: &'static str| {
        let request = house.http.post(house.url("/v1/systemone")).bearer_auth(&house.key);
        request.header("content-type", "application/json").header("content-encoding", encoding).body(body).send()
    };
    let mut asked = system_one("judge-one");
    asked["state"] = json!("word ".repeat(2_000));
    let reply = send(stored(asked.to_string().as_bytes()), "zstd").await.expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    // A few bytes that stand for 1 GiB.
    let (status, error) = error_of(send(repeated(1 << 30), "zstd").await.expect("a reply")).await;
    assert_eq!((status, &error["code"]), (413, &json!("body_too_large")));
    for broken in [b"not packed at all".to_vec(), stored(b"{}")[..7].to_vec(), Vec::new()] {
        assert_eq!(send(broken, "zstd").await.expect("a reply").status(), 400);
    }
    assert_eq!(send(stored(b"{}"), "gzip").await.expect("a reply").status(), 415);
    let elsewhere = house.http.post(house.url("/v1/decisions")).bearer_auth(&house.key);
    let elsewhere = elsewhere.header("content-type", "application/json").header("content-encoding", "zstd");
    assert_eq!(elsewhere.body(stored(b"{}")).send().await.expect("a reply").status(), 415);
}

/// A frame of blocks that are stored as they are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0b1010_0000];
    out.extend_from_slice(&u32::try_from(bytes.len()).expect("short").to_le_bytes());
    let blocks: Vec<&[u8]> = if bytes.is_empty() { vec![bytes] } else { bytes.chunks(65_536).collect() };
    for (at, block) in blocks.iter().enumerate() {
        let last = u32::from(at + 1 == blocks.len());
        let head = (u32::try_from(block.len()).expect("short") << 3) | last;
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out
}

/// The same with a window of 128 KiB, whatever the length.
fn windowed(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 7 << 3];
    out.extend_from_slice(&stored(bytes)[9..]);
    out
}

/// A frame of blocks that are one byte, repeated.
fn repeated(bytes: u32) -> Vec<u8> {
    // A window of 128 KiB.
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0b1000_0000, 7 << 3];
    out.extend_from_slice(&bytes.to_le_bytes());
    const BLOCK: u32 = 128 << 10;
    for at in 0..bytes / BLOCK {
        let last = u32::from(at + 1 == bytes / BLOCK);
        let head = (BLOCK << 3) | (1 << 1) | last;
        out.extend_from_slice(&head.to_le_bytes()[..3]);
        out.push(b' ');
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_decides_nothing_is_free_and_not_repeated() {
    let house = house().await;
    for (marker, code, once) in [
        ("garbage", "upstream_invalid_reply", true),
        ("empty", "upstream_invalid_reply", true),
        ("error400", "invalid_request", true),
        ("error429", "rate_limit_exceeded", false),
        ("error500", "upstream_error", false),
        ("error529", "overloaded", false),
        ("kind=inside", "overloaded", false),
    ] {
        for model in ["judge-one", "judge-openai"] {
            house.sim.clear();
            let mut asked = decisions(model);
            asked["input"] = json!(format!("[[sim:{marker}]]"));
            let reply = post(&house, "/v1/decisions", &asked).await;
            let call = call_id(&reply);
            let final_answer = reply.headers().get("x-should-retry").is_some_and(|value| value == "false");
            let (_, error) = error_of(reply).await;
            assert_eq!((&error["code"], final_answer), (&json!(code), once), "{model} {marker}: {error}");
            let row = house.row(call).await;
            assert_eq!((row.charge.nano(), house.sim.received().len()), (0, 1), "{model} {marker}");
        }
    }
    assert_eq!(house.available().await, 10_000_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_report_our_own_count_is_charged_and_reported() {
    let house = house().await;
    for model in ["judge-one", "judge-openai"] {
        for marker in ["no_usage", "wrong_usage kind=huge", "wrong_usage kind=strings"] {
            let mut asked = decisions(model);
            asked["input"] = json!(format!("some words [[sim:{marker}]]"));
            let reply = post(&house, "/v1/decisions", &asked).await;
            assert_eq!(reply.status(), 200, "{model} {marker}: {}", reply.text().await.unwrap_or_default());
            let row = house.row(call_id(&reply)).await;
            assert!(row.estimated && row.charge.nano() > 0 && row.charge <= row.hold, "{model} {marker}: {row:?}");
            if marker != "wrong_usage kind=huge" {
                let body: Value = reply.json().await.expect("JSON");
                assert_eq!(body["usage"]["input_tokens"], json!(row.counters.input), "{model} {marker}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_of_a_decision_is_its_hold() {
    let house = house().await;
    for (path, body) in [("/v1/systemone", system_one("judge-one")), ("/v1/decisions", decisions("judge-openai"))] {
        let quoted: Value =
            post(&house, &format!("/v1/quote?endpoint={path}"), &body).await.json().await.expect("JSON");
        let row = house.row(call_id(&post(&house, path, &body).await)).await;
        assert_eq!(quoted["hold_nano_usd"].as_i64(), Some(row.hold.nano()), "{path}: {quoted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn system_ones_sdk_sees_the_models_that_decide() {
    let house = house().await;
    let reply = house.get("/v1/models").header("x-typesafe-sdk", "python/0.7.5").send().await.expect("a reply");
    let body: Value = reply.json().await.expect("JSON");
    let names: Vec<&str> =
        body["models"].as_array().expect("models").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["judge-one", "judge-openai", "judge-two"]);
    assert!(body["models"][0]["description"].is_string() && body["models"][0]["release_date"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_provider_has_no_question_for_is_refused_before_anything_is_held() {
    let house = house().await;
    let mut asked = system_one("judge-openai");
    asked["questions"] = json!({ "where": { "type": "box", "instructions": "the dog" } });
    let (status, error) = error_of(post(&house, "/v1/systemone", &asked).await).await;
    assert_eq!(
        (status, &error["param"], &error["code"]),
        (400, &json!("questions.where"), &json!("unsupported_value"))
    );
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
}
