//! Every way a maker can behave, for every maker, through the whole house: where the task stands in
//! the end, what the ledger and the usage row say, and that it was created once.

use super::table::{finished, quick};
use crate::house::{House, Plan, call_id};
use serde_json::{Value, json};
use tollgate_catalog::Money;
use tollgate_store::{Ending, TaskId, UsageRow};

/// One model per API of a maker, with the price of its smallest video in micro-USD.
const MODELS: &[(&str, i64)] = &[
    ("wan2.7-t2v", 5 * 83_400),
    ("seedance-2.5", 0),
    ("kling-v3", 5 * 83_400),
    ("kling-3.0-turbo", 5 * 112_000),
    ("kling-v3-omni", 554_610),
    ("MiniMax-Hailuo-2.3", 278_000),
    ("MiniMax-H3", 5 * 69_500),
    ("sora-2", 4 * 100_000),
    ("veo-3.1", 8 * 400_000),
];

/// Tokens the maker of the second model counts for its smallest video.
const SEEDANCE: i64 = 108_000 * 9_730;

pub fn price(model: &str) -> i64 {
    let micro = MODELS.iter().find(|row| row.0 == model).expect("a model").1;
    if model == "seedance-2.5" { SEEDANCE } else { micro * 1_000 }
}

fn ask(model: &str, prompt: &str) -> Value {
    let metadata = match model {
        "kling-v3-omni" => json!({ "aspect_ratio": "16:9" }),
        "MiniMax-H3" => json!({ "ratio": "16:9" }),
        _ => json!({}),
    };
    json!({ "model": model, "prompt": prompt, "metadata": metadata })
}

async fn post(house: &House, model: &str, prompt: &str) -> (u16, Value) {
    let url = house.url("/v1/videos");
    let reply = house.http.post(url).bearer_auth(&house.key).json(&ask(model, prompt)).send().await.expect("a reply");
    (reply.status().as_u16(), reply.json().await.expect("JSON"))
}

/// Runs one scenario at one maker to its end.
async fn run(house: &House, model: &str, prompt: &str) -> (Value, UsageRow) {
    let before = house.sim.videos();
    let (status, task) = post(house, model, prompt).await;
    assert_eq!(status, 200, "{model} {prompt}: {task}");
    let id = task["id"].as_str().expect("an id");
    let done = finished(house, id).await;
    assert_eq!(house.sim.videos(), before + 1, "{model} {prompt}: created once");
    let row = house.row(id.parse::<TaskId>().expect("an id").call()).await;
    (done, row)
}

async fn completes(house: &House, model: &str, prompt: &str) -> (Value, UsageRow) {
    let (done, row) = run(house, model, prompt).await;
    assert_eq!(done["status"], "completed", "{model} {prompt}: {done}");
    assert_eq!((row.ending, row.charge.nano()), (Ending::Answered, price(model)), "{model} {prompt}");
    (done, row)
}

