//! A newcomer with a server of his own that speaks OpenAI's format: three commands to the first
//! model that is sold. docs/first-model.md has the same commands.

use crate::house::text;
use crate::process::{HANG, Process, free_port, tollgate};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tollgate_sim::{Sim, SimSettings};

const PAGE: &str = include_str!("../../../../docs/first-model.md");

fn run(dir: &Path, line: &str) -> Value {
    let words: Vec<&str> = line.split_whitespace().skip(1).chain(["--json"]).collect();
    let output = tollgate(&words).current_dir(dir).output().expect("it ran");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {errors}"))
}

/// The commands of the page, as they stand there.
fn commands() -> Vec<&'static str> {
    let shell = PAGE.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of commands");
    shell
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_model_is_sold_in_three_commands() {
    let sim = Sim::start(SimSettings::default()).await.expect("a server that speaks OpenAI's format");
    let dir = tempfile::tempdir().expect("a folder");
    let listen = format!("127.0.0.1:{}", free_port());
    let commands = commands();
    assert_eq!(commands.len(), 3, "{commands:?}");
    let here = |line: &str| line.replace("http://127.0.0.1:8000/v1", &sim.base_url()).replace("my-model", "sim-plain");

    // One: a configuration with the server, and a price.
    let made = run(dir.path(), &here(commands[0]));
    assert_eq!(made["models"], 1, "{made}");
    assert_eq!(run(dir.path(), "tollgate check")["ok"], true);
    // Two: a customer with money, and a key.
    let account = run(dir.path(), &here(commands[1]));
    assert!(text(&account["account_id"]).starts_with("acct_"), "{account}");
    // Three: open for business.
    let words: Vec<String> = here(commands[2]).split_whitespace().skip(1).map(str::to_owned).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = tollgate(&words);
    // Not the usual port: others run here too.
    command.current_dir(dir.path()).env("TOLLGATE__LISTEN", &listen);
    let gateway = Process::start(command, &dir.path().join("log"));

    let http = reqwest::Client::new();
    let until = Instant::now() + HANG;
    while http.get(format!("http://{listen}/healthz")).send().await.is_err() {
        assert!(Instant::now() < until, "{}", gateway.last_words());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // What a customer does with it; the key is shown once.
    let key = run(dir.path(), &format!("tollgate key create {}", text(&account["account_id"])));
    let question = json!({"model": "sim-plain", "messages": [{"role": "user", "content": "Hello! [[sim:tokens=4]]"}]});
    let asked = http.post(format!("http://{listen}/v1/chat/completions")).bearer_auth(text(&key["secret"]));
    let reply = asked.json(&question).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    // 0.50 and 1.50 USD per million tokens.
    let charged = reply.headers()["x-tollgate-charge-usd"].to_str().expect("text").to_owned();
    let reply: Value = reply.json().await.expect("JSON");
    let tokens = |name: &str| reply["usage"][name].as_f64().expect("a number");
    let price = (tokens("prompt_tokens") * 500.0 + tokens("completion_tokens") * 1_500.0) / 1e9;
    assert_eq!(charged.parse::<f64>().ok(), Some(price), "{reply}");
    gateway.terminate();
}
