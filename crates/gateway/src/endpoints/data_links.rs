//! A JSON body with pictures in data links, read while it arrives: the letters of a picture go to
//! the spool as bytes, as the files of a form do, and only what stands around them is in memory.
//! Where a data link stood, its number among them stands.

use super::form::FirstBytes;
use super::reading;
use crate::app::App;
use crate::door::bodies::{BodyShare, SMALL, Whose};
use crate::door::spool::{IN_MEMORY, SpoolTerms, Spooled, Spooling};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http_body_util::BodyExt as _;
use sha2::{Digest, Sha256};
use tollgate_store::Idem;
use tollgate_upstream::SpooledFile;
use tollgate_wire::Problem;
use tollgate_wire::json::{BrokenJson, JsonStep, Push, Steps};

/// What a data link begins with, after its quote.
const SCHEME: &[u8] = b"\"data:";
/// What stands before the letters, and the longest of it.
const BEFORE: &[u8] = b";base64,";
const LONGEST_TYPE: usize = 1 << 10;
/// Letters at the end that are not decoded before all are there: padding and blanks.
const END: usize = 16;

/// Where pictures may stand, and how many.
#[derive(Clone, Copy, Debug)]
pub struct LinkRules {
    /// Members of the body.
    pub members: &'static [&'static str],
    pub links: usize,
    /// Of one picture.
    pub most: u64,
}

/// A picture as its letters say it; `None`: they say none.
pub type LinkedFile = Option<(SpooledFile, FirstBytes)>;

/// A body that was read.
pub struct LinkedBody {
    /// Its text, with `data:0`, `data:1` and so on where links stood.
    pub json: Bytes,
    pub files: Vec<LinkedFile>,
    pub idem: Option<Idem>,
}

/// Reads the body of a request within the limits of size and time.
pub async fn read(
    app: &App,
    caller: &Caller,
    parts: &Parts,
    body: Body,
    endpoint: &str,
    rules: LinkRules,
) -> Result<LinkedBody, Refusal> {
    reading::only_json(parts)?;
    let limits = &app.settings.limits;
    let declared = reading::declared_length(&parts.headers, limits.body_bytes)?;
    let mut linked = LinkedReading {
        app,
        caller,
        parts,
        rules,
        whose: None,
        room: app.bodies.room(Whose::Penniless, 0).await?,
        hash: reading::repeats(&parts.headers).then(|| Sha256::new().chain_update(endpoint)),
        push: Push::default(),
        text: LinkText { members: rules.members, ..LinkText::default() },
        file: None,
        files: Vec::new(),
    };
    if declared.is_some_and(|length| length > SMALL) {
        linked.large().await?;
    }
    match tokio::time::timeout(limits.body_time, linked.all(body)).await {
        Ok(read) => read?,
        Err(_) => return Err(reading::late_body()),
    }
    let LinkedReading { text, files, room, hash, .. } = linked;
    let idem = match hash {
        Some(hash) => reading::repeated(&parts.headers, hash)?,
        None => None,
    };
    Ok(LinkedBody { json: room.keep(text.rest.into()), files, idem })
}

struct LinkedReading<'a> {
    app: &'a App,
    caller: &'a Caller,
    parts: &'a Parts,
    rules: LinkRules,
    /// For whom it is counted, once it is large.
    whose: Option<Whose>,
    room: BodyShare,
    /// Of all that came, where an Idempotency-Key stands for it.
    hash: Option<Sha256>,
    push: Push,
    text: LinkText,
    /// The picture whose letters are coming.
    file: Option<Box<Spooling<FirstBytes>>>,
    files: Vec<LinkedFile>,
}

impl LinkedReading<'_> {
    async fn all(&mut self, mut body: Body) -> Result<(), Refusal> {
        let largest = self.app.settings.limits.body_bytes;
        let mut total = 0;
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame.map_err(|_| reading::broken_body())?.into_data() else { continue };
            total += piece.len();
            if total > largest {
                return Err(reading::too_large(largest));
            }
            if total > SMALL {
                self.large().await?;
            }
            if let Some(hash) = &mut self.hash {
                hash.update(&piece);
            }
            self.push.feed(&piece, &mut self.text).map_err(not_json)?;
            self.room.grow(self.text.rest.len()).await?;
            for bit in std::mem::take(&mut self.text.bits) {
                self.take(bit).await?;
            }
        }
        self.push.finish().map_err(not_json)
    }

    /// A large body is read for accounts that can pay.
    async fn large(&mut self) -> Result<(), Refusal> {
        if self.whose.is_none() {
            let whose = reading::whose(self.app, self.caller, &self.parts.headers).await?;
            self.whose = Some(whose);
            if self.room.bytes() <= SMALL {
                self.room.belongs_to(whose);
            }
            if let Some(file) = &mut self.file {
                file.belongs_to(whose);
            }
        }
        Ok(())
    }

    async fn take(&mut self, bit: LinkBit) -> Result<(), Refusal> {
        match bit {
            LinkBit::Begin => {
                if self.files.len() == self.rules.links {
                    let (field, most) = (self.rules.members.first().copied().unwrap_or_default(), self.rules.links);
                    return Err(Problem::wrong(field, &format!("at most {most} data URLs, a mask included")).into());
                }
                let terms = SpoolTerms { whose: self.whose, most: self.rules.most, in_memory: IN_MEMORY };
                self.file = Some(Box::new(self.app.spool.begin(terms, FirstBytes::default()).await?));
            }
            LinkBit::Bytes(bytes) => {
                if let Some(file) = &mut self.file {
                    file.push(&bytes).await?;
                }
            }
            LinkBit::End { whole } => {
                let file = self.file.take().filter(|_| whole);
                let spooled = match file {
                    Some(file) => Some(file.finish().await?),
                    None => None,
                };
                self.files.push(spooled.map(|Spooled { file, watch }| (file, watch)));
            }
        }
        Ok(())
    }
}

