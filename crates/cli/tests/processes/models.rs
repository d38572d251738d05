//! Real models in an operator's catalog: switched on and off, imported, updated, and a first
//! configuration that works.

use crate::process::{HANG, Process, tollgate};
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tollgate_catalog::import::shipped_names;

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

/// A folder with a configuration of these providers, each with a key in a file.
fn house(providers: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let tables =
        providers.iter().map(|name| format!("[provider.{name}]\npreset = \"{name}\"\nsecret_file = \"key\"\n"));
    std::fs::write(dir.path().join("tollgate.toml"), tables.collect::<String>()).expect("written");
    std::fs::write(dir.path().join("key"), "secret\n").expect("written");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    dir
}

fn models(dir: &Path) -> u64 {
    let checked = report(dir, &["check"]);
    assert_eq!(checked["ok"], true, "{checked}");
    checked["models"].as_u64().expect("a number")
}

#[test]
fn a_provider_is_switched_on_and_off() {
    let house = house(&["openai"]);
    let dir = house.path();
    let dry = run(dir, &["catalog", "enable", "openai", "--margin", "10%", "--dry-run"]);
    assert!(
        shown(&dry).contains("add gpt-4.1\n") && shown(&dry).contains("nothing was changed yet"),
        "{}",
        shown(&dry)
    );
    assert_eq!(std::fs::read_dir(dir.join("catalog")).expect("a folder").count(), 0);

    let done = run(dir, &["catalog", "enable", "openai", "--margin", "10%", "--model", "gpt-4.1*"]);
    assert!(done.status.success(), "{}", shown(&done));
    let few = models(dir);
    let price = run(dir, &["catalog", "show", "gpt-4.1"]);
    assert!(shown(&price).contains("price: input 2.2, output 8.8, cache_read 0.55"), "{}", shown(&price));
    let text = || std::fs::read_to_string(dir.join("catalog/openai.toml")).expect("a file");
    let before = text();
    let again = report(dir, &["catalog", "enable", "openai", "--margin", "10%", "--model", "gpt-4.1*"]);
    assert_eq!((again["steps"].as_array().map(Vec::len), text() == before), (Some(0), true), "{again}");

    let all = report(dir, &["catalog", "enable", "openai", "--margin", "10%"]);
    assert!(
        models(dir) > few && all["steps"].as_array().is_some_and(|steps| steps.iter().all(|one| one["what"] == "add"))
    );
    let dearer = report(dir, &["catalog", "enable", "openai", "--margin", "20%", "--model", "gpt-4.1"]);
    assert_eq!(dearer["steps"][0]["what"], "change");
    assert!(
        dearer["changes"].as_array().is_some_and(|changes| changes.iter().any(|one| one["new"] == "2.4")),
        "{dearer}"
    );

    // What was changed by hand stays, whatever is switched off.
    std::fs::write(dir.join("catalog/openai.toml"), text().replace("input = 2_400_000", "input = 9_000_000"))
        .expect("written");
    let off = report(dir, &["catalog", "disable", "openai"]);
    let yours: Vec<&Value> =
        off["steps"].as_array().into_iter().flatten().filter(|one| one["what"] == "yours").collect();
    assert_eq!((yours.len(), &yours[0]["model"], models(dir)), (1, &Value::from("gpt-4.1"), 1));
}

#[test]
fn the_list_says_what_is_stale() {
    let dir = tempfile::tempdir().expect("a folder");
    let sum = |days: &str, member: &str| -> u64 {
        let all = report(dir.path(), &["catalog", "list", "--stale-after", days]);
        all["data"].as_array().expect("rows").iter().map(|row| row[member].as_u64().expect("a number")).sum()
    };
    assert!(sum("100000", "models") >= 300);
    assert_eq!(sum("100000", "stale"), 0, "nobody looked that long ago");
    let one = report(dir.path(), &["catalog", "list", "openai", "--model", "gpt-4.1", "--stale-after", "100000"]);
    assert_eq!(one["data"][0]["stale"], false, "{one}");
    assert!(one["data"][0]["verified_at"].as_str().is_some_and(|day| day.len() == 10), "{one}");
}

