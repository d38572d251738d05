//! What is charged follows what the maker reports, and a report that can only be a mistake is none.

use super::money::{MAKERS, create, ended, house, post};
use super::scenarios::price;
use crate::house::{House, Plan};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tollgate_store::{TaskId, TaskState};

/// A video that was made has a length: where its maker says zero, what was asked for is charged,
/// and the row says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_reported_zero_is_no_free_video() {
    let house = house("").await;
    for (model, _) in MAKERS {
        let id = create(&house, model, "[[sim:ok queue=0 run=0 reported=0]]").await.expect("taken");
        let (task, row) = ended(&house, id).await;
        assert_eq!((task.state, row.charge.nano()), (TaskState::Completed, price(model)), "{model}: {row:?}");
        // Sold by the call, nothing needs to be reported.
        assert_eq!(row.estimated, model != "MiniMax-Hailuo-2.3", "{model}: {row:?}");
    }
}

const BY_THE_SECOND: &str = r#"
[model."seedance-by-the-second"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "b-2.5", one_price = ["resolution"] }
price = { video_second = 100_000 }
route = [{ provider = "ark", upstream_model = "ep-20260701120000-x7k2p" }]
"#;

/// Ark sold by the second: settled on the length it made, which it may have chosen itself.
#[tokio::test(flavor = "multi_thread")]
async fn ark_by_the_second_is_settled_on_the_length_it_tells() {
    let plan = Plan { videos: true, usd: "1000", catalog: BY_THE_SECOND, ..Plan::default() };
    let house = House::with(plan).await;
    for (asked, reported, held, charged, estimated) in [
        (-1, "reported=12", 30, 12, false),
        (-1, "reported=30", 30, 30, false),
        // It chose the length and does not tell it: the shortest there is.
        (-1, "reported=0", 30, 4, true),
        (10, "reported=9", 10, 9, false),
        (10, "reported=11", 10, 10, false),
        (10, "reported=0", 10, 10, true),
        (10, "", 10, 10, false),
    ] {
        let prompt = format!("[[sim:ok queue=0 run=0 {reported}]]");
        let body = json!({ "model": "seedance-by-the-second", "prompt": prompt, "duration": asked });
        let shown: Value = post(&house, &body).await.json().await.expect("JSON");
        let id: TaskId = shown["id"].as_str().unwrap_or_else(|| panic!("{shown}")).parse().expect("a task id");
        let (task, row) = ended(&house, id).await;
        let second = 100_000_000;
        assert_eq!(task.state, TaskState::Completed, "{asked} {reported}");
        let seen = (row.hold.nano(), row.charge.nano(), row.estimated);
        assert_eq!(seen, (held * second, charged * second, estimated), "{asked} {reported}: {row:?}");
    }
}

/// The route leads to an endpoint, whose tasks the maker lists under the name of its model: what
/// was lost there is found, not paid back.
#[tokio::test(flavor = "multi_thread")]
async fn a_creation_lost_at_an_endpoint_is_found() {
    let tasks = "patience = \"20s\"\nunknown_time = \"1s\"\nabsent_time = \"300ms\"";
    let plan = Plan { videos: true, usd: "1000", catalog: BY_THE_SECOND, tasks, ..Plan::default() };
    let house = House::with(plan).await;
    let id = create(&house, "seedance-by-the-second", "[[sim:lost queue=0 run=0]]").await.expect("taken");
    let (task, row) = ended(&house, id).await;
    assert_eq!((task.state, row.charge.nano()), (TaskState::Completed, 500_000_000), "{task:?} {row:?}");
    assert_eq!(house.sim.videos(), 1);
}

/// Without a count of tokens: those of the length that is reported, or was asked for, at the
/// resolution that was.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_not_reported_are_those_of_what_was_asked_for() {
    let house = house("").await;
    for (prompt, duration, resolution, tokens) in [
        ("[[sim:usage kind=none queue=0 run=0]]", 8, "720p", 172_800),
        ("[[sim:usage kind=none queue=0 run=0]]", 5, "480p", 48_600),
        ("[[sim:usage kind=none queue=0 run=0 reported=12]]", -1, "720p", 259_200),
        ("[[sim:usage kind=none queue=0 run=0 reported=0]]", -1, "720p", 86_400),
    ] {
        let body = json!({
            "model": "seedance-2.5", "prompt": prompt, "duration": duration, "metadata": { "resolution": resolution },
        });
        let shown: Value = post(&house, &body).await.json().await.expect("JSON");
        let id: TaskId = shown["id"].as_str().unwrap_or_else(|| panic!("{shown}")).parse().expect("a task id");
        let (task, row) = ended(&house, id).await;
        let seen = (task.state, row.charge.nano(), row.estimated);
        assert_eq!(seen, (TaskState::Completed, tokens * 9_730, true), "{duration} {prompt}: {row:?}");
        assert!(row.charge < row.hold, "less than the most it could be: {row:?}");
    }
}