fn not_json(broken: BrokenJson) -> Refusal {
    let text = match broken {
        BrokenJson::Syntax { at } => format!("The body is not valid JSON (at byte {at})."),
        BrokenJson::Depth => "The body is nested too deeply.".to_owned(),
    };
    Problem::not_json(text).into()
}

/// What becomes of a data link.
#[derive(Debug, PartialEq, Eq)]
enum LinkBit {
    Begin,
    Bytes(Bytes),
    /// Whether all of it could be decoded.
    End {
        whole: bool,
    },
}

/// Takes data links out of a text.
#[derive(Debug, Default)]
struct LinkText {
    members: &'static [&'static str],
    depth: usize,
    /// The member of the body that is being read, with its quotes.
    member: Vec<u8>,
    named: bool,
    rest: Vec<u8>,
    value: TextValue,
    links: usize,
    bits: Vec<LinkBit>,
}

/// What a value is.
#[derive(Debug, Default)]
enum TextValue {
    /// None has begun.
    #[default]
    None,
    /// Too little of it is here to tell.
    Head(Vec<u8>),
    Plain,
    Link(LinkLetters),
}

impl Steps for LinkText {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match step {
            JsonStep::Open { .. } => self.depth += 1,
            JsonStep::Close => self.depth -= 1,
            JsonStep::Name { last } if self.depth == 1 => {
                if std::mem::take(&mut self.named) {
                    self.member.clear();
                }
                // A longer name is none of those that matter.
                let room = 64usize.saturating_sub(self.member.len());
                self.member.extend_from_slice(&text[..text.len().min(room)]);
                self.named = last;
            }
            JsonStep::Plain { last } => {
                self.plain(last, text);
                return Ok(());
            }
            _ => {}
        }
        self.rest.extend_from_slice(text);
        Ok(())
    }
}

impl LinkText {
    fn is_picture(&self) -> bool {
        let name = self.member.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
        name.is_some_and(|name| self.members.iter().any(|member| member.as_bytes() == name))
    }

    fn plain(&mut self, last: bool, text: &[u8]) {
        self.value = match std::mem::take(&mut self.value) {
            TextValue::None if text.first() == Some(&b'"') && self.is_picture() => self.head(Vec::new(), last, text),
            TextValue::Head(head) => self.head(head, last, text),
            TextValue::Link(letters) => self.letters(letters, last, text),
            TextValue::None | TextValue::Plain => {
                self.rest.extend_from_slice(text);
                TextValue::Plain
            }
        };
        if last {
            self.value = TextValue::None;
        }
    }

    /// The beginning of a text where a picture may stand.
    fn head(&mut self, mut head: Vec<u8>, last: bool, text: &[u8]) -> TextValue {
        head.extend_from_slice(text);
        if head.len() < SCHEME.len() && !last {
            return TextValue::Head(head);
        }
        if !head.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME)) {
            self.rest.extend_from_slice(&head);
            return TextValue::Plain;
        }
        self.rest.extend_from_slice(format!("\"data:{}\"", self.links).as_bytes());
        self.links += 1;
        self.bits.push(LinkBit::Begin);
        self.letters(LinkLetters::default(), last, &head[SCHEME.len()..])
    }

    fn letters(&mut self, mut letters: LinkLetters, last: bool, text: &[u8]) -> TextValue {
        let text = if last { text.strip_suffix(b"\"").unwrap_or(text) } else { text };
        letters.feed(text);
        let bytes = letters.decoded(last);
        if !bytes.is_empty() {
            self.bits.push(LinkBit::Bytes(bytes.into()));
        }
        if last {
            self.bits.push(LinkBit::End { whole: letters.begun && !letters.broken });
        }
        TextValue::Link(letters)
    }
}

/// Letters of one data link that are not decoded yet.
#[derive(Debug, Default)]
struct LinkLetters {
    waiting: Vec<u8>,
    /// An escape that is not all there.
    escape: Vec<u8>,
    /// The letters have begun, and some of them are decoded.
    begun: bool,
    going: bool,
    broken: bool,
}

