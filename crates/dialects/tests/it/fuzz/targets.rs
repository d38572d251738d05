//! What is fuzzed, and what must hold besides not panicking.

use super::mutate::Takes;
use bytes::Bytes;
use tollgate_dialects::{
    CheckedRequest, LinkContent, Path, ReplyStream, Setup, StreamEnd, Target as Sent, ToolNames, Voice, convert,
    responses, without_reasoning,
};
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;
use tollgate_wire::pluck::{Plucked, Plucker};
use tollgate_wire::sse::{self, Cutter, EventData, Frame, TooLong};

pub struct Target {
    pub name: &'static str,
    pub takes: Takes,
    pub play: fn(&[u8], &[usize]) -> Result<(), String>,
}

pub const TARGETS: &[Target] = &[
    Target { name: "sse", takes: Takes::Events, play: framing },
    Target { name: "chat_ask", takes: Takes::Requests, play: |input, _| request(Dialect::Chat, input) },
    Target { name: "claude_ask", takes: Takes::Requests, play: |input, _| request(Dialect::Anthropic, input) },
    Target { name: "resp_ask", takes: Takes::Requests, play: |input, _| request(Dialect::Responses, input) },
    Target { name: "gemini_ask", takes: Takes::Requests, play: |input, _| request(Dialect::Gemini, input) },
    Target { name: "replies", takes: Takes::Replies, play: |input, _| replies(input) },
    Target { name: "chat_ev", takes: Takes::Events, play: |input, at| stream(Dialect::Chat, input, at) },
    Target { name: "claude_ev", takes: Takes::Events, play: |input, at| stream(Dialect::Anthropic, input, at) },
    Target { name: "resp_ev", takes: Takes::Events, play: |input, at| stream(Dialect::Responses, input, at) },
    Target { name: "gemini_ev", takes: Takes::Events, play: |input, at| stream(Dialect::Gemini, input, at) },
    Target { name: "pluck", takes: Takes::Events, play: plucked },
    Target { name: "stored", takes: Takes::Requests, play: |input, _| stored(input) },
];

/// Long texts in JSON come out the same in whatever pieces they come, and nothing is made of
/// nothing.
fn plucked(input: &[u8], splits: &[usize]) -> Result<(), String> {
    const KEYS: &[&str] = &["audio", "data", "content", "delta", "text"];
    let read = |pieces: &[Bytes], events: bool| {
        let mut plucker = if events { Plucker::events(KEYS, EVENT) } else { Plucker::whole(KEYS, EVENT) };
        let mut found = Vec::new();
        let fed = pieces.iter().try_for_each(|piece| plucker.feed(piece, &mut found));
        let ended = fed.and_then(|()| plucker.end(&mut found));
        let (mut long, mut documents) = (Vec::new(), Vec::new());
        for one in found {
            match one {
                Plucked::Text(text) => long.extend(text),
                Plucked::Document(document) => documents.push((long.len(), document)),
            }
        }
        (ended, long, documents)
    };
    for events in [false, true] {
        let whole = read(&[Bytes::copy_from_slice(input)], events);
        if whole != read(&pieces(input, splits), events) {
            return Err("another result in pieces".to_owned());
        }
        let out = whole.1.len() + whole.2.iter().map(|(_, document)| document.len()).sum::<usize>();
        bounded(out, input, "plucked")?;
    }
    Ok(())
}

const EVENT: usize = 64 << 10;
/// Streams longer than this are not read as a client would.
const MOST_CHECKED: usize = 64 << 10;

/// What comes out is bounded by what went in: names and frames are added, nothing is multiplied.
fn bounded(out: usize, input: &[u8], what: &str) -> Result<(), String> {
    let most = input.len() * 80 + (256 << 10);
    if out <= most { Ok(()) } else { Err(format!("{what}: {out} bytes from {}", input.len())) }
}

fn pieces(input: &[u8], splits: &[usize]) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for at in splits {
        pieces.push(Bytes::copy_from_slice(&input[from..*at]));
        from = *at;
    }
    pieces.push(Bytes::copy_from_slice(&input[from..]));
    pieces
}

/// The name and the data of an event.
type Framed = (Option<Bytes>, Option<Bytes>);

fn framed(frame: Frame, raw: &Bytes) -> Framed {
    let data = match frame.data {
        EventData::None => None,
        EventData::One(place) => Some(raw.slice(place)),
        EventData::Many => Some(Bytes::from(sse::join(raw, b'\n'))),
    };
    (frame.name.map(|place| raw.slice(place)), data)
}

fn cut(pieces: &[Bytes], events: &mut Vec<Framed>) -> Result<(), TooLong> {
    let mut cutter = Cutter::new(EVENT);
    for piece in pieces {
        let Some(bytes) = cutter.take(piece.clone())? else { continue };
        let mut start = 0;
        while let Some(frame) = cutter.next(&bytes[start..])? {
            let raw = bytes.slice(start..start + frame.end);
            start += frame.end;
            events.push(framed(frame, &raw));
        }
        cutter.hold(&bytes[start..])?;
    }
    events.extend(cutter.rest().map(|(raw, frame)| framed(frame, &Bytes::from(raw))));
    Ok(())
}

/// The same events, however the bytes arrive.
fn framing(input: &[u8], splits: &[usize]) -> Result<(), String> {
    let read = |pieces: &[Bytes]| {
        let mut events = Vec::new();
        let too_long = cut(pieces, &mut events).is_err();
        // Where a piece ends between CR and LF, the LF may stand alone: an event that says nothing.
        events.retain(|(name, data)| name.is_some() || data.is_some());
        (events, too_long)
    };
    let (whole, cut) = (read(&pieces(input, &[])), read(&pieces(input, splits)));
    if !whole.1 && !cut.1 && whole.0 != cut.0 {
        return Err(format!("{} events at once, {} in pieces {splits:?}", whole.0.len(), cut.0.len()));
    }
    let length: usize = whole.0.iter().filter_map(|(_, data)| data.as_ref()).map(Bytes::len).sum();
    bounded(length, input, "events")
}

