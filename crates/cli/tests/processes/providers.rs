//! `tollgate provider list --all|show|add|test`: from a name to a provider that answers, without
//! anybody typing an address or seeing a key.

use crate::process::tollgate;
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;
use tollgate_sim::{Sim, SimSettings};

const KEY: &str = "provider-canary-77ab31";

fn run(dir: &Path, words: &[&str]) -> Output {
    tollgate(words).current_dir(dir).env("EXAMPLE_KEY", KEY).output().expect("it ran")
}

fn said(output: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("canary"), "a key was printed: {text}");
    text
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn the_table_can_be_read_before_there_is_a_configuration() {
    let dir = tempfile::tempdir().expect("a folder");
    let all = json(&run(dir.path(), &["provider", "list", "--all", "--json"]));
    assert!(all.as_array().is_some_and(|rows| rows.len() >= 90), "{all}");
    for (word, least) in [("chat", 70), ("rerank", 5), ("audio-speech", 8), ("embeddings", 25)] {
        let rows = json(&run(dir.path(), &["provider", "list", "--all", "--endpoint", word, "--json"]));
        let rows = rows.as_array().expect("a list");
        assert!(rows.len() >= least, "{word}: {}", rows.len());
        let name = if word == "audio-speech" { "speech" } else { word };
        assert!(rows.iter().all(|row| row["endpoints"].as_array().is_some_and(|list| list.contains(&name.into()))));
    }
    // Without a word, in a folder where nothing is configured yet.
    let bare = run(dir.path(), &["provider", "list"]);
    let words = said(&bare);
    assert!(bare.status.success() && words.contains("--all") && words.contains("MISTRAL_API_KEY"), "{words}");
    assert_eq!(json(&run(dir.path(), &["provider", "list", "--json"])), all);
    let shown = said(&run(dir.path(), &["provider", "show", "mistral"]));
    for part in ["https://api.mistral.ai/v1", "MISTRAL_API_KEY", "tool_choice required as any", "provider add mistral"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let wrong = run(dir.path(), &["provider", "show", "mistrel"]);
    assert!(!wrong.status.success() && said(&wrong).contains("did you mean \"mistral\"?"));
    let wrong = run(dir.path(), &["provider", "list", "--all", "--endpoint", "smells"]);
    assert!(!wrong.status.success() && said(&wrong).contains("is not one of chat"));
}

#[test]
fn a_provider_is_added_and_the_rest_of_the_file_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("tollgate.toml");
    let before = "# mine\nlisten = \"127.0.0.1:0\"   # any port\n\n[provider.zeta]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"";
    std::fs::write(&file, before).expect("written");
    let added = run(dir.path(), &["provider", "add", "deepseek", "--key-env", "EXAMPLE_KEY"]);
    assert!(added.status.success(), "{}", said(&added));
    let after = std::fs::read_to_string(&file).expect("a file");
    let table = "\n\n[provider.deepseek]\npreset = \"deepseek\"\nsecret_env = \"EXAMPLE_KEY\"\n";
    assert_eq!(after, format!("{before}{table}"));
    let twice = run(dir.path(), &["provider", "add", "deepseek"]);
    assert!(!twice.status.success() && said(&twice).contains("already"), "{}", said(&twice));
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), after);

    let second = run(dir.path(), &["provider", "add", "deepseek", "--name", "deepseek-2", "--key-env", "EXAMPLE_KEY"]);
    assert!(second.status.success(), "{}", said(&second));
    let needed = run(dir.path(), &["provider", "add", "cloudflare", "--key-env", "EXAMPLE_KEY"]);
    assert!(!needed.status.success() && said(&needed).contains("--set account="), "{}", said(&needed));
    let given = ["provider", "add", "cloudflare", "--key-env", "EXAMPLE_KEY", "--set", "account=0a1b"];
    assert!(run(dir.path(), &given).status.success());
    for bad in [["--set", "account=a/b"], ["--set", "regoin=x"], ["--key-env", "sk-canary-not-a-name"]] {
        let name = ["provider", "add", "cloudflare", "--name", "other"];
        let refused = run(dir.path(), &[&name[..], &bad[..]].concat());
        assert!(!refused.status.success(), "{bad:?}");
        said(&refused);
    }
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    let checked = run(dir.path(), &["check", "--json"]);
    assert_eq!(json(&checked)["providers"], 4, "{}", said(&checked));
    let all = json(&run(dir.path(), &["provider", "list", "--all", "--json"]));
    let row = all.as_array().into_iter().flatten().find(|row| row["id"] == "deepseek").expect("a row");
    assert_eq!(row["configured"], serde_json::json!(["deepseek", "deepseek-2"]));
}

