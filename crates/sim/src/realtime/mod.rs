//! Providers that are talked to over a WebSocket, each written from its maker's documents and
//! strict about what it takes: OpenAI's current interface at `/v1/realtime` (and
//! `/openai/v1/realtime`, as Azure has it), Azure's older one at `/azure/openai/realtime` with the
//! words of the beta interface, DashScope's and Gemini's below `/video/<maker>`. How
//! things go is said in the model's name and in texts: see [`scenarios`].
//!
//! A turn ends by the silence in the audio that was sent, and an answer goes out as fast as it is
//! read. Nothing waits for a clock unless the scenario says so. While [`crate::Sim::shut`] holds
//! the path, responses stand still after `response.created`.
//!
//! Each response and each transcription is one record among [`crate::Sim::received`], with method
//! `WS`; so is the handshake, with method `GET`. [`crate::Sim::sessions`] has the frames.

mod config;
mod dashscope;
mod fields;
mod gemini;
mod openai;
mod play;
mod scenario;
mod seen;
mod sound;
mod talk;

use base64::Engine as _;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clouds::AZURE_KEY;
use crate::fault;
use crate::record::Received;
use crate::refusal::Refusal;
use crate::reply::Outgoing;
use crate::server::{Reset, World};
use scenario::Choice;
pub use scenario::scenarios;
pub use seen::SeenSession;
pub(crate) use seen::Sessions;

/// Who is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    OpenAi,
    /// Azure's older form, with a deployment and a version.
    AzureOlder,
    DashScope,
    Gemini,
}

impl Maker {
    /// The words that it has instead of OpenAI's current ones.
    fn words(self) -> Option<&'static dashscope::Words> {
        match self {
            Maker::AzureOlder => Some(&dashscope::AZURE),
            Maker::DashScope => Some(&dashscope::DASHSCOPE),
            Maker::OpenAi | Maker::Gemini => None,
        }
    }
}

fn maker(path: &str) -> Option<Maker> {
    match path {
        "/v1/realtime" | "/openai/v1/realtime" | "/azure/openai/v1/realtime" => Some(Maker::OpenAi),
        "/azure/openai/realtime" => Some(Maker::AzureOlder),
        "/video/dashscope/api-ws/v1/realtime" => Some(Maker::DashScope),
        _ if path.ends_with("/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent") => {
            Some(Maker::Gemini)
        }
        _ => None,
    }
}

/// Whether a path is a socket's.
pub(crate) fn is_ours(path: &str) -> bool {
    maker(path).is_some()
}

/// Where sessions run.
pub(crate) struct Floor {
    pub world: Arc<World>,
    pub reset: Reset,
    pub stop: CancellationToken,
    pub tracker: TaskTracker,
}

/// A session that begins.
struct Opened {
    floor: Floor,
    parts: http::request::Parts,
    number: u64,
    maker: Maker,
    model: String,
    choice: Choice,
}

type Wire = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

pub(crate) async fn answer(floor: Floor, mut request: Request<Incoming>) -> Response<Outgoing> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let mut received = Received::new(&parts, Bytes::new());
    let named = if parts.uri.path() == "/azure/openai/realtime" { "deployment" } else { "model" };
    let model = query(&parts, named).unwrap_or_default();
    received.model.clone_from(&model);
    let Some(maker) = maker(parts.uri.path()) else { return Response::new(Either::Left(Full::default())) };
    let choice = match admit(&floor.world, &received, &parts, maker, &model) {
        Ok(choice) => choice,
        Err(refusal) => {
            received.status = refusal.status;
            floor.world.records.add(received).over(true);
            return fault::refuse(&refusal).map(|body| Either::Left(Full::new(body)));
        }
    };
    received.scenario = choice.name.to_string();
    received.status = 101;
    let mut watch = floor.world.records.add(received);
    if choice.is("handshake_hang") {
        std::future::pending::<()>().await;
    }
    watch.over(true);
    if choice.is("not_upgraded") {
        let page = Bytes::from_static(b"<html>welcome</html>");
        return fault::response(200, "text/html", page).map(|body| Either::Left(Full::new(body)));
    }
    let reply = switching(&parts);
    let opened = Opened { number: watch.id, parts, maker, model, choice, floor };
    let (tracker, stop) = (opened.floor.tracker.clone(), opened.floor.stop.clone());
    tracker.spawn(async move {
        let work = async {
            // A caller that leaves during the handshake has had its session.
            let Ok(upgraded) = upgrade.await else { return };
            let limits = WebSocketConfig::default().max_message_size(Some(64 << 20)).max_frame_size(Some(64 << 20));
            let wire = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(limits)).await;
            match maker {
                Maker::Gemini => gemini::serve(opened, wire).await,
                Maker::OpenAi | Maker::AzureOlder | Maker::DashScope => openai::serve(opened, wire).await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    });
    reply
}

