//! Our result, written piece by piece: one entry for each picture, the counts behind them. As one
//! object, or as one event for each picture.

use super::records::SPOILED;
use super::sniff::PictureKind;
use super::usage::with_known_counts;
use serde_json::Value;
use tollgate_wire::json::{Object, quoted, write_str};

/// How the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultStyle {
    /// One JSON object.
    Object,
    /// One object as Imagen has it.
    Predictions,
    /// One event for each picture; of an edit or not.
    Events { edit: bool },
    /// For ourselves: the letters of each picture on a line, its prompt on the next
    /// ([`super::PictureRecords`]).
    Letters,
}

/// What is said of all pictures alike, where it is known.
#[derive(Clone, Debug, Default)]
pub struct PictureFacts {
    pub size: Option<String>,
    pub quality: Option<String>,
    pub output_format: Option<String>,
    pub background: Option<String>,
}

/// What became of the pictures that were asked for.
#[derive(Clone, Debug, Default)]
pub struct PictureTally {
    pub asked: u64,
    /// Handed over, and such as can be decoded.
    pub delivered: u64,
    /// Beyond what was asked for; not handed over.
    pub surplus: u64,
    /// Entries without a picture that can be decoded.
    pub broken: u64,
    /// Place in the list of pictures and text, for the caller.
    pub warnings: Vec<(u64, String)>,
    /// A provider's words for a picture that it did not make.
    pub refused: Option<(String, String)>,
    /// Its report of what was used, as JSON.
    pub usage: Option<String>,
}

/// Warnings that are listed; each costs memory.
const MOST_WARNINGS: usize = 16;

impl PictureTally {
    pub fn failed(&self) -> u64 {
        self.asked.saturating_sub(self.delivered)
    }

    /// Of the picture at this place.
    pub fn warn(&mut self, place: u64, text: &str) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push((place, text.to_owned()));
        }
    }
}

/// The result being written.
#[derive(Debug)]
pub struct ResultWriter {
    style: ResultStyle,
    created: u64,
    facts: PictureFacts,
    entries: u64,
    /// What the picture of the open entry is.
    kind: Option<PictureKind>,
}

impl ResultStyle {
    /// What stands between two entries.
    pub const fn between(self) -> &'static [u8] {
        match self {
            ResultStyle::Object | ResultStyle::Predictions => b",",
            ResultStyle::Events { .. } | ResultStyle::Letters => b"",
        }
    }
}

impl ResultWriter {
    pub fn new(style: ResultStyle, created: u64, facts: PictureFacts) -> ResultWriter {
        ResultWriter { style, created, facts, entries: 0, kind: None }
    }

