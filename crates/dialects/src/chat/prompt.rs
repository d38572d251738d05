//! Estimates the tokens of a prompt while it is being checked, leaning high, and finds what the
//! estimate cannot know (`crate::reads`).
//!
//! Text is counted wherever it stands. Pictures, sound and files are counted by their own rules:
//! their base64 letters are no text. Only the members that carry media get that treatment, so
//! that text cannot be passed off as a picture.

use crate::reads::{CITING, Means, Modality, PICTURES, REFERENCES, Reads, Top, hosted, means, top};
use tollgate_wire::Dialect;
use tollgate_wire::count::{AUDIO_LETTERS, FILE_LETTERS, IMAGE, IMAGE_LOW, PACKED_LETTERS, TokenCounter, VIDEO};
use tollgate_wire::json::{BrokenJson, Scan, Text, whole_number};

/// Tokens every provider adds around a message.
const PER_MESSAGE: u64 = 4;
/// Tokens around the whole conversation.
const PER_CALL: u64 = 3;
/// Kinds of sound whose bytes bound its length; others can pack hours into a few of them.
const PLAIN_SOUND: &[&str] = &["wav", "mp3", "pcm16", "audio/wav", "audio/x-wav", "audio/mp3", "audio/mpeg"];

#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    counter: TokenCounter,
    aside: TokenCounter,
    more: u64,
    reads: Reads,
}

/// What is known of an object when its end is reached.
#[derive(Default)]
pub(crate) struct EstimatedPart {
    picture: bool,
    reference: bool,
    cites: bool,
    /// Where a file id, an address or a typed source stands.
    file_id: Option<usize>,
    address: Option<usize>,
    source: Option<Source>,
}

/// Data or an address with a type beside it.
#[derive(Default)]
struct Source {
    at: usize,
    mime: String,
    /// Letters of the data.
    letters: u64,
    /// Not here: an address or an id.
    away: bool,
}

impl Estimate {
    pub fn new() -> Self {
        Estimate {
            counter: TokenCounter::default(),
            aside: TokenCounter::default(),
            more: PER_CALL,
            reads: Reads::default(),
        }
    }

    pub fn tokens(&self) -> u64 {
        self.counter.tokens().saturating_add(self.more)
    }

    /// What else is read.
    pub fn reads(mut self) -> Reads {
        self.reads.aside = self.aside.tokens();
        self.reads
    }

    pub fn message(&mut self) {
        self.add(PER_MESSAGE);
    }

    pub fn text(&mut self, text: Text<'_>) {
        self.counter.string(text);
    }

    /// Counts a value as the JSON text it is: schemas.
    pub fn verbatim(&mut self, raw: &[u8]) {
        self.counter.json(raw);
    }

    /// Counts a list of tools, and finds those that run at the provider.
    pub fn tools(&mut self, dialect: Dialect, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        scan.peek();
        let at = scan.at();
        let raw = scan.value()?;
        self.verbatim(raw);
        hosted(dialect, raw, at, &mut self.reads)
    }

    /// A member around the conversation that is not known as part of it.
    pub fn around(&mut self, dialect: Dialect, name: &[u8], scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        let first = scan.peek();
        let at = scan.at();
        let raw = scan.value()?;
        if matches!(raw, b"null" | b"false" | b"[]") {
            return Ok(());
        }
        match top(dialect, name) {
            Some(Top::Stored) => self.reads.hides(None, at),
            Some(Top::Runs(tool)) => self.reads.runs(tool, None, at),
            Some(Top::MostUses) => self.reads.most_uses = whole_number(raw),
            Some(Top::Shortens) => self.reads.compacts |= memchr::memmem::find(raw, b"compact").is_some(),
            Some(Top::Parameter) => {}
            None if matches!(first, Some(b'"' | b'{' | b'[')) => self.aside.json(raw),
            None => {}
        }
        Ok(())
    }

    /// Counts the text in any value of a message.
    pub fn value(&mut self, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        match scan.peek() {
            Some(b'"') => {
                self.text(scan.string()?);
                Ok(())
            }
            Some(b'[') => scan.array(|scan| self.value(scan)),
            Some(b'{') => {
                let mut part = EstimatedPart::default();
                let at = scan.at();
                scan.object(|key, scan| self.member(key, scan, &mut part))?;
                self.resolve(&part, at);
                Ok(())
            }
            _ => scan.skip(),
        }
    }

