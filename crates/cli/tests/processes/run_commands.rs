//! `tollgate workflow quote|run|wait|resume|cancel|runs`: a customer runs a workflow with a file of
//! his, and nothing is begun that he has not confirmed.

use crate::house::text;
use crate::process::{Process, tollgate};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn run(dir: &Path, line: &Value, arguments: &[&str]) -> Output {
    let mut command = tollgate(&[&["workflow"], arguments, &["--url", &text(&line["base_url"])]].concat());
    command.current_dir(dir).env("TOLLGATE_API_KEY", text(&line["key"])).output().expect("it ran")
}

fn answer(output: &Output) -> Value {
    let shown = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const SLUG: &str = "meeting-to-minutes";
const MEETING: &[u8] = include_bytes!("../../../../catalog/workflows/meeting-to-minutes/recording.wav");

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_runs_a_workflow_from_the_command_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = tollgate(&["demo", "--listen", "127.0.0.1:0", "--json", "--data", "demo"]);
    // The demo verifies its workflows, so they can be run at once.
    command.current_dir(dir.path()).env_remove("TOLLGATE_DEMO_DRAFTS");
    let mut process = Process::start(command, &dir.path().join("demo.log"));
    let line = process.first_line();
    let run = |arguments: &[&str]| run(dir.path(), &line, arguments);
    std::fs::write(dir.path().join("meeting.wav"), MEETING).expect("written");
    let inputs = [SLUG, "--file", "recording=meeting.wav", "--input", "style=detailed"];
    let with = |verb: &'static str, more: &[&'static str]| run(&[&[verb], &inputs[..], more].concat());

    let quoted = with("quote", &[]);
    assert!(quoted.status.success() && words(&quoted).contains("Privacy:"), "{}", words(&quoted));
    let quote = answer(&with("quote", &["--json"]));
    assert_eq!((&quote["slug"], &quote["executable"]), (&SLUG.into(), &true.into()), "{quote}");

    // Nobody sits there who could be asked.
    let unconfirmed = with("run", &[]);
    let said = words(&unconfirmed);
    assert!(unconfirmed.status.code() == Some(1) && said.contains("at most") && said.contains("--yes"), "{said}");
    let dear = with("run", &["--yes", "--max-cost", "0.000001"]);
    assert!(dear.status.code() == Some(1) && words(&dear).contains("--max-cost"), "{}", words(&dear));
    assert_eq!(answer(&run(&["runs", "--json"]))["data"], Value::Array(Vec::new()), "nothing was begun");

    let done = with("run", &["--yes", "--json", "--every", "1", "--idempotency-key", "mine"]);
    let shown = answer(&done);
    assert_eq!((done.status.code(), &shown["status"]), (Some(0), &"completed".into()), "{}", words(&done));
    let progress = String::from_utf8_lossy(&done.stderr);
    assert!(progress.contains("completed, ") && progress.contains("minutes done"), "{progress}");
    let id = text(&shown["id"]);
    assert_eq!(answer(&run(&["wait", &id, "--json"]))["id"], shown["id"]);
    assert_eq!(answer(&run(&["cancel", &id, "--json"]))["status"], "completed", "what has ended stays so");

    // A narration is a file, and is fetched.
    let article = "Rain all day.";
    std::fs::write(dir.path().join("article.txt"), article).expect("written");
    let narrated =
        ["run", "article-to-narration", "-i", "article=@article.txt", "--yes", "--every", "1", "--out", "here"];
    let narrated = run(&narrated);
    assert!(narrated.status.success(), "{}", words(&narrated));
    assert!(std::fs::metadata(dir.path().join("here/narration-audio.mp3")).expect("a file").len() > 0);
    assert_eq!(answer(&run(&["runs", "--json"]))["data"].as_array().map(Vec::len), Some(2));

    for (arguments, says) in [
        (&["quote", "no-such"][..], "not_found"),
        (&["quote", "../x"], "not the name"),
        (&["quote", SLUG, "-i", "recordin=x"], "did you mean"),
        (&["quote", SLUG, "-i", "recording"], "write it as"),
        (&["quote", SLUG, "-f", "style=meeting.wav"], "asset"),
        (&["quote", SLUG, "-f", "recording=none.wav"], "none.wav"),
        (&["quote", SLUG], "inputs.recording"),
        (&["wait", "run_none"], "not_found"),
        (&["wait", "a/b"], "not the id"),
        (&["resume", &id], "conflict"),
        (&["resume", &id, "--max-cost=-1"], "max-cost"),
        (&["runs", "--after", "a b"], "not the id"),
    ] {
        let refused = run(arguments);
        assert!(!refused.status.success() && words(&refused).contains(says), "{arguments:?}: {}", words(&refused));
    }
    process.kill();
}
