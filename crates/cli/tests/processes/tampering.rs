//! Somebody changes the books behind Tollgate's back. `ledger verify` exits 1 and names the rows.

use crate::house::{House, Plan, chat, text};
use rusqlite::Connection;
use serde_json::Value;

/// The audit over this gate's configuration: exit code and report.
async fn audit(house: &House) -> (Option<i32>, Value) {
    let output = house.gates[0].run(&["ledger", "verify", "--json"]).await;
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("a JSON report"))
}

fn rows_of(report: &Value, invariant: &str) -> String {
    let breaches = report["breaches"].as_array().expect("a list");
    let found = breaches.iter().find(|breach| breach["invariant"] == invariant);
    found.unwrap_or_else(|| panic!("no {invariant} in {report}"))["rows"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_behind_our_back_is_found() {
    let mut house = House::new(Plan::default()).await;
    let mut calls = Vec::new();
    for _ in 0..3 {
        let reply = house.ask(0, &chat("plain", "[[sim:tokens=5]] hello")).await;
        assert_eq!(reply.status(), 200);
        calls.push(reply.headers()["x-request-id"].to_str().expect("text").to_owned());
    }
    house.quiet().await;
    let process = house.gates[0].process.as_mut().expect("running");
    process.terminate();
    assert!(process.wait().await.success());
    assert_eq!(audit(&house).await.0, Some(0));

    let file = house.gates[0].config.with_file_name("data").join("tollgate.db");
    let change = |sql: &str| Connection::open(&file).expect("the file").execute_batch(sql);
    let refused = change("UPDATE entry SET take_paid = take_paid - 1 WHERE kind = 1");
    assert!(refused.is_err_and(|error| error.to_string().contains("append-only")), "the ledger defends itself");
    change("DROP TRIGGER entry_no_update; DROP TRIGGER entry_no_delete").expect("changed");
    assert_eq!(audit(&house).await.0, Some(0), "the numbers still add up");

    // A charge made smaller in the ledger: balance, key and usage log all contradict it.
    let first_settle = "(SELECT min(seq) FROM entry WHERE kind = 1)";
    change(&format!("UPDATE entry SET take_paid = take_paid - 1 WHERE seq = {first_settle}")).expect("changed");
    let (code, report) = audit(&house).await;
    assert_eq!(code, Some(1));
    assert!(rows_of(&report, "I1").contains("balance differs from the ledger"), "{report}");
    assert!(rows_of(&report, "I11").contains("usage log and ledger differ"), "{report}");
    let people = house.gates[0].run(&["ledger", "verify"]).await;
    let shown = String::from_utf8_lossy(&people.stdout);
    assert!(
        shown.contains("BROKEN")
            && shown.contains("I1   BROKEN")
            && shown.contains("I20  holds")
            && shown.contains("balance differs"),
        "{shown}"
    );
    assert_eq!(people.status.code(), Some(1));
    change(&format!("UPDATE entry SET take_paid = take_paid + 1 WHERE seq = {first_settle}")).expect("changed");
    assert_eq!(audit(&house).await.0, Some(0));

    // Money out of nowhere.
    change("UPDATE account SET paid_available = paid_available + 1000000000").expect("changed");
    let (code, report) = audit(&house).await;
    assert_eq!((code, report["breaches"].as_array().map(Vec::len)), (Some(1), Some(2)));
    assert!(rows_of(&report, "I1").contains("balance differs"), "{report}");
    assert!(rows_of(&report, "I2").contains("differ by 1000000000"), "{report}");
    change("UPDATE account SET paid_available = paid_available - 1000000000").expect("changed");

    // A usage row that no longer explains its charge: the call is named.
    change("UPDATE usage SET input = input + 1 WHERE call_id = (SELECT min(call_id) FROM usage)").expect("changed");
    let (code, report) = audit(&house).await;
    assert_eq!(code, Some(1));
    assert!(rows_of(&report, "I18").contains(&calls[0]), "{report}");
    change("UPDATE usage SET input = input - 1 WHERE call_id = (SELECT min(call_id) FROM usage)").expect("changed");

    // A running server tells it too, to the command line and on its metrics page.
    house.gates[0].start().await;
    assert_eq!(audit(&house).await.0, Some(0));
    change(&format!("DELETE FROM entry WHERE seq = {first_settle}")).expect("changed");
    let (code, report) = audit(&house).await;
    assert_eq!(code, Some(1));
    assert!(rows_of(&report, "I1").contains("balance differs"), "{report}");
    let page = house.http.get(format!("{}/metrics", house.gates[0].url())).send().await.expect("a reply");
    let page = page.text().await.expect("text");
    assert!(!page.contains("tollgate_ledger_drift 0") && page.contains("tollgate_ledger_drift "), "{page}");
    assert_eq!(text(&house.cli(&["account", "show", &house.account]).await["account"]["account_id"]), house.account);
}
