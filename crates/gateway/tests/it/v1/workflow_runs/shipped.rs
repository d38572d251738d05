//! The six shipped workflows: each is locked, verified by its fixture and run by a customer.

use super::RunHouse;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_store::CallId;

/// Verifies a workflow and runs it as a customer; the run.
async fn runs(slug: &str, asset: Option<(&str, &[u8])>, mut inputs: Value) -> (RunHouse, Value) {
    let house = RunHouse::shipped().await;
    let proof = house.verify(slug).await;
    assert_eq!(proof["status"], "completed", "{proof:#}");
    let stage = house.stage(slug).await;
    assert_eq!(stage["stage"], "verified", "{stage}");
    if let Some((input, bytes)) = asset {
        inputs[input] = house.uploaded(bytes).await;
    }
    let id = house.begin(slug, inputs).await;
    let run = house.ended(&id).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    costs_what_its_calls_cost(&house, &run).await;
    house.house.check().await;
    (house, run)
}

/// A run is one piece of money: its calls are in the usage log under its id, and come to its sum.
async fn costs_what_its_calls_cost(house: &RunHouse, run: &Value) {
    let mut sum = 0;
    for step in run["steps"].as_array().expect("steps") {
        let call: CallId = step["call_id"].as_str().expect("a call").parse().expect("an id");
        let row = house.house.row(call).await;
        assert_eq!(json!(row.charge.nano()), step["charged_nano_usd"]);
        assert!(row.charge.nano() <= step["most_nano_usd"].as_i64().expect("a bound"), "{step}");
        sum += row.charge.nano();
        let reply = house.house.get(&format!("/v1/usage/{call}")).send().await.expect("a reply");
        let shown: Value = reply.json().await.expect("JSON");
        assert_eq!(shown["run_id"], run["id"]);
        let receipt = house.house.get(&format!("/v1/usage/{call}/receipt")).send().await.expect("a reply");
        assert_eq!(receipt.status(), 200);
    }
    assert_eq!(json!(sum), run["charged_nano_usd"]);
    assert!(sum <= run["max_cost_nano_usd"].as_i64().expect("a sum"));
}

/// A file that a step made, by its link.
async fn fetched(house: &RunHouse, link: &Value) -> (String, Vec<u8>) {
    let link = link.as_str().expect("a link");
    let reply = house.house.http.get(link).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{link}");
    let kind = reply.headers()["content-type"].to_str().expect("text").to_owned();
    (kind, reply.bytes().await.expect("bytes").to_vec())
}

const CHAT: &[&str] = &["/chat/completions"];
/// Where makers of videos are asked, whoever the cheapest is.
const VIDEO: &[&str] = &["/videos", "video-synthesis", "/generations/tasks", "/image2video", "video_generation"];

/// The newest request to one of these paths, as its maker received it.
fn asked_last(house: &RunHouse, paths: &[&str]) -> Bytes {
    let received = house.house.sim.received();
    let mut asked = received.iter().rev().filter(|seen| seen.method == "POST");
    asked.find(|seen| paths.iter().any(|path| seen.path.contains(path))).expect("a request").body.clone()
}

const WAV: &[u8] = include_bytes!("../../../../../../catalog/workflows/meeting-to-minutes/recording.wav");
const PNG: &[u8] = include_bytes!("../../../../../../catalog/workflows/product-photo-to-clip/photo.png");

