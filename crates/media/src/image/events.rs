//! A provider's events with pictures, passed on as they are: each is megabytes in one line, so it
//! is looked through while it passes and held back only until its type is known.

use super::flow::FlowBroke;
use super::letters::PictureCheck;
use bytes::Bytes;
use serde_json::Value;
use tollgate_wire::json::{BrokenJson, JsonStep, Push, Steps};

/// The most that is held back until the type of an event is known.
const HELD: usize = 64 << 10;
/// The most of an event that is buffered besides its picture.
const MAX_REST: usize = 64 << 10;

/// Events on their way.
#[derive(Debug, Default)]
pub struct EventPass {
    line: Line,
    /// What of the event has not gone out yet; its type is not known.
    held: Vec<u8>,
    out: Vec<u8>,
    sink: Sink,
    push: Push,
    /// Finished pictures, such as can be decoded.
    pub completed: u64,
    /// The last report of what was used, as JSON.
    pub usage: Option<String>,
    /// An error that a provider reported in its events.
    pub error: Option<Value>,
}

#[derive(Debug, Default)]
enum Line {
    /// The beginning of a line, as far as it is here.
    #[default]
    Start,
    Field(Vec<u8>),
    /// The value of a `data` line.
    Data,
    Other,
}

/// What of an event is looked at.
#[derive(Debug, Default)]
struct Sink {
    depth: usize,
    name: Vec<u8>,
    named: bool,
    rest: Vec<u8>,
    picture: Option<Letters>,
    decodable: bool,
    kind: Option<String>,
    plain: Vec<u8>,
    too_long: bool,
}

#[derive(Debug)]
enum Letters {
    Head(Vec<u8>),
    Known(PictureCheck),
    Foreign,
}

impl EventPass {
    /// The next piece; what may go out of it now.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Bytes, FlowBroke> {
        let mut at = 0;
        while at < piece.len() {
            let end = memchr::memchr(b'\n', &piece[at..]).map(|found| at + found);
            let (text, ends) = (&piece[at..end.unwrap_or(piece.len())], end.is_some());
            self.text(text)?;
            if ends {
                self.line_ends()?;
            }
            at = end.map_or(piece.len(), |end| end + 1);
        }
        Ok(Bytes::from(std::mem::take(&mut self.out)))
    }

    fn text(&mut self, text: &[u8]) -> Result<(), FlowBroke> {
        if text.is_empty() {
            return Ok(());
        }
        let mut rest = text;
        if matches!(self.line, Line::Start) {
            self.line = Line::Field(Vec::new());
        }
        if let Line::Field(start) = &mut self.line {
            let room = 6usize.saturating_sub(start.len());
            let (now, then) = rest.split_at(rest.len().min(room));
            start.extend_from_slice(now);
            if start.len() < 6 {
                self.pass(text);
                return Ok(());
            }
            let (data, blank) = (start.starts_with(b"data:"), start[5] == b' ');
            self.line = if data { Line::Data } else { Line::Other };
            // A blank behind the colon is not of the value.
            rest = if data && !blank { &rest[now.len() - 1..] } else { then };
        }
        if matches!(self.line, Line::Data) && rest != b"[DONE]" && rest != b"[DONE]\r" {
            let fed = self.push.feed(rest.strip_suffix(b"\r").unwrap_or(rest), &mut self.sink);
            fed.map_err(|_| if self.sink.too_long { FlowBroke::TooLong } else { FlowBroke::NotJson })?;
        }
        self.pass(text);
        Ok(())
    }

    /// Goes out as soon as it is known that it is no error.
    fn pass(&mut self, text: &[u8]) {
        self.held.extend_from_slice(text);
        let known = self.sink.kind.as_deref().is_some_and(|kind| kind != "error");
        if known || self.held.len() > HELD {
            self.out.append(&mut self.held);
        }
    }

    fn line_ends(&mut self) -> Result<(), FlowBroke> {
        let line = std::mem::take(&mut self.line);
        self.held.push(b'\n');
        if matches!(line, Line::Data) && !self.sink.rest.is_empty() {
            std::mem::take(&mut self.push).finish().map_err(|_| FlowBroke::NotJson)?;
            let sink = std::mem::take(&mut self.sink);
            let event: Value = serde_json::from_slice(&sink.rest).map_err(|_| FlowBroke::NotJson)?;
            if event["type"] == "error" || event["error"].is_object() {
                self.error = Some(event);
                self.held.clear();
                return Ok(());
            }
            let kind = sink.kind.as_deref().unwrap_or_default();
            if kind.ends_with(".completed") {
                self.completed += u64::from(sink.decodable);
                self.usage = event.get("usage").filter(|usage| usage.is_object()).map(Value::to_string);
            }
            self.out.append(&mut self.held);
        } else if matches!(line, Line::Start) {
            // The end of an event.
            self.out.append(&mut self.held);
        }
        Ok(())
    }
}

