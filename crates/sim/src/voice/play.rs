//! What was heard, and the answer as steps: what is the same for all makers.

use bytes::Bytes;
use http::{HeaderValue, Response};
use serde_json::Value;

use super::audio::{Format, RATE, file};
use super::scenario::Choice;
use crate::fault::response;
use crate::script::Step;
use crate::server::World;

/// A request as it came.
pub(super) struct Heard<'a> {
    pub parts: &'a http::request::Parts,
    pub body: &'a Value,
    pub require_key: Option<&'a str>,
}

impl Heard<'_> {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Whether this key is one that is taken.
    pub(super) fn takes(&self, key: Option<&str>) -> bool {
        match (self.require_key, key) {
            (Some(wanted), key) => key == Some(wanted),
            (None, key) => key.is_some_and(|key| !key.is_empty() && !key.starts_with("wrong")),
        }
    }

    pub(super) fn bearer(&self) -> Option<&str> {
        self.header("authorization").and_then(|value| value.strip_prefix("Bearer "))
    }

    /// The first member that is not one of these, or one of these that is missing.
    pub(super) fn odd(body: &Value, must: &[&str], may: &[&str]) -> Option<(String, &'static str)> {
        let Some(map) = body.as_object() else { return Some((String::new(), "must be an object")) };
        if let Some(name) = must.iter().find(|name| !map.contains_key(**name)) {
            return Some(((*name).to_string(), "is required"));
        }
        let known = |name: &&String| must.iter().chain(may).any(|one| one == name);
        map.keys().find(|name| !known(name)).map(|name| (name.clone(), "is not a known parameter"))
    }
}

/// How the audio is put into an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The audio itself.
    Bytes,
    MiniMax {
        /// All of it once more in the last event.
        again: bool,
    },
    Gemini,
    DashScope,
    CosyVoice,
    /// MiniMax's song, in one document.
    Song {
        link: bool,
    },
}

/// A request that was understood.
pub(super) struct Asked {
    pub model: String,
    pub choice: Choice,
    pub format: Format,
    pub rate: u32,
    pub shape: Shape,
    /// Writes a refusal as this maker does: status, code, text.
    pub refuse: fn(u16, &str, &str) -> Response<Bytes>,
    /// The maker's codes for a refused text, a limit, a bad field, empty money, a failure.
    pub codes: [(u16, &'static str); 5],
}

impl Asked {
    /// The answer of a scenario that has no audio.
    pub(super) fn refused(&self) -> Option<Response<Bytes>> {
        let say = |at: usize, text: &str| {
            let (status, code) = self.codes[at];
            Some((self.refuse)(status, code, text))
        };
        match self.choice.name {
            "moderated" => say(0, "Your text was rejected by our safety system at sim-guard.internal."),
            "limited" => say(1, "Too many requests from account acc-sim-12345678.").map(|mut reply| {
                reply.headers_mut().insert("retry-after", HeaderValue::from_static("7"));
                reply
            }),
            "bad" => say(2, "The voice is not known."),
            "money" => say(3, "Your account acc-sim-12345678 is empty."),
            "error500" => say(4, "The engine failed on sim-worker-3.internal."),
            "page502" => Some(response(502, "text/html", Bytes::from_static(b"<html>502 edge-3.internal</html>"))),
            "redirect" => {
                let mut reply = response(307, "text/plain", Bytes::new());
                let elsewhere = HeaderValue::from_static("http://127.0.0.1:9/file.mp3");
                reply.headers_mut().insert("location", elsewhere);
                Some(reply)
            }
            "json200" => {
                let body = r#"{"error":{"message":"The engine at sim-7.internal is out of order.","type":"server_error","code":null}}"#;
                Some(response(200, "application/json", Bytes::from_static(body.as_bytes())))
            }
            "json_as_audio" => {
                let body = Bytes::from_static(b"{\"error\":{\"message\":\"no\"}}");
                Some(response(200, self.format.content_type(), body))
            }
            "packed" => Some(crate::fault::packed(200)),
            _ => None,
        }
    }

    /// The head of an answer with audio, and its steps.
    pub(super) fn play(&self, world: &World) -> (Response<()>, Vec<Step>) {
        let content_type = match self.shape {
            Shape::Bytes => self.format.content_type(),
            Shape::MiniMax { .. } | Shape::DashScope | Shape::CosyVoice => "text/event-stream;charset=UTF-8",
            Shape::Gemini | Shape::Song { .. } => "application/json; charset=UTF-8",
        };
        let mut head = Response::new(());
        head.headers_mut().insert("content-type", HeaderValue::from_static(content_type));
        let mut steps = if self.choice.is("huge") { self.much() } else { self.written() };
        let middle = (steps.len() / 2).max(1).min(steps.len());
        match self.choice.name {
            "cut" => {
                steps.truncate(middle);
                steps.push(Step::Cut { reset: self.choice.text("cut") != Some("fin") });
            }
            "hang_midway" => {
                steps.truncate(middle);
                steps.push(Step::Silence);
            }
            "door" => steps.insert(1.min(steps.len()), Step::Until(world.gate.opening("/_door"))),
            _ => {}
        }
        (head, steps)
    }

    /// The audio in its pieces.
    fn pieces(&self) -> Vec<Vec<u8>> {
        let audio = match self.choice.name {
            "empty" | "link_only" => return Vec::new(),
            "header_only" => super::audio::wav_header(self.rate).to_vec(),
            "wrong_format" if self.format == Format::Mp3 => file(Format::Flac, RATE, self.choice.millis()),
            "wrong_format" => file(Format::Mp3, RATE, self.choice.millis()),
            _ => file(self.format, self.rate, self.choice.millis()),
        };
        let pieces = usize::try_from(self.choice.number("pieces", 4)).unwrap_or(4).max(1);
        // Not a whole number of samples, so that pieces end anywhere.
        let length = (audio.len() / pieces).max(1) | 1;
        audio.chunks(length).map(<[u8]>::to_vec).collect()
    }

    fn written(&self) -> Vec<Step> {
        let pieces = self.pieces();
        let characters = self.choice.millis() / 50;
        let texts: Vec<String> = match self.shape {
            Shape::Bytes => return pieces.into_iter().map(|piece| Step::Send(piece.into())).collect(),
            Shape::MiniMax { again } => super::minimax::write(&pieces, &self.choice, again, characters),
            Shape::Gemini => super::gemini::write(&pieces, &self.choice),
            Shape::DashScope => super::dashscope::write(&pieces, &self.choice, characters, false),
            Shape::CosyVoice => super::dashscope::write(&pieces, &self.choice, characters, true),
            Shape::Song { link } => super::music::write(&pieces, &self.choice, link),
        };
        texts.into_iter().map(|text| Step::Send(text.into())).collect()
    }

    /// More audio than anybody should hold: a file, whose last frames go on and on.
    fn much(&self) -> Vec<Step> {
        const PIECE: usize = 64 << 10;
        let begin = file(self.format, self.rate, 1_000);
        let frame = match self.format {
            Format::Mp3 => 96,
            Format::Aac => 13,
            _ => 2,
        };
        let piece: Vec<u8> = begin[begin.len() - frame..].repeat(PIECE / frame);
        let times = (self.choice.number("mib", 20) << 20) / piece.len() as u64;
        vec![Step::Send(begin.into()), Step::Repeat(piece.into(), times)]
    }
}
