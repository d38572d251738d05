//! Runs of workflows in a process that is killed: whoever starts again goes on with the same tries,
//! and nothing is bought twice.

use crate::house::text;
use crate::process::{Process, tollgate};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const SLUG: &str = "article-to-narration";

fn start(dir: &Path) -> (Process, Value) {
    let mut command = tollgate(&["demo", "--listen", "127.0.0.1:0", "--json", "--data", "demo"]);
    command.current_dir(dir).env("TOLLGATE__WORKFLOWS__LOOK_EVERY", "20ms");
    let mut process = Process::start(command, &dir.join("demo.log"));
    let line = process.first_line();
    (process, line)
}

/// Asks, as the customer or as the operator.
async fn ask(line: &Value, key: &str, path: &str, body: Option<&Value>) -> Value {
    let url = format!("{}{path}", text(&line["base_url"]));
    let client = reqwest::Client::new();
    let request = match body {
        Some(body) => client.post(url).json(body),
        None => client.get(url),
    };
    request.bearer_auth(text(&line[key])).send().await.expect("a reply").json().await.expect("JSON")
}

/// The run once this holds of it.
async fn until(line: &Value, id: &str, holds: impl Fn(&Value) -> bool) -> Value {
    loop {
        let run = ask(line, "key", &format!("/v1/workflows/runs/{id}"), None).await;
        if holds(&run) {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn verified(line: &Value) {
    let usage = ask(line, "key", "/v1/balance", None).await;
    let account = text(&usage["account_id"]);
    let keys = ask(line, "admin_key", &format!("/api/admin/accounts/{account}/keys"), None).await;
    let key = keys["data"].as_array().expect("keys").last().expect("a key")["key_id"].clone();
    let reason = json!({ "reason": "a test" });
    ask(line, "admin_key", &format!("/api/admin/workflows/{SLUG}/lock"), Some(&reason)).await;
    let payer = json!({ "reason": "a test", "account": account, "key": key });
    let begun = ask(line, "admin_key", &format!("/api/admin/workflows/{SLUG}/verify"), Some(&payer)).await;
    let run = until(line, &text(&begun["run"]), |run| !run["ended_at_ms"].is_null()).await;
    assert_eq!(run["status"], "completed", "{run:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_being_killed_and_buys_nothing_twice() {
    let dir = tempfile::tempdir().expect("a folder");
    let (mut process, mut line) = start(dir.path());
    verified(&line).await;
    for killed_at in ["begun", "first step done", "ended"] {
        let inputs = json!({ "article": "Rain all day." });
        let quote = ask(&line, "key", &format!("/v1/workflows/{SLUG}/quote"), Some(&json!({ "inputs": inputs }))).await;
        let request = json!({ "inputs": inputs, "confirm": quote["confirm"] });
        let run = ask(&line, "key", &format!("/v1/workflows/{SLUG}/runs"), Some(&request)).await;
        let id = text(&run["id"]);
        match killed_at {
            "begun" => {}
            "first step done" => drop(until(&line, &id, |run| run["steps"][0]["status"] == "done").await),
            _ => drop(until(&line, &id, |run| !run["ended_at_ms"].is_null()).await),
        }
        process.kill();
        (process, line) = start(dir.path());
        let rests = |run: &Value| !["running", "waiting"].contains(&run["status"].as_str().unwrap_or_default());
        let mut run = until(&line, &id, rests).await;
        if run["status"] == "stopped" {
            // It died in the middle of a call, and nobody can say what the provider did.
            assert_eq!(run["stopped"], "charge_unknown", "{run:#}");
            let again = json!({ "resubmit": true });
            ask(&line, "key", &format!("/v1/workflows/runs/{id}/resume"), Some(&again)).await;
            run = until(&line, &id, |run| rests(run) && run["status"] != "stopped").await;
        }
        assert_eq!(run["status"], "completed", "{killed_at}: {run:#}");
        let mut sum = 0;
        for call in run["steps"].as_array().expect("steps").iter().flat_map(|step| step["calls"].as_array()).flatten() {
            let row = ask(&line, "key", &format!("/v1/usage/{}", text(call)), None).await;
            assert_eq!(row["run_id"], json!(id));
            sum += row["charge_nano_usd"].as_i64().expect("a charge");
        }
        assert_eq!(json!(sum), run["charged_nano_usd"], "{killed_at}: {run:#}");
        assert!(sum <= run["max_cost_nano_usd"].as_i64().expect("a sum"), "{run:#}");
        let charged = run["steps"].as_array().expect("steps").iter().filter(|step| step["status"] == "done").count();
        assert_eq!(charged, 2, "each step is done once");
    }
    process.kill();
}