const CATALOG: &str = r#"
[model."dear"]
price = { input = 9_000_000, output = 9_000_000 }
route = [{ provider = "own", upstream_model = "sim-dear" }]

[model."word"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "own", upstream_model = "sim-plain" }]

[model."vector"]
supported_endpoint_types = ["embeddings"]
price = { input = 1_000_000, output = 0 }
route = [{ provider = "own", upstream_model = "sim-plain" }]

[model."picture"]
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 10_000 }
route = [{ provider = "own", upstream_model = "sim-image" }]
"#;

async fn house(key: Option<&str>) -> (Sim, TempDir) {
    let sim = Sim::start(SimSettings { require_key: key.map(str::to_owned), ..SimSettings::default() }).await;
    let sim = sim.expect("a simulator");
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("catalog/models.toml"), CATALOG).expect("written");
    let host = format!("host={}", sim.addr());
    let words = ["provider", "add", "vllm", "--name", "own", "--key-env", "EXAMPLE_KEY", "--set", &host];
    let added = run(dir.path(), &words);
    assert!(added.status.success(), "{}", said(&added));
    (sim, dir)
}

fn tested(dir: &TempDir, more: &[&str]) -> (bool, Vec<Value>) {
    let output = run(dir.path(), &[&["provider", "test", "own", "--json"], more].concat());
    said(&output);
    (output.status.success(), json(&output).as_array().cloned().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_tried_with_one_cheap_call_of_each_sort() {
    let (sim, dir) = house(Some(KEY)).await;
    let (good, plan) = tested(&dir, &["--plan"]);
    assert!(good && plan.iter().all(|row| row["outcome"] == "planned" || row["endpoint"] == "images"), "{plan:?}");
    assert!(sim.received().is_empty(), "a plan sends nothing");

    let (good, rows) = tested(&dir, &[]);
    let outcomes: Vec<_> = rows.iter().map(|row| (row["endpoint"].as_str(), row["outcome"].as_str())).collect();
    let expected = [("models", "answered"), ("chat", "answered"), ("images", "skipped"), ("embeddings", "answered")];
    assert_eq!(outcomes, expected.map(|(endpoint, outcome)| (Some(endpoint), Some(outcome))), "{rows:?}");
    assert!(good);
    assert_eq!(rows[1]["model"], "sim-plain", "the cheapest");
    assert!(rows[1]["most_usd"].as_str().is_some_and(|usd| usd.starts_with("0.0000")), "{rows:?}");
    let sent: Vec<String> = sim.received().iter().map(|one| format!("{} {}", one.method, one.path)).collect();
    assert_eq!(sent, ["POST /v1/chat/completions", "POST /v1/embeddings"]);
    assert_eq!(sim.received()[0].json()["max_completion_tokens"], 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_failure_is_said() {
    let (sim, dir) = house(Some("another")).await;
    let (good, rows) = tested(&dir, &["--endpoint", "chat"]);
    assert!(!good && rows[0]["said"].as_str().is_some_and(|said| said.starts_with("wrong key")), "{rows:?}");
    drop(sim);
    let (sim, dir) = house(None).await;
    for (model, reason) in [
        ("sim-error402", "no credit"),
        ("sim-error404", "unknown model"),
        ("sim-error401", "wrong key"),
        ("sim-error500", "the provider failed"),
        ("sim-garbage", "wrong address"),
        ("sim-redirect", "wrong address"),
    ] {
        let (good, rows) = tested(&dir, &["--model", model, "--endpoint", "chat"]);
        assert!(!good && rows[0]["said"].as_str().is_some_and(|said| said.starts_with(reason)), "{model}: {rows:?}");
    }
    let unknown = run(dir.path(), &["provider", "test", "nobody"]);
    assert!(!unknown.status.success() && said(&unknown).contains("no provider of the configuration"));
    sim.stop().await;
    let (good, rows) = tested(&dir, &["--endpoint", "chat"]);
    assert!(!good && rows[0]["said"].as_str().is_some_and(|said| said.contains("nobody answers")), "{rows:?}");
}

const MEDIA: &str = r#"
[model."picture"]
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true, sizes = ["1024x1024", "512x512"], one_price = ["size"] }
route = [{ provider = "own", upstream_model = "sim-image-new" }]

[model."dear-picture"]
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 90_000 }
image = { base64_only = true }
route = [{ provider = "own", upstream_model = "sim-image-new" }]

[model."ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 360_000_000 }
route = [{ provider = "own", upstream_model = "gpt-4o-sim" }]

[model."voice"]
type = "tts"
supported_endpoint_types = ["audio-speech"]
billing_unit = "characters"
price = { input = 15_000_000 }
speech = { formats = ["mp3"], max_characters = 100 }
route = [{ provider = "own", upstream_model = "x" }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_costs_more_than_a_word_is_said_first_and_made_only_with_a_yes() {
    let (sim, dir) = house(None).await;
    std::fs::write(dir.path().join("catalog/models.toml"), MEDIA).expect("written");
    let (good, plan) = tested(&dir, &["--media"]);
    let shown = |rows: &[Value]| -> Vec<(String, String, String)> {
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        rows.iter().map(|row| (text(row, "endpoint"), text(row, "most_usd"), text(row, "outcome"))).collect()
    };
    let expected = |outcome: &str| {
        [("transcription", "0.006"), ("speech", "0.000045"), ("images", "0.04")]
            .map(|(endpoint, usd)| (endpoint.to_owned(), usd.to_owned(), outcome.to_owned()))
    };
    assert_eq!(shown(&plan), expected("planned"), "{plan:?}");
    assert!(good && sim.received().is_empty(), "nothing is sent without a yes");
    let words = said(&run(dir.path(), &["provider", "test", "own", "--media"]));
    assert!(words.contains("--yes makes one of each"), "{words}");

    let (good, rows) = tested(&dir, &["--media", "--yes"]);
    assert_eq!(shown(&rows), expected("answered"), "{rows:?}");
    assert!(good);
    assert!(rows.iter().all(|row| row["said"].as_str().is_some_and(|said| said.contains("would have paid 0.0"))));
    let mut paths: Vec<String> = sim.received().iter().map(|one| one.path.clone()).collect();
    paths.sort();
    assert_eq!(paths, ["/v1/audio/speech", "/v1/audio/transcriptions", "/v1/images/generations"]);
    assert!(!dir.path().join("data").exists(), "the ledger in use knows nothing of it");
    let (_, one) = tested(&dir, &["--media", "--endpoint", "speech"]);
    assert_eq!(one.len(), 1);
    let refused = run(dir.path(), &["provider", "test", "own", "--yes"]);
    assert!(!refused.status.success(), "a yes to what?");
}

const SONGS_AND_VIDEOS: &str = r#"
[model."song"]
type = "music"
billing_unit = "per_call"
supported_endpoint_types = ["music-generation"]
price = { per_call = 30_000 }
music = { formats = ["mp3"], max_prompt = 2_000, max_lyrics = 3_500, instrumental = true }
route = [{ provider = "own", upstream_model = "music-2.0" }]

[model."clip"]
type = "video"
input_modalities = ["text", "image"]
output_modalities = ["video"]
resolutions = ["768P"]
max_duration_seconds = 10
supported_endpoint_types = ["openai-video"]
billing_unit = "per_call"
video = { variant = "d-legacy-02", sold = { resolution = ["768P"] } }
price = { per_call = 278_000 }
route = [{ provider = "own", upstream_model = "MiniMax-Hailuo-02" }]
"#;

/// A song and a video, which is a task that is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_song_and_a_video_are_made_for_a_test() {
    let sim = Sim::start(SimSettings::default()).await.expect("a simulator");
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("catalog/models.toml"), SONGS_AND_VIDEOS).expect("written");
    let table = format!(
        "[provider.own]\nkind = \"minimax\"\npoll_every = \"50ms\"\nbase_url = \"http://{}/video/minimax\"\n\
         secret_env = \"EXAMPLE_KEY\"\n",
        sim.addr()
    );
    std::fs::write(dir.path().join("tollgate.toml"), table).expect("written");
    let shown = |rows: &[Value]| -> Vec<(String, String, String)> {
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        rows.iter().map(|row| (text(row, "endpoint"), text(row, "most_usd"), text(row, "outcome"))).collect()
    };
    let expected = |outcome: &str| {
        [("music", "0.03"), ("video", "0.278")]
            .map(|(endpoint, usd)| (endpoint.to_owned(), usd.to_owned(), outcome.to_owned()))
    };
    let (good, plan) = tested(&dir, &["--media"]);
    assert_eq!(shown(&plan), expected("planned"), "{plan:?}");
    assert!(good && sim.received().is_empty(), "nothing is sent without a yes");
    let (good, rows) = tested(&dir, &["--media", "--yes"]);
    assert_eq!(shown(&rows), expected("answered"), "{rows:?}");
    assert!(good && sim.videos() == 1, "{rows:?}");
    let paid =
        |row: &Value, usd: &str| row["said"].as_str().is_some_and(|said| said.contains(&format!("paid {usd} USD")));
    assert!(paid(&rows[0], "0.03") && paid(&rows[1], "0.278"), "{rows:?}");
}
