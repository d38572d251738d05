//! What breaks while speech passes.

use super::{FUNDED, free, paid, rows};
use crate::house::{House, Plan, call_id};
use crate::slow;
use reqwest::{RequestBuilder, Response};
use serde_json::json;
use tollgate_store::Ending;

const CATALOG: &str = include_str!("../../../../../catalog/speech.toml");

async fn house(config: &str, sim: &'static str) -> House {
    House::with(Plan { catalog: CATALOG, config: config.to_owned(), sim, ..Plan::default() }).await
}

fn request(house: &House, input: &str) -> RequestBuilder {
    let body = json!({ "model": "demo-speech", "input": input, "voice": "alloy" });
    house.http.post(house.url("/v1/audio/speech")).bearer_auth(&house.key).json(&body)
}

async fn speak(house: &House, input: &str) -> Response {
    request(house, input).send().await.expect("a reply")
}

/// The answer began and broke; it was free.
async fn broke(house: &House, input: &str) {
    // It may break before its head has left.
    if let Ok(reply) = request(house, input).send().await {
        assert_eq!(reply.status(), 200);
        assert!(reply.bytes().await.is_err(), "it ended as if it were whole");
    }
    house.quiet().await;
    let row = rows(house).await.remove(0);
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::UpstreamFault, "broken_off", 0));
    assert_eq!(house.available().await, FUNDED);
}

pub async fn audio_breaks_off() {
    let house = house("", "").await;
    broke(&house, "[[sim:cut ms=4000]]").await;
}

pub async fn speech_without_audio() {
    let house = house("", "").await;
    for scenario in ["empty", "json200", "wrong_format"] {
        let reply = speak(&house, &format!("[[sim:{scenario}]]")).await;
        assert_eq!(reply.headers()["x-should-retry"], "false");
        let code = if scenario == "json200" { "upstream_error" } else { "upstream_invalid_reply" };
        free(&house, reply, (502, code), Some((Ending::UpstreamFault, code))).await;
    }
}

pub async fn audio_is_too_long() {
    let house = house("", "reply_bytes = \"1MiB\"\n").await;
    broke(&house, "[[sim:huge mib=3]]").await;
}

pub async fn the_client_leaves_in_mid_audio() {
    let house = house("", "").await;
    let input = "[[sim:door ms=4000]]";
    house.sim.shut("/_door");
    let mut reply = speak(&house, input).await;
    let call = call_id(&reply);
    reply.chunk().await.expect("a chunk").expect("bytes");
    drop(reply);
    let row = paid(&house, call).await;
    assert_eq!((row.ending, row.counters.input), (Ending::ClientLeft, input.len() as u64));
    house.sim.open();
}

/// It took nearly all of the audio by then.
pub async fn the_client_listens_until_its_time_is_up() {
    let house = house("", "").await;
    let body = json!({ "model": "demo-speech", "input": "[[sim:ms=120000]]", "voice": "alloy" });
    let row = slow::too_slow(&house, slow::post(&house, "/v1/audio/speech", &body), &mut 0).await;
    assert_eq!((row.ending, row.reason.as_str()), (Ending::ClientLeft, "client_too_slow"));
    let row = paid(&house, row.call).await;
    assert_eq!(row.counters.input, 17, "all characters");
}

pub async fn a_stop_in_mid_audio() {
    let mut house = house("[limits]\ndrain_time = \"500ms\"\n", "").await;
    house.sim.shut("/_door");
    let mut reply = speak(&house, "[[sim:door ms=4000]]").await;
    let call = call_id(&reply);
    reply.chunk().await.expect("a chunk").expect("bytes");
    let rest = async {
        loop {
            match reply.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        }
    };
    let (broke, ()) = tokio::join!(rest, house.restart());
    assert!(broke, "it ended as if it were whole");
    let row = house.row(call).await;
    assert_eq!((row.ending, row.reason.as_str(), row.charge.nano()), (Ending::UpstreamFault, "broken_off", 0));
    house.sim.open();
}
