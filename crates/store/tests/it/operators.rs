//! What operators rely on: the audit goes on from where it was, and the socket does what the store
//! does.

use std::os::unix::fs::PermissionsExt;

use crate::common::House;
use tollgate_store::admin::{self, AdminCommand, Audit, CallError};
use tollgate_store::{Credit, CreditKind, INVARIANTS, Looked, NewAccount, Pot};

/// The audit of every minute looks at what changed and finds what is wrong with it, and only that.
#[tokio::test]
async fn the_audit_goes_on_with_what_has_changed() {
    let h = House::open("sqlite").await;
    let c = h.customer(50, 1_000).await;
    let other = h.customer(0, 1_000).await;
    let gift = Credit {
        id: "gift".into(),
        account: other.account,
        kind: CreditKind::TopUp,
        pot: Pot::Trial,
        amount: tollgate_catalog::Money::from_nano(5),
        expires_at: Some(h.clock.now() + 1_000_000),
        reason: String::new(),
        actor: "operator".into(),
    };
    h.store.credit(gift).await.expect("credit");
    let open = h.held(&c, 30).await;
    let changed = async || h.store.verify_changed().await.expect("the audit runs");
    let first = changed().await;
    assert_eq!((first.entries, first.accounts, first.breaches.len()), (5, 2, 0), "nothing to go on from: all of it");
    assert!(first.checked.contains(&"I2") && !first.checked.contains(&"I17"), "{:?}", first.checked);
    let quiet = changed().await;
    assert_eq!((quiet.entries, quiet.accounts, quiet.breaches.len()), (0, 0, 0));
    for (number, _, looked) in INVARIANTS {
        assert_eq!(quiet.checked.contains(&number), looked == Looked::EveryMinute, "{number}");
    }
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
    file.execute_batch(
        "UPDATE account SET paid_available = paid_available - 7; UPDATE usage SET charge = charge + 1 WHERE charge = 10; \
         UPDATE trial_lot SET free = free + 1",
    )
    .expect("another damage");
    let found: Vec<_> = changed().await.breaches.iter().map(|b| b.invariant).collect();
    assert_eq!(found, ["I1", "I11", "I19", "I18"]);
    assert!(changed().await.breaches.is_empty(), "seen and reported");
    assert!(h.store.gauges().breaches > 0, "not forgotten before a full audit says so");
    file.execute_batch("UPDATE usage SET charge = charge - 1 WHERE charge = 11; UPDATE trial_lot SET free = free - 1")
        .expect("mended");
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
async fn the_socket_does_what_the_store_does() {
    let h = House::open("sqlite").await;
    let path = h.place.data_dir.join("admin.sock");
    let none = admin::call(&path, &AdminCommand::LedgerVerify { how: Audit::Full }).await;
    assert!(matches!(none, Err(CallError::NoServer)));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut server = tokio::task::JoinSet::new();
    let (store, socket) = (h.store.clone(), path.clone());
    let bound = admin::bind(&path).expect("a socket");
    server.spawn(async move {
        admin::listen((&socket, bound), store, async move {
            let _ = stopped.await;
        })
        .await
    });
    let new = NewAccount { name: "Ada".into(), ..NewAccount::default() };
    let made = admin::call(&path, &AdminCommand::AccountCreate { account: new, done: Default::default() })
        .await
        .expect("an account");
    let account = made["account_id"].as_str().expect("an id").parse().expect("an account id");
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
    let credited = admin::call(&path, &AdminCommand::Credit { credit, request: None }).await.expect("credit");
    assert_eq!((&credited["applied"], &credited["account"]["paid_available_nano_usd"]), (&true.into(), &5.into()));
    let report = admin::call(&path, &AdminCommand::LedgerVerify { how: Audit::Full }).await.expect("a report");
    assert_eq!(report["breaches"], serde_json::json!([]));
    let missing = admin::call(&path, &AdminCommand::AccountShow { account: h.maker.account() }).await;
    assert!(matches!(missing, Err(CallError::Refused(_))));
    let mode = std::fs::metadata(&path).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    stop.send(()).expect("the server listens");
    server.join_next().await.expect("the task").expect("no panic").expect("no error");
    assert!(!path.exists());
    h.close().await;
}
