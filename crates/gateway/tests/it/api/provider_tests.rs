//! The job `provider_test`: what the command line tries of a provider, begun over HTTP by an
//! operator who has just proved who he is.

use crate::engine::Engine;
use crate::house::{House, Plan};
use crate::people::signed_in;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_sim::{Sim, SimSettings};
use tollgate_store::{Attribution, HouseRole, NewAdminKey};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";
const JOBS: &str = "/api/admin/jobs";

const CATALOG: &str = r#"
[model."word"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "good", upstream_model = "sim-plain" }]

[model."refused-word"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "refused", upstream_model = "sim-plain" }]

[model."dead-word"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "nobody", upstream_model = "sim-plain" }]

[model."moving"]
type = "video"
input_modalities = ["text", "image", "video"]
output_modalities = ["video"]
resolutions = ["768P", "2K"]
max_duration_seconds = 15
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "d-native-audio", one_price = ["resolution"] }
price = { video_second = 69_500 }
route = [{ provider = "makes-videos", upstream_model = "MiniMax-H3" }]
"#;

/// A house with two more providers: one that takes every key, and one that wants another than ours.
async fn house(engine: &Engine) -> (House, Sim, Sim) {
    let good = Sim::start(SimSettings::default()).await.expect("a simulator");
    let wants = SimSettings { require_key: Some("another".to_owned()), ..SimSettings::default() };
    let refused = Sim::start(wants).await.expect("a simulator");
    let table = |name: &str, sim: &Sim| {
        format!("[provider.{name}]\nkind = \"openai\"\nbase_url = \"{}\"\nsecret_file = \"sim.key\"\n", sim.base_url())
    };
    let makes = format!(
        "[provider.makes-videos]\nkind = \"minimax\"\nbase_url = \"{}\"\nsecret_file = \"sim.key\"\npoll_every = \"40ms\"\n",
        good.video_url("minimax")
    );
    let people = "[people]\nenabled = true\n[people.mail]\nfolder = \"mail\"\n";
    let config = [people, &table("good", &good), &table("refused", &refused), &makes].concat();
    let plan = Plan { database: engine.url.clone(), config, catalog: CATALOG, videos: true, ..Plan::default() };
    let house = House::with(plan).await;
    let new = NewAdminKey { name: "day shift".to_owned(), expires_at: None, done: Attribution::by("test", "a test") };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    (house, good, refused)
}

async fn ask(house: &House, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let method: Method = method.parse().expect("a method");
    let request = house.http.request(method, house.url(path)).bearer_auth(ADMIN);
    let request = body.iter().fold(request, |request, body| request.json(body));
    let reply = request.send().await.expect("a reply");
    let status = reply.status().as_u16();
    let text = reply.text().await.expect("text");
    let key = std::fs::read_to_string(house.dir.join("sim.key")).expect("a key");
    assert!(!text.contains(key.trim()), "a key is shown: {text}");
    (status, serde_json::from_str(&text).expect("JSON"))
}

