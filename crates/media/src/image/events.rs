//! A provider's events with pictures, passed on as they are. Each is megabytes in one line, so an
//! event is held back only until a picture begins in it, or until its end where there is none.
//!
//! Every picture that leaves is counted, wherever it stands in its event and whatever the event is
//! called, unless it is a preview. Pictures beyond those that were asked for do not leave.

use super::event_pictures::{EventPictures, MAX_REST};
use super::flow::FlowBroke;
use bytes::Bytes;
use serde_json::Value;
use tollgate_wire::json::Push;

/// The most that is held back until a picture begins.
const HELD: usize = 2 * MAX_REST;
/// The longest name of an event that is read.
const LONGEST_NAME: usize = 128;
/// The data of an event that says nothing but that all is over.
const DONE: &[u8] = b"[DONE]";
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Events on their way.
#[derive(Debug)]
pub struct EventPass {
    asked: u64,
    line: Line,
    /// The last line ended with a CR, which may be half of its end.
    after_cr: bool,
    event: PassedEvent,
    /// What of the event has not gone out yet.
    held: Vec<u8>,
    out: Vec<u8>,
    completed: u64,
    usage: Option<String>,
    error: Option<Value>,
}

/// Where we are in a line.
#[derive(Debug, Default)]
enum Line {
    #[default]
    Start,
    /// The name of its field, as far as it is here.
    Field(Vec<u8>),
    /// The value of a `data` line. `blank`: one that comes next is not of it.
    Data {
        blank: bool,
    },
    /// The value of an `event` line.
    Name {
        blank: bool,
    },
    Other,
}

/// What of an event is known.
#[derive(Debug, Default)]
struct PassedEvent {
    /// Something of it is here.
    begun: bool,
    way: Way,
    name: Vec<u8>,
    /// Lines of data so far.
    lines: usize,
    /// So much of [`DONE`] is here, and nothing else; all of it comes before it is known.
    done: Option<usize>,
    push: Push,
    data: EventPictures,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    Held,
    Passing,
    /// It is one picture too many.
    Dropped,
}

impl EventPass {
    /// Of an answer with so many pictures.
    pub fn new(asked: u64) -> EventPass {
        EventPass {
            asked,
            line: Line::Start,
            after_cr: false,
            event: PassedEvent::with_room(asked),
            held: Vec::new(),
            out: Vec::new(),
            completed: 0,
            usage: None,
            error: None,
        }
    }

    /// Finished pictures that were handed over, such as can be decoded.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// All that was asked for is there.
    pub fn is_complete(&self) -> bool {
        self.completed >= self.asked
    }

    /// The last report of what was used, as JSON.
    pub fn usage(&self) -> Option<&str> {
        self.usage.as_deref()
    }

    /// An error that a provider reported in its events.
    pub fn error(&self) -> Option<&Value> {
        self.error.as_ref()
    }

    /// Some of an event has gone out, and its end has not.
    pub fn is_amid_event(&self) -> bool {
        self.event.way == Way::Passing
    }

