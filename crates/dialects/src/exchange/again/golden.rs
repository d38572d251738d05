//! The originals of the golden files, and the voice in which they are written again.

use crate::hub::{Echo, Voice};
use bytes::Bytes;
use std::fs;
use std::path::Path;
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;
use tollgate_wire::sse::{self, Cutter, EventData, Frame};

pub(super) struct Original {
    pub name: String,
    pub from: Dialect,
    pub text: String,
}

pub(super) fn originals(folder: &str) -> Vec<Original> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let whole = fs::read_to_string(&path).unwrap();
        // Streams of chat alone have other marks.
        let marks = ["\n=== original\n", "\n=== upstream\n"];
        let (words, rest) = marks.into_iter().find_map(|mark| whole.split_once(mark)).unwrap();
        let ends = ["=== result\n", "=== client\n"];
        let text = ends.into_iter().find_map(|end| rest.split_once(end)).map_or(rest, |(text, _)| text).to_owned();
        let word = words.lines().next().unwrap().strip_prefix("from: ").unwrap_or("chat");
        let from = Dialect::ALL.into_iter().find(|dialect| format!("{dialect:?}").to_lowercase() == word).unwrap();
        Original { name: path.file_stem().unwrap().to_string_lossy().into_owned(), from, text }
    };
    paths.into_iter().map(read).collect()
}

/// The data of each event of a stream, a last one without its end included.
pub(super) fn events(text: &str) -> Vec<String> {
    let mut cutter = Cutter::new(1 << 20);
    let bytes = cutter.take(Bytes::from(text.to_owned())).unwrap().unwrap_or_default();
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(frame) = cutter.next(&bytes[at..]).unwrap() {
        all.extend(data(&bytes[at..at + frame.end], &frame));
        at += frame.end;
    }
    cutter.hold(&bytes[at..]).unwrap();
    all.extend(cutter.rest().and_then(|(raw, frame)| data(&raw, &frame)));
    all
}

/// The name that the provider gives its model.
pub(super) fn model(events: &[String]) -> String {
    let named = events.iter().find_map(|event| {
        let node = Node::read(event).ok()?;
        let inner = node.get("message").or_else(|| node.get("response")).unwrap_or(&node);
        inner.text_of("model").or_else(|| inner.text_of("modelVersion")).map(|model| model.to_string())
    });
    named.unwrap_or_default()
}

fn data(raw: &[u8], frame: &Frame) -> Option<String> {
    let data = match &frame.data {
        EventData::None => return None,
        EventData::One(place) => raw[place.clone()].to_vec(),
        EventData::Many => sse::join(raw, b' '),
    };
    Some(String::from_utf8(data.trim_ascii().to_vec()).unwrap()).filter(|data| !data.is_empty())
}

/// What makes equal that which a writer takes from the call: its id, the time, the name of the
/// model, and of a response what it repeats of its request.
pub(super) fn facts(from: Dialect, events: &[String]) -> Voice {
    let mut voice = voice();
    for event in events {
        let Ok(node) = Node::read(event) else { continue };
        let inner = node.get("message").or_else(|| node.get("response")).unwrap_or(&node);
        let Some(id) = inner.text_of(if from == Dialect::Gemini { "responseId" } else { "id" }) else { continue };
        let prefix = match from {
            Dialect::Chat => "chatcmpl-",
            Dialect::Anthropic => "msg_",
            Dialect::Responses => "resp_",
            Dialect::Gemini => "",
        };
        voice.id = id.strip_prefix(prefix).unwrap_or(id).to_owned();
        let created = inner.get("created").or_else(|| inner.get("created_at")).and_then(Node::number);
        voice.created = created.unwrap_or(voice.created);
        voice.echo = Echo::of(inner.raw.as_bytes());
        break;
    }
    Voice { model: model(events), ..voice }
}

pub(super) fn voice() -> Voice {
    Voice { id: "call_1".into(), model: "up".into(), created: 1, wants_usage: true, ..Voice::default() }
}
