//! What is set aside for a call before it is sent, and what becomes of it when the ledger is late
//! or the gateway dies.

use crate::house::{House, Plan, call_id, chat, counted, error_of, events, text_of};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tollgate_store::testing::break_syncs;
use tollgate_store::{CallId, DataLocation, Ending, Options, Store, UsageRow};

/// Output is dear, so that the number of tokens held for can be read off the hold; the prompt costs
/// next to nothing.
const CATALOG: &str = r#"
[model."open-ended"]
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."at-most-500"]
max_output_tokens = 500
price = { input = 1, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
[model."dear-faces"]
max_output_tokens = 100
price = { input = 1_000_000, output = 1_000_000, cache_write = 5_000_000 }
route = [{ provider = "sim", upstream_model = "sim-plain" }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_hold_is_for_the_most_that_was_asked_for() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    for (model, extra, tokens) in [
        ("open-ended", json!({}), 16_384),
        ("open-ended", json!({ "max_tokens": 100 }), 100),
        ("open-ended", json!({ "max_completion_tokens": 70 }), 70),
        ("open-ended", json!({ "max_tokens": 30_000 }), 30_000),
        ("open-ended", json!({ "max_tokens": 100, "n": 3 }), 300),
        ("at-most-500", json!({}), 500),
        ("at-most-500", json!({ "max_tokens": 501 }), 500),
    ] {
        let row = held(&house, model, "[[sim:tokens=2]] hi", &extra).await;
        assert_eq!(row.hold.nano() / 1_000, tokens, "{model} {extra}");
        assert!(row.charge.nano() < row.hold.nano(), "the rest went back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hold_is_at_the_dearest_face_that_can_apply() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let words = "word ".repeat(200);
    let row = held(&house, "dear-faces", &format!("{words} [[sim:tokens=2]]"), &json!({ "max_tokens": 10 })).await;
    // Every token of the prompt may turn out to be written to the provider's cache.
    assert!(row.hold.nano() >= 200 * 5_000 + 10 * 1_000, "{}", row.hold);
    assert_eq!(row.charge.nano(), i64::try_from(row.counters.input + 2).expect("fits") * 1_000);
}

async fn held(house: &House, model: &str, text: &str, extra: &Value) -> UsageRow {
    let mut body = chat(text);
    body["model"] = json!(model);
    body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
    let reply = house.post(&body).send().await.expect("a reply");
    assert_eq!(reply.status(), 200, "{}", reply.text().await.unwrap_or_default());
    house.row(call_id(&reply)).await
}

/// The journal cannot be synced and somebody else keeps the database locked: the provider has
/// answered, and the hold is not on the disk.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_withheld_and_free_when_the_hold_is_not_durable_in_time() {
    let house = House::with(Plan::impatient()).await;
    let database = rusqlite::Connection::open(house.dir.join("data/tollgate.db")).expect("the database");
    database.execute_batch("BEGIN IMMEDIATE").expect("locked");
    break_syncs(&house.dir.join("data"));
    let reply = house.ask("hello [[sim:tokens=3]]").await;
    let call = call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("ledger_unavailable")));
    assert_eq!(house.sim.received().len(), 1, "it was sent while the hold was on its way");
    database.execute_batch("ROLLBACK").expect("unlocked");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::UpstreamFault, "hold_not_durable"));
    house.quiet().await;
    assert_eq!((row.charge.nano(), house.available().await), (0, 10_000_000_000));
}

/// What the next start would charge if the gateway died now: the data folder as `kill -9` would
/// leave it, opened.
async fn after_a_crash(house: &House, call: CallId) -> UsageRow {
    let copy = tempfile::tempdir().expect("a folder");
    // Journal first: what it gives up between the copies is in the database by then.
    for name in ["journal.0", "journal.1", "tollgate.db", "tollgate.db-wal"] {
        copy_file(&house.dir.join("data").join(name), &copy.path().join(name));
    }
    let place = DataLocation { url: "sqlite".to_owned(), data_dir: copy.path().to_owned() };
    let world = house.running().app.world.for_store();
    let opened = Store::open(place, Options::default(), world).await.expect("opened");
    let row = opened.store.usage_of(house.account, call).await.expect("read").expect("settled at the start");
    opened.store.shut().await;
    row
}

fn copy_file(from: &Path, to: &Path) {
    std::fs::copy(from, to).expect("a copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_charges_at_most_what_was_noted_before_it() {
    let house = House::with(Plan { catalog: CATALOG, patience: "60s", ..Plan::default() }).await;
    // A note at the first output, one after 4,096 tokens, one after five seconds.
    for (text, least) in [
        ("[[sim:hang_midstream after=3 tokens=9]]", 1),
        ("[[sim:hang_midstream after=90 tokens=10000 chunks=100]]", 9_000 - 4_096 - 200),
        ("[[sim:tokens=120 delay_ms=150]]", 20),
    ] {
        let mut body = chat(text);
        body["stream"] = json!(true);
        body["model"] = json!("open-ended");
        let mut reply = house.post(&body).send().await.expect("a reply");
        let call = call_id(&reply);
        let mut seen = String::new();
        let until = tokio::time::Instant::now() + Duration::from_secs(12);
        while let Ok(Ok(Some(chunk))) = tokio::time::timeout_at(until, reply.chunk()).await {
            seen.push_str(&String::from_utf8_lossy(&chunk));
        }
        let whole = &seen[..seen.rfind("\n\n").expect("an event")];
        let delivered = counted(&text_of(&events(whole)));
        let row = after_a_crash(&house, call).await;
        assert_eq!((row.ending, row.reason.as_str(), row.estimated), (Ending::Expired, "crashed", true));
        let noted = row.counters.output;
        assert!(noted >= least && noted <= delivered, "{text}: {noted} of {delivered}");
        assert!(row.charge.nano() > 0 && row.charge <= row.hold);
        drop(reply);
        house.quiet().await;
    }
}
