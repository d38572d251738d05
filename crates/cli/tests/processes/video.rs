//! `tollgate video`: a customer makes a video, waits for it and has the file; a failed one is told as failed.

use crate::house::text;
use crate::process::{Process, tollgate};
use serde_json::Value;
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
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && told.contains(says), "{arguments:?}: {told}");
    }
    process.terminate();
    assert_eq!(process.wait(Duration::from_secs(10)).await.code(), Some(0), "{}", process.last_words());
}