    /// What may go out by now.
    pub fn take(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.out))
    }

    /// The next piece. What was good before it broke may go out all the same.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), FlowBroke> {
        let mut rest = piece;
        while let Some(first) = rest.first().filter(|_| self.error.is_none()) {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                self.write(b"\n")?;
                rest = &rest[1..];
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
            let (text, after) = rest.split_at(end);
            self.text(text)?;
            rest = after.get(1..).unwrap_or_default();
            if let Some(mark) = after.get(..1) {
                self.after_cr = mark == b"\r";
                self.line_ends(mark)?;
            }
        }
        Ok(())
    }

    /// The provider is at its end. Its last event may lack what ends it, and is one all the same.
    pub fn end(&mut self) -> Result<(), FlowBroke> {
        for _ in 0..2 {
            if self.event.begun && self.error.is_none() {
                self.line_ends(b"\n")?;
            }
        }
        Ok(())
    }

    /// What of a line stands in a piece.
    fn text(&mut self, mut text: &[u8]) -> Result<(), FlowBroke> {
        while let Some(first) = text.first() {
            self.event.begun = true;
            match &mut self.line {
                Line::Start => self.line = Line::Field(Vec::new()),
                Line::Field(name) => {
                    name.push(*first);
                    let (own, ends) = (name.strip_prefix(BOM).unwrap_or(name), *first == b':');
                    let next = match own {
                        b"data:" => Some(Line::Data { blank: true }),
                        b"event:" => Some(Line::Name { blank: true }),
                        _ => (ends || own.len() > b"event:".len()).then_some(Line::Other),
                    };
                    if matches!(next, Some(Line::Data { .. })) {
                        self.next_data()?;
                    } else if matches!(next, Some(Line::Name { .. })) {
                        self.event.name.clear();
                    }
                    self.line = next.unwrap_or_else(|| std::mem::take(&mut self.line));
                    self.write(&text[..1])?;
                    text = &text[1..];
                }
                Line::Data { blank } | Line::Name { blank } if *blank => {
                    *blank = false;
                    if let Some(value) = text.strip_prefix(b" ") {
                        self.write(b" ")?;
                        text = value;
                    }
                }
                Line::Data { .. } => return self.data(text),
                Line::Name { .. } => {
                    let room = LONGEST_NAME.saturating_sub(self.event.name.len());
                    self.event.name.extend_from_slice(&text[..text.len().min(room)]);
                    return self.write(text);
                }
                Line::Other => return self.write(text),
            }
        }
        Ok(())
    }

    /// A line of data begins. The lines of an event are one text, with ends of lines between them.
    fn next_data(&mut self) -> Result<(), FlowBroke> {
        self.event.lines += 1;
        if self.event.lines == 1 {
            self.event.done = Some(0);
            return Ok(());
        }
        self.is_not_done()?;
        self.event.data.between = true;
        self.json(b"\n")?;
        self.event.data.between = false;
        Ok(())
    }

    fn data(&mut self, mut text: &[u8]) -> Result<(), FlowBroke> {
        if let Some(before) = self.event.done {
            let same = DONE[before..].iter().zip(text).take_while(|(one, other)| one == other).count();
            self.event.done = Some(before + same);
            text = &text[same..];
            if text.is_empty() {
                return Ok(());
            }
            self.is_not_done()?;
        }
        self.json(text)
    }

    /// What was like the beginning of [`DONE`] is data like any other.
    fn is_not_done(&mut self) -> Result<(), FlowBroke> {
        match self.event.done.take() {
            Some(same) if same > 0 => self.json(&DONE[..same]),
            _ => Ok(()),
        }
    }

    fn json(&mut self, text: &[u8]) -> Result<(), FlowBroke> {
        let event = &mut self.event;
        let fed = event.push.feed(text, &mut event.data);
        fed.map_err(|_| if event.data.too_long { FlowBroke::TooLong } else { FlowBroke::NotJson })?;
        if event.data.begun && event.way == Way::Held {
            event.way = if event.data.room == 0 { Way::Dropped } else { Way::Passing };
            match event.way {
                Way::Passing => self.out.append(&mut self.held),
                _ => self.held.clear(),
            }
        }
        let text = std::mem::take(&mut event.data.out);
        self.write(&text)
    }

    fn write(&mut self, text: &[u8]) -> Result<(), FlowBroke> {
        match self.event.way {
            // Between events, which nobody waits for.
            Way::Held if !self.event.begun => self.out.extend_from_slice(text),
            Way::Held => {
                self.held.extend_from_slice(text);
                if self.held.len() > HELD {
                    return Err(FlowBroke::TooLong);
                }
            }
            Way::Passing => self.out.extend_from_slice(text),
            Way::Dropped => {}
        }
        Ok(())
    }

    fn line_ends(&mut self, mark: &[u8]) -> Result<(), FlowBroke> {
        match std::mem::take(&mut self.line) {
            Line::Start => {
                let event = self.event.value()?;
                self.write(mark)?;
                let passed = std::mem::take(&mut self.event);
                if let Some(event) = event {
                    self.event_ends(passed, event);
                }
                self.out.append(&mut self.held);
                self.event = PassedEvent::with_room(self.room());
                return Ok(());
            }
            Line::Data { .. } if self.event.done == Some(DONE.len()) => self.write(DONE)?,
            Line::Data { .. } => self.is_not_done()?,
            _ => {}
        }
        self.write(mark)
    }

    fn room(&self) -> u64 {
        self.asked.saturating_sub(self.completed)
    }

    fn event_ends(&mut self, passed: PassedEvent, event: Value) {
        let kind = event["type"].as_str().map_or(String::from_utf8_lossy(&passed.name), Into::into).into_owned();
        let fails = kind == "error" || event["error"].is_object();
        if fails && passed.way != Way::Passing {
            self.held.clear();
            self.error = Some(event);
            return;
        }
        // Unless it says of itself that it is none, a picture is finished.
        let is_preview = match kind.as_str() {
            "" => event.get("partial_image_index").is_some(),
            kind => kind.contains("partial_image") || kind.contains("preview"),
        };
        if is_preview {
            return;
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.to_string());
        }
        self.completed += passed.data.whole;
        if fails {
            self.error = Some(event);
        } else if passed.way == Way::Held {
            self.count_links(&passed.name, event);
        }
    }

    /// Pictures by their links, in an event that has no others and is held as a whole. What is
    /// beyond those that were asked for leaves its list.
    fn count_links(&mut self, name: &[u8], mut event: Value) {
        let is_link = |one: &Value| {
            one["url"].as_str().is_some_and(|url| url.starts_with("https://") || url.starts_with("http://"))
        };
        let (own, room) = (u64::from(is_link(&event)), self.room());
        let listed = event["data"].as_array().map_or(0, |list| list.iter().filter(|one| is_link(one)).count() as u64);
        let (all, mut left) = (own + listed, room.saturating_sub(own));
        self.completed += all.min(room);
        if all <= room {
            return;
        }
        self.held.clear();
        if room == 0 {
            return;
        }
        if let Some(list) = event["data"].as_array_mut() {
            list.retain(|one| {
                let stays = !is_link(one) || left > 0;
                left = left.saturating_sub(u64::from(is_link(one)));
                stays
            });
        }
        if !name.is_empty() {
            self.held.extend_from_slice(&[b"event: ", name, b"\n"].concat());
        }
        self.held.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    }
}

