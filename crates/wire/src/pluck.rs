//! JSON in which one text is longer than anything else: audio or a picture as text. The long text
//! passes piece by piece; what is around it is collected, with an empty text in its place, and is
//! JSON again. So nobody holds megabytes to read a few facts beside them.
//!
//! Documents come alone, as a whole reply, or as events: one in a `data:` line, or over several of
//! them.

use memchr::memchr2;

/// What is found on the way, in its order.
#[derive(Debug, PartialEq, Eq)]
pub enum Plucked {
    /// A piece of the long text; one that has ended is followed by the rest of its document.
    Text(Vec<u8>),
    /// A document without it.
    Document(Vec<u8>),
}

/// Why nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplucked {
    /// What is around the long text is too long itself.
    TooLong,
    /// An escape that such a text does not have, or a text that does not end.
    Garbage,
}

/// Where a reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At the beginning of a line of events, with so many letters of `data:` seen.
    Line(usize),
    /// In a line that is no data.
    Ignored,
    /// Between texts.
    Open,
    /// In a text that is collected; its last byte was a backslash.
    Text { escaped: bool },
    /// In the long one.
    Long,
    /// In an escape of the long one.
    Escape,
}

/// Reads such documents.
#[derive(Debug)]
pub struct Plucker {
    keys: &'static [&'static str],
    events: bool,
    at: At,
    /// The document so far.
    rest: Vec<u8>,
    /// Objects and lists of it that are not over.
    depth: usize,
    /// Where the last text in it begins.
    text_at: usize,
    /// The last text is one of the keys, and a colon came after it.
    wanted: bool,
    /// An escape of the long text so far.
    escape: Vec<u8>,
    /// How much is collected of one document.
    most: usize,
}

const DATA: &[u8] = b"data:";

