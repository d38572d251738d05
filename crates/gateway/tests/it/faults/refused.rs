//! What is refused before anything is held or sent.

use super::{FUNDED, answered, free, rows};
use crate::house::{House, Plan, chat, error_of};
use serde_json::json;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_store::{Ending, Pot};

pub async fn a_bad_key() {
    let house = House::new().await;
    let now = house.running().app.world.now_ms();
    let expired = house.new_key(|key| key.expires_at = Some(now - 1)).await;
    let revoked = house.new_key(|_| {}).await;
    let store = &house.running().app.store;
    let hash = tollgate_gateway::who::key_cache::hash(&revoked);
    let id = store.keys(house.account).await.expect("keys").iter().find(|key| key.hash == hash).expect("the key").id;
    store.revoke_key(id).await.expect("revoked");
    let mut bodies = Vec::new();
    for key in ["sk-nobody", expired.as_str(), revoked.as_str()] {
        let request = house.http.post(house.url("/v1/chat/completions")).bearer_auth(key).json(&chat("hi"));
        let (status, error) = error_of(request.send().await.expect("a reply")).await;
        bodies.push((status, error));
    }
    assert!(bodies.iter().all(|body| *body == bodies[0] && body.0 == 401), "one answer for all: {bodies:?}");
    assert!(rows(&house).await.is_empty() && house.sim.received().is_empty());
    assert_eq!(house.available().await, FUNDED);
}

pub async fn a_request_that_cannot_be_read() {
    let house = House::new().await;
    for (body, code, param) in [
        (json!({ "model": "plain" }), "missing_parameter", "messages"),
        (json!({ "model": "plain", "messages": "x" }), "invalid_parameter", "messages"),
        (json!({ "model": "plain", "messages": [], "max_tokens": -1 }), "invalid_parameter", "max_tokens"),
    ] {
        let reply = house.post(&body).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str(), error["param"].as_str()), (400, Some(code), Some(param)), "{body}");
    }
    assert!(house.sim.received().is_empty() && rows(&house).await.is_empty());
    assert_eq!(house.available().await, FUNDED);
}

pub async fn a_model_without_a_price() {
    let house = House::new().await;
    let unpriced = "[model.\"gratis\"]\nsupported_endpoint_types = [\"openai\"]\n\
                    [[model.\"gratis\".route]]\nprovider = \"sim\"\nupstream_model = \"sim-plain\"\n";
    std::fs::write(house.dir.join("catalog/more.toml"), unpriced).expect("written");
    let Err(mistakes) = house.source.load() else { panic!("a model without a price was accepted") };
    assert!(mistakes.iter().any(|mistake| mistake.to_string().contains("gratis")), "{mistakes:?}");
    let mut body = chat("hi");
    body["model"] = json!("gratis");
    free(&house, house.post(&body).send().await.expect("a reply"), (404, "model_not_found"), None).await;
    assert!(house.sim.received().is_empty());
}

pub async fn a_model_that_is_paused() {
    let house = House::with(Plan { sim: "estimated_rows = 5\npause_time = \"1h\"", ..Plan::default() }).await;
    for _ in 0..5 {
        assert_eq!(house.ask("[[sim:no_usage tokens=2]]").await.status(), 200);
    }
    house.quiet().await;
    let (before, sent) = (house.available().await, house.sim.received().len());
    let reply = house.ask("hello").await;
    assert!(reply.headers().contains_key("retry-after"));
    let call = crate::house::call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("no_route_available")), "never free");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.attempts, row.charge.nano()), (Ending::UpstreamFault, 0, 0));
    house.quiet().await;
    assert_eq!((house.available().await, house.sim.received().len()), (before, sent));
}

/// A tenth of what the context of the model costs, and a film behind a link.
pub async fn content_that_is_not_seen() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    house.credit("trial", Pot::Trial, Money::from_nano(10_000_000)).await;
    let mut body = chat("[[sim:prompt=90000]]");
    let film = json!({ "type": "video_url", "video_url": { "url": "https://files.example/film.mp4" } });
    body["messages"][0]["content"] = json!([{ "type": "text", "text": "[[sim:prompt=90000]]" }, film]);
    let reply = house.post(&body).send().await.expect("a reply");
    let call = crate::house::call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")));
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::Refused, "insufficient_balance", 0));
    assert_eq!(house.available().await, 10_000_000);
    assert!(house.sim.received().is_empty());
}