/// Begins a test and waits for its end.
async fn tested(house: &House, body: Value) -> Value {
    let (status, job) = ask(house, "POST", JOBS, Some(body)).await;
    assert_eq!((status, &job["kind"]), (200, &json!("provider_test")), "{job}");
    let path = format!("{JOBS}/{}", job["job_id"].as_str().expect("an id"));
    loop {
        let (status, job) = ask(house, "GET", &path, None).await;
        assert_eq!(status, 200, "{job}");
        if job["state"] != "running" {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn test(provider: &str) -> Value {
    json!({ "kind": "provider_test", "provider": provider, "reason": "a new key" })
}

/// What came of chat.
fn chat(job: &Value) -> &Value {
    let rows = job["result"]["rows"].as_array().unwrap_or_else(|| panic!("{job}"));
    rows.iter().find(|row| row["endpoint"] == "chat").unwrap_or_else(|| panic!("{job}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_tried_as_the_command_line_does() {
    for engine in Engine::both().await {
        let (house, good, refused) = house(&engine).await;
        let mut plan = test("good");
        plan["plan"] = json!(true);
        let planned = tested(&house, plan).await;
        assert_eq!((&planned["state"], &chat(&planned)["outcome"]), (&json!("done"), &json!("planned")), "{planned}");
        assert!(good.received().is_empty(), "a plan sends nothing");

        let done = tested(&house, test("good")).await;
        assert_eq!((&done["result"]["failed"], &chat(&done)["outcome"]), (&json!(0), &json!("answered")), "{done}");
        assert!(chat(&done)["most_usd"].as_str().is_some_and(|usd| usd.starts_with("0.0000")), "{done}");
        assert_eq!(done["progress"]["done"], done["progress"]["total"]);
        let sent: Vec<String> = good.received().iter().map(|one| one.path.clone()).collect();
        assert_eq!(sent, ["/v1/chat/completions"], "one cheap call");

        let wrong = tested(&house, test("refused")).await;
        assert_eq!(chat(&wrong)["outcome"], "failed", "{wrong}");
        assert!(chat(&wrong)["said"].as_str().is_some_and(|said| said.starts_with("wrong key")), "{wrong}");
        assert!(refused.received().iter().all(|one| one.path.starts_with("/v1/")), "and nothing else");
        let dead = tested(&house, test("nobody")).await;
        assert!(chat(&dead)["said"].as_str().is_some_and(|said| said.contains("nobody answers")), "{dead}");
        let (_, log) = ask(&house, "GET", "/api/admin/audit?action=job.begin", None).await;
        assert_eq!(log["data"][0]["reason"], "a new key", "{log}");
        house.quiet().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_costs_money_so_it_is_refused_where_anything_is_missing() {
    let [sqlite, _] = Engine::both().await;
    let (house, good, _refused) = house(&sqlite).await;
    for (body, field) in [
        (json!({ "kind": "provider_test", "reason": "x" }), "provider"),
        (json!({ "kind": "provider_test", "provider": "good" }), "reason"),
        (json!({ "kind": "provider_test", "provider": "god", "reason": "x" }), "provider"),
        (json!({ "kind": "provider_test", "provider": "good", "endpoint": "smells", "reason": "x" }), "endpoint"),
        (json!({ "kind": "provider_test", "provider": "good", "model": "", "reason": "x" }), "model"),
        (json!({ "kind": "provider_test", "provider": "good", "media": true, "model": "m", "reason": "x" }), "model"),
        (json!({ "kind": "provider_test", "provider": "good", "media": 1, "reason": "x" }), "media"),
        (json!({ "kind": "provider_test", "provider": "good", "strict": true, "reason": "x" }), "strict"),
    ] {
        let (status, answer) = ask(&house, "POST", JOBS, Some(body)).await;
        assert_eq!((status, answer["error"]["param"].as_str()), (400, Some(field)), "{answer}");
    }
    let mut operator = signed_in(&house, "op@example.com", Some(HouseRole::Operator), None).await;
    house.later(11 * 60_000).await;
    assert_eq!(operator.post(JOBS, test("good")).await.code, "step_up_required");
    assert!(good.received().is_empty(), "nothing was sent");

    // While one runs, no other begins; one that is cancelled stops.
    good.shut("/v1/chat/completions");
    let (status, job) = ask(&house, "POST", JOBS, Some(test("good"))).await;
    assert_eq!(status, 200, "{job}");
    while good.waited() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ask(&house, "POST", JOBS, Some(test("nobody"))).await.0, 409, "one at a time");
    let path = format!("{JOBS}/{}", job["job_id"].as_str().expect("an id"));
    assert_eq!(ask(&house, "POST", &format!("{path}/cancel"), Some(json!({ "reason": "enough" }))).await.0, 200);
    while ask(&house, "GET", &path, None).await.1["state"] == "running" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    good.open();
    assert_eq!(ask(&house, "GET", &path, None).await.1["state"], "cancelled");
}

/// A model that has no shape of its own is asked for one; and the gateway that asks for it is gone
/// afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_video_is_made_where_its_cost_is_agreed_to() {
    let [sqlite, _] = Engine::both().await;
    let (house, good, _refused) = house(&sqlite).await;
    let test = |plan: bool| json!({ "kind": "provider_test", "provider": "makes-videos", "media": true, "plan": plan, "reason": "costs" });
    let planned = tested(&house, test(true)).await;
    let row = &planned["result"]["rows"][0];
    let four_seconds = (&json!("video"), &json!("planned"), &json!("0.278"));
    assert_eq!((&row["endpoint"], &row["outcome"], &row["most_usd"]), four_seconds, "{planned}");
    assert!(good.received().is_empty(), "a plan sends nothing");
    let made = tested(&house, test(false)).await;
    assert_eq!(made["result"]["rows"][0]["outcome"], "answered", "{made}");
    assert_eq!(made["result"]["failed"], 0, "{made}");
}
