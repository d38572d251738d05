//! `tollgate check`: a good configuration passes; a broken one gets a list of all its mistakes at
//! once, each with file and line.

use crate::process::{TOLLGATE, tollgate};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const GOOD: &str = r#"[provider.sim]
kind = "openai"
base_url = "http://127.0.0.1:9090/v1"
"#;
const GOOD_CATALOG: &str = r#"[model."m"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;
const BROKEN: &str = r#"listen = "nowhere"
colour = "blue"
[limits]
body_bytes = "much"
[provider.sim]
kind = "opennai"
base_url = "ftp://example.com"
secret_env = "NOT_SET"
"#;
const BROKEN_CATALOG: &str = r#"[model."m"]
context_window = -5
price = { input = 1.5, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = 7 }]
"#;

fn run(dir: &Path, arguments: &[&str]) -> Output {
    tollgate(arguments).current_dir(dir).output().expect("it ran")
}

fn written(config: &str, catalog: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), config).expect("written");
    std::fs::write(dir.path().join("catalog/models.toml"), catalog).expect("written");
    dir
}

#[test]
fn a_good_configuration_passes() {
    let dir = written(GOOD, GOOD_CATALOG);
    let people = run(dir.path(), &["check"]);
    assert!(people.status.success());
    assert!(String::from_utf8_lossy(&people.stdout).starts_with("tollgate.toml: no mistakes (1 models, 1 providers"));
    let script = run(dir.path(), &["check", "--json"]);
    let report: Value = serde_json::from_slice(&script.stdout).expect("JSON");
    assert_eq!((&report["ok"], &report["models"], &report["providers"]), (&true.into(), &1.into(), &1.into()));
    assert!(!dir.path().join("data").exists(), "a check leaves nothing behind");
}

/// A link to a wildcard address leads nowhere: whoever sells videos is asked to say where the
/// gateway is reached.
#[test]
fn a_gateway_that_does_not_know_its_address_is_warned_about() {
    const VIDEO: &str = r#"[model."sora-2"]
supported_endpoint_types = ["openai-video"]
billing_unit = "per_second"
video = { variant = "sora" }
price = { video_second = 100_000 }
route = [{ provider = "maker", upstream_model = "sora-2" }]
"#;
    let maker = "[provider.maker]\nkind = \"openai\"\nbase_url = \"https://api.example.com/v1\"\n";
    for (listen, catalog, warned) in [
        ("listen = \"0.0.0.0:8080\"", VIDEO, true),
        ("listen = \"[::]:8080\"", VIDEO, true),
        ("listen = \"0.0.0.0:8080\"", GOOD_CATALOG, false),
        ("listen = \"127.0.0.1:8080\"", VIDEO, false),
        ("listen = \"0.0.0.0:8080\"\npublic_url = \"https://gate.example\"", VIDEO, false),
    ] {
        let dir = written(&format!("{listen}\n{GOOD}{maker}"), catalog);
        let people = run(dir.path(), &["check"]);
        let shown = String::from_utf8_lossy(&people.stdout);
        assert!(people.status.success(), "{listen}: {shown}");
        assert_eq!(shown.contains("\nwarning: `public_url` is not set"), warned, "{listen}: {shown}");
        let script = run(dir.path(), &["check", "--json"]);
        let report: Value = serde_json::from_slice(&script.stdout).expect("JSON");
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(usize::from(warned)), "{listen}: {report}");
    }
}

#[test]
fn the_default_file_is_itself_a_good_configuration() {
    let printed = run(Path::new("/"), &["check", "--print-default"]);
    assert!(printed.status.success());
    let dir = written(&format!("{}\n{GOOD}", String::from_utf8_lossy(&printed.stdout)), GOOD_CATALOG);
    let checked = run(dir.path(), &["check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn every_mistake_is_reported_with_file_line_field_and_reason() {
    let dir = written(BROKEN, BROKEN_CATALOG);
    let people = run(dir.path(), &["check"]);
    assert_eq!(people.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&people.stdout);
    let expected = [
        ("tollgate.toml", 1, "listen"),
        ("tollgate.toml", 2, "colour"),
        ("tollgate.toml", 4, "limits.body_bytes"),
        ("tollgate.toml", 6, "provider.sim.kind"),
        ("tollgate.toml", 7, "provider.sim.base_url"),
        ("tollgate.toml", 8, "provider.sim.secret_env"),
        ("catalog/models.toml", 2, "context_window"),
        ("catalog/models.toml", 3, "price.input"),
        ("catalog/models.toml", 4, "upstream_model"),
    ];
    for (file, line, field) in expected {
        let place = format!("{file}:{line}: ");
        let reported = shown.lines().any(|one| one.contains(&place) && one.contains(field));
        assert!(reported, "nothing about {place}{field} in\n{shown}");
    }
    assert!(shown.contains(&format!("\n{} mistakes", expected.len())), "{shown}");

    let script = run(dir.path(), &["check", "--json"]);
    assert_eq!(script.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&script.stdout).expect("JSON");
    let mistakes = report["mistakes"].as_array().expect("a list");
    assert_eq!((&report["ok"], mistakes.len()), (&false.into(), expected.len()));
    for (file, line, _) in expected {
        let ours = |one: &&Value| one["file"].as_str().is_some_and(|name| name.ends_with(file)) && one["line"] == line;
        let found = mistakes.iter().find(ours).unwrap_or_else(|| panic!("{file}:{line} in {report}"));
        assert!(found["field"].is_string() && found["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    }
}

#[test]
fn a_route_to_nowhere_is_a_mistake() {
    let dir = written(GOOD, &GOOD_CATALOG.replace("\"sim\"", "\"simm\""));
    let output = run(dir.path(), &["check"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("catalog/models.toml:3: ") && shown.contains("did you mean \"sim\"?"), "{shown}");
}

#[test]
fn nothing_is_served_from_a_broken_configuration() {
    let dir = written(BROKEN, BROKEN_CATALOG);
    let output = run(dir.path(), &["serve"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("tollgate.toml:1: listen") && errors.contains("9 mistakes"), "{errors}");
    let missing = run(Path::new("/"), &["check", "--config", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stdout).contains("nowhere.toml: cannot be read"));
}

/// The books can be read while somebody mends the catalog; only what says where they are must be
/// right.
#[test]
fn the_books_need_the_settings_only() {
    let dir = written(&format!("{GOOD}secret_env = \"NOT_SET\"\n"), BROKEN_CATALOG);
    assert_eq!(run(dir.path(), &["check"]).status.code(), Some(1));
    let broken = written(BROKEN, GOOD_CATALOG);
    for arguments in [&["account", "list", "--json"][..], &["usage", "--json"], &["ledger", "verify", "--json"]] {
        assert!(run(dir.path(), arguments).status.success(), "{arguments:?}");
        let output = run(broken.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("tollgate.toml:1: listen") && output.stdout.is_empty(), "{arguments:?}: {errors}");
    }
}

#[test]
fn the_environment_lies_over_the_file() {
    let dir = written(GOOD, GOOD_CATALOG);
    let mut command = tollgate(&["check"]);
    let output = command.current_dir(dir.path()).env("TOLLGATE__LIMITS__BODY_BYTES", "much").output().expect("it ran");
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("TOLLGATE__LIMITS__BODY_BYTES"), "the mistake is where it was made: {shown}");
}

#[test]
fn completions_are_understood_by_their_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(Path::new("/"), &["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && script.contains("tollgate") && script.contains("revoke"), "{shell}");
    }
    let text = format!("source <('{TOLLGATE}' completions bash) && complete -p tollgate");
    let output = std::process::Command::new("bash").args(["-c", &text]).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
