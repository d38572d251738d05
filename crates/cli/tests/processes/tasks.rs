//! Video tasks while gateways die: two replicas on PostgreSQL, killed and stopped in turn, and the provider's own count at the end.
//! Every task ends once, was created once, and costs what it made.

use crate::experiment::{Experiment, long};
use crate::house::{House, Plan};
use crate::postgres::Server;
use crate::process::signal;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

/// Questions a second the provider allows all gateways together.
const LIMIT: u64 = 1_000;
/// Five seconds of kling-v3.
const PRICE: i64 = 417_000_000;

/// Leases end soon, and so does a wait for a provider, and for a task that it does not know.
pub const TASKS: &str = r#"
[tasks]
look_every = "100ms"
look_time = "1s"
refresh_after = "1h"
absent_time = "5s"
[provider.kling]
kind = "kling"
base_url = "{sim}/video/kling"
access_file = "../access.key"
secret_file = "../secret.key"
first_byte_time = "2s"
idle_time = "2s"
poll_every = "500ms"
requests_per_second = 1000
"#;

pub const CATALOG: &str = r#"
[model."kling-v3"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "c-standard", sold = { mode = ["std"] }, one_price = ["sound"] }
price = { video_second = 83_400 }
route = [{ provider = "kling", upstream_model = "kling-v3" }]
"#;

