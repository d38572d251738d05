//! Usage rows, from which receipts are signed: whatever is changed in one shows, on both engines.
//! The columns are asked of the database, so that a new one cannot be forgotten: it is under the
//! hash (`row_hash.rs`), or this fails.

use crate::common::House;
use crate::hand::Hand;
use tollgate_store::testing::PostgresServer;
use tollgate_store::{AccountId, AuditReport, CallId, CreditKind, Pot, Receipted, StoreError};

/// Columns that may change: the refund of a call comes after its row and has its own entry (I11,
/// I12).
const CHANGES: &str = "refunded";
/// Of a row that has an entry, the entry's word counts.
const OWN_HASH: &str = "hash";

#[tokio::test]
async fn every_column_of_a_usage_row_is_under_a_hash() {
    every_column(House::open("sqlite").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_column_of_a_usage_row_is_under_a_hash_on_postgres() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    every_column(House::open(&server.database("columns").await.expect("a database")).await).await;
}

#[tokio::test]
async fn rows_that_were_exchanged_deleted_or_unhashed_show() {
    other_ways(House::open("sqlite").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_exchanged_deleted_or_unhashed_show_on_postgres() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let server = PostgresServer::start(dir.path()).expect("a PostgreSQL server");
    other_ways(House::open(&server.database("exchanged").await.expect("a database")).await).await;
}

/// Three calls of one account: charged, free, refused.
async fn three_calls(h: &House) -> (AccountId, [CallId; 3]) {
    let c = h.customer(0, 1_000).await;
    let charged = h.held(&c, 100).await;
    h.store.close(h.ending(&c, charged, 60)).await.expect("closed");
    let free = h.held(&c, 100).await;
    h.store.close(h.ending(&c, free, 0)).await.expect("closed");
    let refused = h.maker.call();
    h.store.note_refusal(refused, c.account, "insufficient_balance".into(), h.facts(&c, 0));
    // Readers wait for what was written before.
    while h.store.usage_of(c.account, refused).await.expect("reading").is_none() {
        tokio::task::yield_now().await;
    }
    (c.account, [charged, free, refused])
}

async fn audit(h: &House) -> AuditReport {
    h.store.verify_strictly().await.expect("the audit runs")
}

/// Sums follow their rows on PostgreSQL, whoever changes them, and on SQLite only where we do:
/// damage.rs looks at them.
fn broken(report: &AuditReport) -> Vec<&'static str> {
    report.breaches.iter().map(|breach| breach.invariant).filter(|number| *number != "I21").collect()
}

/// Another value of a column, in the words of both engines.
fn changed(column: &str, kind: &str) -> String {
    let id = "x'0a0b0c0d0e0f000102030405060708ff'";
    match kind {
        "blob" | "bytea" if column == OWN_HASH => "zeroblob(32)".to_owned(),
        "blob" | "bytea" => id.to_owned(),
        "text" => format!("coalesce({column}, '') || '!'"),
        "boolean" => format!("NOT {column}"),
        "integer" if column == "estimated" => format!("1 - {column}"),
        "integer" | "bigint" | "smallint" => format!("coalesce({column}, 0) + 1"),
        other => panic!("{column} is of the type {other}: say here how to change it"),
    }
}

fn of(call: CallId) -> String {
    let digits: String = call.0.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("call_id = x'{digits}'")
}

async fn every_column(h: House) {
    let (account, calls) = three_calls(&h).await;
    let before = audit(&h).await;
    assert_eq!((broken(&before), before.usage_rows, before.unhashed_rows), (vec![], 3, 0));
    let hand = Hand::of(&h).await;
    hand.change("CREATE TABLE saved AS SELECT * FROM usage").await.expect("saved");
    let columns = hand.columns("usage").await;
    assert!(columns.len() > 34, "{columns:?}");
    for (column, kind) in &columns {
        for call in &calls {
            let damage = format!("UPDATE usage SET {column} = {} WHERE {}", changed(column, kind), of(*call));
            hand.change(&damage).await.unwrap_or_else(|e| panic!("{damage}: {e}"));
            let found = audit(&h).await;
            let named = found.breaches.iter().filter(|b| b.invariant == "I19").flat_map(|b| &b.rows);
            let named = named.filter(|row| row.contains(&call.to_string())).count();
            match column.as_str() {
                CHANGES => assert!(broken(&found).contains(&"I11") && named == 0, "{damage}: {:?}", found.breaches),
                "account_id" | "call_id" => assert!(!found.breaches.is_empty(), "{damage}"),
                _ => assert_eq!(named, 1, "{damage}: {:?}", found.breaches),
            }
            if !["account_id", "call_id", CHANGES, OWN_HASH].contains(&column.as_str()) {
                let signed = h.store.receipt(account, *call).await;
                assert!(matches!(signed, Err(StoreError::Broken(_))), "{damage}: signed {}", signed.is_ok());
            }
            hand.change("DELETE FROM usage; INSERT INTO usage SELECT * FROM saved").await.expect("as it was");
        }
    }
    hand.change("DROP TABLE saved").await.expect("forgotten");
    for call in calls {
        assert!(matches!(h.store.receipt(account, call).await, Ok(Receipted::Signed(_))), "{call}");
    }
    h.close().await;
}

async fn other_ways(h: House) {
    let c = h.customer(0, 1_000).await;
    let (one, other) = (h.held(&c, 100).await, h.held(&c, 100).await);
    for (call, raw) in [(one, "{\"prompt_tokens\":1}"), (other, "{\"prompt_tokens\":2}")] {
        let mut end = h.ending(&c, call, 60);
        end.row.raw_usage = Some(raw.into());
        h.store.close(end).await.expect("closed");
    }
    h.credit(&c, "more", CreditKind::TopUp, Pot::Paid, 5).await.expect("credit");
    h.credit(&c, "sorry", CreditKind::Refund { call: one }, Pot::Paid, 20).await.expect("refunded");
    assert_eq!(broken(&audit(&h).await), Vec::<&str>::new(), "a refund changes its row, as it may");

    let hand = Hand::of(&h).await;
    hand.change("CREATE TABLE saved AS SELECT * FROM usage").await.expect("saved");
    let back = "DELETE FROM usage; INSERT INTO usage SELECT * FROM saved";
    // Two calls of one amount say each other's words.
    let exchange = format!(
        "UPDATE usage SET raw_usage = (SELECT k.raw_usage FROM saved k WHERE k.call_id <> usage.call_id) WHERE {} OR {}",
        of(one),
        of(other)
    );
    hand.change(&exchange).await.expect("exchanged");
    let found = audit(&h).await;
    assert_eq!(broken(&found), ["I19"]);
    assert_eq!(found.breaches[0].rows.len(), 2);
    hand.change(back).await.expect("as it was");
    // The entry has the word: a row does not become one of before by losing its hash.
    hand.change(&format!("UPDATE usage SET model = 'other', hash = NULL WHERE {}", of(one))).await.expect("unhashed");
    let found = audit(&h).await;
    assert_eq!((broken(&found), found.breaches[0].rows.len()), (vec!["I19"], 1));
    hand.change(back).await.expect("as it was");
    hand.change(&format!("DELETE FROM usage WHERE {}", of(other))).await.expect("deleted");
    assert_eq!(broken(&audit(&h).await), ["I11"]);
    hand.change(back).await.expect("as it was");

    // A refusal has no entry. One whose hash was taken away counts among those from before, with
    // its time.
    let (_, [.., refused]) = three_calls(&h).await;
    assert_eq!(audit(&h).await.unhashed_rows, 0);
    hand.change(&format!("UPDATE usage SET hash = NULL, reason = 'other' WHERE {}", of(refused)))
        .await
        .expect("unhashed");
    let found = audit(&h).await;
    assert_eq!((broken(&found), found.unhashed_rows), (vec![], 1));
    assert_eq!(found.unhashed_until_ms, Some(h.clock.now()));
    hand.change("DROP TABLE saved").await.expect("forgotten");
    h.close().await;
}
