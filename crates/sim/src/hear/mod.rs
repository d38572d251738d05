//! Those who write recordings down, each from its maker's documents and strict about what it is
//! sent: OpenAI under `/v1/audio/…`, the others below `/video/<maker>` (`elevenlabs`, `dashscope`
//! at once and by tasks).
//!
//! How a call goes is said by a marker in its prompt, `[[sim:cut]]` or `[[sim:plain seconds=12]]`,
//! or behind a plus sign in the model's name, `scribe_v2+error500`. [`scenarios`] lists what there
//! is. What is heard is how many bytes came: "sim heard 1234 bytes".
//!
//! Of a body above 4 MiB only the beginning and the end are buffered, with the fields of the form;
//! what is between them is counted.

mod dashscope;
mod elevenlabs;
mod files;
mod form;
mod openai;
mod scenario;

use bytes::{Buf as _, Bytes, BytesMut};
use http::Response;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::time::Duration;

use crate::fault::response;
use crate::record::{Received, Watch};
use crate::reply::Outgoing;
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};
use scenario::Wish;
pub use scenario::scenarios;

/// Bodies up to this size are buffered.
const BUFFERED: usize = 4 << 20;
/// Of a longer one, so much of its end at least.
const END: usize = 64 << 10;

pub(crate) use files::Recordings;

pub(crate) fn is_ours(path: &str) -> bool {
    maker(path).is_some()
}

type Maker = fn(&Heard<'_>) -> Act;

fn maker(path: &str) -> Option<Maker> {
    match path {
        "/v1/audio/transcriptions" => Some(|heard| openai::answer(heard, false)),
        "/v1/audio/translations" => Some(|heard| openai::answer(heard, true)),
        "/video/elevenlabs/v1/speech-to-text" => Some(elevenlabs::answer),
        "/video/dashscope/compatible-mode/v1/chat/completions" => Some(dashscope::answer),
        _ if files::is_ours(path) => Some(files::answer),
        _ => None,
    }
}

/// A call as it came.
struct Heard<'a> {
    parts: &'a http::request::Parts,
    /// All of the body, or its beginning.
    body: Bytes,
    /// The end of a body of which there is only the beginning.
    end: Bytes,
    /// Of the whole body.
    length: usize,
    /// Files that were put here, and what is done with them.
    shelf: &'a Recordings,
}

impl Heard<'_> {
    fn header(&self, name: &str) -> &str {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// What a maker does with it.
struct Act {
    model: String,
    wish: Wish,
    stream: bool,
    status: u16,
    content_type: &'static str,
    /// Each is sent in a write of its own.
    pieces: Vec<Bytes>,
}

impl Act {
    fn refused(status: u16, body: &Value) -> Act {
        Act {
            model: String::new(),
            wish: Wish::default(),
            stream: false,
            status,
            content_type: "application/json",
            pieces: vec![body.to_string().into()],
        }
    }

    fn json(model: &str, wish: Wish, body: &Value) -> Act {
        Act { model: model.to_string(), wish, ..Act::refused(200, body) }
    }
}

pub(crate) async fn answer(
    world: &World,
    reset: Reset,
    parts: &http::request::Parts,
    mut body: Incoming,
) -> Response<Outgoing> {
    let (mut buffered, mut end, mut length) = (BytesMut::new(), BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return whole(400, &json!({"error": {"message": "the body did not arrive"}})) };
        let Ok(piece) = frame.into_data() else { continue };
        length += piece.len();
        let room = BUFFERED.saturating_sub(buffered.len()).min(piece.len());
        buffered.extend_from_slice(&piece[..room]);
        if end.is_empty() && room < piece.len() {
            // A boundary may lie across the two.
            end.extend_from_slice(&buffered[BUFFERED - 256..]);
        }
        end.extend_from_slice(&piece[room..]);
        if end.len() > 4 * END {
            let over = end.len() - END;
            end.advance(over);
        }
    }
    let body = buffered.freeze();
    let heard = Heard { parts, body: body.clone(), end: end.freeze(), length, shelf: &world.recordings };
    let path = parts.uri.path();
    let act = maker(path).map_or_else(|| Act::refused(404, &json!({"detail": "Not Found"})), |answer| answer(&heard));
    // What is large is not remembered: tests send much of it.
    let remembered = if body.len() <= 1 << 20 { body } else { Bytes::new() };
    let mut received = Received::new(parts, remembered);
    received.model.clone_from(&act.model);
    received.stream = act.stream;
    received.scenario = act.wish.name().to_string();
    // Asking about a task, or for a place in the store, makes nothing.
    received.accepted = act.status == 200 && (!files::is_ours(path) || path.ends_with("/transcription"));
    received.status = act.status;
    let watch = world.records.add(received);
    world.gate.pass(path).await;
    let think = act.wish.number("think_ms").map_or(world.think, Duration::from_millis);
    if !think.is_zero() {
        tokio::time::sleep(think).await;
    }
    if act.wish.is("hang") {
        std::future::pending::<()>().await;
    }
    play(act, watch, reset)
}

fn whole(status: u16, body: &Value) -> Response<Outgoing> {
    response(status, "application/json", body.to_string().into()).map(|body| Either::Left(Full::new(body)))
}

/// The reply, as the scenario has it.
fn play(act: Act, watch: Watch, reset: Reset) -> Response<Outgoing> {
    if act.wish.is("packed") {
        let mut watch = watch;
        watch.over(true);
        return crate::fault::packed(200).map(|body| Either::Left(Full::new(body)));
    }
    let mut steps = Vec::new();
    let count = act.pieces.len();
    let mut broken = false;
    for (at, piece) in act.pieces.into_iter().enumerate() {
        if act.wish.is("cut") && at == count / 2 {
            steps.push(Step::Send(piece.slice(..piece.len() / 2)));
            steps.push(Step::Cut { reset: false });
            broken = true;
            break;
        }
        steps.push(Step::Send(piece));
        if let Some(pause) = act.wish.number("delay_ms") {
            steps.push(Step::Wait(Duration::from_millis(pause)));
        }
    }
    let ending = if broken { Ending::Broken } else { Ending::Proper };
    let mut reply = Response::new(Either::Right(Script::new(steps, ending, Some(watch), reset)));
    *reply.status_mut() = http::StatusCode::from_u16(act.status).unwrap_or_default();
    reply.headers_mut().insert("content-type", http::HeaderValue::from_static(act.content_type));
    if act.status == 429 {
        reply.headers_mut().insert("retry-after", 7.into());
    }
    reply
}

/// What is said of a recording.
fn text(bytes: usize, wish: &Wish) -> String {
    match wish.number("words") {
        Some(0) => String::new(),
        Some(words) => (1..=words).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" "),
        None => format!("sim heard {bytes} bytes"),
    }
}

/// Whether a file is what its name says.
fn is_named_rightly(name: &str, start: &[u8]) -> bool {
    let at = |from: usize, to: usize| start.get(from..to).unwrap_or_default();
    match name.rsplit('.').next().unwrap_or_default() {
        "wav" => matches!(at(0, 4), b"RIFF" | b"RF64" | b"BW64"),
        "mp3" | "mpeg" | "mpga" => at(0, 3) == b"ID3" || start.first() == Some(&0xff),
        "aac" => start.first() == Some(&0xff),
        "flac" => at(0, 4) == b"fLaC",
        "ogg" => at(0, 4) == b"OggS",
        "m4a" | "mp4" => at(4, 8) == b"ftyp",
        "webm" | "mkv" => at(0, 4) == [0x1a, 0x45, 0xdf, 0xa3],
        _ => false,
    }
}
