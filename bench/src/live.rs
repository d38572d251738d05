//! Realtime sessions: a provider with prebuilt frames, a bare WebSocket relay, and clients that
//! count frames. Audio goes in pieces of 100 ms, 6.4 KB of base64.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};
use tokio_util::task::TaskTracker;

use crate::load::Seen;

/// The model, and the path of its sessions.
pub const MODEL: &str = "bench-live";
const PATH: &str = "/v1/realtime?model=bench-live";
/// Pieces of one response, and of one turn of a client.
const PIECES: usize = 500;
/// Letters of base64 for 100 ms.
const LETTERS: usize = 6_400;
/// The smaller piece whose way there and back is timed: 20 ms.
const SHORT: usize = 1_280;
const PACE: Duration = Duration::from_millis(5);

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Talk {
    /// They ask for responses and count what is said.
    Hears,
    /// They speak, as fast as it is taken.
    Speaks,
    /// They send a piece and wait until it is echoed.
    Echo,
}

#[derive(Args, Clone)]
pub struct Settings {
    #[arg(long)]
    target: SocketAddr,
    #[arg(long, default_value = "none")]
    key: String,
    #[arg(long, value_enum, default_value_t = Talk::Hears)]
    talk: Talk,
    #[arg(long, default_value_t = 16)]
    sessions: usize,
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Open the sessions, say so, and hold them until standard input closes.
    #[arg(long)]
    hold: bool,
}

type Socket = WebSocketStream<TcpStream>;

/// Whether a request opens a session.
pub fn is_asked(head: &[u8]) -> bool {
    head.starts_with(b"GET /v1/realtime")
}

fn text(event: &Value) -> Message {
    Message::text(event.to_string())
}

fn delta(at: usize) -> Message {
    let delta = "A".repeat(LETTERS);
    text(&json!({
        "type": "response.output_audio.delta", "event_id": format!("event_{at}"), "response_id": "resp_bench",
        "item_id": "item_bench", "output_index": 0, "content_index": 0, "delta": delta,
    }))
}

/// A session as its provider serves it, after the head of its request was read.
pub async fn provide(mut socket: TcpStream, head: &[u8]) -> anyhow::Result<()> {
    let head = std::str::from_utf8(head)?;
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim())
    });
    let accept = derive_accept_key(key.context("no handshake")?.as_bytes());
    let reply = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    socket.write_all(reply.as_bytes()).await?;
    let mut socket = WebSocketStream::from_raw_socket(socket, Role::Server, None).await;
    // It leaves it to the gateway to answer turns, as it is told to.
    let detection = json!({"turn_detection": {"type": "server_vad", "create_response": false}});
    let session =
        json!({"type": "realtime", "model": MODEL, "max_output_tokens": 4_096, "audio": {"input": detection}});
    socket.send(text(&json!({"type": "session.created", "session": session}))).await?;
    let updated = text(&json!({"type": "session.updated", "session": session}));
    let (cleared, piece) = (text(&json!({"type": "input_audio_buffer.cleared"})), delta(0));
    let mut number = 0;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(said) = message else { continue };
        if said.contains("\"echo\"") {
            socket.send(Message::Text(said)).await?;
        } else if said.contains("input_audio_buffer.append") {
            continue;
        } else if said.contains("input_audio_buffer.clear") {
            socket.send(cleared.clone()).await?;
        } else if said.contains("session.update") {
            socket.send(updated.clone()).await?;
        } else if said.contains("response.create") {
            number += 1;
            respond(&mut socket, &piece, number).await?;
        }
    }
    Ok(())
}

async fn respond(socket: &mut Socket, piece: &Message, number: u64) -> anyhow::Result<()> {
    let response = |status: &str, usage: Value| json!({"id": "resp_bench", "status": status, "conversation_id": "conv_1", "max_output_tokens": 4_096, "usage": usage});
    let created = response("in_progress", Value::Null);
    socket.send(text(&json!({"type": "response.created", "response": created, "number": number}))).await?;
    for _ in 0..PIECES {
        socket.send(piece.clone()).await?;
        tokio::task::yield_now().await;
    }
    let usage = json!({"input_tokens": 10, "output_tokens": 2 * PIECES, "total_tokens": 10 + 2 * PIECES,
        "output_token_details": {"audio_tokens": 2 * PIECES, "text_tokens": 0}});
    let done = response("completed", usage);
    Ok(socket.send(text(&json!({"type": "response.done", "response": done}))).await?)
}

