//! `tollgate quote`: the price of a request in a file, without a server, a database or a provider's
//! secret.

use crate::process::tollgate;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

const CONFIG: &str =
    "[provider.sim]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nsecret_env = \"NOT_SET\"\n";
const CATALOG: &str = r#"
[group.partner]
multiplier = "0.8"
[model."m"]
max_output_tokens = 1000
enable_groups = ["default", "partner"]
price = { input = 1_000_000, output = 2_000_000 }
paid = { input = 500_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "x" }]
[[model."m".tier]]
name = "night"
when = [{ dim = "wall_clock", timezone = "Asia/Tokyo", hours = [0, 1, 2] }]
multiplier = "1/2"
"#;

fn run(dir: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["quote", "ask.json", "--endpoint", "/v1/chat/completions"];
    if !more.contains(&"--at") {
        arguments.extend(["--at", "1770627600000"]);
    }
    arguments.extend(more);
    tollgate(&arguments).current_dir(dir).output().expect("it ran")
}

fn folder(ask: &Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), CONFIG).expect("written");
    std::fs::write(dir.path().join("catalog/models.toml"), CATALOG).expect("written");
    std::fs::write(dir.path().join("ask.json"), ask.to_string()).expect("written");
    dir
}

fn ask() -> Value {
    json!({ "model": "m", "max_tokens": 200, "messages": [{ "role": "user", "content": "hello" }] })
}

#[test]
fn a_file_is_quoted_from_the_catalog_alone() {
    let dir = folder(&ask());
    let quoted = |more: &[&str]| -> Value {
        let mut arguments = vec!["--json"];
        arguments.extend(more);
        let output = run(dir.path(), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let bound = quoted(&[]);
    assert_eq!((&bound["kind"], &bound["lines"][1]["quantity"]), (&json!("upper_bound"), &json!(200)));
    assert_eq!(bound["total_nano_usd"], bound["hold_nano_usd"]);
    let exact = quoted(&["--use", "input=10", "--use", "output=5"]);
    assert_eq!(
        (&exact["kind"], &exact["total_nano_usd"], &exact["tier"]),
        (&json!("exact"), &json!(20_000), &Value::Null)
    );
    assert_eq!(quoted(&["--use", "input=10", "--use", "output=5", "--group", "partner"])["total_nano_usd"], 16_000);
    assert_eq!(quoted(&["--use", "input=10", "--use", "output=5", "--paid"])["total_nano_usd"], 10_000);
    // 2026-02-09 01:00 in Tokyo.
    let night = quoted(&["--use", "input=10", "--use", "output=5", "--at", "1770566400000"]);
    assert_eq!((&night["total_nano_usd"], &night["tier"]["name"]), (&json!(10_000), &json!("night")));
    assert_eq!(night["tier"]["why"][0]["fact"], "Mon 2026-02-09 01:00:00 +09:00");
    assert!(!dir.path().join("data").exists(), "nothing is left behind");
    let people = String::from_utf8(run(dir.path(), &[]).stdout).expect("text");
    assert!(people.starts_with("m, at most\n") && people.contains("200 at 2 USD per million tokens"), "{people}");
}

#[test]
fn what_cannot_be_quoted_says_why() {
    let dir = folder(&ask());
    let refused = |arguments: &[&str], expected: &str| {
        let output = tollgate(arguments).current_dir(dir.path()).output().expect("it ran");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(expected), "{arguments:?}: {text}");
    };
    let chat = "/v1/chat/completions";
    refused(&["quote", "ask.json", "--endpoint", "/v1/nothing"], "/v1/chat/completions");
    refused(&["quote", "missing.json", "--endpoint", chat], "missing.json");
    refused(&["quote", "ask.json", "--endpoint", chat, "--group", "partnr"], "there are: default, partner");
    refused(&["quote", "ask.json", "--endpoint", chat, "--use", "tokens=5"], "no counter `tokens`");
    refused(&["quote", "ask.json", "--endpoint", chat, "--use", "output=many"], "whole number");
    let other = folder(&json!({ "model": "none", "messages": [{ "role": "user", "content": "x" }] }));
    let output = run(other.path(), &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no model `none`"));
    let broken = folder(&json!({ "model": "m" }));
    assert!(String::from_utf8_lossy(&run(broken.path(), &[]).stderr).contains("`messages` is required"));
}