/// Creates task `number`, whatever happens to the gateways: the same key until there is an answer.
async fn create(house: &Mutex<House>, http: &reqwest::Client, number: usize, prompt: &str) -> String {
    let body = json!({ "model": "kling-v3", "prompt": format!("{number} {prompt}") });
    let until = Instant::now() + Duration::from_secs(120);
    for attempt in number.. {
        let (url, key) = {
            let house = house.lock().await;
            let gate = &house.gates[attempt % house.gates.len()];
            (format!("{}/v1/videos", gate.url()), house.key.clone())
        };
        let asked = http.post(url).bearer_auth(key).header("idempotency-key", format!("task-{number}")).json(&body);
        if let Ok(reply) = asked.send().await
            && reply.status() == 200
            && let Ok(task) = reply.json::<Value>().await
        {
            return task["id"].as_str().expect("an id").to_owned();
        }
        assert!(Instant::now() < until, "task {number} cannot be created");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    unreachable!("it is tried until there is no time left")
}

/// A gateway died when it had written down that it would send a task, and had not sent it: nobody made it, nobody pays.
const NEVER_SENT: &str = "task_not_created";
/// Creations under way at once.
const DOORS: usize = 64;

/// All tasks of the account by id, with their states; those that were never sent under a name of their own.
async fn states(house: &House, gate: usize) -> HashMap<String, String> {
    let mut all = HashMap::new();
    let mut after = String::new();
    loop {
        let url = format!("{}/v1/videos?limit=100&order=asc{after}", house.gates[gate].url());
        let reply = house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply");
        let page: Value = reply.json().await.expect("JSON");
        for task in page["data"].as_array().expect("a list") {
            let never_sent = task["error"]["code"] == NEVER_SENT;
            let state = if never_sent { NEVER_SENT.to_owned() } else { crate::house::text(&task["status"]) };
            all.insert(crate::house::text(&task["id"]), state);
        }
        if page["has_more"] != true {
            return all;
        }
        after = format!("&after={}", crate::house::text(&page["last_id"]));
    }
}

fn is_final(state: &str) -> bool {
    ["completed", "failed", NEVER_SENT].contains(&state)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_task_ends_once_while_replicas_die() {
    let mut experiment = Experiment::new("video tasks, two replicas on PostgreSQL, killed and stopped");
    let server = Server::find();
    let database = server.database("tasks").await;
    let count = if long() { 10_000 } else { 1_000 };
    let usd = "100000";
    let plan = Plan { database: &database, gates: 2, usd, top: TASKS, catalog: CATALOG, ..Plan::default() };
    let house = House::new(plan).await;
    let (sim_url, http) = (house.sim_url.clone(), house.http.clone());
    let house = Arc::new(Mutex::new(house));
    let doors = Arc::new(Semaphore::new(DOORS));
    let mut creations = JoinSet::new();
    for number in 0..count {
        // One in five fails; the others wait, run, stumble and succeed.
        let prompt = match number % 5 {
            0 => "[[sim:fail]]",
            1 => "[[sim:ok queue=6 run=6]]",
            2 => "[[sim:poll_broken n=2]]",
            3 => "[[sim:no_url n=2]]",
            _ => "[[sim:ok queue=3 run=3]]",
        };
        let (house, doors, http) = (house.clone(), doors.clone(), http.clone());
        creations.spawn(async move {
            let _door = doors.acquire().await.expect("open");
            (create(&house, &http, number, prompt).await, number)
        });
    }
    let mut expected = HashMap::new();
    let mut round = 0;
    let mut cpu = Duration::ZERO;
    let began = Instant::now();
    let mut done = false;
    while !done {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        while let Some(created) = creations.try_join_next() {
            let (id, number) = created.expect("created");
            assert!(expected.insert(id, if number % 5 == 0 { "failed" } else { "completed" }).is_none(), "one id each");
        }
        let gate = round % 2;
        round += 1;
        if creations.is_empty() {
            let house = house.lock().await;
            let states = states(&house, 0).await;
            done = states.len() == count && states.values().all(|state| is_final(state));
            if done || began.elapsed() > Duration::from_secs(if long() { 900 } else { 120 }) {
                let left = states.values().filter(|state| !is_final(state)).count();
                assert!(done, "{left} of {} tasks do not end", states.len());
                break;
            }
        }
        if round % 3 == 0 {
            // It stands still for longer than its leases, and goes on as if nothing had happened.
            let id = house.lock().await.gates[gate].process.as_ref().expect("running").id();
            signal("STOP", &[id]);
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            signal("CONT", &[id]);
            experiment.count("lease losses", 1);
        } else {
            let mut house = house.lock().await;
            cpu += house.gates[gate].process.as_ref().expect("running").cpu();
            house.gates[gate].kill();
            house.gates[gate].start().await;
            experiment.count("kills", 1);
        }
    }
    let house = Arc::into_inner(house).expect("nobody else has it").into_inner();
    let took = began.elapsed();
    cpu += house.gates.iter().map(|gate| gate.process.as_ref().expect("running").cpu()).sum::<Duration>();
    let states = states(&house, 1).await;
    for (id, state) in &expected {
        let seen = states.get(id).map(String::as_str);
        assert!(seen == Some(*state) || seen == Some(NEVER_SENT), "{id}: {seen:?}, not {state}");
    }
    let never_sent = states.values().filter(|state| *state == NEVER_SENT).count();
    let told: Value =
        http.get(sim_url.replace("/v1", "/_sim/videos")).send().await.expect("a reply").json().await.expect("JSON");
    // Only what was on its way to be sent when a gateway died or stood still.
    let most_unsent = round * DOORS;
    assert!(never_sent <= most_unsent, "{never_sent} were never sent, with {round} interruptions");
    assert_eq!(told["tasks"], count - never_sent, "as many creations as tasks: none was sent again, none was lost");
    let asked = &told["asked"]["kling"];
    let (all, most) = (asked["all"].as_u64().expect("a count"), asked["most_in_a_second"].as_u64().expect("a count"));
    // Half as many on top: what leaves evenly arrives in heaps where two cores do all of this.
    assert!(most <= LIMIT + LIMIT / 2, "{most} questions in a second, {LIMIT} are allowed");
    assert!(u128::from(all) * 1_000 <= u128::from(LIMIT) * took.as_millis(), "{all} questions in {took:?}");
    house.quiet().await;
    house.verified().await;
    let completed = states.values().filter(|state| *state == "completed").count();
    let spent = i64::try_from(completed).expect("a number") * PRICE;
    assert_eq!(house.balance(0).await["available_nano_usd"].as_i64(), Some(100_000_000_000_000 - spent));
    experiment.count("tasks", count);
    experiment.count("completed and charged once", completed);
    experiment.count("failed and free", count - completed - never_sent);
    experiment.count("never sent and free", never_sent);
    experiment.count("questions to the provider", all);
    experiment.count(&format!("of them in the busiest second ({LIMIT} allowed)"), most);
    experiment.count("of them a second on average", all / took.as_secs().max(1));
    experiment.count("ms of CPU of both gateways", cpu.as_millis());
    experiment.count("% of a core for them", cpu.as_millis() * 100 / took.as_millis().max(1));
    experiment.end();
}
