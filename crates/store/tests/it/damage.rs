//! Somebody changes the database behind our back: every way of it is found by the audit, on both
//! engines. The list breaks every invariant the audit claims to look at, and a test says so.

use std::collections::BTreeSet;

use crate::common::{Customer, House};
use crate::hand::Hand;
use tollgate_store::testing::PostgresServer;
use tollgate_store::{
    Close, Credit, CreditKind, Ending, EntryPage, INVARIANTS, Looked, NewTask, Pot, SentTo, TaskEnd, TaskFailure,
    TaskId, TaskState,
};

/// What it breaks and how; written for SQLite, read by PostgreSQL after
/// [`crate::hand::in_postgres`]. Triggers are off.
const DAMAGES: &[(&str, &str)] = &[
    ("I1", "UPDATE account SET paid_available = paid_available + 1"),
    ("I1", "UPDATE key SET spent = spent + 1"),
    ("I1", "UPDATE key SET day_used = day_used - 1"),
    ("I1", "UPDATE account SET month_used = month_used + 1"),
    ("I1", "UPDATE trial_lot SET free = free + 1"),
    ("I1", "DELETE FROM trial_lot"),
    ("I1", "UPDATE account SET topped_up = NOT topped_up"),
    ("I2", "UPDATE account SET paid_available = paid_available - 1"),
    (
        "I3",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'00', 7, id, 0, -9999, 1 FROM account",
    ),
    // Credit that expires before its time.
    (
        "I3",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT CAST(credit || x'cb00000001' AS BLOB), 9, account_id, 1, 0, 1 FROM trial_lot",
    ),
    (
        "I4",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT zeroblob(17), 4, id, 0, 0, 1 FROM account",
    ),
    (
        "I5",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT zeroblob(17), 2, id, 0, 0, 1 FROM account",
    ),
    ("I6", "UPDATE entry SET paid = paid + 1 WHERE kind = 0"),
    ("I11", "UPDATE usage SET charge = charge + 10, write_off = write_off - 10"),
    ("I11", "UPDATE usage SET charge = charge - 1"),
    ("I11", "DELETE FROM usage"),
    ("I12", "UPDATE usage SET refunded = charge + 1"),
    ("I13", "INSERT INTO idem SELECT account_id, x'00', x'00', call_id, 1, 0, NULL, NULL, NULL FROM usage LIMIT 1"),
    // A task that is open is said to be over, one that is over to be open; the end of one is not in
    // the log; a failed one cost something.
    ("I14", "UPDATE task SET state = 5 WHERE state < 5"),
    ("I14", "UPDATE task SET state = 3 WHERE state = 5"),
    ("I14", "DELETE FROM usage WHERE call_id IN (SELECT call_id FROM task WHERE state = 5)"),
    ("I14", "UPDATE usage SET charge = 1 WHERE call_id IN (SELECT call_id FROM task WHERE state = 6)"),
    // Paid-only calls that took trial money.
    (
        "I16",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at, paid_only, expires_at) SELECT zeroblob(17), 0, id, 1, 0, 1, true, 5 FROM account",
    ),
    ("I16", "UPDATE entry SET paid_only = true, trial = 1 WHERE kind = 0"),
    (
        "I17",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT zeroblob(17), 5, id, 0, 9, 1 FROM account",
    ),
    ("I18", "UPDATE usage SET input = input + 1000"),
    // Of a call that was free, too: its receipt names the price.
    ("I18", "UPDATE usage SET price_id = x'00000000000000000000000000000000' WHERE charge = 0"),
    ("I18", "UPDATE price SET json = replace(json, '\"input\":1', '\"input\":2')"),
    ("I19", "UPDATE entry SET reason = 'no' WHERE kind = 6"),
    ("I19", "UPDATE entry SET hash = zeroblob(32) WHERE kind = 0"),
    ("I19", "DELETE FROM entry WHERE kind = 1"),
    ("I19", "DELETE FROM entry"),
    (
        "I19",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'00', 7, id, 0, 0, 9e15 FROM account",
    ),
    ("I19", "UPDATE account SET head = zeroblob(32)"),
    // The rows that receipts are signed from; rows.rs changes every column of them.
    ("I19", "UPDATE usage SET model = 'dearer'"),
    ("I19", "UPDATE entry SET reference = NULL WHERE kind = 1"),
    ("I20", "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'01', 7, id, 0, 0, 1 FROM account"),
    ("I21", "UPDATE usage_quarter SET charge = charge + 1"),
    ("I21", "UPDATE usage_quarter SET seconds = seconds + 1"),
    ("I21", "UPDATE usage_quarter SET quarter = quarter + 1"),
    ("I21", "UPDATE usage_quarter SET upstream_model = 'other'"),
    ("I21", "DELETE FROM usage_quarter"),
];
/// SQLite knows open holds from the ledger alone.
const OF_SQLITE: &[(&str, &str)] = &[
    (
        "I7",
        "INSERT INTO entry (op_id, kind, account_id, trial, paid, at, expires_at) SELECT zeroblob(17), 0, id, 0, 0, 1, 5 FROM account",
    ),
    // Sums that are not merged yet.
    ("I21", "DELETE FROM usage_unmerged"),
    ("I21", "INSERT INTO usage_unmerged (sums) SELECT sums FROM usage_unmerged"),
    ("I21", "UPDATE usage_unmerged SET sums = substr(sums, 1, length(sums) - 1)"),
    ("I21", "UPDATE usage_unmerged SET sums = 'no bytes'"),
];
/// PostgreSQL has a table of them.
const OF_POSTGRES: &[(&str, &str)] = &[
    ("I5", "DELETE FROM open_hold"),
    ("I5", "UPDATE open_hold SET paid = paid + 1"),
    ("I7", "UPDATE open_hold SET due_at = 5"),
];

