//! A provider's answer with pictures in base64, made ours while it passes: megabytes of letters go
//! from one text into the other and are checked on the way; all else is buffered, for it is little.
//!
//! A picture that turns out to be broken is taken back as long as its entry has not left. One that
//! has left already stays in the result, is reported, and is not counted.

use super::escapes::PlainLetters;
use super::letters::{PictureCheck, is_enough, own_letters};
use super::result::{PictureTally, ResultWriter};
use bytes::Bytes;
use serde_json::Value;
use tollgate_wire::json::{BrokenJson, JsonStep, Push, Steps};

/// Where a maker's answer has what. A `*` is an entry of a list.
#[derive(Debug)]
pub struct Layout {
    /// The letters of a picture.
    pub picture: &'static [&'static str],
    /// What became of its prompt.
    pub prompt: Option<&'static [&'static str]>,
    /// A `true` here, before or behind the letters, says that the picture beside it is a draft.
    pub draft: Option<&'static [&'static str]>,
}

/// The most of an answer that is buffered besides its pictures.
const MAX_REST: usize = 1 << 20;
/// The longest name that matters.
const LONGEST_NAME: usize = 64;
/// The longest prompt that is shown.
const LONGEST_PROMPT: usize = 128 << 10;

/// Why an answer cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowBroke {
    NotJson,
    TooLong,
}

/// An answer on its way.
#[derive(Debug)]
pub struct PictureFlow {
    push: Push,
    pass: Pass,
}

#[derive(Debug)]
struct Pass {
    layout: &'static Layout,
    path: Vec<PathPart>,
    /// All of the answer but its pictures.
    rest: Vec<u8>,
    too_long: bool,
    letters: Letters,
    plain: PlainLetters,
    /// The entry of the writer that is open, and where it begins in `out` while it is there.
    entry: Option<Option<usize>>,
    prompt: Option<Vec<u8>>,
    /// What stands beside the letters says that they are a draft.
    draft: bool,
    /// The picture that this is said of, and where its entry begins in `out` while it is there.
    drawn: Option<Option<usize>>,
    took_back: bool,
    writer: ResultWriter,
    tally: PictureTally,
    out: Vec<u8>,
}

#[derive(Debug)]
struct PathPart {
    list: bool,
    /// With its quotes.
    name: Vec<u8>,
    /// The name is whole; the next piece is of another.
    named: bool,
}

impl PathPart {
    fn is(&self, wanted: &str) -> bool {
        let own = || self.name.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        if wanted == "*" { self.list } else { !self.list && own() == Some(wanted.as_bytes()) }
    }
}

/// What is being done with a text.
#[derive(Debug)]
enum Letters {
    /// It is not a picture.
    None,
    /// Too little of it is here to tell.
    Head(Vec<u8>),
    Passing(PictureCheck),
    /// Not a picture after all, or one too many.
    Skipped,
}

impl PictureFlow {
    pub fn new(layout: &'static Layout, writer: ResultWriter, tally: PictureTally) -> PictureFlow {
        let pass = Pass {
            layout,
            path: Vec::new(),
            rest: Vec::new(),
            too_long: false,
            letters: Letters::None,
            plain: PlainLetters::default(),
            entry: None,
            prompt: None,
            draft: false,
            drawn: None,
            took_back: false,
            writer,
            tally,
            out: Vec::new(),
        };
        PictureFlow { push: Push::default(), pass }
    }

