//! The whole record, recomputed from the TOML by a script that shares nothing with this crate, for
//! every kind of viewer.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tollgate_catalog::{MODEL_TYPES, Snapshot, View, load};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables")
}

fn loaded(files: &[PathBuf]) -> Snapshot {
    let read = |path: &PathBuf| (path.display().to_string(), std::fs::read_to_string(path).expect("a file"));
    let files: Vec<(String, String)> = files.iter().map(read).collect();
    load(&files).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)))
}

/// What the script says of what this viewer is shown.
fn compare(files: &[PathBuf], catalog: &Snapshot, view: &View<'_>) {
    let record = serde_json::to_string(&catalog.record(view)).expect("JSON");
    let groups = serde_json::to_string(view.groups).expect("JSON");
    let asked = format!(
        "{{\"groups\":{groups},\"topped_up\":{},\"known\":{},\"at_ms\":{},\"record\":{record}}}",
        view.topped_up, view.known, view.at_ms
    );
    let mut script = Command::new("python3")
        .arg(folder().join("records.py"))
        .args(files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    script.stdin.take().expect("a pipe").write_all(asked.as_bytes()).expect("written");
    let output = script.wait_with_output().expect("the script ends");
    assert!(output.status.success(), "{view:?}\n{}", String::from_utf8_lossy(&output.stdout));
}

/// Every kind of viewer, before all changes, on their very instants, and after them.
fn viewers(files: &[PathBuf]) {
    let catalog = loaded(files);
    let mut next = Some(0);
    while let Some(at_ms) = next {
        viewers_at(files, &catalog, at_ms);
        next = catalog.next_change(at_ms);
    }
}

fn viewers_at(files: &[PathBuf], catalog: &Snapshot, at_ms: i64) {
    let public = catalog.public_groups();
    let both: Vec<&str> = catalog.in_order(&["default".to_owned(), "partner".to_owned()]).collect();
    compare(files, catalog, &View::of_anybody(&public, at_ms));
    for topped_up in [false, true] {
        compare(files, catalog, &View { groups: &["default"], topped_up, known: true, at_ms });
        compare(files, catalog, &View { groups: &both, topped_up, known: true, at_ms });
    }
}

#[test]
fn every_member_of_every_type_is_as_computed() {
    viewers(&[folder().join("records.toml")]);
}

#[test]
fn every_member_of_the_demo_is_as_computed() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
    let mut files: Vec<PathBuf> = std::fs::read_dir(shipped)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|own| own == "toml"))
        .collect();
    files.sort();
    viewers(&files);
}

/// The table has a model of each type and, over all of them, every member of the record.
#[test]
fn the_table_leaves_no_member_and_no_type_out() {
    let catalog = loaded(&[folder().join("records.toml")]);
    let view = View { groups: &["partner", "default"], topped_up: false, known: true, at_ms: 0 };
    let page = serde_json::to_value(catalog.record(&view)).expect("JSON");
    let data = page["data"].as_array().expect("records");
    let types: BTreeSet<String> = data
        .iter()
        .map(|one| serde_json::from_str::<Value>(one["specs"].as_str().expect("text")).expect("JSON")["type"].clone())
        .map(|kind| kind.as_str().expect("a word").to_owned())
        .collect();
    assert_eq!(types, MODEL_TYPES.iter().map(|kind| (*kind).to_owned()).collect());
    let shown: BTreeSet<&String> = data.iter().flat_map(|one| one.as_object().expect("an object").keys()).collect();
    let schema = tollgate_catalog::record_schema();
    let members = schema["$defs"]["record"]["properties"].as_object().expect("members");
    for member in members.keys().filter(|member| *member != "route_health") {
        assert!(shown.contains(member), "no model of the table has {member}");
    }
    for member in shown {
        assert!(members.contains_key(member), "{member} is not in the schema");
    }
    let chat = data.iter().find(|one| one["model_name"] == "r-chat").expect("listed");
    assert_eq!((&chat["vendor_id"], &chat["owner_by"]), (&json!(7), &json!("Acme Models")));
    assert_eq!(chat["icon"], json!("/assets/r-chat.svg"));
}