async fn fails(house: &House, model: &str, prompt: &str) -> Value {
    let before = house.available().await;
    let (done, row) = run(house, model, prompt).await;
    assert_eq!((&done["status"], row.charge.nano()), (&json!("failed"), 0), "{model} {prompt}: {done}");
    assert!(done["metadata"]["url"].is_null(), "{done}");
    assert_eq!(house.available().await, before, "{model} {prompt}: refunded");
    let legacy: Value = house
        .get(&format!("/v1/video/generations/{}", done["id"].as_str().expect("an id")))
        .send()
        .await
        .expect("a reply")
        .json()
        .await
        .expect("JSON");
    assert_eq!(
        (&legacy["data"]["status"], &legacy["data"]["fail_reason"]),
        (&json!("FAILURE"), &done["error"]["message"])
    );
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn good_endings() {
    let house = quick(Plan::default()).await;
    for (model, _) in MODELS {
        completes(&house, model, "[[sim:queue=2 run=2]]").await;
        if *model != "veo-3.1" {
            completes(&house, model, "[[sim:word n=2]]").await;
        }
        completes(&house, model, "[[sim:poll_limited n=1 queue=0 run=0]]").await;
        completes(&house, model, "[[sim:poll_broken n=2 queue=0 run=0]]").await;
        completes(&house, model, "[[sim:no_url n=2 queue=0 run=0]]").await;
        for kind in ["string", "float", "none"] {
            let (_, row) = run(&house, model, &format!("[[sim:usage kind={kind} queue=0 run=0]]")).await;
            assert_eq!(row.charge.nano(), price(model), "{model} {kind}: {row:?}");
            if model.starts_with("kling") {
                assert_eq!(row.estimated, kind == "none", "{model} {kind}: settled on what the maker tells");
            }
        }
    }
    completes(&house, "MiniMax-Hailuo-2.3", "[[sim:file_error n=2 queue=0 run=0]]").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_endings_are_refunded_with_the_makers_reason() {
    let house = quick(Plan::default()).await;
    for (model, code, sent) in [
        ("wan2.7-t2v", "InvalidParameter", "InvalidParameter"),
        ("seedance-2.5", "InvalidParameter", "InvalidParameter"),
        ("kling-v3", "task_failed", "x"),
        ("kling-3.0-turbo", "task_failed", "x"),
        ("kling-v3-omni", "task_failed", "x"),
        ("MiniMax-Hailuo-2.3", "2013", "2013"),
        ("MiniMax-H3", "2013", "2013"),
        ("sora-2", "InvalidParameter", "InvalidParameter"),
        ("veo-3.1", "3", "3"),
    ] {
        let done = fails(&house, model, &format!("[[sim:fail code={sent} text=The_size_is_odd.]]")).await;
        assert_eq!(done["error"]["code"], code, "{model}");
        assert!(done["error"]["message"].as_str().is_some_and(|text| text.starts_with("The size is odd.")), "{done}");
        fails(&house, model, "[[sim:moderation]]").await;
    }
    for (model, scenario, code) in [
        ("wan2.7-t2v", "cancelled", "task_cancelled"),
        ("seedance-2.5", "cancelled", "task_cancelled"),
        ("seedance-2.5", "expired", "task_expired"),
        ("MiniMax-H3", "cancelled", "task_cancelled"),
        ("MiniMax-H3", "expired", "task_expired"),
        ("sora-2", "cancelled", "task_cancelled"),
    ] {
        let done = fails(&house, model, &format!("[[sim:{scenario}]]")).await;
        assert_eq!(done["error"]["code"], code, "{model} {scenario}: {done}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_maker_refuses_is_no_task_and_costs_nothing() {
    let house = quick(Plan::default()).await;
    let before = house.available().await;
    for (model, prompt, status) in [
        ("wan2.7-t2v", "[[sim:refuse code=InvalidParameter]]", 400),
        ("wan2.7-t2v", "[[sim:refuse code=DataInspectionFailed]]", 400),
        // Money trouble of the operator, dressed as the caller's.
        ("wan2.7-t2v", "[[sim:refuse code=Arrearage]]", 502),
        ("kling-v3", "[[sim:refuse code=1102]]", 502),
        ("MiniMax-Hailuo-2.3", "[[sim:refuse code=1008]]", 502),
        ("seedance-2.5", "[[sim:refuse code=InputTextSensitiveContentDetected]]", 400),
        ("wan2.7-t2v", "[[sim:limited]]", 429),
        ("seedance-2.5", "[[sim:limited]]", 429),
        ("kling-v3", "[[sim:limited]]", 429),
        ("MiniMax-Hailuo-2.3", "[[sim:limited]]", 429),
        ("sora-2", "[[sim:limited]]", 429),
        ("wan2.7-t2v", "[[sim:broken_once]]", 502),
        ("sora-2", "[[sim:broken_once]]", 502),
    ] {
        let (got, refused) = post(&house, model, prompt).await;
        assert_eq!(got, status, "{model} {prompt}: {refused}");
        assert_eq!(house.available().await, before, "{model} {prompt}");
    }
    assert_eq!(house.sim.videos(), 0);
    let page: Value = house.get("/v1/videos").send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(page["data"], json!([]), "a refused request left no task");
}

/// Models of one table of codes, its codes, and what the caller of a creation that is refused with
/// one of them gets.
type Refusals = (&'static [&'static str], &'static str, u16);

const REFUSALS: &[Refusals] = &[
    (KLING, "1200 1201 1300 1301", 400),
    (KLING, "1000 1001 1002 1003 1004 1100 1101 1102 1103 1202 1203 1304 5000", 502),
    (KLING, "1302 1303 5001", 429),
    (MINIMAX, "1026 1027 1042 2013", 400),
    (MINIMAX, "1000 1004 1008 1024 1033 2049 2056", 502),
    (MINIMAX, "1002 1039 1041", 429),
    (&["wan2.7-t2v"], "InvalidParameter InvalidParameter.DataInspection InvalidURL DataInspectionFailed", 400),
    (&["wan2.7-t2v"], "InvalidApiKey Arrearage AccessDenied Model.AccessDenied AccessDenied.Unpurchased", 502),
    (&["wan2.7-t2v"], "ModelNotFound insufficient_quota InternalError InternalError.Algo", 502),
    (&["wan2.7-t2v"], "Throttling Throttling.RateQuota Throttling.AllocationQuota ModelUnavailable", 429),
    (ARK, "MissingParameter InvalidParameter InvalidParameter.TaskTypeConstraint", 400),
    (ARK, "InvalidParameter.TaskTypeMismatch InputTextSensitiveContentDetected", 400),
    (ARK, "InputImageSensitiveContentDetected InputImageSensitiveContentDetected.PrivacyInformation", 400),
    (ARK, "InvalidEndpoint.ClosedEndpoint AuthenticationError AccountOverdueError AccessDenied", 502),
    (ARK, "OperationDenied.ServiceNotOpen InvalidEndpointOrModel.NotFound ModelNotOpen InternalServiceError", 502),
    (ARK, "RateLimitExceeded.EndpointRPMExceeded ModelAccountRpmRateLimitExceeded", 429),
    (ARK, "ModelAccountTpmRateLimitExceeded QuotaExceeded ServerOverloaded", 429),
    (&["sora-2"], "moderation_blocked invalid_value", 400),
    (&["sora-2"], "insufficient_quota billing_hard_limit_reached model_not_found server_error", 502),
    (&["sora-2"], "rate_limit_exceeded", 429),
    (&["veo-3.1"], "INVALID_ARGUMENT", 400),
    (&["veo-3.1"], "FAILED_PRECONDITION PERMISSION_DENIED NOT_FOUND INTERNAL UNAVAILABLE", 502),
    (&["veo-3.1"], "RESOURCE_EXHAUSTED", 429),
];
const KLING: &[&str] = &["kling-v3", "kling-3.0-turbo", "kling-v3-omni"];
const MINIMAX: &[&str] = &["MiniMax-Hailuo-2.3", "MiniMax-H3"];
const ARK: &[&str] = &["seedance-2.5"];

#[tokio::test(flavor = "multi_thread")]
async fn each_code_of_a_refusal_costs_nothing() {
    let house = quick(Plan::default()).await;
    let before = house.available().await;
    for (models, codes, status) in REFUSALS {
        for (model, code) in models.iter().flat_map(|model| codes.split(' ').map(move |code| (*model, code))) {
            let prompt = format!("[[sim:refuse code={code}]]");
            let ask = house.http.post(house.url("/v1/videos")).bearer_auth(&house.key).json(&ask(model, &prompt));
            let reply = ask.send().await.expect("a reply");
            let (call, got) = (call_id(&reply), reply.status().as_u16());
            assert_eq!(got, *status, "{model} {code}: {}", reply.text().await.expect("text"));
            let row = house.row(call).await;
            assert!(row.hold > Money::ZERO && row.provider.is_some(), "{model} {code}: {row:?}");
            assert_eq!((row.status, row.charge, row.write_off), (got, Money::ZERO, Money::ZERO), "{model} {code}");
            assert!(matches!(row.ending, Ending::Refused | Ending::UpstreamFault), "{model} {code}: {row:?}");
            assert_eq!(house.available().await, before, "{model} {code}: the hold is released");
        }
    }
    assert_eq!(house.sim.videos(), 0);
}

/// The answer to a creation is lost: it is found again where the maker has a way to, and never sent
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_are_found_again_and_nothing_is_sent_twice() {
    let house = quick(Plan::default()).await;
    for model in ["seedance-2.5", "kling-v3", "kling-3.0-turbo", "kling-v3-omni", "sora-2"] {
        // Kling may say that our id is taken: the task is there, and no word of the answer is a
        // refusal.
        let taken = model.starts_with("kling").then_some("taken");
        for scenario in ["lost", "page", "garbage"].into_iter().chain(taken) {
            let before = house.sim.videos();
            let prompt = format!("[[sim:{scenario} queue=0 run=0]] {model}");
            let (status, answer) = post(&house, model, &prompt).await;
            assert_eq!(status, 200, "{model} {scenario}: its maker keeps our id, or tells the prompt: {answer}");
            let page: Value =
                house.get("/v1/videos?limit=1").send().await.expect("a reply").json().await.expect("JSON");
            let id = page["data"][0]["id"].as_str().expect("a task").to_owned();
            let done = finished(&house, &id).await;
            assert_eq!(done["status"], "completed", "{model} {scenario}: {done}");
            assert_eq!(house.sim.videos(), before + 1, "{model} {scenario}: one task upstream");
            let row = house.row(id.parse::<TaskId>().expect("an id").call()).await;
            assert_eq!(row.charge.nano(), price(model), "{model} {scenario}");
            assert!(row.refunded.is_zero() && row.write_off.is_zero(), "{model} {scenario}: {row:?}");
        }
    }
}

/// A maker that never gives a link, and one that forgets: the customer pays nothing once patience
/// has ended.
#[tokio::test(flavor = "multi_thread")]
async fn patience_ends_in_the_customers_favour() {
    let tasks = "refresh_after = \"10ms\"
patience = \"1s\"
unknown_time = \"1s\"
absent_time = \"500ms\"
";
    let house = quick(Plan { tasks, ..Plan::default() }).await;
    for model in ["wan2.7-t2v", "MiniMax-Hailuo-2.3"] {
        let done = fails(&house, model, "[[sim:never_url queue=0 run=0]]").await;
        assert_eq!(done["error"]["code"], "result_missing", "{done}");
    }
    let done = fails(&house, "wan2.7-t2v", "[[sim:unknown queue=0 run=0]]").await;
    assert_eq!(done["error"]["code"], "task_unknown");
}
