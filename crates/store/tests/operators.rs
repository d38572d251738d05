//! What operators rely on: the audit finds what was tampered with, and the socket does what the store does.

mod common;

use std::os::unix::fs::PermissionsExt;

use common::House;
use tollgate_store::admin::{self, Audit, CallError, Command};
use tollgate_store::{Credit, CreditKind, NewAccount, Pot};

#[tokio::test]
async fn the_audit_finds_every_kind_of_damage() {
    let damages = [
        ("I1", "UPDATE account SET paid_available = paid_available + 1"),
        ("I1", "UPDATE key SET spent = spent + 1"),
        (
            "I3",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'00', 7, id, 0, -9999, 1 FROM account",
        ),
        (
            "I5",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT zeroblob(17), 2, id, 0, 0, 1 FROM account",
        ),
        (
            "I7",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at, expires_at) SELECT zeroblob(17), 0, id, 0, 0, 1, 5 FROM account",
        ),
        ("I1", "UPDATE key SET day_used = day_used - 1"),
        ("I1", "UPDATE account SET month_used = month_used + 1"),
        ("I1", "UPDATE trial_lot SET free = free + 1"),
        ("I1", "DELETE FROM trial_lot"),
        // Credit that expires before its time, and paid-only calls that took trial money.
        (
            "I3",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT CAST(credit || x'cb00000001' AS BLOB), 9, account_id, 1, 0, 1 FROM trial_lot",
        ),
        (
            "I16",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at, paid_only, expires_at) SELECT zeroblob(17), 0, id, 1, 0, 1, 1, 5 FROM account",
        ),
        ("I2", "UPDATE account SET paid_available = paid_available - 1"),
        (
            "I4",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT zeroblob(17), 4, id, 0, 0, 1 FROM account",
        ),
        ("I6", "DROP TRIGGER entry_no_update; UPDATE entry SET paid = paid + 1 WHERE kind = 0"),
        ("I11", "UPDATE usage SET charge = charge + 10, write_off = write_off - 10"),
        ("I13", "INSERT INTO idem SELECT account_id, x'00', x'00', call_id, 1, 0, NULL, NULL, NULL FROM usage"),
        ("I16", "DROP TRIGGER entry_no_update; UPDATE entry SET paid_only = 1, trial = 1 WHERE kind = 0"),
        ("I19", "DROP TRIGGER entry_no_update; UPDATE entry SET reason = 'x' WHERE kind = 6"),
        ("I19", "DROP TRIGGER entry_no_update; UPDATE entry SET hash = zeroblob(32) WHERE kind = 0"),
        ("I19", "DROP TRIGGER entry_no_delete; DELETE FROM entry WHERE kind = 1"),
        ("I19", "DROP TRIGGER entry_no_delete; DELETE FROM entry"),
        (
            "I19",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'00', 7, id, 0, 0, 9e15 FROM account",
        ),
        ("I19", "UPDATE account SET head = zeroblob(32)"),
        ("I11", "UPDATE usage SET charge = charge - 1"),
        ("I11", "DELETE FROM usage"),
        ("I12", "UPDATE usage SET refunded = charge + 1"),
        ("I18", "UPDATE usage SET input = input + 1000"),
        ("I18", "UPDATE price SET json = replace(json, '\"input\":1', '\"input\":2')"),
        (
            "I20",
            "INSERT INTO entry (op_id, kind, account_id, trial, paid, at) SELECT x'01', 7, id, 0, 0, 1 FROM account",
        ),
    ];
    for (invariant, damage) in damages {
        let h = House::open("sqlite").await;
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
        h.store.close(h.ending(&c, call, 60)).await.expect("closed");
        let before = h.store.verify().await.expect("the audit runs");
        assert_eq!((before.breaches.len(), before.entries, before.usage_rows), (0, 4, 1));
        let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
        file.execute_batch(damage).unwrap_or_else(|e| panic!("{damage}: {e}"));
        let report = h.store.verify().await.expect("the audit runs");
        let found: Vec<_> = report.breaches.iter().map(|b| b.invariant).collect();
        assert!(found.contains(&invariant), "{damage}: found {found:?}");
        assert!(h.store.gauges().breaches > 0);
        h.store.shut().await;
    }
}