    /// The next piece of the provider's text.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), FlowBroke> {
        let fed = self.push.feed(piece, &mut self.pass);
        fed.map_err(|_| if self.pass.too_long { FlowBroke::TooLong } else { FlowBroke::NotJson })
    }

    /// The next piece, and what of ours has come of it. One that holds nothing but letters of a
    /// picture goes on as it is, and so do the last letters of a picture: most of an answer is
    /// looked at once and copied never. What follows them is read at once, but leaves after them:
    /// with what comes of the next piece, or with [`Self::take`].
    pub fn pass(&mut self, mut piece: Bytes) -> Result<Bytes, FlowBroke> {
        if let Letters::Passing(check) = &mut self.pass.letters
            && self.pass.out.is_empty()
            && self.push.is_in_text()
        {
            let letters = match check.passes(&piece) {
                true => piece.len(),
                false => Some(letters_before_end(&piece)).filter(|end| check.passes(&piece[..*end])).unwrap_or(0),
            };
            if letters > 0 {
                let tail = piece.split_off(letters);
                self.push.passed(letters);
                self.pass.all_left();
                self.feed(&tail)?;
                return Ok(piece);
            }
        }
        self.feed(&piece)?;
        Ok(self.take())
    }

    /// What of ours has come of it; a broken picture in it can be taken back no more.
    pub fn take(&mut self) -> Bytes {
        self.pass.all_left();
        Bytes::from(std::mem::take(&mut self.pass.out))
    }

    pub fn writer(&self) -> &ResultWriter {
        &self.pass.writer
    }

    pub fn into_writer(self) -> ResultWriter {
        self.pass.writer
    }

    pub fn tally(&self) -> &PictureTally {
        &self.pass.tally
    }

    /// A draft had left when it turned out to be one: all that was taken so far is of no use.
    pub fn took_back(&mut self) -> bool {
        std::mem::take(&mut self.pass.took_back)
    }

    pub fn out_len(&self) -> usize {
        self.pass.out.len()
    }

    /// A picture is on its way, or is there.
    pub fn has_picture(&self) -> bool {
        self.pass.entry.is_some() || self.pass.tally.delivered > 0
    }

    /// The provider's text is at its end: all of it but the pictures, and what goes on from here.
    pub fn finish(self) -> Result<(Value, ResultWriter, PictureTally, Vec<u8>), FlowBroke> {
        self.push.finish().map_err(|_| FlowBroke::NotJson)?;
        let Pass { rest, mut writer, tally, out, .. } = self.pass;
        let rest: Value = serde_json::from_slice(&rest).map_err(|_| FlowBroke::NotJson)?;
        writer.learn(&rest);
        Ok((rest, writer, tally, out))
    }
}

/// How many bytes stand before the end of a text of letters and its padding.
fn letters_before_end(piece: &[u8]) -> usize {
    let end = memchr::memchr(b'"', piece).unwrap_or(0);
    piece[..end].iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1)
}

impl Steps for Pass {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match step {
            JsonStep::Open { list } => {
                self.path.push(PathPart { list, name: Vec::new(), named: false });
                self.keep(text)
            }
            JsonStep::Close => {
                self.path.pop();
                if self.path.len() < self.layout.picture.len() {
                    self.close_entry();
                    self.prompt = None;
                }
                if self.layout.draft.is_some_and(|place| self.path.len() < place.len()) {
                    self.end_part();
                }
                self.keep(text)
            }
            JsonStep::Name { last } => {
                let part = self.path.last_mut().ok_or(BrokenJson::Depth)?;
                if std::mem::take(&mut part.named) {
                    part.name.clear();
                }
                let room = (LONGEST_NAME + 2).saturating_sub(part.name.len());
                part.name.extend_from_slice(&text[..text.len().min(room)]);
                part.named = last;
                self.keep(text)
            }
            JsonStep::Plain { last } => self.plain(last, text),
            JsonStep::Comma | JsonStep::Colon | JsonStep::Blank => self.keep(text),
        }
    }
}

impl Pass {
    fn keep(&mut self, text: &[u8]) -> Result<(), BrokenJson> {
        if self.rest.len() + text.len() > MAX_REST {
            self.too_long = true;
            return Err(BrokenJson::Depth);
        }
        self.rest.extend_from_slice(text);
        Ok(())
    }

    /// Entries that are open have left, and are nowhere in `out` any more.
    fn all_left(&mut self) {
        for place in [&mut self.entry, &mut self.drawn].into_iter().flatten() {
            *place = None;
        }
    }

    /// Whether we are at this place.
    fn is_at(&self, place: &[&str]) -> bool {
        self.path.len() == place.len() && self.path.iter().zip(place).all(|(part, wanted)| part.is(wanted))
    }

    fn plain(&mut self, last: bool, text: &[u8]) -> Result<(), BrokenJson> {
        if matches!(self.letters, Letters::None) {
            let begins = text.first() == Some(&b'"');
            if begins && self.is_at(self.layout.picture) {
                self.letters = Letters::Head(Vec::new());
                self.keep(b"\"\"")?;
                return self.picture(last, &text[1..]);
            }
            self.note_prompt(last, text);
            self.draft |= text == b"true" && self.layout.draft.is_some_and(|place| self.is_at(place));
            return self.keep(text);
        }
        self.picture(last, text)
    }

    /// Letters of a picture, without the quote they begin with.
    fn picture(&mut self, last: bool, text: &[u8]) -> Result<(), BrokenJson> {
        let text = if last { text.strip_suffix(b"\"").unwrap_or(text) } else { text };
        let mut plain = std::mem::take(&mut self.plain);
        self.letters(&plain.read(text));
        self.plain = plain;
        if last {
            self.end_letters();
        }
        Ok(())
    }

