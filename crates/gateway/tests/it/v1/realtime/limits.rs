//! Limits of sessions: how many, how long, and who may have them.

use super::{Talker, house_with, kinds, rows};
use crate::house::{House, Plan};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Error;

pub async fn a_key_and_an_account_have_so_many_sessions() {
    let config = "[realtime]\nsessions_per_key = 2\nsessions_per_account = 3".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let other = house.new_key(|_| {}).await;
    let mut open = Vec::new();
    for key in [&house.key, &house.key, &other] {
        open.push(Talker::with_key(&house, key, "voice").await.expect("a session"));
    }
    for (key, whose) in [(&house.key, "key"), (&other, "account")] {
        let Err(Error::Http(refused)) = Talker::with_key(&house, key, "voice").await else { panic!("{whose}") };
        assert_eq!(refused.status(), 429);
        let body = String::from_utf8_lossy(refused.body().as_deref().unwrap_or_default()).into_owned();
        assert!(body.contains(&format!("This {whose} has")), "{body}");
    }
    for talker in open {
        talker.leave().await;
    }
    house.quiet().await;
    assert!(Talker::with_key(&house, &house.key, "voice").await.is_ok());
    house.quiet().await;
}

pub async fn a_revoked_key_ends_its_sessions() {
    let house = house_with(Plan::default()).await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    let app = &house.running().app;
    let key = app.keys.known(&tollgate_gateway::who::key_cache::hash(&house.key)).expect("known").key.id;
    app.store.revoke_key(key).await.expect("revoked");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    let (events, code) = talker.rest().await;
    assert_eq!((code, events.last().expect("an event")["error"]["code"].as_str()), (1008, Some("invalid_api_key")));
}

pub async fn a_session_ends_at_its_longest_when_its_response_has() {
    let config = "[realtime]\nlongest = \"6s\"".to_owned();
    let house = house_with(Plan { config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:plain think_ms=9000]]").await;
    let (events, code) = talker.rest().await;
    assert!(kinds(&events).contains(&"response.done"), "{:?}", kinds(&events));
    assert_eq!((code, talker.closed.expect("closed").1.as_str()), (1001, "session_expired"));
    assert_eq!(rows(&house).await[0].reason, "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_the_response_end_and_says_why() {
    let mut house = house_with(Plan::default()).await;
    let mut idle = Talker::open(&house).await;
    let mut busy = Talker::open(&house).await;
    idle.until("session.created").await;
    house.sim.shut("/v1/realtime");
    busy.ask("hello").await;
    busy.until("response.created").await;
    let running = house.running.take().expect("running");
    let mut stop = JoinSet::new();
    stop.spawn(running.stop());
    let (events, code) = idle.rest().await;
    assert_eq!((code, events.last().expect("an event")["error"]["code"].as_str()), (1001, Some("server_draining")));
    house.sim.open();
    let (events, code) = busy.rest().await;
    assert!(kinds(&events).contains(&"response.done"), "{:?}", kinds(&events));
    assert_eq!(code, 1001);
    stop.join_next().await.expect("a stop").expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_client_is_kept_and_no_limit_becomes_ours() {
    let house = house_with(Plan::default()).await;
    let mut talker = Talker::open(&house).await;
    let update = |limit: serde_json::Value| json!({ "type": "session.update", "session": { "type": "realtime", "output_modalities": ["text"], "max_output_tokens": limit } });
    talker.send(update(json!(5))).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert_eq!(updated["session"]["max_output_tokens"], 5);
    let done = talker.turn("[[sim:plain tokens=50]]").await;
    assert_eq!(
        (done["response"]["status"].as_str(), done["response"]["usage"]["output_tokens"].as_u64()),
        (Some("incomplete"), Some(5))
    );
    talker.send(update(json!("inf"))).await;
    let updated = talker.until("session.updated").await.pop().expect("an event");
    assert_eq!(updated["session"]["max_output_tokens"], 4_096);
    talker.leave().await;
    house.quiet().await;
}

pub async fn a_provider_that_ignores_the_limit_is_stopped_at_the_operators_cost() {
    let house: House = house_with(Plan::default()).await;
    let mut talker = Talker::open(&house).await;
    let session = json!({ "type": "realtime", "output_modalities": ["text"], "max_output_tokens": 5 });
    talker.send(json!({ "type": "session.update", "session": session })).await;
    talker.ask("[[sim:ignore_max tokens=5000]]").await;
    let (events, code) = talker.rest().await;
    assert_eq!(
        (code, events.last().expect("an event")["error"]["code"].as_str()),
        (1011, Some("upstream_invalid_reply"))
    );
    let rows = rows(&house).await;
    assert!(rows[0].charge.nano() <= rows[0].hold.nano() && rows[0].charge.nano() > 0, "{rows:?}");
}
