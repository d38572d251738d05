//! Steps that are looked at again, by the same worker or another: what has ended is not priced and
//! not bought a second time, whoever has the run by then.

use super::RunHouse;
use crate::engine::Engine;
use crate::house::{Plan, second};
use crate::watch::until;
use serde_json::{Value, json};
use tollgate_gateway::workers::reload::reload;
use tollgate_store::RunId;

const SLUG: &str = "article-to-narration";
const CHAT: &str = "/v1/chat/completions";

/// A run whose first step has reached its provider, which does not answer until its door opens.
async fn under_way(house: &RunHouse) -> String {
    let waited = house.house.sim.waited();
    house.house.sim.shut(CHAT);
    let id = house.begin(SLUG, json!({ "article": "Rain." })).await;
    until("the first step", async || house.house.sim.waited() > waited).await;
    id
}

fn calls(run: &Value) -> Vec<usize> {
    let steps = run["steps"].as_array().expect("steps");
    steps.iter().map(|step| step["calls"].as_array().expect("calls").len()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_has_ended_is_not_priced_again() {
    let house = RunHouse::shipped().await;
    house.verify(SLUG).await;
    let id = under_way(&house).await;
    // As a worker leaves it that died after the second step had ended and before that was written.
    let body = json!({ "model": "demo-speech", "input": "Rain.", "voice": "alloy", "response_format": "mp3" });
    let request = house.post("/v1/audio/speech", &body).header("idempotency-key", format!("{id}.2"));
    let reply = request.send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    let call = reply.headers()["x-request-id"].to_str().expect("text").to_owned();
    reply.bytes().await.expect("audio");
    // By now the model is not sold any more.
    let file = house.house.dir.join("catalog/more.toml");
    let text = std::fs::read_to_string(&file).expect("a catalog").replace("[model.\"demo-speech\"", "[model.\"gone\"");
    std::fs::write(&file, text).expect("written");
    reload(&house.house.running().app, &house.house.source).await.unwrap_or_else(|mistakes| panic!("{mistakes:#?}"));
    let sent = house.house.sim.received().len();
    house.house.sim.open();
    let run = house.ended(&id).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    assert_eq!((&run["steps"][1]["call_id"], calls(&run)), (&json!(call), vec![1, 1]), "{run:#}");
    assert_eq!(house.house.sim.received().len(), sent, "nobody was asked again");
    house.house.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_lost_buys_nothing_twice() {
    for engine in Engine::both().await {
        let files = tempfile::tempdir().expect("a folder");
        let config = format!("copy_to = {:?}\n", files.path());
        let house = RunHouse::with(Plan { database: engine.url.clone(), config, ..Plan::default() }).await;
        house.verify(SLUG).await;
        let id = under_way(&house).await;
        let sent = house.house.sim.received().len();
        let other = if engine.name == "postgres" { Some(second(&house.house).await) } else { None };
        // Nobody said in time that the run is being worked on: somebody else takes it.
        let store = &house.house.running().app.store;
        let run: RunId = id.parse().expect("an id");
        let before = store.any_run(run).await.expect("read").expect("a run").fence;
        house.house.clock.pass(31_000);
        let fence = async || store.any_run(run).await.expect("read").expect("a run").fence;
        until("somebody else", async || fence().await != before).await;
        assert_eq!(house.house.sim.received().len(), sent, "{}: the step is under way already", engine.name);
        house.house.sim.open();
        let run = house.ended(&id).await;
        assert_eq!(run["status"], "completed", "{}: {run:#}", engine.name);
        assert_eq!(calls(&run), [1, 1], "{}: {run:#}", engine.name);
        let asked = house.house.sim.received().iter().filter(|seen| seen.path == CHAT).count();
        assert_eq!(asked, 2, "{}: once for the fixture and once for the run", engine.name);
        if let Some(other) = other {
            other.stop().await;
        }
        house.house.check().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_cancelled_begins_nothing() {
    let house = RunHouse::with(Plan { config: "open_runs = 5\n".to_owned(), ..Plan::default() }).await;
    house.verify(SLUG).await;
    let id = under_way(&house).await;
    let (status, run) = house.ask(&format!("/v1/workflows/runs/{id}/cancel"), &json!({})).await;
    assert_eq!(status, 200, "{run}");
    let asked = house.house.sim.received().len();
    house.house.sim.open();
    let run = house.ended(&id).await;
    assert_eq!(run["status"], "cancelled", "{run:#}");
    let steps: Vec<&Value> = run["steps"].as_array().expect("steps").iter().map(|step| &step["status"]).collect();
    assert_eq!((steps, house.house.sim.received().len()), (vec![&json!("done"), &json!("pending")], asked));
}

/// A step's answer that is too long for the database lies elsewhere: what is stored under its key
/// is not taken for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_of_a_step_is_looked_for_where_it_lies() {
    const STORYBOARD: &str = "storyboard-to-shots";
    const PICTURES: &str = "/v1/images/generations";
    let package = include_str!("../../../../../../catalog/workflows/storyboard-to-shots/package.toml")
        .replace("\"/data/0/url\"", "\"/metadata/success_count\"")
        .replace(
            "of this list:\\n{{steps.list.text}}\", input_reference = \"{{steps.frames.url}}\"",
            "of {{steps.frames.url}}:\\n{{steps.list.text}}\"",
        );
    assert!(!package.contains("input_reference"), "{package}");
    for gone in [false, true] {
        let house = RunHouse::shipped().await;
        house.put("storyboard-to-shots/package.toml", &package).await;
        house.verify(STORYBOARD).await;
        let waited = house.house.sim.waited();
        house.house.sim.shut(CHAT);
        let id = house.begin(STORYBOARD, json!({ "storyline": "A boat leaves.", "shots": 1 })).await;
        until("the first step", async || house.house.sim.waited() > waited).await;
        // As a worker leaves it that died after the picture was there and before that was written.
        let body = json!({ "model": "demo-image", "prompt": "[[sim:kb=1200]]", "response_format": "b64_json" });
        let request = house.post(PICTURES, &body).header("idempotency-key", format!("{id}.2"));
        let reply = request.send().await.expect("a reply");
        let call = reply.headers()["x-request-id"].to_str().expect("text").to_owned();
        assert!(reply.bytes().await.expect("a picture").len() > 1 << 20);
        let asked = asked_for(&house, PICTURES);
        if gone {
            let folder = house.house.dir.join("data/pictures");
            let files = folder.read_dir().expect("a folder").map(|file| file.expect("read").path());
            files.filter(|file| file.extension().is_some_and(|end| end == "reply")).for_each(|file| {
                std::fs::remove_file(file).expect("removed");
            });
        }
        house.house.sim.open();
        let run = house.ended(&id).await;
        let (step, why) = (&run["steps"][1], run["failure"].as_str().unwrap_or_default());
        match gone {
            // As one that has just come: a step gives at most a megabyte that is no file.
            false => assert!(run["status"] == "failed" && why.contains("longer than 1048576 bytes"), "{run:#}"),
            true => assert_eq!((&run["status"], &run["stopped"]), (&json!("stopped"), &json!("charge_unknown"))),
        }
        assert_eq!((&step["call_id"], asked_for(&house, PICTURES)), (&json!(call), asked), "{run:#}");
        house.house.check().await;
    }
}

/// A picture that may have been made is not made again by itself: the run stops and says so, and
/// goes on with another one when its owner says that this is what he wants.
#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_which_nobody_knows_is_made_again_only_when_its_owner_says_so() {
    const STORYBOARD: &str = "storyboard-to-shots";
    const PICTURES: &str = "/v1/images/generations";
    let config = "[limits]\ndrain_time = \"100ms\"\n".to_owned();
    let mut house = RunHouse::with(Plan { config, ..Plan::default() }).await;
    house.verify(STORYBOARD).await;
    let (drawn, waited) = (asked_for(&house, PICTURES), house.house.sim.waited());
    house.house.sim.shut(PICTURES);
    let id = house.begin(STORYBOARD, json!({ "storyline": "A boat leaves.", "shots": 1 })).await;
    until("the picture", async || house.house.sim.waited() > waited).await;
    // The stop has no time for it.
    house.house.restart().await;
    house.house.sim.open();
    let run = house.ended(&id).await;
    assert_eq!((&run["status"], &run["stopped"]), (&json!("stopped"), &json!("charge_unknown")), "{run:#}");
    let steps = run["steps"].as_array().expect("steps");
    assert_eq!(steps.iter().map(|step| &step["status"]).collect::<Vec<_>>(), ["done", "unknown", "pending"]);
    assert_eq!((steps[1]["charged_nano_usd"].as_i64(), calls(&run)), (Some(0), vec![1, 1, 0]), "{run:#}");
    let resume = format!("/v1/workflows/runs/{id}/resume");
    let (status, _) = house.ask(&resume, &json!({})).await;
    assert_eq!(status, 200);
    // The next wish is heard when the run rests again.
    let again = json!({ "resubmit": true });
    until("the next wish", async || {
        let sent = asked_for(&house, PICTURES);
        let (status, reply) = house.ask(&resume, &again).await;
        assert_eq!(sent, drawn + 1, "it is looked for, and not sent again");
        assert!(status == 200 || status == 409, "{reply}");
        status == 200
    })
    .await;
    until("another end", async || house.ended(&id).await["status"] != "stopped").await;
    let run = house.ended(&id).await;
    assert_eq!((&run["status"], calls(&run)), (&json!("completed"), vec![1, 2, 1]), "{run:#}");
    assert_eq!(asked_for(&house, PICTURES), drawn + 2);
    assert!(run["charged_nano_usd"].as_i64() <= run["max_cost_nano_usd"].as_i64(), "{run:#}");
    house.house.check().await;
}

/// How often the provider was asked there.
fn asked_for(house: &RunHouse, path: &str) -> usize {
    house.house.sim.received().iter().filter(|seen| seen.path == path).count()
}