    fn letters(&mut self, text: &[u8]) {
        match &mut self.letters {
            Letters::Head(head) => {
                head.extend_from_slice(text);
                if is_enough(head) {
                    self.decide();
                }
            }
            Letters::Passing(check) => {
                check.feed(text);
                self.out.extend_from_slice(text);
            }
            Letters::None | Letters::Skipped => {}
        }
    }

    /// Enough is here to tell what it is.
    fn decide(&mut self) {
        let Letters::Head(head) = std::mem::replace(&mut self.letters, Letters::Skipped) else { return };
        let own = own_letters(&head);
        // One that came before in the same entry is closed.
        self.close_entry();
        let Some(kind) = PictureCheck::begins(own) else {
            if !own.is_empty() {
                self.tally.broken += 1;
            }
            return;
        };
        if self.draft {
            return;
        }
        if self.tally.delivered >= self.tally.asked {
            self.tally.surplus += 1;
            return;
        }
        self.entry = Some(Some(self.out.len()));
        self.drawn = self.entry;
        self.writer.open(&mut self.out, Some(kind));
        let mut check = PictureCheck::new(kind);
        check.feed(own);
        self.out.extend_from_slice(own);
        self.letters = Letters::Passing(check);
    }

    fn end_letters(&mut self) {
        if matches!(self.letters, Letters::Head(_)) {
            self.decide();
        }
        let Letters::Passing(check) = std::mem::replace(&mut self.letters, Letters::None) else { return };
        if check.is_whole() {
            self.tally.delivered += 1;
        } else {
            self.tally.broken += 1;
            self.take_back();
        }
        if self.layout.picture.last() == Some(&"*") {
            self.close_entry();
        }
    }

    /// All that stands beside a picture was read.
    fn end_part(&mut self) {
        let (draft, drawn) = (std::mem::take(&mut self.draft), self.drawn.take());
        let Some(place) = drawn.filter(|_| draft) else { return };
        self.tally.delivered = self.tally.delivered.saturating_sub(1);
        self.writer.forget();
        match place {
            Some(from) => self.out.truncate(from),
            None => {
                self.out.clear();
                self.took_back = true;
            }
        }
    }

    /// The entry holds no picture that can be decoded.
    fn take_back(&mut self) {
        match self.entry {
            Some(Some(from)) => {
                self.out.truncate(from);
                self.entry = None;
                self.writer.forget();
            }
            _ if self.writer.spoil(&mut self.out) => {}
            _ => {
                let place = self.writer.entries().saturating_sub(1);
                self.tally.warn(place, "The provider's picture cannot be decoded; it is not charged.");
            }
        }
    }

    fn close_entry(&mut self) {
        if self.entry.take().is_some() {
            let prompt = self.prompt.take();
            self.writer.close(&mut self.out, "", prompt.as_deref());
        }
    }

    /// What became of the prompt, beside the letters of a picture.
    fn note_prompt(&mut self, last: bool, text: &[u8]) {
        if !self.layout.prompt.is_some_and(|place| self.is_at(place)) {
            return;
        }
        let prompt = self.prompt.get_or_insert_default();
        prompt.extend_from_slice(text);
        let whole = prompt.len() >= 2 && prompt.starts_with(b"\"");
        if prompt.len() > LONGEST_PROMPT || (last && !whole) {
            self.prompt = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PictureFacts, ResultStyle};
    use super::*;
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    const OPENAI: Layout =
        Layout { picture: &["data", "*", "b64_json"], prompt: Some(&["data", "*", "revised_prompt"]), draft: None };
    const LIST: Layout = Layout { picture: &["data", "image_base64", "*"], prompt: None, draft: None };
    const PARTS: Layout = Layout {
        picture: &["parts", "*", "inlineData", "data"],
        prompt: None,
        draft: Some(&["parts", "*", "thought"]),
    };

    fn png(tag: u8) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        bytes.extend(std::iter::repeat_n(tag, 300));
        bytes.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82");
        BASE64_STANDARD.encode(bytes)
    }

    fn flow(layout: &'static Layout, asked: u64) -> PictureFlow {
        let writer = ResultWriter::new(ResultStyle::Object, 7, PictureFacts::default());
        PictureFlow::new(layout, writer, PictureTally { asked, ..PictureTally::default() })
    }

    /// The result, its tally, and the rest of the provider's answer.
    type Ended = (Value, PictureTally, Value);

    /// What has become of an answer, of whose result so much has left already.
    fn ended(mut out: Vec<u8>, flow: PictureFlow) -> Ended {
        let (rest, writer, tally, last) = flow.finish().expect("an answer");
        out.extend_from_slice(&last);
        writer.end(&mut out, &tally);
        (serde_json::from_slice(&out).expect("JSON"), tally, rest)
    }