    /// Whether an entry may be a link.
    pub fn has_links(&self) -> bool {
        self.style != ResultStyle::Predictions
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The letters that have left are no picture. Whether their reader sees that by itself.
    pub(super) fn spoil(&self, out: &mut Vec<u8>) -> bool {
        if self.style == ResultStyle::Letters {
            out.push(SPOILED);
        }
        self.style == ResultStyle::Letters
    }

    /// An entry was taken back.
    pub(super) fn forget(&mut self) {
        self.entries = self.entries.saturating_sub(1);
    }

    pub fn begin(&self, out: &mut Vec<u8>) {
        match self.style {
            ResultStyle::Object => {
                out.extend_from_slice(format!("{{\"created\":{},\"data\":[", self.created).as_bytes());
            }
            ResultStyle::Predictions => out.extend_from_slice(b"{\"predictions\":["),
            ResultStyle::Events { .. } | ResultStyle::Letters => {}
        }
    }

    /// Opens an entry; letters of base64 follow, of a picture of this kind.
    pub fn open(&mut self, out: &mut Vec<u8>, kind: Option<PictureKind>) {
        self.kind = kind;
        if self.entries > 0 {
            out.extend_from_slice(self.style.between());
        }
        match self.style {
            ResultStyle::Object => out.extend_from_slice(b"{\"b64_json\":\""),
            ResultStyle::Predictions => out.extend_from_slice(b"{\"bytesBase64Encoded\":\""),
            ResultStyle::Events { edit } => {
                let name = if edit { "image_edit.completed" } else { "image_generation.completed" };
                out.extend_from_slice(format!("event: {name}\ndata: {{\"type\":\"{name}\",\"b64_json\":\"").as_bytes());
            }
            ResultStyle::Letters => {}
        }
        self.entries += 1;
    }

    /// Ends an entry behind its letters. `prompt` is JSON already.
    pub fn close(&self, out: &mut Vec<u8>, url: &str, prompt: Option<&[u8]>) {
        if self.style == ResultStyle::Letters {
            out.push(b'\n');
            out.extend_from_slice(prompt.unwrap_or(b"\"\""));
            out.push(b'\n');
            return;
        }
        if self.style == ResultStyle::Predictions {
            let mime = self.kind.map_or("application/octet-stream", PictureKind::mime);
            out.extend_from_slice(format!("\",\"mimeType\":\"{mime}\"").as_bytes());
            if let Some(prompt) = prompt.filter(|prompt| prompt.len() > 2) {
                out.extend_from_slice(b",\"prompt\":");
                out.extend_from_slice(prompt);
            }
            out.push(b'}');
            return;
        }
        out.extend_from_slice(b"\",\"url\":");
        write_str(out, url);
        out.extend_from_slice(b",\"revised_prompt\":");
        out.extend_from_slice(prompt.unwrap_or(b"\"\""));
        if self.style == ResultStyle::Object {
            out.push(b'}');
            return;
        }
        out.extend_from_slice(format!(",\"created_at\":{}", self.created).as_bytes());
        for (name, value) in self.facts.named() {
            out.push(b',');
            write_str(out, name);
            out.push(b':');
            write_str(out, value);
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// An entry whose picture is at its link.
    pub fn link(&mut self, out: &mut Vec<u8>, url: &str, prompt: &str) {
        self.open(out, None);
        self.close(out, url, Some(&quoted(prompt)));
    }

    /// What stands behind all entries.
    pub fn end(&self, out: &mut Vec<u8>, tally: &PictureTally) {
        match self.style {
            ResultStyle::Object => {}
            ResultStyle::Predictions => return out.extend_from_slice(b"]}"),
            ResultStyle::Events { .. } | ResultStyle::Letters => return,
        }
        out.push(b']');
        let mut rest = Vec::new();
        let mut more = Object::begin(&mut rest);
        more.object("metadata", |metadata| {
            metadata.text("success_count", &tally.delivered.to_string());
            metadata.text("failed_count", &tally.failed().to_string());
        });
        self.facts.named().for_each(|(name, value)| more.text(name, value));
        more.maybe_raw("usage", tally.usage.as_deref().map(with_known_counts).as_deref());
        if !tally.warnings.is_empty() {
            more.array("warnings", |list| {
                for (place, message) in &tally.warnings {
                    list.object(|one| {
                        one.text("field", &format!("data[{place}]"));
                        one.text("message", message);
                    });
                }
            });
        }
        more.end();
        // The brace of the object that is open already.
        out.push(b',');
        out.extend_from_slice(&rest[1..]);
    }
}

impl PictureFacts {
    fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("size", &self.size),
            ("quality", &self.quality),
            ("output_format", &self.output_format),
            ("background", &self.background),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// With what a provider says of its pictures.
    pub fn learn(&mut self, reply: &Value) {
        let places = [
            ("size", &mut self.size),
            ("quality", &mut self.quality),
            ("output_format", &mut self.output_format),
            ("background", &mut self.background),
        ];
        for (name, place) in places {
            if let Some(word) = reply[name].as_str().filter(|word| word.len() <= 32) {
                *place = Some(word.to_owned());
            }
        }
    }
}

impl ResultWriter {
    /// With what a provider says of its pictures.
    pub fn learn(&mut self, reply: &Value) {
        self.facts.learn(reply);
    }
}