pub async fn not_enough_money() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    house.credit("trial", Pot::Trial, Money::from_nano(FUNDED)).await;
    let mut body = chat("hi");
    body["model"] = json!("paid-only");
    let (status, error) = error_of(house.post(&body).send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (403, Some("model_requires_topup")), "trial money does not do");
    let mut body = chat("hi");
    body["n"] = json!(128);
    body["max_tokens"] = json!(1_000);
    // 128 answers of 1,000 tokens at 2,000 nano-USD are 256,000,000: the balance is made smaller
    // than that.
    let store = &house.running().app.store;
    let take = tollgate_store::Credit {
        id: "take".into(),
        account: house.account,
        kind: tollgate_store::CreditKind::Adjust,
        pot: Pot::Trial,
        amount: Money::from_nano(-FUNDED + 1_000_000),
        expires_at: None,
        reason: "test".into(),
        actor: "test".into(),
    };
    store.credit(take).await.expect("taken");
    let reply = house.post(&body).send().await.expect("a reply");
    let call = crate::house::call_id(&reply);
    let (status, error) = error_of(reply).await;
    assert_eq!((status, error["code"].as_str()), (402, Some("insufficient_balance")));
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::Refused, "insufficient_balance", 0));
    assert_eq!(house.available().await, 1_000_000);
    assert!(house.sim.received().is_empty());
}

pub async fn a_little_money() {
    let house = House::with(Plan { usd: "0", ..Plan::default() }).await;
    // 400 tokens of output at 2,000 nano-USD, where an answer of this model may have 1,000.
    house.credit("little", Pot::Paid, Money::from_nano(800_000)).await;
    let reply = house.ask("go on [[sim:tokens=900]]").await;
    assert_eq!(reply.status(), 200, "a short answer");
    let limit: u64 = reply.headers()["x-tollgate-output-limit"].to_str().expect("text").parse().expect("a number");
    let call = crate::house::call_id(&reply);
    reply.bytes().await.expect("an answer");
    house.quiet().await;
    let row = house.row(call).await;
    assert_eq!((row.ending, row.hold.nano(), row.counters.output), (Ending::Answered, 800_000, limit));
    assert!((350..400).contains(&limit) && row.write_off.is_zero(), "{limit}");
    assert_eq!(house.available().await, 800_000 - row.charge.nano());
}

pub async fn overload() {
    let house = House::with(Plan { config: "[limits]\ncalls = 5\n".to_owned(), ..Plan::default() }).await;
    house.sim.shut("/v1/chat/completions");
    let first: tokio::task::JoinSet<_> = (0..5).map(|_| house.post(&chat("[[sim:tokens=1]]")).send()).collect();
    while house.sim.received().len() < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Ten times as many at once. That a refusal is quick cannot be timed on a machine with others
    // on it; it is, because it waits for nobody: the database is locked and the provider thinks all
    // the while.
    let store = &house.running().app.store;
    let file = house.running().app.settings.data_dir.join("tollgate.db");
    let blocker = rusqlite::Connection::open(file).expect("the file");
    blocker.busy_timeout(Duration::from_secs(5)).expect("patience");
    while store.gauges().queue_len > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    blocker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let crowd: tokio::task::JoinSet<_> = (0..50).map(|_| house.post(&chat("too many")).send()).collect();
    for reply in crowd.join_all().await {
        let reply = reply.expect("a reply");
        assert!(reply.headers().contains_key("retry-after"));
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (503, Some("overloaded")));
    }
    assert_eq!(store.gauges().open_holds, 5, "no hold was asked for");
    assert_eq!(house.sim.received().len(), 5, "and no provider");
    drop(blocker);
    house.sim.open();
    assert_eq!(first.join_all().await.len(), 5);
    house.quiet().await;
    let rows = rows(&house).await;
    assert_eq!(rows.len(), 5, "holds and rows only for calls that were let in");
    assert_eq!(house.available().await, FUNDED - rows.iter().map(|row| row.charge.nano()).sum::<i64>());
}

pub async fn a_catalog_that_cannot_be_loaded() {
    let house = House::new().await;
    let stale = || house.running().app.metrics.catalog_stale.get();
    std::fs::write(house.dir.join("catalog/more.toml"), "this is not TOML").expect("written");
    for _ in 0..2_400 {
        if stale() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(stale(), 1, "the alarm");
    answered(&house, house.ask("served from the old snapshot").await).await;
}