impl LinkLetters {
    /// The next of them, as JSON writes them.
    fn feed(&mut self, text: &[u8]) {
        if self.broken {
            return;
        }
        if self.escape.is_empty() && !text.contains(&b'\\') {
            self.waiting.extend_from_slice(text);
            return;
        }
        // Some write a slash with a backslash, and a plus by its number.
        let mut raw = std::mem::take(&mut self.escape);
        raw.extend_from_slice(text);
        if let Some(at) = raw.iter().rposition(|byte| *byte == b'\\') {
            let whole = if raw.get(at + 1) == Some(&b'u') { 6 } else { 2 };
            if raw.len() - at < whole {
                self.escape = raw.split_off(at);
            }
        }
        let quoted = [b"\"", &raw[..], b"\""].concat();
        match serde_json::from_slice::<String>(&quoted) {
            Ok(plain) => self.waiting.extend_from_slice(plain.as_bytes()),
            Err(_) => self.broken = true,
        }
    }

    /// What can be decoded of them now; `last`: there are no more.
    fn decoded(&mut self, last: bool) -> Vec<u8> {
        if !self.begun {
            let head = &self.waiting[..self.waiting.len().min(LONGEST_TYPE)];
            let Some(at) = head.windows(BEFORE.len()).position(|bytes| bytes == BEFORE) else {
                self.broken |= self.waiting.len() > LONGEST_TYPE;
                return Vec::new();
            };
            self.waiting.drain(..at + BEFORE.len());
            self.begun = true;
        }
        if self.broken {
            self.waiting = Vec::new();
            return Vec::new();
        }
        let letters = if self.going { &self.waiting[..] } else { self.waiting.trim_ascii_start() };
        let blanks = self.waiting.len() - letters.len();
        let letters =
            if last { letters.trim_ascii_end() } else { &letters[..letters.len().saturating_sub(END) / 4 * 4] };
        // Padding is at the very end.
        let padded = !last && letters.ends_with(b"=");
        let decoded = BASE64_STANDARD.decode(letters).ok().filter(|_| !padded);
        self.broken |= decoded.is_none() || !self.escape.is_empty() && last;
        let done = blanks + letters.len();
        self.going |= !letters.is_empty();
        self.waiting.drain(..done);
        decoded.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const MEMBERS: &[&str] = &["image", "images", "mask"];

    /// The rest, and the links with what they say.
    fn taken(text: &str, size: usize) -> (Value, Vec<Option<Vec<u8>>>) {
        let (mut push, mut taken) = (Push::default(), LinkText { members: MEMBERS, ..LinkText::default() });
        text.as_bytes().chunks(size).for_each(|piece| push.feed(piece, &mut taken).expect("JSON"));
        push.finish().expect("JSON");
        let mut links: Vec<Option<Vec<u8>>> = Vec::new();
        for bit in taken.bits {
            match bit {
                LinkBit::Begin => links.push(Some(Vec::new())),
                LinkBit::Bytes(bytes) => {
                    links.last_mut().and_then(Option::as_mut).expect("begun").extend_from_slice(&bytes);
                }
                LinkBit::End { whole: true } => {}
                LinkBit::End { whole: false } => *links.last_mut().expect("begun") = None,
            }
        }
        (serde_json::from_slice(&taken.rest).expect("JSON"), links)
    }

    #[test]
    fn links_are_taken_out_in_any_pieces() {
        let picture: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        let letters = BASE64_STANDARD.encode(&picture);
        let link = format!("data:image/png;base64,{letters}");
        let body = json!({
            "prompt": link, "image": [link, "https://a.example/1.png", { "image_url": link }],
            "mask": { "image_url": { "url": format!("DATA:;base64, {letters} ") } }, "n": 1, "other": { "image": link },
        });
        let rest = json!({
            "prompt": link, "image": ["data:0", "https://a.example/1.png", { "image_url": "data:1" }],
            "mask": { "image_url": { "url": "data:2" } }, "n": 1, "other": { "image": link },
        });
        let plain = body.to_string();
        for text in [plain.replace('/', "\\/"), plain.replace('+', "\\u002B"), plain] {
            for size in [1, 2, 5, 17, 300, 1 << 20] {
                let (found, links) = taken(&text, size);
                assert_eq!(found, rest, "pieces of {size}");
                assert_eq!(links, vec![Some(picture.clone()); 3], "pieces of {size}");
            }
        }
    }

    #[test]
    fn letters_that_are_none_say_nothing() {
        for wrong in ["QUJ", "QQ==QQ==", "QU*D", "QQ=", "\\\\", "Q\\nQ=="] {
            for size in [1, 3, 1 << 20] {
                let text = format!("{{\"image\":\"data:image/png;base64,{wrong}\"}}");
                assert_eq!(taken(&text, size).1, [None], "{wrong} in pieces of {size}");
            }
        }
        for wrong in ["data:,x", "data:", "data:image/png"] {
            assert_eq!(taken(&json!({ "image": wrong }).to_string(), 3).1, [None], "{wrong}");
        }
        assert_eq!(taken("{\"image\":\"data:;base64,QUJD\"}", 2).1, [Some(b"ABC".to_vec())]);
    }
}
