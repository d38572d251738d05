//! Makers that are slow: the time that others wait by is moved, so that minutes pass at once and
//! nothing depends on how busy the machine is. Only a runtime of one thread lets its time be moved.

use super::*;
use crate::house::error_of;
use std::time::Duration;
use tokio::task::JoinSet;

type Asked = JoinSet<Result<Response, reqwest::Error>>;

/// Longer than a test takes.
const PATIENCE: &str = "300s";

async fn patient(patience: &'static str) -> House {
    house_with(Plan { patience, ..Plan::default() }).await
}

/// Everybody goes on for as long as there is anything to do at the moment.
async fn others() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// So much time passes for all that wait by it.
async fn pass(mut seconds: u64) {
    while seconds > 0 {
        let now = seconds.min(10);
        others().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(now)).await;
        tokio::time::resume();
        seconds -= now;
    }
}

/// Asks, up to where its maker has got it.
async fn begun(house: &House, model: &str, prompt: &str, more: Value) -> Asked {
    let sent = house.sim.received().len();
    let asked = JoinSet::from_iter([post(house, "/v1/images/generations", &asked(model, prompt, &more)).send()]);
    while house.sim.received().len() == sent {
        tokio::task::yield_now().await;
    }
    asked
}

async fn reply(asked: Asked) -> Response {
    asked.join_all().await.remove(0).expect("a reply")
}

#[tokio::test]
async fn an_answer_is_waited_for_as_long_as_its_provider_is_given() {
    let house = patient(PATIENCE).await;
    for model in ["pictures", "google-pictures", "qwen-pictures"] {
        let asked = begun(&house, model, "[[sim:slow ms=290000]]", json!({})).await;
        pass(291).await;
        let reply = reply(asked).await;
        let call = call_id(&reply);
        assert_eq!((reply.status().as_u16(), house.row(call).await.charge.nano()), (200, EACH), "{model}");
        drop(reply);
        house.sim.clear();
        let asked = begun(&house, model, "[[sim:slow ms=310000]]", json!({})).await;
        pass(301).await;
        let late = self::reply(asked).await;
        assert_eq!(late.headers()["x-should-retry"], "false", "{model}");
        let (status, error) = free(&house, late).await;
        assert_eq!((status, &error["code"]), (504, &json!("upstream_timeout")), "{model}");
        assert_eq!(house.sim.received().len(), 1, "{model}: never begun again");
    }
    house.end().await;
}

/// An answer that has begun and stands still, and one that goes on when the call's time is up.
#[tokio::test]
async fn an_answer_that_has_begun_ends_with_its_time() {
    for (patience, ms, seconds) in [(PATIENCE, 600_000, 450), ("3h", 7_200_000, 7_201)] {
        let house = patient(patience).await;
        for model in ["pictures", "google-pictures"] {
            let asked = begun(&house, model, &format!("[[sim:slow at=middle ms={ms}]]"), json!({})).await;
            pass(seconds).await;
            let (status, error) = free(&house, reply(asked).await).await;
            assert_eq!((status, &error["code"]), (504, &json!("upstream_timeout")), "{model} {patience}");
        }
        house.end().await;
    }
}

/// A link that is slow to come: it is fetched twice, a minute each at most, and handed over then.
#[tokio::test]
async fn a_slow_link_is_fetched_for_so_long_and_handed_over_then() {
    let house = patient(PATIENCE).await;
    let more = || json!({ "response_format": "b64_json" });
    let fetched = async |waited: usize| {
        while house.sim.waited() < waited {
            tokio::task::yield_now().await;
        }
        house.sim.open();
        others().await;
        house.sim.shut("/image/files/");
    };
    house.sim.shut("/image/files/");
    let asked = begun(&house, "qwen-pictures", "[[sim:slow ms=50000]]", more()).await;
    pass(51).await;
    fetched(1).await;
    pass(51).await;
    let answer = reply(asked).await;
    let call = call_id(&answer);
    let result: Value = answer.json().await.expect("JSON");
    assert_eq!(
        (pictures(&result), &result["data"][0]["url"] != "", house.row(call).await.charge.nano()),
        (1, true, EACH)
    );
    assert!(result["data"][0]["b64_json"] != "" && result["warnings"].is_null(), "{}", result["warnings"]);
    let asked = begun(&house, "qwen-pictures", "[[sim:slow ms=70000]]", more()).await;
    pass(71).await;
    for waited in [2, 3] {
        fetched(waited).await;
        pass(61).await;
    }
    let answer = reply(asked).await;
    let call = call_id(&answer);
    let result: Value = answer.json().await.expect("JSON");
    let entry = &result["data"][0];
    assert!(entry["b64_json"] == "" && entry["url"].as_str().is_some_and(|url| url.starts_with("http")), "{entry}");
    assert_eq!((&result["warnings"][0]["field"], house.row(call).await.charge.nano()), (&json!("data[0]"), EACH));
    house.sim.open();
    house.end().await;
}

/// MM1: a task is asked about for so long, and its call ends.
#[tokio::test]
async fn a_task_without_an_end_ends_with_the_time_of_its_model() {
    let house = patient(PATIENCE).await;
    let asked = begun(&house, "wan-pictures", "[[sim:poll_hang]]", json!({})).await;
    pass(301).await;
    let (status, error) = error_of(reply(asked).await).await;
    assert_eq!((status, &error["code"]), (504, &json!("upstream_timeout")), "{error}");
    house.end().await;
}

/// A model that draws long is waited for, however impatient its provider is set.
#[tokio::test]
async fn a_slow_model_has_a_time_of_its_own() {
    const SLOW: &str = r#"
[model."slow-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, time = "60s" }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
[model."hasty-pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
"#;
    let house = House::with(Plan { catalog: SLOW, patience: "20s", ..Plan::default() }).await;
    let asked = begun(&house, "hasty-pictures", "[[sim:slow ms=50000]]", json!({})).await;
    pass(21).await;
    assert_eq!(free(&house, reply(asked).await).await.0, 504);
    let asked = begun(&house, "slow-pictures", "[[sim:slow ms=50000]]", json!({})).await;
    pass(51).await;
    assert_eq!(reply(asked).await.status(), 200);
    house.end().await;
}
