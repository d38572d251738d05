//! Parts of a content read into the hub.
//!
//! A signature belongs to one part. In the hub it is a sealed thought in front of that part, bound to the call's id (or to the
//! next text), so that it survives dialects whose calls have no room for it.

use super::NO_SIGNATURE;
use crate::dialect::Dialect;
use crate::hub::{Call, CallKind, Media, NEXT_TEXT, Origin, Part, Place, Seal, Thought, made_id, others, others_in};
use crate::json::Node;
use std::borrow::Cow;

/// A call that waits for its result: id and name.
pub(super) type Open<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Calls that wait for a result at the same time.
const MOST_OPEN: usize = 512;

pub(super) fn content<'a>(content: &Node<'a>, turn: usize, open: &mut Vec<Open<'a>>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for (at, node) in content.get("parts").map_or(&[][..], Node::items).iter().enumerate() {
        read(node, turn, at, open, &mut parts);
    }
    parts
}

fn read<'a>(node: &Node<'a>, turn: usize, at: usize, open: &mut Vec<Open<'a>>, parts: &mut Vec<Part<'a>>) {
    let signature = node.either("thoughtSignature", "thought_signature").and_then(Node::text).cloned();
    let signature = signature.filter(|data| data != NO_SIGNATURE);
    if let Some(call) = node.either("functionCall", "function_call") {
        let call = read_call(call, turn, at);
        if open.len() == MOST_OPEN {
            open.remove(0);
        }
        open.push((call.id.clone(), call.name.clone()));
        parts.extend(signature.map(|data| sealed(data, call.id.clone())));
        parts.push(Part::Call(call));
        return;
    }
    if let Some(text) = node.text_of("text") {
        if node.get("thought").and_then(Node::bool) == Some(true) {
            let seal = signature.map(|data| Seal::read(Dialect::Gemini, data, Cow::Borrowed("")));
            // A stream's thought comes in pieces, its seal with the last.
            match parts.last_mut() {
                Some(Part::Thought(last)) if last.seal.is_none() => {
                    last.text.to_mut().push_str(text);
                    last.seal = seal;
                }
                _ => parts.push(Part::Thought(Thought { text: text.clone(), seal, ..Thought::default() })),
            }
            if let Some(Part::Thought(last)) = parts.last_mut() {
                let origin = last.seal.as_ref().map(|seal| seal.origin);
                last.summary = origin == Some(Origin::OpenAi) && !last.text.is_empty();
                last.redacted = origin == Some(Origin::Anthropic) && last.text.is_empty();
            }
            return;
        }
        parts.extend(signature.map(|data| sealed(data, Cow::Borrowed(NEXT_TEXT))));
        if !text.is_empty() {
            parts.push(Part::text(text.clone()));
        }
        return;
    }
    if let Some(result) = node.either("functionResponse", "function_response") {
        parts.push(read_result(result, open));
        return;
    }
    if let Some(data) = node.either("inlineData", "inline_data") {
        let mime = data.either("mimeType", "mime_type").and_then(Node::text).cloned().unwrap_or_default();
        let base64 = data.text_of("data").cloned().unwrap_or_default();
        parts.push(media(mime.clone(), Place::Data { mime, base64 }, node, data));
        return;
    }
    if let Some(file) = node.either("fileData", "file_data") {
        let mime = file.either("mimeType", "mime_type").and_then(Node::text).cloned().unwrap_or_default();
        let uri = file.either("fileUri", "file_uri").and_then(Node::text).cloned().unwrap_or_default();
        let own = uri.starts_with("gs://") || uri.contains("generativelanguage.googleapis.com");
        let place = if own { Place::Id(uri) } else { Place::Url(uri) };
        parts.push(media(mime, place, node, file));
        return;
    }
    let what = node.members().iter().map(|(name, _)| name.clone()).next().unwrap_or_default();
    parts.push(Part::Foreign { origin: Dialect::Gemini, what, raw: node.raw, words: None });
}

fn sealed<'a>(data: Cow<'a, str>, bound: Cow<'a, str>) -> Part<'a> {
    let seal = Seal::read(Dialect::Gemini, data, bound);
    let redacted = seal.origin == crate::hub::Origin::Anthropic;
    Part::Thought(Thought { seal: Some(seal), redacted, ..Thought::default() })
}

/// Members of `inlineData` and `fileData` that are read; the last two of a file only.
const READ: [&str; 7] = ["mimeType", "mime_type", "data", "fileUri", "file_uri", "displayName", "display_name"];

/// Pictures, sound, clips and files are told apart by their type alone. `inner` is the object with the data or the address.
fn media<'a>(mime: Cow<'a, str>, place: Place<'a>, node: &Node<'a>, inner: &Node<'a>) -> Part<'a> {
    let (part, is_file): (fn(Media<'a>) -> Part<'a>, bool) = match mime.split('/').next() {
        Some("image") => (Part::Image, false),
        Some("audio") => (Part::Audio, false),
        Some("video") => (Part::Video, false),
        _ => (Part::File, true),
    };
    // Files have a name in the other dialects too; pictures, sound and clips have none.
    let name = inner.either("displayName", "display_name").and_then(Node::text).filter(|_| is_file).cloned();
    let outer = if matches!(place, Place::Data { .. }) { "inlineData" } else { "fileData" };
    let mut rest = others(node, &["inlineData", "inline_data", "fileData", "file_data"]);
    rest.extend(others_in(outer, inner, if name.is_some() { &READ } else { &READ[..5] }));
    part(Media { name, rest, ..Media::at(place) })
}

pub(super) fn read_call<'a>(call: &Node<'a>, turn: usize, at: usize) -> Call<'a> {
    let name = call.text_of("name").cloned().unwrap_or_default();
    let args = call.get("args").map_or("{}", |args| args.raw);
    let id = match call.text_of("id").filter(|id| !id.is_empty()) {
        Some(id) => id.clone(),
        None => Cow::Owned(made_id(turn, at, &name, args)),
    };
    Call {
        id,
        name,
        namespace: None,
        kind: CallKind::Function,
        args: Cow::Borrowed(args),
        cached: false,
        rest: others(call, &["id", "name", "args"]),
    }
}

/// A result finds its call by id, by name, or by order.
fn read_result<'a>(node: &Node<'a>, open: &mut Vec<Open<'a>>) -> Part<'a> {
    let name = node.text_of("name").cloned().unwrap_or_default();
    let given = node.text_of("id").filter(|id| !id.is_empty());
    let found = given
        .and_then(|id| open.iter().position(|(call, _)| call == id))
        .or_else(|| open.iter().position(|(_, call)| *call == name))
        .or((!open.is_empty() && given.is_none()).then_some(0));
    let id = match (found, given) {
        (Some(at), _) => open.remove(at).0,
        (None, Some(id)) => id.clone(),
        (None, None) => name.clone(),
    };
    let response = node.get("response");
    let error = response.and_then(|response| response.get("error"));
    let told = error.or_else(|| match response.map(Node::members) {
        Some([(key, value)]) if key == "output" || key == "result" => Some(value),
        _ => None,
    });
    let text = match told.or(response) {
        Some(value) => value.text().cloned().unwrap_or(Cow::Borrowed(value.raw)),
        None => Cow::Borrowed(""),
    };
    let mut parts = if text.is_empty() { Vec::new() } else { vec![Part::text(text)] };
    parts.extend(content(node, 0, &mut Vec::new()));
    Part::Result {
        id,
        name: Some(name),
        parts,
        error: error.is_some(),
        kind: CallKind::Function,
        cached: false,
        rest: others(node, &["id", "name", "response", "parts"]),
    }
}
