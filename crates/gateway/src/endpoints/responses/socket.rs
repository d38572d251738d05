//! `GET /v1/responses` as a WebSocket: one response after the other on one connection, each an
//! ordinary paid call.
//!
//! The key is checked before the connection is changed and again with every request, so that a
//! revoked one ends here too. The events are those of a stream, one message each. The last response
//! can be continued on its connection although it was not stored; a request that fails makes the
//! connection forget it. Messages and those waiting are bounded, silence is ended by pings, and
//! after an hour the connection is over.

use super::{After, ENDPOINT, Which, keeper, respond};
use crate::app::App;
use crate::call::{AnswerBody, CallAnswer};
use crate::door::bodies::{BodyShare, SMALL, Whose};
use crate::door::counted::Counted;
use crate::door::protocol::BegunStream;
use crate::endpoints::upgrade::SocketRequest;
use crate::endpoints::{chat, reading};
use crate::refusal::Refusal;
use crate::work::conversation::stored::{self as stored_responses, Keeper, LastResponse, StoreOutcome};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::request::Parts;
use serde_json::json;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, Interval};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tollgate_dialects::CheckedRequest;
use tollgate_dialects::responses::{ResponseOutline, from_create_event};
use tollgate_store::Item;
use tollgate_wire::Dialect;

/// Requests that wait for the one before them.
const MOST_WAITING: usize = 8;
/// A conversation that is longer than this is not remembered by its connection; it can be stored.
const REMEMBERED: usize = 4 << 20;
const PING: Duration = Duration::from_secs(15);
/// A client that has not been heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);
const LONGEST: Duration = Duration::from_secs(3_600);

pub async fn open(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    chat::answered(&app, Dialect::Responses, id, || upgrade(&app, request)).await
}

async fn upgrade(app: &Arc<App>, request: Request) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let otherwise = "`GET` opens a WebSocket here; a response is created by `POST`.";
    let socket = SocketRequest::read(app, &mut parts, otherwise)?;
    // Somebody who cannot pay sends nothing large; once topped up, on a connection of its own.
    let longest = match reading::reads_large(app, &caller).await? {
        Ok(()) => app.settings.limits.body_bytes,
        Err(_) => SMALL,
    };
    let (worker, account, reply) = (app.clone(), caller.account.id, socket.reply());
    let SocketRequest { connection, place, .. } = socket;
    app.tracker.spawn(async move {
        let _place = place;
        if let Some(io) = connection.stream().await {
            let io = Counted::new(io, worker.bodies.clone(), Whose::Account(account), longest);
            let config = WebSocketConfig::default().max_message_size(Some(longest)).max_frame_size(Some(longest));
            let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
            Session { app: worker, parts, line: Line::new(socket), local: Arc::default() }.run().await;
        }
    });
    Ok(reply)
}

type Slot = Arc<Mutex<Option<LastResponse>>>;

fn lock(slot: &Slot) -> std::sync::MutexGuard<'_, Option<LastResponse>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection.
struct Session {
    app: Arc<App>,
    /// The request that opened it, with the key.
    parts: Parts,
    line: Line,
    local: Slot,
}

impl Session {
    async fn run(mut self) {
        let ends_at = Instant::now() + LONGEST;
        let stopping = self.app.shutdown.stopping.clone();
        loop {
            if let Some((message, _room)) = self.line.waiting.pop_front() {
                if self.turn(message).await.is_none() {
                    return;
                }
                continue;
            }
            tokio::select! {
                heard = self.line.listen() => if heard.is_none() { return },
                () = tokio::time::sleep_until(ends_at) => {
                    let text = "A WebSocket is open for an hour at most; open another one.";
                    let error = json!({"type": "invalid_request_error", "code": "websocket_connection_limit_reached", "message": text, "param": null});
                    self.line.say(json!({"type": "error", "status": 400, "error": error}).to_string()).await;
                    return self.line.close(CloseCode::Policy, "an hour is over").await;
                }
                () = stopping.cancelled() => return self.line.close(CloseCode::Away, "the server is stopping").await,
            }
        }
    }

    /// One request to its end. None: the client has left; dropping the answer is what ends its
    /// call.
    async fn turn(&mut self, message: Utf8Bytes) -> Option<()> {
        let work = begin(self.app.clone(), self.parts.clone(), self.local.clone(), message);
        let begun = self.line.beside(reading::guarded(work)).await?;
        match begun {
            Ok(answer) => self.line.pass_on(answer.body).await,
            Err(refusal) => {
                self.app.metrics.refused(refusal.code.code());
                self.line.say(as_event(&refusal)).await
            }
        }
    }
}

