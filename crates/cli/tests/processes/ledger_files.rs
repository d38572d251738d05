//! What goes out of the ledger and what is compared with it: the export, and a provider's bill.

use crate::house::{House, Plan, chat, text};
use crate::postgres::Server;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite() {
    both(Plan::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres() {
    let server = Server::find();
    let database = server.database("ledger_files").await;
    both(Plan { database: &database, ..Plan::default() }).await;
}

async fn both(plan: Plan<'_>) {
    let house = House::new(plan).await;
    for _ in 0..3 {
        assert_eq!(house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await.status(), 200);
    }
    house.quiet().await;
    let entries = export(&house).await;
    reconcile(&house).await;
    let online = house.cli(&["ledger", "verify", "--online"]).await;
    assert_eq!(online["breaches"], serde_json::json!([]));
    // Of what it has not looked at it does not say that it holds.
    let (_, people) = said(&house, &["ledger", "verify", "--online"]).await;
    for (number, verdict) in [("I1", "holds"), ("I2", "-"), ("I8", "-"), ("I13", "-"), ("I14", "-"), ("I17", "-")] {
        assert!(people.contains(&format!("{number:<4} {verdict:<7} ")), "{number}: {people}");
    }
    let (_, people) = said(&house, &["ledger", "verify"]).await;
    for (number, verdict) in [("I2", "holds"), ("I8", "-"), ("I14", "holds"), ("I17", "-")] {
        assert!(people.contains(&format!("{number:<4} {verdict:<7} ")), "{number}: {people}");
    }
    let strict = house.cli(&["ledger", "verify", "--strict"]).await;
    assert_eq!((&strict["breaches"], &strict["entries"]), (&serde_json::json!([]), &entries.into()));
}

async fn said(house: &House, arguments: &[&str]) -> (Option<i32>, String) {
    let output = house.gates[0].run(arguments).await;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &errors)
}

/// Says how many entries there are.
async fn export(house: &House) -> usize {
    let (code, lines) = said(house, &["ledger", "export", "--format", "jsonl"]).await;
    assert_eq!(code, Some(0), "{lines}");
    let entries: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = entries.iter().filter_map(|e| e["kind"].as_str()).collect();
    let count = |wanted: &str| kinds.iter().filter(|kind| **kind == wanted).count();
    assert_eq!((kinds[0], count("top_up"), count("settle")), ("top_up", 1, 3), "a top-up and three calls: {kinds:?}");
    // Each was held by an entry of its own, or by the one that ended it.
    let whole = entries.iter().filter(|e| e["kind"] == "settle" && e["expires_at_ms"].is_i64()).count();
    assert_eq!((count("hold") + whole, 4 + count("hold")), (3, entries.len()), "{kinds:?}");
    let links: Vec<i64> = entries.iter().filter_map(|e| e["link"].as_i64()).collect();
    assert!(links.iter().copied().eq(1..=entries.len() as i64), "{links:?}");
    assert!(entries.iter().all(|e| e["hash"].as_str().is_some_and(|hash| hash.len() == 64)));
    let (_, csv) = said(house, &["ledger", "export", "--account", &house.account]).await;
    assert_eq!(csv.lines().count(), 1 + entries.len(), "{csv}");
    assert!(csv.starts_with("seq,at_ms,account_id,kind,call_id,") && csv.contains(",top_up,"), "{csv}");
    let nobody = "acct_00000000000000000000000000";
    let (_, none) = said(house, &["ledger", "export", "--account", nobody]).await;
    assert_eq!(none.lines().count(), 1);
    let (_, none) = said(house, &["ledger", "export", "--to", "2020-01-01"]).await;
    assert_eq!(none.lines().count(), 1);
    let (_, all) = said(house, &["ledger", "export", "--from", "2020-01-01"]).await;
    assert_eq!(all.lines().count(), 1 + entries.len());
    let (code, why) = said(house, &["ledger", "export", "--from", "soon"]).await;
    assert!(code == Some(1) && why.contains("--from"), "{why}");
    entries.len()
}

async fn reconcile(house: &House) {
    let usage = house.cli(&["usage"]).await;
    let calls: Vec<(String, i64)> = usage
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| (text(&row["call_id"]), row["charge_nano_usd"].as_i64().expect("a charge")))
        .collect();
    let dir = tempfile::tempdir().expect("a folder");
    let bill = dir.path().join("bill.csv");
    let path = bill.to_str().expect("UTF-8").to_owned();
    let write = |lines: &[(String, i64)]| {
        let lines: Vec<String> = lines.iter().map(|(call, nano)| format!("{call},{nano}e-9\n")).collect();
        std::fs::write(&bill, format!("call_id,cost_usd\n{}", lines.concat())).expect("written");
    };
    write(&calls);
    let clean = house.cli(&["ledger", "reconcile", &path]).await;
    assert_eq!((&clean["matched"], &clean["rows"]), (&3.into(), &serde_json::json!([])));
    // One dearer, one of somebody else, one of ours not billed.
    let mut odd = calls.clone();
    odd[0].1 *= 2;
    odd[2].0 = "call_01kgffmz000000000000000000".to_owned();
    write(&odd);
    let (code, output) =
        said(house, &["ledger", "reconcile", &path, "--from", "2020-01-01", "--to", "2100-01-01"]).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("1 agree, 1 differ, 1 only billed, 1 only ours, 0 billed twice"), "{output}");
    assert!(output.contains(&format!("differs       line 2      {}", calls[0].0)), "{output}");
    std::fs::write(&bill, "call_id,cost_usd\nx,y\n").expect("written");
    let (code, why) = said(house, &["ledger", "reconcile", &path]).await;
    assert!(code == Some(1) && why.contains("bill.csv") && why.contains("line 2"), "{why}");
}