    /// Counts the text in a value whose members mean nothing.
    fn plain(&mut self, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        match scan.peek() {
            Some(b'"') => {
                self.text(scan.string()?);
                Ok(())
            }
            Some(b'[') => scan.array(|scan| self.plain(scan)),
            Some(b'{') => scan.object(|_, scan| self.plain(scan)),
            _ => scan.skip(),
        }
    }

    /// Counts one member of an object; [`Estimate::resolve`] follows at its end.
    pub fn member(&mut self, key: Text<'_>, scan: &mut Scan<'_>, part: &mut EstimatedPart) -> Result<(), BrokenJson> {
        let name = key.bytes();
        let first = scan.peek();
        let at = scan.at();
        if first == Some(b'n') {
            return scan.skip();
        }
        match means(&name) {
            Some(Means::Kind) if first == Some(b'"') => {
                let kind = scan.string()?;
                let is = |kinds: &[&str]| kinds.iter().any(|known| kind.is(known));
                part.picture = is(PICTURES);
                part.reference = is(REFERENCES);
                part.cites = is(CITING);
                Ok(())
            }
            Some(Means::Kind) => scan.skip(),
            Some(Means::Picture) => self.image(at, scan),
            Some(Means::Clip) => {
                self.clip(at);
                scan.skip()
            }
            Some(Means::Sound) => self.sound(at, scan),
            Some(Means::Earlier) => {
                self.reads.hides(Some(Modality::Audio), at);
                scan.skip()
            }
            Some(Means::File) => self.file(at, scan),
            Some(Means::FileData) if first != Some(b'{') => self.file(at, scan),
            Some(Means::FileId) => {
                part.file_id = Some(at);
                scan.skip()
            }
            Some(Means::Typed | Means::FileData) if first == Some(b'{') => self.typed(at, scan, part),
            Some(Means::Anything) => {
                let raw = scan.value()?;
                self.verbatim(raw);
                Ok(())
            }
            Some(Means::Cited) => self.plain(scan),
            Some(Means::Typed | Means::FileData) | None => {
                if first == Some(b'"') && (name.ends_with(b"url") || name.ends_with(b"uri") || name.ends_with(b"Uri")) {
                    part.address = Some(at);
                }
                self.value(scan)
            }
        }
    }

    /// At the end of an object its kind is known, wherever it stands.
    pub fn resolve(&mut self, part: &EstimatedPart, at: usize) {
        if part.reference {
            self.reads.hides(None, at);
        }
        match part.file_id {
            Some(at) if part.picture => self.picture(IMAGE, at),
            Some(at) => self.reads.hides(Some(Modality::File), at),
            None => {}
        }
        if let Some(at) = part.address.filter(|_| !part.cites && !part.picture) {
            self.reads.hides(Some(Modality::File), at);
        }
        if let Some(source) = &part.source {
            self.source(source, part.picture);
        }
    }

    fn source(&mut self, source: &Source, picture: bool) {
        let Source { at, letters, away, ref mime } = *source;
        match mime.split_once('/').map_or("", |(kind, _)| kind) {
            "image" => self.picture(IMAGE, at),
            "" if picture && away => self.picture(IMAGE, at),
            "video" => self.clip(at),
            "audio" if !away => self.heard(mime, letters, at),
            "audio" => self.reads.hides(Some(Modality::Audio), at),
            "text" if !away => {
                // A word is longer than three bytes, and no token is shorter than one.
                self.add(letters.div_ceil(4));
                self.reads.packed = self.reads.packed.saturating_add(letters);
                self.reads.sees(Modality::File, at);
            }
            _ => {
                self.add(if away { IMAGE } else { letters.div_ceil(FILE_LETTERS) });
                self.reads.hides(Some(Modality::File), at);
            }
        }
    }

    fn picture(&mut self, tokens: u64, at: usize) {
        self.add(tokens);
        self.reads.pictures = self.reads.pictures.saturating_add(1);
        self.reads.pictured = self.reads.pictured.saturating_add(tokens);
        self.reads.sees(Modality::Image, at);
    }

    fn clip(&mut self, at: usize) {
        self.add(VIDEO);
        self.reads.hides(Some(Modality::Video), at);
    }