#[test]
fn a_provider_that_is_not_configured_is_refused_with_the_command_that_helps() {
    let house = house(&["groq"]);
    let refused = run(house.path(), &["catalog", "enable", "openai"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(shown(&refused).contains("tollgate provider add openai"), "{}", shown(&refused));
    for (arguments, why) in [
        (&["catalog", "enable", "opanai"][..], "did you mean \"openai\"?"),
        (&["catalog", "enable", "groq", "--margin", "10"], "is not a margin such as 10%"),
        (&["catalog", "enable", "groq", "--model", "nothing*"], "no shipped model of groq is called so"),
        (&["catalog", "disable", "groq"], "nothing of groq was enabled"),
        (&["catalog", "update"], "no file of the catalog was written"),
    ] {
        let refused = run(house.path(), arguments);
        assert!(
            refused.status.code() == Some(2) && shown(&refused).contains(why),
            "{arguments:?}: {}",
            shown(&refused)
        );
    }
    assert_eq!(std::fs::read_dir(house.path().join("catalog")).expect("a folder").count(), 0);
    // A provider of a kind that cannot serve them: the configuration would not load, so nothing is
    // written.
    let config = "[provider.openai]\nkind = \"tikhub\"\nbase_url = \"https://example.com\"\n";
    std::fs::write(house.path().join("tollgate.toml"), config).expect("written");
    let refused = run(house.path(), &["catalog", "enable", "openai"]);
    assert!(refused.status.code() == Some(2) && shown(&refused).contains("nothing was changed"), "{}", shown(&refused));
    assert_eq!(std::fs::read_dir(house.path().join("catalog")).expect("a folder").count(), 0);
}

/// Shipped files beside each other, served by the providers as they are known by name: a third of
/// them, since each command reads all that was written before it.
fn enabled_together(part: usize) {
    let names: Vec<&str> = shipped_names().skip(part).step_by(3).collect();
    let house = house(&names);
    for name in &names {
        let done = run(house.path(), &["catalog", "enable", name, "--margin", "12.5%"]);
        assert!(done.status.success(), "{name}: {}", shown(&done));
    }
    assert!(models(house.path()) >= 50, "{names:?}: {}", models(house.path()));
    let updated = report(house.path(), &["catalog", "update"]);
    assert_eq!(
        (updated["steps"].as_array().map(Vec::len), &updated["done"]),
        (Some(0), &Value::from(false)),
        "{updated}"
    );
}

#[test]
fn the_first_providers_make_a_configuration_without_mistakes() {
    enabled_together(0);
}

#[test]
fn the_second_providers_make_a_configuration_without_mistakes() {
    enabled_together(1);
}

#[test]
fn the_third_providers_make_a_configuration_without_mistakes() {
    enabled_together(2);
}

const PRICES: &str = r#"{"acme/m": {"litellm_provider": "acme", "mode": "chat", "max_input_tokens": 8000, "max_output_tokens": 1000, "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}"#;

#[test]
fn prices_are_imported_compared_and_updated() {
    let house = house(&["openai"]);
    let dir = house.path();
    let file = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    let import = [
        "catalog",
        "import",
        "--from",
        "litellm",
        "prices.json",
        "--provider",
        "acme",
        "--route",
        "openai",
        "--margin",
        "10%",
        "--out",
        "catalog/acme.toml",
    ];
    file("prices.json", PRICES);
    let dry = report(dir, &import);
    assert_eq!((&dry["done"], &dry["steps"][0]["what"]), (&Value::from(false), &Value::from("add")), "{dry}");
    assert!(!dir.join("catalog/acme.toml").exists());
    let apply = [&import[..], &["--apply"]].concat();
    assert_eq!(report(dir, &apply)["done"], true);
    assert_eq!(models(dir), 1);
    let written = || std::fs::read_to_string(dir.join("catalog/acme.toml")).expect("a file");
    let before = written();
    assert!(
        before.contains("price = { input = 1_100_000, output = 2_200_000 }") && before.contains("unverified"),
        "{before}"
    );

    // A list that broke on its way, in whatever way, and one with other prices.
    for broken in [
        &PRICES[..PRICES.len() / 2],
        "",
        "{}",
        &PRICES.replace("1e-06", "0.0"),
        &PRICES.replace("1e-06", "2e-06"),
        &PRICES.replace("acme/m", "acme/n"),
    ] {
        file("prices.json", broken);
        let refused = run(dir, &apply);
        assert!(!refused.status.success(), "{broken}: {}", shown(&refused));
        assert_eq!(written(), before, "{broken}");
    }
    // What the vendor changes a little is shown, and taken over when it is said.
    file("prices.json", &PRICES.replace("1e-06", "1.1e-06"));
    let update = ["catalog", "update", "acme", "--from", "litellm", "prices.json"];
    let seen = run(dir, &update);
    assert!(shown(&seen).contains("change m (the vendor's input changes from 1 to 1.1 USD)"), "{}", shown(&seen));
    assert_eq!(written(), before);
    let done = report(dir, &[&update[..], &["--apply"]].concat());
    assert!(done["done"] == true && written().contains("input = 1_210_000"), "{done}");
    file("prices.json", &PRICES.replace("1e-06", "9e-06"));
    let large = [&update[..], &["--apply", "--accept", "m"]].concat();
    assert!(report(dir, &large)["done"] == true && written().contains("input = 9_900_000"));
}

#[test]
fn init_writes_a_configuration_that_starts() {
    let dir = tempfile::tempdir().expect("a folder");
    let asked = ["init", "--yes", "--provider", "openai", "--margin", "10%", "--listen", "127.0.0.1:0"];
    let done = run(dir.path(), &asked);
    assert!(done.status.success() && shown(&done).contains("tollgate serve"), "{}", shown(&done));
    let again = run(dir.path(), &asked);
    assert!(!again.status.success() && shown(&again).contains("is there already"), "{}", shown(&again));
    let keyless = run(dir.path(), &["check"]);
    assert!(shown(&keyless).contains("OPENAI_API_KEY"), "{}", shown(&keyless));
    let mut check = tollgate(&["check"]);
    let checked = check.current_dir(dir.path()).env("OPENAI_API_KEY", "secret").output().expect("it ran");
    assert!(checked.status.success(), "{}", shown(&checked));
    let mut serve = tollgate(&["serve"]);
    serve.current_dir(dir.path()).env("OPENAI_API_KEY", "secret");
    let gate = Process::start(serve, &dir.path().join("log"));
    let until = Instant::now() + HANG;
    while !gate.logged().contains("\"serving\"") && !gate.logged().contains("serving") {
        assert!(Instant::now() < until, "{}", gate.last_words());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn init_refuses_what_it_cannot_write_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a folder");
    for (arguments, why) in [
        (&["init"][..], "which provider?"),
        (&["init", "--yes", "--provider", "opanai"], "did you mean \"openai\"?"),
        (&["init", "--yes", "--provider", "openai", "--margin", "10"], "is not a margin"),
        (
            &[
                "init",
                "--yes",
                "--provider",
                "own",
                "--base-url",
                "http://127.0.0.1:1/v1",
                "--model",
                "m",
                "--price",
                "1",
            ],
            "as in 0.50/1.50",
        ),
    ] {
        let refused = run(dir.path(), arguments);
        assert!(!refused.status.success() && shown(&refused).contains(why), "{arguments:?}: {}", shown(&refused));
        assert!(!dir.path().join("tollgate.toml").exists(), "{arguments:?}");
    }
    let own = [
        "init",
        "--yes",
        "--provider",
        "own",
        "--base-url",
        "http://127.0.0.1:1/v1",
        "--model",
        "m",
        "--price",
        "0.50/1.50",
    ];
    let done = run(dir.path(), &own);
    assert!(done.status.success(), "{}", shown(&done));
    assert_eq!(models(dir.path()), 1);
    assert!(shown(&run(dir.path(), &["catalog", "show", "m"])).contains("input 0.5, output 1.5"));
}
