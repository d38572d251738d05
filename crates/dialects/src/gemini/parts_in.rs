//! Parts of a content read into the hub.
//!
//! A signature belongs to one part. In the hub it is a sealed thought in front of that part, bound
//! to the call's id (or to the next text), so that it survives dialects whose calls have no room
//! for it.

use super::NO_SIGNATURE;
use crate::hub::{
    CallKind, Fields, Media, MediaSource, Member, NEXT_TEXT, Part, Role, Seal, SealMaker, Thought, ToolCall, Turn,
    made_id, others,
};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

/// A call that waits for its result: id and name.
pub(super) type WaitingCall<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Calls that wait for a result at the same time.
const MOST_OPEN: usize = 512;

/// One content. An unusual role stays with it.
pub(super) fn turn<'a>(
    content: &Node<'a>,
    role: Role,
    place: String,
    at: usize,
    open: &mut Vec<WaitingCall<'a>>,
) -> Turn<'a> {
    let mut fields = Fields::of(content);
    fields.word("role", super::role_word(role));
    let said = fields.take_if("parts", |node| Some(node).filter(|node| node.is_list()));
    let mut parts = Vec::new();
    let number = at.to_string();
    for (part, node) in said.map_or(&[][..], Node::items).iter().enumerate() {
        read(node, &number, part, open, &mut parts);
    }
    Turn { rest: fields.rest(), ..Turn::new(role, parts, place) }
}

fn read<'a>(node: &Node<'a>, turn: &str, at: usize, open: &mut Vec<WaitingCall<'a>>, parts: &mut Vec<Part<'a>>) {
    let mut fields = Fields::loose(node);
    // It stays with its part, whatever it becomes for others.
    let signature = fields.see("thoughtSignature").and_then(Node::text).cloned();
    let signature = signature.filter(|data| data != NO_SIGNATURE);
    if let Some(node) = fields.map("functionCall") {
        let call = own_call(node, fields, turn, at);
        if open.len() == MOST_OPEN {
            open.remove(0);
        }
        open.push((call.id.clone(), call.name.clone()));
        parts.extend(signature.map(|data| Part::thought(sealed(data, call.id.clone()))));
        parts.push(Part::Call(call));
    } else if let Some(text) = fields.text("text") {
        if fields.on("thought") {
            thought(fields, text, signature, parts);
        } else if text.is_empty() && signature.is_some() {
            let thought = signature.map(|data| sealed(data, Cow::Borrowed(NEXT_TEXT))).unwrap_or_default();
            parts.push(Part::Thought { thought, rest: fields.rest() });
        } else {
            parts.extend(signature.map(|data| Part::thought(sealed(data, Cow::Borrowed(NEXT_TEXT)))));
            parts.push(Part::Text { text, cached: false, rest: fields.rest() });
        }
    } else if let Some(node) = fields.map("functionResponse") {
        parts.push(read_result(node, fields.rest(), open));
    } else if fields.see("thought").and_then(Node::bool) == Some(true) && fields.see("inlineData").is_some() {
        // A picture that was thought: only its maker can do anything with it.
        parts.push(Part::foreign(Dialect::Gemini, Cow::Borrowed("inlineData"), node.raw));
    } else if let Some(data) = fields.map("inlineData") {
        let mut inner = Fields::loose(data);
        let mime = inner.filled("mimeType");
        let place = MediaSource::Data { mime: mime.clone(), base64: inner.filled("data") };
        parts.push(media(&mime, place, fields, inner, "inlineData"));
    } else if let Some(file) = fields.map("fileData") {
        let mut inner = Fields::loose(file);
        let mime = inner.see("mimeType").and_then(Node::text).cloned().unwrap_or_default();
        let uri = inner.filled("fileUri");
        let own = uri.starts_with("gs://") || uri.contains("generativelanguage.googleapis.com");
        let place = if own { MediaSource::Id(uri) } else { MediaSource::Url(uri) };
        parts.push(media(&mime, place, fields, inner, "fileData"));
    } else {
        let what = node.members().iter().map(|(name, _)| name.clone()).next().unwrap_or_default();
        parts.push(Part::foreign(Dialect::Gemini, what, node.raw));
    }
}

/// A thought. A stream's comes in pieces, its seal with the last.
fn thought<'a>(fields: Fields<'_, 'a>, text: Cow<'a, str>, signature: Option<Cow<'a, str>>, parts: &mut Vec<Part<'a>>) {
    let seal = signature.map(|data| Seal::read(Dialect::Gemini, data, Cow::Borrowed("")));
    let (seal, signed) = seal.map_or((None, false), without_mark);
    let open = |part: &Part<'a>| matches!(part, Part::Thought { thought, .. } if thought.seal.is_none());
    if !parts.last().is_some_and(open) {
        parts.push(Part::thought(Thought::default()));
    }
    if let Some(Part::Thought { thought, rest }) = parts.last_mut() {
        if thought.text.is_empty() {
            thought.text = text;
        } else {
            thought.text.to_mut().push_str(&text);
        }
        fields.rest_at("", rest);
        let origin = seal.as_ref().map(|seal| seal.origin);
        thought.seal = seal;
        thought.summary = origin == Some(SealMaker::OpenAi) && !thought.text.is_empty();
        thought.redacted = origin == Some(SealMaker::Anthropic) && thought.text.is_empty() && !signed;
    }
}