/// An edit keeps its source's length; where that is never reported, the shortest source there is.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_length_nobody_tells() {
    let house = house("").await;
    let body = json!({
        "model": "wan2.7-videoedit", "prompt": "[[sim:usage kind=none queue=0 run=0]]",
        "video_url": "https://media.example/clip.mp4", "size": "1280*720",
    });
    let shown: Value = post(&house, &body).await.json().await.expect("JSON");
    let id: TaskId = shown["id"].as_str().unwrap_or_else(|| panic!("{shown}")).parse().expect("a task id");
    let (_, row) = ended(&house, id).await;
    assert_eq!((row.hold.nano(), row.charge.nano(), row.estimated), (20 * 83_400_000, 2 * 83_400_000, true), "{row:?}");
}

/// The last frames of a file are no second of their own, and no loss.
#[tokio::test(flavor = "multi_thread")]
async fn a_few_frames_more_cost_nothing() {
    let house = house("").await;
    for (over, seconds, write_off) in [(40, 5, 0), (400, 5, 0), (600, 5, 1)] {
        let prompt = format!("[[sim:ok queue=0 run=0 over_ms={over}]]");
        let id = create(&house, "wan2.7-t2v", &prompt).await.expect("taken");
        let (_, row) = ended(&house, id).await;
        let seen = (row.charge.nano(), row.write_off.nano(), row.estimated);
        assert_eq!(seen, (seconds * 83_400_000, write_off * 83_400_000, false), "{over}: {row:?}");
    }
}

async fn metric(house: &House, name: &str) -> Option<String> {
    let page = house.get("/metrics").send().await.expect("a page").text().await.expect("text");
    page.lines().find(|line| line.starts_with(name)).map(|line| line[name.len()..].trim().to_owned())
}

/// Waits for this value: a task has ended before its route is judged by it.
async fn until_metric(house: &House, name: &str, value: &str) {
    let began = Instant::now();
    while metric(house, name).await.as_deref() != Some(value) {
        assert!(began.elapsed() < crate::watch::HANG, "{name} does not become {value}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const BESIDE: &str = r#"
[model."wan-strict"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "a-text-to-video", sold = { resolution = ["720P"] }, tier_beside_size = true }
price = { video_second = 83_400 }
route = [{ provider = "dashscope", upstream_model = "wan2.7-t2v" }]
"#;

/// A server that does not read sizes makes its largest tier: the customer pays what was asked for,
/// the operator is warned; where the tier goes along with the size it is made as asked.
#[tokio::test(flavor = "multi_thread")]
async fn another_tier_than_was_asked_for_is_reported_and_not_charged() {
    const OTHER_TIER: &str = r#"tollgate_tasks_other_tier_total{provider="dashscope",model="wan2.7-t2v"}"#;
    let house = House::with(Plan { videos: true, usd: "1000", catalog: BESIDE, ..Plan::default() }).await;
    for (model, prompt, counted) in [
        ("wan2.7-t2v", "[[sim:ok queue=0 run=0]]", None),
        ("wan-strict", "[[sim:sizeless queue=0 run=0]]", None),
        ("wan2.7-t2v", "[[sim:sizeless queue=0 run=0]]", Some("1")),
    ] {
        let id = create(&house, model, prompt).await.expect("taken");
        let (task, row) = ended(&house, id).await;
        assert_eq!(
            (task.state, row.charge.nano()),
            (TaskState::Completed, 5 * 83_400_000),
            "{model} {prompt}: {row:?}"
        );
        match counted {
            Some(value) => until_metric(&house, OTHER_TIER, value).await,
            None => assert_eq!(metric(&house, OTHER_TIER).await, None, "{model} {prompt}"),
        }
    }
}

/// Videos whose provider keeps silent about what it counted are not made there any more, until it
/// reports; of one that never does, and of what is sold by the call, nothing is expected.
#[tokio::test(flavor = "multi_thread")]
async fn a_maker_that_stops_reporting_is_paused() {
    const PAUSED: &str = r#"tollgate_route_paused{provider="dashscope",model="wan2.7-t2v"}"#;
    let house = house("").await;
    let silent = "[[sim:usage kind=none queue=0 run=0]]";
    for (model, paused) in [("veo-3.1", false), ("MiniMax-Hailuo-2.3", false), ("wan2.7-t2v", true)] {
        for _ in 0..10 {
            let id = create(&house, model, silent).await.expect("taken");
            assert_eq!(ended(&house, id).await.0.state, TaskState::Completed, "{model}");
        }
        if paused {
            until_metric(&house, PAUSED, "1").await;
        }
        let before = house.sim.videos();
        let (sent, made) = match create(&house, model, "[[sim:ok queue=0 run=0]]").await {
            Ok(id) => (200, ended(&house, id).await.1.charge.is_zero()),
            Err((status, error)) => {
                assert_eq!(error["code"], "no_route_available", "{error}");
                (status, house.sim.videos() == before)
            }
        };
        assert_eq!((sent, made), if paused { (503, true) } else { (200, false) }, "{model}");
    }
    house.clock.pass(601_000);
    let app = &house.running().app;
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    let id = create(&house, "wan2.7-t2v", "[[sim:ok queue=0 run=0]]").await.expect("the one that is let through");
    ended(&house, id).await;
    until_metric(&house, PAUSED, "0").await;
    create(&house, "wan2.7-t2v", "[[sim:ok queue=0 run=0]]").await.expect("taken");
}