impl PassedEvent {
    fn with_room(room: u64) -> PassedEvent {
        PassedEvent { data: EventPictures::with_room(room), ..PassedEvent::default() }
    }

    /// Its data at its end; `None`: it has none that says anything.
    fn value(&self) -> Result<Option<Value>, FlowBroke> {
        if self.data.rest.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        self.push.finish().map_err(|_| FlowBroke::NotJson)?;
        serde_json::from_slice(&self.data.rest).map(Some).map_err(|_| FlowBroke::NotJson)
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
        bytes.extend_from_slice(&[0xfb; 90]);
        bytes.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82");
        BASE64_STANDARD.encode(bytes)
    }

    fn event(kind: &str, picture: &str) -> String {
        format!("event: {kind}\ndata: {}\n\n", json!({"type": kind, "b64_json": picture, "usage": {"total_tokens": 3}}))
    }

    /// What leaves, and how many pictures are counted, the same in pieces of any size.
    fn passed(text: &str, asked: u64) -> (String, u64) {
        let in_pieces = |size: usize| {
            let (mut pass, mut out) = (EventPass::new(asked), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                pass.feed(piece).unwrap_or_else(|why| panic!("{why:?}: {text}"));
                out.extend_from_slice(&pass.take());
            }
            pass.end().expect("an end");
            out.extend_from_slice(&pass.take());
            assert!(pass.error().is_none() && !pass.is_amid_event(), "{text}");
            (String::from_utf8(out).expect("text"), pass.completed())
        };
        let whole = in_pieces(100_000);
        for size in [1, 2, 3, 5, 64] {
            assert_eq!(in_pieces(size), whole, "pieces of {size}");
        }
        whole
    }