#[tokio::test(flavor = "multi_thread")]
async fn a_product_photo_becomes_a_clip() {
    let (house, run) = runs("product-photo-to-clip", Some(("photo", PNG)), json!({ "seconds": 10 })).await;
    let (kind, bytes) = fetched(&house, &run["steps"][1]["outputs"]["video"]).await;
    assert!(kind == "video/mp4" && !bytes.is_empty(), "{kind}");
    // Both makers have seen the photo: who writes the motion and who makes the clip.
    let photo = BASE64_STANDARD.encode(PNG);
    for (at, asked) in [(0, CHAT), (1, VIDEO)] {
        let seen = asked_last(&house, asked);
        assert!(seen.windows(photo.len()).any(|part| part == photo.as_bytes()), "{}", run["steps"][at]);
        assert_eq!(run["steps"][at]["warnings"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_article_is_read_out() {
    let (house, run) = runs("article-to-narration", None, json!({ "article": "Rain all day.", "voice": "nova" })).await;
    let (kind, bytes) = fetched(&house, &run["steps"][1]["outputs"]["audio"]).await;
    assert!(kind == "audio/mpeg" && !bytes.is_empty(), "{kind}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_meeting_gets_minutes() {
    let (_, run) = runs("meeting-to-minutes", Some(("recording", WAV)), json!({ "style": "detailed" })).await;
    let facts = run["steps"][1]["outputs"]["json"].as_str().expect("a text");
    assert!(serde_json::from_str::<Value>(facts).expect("JSON")["decisions"].is_array(), "{facts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clip_gets_subtitles_in_another_language() {
    let (_, run) = runs("clip-subtitles-translated", Some(("clip", WAV)), json!({ "language": "French" })).await;
    let vtt = run["steps"][0]["outputs"]["vtt"].as_str().expect("a text");
    assert!(vtt.starts_with("WEBVTT"), "{vtt}");
    assert_eq!(run["steps"][1]["outputs"]["vtt"], vtt, "the simulator repeats them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_becomes_a_digest() {
    runs("social-search-digest", None, json!({ "keyword": "tea", "platform": "tiktok" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storyboard_becomes_shots() {
    let (house, run) = runs("storyboard-to-shots", None, json!({ "storyline": "A boat leaves.", "shots": 3 })).await;
    let steps = run["steps"].as_array().expect("steps");
    let names: Vec<&str> = steps.iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(names, ["list", "frames_1", "frames_2", "frames_3", "clips_1", "clips_2", "clips_3"]);
    // Each clip is made of the picture of its own shot.
    let (_, picture) = fetched(&house, &steps[3]["outputs"]["url"]).await;
    let picture = BASE64_STANDARD.encode(picture);
    let seen = asked_last(&house, VIDEO);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains(&picture), "{picture} {seen}");
    assert!(steps.iter().all(|step| step["warnings"] == json!([])), "{run:#}");
}

/// A text that is no WebVTT ends the run with the name of the output and its line, before anything
/// else is bought.
#[tokio::test(flavor = "multi_thread")]
async fn subtitles_that_are_none_end_the_run() {
    let house = RunHouse::shipped().await;
    let slug = "clip-subtitles-translated";
    let shipped = include_str!("../../../../../../catalog/workflows/clip-subtitles-translated/package.toml");
    for (package, step, steps) in [
        (shipped.replace("response_format = \"vtt\"", "response_format = \"srt\""), "subtitles", 1),
        (shipped.replace("Into {{inputs.language}}", "[[sim:tokens=3]] Into {{inputs.language}}"), "translated", 2),
    ] {
        assert_ne!(package, shipped);
        house.put("clip-subtitles-translated/package.toml", &package).await;
        let run = house.verify(slug).await;
        assert_eq!(run["status"], "failed", "{run:#}");
        let failure = run["failure"].as_str().expect("a reason");
        assert_eq!(failure, "vtt is not WebVTT: its first line is not WEBVTT", "{run:#}");
        let all = run["steps"].as_array().expect("steps");
        let failed: Vec<&Value> = all.iter().filter(|one| one["status"] == "failed").map(|one| &one["name"]).collect();
        assert_eq!(failed, [step], "{run:#}");
        assert_eq!(all.iter().filter(|one| one["call_id"].is_string()).count(), steps, "{run:#}");
        costs_what_was_bought(&run);
    }
    house.house.check().await;
}

fn costs_what_was_bought(run: &Value) {
    let steps = run["steps"].as_array().expect("steps");
    let sum: i64 = steps.iter().filter_map(|step| step["charged_nano_usd"].as_i64()).sum();
    assert_eq!(run["charged_nano_usd"], sum, "{run:#}");
}