fn sealed<'a>(data: Cow<'a, str>, bound: Cow<'a, str>) -> Thought<'a> {
    let (seal, signed) = without_mark(Seal::read(Dialect::Gemini, data, bound));
    let redacted = seal.as_ref().is_some_and(|seal| seal.origin == SealMaker::Anthropic) && !signed;
    Thought { seal, redacted, ..Thought::default() }
}

/// A seal, and whether it signs a thought: an empty one that does was not redacted.
fn without_mark(mut seal: Seal<'_>) -> (Option<Seal<'_>>, bool) {
    let signed = seal.take_signed().is_some();
    (Some(seal), signed)
}

/// Pictures, sound, clips and files are distinguished by their type alone.
fn media<'a>(
    mime: &str,
    place: MediaSource<'a>,
    fields: Fields<'_, 'a>,
    mut inner: Fields<'_, 'a>,
    key: &'static str,
) -> Part<'a> {
    let kind = mime.split('/').next();
    // Others have names for files alone, and not beside every address.
    let named = matches!(place, MediaSource::Data { .. }) && !matches!(kind, Some("image" | "audio" | "video"));
    let name = if named { inner.filled("displayName") } else { Cow::Borrowed("") };
    let name = Some(name).filter(|name| !name.is_empty());
    let mut media = Media { name, rest: fields.rest(), ..Media::at(place) };
    inner.rest_at(key, &mut media.rest);
    match kind {
        Some("image") => Part::Image(media),
        Some("audio") => Part::Audio(media),
        Some("video") => Part::Video(media),
        _ => Part::File(media),
    }
}

/// A call of the history, with what is left of its part and of itself: its id may be ours.
fn own_call<'a>(node: &Node<'a>, part: Fields<'_, 'a>, turn: &str, at: usize) -> ToolCall<'a> {
    let mut call = read_call(node, turn, at);
    let mut fields = Fields::loose(node);
    fields.filled("name");
    if fields.take("args").is_none() {
        call.args = Cow::Borrowed("");
    }
    call.rest = part.rest();
    fields.rest_at("functionCall", &mut call.rest);
    call
}

pub(super) fn read_call<'a>(call: &Node<'a>, turn: &str, at: usize) -> ToolCall<'a> {
    let name = call.text_of("name").cloned().unwrap_or_default();
    let args = call.get("args").map_or("{}", |args| args.raw);
    let id = match call.text_of("id").filter(|id| !id.is_empty()) {
        Some(id) => id.clone(),
        None => Cow::Owned(made_id(turn, at, &name, args)),
    };
    ToolCall {
        id,
        name,
        namespace: None,
        kind: CallKind::Function,
        args: Cow::Borrowed(args),
        cached: false,
        rest: others(call, &["id", "name", "args"]),
    }
}

/// What says that there is no error.
fn is_nothing(error: &Node<'_>) -> bool {
    matches!(error.raw, "false" | "\"\"" | "0") || error.is_null()
}

/// A result finds its call by id, by name, or by order. What it says stays as it was written.
fn read_result<'a>(node: &Node<'a>, mut rest: Vec<Member<'a>>, open: &mut Vec<WaitingCall<'a>>) -> Part<'a> {
    let mut fields = Fields::loose(node);
    let name = fields.filled("name");
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
    let response = fields.see("response");
    // What is said beside an error belongs to it.
    let error = response.and_then(|response| response.get("error")).is_some_and(|error| !is_nothing(error));
    let output = match response.map(Node::members) {
        Some([(key, value)]) if key == "output" || key == "result" || (key == "error" && error) => Some(value),
        _ => None,
    };
    let text = match output.or(response) {
        Some(value) => value.text().cloned().unwrap_or(Cow::Borrowed(value.raw)),
        None => Cow::Borrowed(""),
    };
    let mut parts = if text.is_empty() { Vec::new() } else { vec![Part::text(text)] };
    for node in fields.see("parts").map_or(&[][..], Node::items) {
        read(node, "", 0, &mut Vec::new(), &mut parts);
    }
    fields.rest_at("functionResponse", &mut rest);
    Part::Result { id, name: Some(name), parts, error, kind: CallKind::Function, cached: false, rest }
}
