//! /api/admin/jobs: begun, looked at, cancelled; files of exports; what a restart leaves of them.

use crate::engine::Engine;
use crate::house::{House, Plan, call_id, second};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_gateway::start::Running;
use tollgate_store::testing::run_sql;
use tollgate_store::{Attribution, JobProgress, JobState, NewAdminKey, OperatorJob};

const ADMIN: &str = "ak-0123456789abcdef0123456789abcdef0123456789abcdef";

async fn house(engine: &Engine, config: &str) -> House {
    let plan = Plan { database: engine.url.clone(), config: config.to_owned(), ..Plan::default() };
    let house = House::with(plan).await;
    let done = Attribution::by("test", "a test");
    let new = NewAdminKey { name: "day shift".to_owned(), expires_at: None, done };
    house.running().app.store.create_admin_key(new, ADMIN).await.expect("a key");
    house
}

async fn ask(house: &House, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let method: Method = method.parse().expect("a method");
    let request = house.http.request(method, house.url(path)).bearer_auth(ADMIN);
    let request = body.iter().fold(request, |request, body| request.json(body));
    let reply = request.send().await.expect("a reply");
    let status = reply.status().as_u16();
    let text = reply.text().await.expect("text");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn begin(house: &House, body: Value) -> Value {
    let (status, job) = ask(house, "POST", "/api/admin/jobs", Some(body)).await;
    assert_eq!((status, &job["state"]), (200, &json!("running")), "{job}");
    job
}

/// The job, once it does not run any more.
async fn ended(house: &House, job: &Value) -> Value {
    let path = format!("/api/admin/jobs/{}", job["job_id"].as_str().expect("an id"));
    loop {
        let (status, job) = ask(house, "GET", &path, None).await;
        assert_eq!(status, 200, "{job}");
        if job["state"] != "running" {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_exported_as_files_with_all_their_rows() {
    for engine in Engine::both().await {
        let house = house(&engine, "").await;
        let mut calls = Vec::new();
        for _ in 0..3 {
            calls.push(house.row(call_id(&house.ask("[[sim:tokens=2]]").await)).await);
        }
        house.quiet().await;
        let charged: i64 = calls.iter().map(|row| row.charge.nano()).sum();
        let reason = "for the books";
        for format in ["csv", "jsonl"] {
            let asked = json!({ "kind": "export", "what": "usage", "format": format, "reason": reason });
            let done = ended(&house, &begin(&house, asked).await).await;
            assert_eq!((&done["state"], &done["result"]["rows"]), (&json!("done"), &json!(3)), "{done}");
            assert_eq!(done["progress"]["done"], done["progress"]["total"], "{done}");
            let path = done["result"]["file"].as_str().expect("a path").to_owned();
            let reply = house.http.get(house.url(&path)).bearer_auth(ADMIN).send().await.expect("a reply");
            assert_eq!(reply.status(), 200);
            assert_eq!(reply.headers()["x-content-type-options"], "nosniff");
            let text = reply.text().await.expect("text");
            assert_eq!(Some(text.len() as u64), done["result"]["bytes"].as_u64());
            let lines: Vec<&str> = text.lines().collect();
            match format {
                "csv" => {
                    assert_eq!(lines.len(), 4, "{text}");
                    let at = lines[0].split(',').position(|name| name == "charge_nano_usd").expect("a column");
                    let sum: i64 =
                        lines[1..].iter().filter_map(|line| line.split(',').nth(at)?.parse::<i64>().ok()).sum();
                    assert_eq!(sum, charged);
                }
                _ => {
                    let rows: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
                    assert_eq!(rows.iter().filter_map(|row| row["charge_nano_usd"].as_i64()).sum::<i64>(), charged);
                }
            }
        }
        let asked = json!({ "kind": "export", "what": "ledger", "format": "jsonl", "reason": reason, "account": house.account.to_string() });
        let done = ended(&house, &begin(&house, asked).await).await;
        let path = done["result"]["file"].as_str().expect("a path").to_owned();
        let (_, text) = ask(&house, "GET", &path, None).await;
        let text = if let Value::String(text) = text { text } else { text.to_string() };
        let kinds: Vec<String> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].to_string()).collect();
        assert_eq!(kinds.iter().filter(|kind| *kind == "\"settle\"").count(), 3, "{kinds:?}");

        // A day later the file is gone; the job is still known.
        house.clock.pass(90_000_000);
        house.running().app.jobs.sweep(house.running().app.world.now_ms()).await;
        assert_eq!(ask(&house, "GET", &path, None).await.0, 404);
        let (_, list) = ask(&house, "GET", "/api/admin/jobs?limit=2", None).await;
        assert_eq!((list["data"].as_array().map(Vec::len), &list["has_more"]), (Some(2), &json!(true)), "{list}");
        let next = format!("/api/admin/jobs?before={}", list["next_before"].as_str().expect("an id"));
        assert_eq!(ask(&house, "GET", &next, None).await.1["data"].as_array().map(Vec::len), Some(1));
        let (_, log) = ask(&house, "GET", "/api/admin/audit?action=job.begin", None).await;
        assert_eq!(log["data"][0]["reason"], reason, "{log}");
    }
}

/// What a replica answers when it is asked for a file: the status, and all bytes, if all came.
async fn fetched(house: &House, at: &Running, path: &str) -> (u16, Option<String>) {
    let url = format!("http://{}{path}", at.address);
    let reply = house.http.get(url).bearer_auth(ADMIN).send().await.expect("a reply");
    let (status, length) = (reply.status().as_u16(), reply.content_length());
    let text = reply.text().await.ok();
    assert!(text.iter().all(|text| Some(text.len() as u64) == length), "as long as it says");
    (status, text)
}

/// Whichever replica is asked, the file is the same; all replicas together have one bound.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_fetched_from_any_replica() {
    let [_, postgres] = Engine::both().await;
    let mut house = house(&postgres, "[jobs]\nexport_bytes = \"1MiB\"\nexports_bytes = \"1MiB\"\n").await;
    let other = second(&house).await;
    for number in 0..1_500 {
        house.top_up(&format!("more-{number}"), "0.01").await;
    }
    let asked = json!({ "kind": "export", "what": "ledger", "reason": "the books" });
    let done = ended(&house, &begin(&house, asked.clone()).await).await;
    assert_eq!((&done["state"], &done["result"]["rows"]), (&json!("done"), &json!(1_501)), "{done}");
    let path = done["result"]["file"].as_str().expect("a path").to_owned();
    let id = done["job_id"].as_str().expect("an id").to_owned();
    let pieces = house.running().app.store.shared_export(&id).await.expect("read").expect("a file").pieces;
    assert!(pieces > 1, "{done}");
    assert_eq!(house.running().app.jobs.used(), 0, "nothing lies in the folder");
    let (here, there) = (fetched(&house, house.running(), &path).await, fetched(&house, &other, &path).await);
    assert_eq!(here.0, 200);
    assert_eq!(here, there);
    let text = here.1.expect("a text");
    assert_eq!(Some(text.len() as u64), done["result"]["bytes"].as_u64());
    assert_eq!(text.lines().count(), 1_501);
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok_and(|entry| entry["kind"] == "top_up")));

    // The other one has no room beside it, and what it wrote goes.
    let url = format!("http://{}/api/admin/jobs", other.address);
    let job: Value =
        house.http.post(url).bearer_auth(ADMIN).json(&asked).send().await.expect("a reply").json().await.expect("JSON");
    let failed = ended(&house, &job).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(failed["result"]["error"].as_str().is_some_and(|why| why.contains("room")), "{failed}");
    assert_eq!(house.running().app.store.sweep_exports().await.expect("swept"), 1, "of the one that failed");

    // It outlives the replica that made it.
    house.restart().await;
    assert_eq!(fetched(&house, house.running(), &path).await, there);

    // Half of it never looks like all.
    let last = format!("DELETE FROM export_piece WHERE number = {}", pieces - 1);
    run_sql(&postgres.url, &last).await.expect("deleted");
    assert_eq!(fetched(&house, &other, &path).await, (200, None), "broken off");

    house.clock.pass(90_000_000);
    other.app.store.sweep_exports().await.expect("swept");
    for at in [house.running(), &other] {
        assert_eq!(fetched(&house, at, &path).await.0, 404);
    }
    let again = ended(&house, &begin(&house, asked).await).await;
    assert_eq!(again["state"], "done", "there is room again: {again}");
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bill_is_compared_with_our_calls() {
    for engine in Engine::both().await {
        let house = house(&engine, "").await;
        let (one, two) = (
            house.row(call_id(&house.ask("[[sim:tokens=2]]").await)).await,
            house.row(call_id(&house.ask("[[sim:tokens=2]]").await)).await,
        );
        house.quiet().await;
        let usd = |nano: i64| format!("0.{nano:09}");
        let bill = format!(
            "call_id,amount\n{},{}\n{},{}\n",
            one.call,
            usd(one.charge.nano()),
            two.call,
            usd(2 * two.charge.nano())
        );
        let asked = json!({ "kind": "reconcile", "bill": bill, "reason": "the month", "tolerance_usd": "0" });
        let done = ended(&house, &begin(&house, asked).await).await;
        let found = (&done["result"]["matched"], &done["result"]["differing"], &done["result"]["clean"]);
        assert_eq!(found, (&json!(1), &json!(1), &json!(false)), "{done}");
        assert_eq!(done["result"]["rows"][0]["call_id"], json!(two.call));
        assert!(!done.to_string().contains("call_id,amount"), "the bill itself is not stored");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_is_refused_by_name() {
    let [sqlite, _] = Engine::both().await;
    let house = house(&sqlite, "[jobs]\nexport_bytes = \"100B\"\nexports_bytes = \"100B\"\n").await;
    for (body, status, field) in [
        (json!({}), 400, "kind"),
        (json!({ "kind": "import" }), 400, "kind"),
        (json!({ "kind": "export", "reason": "x" }), 400, "what"),
        (json!({ "kind": "export", "what": "usage" }), 400, "reason"),
        (json!({ "kind": "export", "what": "usage", "format": "xml", "reason": "x" }), 400, "format"),
        (json!({ "kind": "export", "what": "ledger", "from": "soon", "reason": "x" }), 400, "from"),
        (json!({ "kind": "export", "what": "ledger", "account": "me", "reason": "x" }), 400, "account"),
        (json!({ "kind": "verify", "what": "usage" }), 400, "what"),
        (json!({ "kind": "reconcile", "reason": "x" }), 400, "bill"),
        (json!({ "kind": "reconcile", "bill": "a,b\n1\n", "reason": "x" }), 400, "bill"),
        (json!({ "kind": "reconcile", "bill": "id,amount\nx,1\n", "ratio": "many", "reason": "x" }), 400, "ratio"),
    ] {
        let (got, answer) = ask(&house, "POST", "/api/admin/jobs", Some(body.clone())).await;
        assert_eq!((got, answer["error"]["param"].as_str()), (status, Some(field)), "{body}: {answer}");
    }
    assert_eq!(ask(&house, "GET", "/api/admin/jobs?kind=verify", None).await.1["error"]["param"], "kind");
    // More than there is room for is said, and nothing stays.
    let asked = json!({ "kind": "export", "what": "ledger", "format": "csv", "reason": "x" });
    let done = ended(&house, &begin(&house, asked).await).await;
    assert_eq!(done["state"], "failed", "{done}");
    assert!(done["result"]["error"].as_str().is_some_and(|why| why.contains("room")), "{done}");
    assert_eq!(house.running().app.jobs.used(), 0);
    let path = format!("/api/admin/jobs/{}", done["job_id"].as_str().expect("an id"));
    assert_eq!(ask(&house, "GET", &format!("{path}/file"), None).await.0, 409);
    assert_eq!(ask(&house, "POST", &format!("{path}/cancel"), Some(json!({ "reason": "x" }))).await.0, 409);
    assert_eq!(ask(&house, "POST", "/api/admin/jobs/job_0/cancel", Some(json!({ "reason": "x" }))).await.0, 404);
}

fn job(house: &House, id: &str, kind: &str) -> OperatorJob {
    let app = &house.running().app;
    OperatorJob {
        job_id: id.to_owned(),
        kind: kind.to_owned(),
        state: JobState::Running,
        actor: "test".to_owned(),
        replica: app.store.replica_name(),
        asked: json!({}),
        started_at_ms: app.world.now_ms(),
        ended_at_ms: None,
        progress: JobProgress { done: 0, total: 10 },
        cancel_asked: false,
        result: Value::Null,
    }
}

/// One of a kind runs at a time, four in all; one that is cancelled hears of it; finished ones are
/// forgotten beyond a bound.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_few_and_can_be_cancelled() {
    for engine in Engine::both().await {
        let house = house(&engine, "").await;
        let store = house.running().app.store.clone();
        let done = Attribution::by("test", "a test");
        for (number, kind) in ["a", "b", "c", "d"].into_iter().enumerate() {
            assert!(store.begin_job(&job(&house, &format!("job_{number}"), kind), &done).await.expect("written"));
        }
        assert!(!store.begin_job(&job(&house, "job_5", "a"), &done).await.expect("written"), "one of its kind runs");
        assert!(!store.begin_job(&job(&house, "job_6", "e"), &done).await.expect("written"), "four run");
        assert!(store.note_job("job_0", JobProgress { done: 3, total: 10 }).await.expect("written"));
        assert_eq!(store.job("job_0").await.expect("read").map(|job| job.progress.done), Some(3));
        let (status, cancelled) =
            ask(&house, "POST", "/api/admin/jobs/job_0/cancel", Some(json!({ "reason": "too long" }))).await;
        assert_eq!((status, &cancelled["cancel_asked"]), (200, &json!(true)));
        assert!(!store.note_job("job_0", JobProgress::default()).await.expect("written"), "it hears of it");
        store.end_job("job_0", JobState::Cancelled, "null").await.expect("written");
        assert_eq!(store.job("job_0").await.expect("read").map(|job| job.state), Some(JobState::Cancelled));
        for number in 0..tollgate_store::STORED_JOBS {
            let id = format!("job_1{number:04}");
            assert!(store.begin_job(&job(&house, &id, "x"), &done).await.expect("written"), "{id}");
            store.end_job(&id, JobState::Done, "null").await.expect("written");
        }
        let stored = store.jobs(None, 1_000).await.expect("read").len();
        assert!(stored <= tollgate_store::STORED_JOBS as usize + 4, "{stored}");
    }
}

pub async fn a_job_whose_process_ended_is_interrupted() {
    for engine in Engine::both().await {
        let mut house = house(&engine, "").await;
        let done = Attribution::by("test", "a test");
        // One of this process, and one of another that says nothing any more.
        let own = job(&house, "job_1", "verify");
        let other = OperatorJob { replica: "another".to_owned(), ..job(&house, "job_2", "export") };
        for job in [&own, &other] {
            assert!(house.running().app.store.begin_job(job, &done).await.expect("written"));
        }
        std::fs::create_dir_all(&house.running().app.jobs.folder).expect("a folder");
        std::fs::write(house.running().app.jobs.part("job_1"), "half of it").expect("written");
        house.restart().await;
        let (_, found) = ask(&house, "GET", "/api/admin/jobs/job_1", None).await;
        assert_eq!(found["state"], "interrupted", "{}", engine.name);
        let (_, found) = ask(&house, "GET", "/api/admin/jobs/job_2", None).await;
        assert_eq!(found["state"], "running", "it may run elsewhere");
        house.clock.pass(61_000);
        let (_, found) = ask(&house, "GET", "/api/admin/jobs/job_2", None).await;
        assert_eq!(found["state"], "interrupted", "nothing was heard of it");
        let app = &house.running().app;
        app.jobs.sweep(app.world.now_ms()).await;
        assert_eq!(app.jobs.used(), 0, "half a file is no file");
        let again = ended(&house, &begin(&house, json!({ "kind": "verify" })).await).await;
        assert_eq!(again["state"], "done", "another one can be begun");
    }
}
