//! A rolling upgrade: the executable of an earlier version and the new one serve from one
//! PostgreSQL database. `make upgrade` builds the earlier one and runs this.

use crate::house::{House, Plan, chat, streamed, text};
use crate::postgres::Server;
use crate::process::{HANG, TOLLGATE};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[expect(clippy::disallowed_methods, reason = "the test run says where the executable is")]
fn previous() -> PathBuf {
    std::env::var("TOLLGATE_PREVIOUS_BIN")
        .expect("TOLLGATE_PREVIOUS_BIN names the executable of an earlier version")
        .into()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the executable of an earlier version: make upgrade"]
async fn the_previous_executable_runs_beside_the_new_one() {
    let (server, previous) = (Server::find(), previous());
    if !numbers_migrations(&previous) {
        eprintln!("skipped, nothing was tested: {} makes databases that this version refuses", previous.display());
        return;
    }
    let database = server.database("upgrade").await;
    // The first gate makes the database as its version has it; the second migrates it while the
    // first serves.
    let mut house = House::new(Plan { database: &database, gates: 2, first: &previous, ..Plan::default() }).await;
    let mut calls = Vec::new();
    for round in 0..20 {
        for gate in [0, 1] {
            let body = if round % 4 == 3 {
                streamed("plain", "[[sim:tokens=5]] hi")
            } else {
                chat("plain", "[[sim:tokens=5]] hi")
            };
            let reply = house.ask(gate, &body).await;
            assert_eq!(reply.status(), 200);
            calls.push(text(&json!(reply.headers()["x-request-id"].to_str().expect("text"))));
            reply.bytes().await.expect("a body");
        }
    }
    house.quiet().await;
    both_audits(&house, 40).await;
    // Receipts of either are signed by both.
    for call in [&calls[0], &calls[1]] {
        for gate in &house.gates {
            let url = format!("{}/v1/usage/{call}/receipt", gate.url());
            let reply = house.http.get(url).bearer_auth(&house.key).send().await.expect("a reply");
            assert_eq!(reply.status(), 200, "{call}");
        }
    }

    // A call runs on the old replica while the new one starts again; then the old one is killed.
    let open = house.ask(0, &streamed("plain", "[[sim:tokens=400 delay_ms=50]] hi")).await;
    assert_eq!(open.status(), 200);
    house.gates[1].kill();
    house.gates[1].start().await;
    let asked = house.ask(0, &chat("plain", "[[sim:tokens=5]] hi")).await;
    assert_eq!(asked.status(), 200);
    asked.bytes().await.expect("a body");
    house.gates[0].kill();
    drop(open);

    // The old executable is not started again on a database that a newer one has migrated, and
    // leaves everything as it is.
    house.gates[0].spawn();
    let until = Instant::now() + HANG;
    let sound = loop {
        let process = house.gates[0].process.as_mut().expect("started");
        if let Some(ended) = process.ended() {
            break !ended.success() && process.logged().contains("newer version");
        }
        // It may, where the newer one only added something.
        if house.gates[0].is_ready().await {
            break true;
        }
        assert!(Instant::now() < until, "it neither serves nor ends");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    assert!(sound, "{}", house.gates[0].logged());
    if let Some(mut left) = house.gates[0].process.take() {
        left.kill();
    }
    assert_eq!(house.ask(1, &chat("plain", "[[sim:tokens=5]] hi")).await.status(), 200);

    // It is upgraded, and ends what its predecessor left.
    house.gates[0].executable = Path::new(TOLLGATE).to_owned();
    house.gates[0].start().await;
    assert_eq!(house.ask(0, &chat("plain", "[[sim:tokens=5]] hi")).await.status(), 200);
    house.quiet().await;
    house.verified().await;
}

/// Whether its databases have the table by which this version knows their shape; the schema is in
/// the executable as text.
fn numbers_migrations(executable: &Path) -> bool {
    let bytes = std::fs::read(executable).expect("the executable of an earlier version");
    let table = b"CREATE TABLE migration (";
    bytes.windows(table.len()).any(|part| part == table)
}

/// Either version finds that the books are sound, and the new one tells which rows the old one
/// wrote.
async fn both_audits(house: &House, rows: u64) {
    for gate in &house.gates {
        let report: Value = gate.cli(&["ledger", "verify", "--strict"]).await;
        assert_eq!((&report["breaches"], report["usage_rows"].as_u64()), (&json!([]), Some(rows)), "{report}");
    }
    let report = house.gates[1].cli(&["ledger", "verify"]).await;
    let unhashed = report["unhashed_rows"].as_u64();
    assert!(
        unhashed == Some(0) || unhashed == Some(rows / 2),
        "all of the old one, or none if it hashes too: {report}"
    );
}
