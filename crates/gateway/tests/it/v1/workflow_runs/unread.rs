//! A field that a model does not read: the model is not picked, and what was made without the field
//! proves nothing.

use super::RunHouse;
use serde_json::{Value, json};
use tollgate_gateway::workers::reload::reload;

const SLUG: &str = "storyboard-to-shots";
const DROPS: &str = "MiniMax-Hailuo-02";

fn record() -> Value {
    let text = include_str!("../../../../../../catalog/workflows/storyboard-to-shots.json");
    serde_json::from_str(text).expect("JSON")
}

fn package(model: &str) -> String {
    let text = include_str!("../../../../../../catalog/workflows/storyboard-to-shots/package.toml");
    text.replace("model = { query = true }", &format!("model = {model:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_drops_a_field_of_a_step_is_no_candidate() {
    let house = RunHouse::shipped().await;
    let mut record = record();
    record["runtime_binding"]["model_ids"] = json!([DROPS]);
    house.put("storyboard-to-shots.json", &record.to_string()).await;
    let run = house.verify(SLUG).await;
    let failure = run["failure"].as_str().expect("a reason");
    assert!(failure.contains("`input_reference`") && failure.contains(DROPS), "{failure}");
    assert_eq!((&run["status"], &run["charged_nano_usd"]), (&json!("failed"), &json!(0)), "{run:#}");
    let body = json!({ "inputs": { "storyline": "A boat leaves." } });
    let (status, refused) = house.ask("/v1/workflows/storyboard-to-shots/quote", &body).await;
    let error = &refused["error"];
    assert_eq!((status, error["code"].as_str()), (409, Some("workflow_not_executable")), "{refused}");
    assert_eq!((&error["reason"], error["message"].as_str()), (&json!("field_not_read"), Some(failure)), "{refused}");
    assert!(house.house.sim.received().is_empty(), "nobody was asked");

    // Where another model will do, it is picked though it costs more.
    record["runtime_binding"]["model_ids"] = json!([DROPS, "MiniMax-H3"]);
    house.put("storyboard-to-shots.json", &record.to_string()).await;
    house.operate(SLUG, "lock", json!({ "reason": "reviewed" })).await;
    let (status, quote) = house.ask("/v1/workflows/storyboard-to-shots/quote", &body).await;
    let steps = quote["steps"].as_array().unwrap_or_else(|| panic!("{status} {quote}"));
    assert_eq!(steps.last().expect("a step")["model"], "MiniMax-H3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_model_that_drops_a_field_is_not_verified_and_nothing_is_bought() {
    let house = RunHouse::shipped().await;
    house.put("storyboard-to-shots/package.toml", &package(DROPS)).await;
    let run = house.verify(SLUG).await;
    assert_eq!(run["status"], "failed", "{run:#}");
    let failure = run["failure"].as_str().expect("a reason");
    assert!(failure.contains("clips_1 asks with `input_reference`"), "{failure}");
    assert!(house.house.sim.received().is_empty(), "nobody was asked");
    let (status, quote) =
        house.ask("/v1/workflows/storyboard-to-shots/quote", &json!({ "inputs": { "storyline": "A boat." } })).await;
    let last = quote["steps"].as_array().and_then(|steps| steps.last()).unwrap_or_else(|| panic!("{status} {quote}"));
    assert_eq!(last["warnings"][0]["field"], "input_reference", "a quote says so before anything is confirmed");
}

/// The model is another one by the time that its step is made.
#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_was_dropped_is_shown_in_the_run_which_proves_nothing() {
    let house = RunHouse::shipped().await;
    house.put("storyboard-to-shots/package.toml", &package("MiniMax-H3")).await;
    house.operate(SLUG, "lock", json!({ "reason": "reviewed" })).await;
    house.house.sim.shut("/v1/chat/completions");
    let waited = house.house.sim.waited();
    let verified = house.verify_locked(SLUG);
    let changed = async {
        while house.house.sim.waited() == waited {
            tokio::task::yield_now().await;
        }
        let file = house.house.dir.join("catalog/video.toml");
        let text = std::fs::read_to_string(&file).expect("a catalog");
        let text = text.replace("[model.\"MiniMax-H3\"", "[model.\"other\"");
        std::fs::write(file, text.replace("[model.\"MiniMax-Hailuo-02\"", "[model.\"MiniMax-H3\"")).expect("written");
        let app = &house.house.running().app;
        reload(app, &house.house.source).await.unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
        house.house.sim.open();
    };
    let (run, ()) = tokio::join!(verified, changed);
    assert_eq!(run["status"], "completed", "{run:#}");
    let clip = run["steps"].as_array().and_then(|steps| steps.last()).expect("a step");
    let warned: Vec<&str> =
        clip["warnings"].as_array().expect("a list").iter().filter_map(|one| one["field"].as_str()).collect();
    assert!(warned.contains(&"input_reference"), "{clip}");
    let failure = run["failure"].as_str().expect("a reason");
    assert!(failure.contains("`input_reference`"), "{failure}");
    assert_eq!(house.stage(SLUG).await["stage"], "locked");
}
