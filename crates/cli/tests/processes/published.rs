//! `tollgate catalog …` where the catalog lives in the database: commands change what is on sale
//! and leave the folder alone, with a server and without one.

use crate::postgres::Server;
use crate::process::{HANG, Process, tollgate};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PRICES: &str = r#"{"acme/m": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 8000, "max_output_tokens": 1000, "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}"#;

fn house(database: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let config = format!(
        "listen = \"127.0.0.1:0\"\ndatabase = \"{database}\"\ncatalog_source = \"database\"\n\
         [provider.openai]\npreset = \"openai\"\nsecret_file = \"key\"\n"
    );
    std::fs::write(dir.path().join("tollgate.toml"), config).expect("written");
    std::fs::write(dir.path().join("key"), "secret\n").expect("written");
    std::fs::write(dir.path().join("prices.json"), PRICES).expect("written");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    dir
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    tollgate(arguments).current_dir(dir).output().expect("it ran")
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn report(dir: &Path, arguments: &[&str]) -> Value {
    let output = run(dir, &[arguments, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", shown(&output)))
}

fn served(dir: &Path) -> Process {
    let mut serve = tollgate(&["serve"]);
    serve.current_dir(dir);
    let gate = Process::start(serve, &dir.join("log"));
    let until = Instant::now() + HANG;
    while !gate.logged().contains("\"serving\"") {
        assert!(Instant::now() < until, "{}", gate.last_words());
        std::thread::sleep(Duration::from_millis(10));
    }
    gate
}

/// Names and texts of the folder.
fn folder(dir: &Path) -> Vec<(String, String)> {
    let files = std::fs::read_dir(dir.join("catalog")).expect("a folder").flatten();
    let one = |file: std::fs::DirEntry| {
        (file.file_name().to_string_lossy().into_owned(), std::fs::read_to_string(file.path()).expect("a text"))
    };
    let mut all: Vec<_> = files.map(one).collect();
    all.sort();
    all
}

fn sold(dir: &Path) -> Vec<String> {
    let record = report(dir, &["catalog", "show"]);
    let name = |one: &Value| one["model_name"].as_str().expect("a name").to_owned();
    record["data"].as_array().expect("models").iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_sale_is_changed_and_not_a_folder_that_nobody_reads() {
    let server = Server::find();
    for database in ["sqlite", &server.database("published").await] {
        changed_and_left_alone(database).await;
    }
}

async fn changed_and_left_alone(database: &str) {
    let house = house(database);
    let dir = house.path();
    // Nothing was published yet: the folder is going to be the first version.
    let first = report(dir, &["catalog", "enable", "openai", "--model", "gpt-4.1", "--margin", "10%"]);
    assert_eq!((&first["done"], &first["version"]), (&json!(true), &Value::Null), "{first}");
    let before = folder(dir);
    assert_eq!(
        before.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["import.lock.toml", "openai.toml", "vendors.toml"]
    );

    let mut gate = served(dir);
    let more = ["catalog", "enable", "openai", "--model", "gpt-4.1-mini", "--margin", "10%", "--reason", "asked for"];
    let dry = report(dir, &[&more[..], &["--dry-run"]].concat());
    assert_eq!((&dry["done"], &dry["steps"][0]["model"]), (&json!(false), &json!("gpt-4.1-mini")), "{dry}");
    assert_eq!(sold(dir), ["gpt-4.1"]);
    let done = report(dir, &more);
    assert_eq!((&done["done"], &done["version"]), (&json!(true), &json!(2)), "{done}");
    assert_eq!(sold(dir), ["gpt-4.1", "gpt-4.1-mini"]);
    assert_eq!(folder(dir), before, "nobody reads it any more, so nobody writes it");
    let log = report(dir, &["log", "--limit", "1"]);
    assert_eq!((&log[0]["action"], &log[0]["reason"]), (&json!("catalog.publish"), &json!("asked for")), "{log}");
    let diff = run(dir, &["catalog", "diff", "catalog", "published"]);
    assert!(diff.status.code() == Some(1) && shown(&diff).contains("gpt-4.1-mini"), "{}", shown(&diff));
    let again = report(dir, &more);
    assert_eq!((again["steps"].as_array().map(Vec::len), &again["version"]), (Some(0), &Value::Null), "{again}");

    let import = |out: &str| {
        let form = ["--from", "litellm", "prices.json", "--provider", "acme", "--route", "openai"];
        report(dir, &[&["catalog", "import"], &form[..], &["--out", out, "--apply"]].concat())
    };
    assert_eq!(import("catalog/acme.toml")["version"], 3);
    assert_eq!(sold(dir), ["gpt-4.1", "gpt-4.1-mini", "m"]);
    assert_eq!(folder(dir), before);
    // A file somewhere else is a file somewhere else.
    std::fs::create_dir(dir.join("elsewhere")).expect("a folder");
    assert_eq!(import("elsewhere/acme.toml")["version"], Value::Null);
    assert!(dir.join("elsewhere/acme.toml").exists());
    // A route that leads nowhere cannot be served, so it is not published.
    let nowhere =
        ["--from", "litellm", "prices.json", "--provider", "acme", "--out", "other.toml", "--prefix", "x/", "--apply"];
    let refused = run(dir, &[&["catalog", "import"], &nowhere[..]].concat());
    assert!(
        refused.status.code() == Some(2) && shown(&refused).contains("nothing was published"),
        "{}",
        shown(&refused)
    );
    let quoted = run(dir, &["catalog", "show", "m"]);
    assert!(quoted.status.success(), "{}", shown(&quoted));

    // The same without a server: the commands open the database themselves.
    gate.terminate();
    gate.wait().await;
    let off = report(dir, &["catalog", "disable", "openai", "--model", "gpt-4.1-mini"]);
    assert_eq!((&off["done"], &off["version"]), (&json!(true), &json!(4)), "{off}");
    assert_eq!(sold(dir), ["gpt-4.1", "m"]);
    let tidied = report(dir, &["catalog", "tidy"]);
    assert_eq!(tidied, json!({ "data": [], "done": true }));
    let update = report(dir, &["catalog", "update", "openai"]);
    assert_eq!(update["stops"], json!([]), "{update}");
    assert_eq!(folder(dir), before);
}

/// `tollgate check` reads what is served, says which catalog that is, and leaves nothing behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_of_what_is_on_sale() {
    let server = Server::find();
    for database in ["sqlite", &server.database("checked").await] {
        let house = house(database);
        let dir = house.path();
        let broken = dir.join("catalog/broken.toml");
        // Before anything is published the folder is what a start would put on sale.
        std::fs::write(&broken, "[model.\"m\"]\nprice = 7\n").expect("written");
        let bad = report(dir, &["check"]);
        assert_eq!(bad["ok"], false, "{bad}");
        assert!(bad["mistakes"][0]["file"].as_str().is_some_and(|file| file.ends_with("broken.toml")), "{bad}");
        std::fs::remove_file(&broken).expect("removed");
        let good = report(dir, &["check"]);
        assert_eq!((&good["ok"], &good["catalog"]), (&json!(true), &json!({ "source": "file", "version": null })));
        assert!(shown(&run(dir, &["check"])).contains("nothing is published yet"));
        assert!(!dir.join("data").exists(), "a check leaves nothing behind");

        let enable = ["catalog", "enable", "openai", "--model", "gpt-4.1", "--margin", "10%"];
        assert_eq!(report(dir, &enable)["done"], true);
        let mut gate = served(dir);
        std::fs::write(&broken, "[model.\"m\"]\nprice = 7\n").expect("written");
        let on_sale = json!({ "source": "database", "version": 1 });
        let checked = report(dir, &["check"]);
        let found = (&checked["ok"], &checked["models"], &checked["catalog"]);
        assert_eq!(found, (&json!(true), &json!(1), &on_sale), "nobody reads the folder: {checked}");
        assert!(shown(&run(dir, &["check"])).contains("checked version 1 of the catalog"));
        gate.terminate();
        gate.wait().await;
        assert_eq!(report(dir, &["check"])["catalog"], on_sale, "without a server too");

        // What is on sale needs a provider that the configuration does not have any more.
        let config = std::fs::read_to_string(dir.join("tollgate.toml")).expect("a text");
        std::fs::write(dir.join("tollgate.toml"), config.replace("[provider.openai]", "[provider.other]"))
            .expect("written");
        let bad = report(dir, &["check"]);
        assert_eq!((&bad["ok"], &bad["mistakes"][0]["file"]), (&json!(false), &json!("openai.toml")), "{bad}");
        if database != "sqlite" {
            let away = config.replace(database, "postgres://tollgate@127.0.0.1:1/nowhere");
            std::fs::write(dir.join("tollgate.toml"), away).expect("written");
            let bad = report(dir, &["check"]);
            assert_eq!((&bad["ok"], &bad["mistakes"][0]["field"]), (&json!(false), &json!("database")), "{bad}");
        }
    }
}
