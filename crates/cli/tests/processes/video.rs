//! `tollgate video`: a customer makes a video, waits for it and has the file; a failed one is
//! reported as failed. And what an operator does around videos while the gateway runs: exchange the
//! secret of its links, name where an account is notified.

use crate::house::{House, Plan, text};
use crate::process::{Process, signal, tollgate};
use crate::tasks::{CATALOG, TASKS};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use std::time::Duration;

fn run(dir: &Path, line: &Value, arguments: &[&str]) -> Output {
    let url = text(&line["base_url"]);
    let all = [&["video"], arguments, &["--url", &url, "--json"]].concat();
    let mut command = tollgate(&all);
    command.current_dir(dir).env("TOLLGATE_API_KEY", text(&line["key"]));
    command.output().expect("it ran")
}

fn answer(output: &Output) -> Value {
    let shown = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_video_is_made_waited_for_and_fetched() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = tollgate(&["demo", "--listen", "127.0.0.1:0", "--json", "--data", "demo"]);
    command.current_dir(dir.path());
    let mut process = Process::start(command, &dir.path().join("demo.log"));
    let line = process.first_line();
    let fields = r#"{"size":"1920*1080","duration":3,"image":"https://media.example/640x640.png"}"#;
    let made = run(dir.path(), &line, &["create", "--model", "wan2.7-t2v", "A gate opens.", "--fields", fields]);
    let task = answer(&made);
    assert_eq!((&task["status"], &task["warnings"][0]["field"]), (&"queued".into(), &"image".into()), "{task}");
    let id = text(&task["id"]);
    let waited = run(dir.path(), &line, &["wait", &id, "--every", "1", "--out", "gate.mp4"]);
    assert!(waited.status.success(), "{}", String::from_utf8_lossy(&waited.stderr));
    assert_eq!(answer(&waited)["status"], "completed");
    let file = std::fs::read(dir.path().join("gate.mp4")).expect("the file");
    assert_eq!(&file[4..8], b"ftyp");
    let list = answer(&run(dir.path(), &line, &["list"]));
    assert_eq!((&list["data"][0]["id"], list["data"].as_array().map(Vec::len)), (&task["id"], Some(1)));
    assert_eq!(answer(&run(dir.path(), &line, &["show", &id]))["seconds"], "3");

    let fields = ["create", "--model", "kling-v3", "[[sim:moderation queue=0 run=0]]"];
    let failing = answer(&run(dir.path(), &line, &fields));
    let waited = run(dir.path(), &line, &["wait", &text(&failing["id"]), "--every", "1"]);
    assert_eq!((waited.status.code(), &answer(&waited)["status"]), (Some(1), &"failed".into()));
    for (arguments, says) in [
        (&["wait", "task_none", "--every", "1"][..], "task_not_found"),
        (&["show", "../etc"], "not the id"),
        (&["create", "--model", "wan2.7-t2v", "p", "--fields", "[]"], "JSON object"),
        (&["create", "--model", "no-such", "p"], "model_not_found"),
    ] {
        let refused = run(dir.path(), &line, arguments);
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && message.contains(says), "{arguments:?}: {message}");
    }
    process.terminate();
    assert_eq!(process.wait().await.code(), Some(0), "{}", process.last_words());
}

/// The finished task of a new video, as its owner sees it.
async fn made(house: &House) -> Value {
    let url = format!("{}/v1/videos", house.gates[0].url());
    let body = json!({ "model": "kling-v3", "prompt": "[[sim:ok queue=0 run=0]]" });
    let reply = house.http.post(&url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    let task: Value = reply.json().await.expect("JSON");
    for _ in 0..10_000 {
        let shown = house.http.get(format!("{url}/{}", text(&task["id"]))).bearer_auth(&house.key).send().await;
        let shown: Value = shown.expect("a reply").json().await.expect("JSON");
        if shown["status"] == "completed" {
            return shown;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{task} does not end");
}

async fn opens(house: &House, task: &Value) -> (u16, String) {
    let reply = house.http.get(text(&task["metadata"]["url"])).send().await.expect("a reply");
    let status = reply.status().as_u16();
    let body = reply.bytes().await.expect("a body");
    (status, if status == 200 { String::new() } else { String::from_utf8_lossy(&body).into_owned() })
}

/// Hangs up, and waits until the gateway has taken the files over, or has said why not.
async fn taken_over(house: &House, says: &str) {
    let process = house.gates[0].process.as_ref().expect("running");
    let before = process.logged().matches(says).count();
    signal("HUP", &[process.id()]);
    for _ in 0..10_000 {
        if process.logged().matches(says).count() > before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not taken over: {}", process.last_words());
}

const TAKEN: &str = "configuration taken over";

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_links_is_exchanged_without_a_restart() {
    let plan = Plan { top: TASKS, catalog: CATALOG, usd: "100", ..Plan::default() };
    let house = House::new(plan).await;
    let file = house.gates[0].config.with_file_name("data").join("secrets.key");
    let old = std::fs::read_to_string(&file).expect("the first start made one");
    let first = made(&house).await;
    assert_eq!(opens(&house, &first).await.0, 200);

    let new = "a-new-secret-that-is-long-enough-for-it";
    std::fs::write(&file, format!("{new}\n{old}")).expect("written");
    taken_over(&house, TAKEN).await;
    let second = made(&house).await;
    assert_eq!(opens(&house, &first).await.0, 200, "what the old one signed still opens");
    assert_eq!(opens(&house, &second).await.0, 200);
    let url = format!("{}/v1/webhooks/secret", house.gates[0].url());
    let shown: Value =
        house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply").json().await.expect("JSON");
    assert_eq!(shown["secrets"].as_array().map(Vec::len), Some(2), "webhooks are signed with both");

    std::fs::write(&file, "short").expect("written");
    taken_over(&house, "the configuration is wrong; the old one stays").await;
    assert_eq!(
        (opens(&house, &first).await.0, opens(&house, &second).await.0),
        (200, 200),
        "a broken file changes nothing"
    );

    std::fs::write(&file, new).expect("written");
    taken_over(&house, TAKEN).await;
    let (status, error) = opens(&house, &first).await;
    assert!(status == 403 && error.contains("link_invalid"), "the old one is gone: {status} {error}");
    assert_eq!(opens(&house, &second).await.0, 200, "the new one had signed this");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_names_where_an_account_is_notified() {
    let house = House::new(Plan::default()).await;
    let set = async |arguments: &[&str]| {
        let all = [&["account", "webhook", house.account.as_str()], arguments].concat();
        house.gates[0].run(&[&all[..], &["--json"]].concat()).await
    };
    let done = set(&["https://example.com/hook"]).await;
    assert_eq!(answer(&done)["webhook_url"], "https://example.com/hook");
    for (arguments, says) in [
        (&["https://127.0.0.1/hook"][..], "public address"),
        (&["https://localhost/hook"], "public address"),
        (&["http://example.com/hook"], "https://"),
        (&["https://user:word@example.com/hook"], "no user or password"),
        (&[], "required"),
        (&["https://example.com/hook", "--none"], "cannot be used"),
    ] {
        let refused = set(arguments).await;
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && message.contains(says), "{arguments:?}: {message}");
    }
    let shown = house.cli(&["account", "show", &house.account]).await;
    assert_eq!(shown["account"]["webhook_url"], "https://example.com/hook", "a refusal changes nothing");
    assert_eq!(answer(&set(&["--none"]).await)["webhook_url"], Value::Null);
}