#[tokio::test]
async fn the_audit_finds_every_kind_of_damage() {
    for (invariant, damage) in DAMAGES.iter().chain(OF_SQLITE) {
        found(House::open("sqlite").await, invariant, damage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_finds_every_kind_of_damage_on_postgres() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    for (n, (invariant, damage)) in DAMAGES.iter().chain(OF_POSTGRES).enumerate() {
        let url = server.database(&format!("damage_{n}")).await.expect("a database");
        found(House::open(&url).await, invariant, damage).await;
    }
}

#[test]
fn the_list_breaks_whatever_the_audit_looks_at() {
    let claimed: BTreeSet<&str> =
        INVARIANTS.iter().filter(|(.., looked)| *looked != Looked::Elsewhere).map(|(number, ..)| *number).collect();
    for of_one in [OF_SQLITE, OF_POSTGRES] {
        let broken: BTreeSet<&str> = DAMAGES.iter().chain(of_one).map(|(number, _)| *number).collect();
        assert_eq!(broken, claimed);
    }
}

async fn found(h: House, invariant: &str, damage: &str) {
    let c = h.customer(0, 1_000).await;
    let gift = Credit {
        id: "gift".into(),
        account: c.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: tollgate_catalog::Money::from_nano(10),
        expires_at: Some(h.clock.now() + 1_000_000),
        reason: String::new(),
        actor: "operator".into(),
    };
    h.store.credit(gift).await.expect("credit");
    let call = h.held(&c, 100).await;
    // Whoever reads brings the hold into the ledger: an entry of its own.
    h.store.last_entry().await.expect("read");
    h.store.close(h.ending(&c, call, 60)).await.expect("closed");
    // On SQLite this brings the sums so far into their table; what follows is beside it.
    h.store.fold_sums().await.expect("a step");
    for charge in [40, 0] {
        let (id, fence) = begun(&h, &c, 50).await;
        h.store.finish_task(end(&h, &c, id, fence, charge)).await.expect("ended").expect("by us");
    }
    begun(&h, &c, 50).await;
    let before = h.store.verify_strictly().await.expect("the audit runs");
    assert_eq!((before.breaches.as_slice(), before.entries, before.usage_rows), (&[][..], 9, 3));
    let hand = Hand::without_triggers(&h).await;
    hand.change(damage).await.unwrap_or_else(|e| panic!("{damage}: {e}"));
    let report = h.store.verify_strictly().await.expect("the audit runs");
    let found: Vec<_> = report.breaches.iter().map(|b| b.invariant).collect();
    assert!(found.contains(&invariant), "{damage}: found {found:?}");
    assert!(found.iter().all(|number| report.checked.contains(number)), "{found:?} of {:?}", report.checked);
    assert!(h.store.gauges().breaches > 0);
    // Two threads find what one finds.
    let two = h.store.verify().await.expect("the audit runs");
    assert_eq!(two, h.store.verify_quietly().await.expect("the audit runs"), "{damage}");
    h.store.shut().await;
}

/// A task at its provider, and the fence to end it with.
async fn begun(h: &House, c: &Customer, amount: i64) -> (TaskId, i64) {
    let mut wish = h.wish(c, amount);
    wish.endpoint = "/v1/videos";
    wish.expires_at += 86_400_000;
    let new = NewTask { plan: "{}".into(), webhook_url: None, lease_ms: 60_000 };
    let begun = h.store.begin_task(wish, new).await.expect("a task");
    let to =
        SentTo { provider: "sim".into(), upstream_model: "wan".into(), host: "sim.example".into(), key: "0".into() };
    assert!(h.store.task_sending(begun, to, 60_000).await.expect("written"));
    (begun.id, begun.fence)
}

fn end(h: &House, c: &Customer, id: TaskId, fence: i64, charge: i64) -> TaskEnd {
    let failure = TaskFailure { code: "bad".into(), message: "It was bad.".into() };
    TaskEnd {
        fence,
        state: if charge > 0 { TaskState::Completed } else { TaskState::Failed },
        result: (charge > 0).then(|| "{}".into()),
        failure: (charge == 0).then_some(failure),
        forgiven: false,
        webhook_url: None,
        close: Close { ending: Ending::Answered, ..h.ending(c, id.call(), charge) },
    }
}

#[tokio::test]
async fn the_ledger_cannot_be_rewritten() {
    let h = House::open("sqlite").await;
    refused(&h, &["UPDATE entry SET paid = 5", "DELETE FROM entry"]).await;
    h.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    let h = House::open(&server.database("rewritten").await.expect("a database")).await;
    refused(&h, &["UPDATE entry SET paid = 5", "DELETE FROM entry", "TRUNCATE entry", "TRUNCATE entry CASCADE"]).await;
    h.close().await;
    a_round_that_fails_is_made_good(House::open(&server.database("round").await.expect("a database")).await).await;
    an_export_is_one_moment(House::open(&server.database("export").await.expect("a database")).await).await;
}

/// A number was given out and is committed after larger ones: an export waits for it rather than go
/// past it.
async fn an_export_is_one_moment(h: House) {
    let c = h.customer(0, 1_000).await;
    // Another replica with a slow commit; without the trigger it does not hold the account as well.
    let slow = Hand::without_triggers(&h).await;
    let late = "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'00', 7, id, 0, 0, 1 FROM account";
    slow.change("BEGIN").await.expect("begun");
    slow.change(late).await.expect("given a number");
    let call = h.held(&c, 100).await;
    let page = EntryPage { account: None, from: None, to: None, after: 0, until: None, limit: 100 };
    let seen: Vec<i64> = h.store.entries(page).await.expect("reading").iter().map(|e| e.seq).collect();
    assert_eq!(seen, [1, 3], "the second is under way");
    let asked = tokio::time::timeout(std::time::Duration::from_millis(300), h.store.last_entry()).await;
    assert!(asked.is_err(), "it waits: {asked:?}");
    slow.change("COMMIT").await.expect("late");
    let until = h.store.last_entry().await.expect("known now");
    assert_eq!(until, 3);
    h.store.close(h.ending(&c, call, 60)).await.expect("closed");
    let page = EntryPage { until: Some(until), ..page };
    let seen: Vec<i64> = h.store.entries(page).await.expect("reading").iter().map(|e| e.seq).collect();
    assert_eq!(seen, [1, 2, 3], "all of that moment and nothing after it");
    h.store.shut().await;
}

async fn refused(h: &House, changes: &[&str]) {
    h.customer(0, 1_000).await;
    let hand = Hand::of(h).await;
    for change in changes {
        let why = hand.change(change).await.expect_err(change);
        assert!(why.contains("append-only"), "{change}: {why}");
    }
}

#[tokio::test]
async fn a_round_that_fails_is_made_good_on_sqlite() {
    a_round_that_fails_is_made_good(House::open("sqlite").await).await;
}

/// The audit of every minute cannot read a table for once: it says so, and the next one misses
/// nothing of what it should have seen.
async fn a_round_that_fails_is_made_good(h: House) {
    let (c, quiet) = (h.customer(0, 1_000).await, h.customer(0, 1_000).await);
    h.store.verify().await.expect("the audit runs");
    let call = h.held(&c, 100).await;
    h.store.close(h.ending(&c, call, 60)).await.expect("closed");
    let hand = Hand::of(&h).await;
    hand.change("ALTER TABLE key RENAME TO key_away").await.expect("away");
    h.store.verify_changed().await.expect_err("a table is away");
    hand.change("ALTER TABLE key_away RENAME TO key").await.expect("back");
    hand.change("UPDATE account SET paid_available = paid_available + 7 WHERE paid_available = 1000")
        .await
        .expect("damage");
    let report = h.store.verify_changed().await.expect("the audit runs");
    let rows: Vec<&String> = report.breaches.iter().filter(|b| b.invariant == "I1").flat_map(|b| &b.rows).collect();
    assert!(rows.len() == 1 && rows[0].contains(&quiet.account.to_string()), "{:?}", report.breaches);
    assert!(h.store.gauges().breaches > 0);
    hand.change("UPDATE account SET paid_available = 1000 WHERE paid_available = 1007").await.expect("mended");
    h.close().await;
}