fn admit(
    world: &World,
    received: &Received,
    parts: &http::request::Parts,
    maker: Maker,
    model: &str,
) -> Result<Choice, Refusal> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let own_key = parts.uri.path().starts_with("/azure/");
    if let Some(key) = world.require_key.as_ref().filter(|_| !own_key) {
        let known = received.authorization_is(&format!("Bearer {key}"))
            || header("api-key") == key
            || header("x-goog-api-key") == key
            || query(parts, "key").as_deref() == Some(key);
        if !known {
            return Err(Refusal::new(401, "Incorrect API key provided."));
        }
    }
    if parts.uri.path().starts_with("/azure/") {
        let token = received.authorization_is_token();
        if header("api-key") != AZURE_KEY && !token {
            return Err(Refusal::new(401, "Access denied due to invalid subscription key."));
        }
    }
    let version = query(parts, "api-version").unwrap_or_default();
    if (maker == Maker::AzureOlder) != version.starts_with("20") {
        return Err(Refusal::new(404, "Resource not found"));
    }
    // As Azure has it: a key of its own name, or somebody's token.
    if parts.uri.path().starts_with("/openai/") && header("api-key").is_empty() && !received.has_authorization() {
        return Err(Refusal::new(401, "Access denied due to invalid subscription key."));
    }
    let upgrades = header("upgrade").eq_ignore_ascii_case("websocket") && header("sec-websocket-version") == "13";
    if !upgrades || header("sec-websocket-key").is_empty() {
        return Err(Refusal::new(426, "This endpoint speaks WebSocket only."));
    }
    if !header("openai-beta").is_empty() {
        let message = "The Realtime Beta API is no longer supported. Please use /v1/realtime for the GA API.";
        return Err(Refusal::new(400, message).with_code(Some("beta_api_shape_disabled")));
    }
    if maker == Maker::Gemini {
        return Choice::of_model("plain").ok_or_else(|| Refusal::unknown_model(model));
    }
    if model.is_empty() && query(parts, "intent").as_deref() != Some("transcription") {
        return Err(Refusal::missing("model"));
    }
    let choice = Choice::of_model(model).ok_or_else(|| Refusal::unknown_model(model))?;
    match choice.name.strip_prefix("error").and_then(|status| status.parse().ok()) {
        Some(status) => {
            let plain = crate::scenario::Choice::of("plain", "")?;
            Err(fault::refusal(status, &plain))
        }
        None => Ok(choice),
    }
}

fn switching(parts: &http::request::Parts) -> Response<Outgoing> {
    let mut reply = Response::new(Either::Left(Full::default()));
    *reply.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
    let key = parts.headers.get("sec-websocket-key").map(HeaderValue::as_bytes).unwrap_or_default();
    let headers = reply.headers_mut();
    headers.insert("upgrade", HeaderValue::from_static("websocket"));
    headers.insert("connection", HeaderValue::from_static("upgrade"));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
        headers.insert("sec-websocket-accept", accept);
    }
    headers.insert("x-request-id", HeaderValue::from_static("req_0123456789abcdef"));
    let offered = parts.headers.get("sec-websocket-protocol").and_then(|value| value.to_str().ok());
    if offered.is_some_and(|list| list.split(',').any(|offer| offer.trim() == "realtime")) {
        headers.insert("sec-websocket-protocol", HeaderValue::from_static("realtime"));
    }
    reply
}

/// A value of the query, with `%2B` and the like undone.
fn query(parts: &http::request::Parts, name: &str) -> Option<String> {
    let pairs = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let raw = pairs.into_iter().find(|(key, _)| *key == name)?.1;
    let mut bytes = raw.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let code = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&code).ok()?, 16).ok()?);
    }
    String::from_utf8(out).ok()
}

fn decode(audio: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(audio).ok()
}