/// Admits the request of a message; its answer is a stream of events.
async fn begin(app: Arc<App>, parts: Parts, slot: Slot, message: Utf8Bytes) -> Result<CallAnswer, Refusal> {
    let caller = reading::caller(&app, &parts).await?;
    let asked = CheckedRequest::read(Dialect::Responses, from_create_event(message.as_bytes())?, None)?;
    let local = lock(&slot).clone();
    let continued = asked.attr("previous_response_id").map(|id| id.into_owned());
    let work = async {
        let past = stored_responses::find(&app.conversations, caller.account.id, asked, local.as_ref(), false).await?;
        stored_responses::has_room(&app.conversations, &caller, &past).await?;
        let id = app.new_call_id();
        let before = past.all();
        let remember = Remember { slot: slot.clone(), before, stored: keeper(&app, &caller, id, &past) };
        let which = Which { id, endpoint: ENDPOINT, idem: None };
        let after = After { keeper: Some(Arc::new(remember)), ..After::default() };
        respond(&app, caller, past, after, &parts.headers, which).await
    };
    let begun = work.await;
    if begun.is_err() && continued.is_some() && continued == local.map(|local| local.id) {
        *lock(&slot) = None;
    }
    begun
}

fn as_event(refusal: &Refusal) -> String {
    let code = refusal.code;
    let error = json!({
        "type": code.openai_type(), "code": code.code(), "message": refusal.message, "param": refusal.param,
    });
    json!({"type": "error", "status": code.status(), "error": error}).to_string()
}

/// Remembers the answer on its connection, and keeps it where it is to be stored.
struct Remember {
    slot: Slot,
    /// All that was said before the answer.
    before: Vec<Item>,
    stored: Option<Arc<dyn Keeper>>,
}

impl Keeper for Remember {
    fn keep(&self, answer: Bytes) -> Pin<Box<dyn Future<Output = StoreOutcome> + Send>> {
        if let Some(read) = ResponseOutline::read(&answer) {
            let said = read.items.into_iter().map(|(id, json)| Item { id, json });
            let items: Vec<Item> = self.before.iter().cloned().chain(said).collect();
            let small = items.iter().map(|item| item.json.len()).sum::<usize>() <= REMEMBERED;
            *lock(&self.slot) = small.then_some(LastResponse { id: read.id, items });
        }
        match &self.stored {
            Some(stored) => stored.keep(answer),
            None => Box::pin(std::future::ready(StoreOutcome::Yes)),
        }
    }
}

/// The connection, and what has come over it.
struct Line {
    socket: WebSocketStream<Counted<BegunStream>>,
    /// With their room in the budget for all bodies.
    waiting: VecDeque<(Utf8Bytes, Option<BodyShare>)>,
    heard_at: Instant,
    tick: Interval,
}

impl Line {
    fn new(socket: WebSocketStream<Counted<BegunStream>>) -> Line {
        let now = Instant::now();
        Line { socket, waiting: VecDeque::new(), heard_at: now, tick: tokio::time::interval_at(now + PING, PING) }
    }

    /// Waits for a message or for the next ping. None: the connection is over.
    async fn listen(&mut self) -> Option<()> {
        let message = tokio::select! {
            message = self.socket.next() => message?,
            _ = self.tick.tick() => {
                let gone = self.heard_at.elapsed() > SILENCE;
                return if gone { None } else { self.socket.send(Message::Ping(Bytes::new())).await.ok() };
            }
        };
        let Ok(message) = message else {
            if self.socket.get_ref().is_full() {
                self.close(CloseCode::Again, "too many large requests are being served").await;
            }
            return None;
        };
        self.heard_at = Instant::now();
        let room = self.socket.get_mut().message();
        match message {
            Message::Text(text) if self.waiting.len() < MOST_WAITING => self.waiting.push_back((text, room)),
            Message::Text(_) => {
                self.close(CloseCode::Policy, "too many requests wait").await;
                return None;
            }
            Message::Binary(_) => {
                self.close(CloseCode::Unsupported, "requests are text").await;
                return None;
            }
            Message::Close(_) => return None,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
        Some(())
    }

    /// Does some work while the connection is watched. None: the client has left.
    async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                heard = self.listen() => heard?,
            }
        }
    }

    /// Sends the events of a streamed answer, each as a message.
    async fn pass_on(&mut self, mut body: AnswerBody) -> Option<()> {
        let mut rest: Vec<u8> = Vec::new();
        while let Some(piece) = self.beside(body.next()).await? {
            rest.extend_from_slice(&piece.ok()?);
            let mut from = 0;
            while let Some(length) = rest[from..].windows(2).position(|end| end == b"\n\n") {
                if let Some(data) = data_of(&rest[from..from + length]) {
                    self.say(data).await?;
                }
                from += length + 2;
            }
            rest.drain(..from);
        }
        Some(())
    }

    async fn say(&mut self, text: impl Into<Utf8Bytes>) -> Option<()> {
        self.socket.send(Message::Text(text.into())).await.ok()
    }

    async fn close(&mut self, code: CloseCode, reason: &'static str) {
        // The client may have gone already.
        let _ = self.socket.close(Some(CloseFrame { code, reason: reason.into() })).await;
    }
}

/// The data of one of our own events; nothing for a heartbeat and for the mark at the end, which
/// sockets do not have.
fn data_of(event: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(event).ok()?;
    let data = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    (data != "[DONE]").then(|| data.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_messages() {
        assert_eq!(data_of(b"event: a\ndata: {\"x\":1}").as_deref(), Some("{\"x\":1}"));
        assert_eq!(data_of(b": hb\nevent: a\ndata: {}").as_deref(), Some("{}"), "a heartbeat has no blank line");
        assert_eq!(data_of(b"data: [DONE]"), None);
    }
}
