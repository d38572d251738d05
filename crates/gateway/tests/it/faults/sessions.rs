//! What breaks while a client and a model talk.

use super::FUNDED;
use crate::house::{House, Plan};
use crate::v1::realtime::{Talker, audio, cost, house, house_with, kinds, rows};
use futures_util::SinkExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
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

const MUTE: &str = r#"
[model."voice"]
supported_endpoint_types = ["realtime"]
price = { input = 1, output = 1, audio_input = 1, audio_output = 1 }
route = [{ provider = "mute", upstream_model = "x" }]
"#;

/// A house whose provider takes a connection and says nothing more: `opens` says whether it answers
/// the handshake before.
async fn mute(opens: bool, config: &str) -> (House, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut provider = JoinSet::new();
    provider.spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await.expect("a request"));
        }
        let head = String::from_utf8(head).expect("text");
        let key = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("sec-websocket-key").then_some(value)
        });
        let accept = derive_accept_key(key.expect("a key").as_bytes());
        if opens {
            let reply = format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                 sec-websocket-accept: {accept}\r\n\r\n"
            );
            socket.write_all(reply.as_bytes()).await.expect("sent");
        }
        std::future::pending::<()>().await;
        drop(socket);
    });
    let config = format!(
        "{config}\n[provider.mute]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
         first_byte_time = \"500ms\"\n"
    );
    (House::with(Plan { catalog: MUTE, config, ..Plan::default() }).await, provider)
}

pub async fn the_handshake_of_a_session_hangs() {
    let (house, _provider) = mute(false, "").await;
    let Err(Error::Http(refused)) = Talker::with_key(&house, &house.key, "voice").await else { panic!("a session") };
    assert_eq!(refused.status(), 504);
    let rows = rows(&house).await;
    assert_eq!((rows.len(), rows[0].ending, rows[0].charge.nano()), (1, Ending::UpstreamFault, 0));
    assert_eq!(house.available().await, FUNDED);
}

pub async fn the_provider_of_a_session_is_silent() {
    let (house, _provider) = mute(true, "[realtime]\nping_every = \"1s\"\nsilence = \"2s\"").await;
    let mut talker = Talker::open(&house).await;
    let (events, code) = talker.rest().await;
    assert_eq!((code, events.last().expect("an event")["error"]["code"].as_str()), (1011, Some("upstream_timeout")));
    assert_eq!((rows(&house).await.len(), house.available().await), (0, FUNDED), "nothing was made");
}

pub async fn a_compressed_message_in_a_session() {
    let house = house().await;
    let mut talker = Talker::open(&house).await;
    talker.until("session.created").await;
    // Nobody has agreed on what this bit says.
    let mut frame = Frame::message(b"{}".to_vec(), OpCode::Data(Data::Text), true);
    frame.header_mut().rsv1 = true;
    let _ = talker.socket.send(Message::Frame(frame)).await;
    assert_eq!(talker.rest().await.1, 1002);
    assert_eq!((rows(&house).await.len(), house.available().await), (0, FUNDED));
    assert_eq!(house.sim.sessions()[0].frames.len(), 1, "none of it was passed on");
}

pub async fn the_client_leaves_while_it_is_written_down() {
    let house = house().await;
    let mut talker = Talker::with_key(&house, &house.key, "listener&intent=transcription").await.expect("a session");
    talker.until("session.created").await;
    talker.send(json!({ "type": "input_audio_buffer.append", "audio": audio(2_000, 600) })).await;
    talker.until("input_audio_buffer.committed").await;
    drop(talker);
    let rows = rows(&house).await;
    let charged: Vec<_> = rows.iter().filter(|row| row.charge.nano() > 0).collect();
    assert_eq!((charged.len(), charged[0].reason.as_str()), (1, "transcribed"), "{rows:?}");
    assert_eq!(house.available().await, FUNDED - charged[0].charge.nano());
}