    #[test]
    fn events_pass_unchanged_and_finished_pictures_are_counted() {
        let done = "image_generation.completed";
        let text = [
            ": one moment\n\n".to_owned(),
            event("image_generation.partial_image", &png()),
            event(done, &png()),
            event(done, &png()[..80]),
            event(done, &png()),
            "data: [DONE]\n\n".to_owned(),
        ]
        .concat();
        assert_eq!(passed(&text, 3), (text.clone(), 2));
        let mut pass = EventPass::new(3);
        pass.feed(text.as_bytes()).expect("events");
        assert_eq!(pass.usage(), Some(r#"{"total_tokens":3}"#));
    }

    /// Whatever a copy calls its events, and wherever it puts its pictures.
    #[test]
    fn no_finished_picture_passes_uncounted() {
        let (own, kind) = (png(), "image_generation.completed");
        let data = |event: Value| format!("data: {event}\n\n");
        let slashes = data(json!({ "type": kind, "b64_json": own })).replace('/', "\\/").replace('+', "\\u002b");
        assert!(slashes.contains("\\/") && slashes.contains("\\u002b"));
        for (text, count) in [
            (data(json!({ "type": "image_edit.completed", "b64_json": own })), 1),
            (data(json!({ "type": "image_generation.done", "b64_json": own })), 1),
            (data(json!({ "b64_json": own })), 1),
            (format!("event: {kind}\n{}", data(json!({ "b64_json": own }))), 1),
            (format!("event: x.partial_image\n{}", data(json!({ "type": kind, "b64_json": own }))), 1),
            (format!("event: x.partial_image\n{}", data(json!({ "b64_json": own }))), 0),
            (data(json!({ "b64_json": own, "partial_image_index": 0 })), 0),
            (data(json!({ "type": kind, "data": [{ "b64_json": own }, { "b64_json": own }] })), 2),
            (data(json!({ "type": kind, "images": [own, { "other": { "deep": own } }] })), 2),
            (data(json!({ "type": kind, "image": format!("data:image/png;base64,{own}") })), 1),
            (slashes, 1),
            (data(json!({ "type": kind, "b64_json": own })).replace('\n', "\r\n"), 1),
            (data(json!({ "type": kind, "b64_json": own })).replace('\n', "\r"), 1),
            (format!("data:{}\n\n", json!({ "type": kind, "b64_json": own })), 1),
            (format!("\u{feff}{}", data(json!({ "type": kind, "b64_json": own }))), 1),
            (format!("id: 7\ndata: {{\"b64_json\":\ndata: \"{own}\",\ndata:\"n\":-1\ndata:}}\n\n"), 1),
            (data(json!({ "type": kind, "b64_json": &own[..own.len() - 8] })), 0),
            (data(json!({ "type": kind, "b64_json": "x".repeat(100_000) })), 0),
            (data(json!({ "type": kind, "b64_json": "" })), 0),
            (data(json!({ "type": kind, "url": "https://a.example/1.png" })), 1),
            (data(json!({ "type": kind, "data": [{ "url": "https://a.example/1.png" }, { "url": "" }] })), 1),
            (data(json!({ "type": kind, "b64_json": own, "url": "https://a.example/1.png" })), 1),
            (data(json!({ "type": "image_generation.partial_image", "url": "https://a.example/1.png" })), 0),
        ] {
            assert_eq!(passed(&text, 9), (text.clone(), count));
        }
    }

    /// The end of the last event may be missing: whoever reads it gets it, and it is counted.
    #[test]
    fn an_event_without_its_end_is_one() {
        let whole = event("image_generation.completed", &png());
        for missing in 1..=2 {
            assert_eq!(passed(&whole[..whole.len() - missing], 1), (whole.clone(), 1));
        }
        let mut pass = EventPass::new(1);
        pass.feed(&whole.as_bytes()[..whole.len() - 9]).expect("events");
        assert!(pass.is_amid_event() && !pass.take().is_empty());
        assert_eq!((pass.end(), pass.completed()), (Err(FlowBroke::NotJson), 0));
    }

    #[test]
    fn what_was_not_asked_for_does_not_leave() {
        let kind = "image_generation.completed";
        let one = event(kind, &png());
        let usage = "data: {\"type\":\"image_generation.over\",\"usage\":{}}\n\n";
        let text = [&one, &one, &event("image_generation.partial_image", &png()), usage, &one].concat();
        assert_eq!(passed(&text, 1), ([&one, usage].concat(), 1));
        // In one event with what was asked for.
        let several = |pictures: &[&str]| format!("data: {}\n\n", json!({ "type": kind, "images": pictures }));
        let own = png();
        assert_eq!(passed(&several(&[&own, &own, &own]), 2), (several(&[&own, &own, ""]), 2));
        // One that cannot be decoded takes nobody's place.
        assert_eq!(passed(&several(&[&own[..100], &own, &own]), 1), (several(&[&own[..100], &own, ""]), 1));
        let links = |count: usize| {
            let list = vec![json!({ "url": "https://a.example/1.png" }); count];
            format!("event: {kind}\ndata: {}\n\n", json!({ "data": list, "type": kind }))
        };
        assert_eq!(passed(&links(3), 2), (links(2), 2));
        assert_eq!(passed(&[links(1), links(1)].concat(), 1), (links(1), 1));
    }

    #[test]
    fn an_error_is_held_back_and_ends_all() {
        let first = event("image_generation.completed", &png());
        let said = "\"message\":\"host-7.internal\"";
        for error in [
            format!("event: error\ndata: {{\"type\":\"error\",\"error\":{{{said}}}}}\n\n"),
            format!("event: error\ndata: {{{said}}}\n\n"),
            format!("data: {{\"type\":\"image_generation.completed\",\"error\":{{{said}}}}}\n\n"),
        ] {
            for size in [1, 7, 100_000] {
                let text = [first.as_str(), &error, &first].concat();
                let mut pass = EventPass::new(3);
                text.as_bytes().chunks(size).for_each(|piece| pass.feed(piece).expect("events"));
                assert_eq!((pass.take(), pass.completed()), (Bytes::from(first.clone()), 1), "{error}");
                assert!(pass.error().is_some() && pass.end() == Ok(()) && pass.take().is_empty());
            }
        }
    }

    /// What was good before it may go out.
    #[test]
    fn what_is_no_event_breaks_off() {
        let first = event("image_generation.completed", &png());
        for (bad, why) in [
            ("data: <html>\n\n".to_owned(), FlowBroke::NotJson),
            ("data: {\"a\":\n\n".to_owned(), FlowBroke::NotJson),
            ("data: {\"a\":\"b\ndata: c\"}\n\n".to_owned(), FlowBroke::NotJson),
            ("data: [DONE\n\n".to_owned(), FlowBroke::NotJson),
            (format!("data: {{\"a\":\"{}\"}}\n\n", "x".repeat(MAX_REST)), FlowBroke::TooLong),
            (format!(": {}", "x".repeat(HELD)), FlowBroke::TooLong),
        ] {
            for size in [1, 100_000] {
                let mut pass = EventPass::new(3);
                let text = [&first, &bad].map(String::as_str).concat();
                let fed: Result<(), FlowBroke> = text.as_bytes().chunks(size).try_for_each(|piece| pass.feed(piece));
                let fed = fed.and_then(|()| pass.end());
                assert_eq!((fed, pass.take()), (Err(why), Bytes::from(first.clone())), "{}", &bad[..20.min(bad.len())]);
            }
        }
    }
}
