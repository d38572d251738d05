//! Receipts from outside: verified by the executable alone, signed by whichever replica is asked,
//! and no trace of a secret key in anything that is printed.

use crate::house::{House, Plan, chat, text};
use crate::postgres::Server;
use crate::process::{HANG, tollgate};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    proves_and_rotates(Plan { log: "trace", ..Plan::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("receipts").await;
    proves_and_rotates(Plan { log: "trace", gates: 2, database: &database, ..Plan::default() }).await;
}

async fn proves_and_rotates(plan: Plan<'_>) {
    let sqlite = plan.database == "sqlite";
    let house = House::new(plan).await;
    let last = house.gates.len() - 1;
    let reply = house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await;
    let call = reply.headers()["x-request-id"].to_str().expect("text").to_owned();
    reply.bytes().await.expect("a body");
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let old_keys = save(&file("old-keys.json"), &published(&house, 0).await);
    let old = save(&file("old.json"), &receipt(&house, 0, &call).await);
    // Every receipt is a new one, with the time at which it was made; all of them hold.
    let shown = house.gates[0].run(&["receipt", "show", "--account", &house.account, &call]).await;
    let shown = save(&file("shown.json"), &String::from_utf8_lossy(&shown.stdout));
    let secret = sqlite.then(|| secret_of(&house));
    names_its_price(&house, &old, &old_keys, folder.path()).await;

    for proof in [&old, &shown] {
        assert_eq!(offline(proof, &old_keys), (true, format!("valid: {call} of {} on plain cost", house.account)));
    }
    let rotated = house.cli(&["receipt", "rotate"]).await;
    assert_eq!(rotated["keys"].as_array().map(Vec::len), Some(2), "{rotated}");
    // The other replica was not asked, and signs with the new key without a restart.
    let new = save(&file("new.json"), &receipt(&house, last, &call).await);
    let new_keys = file("new-keys.json");
    let until = Instant::now() + HANG;
    for gate in 0..=last {
        while !save(&new_keys, &published(&house, gate).await).1.contains(&text(&rotated["keys"][0]["kid"])) {
            assert!(Instant::now() < until, "gate {gate} does not publish the new key");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(offline(&new, &(new_keys.clone(), String::new())).0);
        assert!(offline(&old, &(new_keys.clone(), String::new())).0, "the old key goes on verifying");
    }
    let (valid, said) = offline(&new, &old_keys);
    assert!(!valid && said.contains("not among the keys given"), "{said}");
    let changed = save(&file("changed.json"), &new.1.replacen("\"status\":200", "\"status\":201", 1));
    let (valid, said) = offline(&changed, &(new_keys.clone(), String::new()));
    assert!(!valid && said.starts_with("NOT VALID: the signature"), "{said}");
    // With the operator's own store instead of a copy of the keys.
    let own = house.gates[0].cli(&["receipt", "verify", new.0.to_str().expect("UTF-8")]).await;
    assert_eq!((&own["valid"], &own["receipt"]["call_id"]), (&true.into(), &call.as_str().into()));

    if let Some(secret) = secret {
        says_nothing_of(&house, &secret).await;
        let now = secret_of(&house);
        assert_ne!(now, secret, "the secret of the old key is erased");
        says_nothing_of(&house, &now).await;
    }
}

/// The price that a receipt names is served to anybody and printed here, and another one is
/// noticed.
async fn names_its_price(house: &House, receipt: &Saved, keys: &Saved, folder: &Path) {
    let said: Value = serde_json::from_str(&receipt.1).expect("JSON");
    let id = text(&said["receipt"]["calculation"]["price_id"]);
    let url = format!("{}/api/pricing/versions/{id}", house.gates[house.gates.len() - 1].url());
    let served = house.http.get(url).send().await.expect("a reply").text().await.expect("text");
    let printed = house.gates[0].run(&["receipt", "price", &id]).await;
    assert_eq!(String::from_utf8_lossy(&printed.stdout), served);
    let unknown = house.gates[0].run(&["receipt", "price", &"0".repeat(32)]).await;
    assert!(!unknown.status.success(), "no such price");
    let price = save(&folder.join("price.json"), &served);
    let dearer = served.replacen("\"input\":1000000", "\"input\":2000000", 1);
    assert_ne!(dearer, served);
    let other = save(&folder.join("other-price.json"), &dearer);
    for (price, holds) in [(&price, true), (&other, false)] {
        let paths = [receipt, keys, price].map(|saved| saved.0.to_str().expect("UTF-8"));
        let mut command = tollgate(&["receipt", "verify", paths[0], "--keys", paths[1], "--price", paths[2]]);
        let done = command.output().expect("it ran");
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.success(), holds, "{said}");
        assert_eq!(said.contains("the price is not the one of the receipt"), !holds, "{said}");
    }
}

/// A file and what is in it.
type Saved = (std::path::PathBuf, String);

fn save(path: &Path, content: &str) -> Saved {
    std::fs::write(path, content).expect("written");
    (path.to_owned(), content.to_owned())
}

async fn published(house: &House, gate: usize) -> String {
    let url = format!("{}/.well-known/tollgate-receipts", house.gates[gate].url());
    house.http.get(url).send().await.expect("a reply").text().await.expect("text")
}

async fn receipt(house: &House, gate: usize, call: &str) -> String {
    let url = format!("{}/v1/usage/{call}/receipt", house.gates[gate].url());
    let reply = house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply");
    assert_eq!(reply.status(), 200);
    reply.text().await.expect("text")
}

/// `receipt verify` where there is neither a configuration nor a server: whether it holds, and the
/// first words.
fn offline(receipt: &Saved, keys: &Saved) -> (bool, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let (receipt, keys) = (receipt.0.to_str().expect("UTF-8"), keys.0.to_str().expect("UTF-8"));
    let mut command = tollgate(&["receipt", "verify", receipt, "--keys", keys]);
    let done = command.current_dir(folder.path()).output().expect("it ran");
    assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let words = said.lines().next().unwrap_or_default();
    let words = words.rsplit_once(" 0.").map_or(words, |(words, _)| words);
    (done.status.success(), words.to_owned())
}

/// The key that signs, as the database has it.
fn secret_of(house: &House) -> Vec<u8> {
    let folder = house.gates[0].config.parent().expect("a folder");
    let database = rusqlite::Connection::open(folder.join("data/tollgate.db")).expect("the database");
    let sql = "SELECT secret FROM receipt_key WHERE secret IS NOT NULL";
    let mut all = database.prepare(sql).expect("a statement");
    let all: Vec<Vec<u8>> = all.query_map([], |row| row.get(0)).expect("rows").map(|one| one.expect("a row")).collect();
    assert_eq!(all.len(), 1, "one key can sign");
    all.into_iter().next().expect("one")
}

/// Whatever the commands print and the log holds, the secret is not in it, in no way of writing
/// bytes.
async fn says_nothing_of(house: &House, secret: &[u8]) {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
    let mut said = house.gates[0].logged();
    for arguments in
        [&["receipt", "keys"][..], &["receipt", "keys", "--json"], &["usage", "--json"], &["account", "list"]]
    {
        let output = house.gates[0].run(arguments).await;
        said.push_str(&String::from_utf8_lossy(&output.stdout));
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    said.push_str(&published(house, 0).await);
    assert!(said.contains("\"TRACE\"") && said.contains("Ed25519"));
    for form in [
        hex.clone(),
        hex.to_uppercase(),
        numbers.join(","),
        numbers.join(", "),
        base64(secret, b"-_"),
        base64(secret, b"+/"),
    ] {
        assert!(!said.contains(&form), "the secret is printed");
    }
}

/// Without padding, so that it is found with and without.
fn base64(bytes: &[u8], last: &[u8; 2]) -> String {
    let mut letters: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').collect();
    letters.extend(last);
    let bits: Vec<bool> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    let index = |six: &[bool]| (0..6).fold(0, |sum, at| sum * 2 + usize::from(six.get(at).copied().unwrap_or(false)));
    bits.chunks(6).map(|six| char::from(letters[index(six)])).collect()
}

#[tokio::test]
async fn a_file_that_is_no_receipt_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = save(&folder.path().join("keys.json"), "{\"keys\":[]}");
    let none = save(&folder.path().join("none.json"), "{}");
    let (valid, said) = offline(&none, &keys);
    assert!(!valid && said.starts_with("NOT VALID: this is not a receipt"), "{said}");
    let out = tollgate(&["receipt", "verify", "missing.json", "--keys", keys.0.to_str().expect("UTF-8")]).output();
    let out = out.expect("it ran");
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("missing.json"));
    let out =
        tollgate(&["receipt", "verify", keys.0.to_str().expect("UTF-8"), "--keys", none.0.to_str().expect("UTF-8")]);
    let out = { out }.output().expect("it ran");
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("not a copy of the published keys"));
    let json: Value = serde_json::from_slice(
        &tollgate(&[
            "--json",
            "receipt",
            "verify",
            none.0.to_str().expect("UTF-8"),
            "--keys",
            keys.0.to_str().expect("UTF-8"),
        ])
        .output()
        .expect("it ran")
        .stdout,
    )
    .expect("JSON");
    assert_eq!(json["valid"], false);
}