    fn passed(layout: &'static Layout, text: &str, asked: u64, piece: usize, hurry: bool) -> Ended {
        let (mut flow, mut out) = (flow(layout, asked), Vec::new());
        flow.writer().begin(&mut out);
        for piece in text.as_bytes().chunks(piece) {
            if hurry {
                out.extend_from_slice(&flow.pass(Bytes::copy_from_slice(piece)).expect("an answer"));
            } else {
                flow.feed(piece).expect("an answer");
            }
        }
        ended(out, flow)
    }

    #[test]
    fn letters_go_on_as_they_came_and_are_looked_at_all_the_same() {
        let text = json!({ "data": [{ "b64_json": png(1) }] }).to_string();
        for foreign in [false, true] {
            let mut answer = text.clone().into_bytes();
            if foreign {
                answer[200] = b'*';
            }
            let answer = Bytes::from(answer);
            let (mut flow, mut as_they_came) = (flow(&OPENAI, 1), 0);
            for at in (0..answer.len()).step_by(50) {
                let piece = answer.slice(at..answer.len().min(at + 50));
                let out = flow.pass(piece.clone()).expect("an answer");
                as_they_came += usize::from(out.as_ptr() == piece.as_ptr());
            }
            // All but those with the beginning, and the one that is no letter.
            let copied = answer.len().div_ceil(50) - as_they_came;
            assert_eq!(copied, if foreign { 4 } else { 3 });
            let (_, _, tally, _) = flow.finish().expect("an answer");
            assert_eq!((tally.delivered, tally.broken), (u64::from(!foreign), u64::from(foreign)));
        }
    }

    #[test]
    fn a_picture_is_counted_with_its_last_letter() {
        let text = json!({ "data": [{ "b64_json": png(1) }, { "b64_json": png(2) }] }).to_string();
        for size in 1..text.len() {
            let (mut flow, mut out, mut came) = (flow(&OPENAI, 2), Vec::new(), 0);
            flow.writer().begin(&mut out);
            for piece in text.as_bytes().chunks(size) {
                came += piece.len();
                out.extend_from_slice(&flow.pass(Bytes::copy_from_slice(piece)).expect("an answer"));
                let counted = text.match_indices("\"}").filter(|(quote, _)| *quote < came).count();
                assert_eq!(flow.tally().delivered, counted as u64, "{came} bytes in pieces of {size}");
                // Its entry ends with it, for whoever asks before the next piece.
                if size % 2 == 0 {
                    out.extend_from_slice(&flow.take());
                    let ended = text[..came].matches("\"}").count();
                    assert_eq!(out.windows(2).filter(|two| two == b"\"}").count(), ended, "{came} by {size}");
                }
            }
            let (ours, tally, _) = ended(out, flow);
            assert_eq!((&ours["data"][1]["b64_json"], tally.delivered), (&json!(png(2)), 2), "pieces of {size}");
        }
    }

    #[test]
    fn what_follows_letters_that_leave_is_taken_back_alone() {
        let cut = &png(3)[..200];
        for (first, second, shown) in [(png(1).as_str(), cut, 1), (cut, png(1).as_str(), 2), (cut, cut, 1)] {
            let text = json!({ "data": { "image_base64": [first, second] } }).to_string();
            let (mut flow, mut out) = (flow(&LIST, 2), Vec::new());
            flow.writer().begin(&mut out);
            for piece in [&text[..150], &text[150..]] {
                out.extend_from_slice(&flow.pass(Bytes::copy_from_slice(piece.as_bytes())).expect("an answer"));
            }
            let (ours, tally, _) = ended(out, flow);
            let entries = ours["data"].as_array().expect("a list");
            assert_eq!((entries.len(), &entries[0]["b64_json"]), (shown, &json!(first)));
            assert_eq!((tally.delivered + tally.broken, tally.warnings.len()), (2, usize::from(first == cut)));
        }
    }

