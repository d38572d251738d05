//! A provider's reply rewritten into the format that was asked for, within bounded memory. The
//! reply is read several times: once to see what there is, then once for each part of what is
//! written. Whoever has it, in memory or on disk, feeds it again and again.

use super::shape::TranscriptShape;
use super::spoken::{NoTranscript, Spoken, SpokenReader};
use super::transcript::{LineCutter, TranscriptFacts, TranscriptPart, TranscriptTarget};
use bytes::Bytes;

/// What there is in a reply.
#[derive(Debug, Default)]
struct Seen {
    /// Something was said.
    said: bool,
    lines: bool,
    words: bool,
    language: Option<String>,
    /// When the last word ends, else the last line.
    end_ms: u64,
}

/// A transcript that is being rewritten.
#[derive(Debug)]
pub struct TranscriptRewrite {
    shape: &'static TranscriptShape,
    target: TranscriptTarget,
    reader: SpokenReader,
    seen: Seen,
    facts: TranscriptFacts,
    /// The parts that are to be written, the next one first; none before all was seen.
    parts: Vec<TranscriptPart>,
    /// Bytes, lines or words of the part that is being written.
    count: usize,
    cutter: LineCutter,
}

impl TranscriptRewrite {
    pub fn new(shape: &'static TranscriptShape, target: TranscriptTarget) -> TranscriptRewrite {
        TranscriptRewrite {
            shape,
            target,
            reader: SpokenReader::new(shape),
            seen: Seen::default(),
            facts: TranscriptFacts::default(),
            parts: Vec::new(),
            count: 0,
            cutter: LineCutter::default(),
        }
    }

    /// The next piece of the reply; what of the transcript comes of it.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Bytes, NoTranscript> {
        let mut out = Vec::new();
        for spoken in self.reader.feed(piece)? {
            match self.parts.first().copied() {
                None => self.see(spoken),
                Some(part) => self.write(part, spoken, &mut out),
            }
        }
        Ok(Bytes::from(out))
    }

    /// The reply was seen once. What is around its text and words, as JSON.
    pub fn seen(&mut self) -> Result<Vec<u8>, NoTranscript> {
        std::mem::replace(&mut self.reader, SpokenReader::new(self.shape)).end()
    }

    /// From now on it is written; the first bytes of it. What the document around it says counts
    /// before what its parts do.
    pub fn begin(&mut self, facts: TranscriptFacts) -> Result<Bytes, NoTranscript> {
        let Seen { said, lines, words, .. } = self.seen;
        if said && !lines && !words && self.target.is_timed() {
            return Err(NoTranscript);
        }
        let language = facts.language.or(self.seen.language.take());
        self.facts = TranscriptFacts { language, ..facts };
        self.parts = self.target.parts(words);
        Ok(self.before())
    }

    /// Whether all is written. Until then the reply is fed once more.
    pub fn is_over(&self) -> bool {
        self.parts.is_empty()
    }

    /// The reply was fed once more: the end of a part, and the beginning of the next.
    pub fn end_part(&mut self) -> Result<Bytes, NoTranscript> {
        self.seen()?;
        let mut out = Vec::new();
        let part = self.parts.remove(0);
        if let Some(line) = self.cutter.end() {
            self.target.line(self.count, &line, &mut out);
        }
        out.extend_from_slice(self.target.after(part, self.parts.is_empty(), &self.facts).as_bytes());
        out.extend_from_slice(&self.before());
        self.count = 0;
        Ok(Bytes::from(out))
    }

    /// Bytes that are held between two pieces.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.reader.held() + self.cutter.held()
    }

    fn before(&self) -> Bytes {
        let before = |part: &TranscriptPart| self.target.before(*part, &self.facts, self.seen.end_ms);
        self.parts.first().map(before).unwrap_or_default().into()
    }

    fn see(&mut self, spoken: Spoken) {
        let seen = &mut self.seen;
        match spoken {
            Spoken::Begin => {}
            Spoken::Text(text) => seen.said |= !text.trim().is_empty(),
            Spoken::Item(item) => {
                let last_word = item.words.last().map(|word| word.end_ms);
                let last_line = item.line.as_ref().map(|line| line.end_ms).filter(|_| !seen.words);
                seen.end_ms = last_word.or(last_line).unwrap_or(seen.end_ms);
                seen.words |= last_word.is_some();
                seen.lines |= item.line.is_some();
                seen.language = seen.language.take().or(item.language);
            }
        }
    }

    fn write(&mut self, part: TranscriptPart, spoken: Spoken, out: &mut Vec<u8>) {
        match (part, spoken) {
            (TranscriptPart::Text, Spoken::Begin) => {
                // Each text of several is a line.
                if self.count > 0 {
                    self.target.text("\n", out);
                }
            }
            (TranscriptPart::Text, Spoken::Text(text)) => {
                self.count += text.len();
                self.target.text(&text, out);
            }
            (TranscriptPart::Lines, Spoken::Item(item)) if self.seen.lines => {
                if let Some(line) = item.line {
                    self.target.line(self.count, &line, out);
                    self.count += 1;
                }
            }
            (TranscriptPart::Lines, Spoken::Item(item)) => {
                for word in item.words {
                    if let Some(line) = self.cutter.word(word) {
                        self.target.line(self.count, &line, out);
                        self.count += 1;
                    }
                }
            }
            (TranscriptPart::Words, Spoken::Item(item)) => {
                for word in item.words {
                    self.target.word(self.count, &word, out);
                    self.count += 1;
                }
            }
            (TranscriptPart::Text, Spoken::Item(_)) | (_, Spoken::Begin | Spoken::Text(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests;
