//! The data folder: who may read it, and what is needed to begin again from a backup.

use crate::house::{House, Plan, chat, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn data(house: &House) -> PathBuf {
    house.gates[0].config.with_file_name("data")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    entries.map(|name| name.into_string().expect("UTF-8")).collect()
}

fn is_private(folder: &Path) {
    assert_eq!(mode(folder), 0o700);
    for name in names(folder) {
        let path = folder.join(&name);
        match path.is_dir() {
            true => is_private(&path),
            false => assert_eq!(mode(&path), 0o600, "{name}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_folder_is_for_its_owner_alone() {
    let mut house = House::new(Plan::default()).await;
    assert_eq!(house.ask(0, &chat("plain", "hello")).await.status(), 200);
    let folder = data(&house);
    for name in ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm", "journal.0", "lock", "admin.sock", "secrets.key"]
    {
        assert!(names(&folder).iter().any(|one| one == name), "{name}");
    }
    is_private(&folder);
    let export = folder.with_file_name("ledger.jsonl");
    let run = house.gates[0].run(&["ledger", "export", "-o", export.to_str().expect("UTF-8")]).await;
    assert!(run.status.success());
    assert_eq!(mode(&export), 0o600);
    // As an earlier version left it.
    house.gates[0].kill();
    for name in names(&folder) {
        let path = folder.join(name);
        let open = if path.is_dir() { 0o755 } else { 0o644 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(open)).expect("ours");
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("ours");
    house.gates[0].start().await;
    is_private(&folder);
    let log = house.gates[0].logged();
    assert!(log.contains("was open to other users of this machine") && log.contains("tollgate.db"), "{log}");
}

/// The commands of a page, in the block that holds this text.
fn commands(page: &str, holds: &str) -> String {
    let text = std::fs::read_to_string(page).expect(page);
    let block = text.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    block.filter(|block| block.contains(holds)).collect::<Vec<_>>().first().expect("a block").to_string()
}

/// Runs them where an operator would. Where there is no `sqlite3`, Python has the same inside.
fn run(commands: &str, folder: &Path) {
    let stand_in = "sqlite3() { python3 -c 'import sqlite3, sys\nfrom_ = sqlite3.connect(sys.argv[1])\n\
                    from_.backup(sqlite3.connect(sys.argv[2].split()[1]))' \"$@\"; }\n";
    let script = format!("set -eu\ncommand -v sqlite3 >/dev/null || {stand_in}\n{commands}");
    let done = Command::new("bash").args(["-c", &script]).current_dir(folder).stdin(Stdio::null()).output();
    let done = done.expect("a shell");
    assert!(done.status.success(), "{commands}\n{}", String::from_utf8_lossy(&done.stderr));
}

async fn webhook_secret(house: &House) -> String {
    let url = format!("{}/v1/webhooks/secret", house.gates[0].url());
    let report: Value =
        house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply").json().await.expect("JSON");
    text(&report["secrets"][0])
}

/// The page says how to make a backup and how to begin from one: both as they stand, and a start
/// without the secrets is refused.
#[tokio::test(flavor = "multi_thread")]
async fn the_documented_backup_and_restore() {
    let mut house = House::new(Plan::default()).await;
    assert_eq!(house.ask(0, &chat("plain", "hello")).await.status(), 200);
    house.quiet().await;
    let (secret, balance) = (webhook_secret(&house).await, house.balance(0).await);
    let folder = data(&house);
    let place = folder.parent().expect("a folder").to_owned();
    run(&commands("../../docs/operating.md", ".backup"), &place);
    is_private(&place.join("backup"));
    house.gates[0].kill();
    std::fs::rename(&folder, place.join("lost")).expect("moved");
    run(&commands("../../docs/operating.md", "cp -p backup"), &place);
    is_private(&folder);
    house.gates[0].start().await;
    assert_eq!((webhook_secret(&house).await, house.balance(0).await), (secret.clone(), balance.clone()));
    house.verified().await;

    // Without the secrets, and with others.
    let file = folder.join("secrets.key");
    house.gates[0].kill();
    for others in [None, Some("another-secret-that-is-long-enough-for-it")] {
        std::fs::remove_file(&file).expect("there");
        if let Some(others) = others {
            std::fs::write(&file, others).expect("written");
        }
        let process = house.gates[0].spawn();
        assert!(!process.wait().await.success());
        let log = house.gates[0].logged();
        let said = log.lines().rev().find(|line| line.starts_with("tollgate: ")).expect("why");
        assert!(said.contains("secrets.key") && said.contains("--new-secrets"), "{said}");
        assert_eq!(file.exists(), others.is_some(), "none is made");
        std::fs::copy(place.join("backup/secrets.key"), &file).expect("copied");
    }
    house.gates[0].start().await;
    assert_eq!(webhook_secret(&house).await, secret);
}
