//! What breaks while a client and a model talk.

use super::FUNDED;
use crate::house::Plan;
use crate::v1::realtime::{Talker, cost, house, house_with, kinds, rows};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Error;
use tollgate_store::Ending;

pub async fn a_session_without_money() {
    let house = house_with(Plan { usd: "0.001", ..Plan::default() }).await;
    let Err(Error::Http(refused)) = Talker::with_key(&house, &house.key, "voice").await else { panic!("a session") };
    assert_eq!(refused.status(), 402);
    assert_eq!(house.sim.received().len(), 0, "nobody was dialled");
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].ending, rows[0].charge.nano()), (1, Ending::Refused, 0));
}

pub async fn the_handshake_of_a_session_fails() {
    let house = house().await;
    for (model, status) in [("voice-refused", 502), ("voice-busy", 429)] {
        let Err(Error::Http(refused)) = Talker::with_key(&house, &house.key, model).await else { panic!("{model}") };
        assert_eq!(refused.status(), status, "{model}");
    }
    let rows = rows(&house).await;
    assert!(rows.iter().all(|row| row.ending == Ending::UpstreamFault && row.charge.nano() == 0), "{rows:?}");
    assert_eq!((rows.len(), house.available().await), (2, FUNDED));
}

pub async fn the_provider_breaks_a_session_off() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:cut after=3 ms=2000]]").await;
    let (events, code) = talker.rest().await;
    assert_eq!((code, events.last().expect("an event")["error"]["code"].as_str()), (1011, Some("upstream_error")));
    let row = rows(&house).await.remove(0);
    assert_eq!((row.ending, row.estimated), (Ending::UpstreamFault, true));
    assert_eq!(house.available().await, FUNDED - row.charge.nano());
    assert!(row.charge.nano() > 0);
}

pub async fn the_client_leaves_a_session() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:hold after=4 ms=2000]]").await;
    talker.until("response.output_audio.delta").await;
    drop(talker);
    let row = rows(&house).await.remove(0);
    let billed = house.sim.sessions()[0].billed.clone();
    assert_eq!((row.estimated, row.charge.nano()), (false, cost(&billed[0])));
    assert_eq!(house.available().await, FUNDED - row.charge.nano());
}

pub async fn the_money_runs_out_in_a_session() {
    let config = "[realtime]\nfirst_hold = 20".to_owned();
    let house = house_with(Plan { usd: "0.01", config, ..Plan::default() }).await;
    let mut talker = Talker::open(&house).await;
    talker.ask("[[sim:plain ms=100000]]").await;
    let (events, code) = talker.rest().await;
    assert_eq!(code, 1008, "{:?}", kinds(&events));
    assert_eq!(events.last().expect("an event")["error"]["code"], "insufficient_balance");
    let charged: i64 = rows(&house).await.iter().map(|row| row.charge.nano()).sum();
    assert_eq!(house.available().await, 10_000_000 - charged);
    assert!(charged > 0);
}

pub async fn a_stop_with_sessions_open() {
    let mut house = house().await;
    let mut talker = Talker::open(&house).await;
    house.sim.shut("/v1/realtime");
    talker.ask("hello").await;
    talker.until("response.created").await;
    let running = house.running.take().expect("running");
    let mut stop = JoinSet::new();
    stop.spawn(running.stop());
    house.sim.open();
    let (events, code) = talker.rest().await;
    let done = events.iter().find(|event| event["type"] == "response.done").expect("it may end");
    assert_eq!((code, events.last().expect("an event")["error"]["code"].as_str()), (1001, Some("server_draining")));
    stop.join_next().await.expect("a stop").expect("stopped");
    house.restart_stopped().await;
    assert_eq!(house.available().await, FUNDED - cost(&done["response"]["usage"]));
}
