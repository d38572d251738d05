//! `tollgate demo`: one line says all that is needed, the key works at once, and SIGTERM leaves nothing behind.

use crate::house::{chat, text};
use crate::process::{Process, children, tollgate};
use serde_json::Value;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

fn start(dir: &Path, arguments: &[&str]) -> (Process, Value) {
    let mut command = tollgate(&[&["demo", "--listen", "127.0.0.1:0", "--json"], arguments].concat());
    command.current_dir(dir).env("TMPDIR", dir.join("tmp"));
    let mut process = Process::start(command, &dir.join("demo.log"));
    let line = process.first_line();
    (process, line)
}

async fn ask(line: &Value) -> reqwest::Response {
    let url = format!("{}/v1/chat/completions", text(&line["base_url"]));
    let body = chat("tollgate-demo", "Hello!");
    let request = reqwest::Client::new().post(url).bearer_auth(text(&line["key"])).json(&body);
    request.send().await.expect("a reply")
}

async fn balance(line: &Value) -> i64 {
    let url = format!("{}/v1/balance", text(&line["base_url"]));
    let reply = reqwest::Client::new().get(url).bearer_auth(text(&line["key"])).send().await.expect("a reply");
    let balance: Value = reply.json().await.expect("JSON");
    balance["available_nano_usd"].as_i64().expect("an amount")
}

async fn stop(mut process: Process, line: &Value) {
    assert!(children(process.id()).is_empty(), "all in one process");
    process.terminate();
    let status = process.wait(Duration::from_secs(10)).await;
    assert_eq!(status.code(), Some(0), "{}", process.last_words());
    for name in ["base_url", "sim_url"] {
        let address = text(&line[name]).replace("http://", "").replace("/v1", "");
        let address: SocketAddr = address.parse().expect("an address");
        assert!(TcpStream::connect(address).is_err(), "{name} still answers");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_serves_at_once_and_leaves_nothing_running() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let (process, line) = start(dir.path(), &["--data", "demo"]);
    let names: Vec<&str> = line.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(names, ["admin_key", "base_url", "dash_url", "key", "sim_url"]);
    let reply = ask(&line).await;
    assert_eq!(reply.status(), 200);
    assert!(reply.headers().contains_key("x-tollgate-charge-usd"));
    let left = balance(&line).await;
    assert!((99_000_000_000..100_000_000_000).contains(&left), "{left}");
    stop(process, &line).await;

    // The same folder again: the books are as they were, not funded a second time; the key is a new one.
    let (process, again) = start(dir.path(), &["--data", "demo"]);
    assert_ne!(again["key"], line["key"]);
    assert_eq!(balance(&again).await, left);
    assert_eq!(ask(&again).await.status(), 200);
    stop(process, &again).await;
    assert!(dir.path().join("demo/tollgate.db").exists(), "a folder that was named is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_without_a_folder_takes_its_data_away_again() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tmp")).expect("a folder");
    let (process, line) = start(dir.path(), &[]);
    let count = || std::fs::read_dir(dir.path().join("tmp")).expect("a folder").count();
    assert_eq!(count(), 1);
    assert_eq!(ask(&line).await.status(), 200);
    stop(process, &line).await;
    assert_eq!(count(), 0, "the temporary folder is gone");
}