/// The audit of every minute looks at what changed and finds what is wrong with it, and only that.
#[tokio::test]
async fn the_audit_goes_on_with_what_has_changed() {
    let h = House::open("sqlite").await;
    let c = h.customer(50, 1_000).await;
    let other = h.customer(0, 1_000).await;
    assert_eq!(h.store.verify_changed().await.expect("the audit runs"), None, "nothing to go on from");
    let open = h.held(&c, 30).await;
    h.store.verify().await.expect("the audit runs");
    let changed = async || h.store.verify_changed().await.expect("the audit runs").expect("there was a full one");
    let quiet = changed().await;
    assert_eq!((quiet.entries, quiet.accounts, quiet.breaches.len()), (0, 0, 0));
    // A hold from before the audit is extended and ends, another begins and stays open, a refund.
    h.extend(h.more(&c, open, 1, 40)).await.expect("more");
    h.store.close(h.ending(&c, open, 60)).await.expect("closed");
    let stays = h.held(&c, 10).await;
    h.credit(&c, "back", CreditKind::Refund { call: open }, Pot::Paid, 10).await.expect("a refund");
    let report = changed().await;
    assert_eq!((report.entries, report.accounts, report.usage_rows), (4, 1, 1));
    assert!(report.breaches.is_empty(), "{:?}", report.breaches);
    h.store.close(h.ending(&c, stays, 0)).await.expect("closed");
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    file.execute_batch("UPDATE account SET paid_available = paid_available + 7").expect("damage");
    let found: Vec<_> = changed().await.breaches.iter().flat_map(|b| b.rows.clone()).collect();
    assert!(found.len() == 1 && found[0].contains(&c.account.to_string()), "only what changed is looked at: {found:?}");
    assert_eq!(h.store.gauges().breaches, 1);
    let call = h.held(&other, 10).await;
    h.store.close(h.ending(&other, call, 10)).await.expect("closed");
    file.execute_batch("UPDATE account SET paid_available = paid_available - 7; UPDATE usage SET charge = charge + 1 WHERE charge = 10")
        .expect("another damage");
    let found: Vec<_> = changed().await.breaches.iter().map(|b| b.invariant).collect();
    assert_eq!(found, ["I11", "I18"]);
    assert!(changed().await.breaches.is_empty(), "seen and told");
    assert!(h.store.gauges().breaches > 0, "not forgotten before a full audit says so");
    file.execute_batch("UPDATE usage SET charge = charge - 1 WHERE charge = 11").expect("mended");
    h.store.verify().await.expect("the audit runs");
    assert_eq!(h.store.gauges().breaches, 0);
    h.close().await;
}

/// What passes in life does not pass strictly.
#[tokio::test]
async fn the_strict_audit() {
    let h = House::open("sqlite").await;
    let c = h.customer(0, 100).await;
    let call = h.held(&c, 100).await;
    h.store.close(h.ending(&c, call, 130)).await.expect("closed");
    assert!(h.store.verify().await.expect("the audit runs").breaches.is_empty());
    let strict = h.store.verify_strictly().await.expect("the audit runs");
    assert_eq!(strict.breaches.iter().map(|b| b.invariant).collect::<Vec<_>>(), ["I17"]);
    h.close().await;
}

#[tokio::test]
async fn the_ledger_cannot_be_rewritten() {
    let h = House::open("sqlite").await;
    h.customer(0, 1_000).await;
    let file = rusqlite::Connection::open(h.place.data_dir.join("tollgate.db")).expect("the file");
    assert!(file.execute_batch("UPDATE entry SET paid = 5").is_err());
    assert!(file.execute_batch("DELETE FROM entry").is_err());
    h.close().await;
}

#[tokio::test]
async fn the_socket_does_what_the_store_does() {
    let h = House::open("sqlite").await;
    let path = h.place.data_dir.join("admin.sock");
    let none = admin::call(&path, &Command::LedgerVerify { how: Audit::Full }).await;
    assert!(matches!(none, Err(CallError::NoServer)));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut server = tokio::task::JoinSet::new();
    let (store, socket) = (h.store.clone(), path.clone());
    server.spawn(async move {
        admin::listen(&socket, store, async move {
            let _ = stopped.await;
        })
        .await
    });
    while !path.exists() {
        tokio::task::yield_now().await;
    }
    let new = NewAccount { name: "Ada".into(), ..NewAccount::default() };
    let made = admin::call(&path, &Command::AccountCreate { account: new }).await.expect("an account");
    let account = made["id"].as_str().expect("an id").parse().expect("an account id");
    let credit = Credit {
        id: "pay-1".into(),
        account,
        kind: CreditKind::TopUp,
        pot: Pot::Paid,
        amount: tollgate_catalog::Money::from_nano(5),
        expires_at: None,
        reason: String::new(),
        actor: "operator".into(),
    };
    let credited = admin::call(&path, &Command::Credit { credit }).await.expect("credit");
    assert_eq!((&credited["applied"], &credited["account"]["paid_available"]), (&true.into(), &5.into()));
    let report = admin::call(&path, &Command::LedgerVerify { how: Audit::Full }).await.expect("a report");
    assert_eq!(report["breaches"], serde_json::json!([]));
    let missing = admin::call(&path, &Command::AccountShow { account: h.maker.account() }).await;
    assert!(matches!(missing, Err(CallError::Refused(_))));
    let mode = std::fs::metadata(&path).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    stop.send(()).expect("the server listens");
    server.join_next().await.expect("the task").expect("no panic").expect("no error");
    assert!(!path.exists());
    h.close().await;
}
