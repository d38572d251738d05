//! `tollgate catalog`: what a new catalog changes, word by word (`prices/`), and the exit codes of
//! diff.

use crate::process::tollgate;
use std::path::{Path, PathBuf};
use std::process::Output;

fn prices() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/processes/prices")
}

fn run(arguments: &[&str]) -> Output {
    tollgate(arguments).current_dir(prices()).output().expect("it ran")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn every_change_of_a_price_is_said_in_plain_words() {
    let output = run(&["catalog", "diff", "old.toml", "new.toml"]);
    assert_eq!(text(&output), include_str!("prices/diff.txt"));
    assert_eq!(output.status.code(), Some(1), "like diff: there are differences");
}

#[test]
fn every_change_of_a_price_is_said_to_scripts() {
    let output = run(&["catalog", "diff", "old.toml", "new.toml", "--json"]);
    assert_eq!(text(&output).replace("{\"what\"", "\n{\"what\""), include_str!("prices/diff.json"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_same_prices_are_the_same_however_they_are_written() {
    let output = run(&["catalog", "diff", "old.toml", "old.toml"]);
    assert!(text(&output).starts_with("no price changes"), "{}", text(&output));
    assert_eq!(output.status.code(), Some(0));
    // A folder with the same catalog in two files, its groups last.
    let dir = tempfile::tempdir().expect("a folder");
    let old = std::fs::read_to_string(prices().join("old.toml")).expect("the old catalog");
    let (group, models) = old.split_at(old.find("[model.chat]").expect("a model"));
    std::fs::write(dir.path().join("a.toml"), models.replace("3_000_000", "3000000")).expect("written");
    std::fs::write(dir.path().join("b.toml"), group).expect("written");
    let output = run(&["catalog", "diff", "old.toml", &dir.path().display().to_string(), "--json"]);
    assert!(text(&output).starts_with(r#"{"same":true"#), "{}", text(&output));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_catalog_that_cannot_be_read_is_trouble_and_not_a_difference() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().display().to_string();
    for (new, why) in [("nowhere.toml", "No such file"), (folder.as_str(), "there is no .toml file in it")] {
        let output = run(&["catalog", "diff", "old.toml", new]);
        assert_eq!(output.status.code(), Some(2));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(why) && output.stdout.is_empty(), "{errors}");
    }
    std::fs::write(dir.path().join("broken.toml"), "[model.m]\nprice = { input = -1, output = 1 }\n").expect("written");
    let output = run(&["catalog", "diff", &folder, "old.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("broken.toml:2: model.m.price.input: must be a whole number"), "{errors}");
}

#[test]
fn a_model_is_shown_with_its_prices() {
    let output = run(&["catalog", "show", "chat", "--from", "old.toml"]);
    assert_eq!(
        text(&output),
        "chat: billed by tokens, sold to default, partner
  price: input 3, output 15, cache_read 0.3 USD per million tokens
  after a top-up: input 2.7, output 13.5, cache_read 0.27 USD per million tokens
  tier long_context, when more than 200000 input tokens: input 6, output 22.5, cache_read 0.6 USD per million tokens
  tier peak, when Mon,Tue,Wed,Thu,Fri hours 9-12 in Europe/Berlin: 3/2 times the base price
  tier flex, when service_tier = flex: 1/2 times the base price
"
    );
    let output = run(&["catalog", "show", "chat", "--from", "old.toml", "--json"]);
    assert!(text(&output).contains(r#""model_ratio":1.5"#), "{}", text(&output));
    let output = run(&["catalog", "show", "chta", "--from", "old.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean \"chat\"?"));
    let all = run(&["catalog", "show", "--from", "old.toml"]);
    assert_eq!(text(&all).lines().filter(|line| !line.starts_with(' ')).count(), 5, "{}", text(&all));
}

#[test]
fn changes_of_the_past_are_folded_into_the_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("catalog/models.toml");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), "").expect("written");
    let written = "# Ours.\n[model.m]\nprice = { input = 1, output = 2 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n\n\
                   [[model.m.change]]\nfrom = 2026-01-01T00:00:00Z\nprice = { input = 3, output = 4 }\n\n\
                   [[model.m.change]]\nfrom = 2099-01-01T00:00:00Z\nprice = { input = 5, output = 6 }\n";
    std::fs::write(&file, written).expect("written");
    let run = |more: &[&str]| {
        let output = tollgate(&[&["catalog", "tidy"], more].concat()).current_dir(dir.path()).output().expect("it ran");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        text(&output)
    };
    let report = run(&["--dry-run", "--json"]);
    assert!(report.contains(r#""done":false"#) && report.contains(r#""folded":1"#), "{report}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), written, "nothing is written");
    assert!(run(&[]).contains("models.toml"));
    let folded = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(
        folded,
        "# Ours.\n[model.m]\nroute = [{ provider = 'p', upstream_model = 'm' }]\nprice = { input = 3, output = 4 }\n\n\
         [[model.m.change]]\nfrom = 2099-01-01T00:00:00Z\nprice = { input = 5, output = 6 }\n"
    );
    assert!(run(&[]).starts_with("there is nothing to fold"), "once is enough");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), folded);
}