    /// Sound as data, of this kind.
    fn heard(&mut self, kind: &str, letters: u64, at: usize) {
        self.add(letters.div_ceil(AUDIO_LETTERS));
        if PLAIN_SOUND.contains(&kind) {
            self.reads.packed = self.reads.packed.saturating_add(letters.div_ceil(PACKED_LETTERS));
            self.reads.sees(Modality::Audio, at);
        } else {
            self.reads.hides(Some(Modality::Audio), at);
        }
    }

    fn image(&mut self, at: usize, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        let mut low = false;
        let mut data: &[u8] = b"";
        if scan.peek() == Some(b'{') {
            scan.object(|key, scan| {
                let value = scan.value()?;
                low |= key.is("detail") && value == b"\"low\"";
                if key.is("url") {
                    data = value;
                }
                Ok::<(), BrokenJson>(())
            })?;
        } else {
            data = scan.value()?;
        }
        // Some servers take files of any kind here.
        match data_kind(data) {
            Some(kind) if !kind.starts_with(b"image/") => {
                let mime = String::from_utf8_lossy(kind).into_owned();
                self.source(&Source { at, mime, letters: data.len() as u64, away: false }, false);
            }
            _ => self.picture(if low { IMAGE_LOW } else { IMAGE }, at),
        }
        Ok(())
    }

    fn sound(&mut self, at: usize, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        let raw = scan.value()?;
        let mut kind = String::new();
        let mut letters = None;
        if raw.first() == Some(&b'{') {
            Scan::new(raw).object(|key, scan| {
                if key.is("format") && scan.peek() == Some(b'"') {
                    kind = scan.string()?.text().into_owned();
                    return Ok(());
                }
                let value = scan.value()?;
                if key.is("data") {
                    letters = Some(value.len() as u64);
                }
                Ok::<(), BrokenJson>(())
            })?;
        }
        match letters {
            Some(letters) => self.heard(&kind, letters, at),
            None => {
                self.add((raw.len() as u64).div_ceil(AUDIO_LETTERS));
                self.reads.hides(Some(Modality::Audio), at);
            }
        }
        Ok(())
    }

    /// A file, however it is given: what is packed in it can be longer than its bytes.
    fn file(&mut self, at: usize, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        let letters = scan.value()?.len() as u64;
        self.add(letters.div_ceil(FILE_LETTERS));
        self.reads.hides(Some(Modality::File), at);
        Ok(())
    }

    /// An object with a media type and data or an address, or (a text source) a value like any
    /// other.
    fn typed(&mut self, at: usize, scan: &mut Scan<'_>, part: &mut EstimatedPart) -> Result<(), BrokenJson> {
        let mut source = Source { at, ..Source::default() };
        let mut inner = Scan::new(scan.rest());
        let mut text = false;
        inner.object(|key, scan| {
            let name = key.bytes();
            if matches!(name.as_ref(), b"media_type" | b"mimeType" | b"mime_type" | b"type")
                && scan.peek() == Some(b'"')
            {
                let word = scan.string()?.text();
                match name.as_ref() {
                    b"type" => text |= matches!(word.as_ref(), "text" | "content"),
                    _ => source.mime = word.to_ascii_lowercase(),
                }
                return Ok(());
            }
            let value = scan.value()?;
            match name.as_ref() {
                b"data" => source.letters = value.len() as u64,
                b"url" | b"fileUri" | b"file_uri" | b"file_id" => source.away |= value != b"null",
                _ => {}
            }
            Ok::<(), BrokenJson>(())
        })?;
        if text || source.letters == 0 && !source.away {
            return self.value(scan);
        }
        part.source = Some(source);
        scan.skip()
    }

    fn add(&mut self, tokens: u64) {
        self.more = self.more.saturating_add(tokens);
    }
}

/// The media type of a `data:` address, as it stands in quotes.
fn data_kind(raw: &[u8]) -> Option<&[u8]> {
    let start = raw.get(1..6)?;
    if !start.eq_ignore_ascii_case(b"data:") {
        return None;
    }
    let rest = &raw[6..];
    let end = memchr::memchr2(b';', b',', rest).unwrap_or(rest.len().min(64));
    Some(&rest[..end])
}