impl Steps for Sink {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match step {
            JsonStep::Open { .. } => self.depth += 1,
            JsonStep::Close => self.depth -= 1,
            JsonStep::Name { last } if self.depth == 1 => {
                if std::mem::take(&mut self.named) {
                    self.name.clear();
                }
                self.name.extend_from_slice(&text[..text.len().min(64)]);
                self.named = last;
            }
            JsonStep::Plain { last } if self.depth == 1 => return self.plain(last, text),
            _ => {}
        }
        self.keep(text)
    }
}

impl Sink {
    fn keep(&mut self, text: &[u8]) -> Result<(), BrokenJson> {
        if self.rest.len() + text.len() > MAX_REST {
            self.too_long = true;
            return Err(BrokenJson::Depth);
        }
        self.rest.extend_from_slice(text);
        Ok(())
    }

    fn plain(&mut self, last: bool, text: &[u8]) -> Result<(), BrokenJson> {
        if self.name == b"\"b64_json\"" {
            let own = match self.picture {
                None => {
                    self.picture = Some(Letters::Head(Vec::new()));
                    self.keep(b"\"\"")?;
                    text.strip_prefix(b"\"").unwrap_or(text)
                }
                Some(_) => text,
            };
            self.letters(if last { own.strip_suffix(b"\"").unwrap_or(own) } else { own }, last);
            return Ok(());
        }
        if self.name == b"\"type\"" {
            self.plain.extend_from_slice(&text[..text.len().min(128)]);
            if last {
                self.kind = serde_json::from_slice(&self.plain).ok();
                self.plain.clear();
            }
        }
        self.keep(text)
    }

    fn letters(&mut self, text: &[u8], last: bool) {
        if let Some(Letters::Head(head)) = &mut self.picture {
            head.extend_from_slice(text);
            if head.len() < 48 && !last {
                return;
            }
            let kind = PictureCheck::begins(head);
            let mut check = kind.map(PictureCheck::new);
            if let Some(check) = &mut check {
                check.feed(head);
            }
            self.picture = Some(check.map_or(Letters::Foreign, Letters::Known));
        } else if let Some(Letters::Known(check)) = &mut self.picture {
            check.feed(text);
        }
        if last {
            self.decodable = matches!(&self.picture, Some(Letters::Known(check)) if check.is_whole());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    fn png() -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        bytes.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82");
        BASE64_STANDARD.encode(bytes)
    }

    fn event(kind: &str, picture: &str) -> String {
        format!("event: {kind}\ndata: {}\n\n", json!({"type": kind, "b64_json": picture, "usage": {"total_tokens": 3}}))
    }

    #[test]
    fn events_pass_unchanged_and_finished_pictures_are_counted() {
        let text = [
            event("image_generation.partial_image", &png()),
            event("image_generation.completed", &png()),
            event("image_generation.completed", &png()[..40]),
            event("image_generation.completed", &png()),
        ]
        .concat();
        for size in [1, 5, 64, 100_000] {
            let (mut pass, mut out) = (EventPass::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                out.extend_from_slice(&pass.feed(piece).expect("events"));
            }
            assert_eq!(String::from_utf8(out).expect("text"), text, "{size}");
            assert_eq!((pass.completed, pass.usage.as_deref()), (2, Some(r#"{"total_tokens":3}"#)));
        }
    }

    #[test]
    fn an_error_is_held_back() {
        let mut pass = EventPass::default();
        let text = "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"host-7.internal\"}}\n\n";
        let out = pass.feed(text.as_bytes()).expect("events");
        assert!(!String::from_utf8_lossy(&out).contains("internal"));
        assert!(pass.error.is_some());
        assert_eq!(EventPass::default().feed(b"data: <html>\n\n"), Err(FlowBroke::NotJson));
    }
}