impl Plucker {
    /// Reads one document, whose texts under these keys may be long.
    pub fn whole(keys: &'static [&'static str], most: usize) -> Plucker {
        Plucker {
            keys,
            events: false,
            at: At::Open,
            rest: Vec::new(),
            depth: 0,
            text_at: 0,
            wanted: false,
            escape: Vec::new(),
            most,
        }
    }

    /// Reads events with one document each.
    pub fn events(keys: &'static [&'static str], most: usize) -> Plucker {
        Plucker { events: true, at: At::Line(0), ..Plucker::whole(keys, most) }
    }

    pub fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<Plucked>) -> Result<(), Unplucked> {
        while let Some(&byte) = bytes.first() {
            if self.at == At::Long {
                bytes = self.long(bytes, out);
                continue;
            }
            bytes = &bytes[1..];
            match self.at {
                At::Line(seen) => self.line(seen, byte, out),
                At::Ignored => {
                    if byte == b'\n' {
                        self.at = At::Line(0);
                    }
                }
                At::Open => self.open(byte, out)?,
                At::Text { escaped } => {
                    self.keep(byte)?;
                    self.at = match byte {
                        b'"' if !escaped => At::Open,
                        _ => At::Text { escaped: byte == b'\\' && !escaped },
                    };
                }
                At::Escape => self.escape(byte, out)?,
                At::Long => {}
            }
        }
        Ok(())
    }

    /// Nothing more comes.
    pub fn end(&mut self, out: &mut Vec<Plucked>) -> Result<(), Unplucked> {
        if matches!(self.at, At::Text { .. } | At::Long | At::Escape) {
            return Err(Unplucked::Garbage);
        }
        self.document(out);
        Ok(())
    }

    fn line(&mut self, seen: usize, byte: u8, out: &mut Vec<Plucked>) {
        self.at = match byte {
            // An empty line ends an event, whatever it has come to.
            b'\n' if seen == 0 => {
                self.document(out);
                At::Line(0)
            }
            b'\n' | b'\r' => At::Line(0),
            _ if DATA.get(seen) != Some(&byte) => At::Ignored,
            _ if seen + 1 == DATA.len() => At::Open,
            _ => At::Line(seen + 1),
        };
    }

    fn open(&mut self, byte: u8, out: &mut Vec<Plucked>) -> Result<(), Unplucked> {
        match byte {
            b'\n' if self.events => {
                if self.depth == 0 {
                    self.document(out);
                }
                self.at = At::Line(0);
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'"' if std::mem::take(&mut self.wanted) => {
                // What stands here instead of it.
                self.keep(b'"')?;
                self.keep(b'"')?;
                self.at = At::Long;
            }
            b'"' => {
                self.text_at = self.rest.len();
                self.keep(byte)?;
                self.at = At::Text { escaped: false };
            }
            b':' => {
                let text = self.rest.get(self.text_at + 1..self.rest.len().saturating_sub(1)).unwrap_or_default();
                self.wanted = self.keys.iter().any(|key| key.as_bytes() == text);
                self.keep(byte)?;
            }
            _ => {
                self.depth = match byte {
                    b'{' | b'[' => self.depth + 1,
                    b'}' | b']' => self.depth.saturating_sub(1),
                    _ => self.depth,
                };
                self.wanted = false;
                self.keep(byte)?;
            }
        }
        Ok(())
    }

    /// As far as the long text goes; the rest.
    fn long<'b>(&mut self, bytes: &'b [u8], out: &mut Vec<Plucked>) -> &'b [u8] {
        let end = memchr2(b'"', b'\\', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if !piece.is_empty() {
            out.push(Plucked::Text(piece.to_vec()));
        }
        let Some(end) = end else { return &[] };
        self.at = if bytes[end] == b'"' { At::Open } else { At::Escape };
        self.escape.clear();
        &bytes[end + 1..]
    }

    /// Text that stands for bytes needs no escapes; some writers make them all the same.
    fn escape(&mut self, byte: u8, out: &mut Vec<Plucked>) -> Result<(), Unplucked> {
        self.escape.push(byte);
        let letter = match self.escape[..] {
            [b'u', _, _, _, _] => {
                let digits = std::str::from_utf8(&self.escape[1..]).map_err(|_| Unplucked::Garbage)?;
                u8::from_str_radix(digits, 16).map_err(|_| Unplucked::Garbage)?
            }
            [b'u', ..] => return Ok(()),
            [b'/'] => b'/',
            _ => return Err(Unplucked::Garbage),
        };
        out.push(Plucked::Text(vec![letter]));
        self.at = At::Long;
        Ok(())
    }

    fn keep(&mut self, byte: u8) -> Result<(), Unplucked> {
        if self.rest.len() >= self.most {
            return Err(Unplucked::TooLong);
        }
        self.rest.push(byte);
        Ok(())
    }

    fn document(&mut self, out: &mut Vec<Plucked>) {
        self.wanted = false;
        self.text_at = 0;
        self.depth = 0;
        if !self.rest.is_empty() {
            out.push(Plucked::Document(std::mem::take(&mut self.rest)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The long texts joined, each with its document.
    fn read(mut plucker: Plucker, text: &str, piece: usize) -> Result<Vec<(String, String)>, Unplucked> {
        let mut out = Vec::new();
        for part in text.as_bytes().chunks(piece) {
            plucker.feed(part, &mut out)?;
        }
        plucker.end(&mut out)?;
        let (mut found, mut long) = (Vec::new(), String::new());
        for one in out {
            match one {
                Plucked::Text(bytes) => long.push_str(&String::from_utf8_lossy(&bytes)),
                Plucked::Document(bytes) => {
                    found.push((std::mem::take(&mut long), String::from_utf8_lossy(&bytes).into_owned()));
                }
            }
        }
        Ok(found)
    }

    const KEYS: &[&str] = &["audio", "data"];

    #[test]
    fn the_long_text_passes_and_the_rest_is_json() {
        let text =
            r#"{ "data" : {"audio": "abc\/d\u003d", "status":2, "say":"\"audio\":\"no"}, "n":[1, "audio", "x"] }"#;
        for piece in [1, 2, 3, 7, 1000] {
            let found = read(Plucker::whole(KEYS, 1000), text, piece).expect("read");
            let rest = r#"{"data":{"audio":"","status":2,"say":"\"audio\":\"no"},"n":[1,"audio","x"]}"#;
            assert_eq!(found, [("abc/d=".to_owned(), rest.to_owned())]);
            assert!(serde_json::from_str::<serde_json::Value>(&found[0].1).is_ok());
        }
    }

    #[test]
    fn events_are_documents_of_their_own() {
        let text = "id:1\nevent:\"x\ndata:{\"audio\":\"aa\"}\n\n: ping\r\ndata: {\"audio\":\"bb\",\"end\":true}\r\n\r\ndata: [DONE]\n\n";
        for piece in [1, 5, 1000] {
            let found = read(Plucker::events(KEYS, 1000), text, piece).expect("read");
            let documents: Vec<(&str, &str)> =
                found.iter().map(|(long, rest)| (long.as_str(), rest.as_str())).collect();
            assert_eq!(documents, [("aa", r#"{"audio":""}"#), ("bb", r#"{"audio":"","end":true}"#), ("", "[DONE]")]);
        }
    }

    #[test]
    fn a_document_may_stand_in_several_lines() {
        let text = "data:{\ndata:  \"output\": {\r\ndata: \"data\":\ndata: \"aa\"\nid: 7\ndata: }}\n\n\
                    data: {\"data\":\"bb\"}\ndata: {\"data\":\"cc\"}\n\ndata: {\"cut\":[\n\ndata: {}\n\n";
        for piece in [1, 4, 1000] {
            let found = read(Plucker::events(KEYS, 1000), text, piece).expect("read");
            let documents: Vec<(&str, &str)> =
                found.iter().map(|(long, rest)| (long.as_str(), rest.as_str())).collect();
            let rest = r#"{"output":{"data":""}}"#;
            let lines = [("bb", r#"{"data":""}"#), ("cc", r#"{"data":""}"#)];
            assert_eq!(documents, [("aa", rest), lines[0], lines[1], ("", r#"{"cut":["#), ("", "{}")]);
        }
    }

    #[test]
    fn what_cannot_be_read_is_reported() {
        for bad in [r#"{"audio":"abc"#, r#"{"audio":"a\n"}"#, r#"{"audio":"a\u2028"}"#, r#"{"x":"y"#] {
            assert_eq!(read(Plucker::whole(KEYS, 1000), bad, 3), Err(Unplucked::Garbage), "{bad}");
        }
        let long = format!(r#"{{"other":"{}"}}"#, "x".repeat(2_000));
        assert_eq!(read(Plucker::whole(KEYS, 1_000), &long, 100), Err(Unplucked::TooLong));
        let fine = format!(r#"{{"audio":"{}"}}"#, "x".repeat(2_000));
        assert_eq!(read(Plucker::whole(KEYS, 1_000), &fine, 100).expect("read")[0].0.len(), 2_000);
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_any_pieces(text in ".{0,80}", piece in 1usize..20) {
            let whole = read(Plucker::whole(KEYS, 60), &text, 1_000);
            prop_assert_eq!(whole.is_ok(), read(Plucker::whole(KEYS, 60), &text, piece).is_ok());
        }
    }
}