fn request(from: Dialect, input: &[u8]) -> Result<(), String> {
    let body = Bytes::copy_from_slice(input);
    let path = Path { model: "gemini-x", stream: true };
    let Ok(request) = CheckedRequest::read(from, body, (from == Dialect::Gemini).then_some(path)) else {
        return Ok(());
    };
    if let Ok(with) = request.with_data(|_| Some(LinkContent { mime: "image/png", base64: "QUJD" })) {
        bounded(with.body().len(), input, "request with data")?;
        if with.links().is_ok_and(|links| !links.is_empty()) {
            return Err("links are left".to_owned());
        }
    }
    for to in Dialect::ALL {
        if let Ok(sent) = request.upstream_body(&Sent::new(to, "up")) {
            bounded(sent.body.len(), input, "request")?;
            if serde_json::from_slice::<serde::de::IgnoredAny>(&sent.body).is_err() {
                return Err(format!("to {to:?}: not JSON"));
            }
            if let Some(without) = without_reasoning(to, &sent.body) {
                bounded(without.len(), &sent.body, "request without seals")?;
                if serde_json::from_slice::<serde::de::IgnoredAny>(&without).is_err()
                    || without_reasoning(to, &without).is_some()
                {
                    return Err(format!("to {to:?}: seals are left"));
                }
            }
        }
    }
    Ok(())
}

fn replies(input: &[u8]) -> Result<(), String> {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            if let Ok(reply) =
                convert(from, to, Bytes::copy_from_slice(input), &ToolNames::default(), &Voice::default())
            {
                bounded(reply.body.len(), input, "reply")?;
            }
        }
    }
    Ok(())
}

fn stream(from: Dialect, input: &[u8], splits: &[usize]) -> Result<(), String> {
    for to in Dialect::ALL {
        let (whole, complete) = play(from, to, &pieces(input, &[]));
        let (cut, cut_complete) = play(from, to, &pieces(input, splits));
        bounded(whole.len(), input, "events")?;
        bounded(cut.len(), input, "events")?;
        if whole.contains(&b'\r') || cut.contains(&b'\r') {
            return Err(format!("to {to:?}: a carriage return"));
        }
        if complete && cut_complete && whole != cut {
            return Err(format!("to {to:?}: {} bytes at once, {} in pieces {splits:?}", whole.len(), cut.len()));
        }
        if from != to && complete {
            ordered(to, &whole)?;
        }
    }
    Ok(())
}

/// A stream of ours that ended well is one that clients read. (What passes within a dialect is the
/// provider's.)
fn ordered(to: Dialect, out: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(out).map_err(|wrong| format!("to {to:?}: {wrong}"))?;
    let data = || text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    if let Some(wrong) = data().find(|data| serde_json::from_str::<serde::de::IgnoredAny>(data).is_err()) {
        return Err(format!("to {to:?}: not JSON: {wrong:.200}"));
    }
    // The clients of the tests keep numbers as floats and are no fast readers.
    let small = out.len() <= MOST_CHECKED;
    if small && data().all(|data| serde_json::from_str::<serde_json::Value>(data).is_ok()) {
        crate::client::gathered(to, text);
    }
    Ok(())
}

/// What a client gets, and whether it ended well.
fn play(from: Dialect, to: Dialect, pieces: &[Bytes]) -> (Vec<u8>, bool) {
    let voice = Voice { id: "call_1".into(), model: "m".into(), created: 1, wants_usage: true, ..Voice::default() };
    let names = ToolNames::default();
    let mut stream = ReplyStream::new(Setup { from, to, voice, names, rename: true, max_event_bytes: EVENT });
    let mut out = Vec::new();
    for piece in pieces {
        match stream.feed(piece.clone()) {
            Ok(reply) => out.extend_from_slice(&reply),
            Err(broken) => {
                out.extend_from_slice(&broken.before);
                out.extend_from_slice(&stream.error_event(Code::UpstreamError, "x"));
                return (out, false);
            }
        }
    }
    let complete = match stream.finish() {
        StreamEnd::Complete { tail } => {
            out.extend_from_slice(&tail);
            true
        }
        StreamEnd::Truncated { rest } => {
            out.extend_from_slice(&rest);
            false
        }
        StreamEnd::Fault(_) => false,
    };
    let _ = (stream.best_usage(1), stream.response_object().is_some());
    (out, complete)
}

/// What the gateway does with bodies it keeps.
fn stored(input: &[u8]) -> Result<(), String> {
    let _ = responses::NamedItems::read(input);
    let _ = responses::from_create_event(input);
    let _ = responses::ResponseOutline::read(input);
    let items = responses::input_items(input, &[]);
    for item in &items {
        bounded(responses::shown(item, "i").len(), input, "item")?;
        let _ = responses::expanded(item.clone());
    }
    if let Ok(whole) = responses::with_input(input, &items) {
        bounded(whole.len(), input, "request")?;
        // As they were, but each in one line.
        let flat = |item: &String| {
            let line = item.replace(['\n', '\r'], " ").replace('\u{2028}', "\\u2028");
            line.replace('\u{2029}', "\\u2029").replace('\u{85}', "\\u0085")
        };
        if responses::input_items(&whole, &[]) != items.iter().map(flat).collect::<Vec<_>>() {
            return Err("the input is another one afterwards".to_owned());
        }
    }
    Ok(())
}