/// The yardstick: messages in, the same messages out. No keys, no money, no metering.
pub fn relay(listen: SocketAddr, upstream: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism()?.get())
        .enable_all()
        .build()?;
    let serving = runtime.spawn(async move {
        let listener = TcpListener::bind(listen).await.context("listening")?;
        let tracker = TaskTracker::new();
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            tracker.spawn(async move {
                // A side that breaks its connection is no concern of the relay.
                let _ = pass(socket, upstream).await;
            });
        }
    });
    runtime.block_on(serving)?
}

async fn pass(socket: TcpStream, upstream: SocketAddr) -> anyhow::Result<()> {
    let client = accept_async(socket).await?;
    let server = open(upstream, "none").await?;
    let (mut to_client, mut from_client) = client.split();
    let (mut to_server, mut from_server) = server.split();
    let up = async {
        while let Some(Ok(message)) = from_client.next().await {
            to_server.send(message).await?;
        }
        anyhow::Ok(())
    };
    let down = async {
        while let Some(Ok(message)) = from_server.next().await {
            to_client.send(message).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}

async fn open(target: SocketAddr, key: &str) -> anyhow::Result<Socket> {
    let mut request = format!("ws://{target}{PATH}").into_client_request()?;
    request.headers_mut().insert("authorization", format!("Bearer {key}").parse()?);
    let socket = TcpStream::connect(target).await.context("connecting")?;
    socket.set_nodelay(true)?;
    Ok(client_async(request, socket).await?.0)
}

/// The next event of this type. Pieces of audio before it are counted.
async fn until(socket: &mut Socket, kind: &str) -> anyhow::Result<u64> {
    let mut pieces = 0;
    let wanted = format!("\"type\":\"{kind}\"");
    loop {
        let message = socket.next().await.context("closed")??;
        let Message::Text(said) = message else { continue };
        if is_of(&said, "\"response.output_audio.delta\"") {
            pieces += 1;
        } else if said.contains(&wanted) {
            return Ok(pieces);
        }
        ensure!(!is_of(&said, "\"type\":\"error\""), "{said}");
    }
}

/// Long pieces of audio are not searched to their end.
fn is_of(said: &Utf8Bytes, what: &str) -> bool {
    if said.len() > LETTERS { what.contains("delta") } else { said.contains(what) }
}

pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if settings.hold {
        return runtime.block_on(hold(settings));
    }
    let start = Instant::now();
    let seen = runtime.block_on(async {
        let until = start + Duration::from_secs_f64(settings.seconds);
        let mut all = JoinSet::new();
        for _ in 0..settings.sessions {
            all.spawn(one(settings.clone(), until));
        }
        let mut seen = Seen::default();
        for one in all.join_all().await {
            seen.merge(one);
        }
        seen
    });
    println!("{}", seen.json(start.elapsed().as_secs_f64()));
    Ok(())
}

async fn one(settings: Settings, end: Instant) -> Seen {
    let mut seen = Seen::default();
    if let Err(error) = talk(&settings, end, &mut seen).await {
        seen.failed(&error);
    }
    seen
}

async fn talk(settings: &Settings, end: Instant, seen: &mut Seen) -> anyhow::Result<()> {
    let mut socket = open(settings.target, &settings.key).await?;
    until(&mut socket, "session.created").await?;
    let (ask, clear) = (text(&json!({"type": "response.create"})), text(&json!({"type": "input_audio_buffer.clear"})));
    let append = text(&json!({"type": "input_audio_buffer.append", "audio": "A".repeat(LETTERS)}));
    let echo = text(&json!({"type": "input_audio_buffer.append", "event_id": "echo", "audio": "A".repeat(SHORT)}));
    while Instant::now() < end {
        let start = Instant::now();
        match settings.talk {
            Talk::Hears => {
                socket.send(ask.clone()).await?;
                seen.events += until(&mut socket, "response.done").await?;
            }
            Talk::Speaks => {
                for _ in 0..PIECES {
                    socket.feed(append.clone()).await?;
                }
                socket.send(clear.clone()).await?;
                until(&mut socket, "input_audio_buffer.cleared").await?;
                seen.events += PIECES as u64;
            }
            Talk::Echo => {
                socket.send(echo.clone()).await?;
                until(&mut socket, "input_audio_buffer.append").await?;
                seen.events += 1;
            }
        }
        seen.took(start);
        if settings.talk == Talk::Echo {
            tokio::time::sleep(PACE).await;
        }
    }
    let _ = socket.close(None).await;
    Ok(())
}

async fn hold(settings: &Settings) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for _ in 0..settings.sessions {
        let mut socket = open(settings.target, &settings.key).await?;
        until(&mut socket, "session.created").await?;
        all.push(socket);
    }
    println!("{}", json!({"open": all.len()}));
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    Ok(())
}