    #[test]
    fn pictures_pass_in_any_pieces() {
        let reply = json!({"created": 1, "background": "opaque", "data": [
            {"revised_prompt": "a \"cat\"", "b64_json": png(1), "x": {"y": [1]}},
            {"b64_json": png(0xfb), "revised_prompt": "two"},
        ], "usage": {"total_tokens": 5}});
        let plain = reply.to_string();
        let escapes = [("/", "\\/"), ("+", "\\u002b"), ("AAA", "AA\\r\\nA")];
        let escaped = escapes.map(|(from, to)| plain.replace(from, to));
        assert!(escaped.iter().all(|text| *text != plain));
        let all = escapes.iter().fold(plain.clone(), |text, (from, to)| text.replace(from, to));
        for text in [plain, all].into_iter().chain(escaped) {
            for piece in [1, 2, 3, 5, 7, 100, 10_000] {
                for hurry in [false, true] {
                    let (ours, tally, rest) = passed(&OPENAI, &text, 2, piece, hurry);
                    assert_eq!(ours["data"][0], json!({"b64_json": png(1), "url": "", "revised_prompt": "a \"cat\""}));
                    assert_eq!(ours["data"][1], json!({"b64_json": png(0xfb), "url": "", "revised_prompt": "two"}));
                    assert_eq!(ours["metadata"], json!({"success_count": "2", "failed_count": "0"}));
                    assert_eq!((tally.delivered, &rest["usage"]["total_tokens"]), (2, &json!(5)));
                    assert_eq!(ours["background"], "opaque");
                }
            }
        }
    }

    #[test]
    fn broken_pictures_are_not_counted() {
        let cut = &png(1)[..200];
        let reply = json!({"data": {"image_base64": [png(1), cut, "", "bm90IGEgcGljdHVyZQ==", png(2), png(3)]}});
        let (ours, tally, _) = passed(&LIST, &reply.to_string(), 2, 50, false);
        assert_eq!(ours["data"].as_array().map(Vec::len), Some(2));
        assert_eq!((tally.delivered, tally.broken, tally.surplus), (2, 2, 1));
        assert_eq!(ours["data"][1]["b64_json"], png(2));
        // In a hurry the broken one has left already; it is reported instead.
        let (ours, tally, _) = passed(&LIST, &reply.to_string(), 2, 50, true);
        assert_eq!((ours["data"].as_array().map(Vec::len), tally.delivered), (Some(3), 2));
        assert_eq!(ours["warnings"][0]["field"], "data[1]");
    }

    #[test]
    fn drafts_are_not_handed_over() {
        for (first, second) in [("thought", "inlineData"), ("inlineData", "thought")] {
            let member = |name: &str| match name {
                "thought" => "\"thought\":true".to_owned(),
                _ => format!("\"inlineData\":{{\"data\":\"{}\"}}", png(1)),
            };
            let text = format!(
                "{{\"parts\":[{{{},{}}},{{\"inlineData\":{{\"data\":\"{}\"}}}}]}}",
                member(first),
                member(second),
                png(2)
            );
            let (ours, tally, _) = passed(&PARTS, &text, 1, 50, false);
            assert_eq!((ours["data"].as_array().map(Vec::len), tally.delivered), (Some(1), 1), "{first}");
            assert_eq!(ours["data"][0]["b64_json"], png(2), "{first}");
        }
    }

    /// MM18: fifty megabytes pass, and what is held at any time is about one piece.
    #[test]
    fn a_large_picture_never_sits_in_memory() {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
        bytes.resize(50 << 20, 7);
        bytes.extend_from_slice(b"\0\0\0\0IEND\xaeB`\x82");
        let letters = BASE64_STANDARD.encode(&bytes);
        let mut flow = flow(&OPENAI, 1);
        let (piece, mut most, mut passed) = (64 << 10, 0, 0);
        flow.feed(b"{\"data\":[{\"b64_json\":\"").expect("an answer");
        for part in letters.as_bytes().chunks(piece) {
            flow.feed(part).expect("an answer");
            most = most.max(flow.pass.out.capacity() + flow.pass.rest.capacity());
            passed += flow.take().len();
        }
        flow.feed(b"\"}]}").expect("an answer");
        assert!(passed >= letters.len() && most <= 4 * piece, "{most} bytes were held");
        assert_eq!(flow.finish().expect("an answer").2.delivered, 1);
    }

    #[test]
    fn what_is_no_json_or_endless_ends() {
        let flow = || flow(&OPENAI, 0);
        assert_eq!(flow().feed(b"<html>"), Err(FlowBroke::NotJson));
        let mut long = flow();
        assert_eq!(long.feed(b"{\"a\":\""), Ok(()));
        let ended = (0..1_100).map(|_| long.feed(&[b'x'; 1_024])).find(Result::is_err);
        assert_eq!(ended, Some(Err(FlowBroke::TooLong)));
        let mut cut = flow();
        assert_eq!(cut.feed(b"{\"data\":["), Ok(()));
        assert_eq!(cut.finish().map(|_| ()), Err(FlowBroke::NotJson));
    }
}
