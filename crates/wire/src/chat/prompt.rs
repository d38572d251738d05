//! Estimates the tokens of a prompt while it is being checked, leaning high.
//!
//! Text is counted wherever it stands. Pictures, sound and files are counted by their own rules:
//! their base64 letters are no text. Only the members that carry media get that treatment, so
//! that text cannot be passed off as a picture.

use crate::count::{AUDIO_LETTERS, Counter, FILE_LETTERS, IMAGE, IMAGE_LOW, VIDEO};
use crate::json::{Broken, Scan, Text};

/// Tokens every provider adds around a message.
const PER_MESSAGE: u64 = 4;
/// Tokens around the whole conversation.
const PER_CALL: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    counter: Counter,
    more: u64,
}

impl Estimate {
    pub fn new() -> Self {
        Estimate { counter: Counter::default(), more: PER_CALL }
    }

    pub fn tokens(&self) -> u64 {
        self.counter.tokens().saturating_add(self.more)
    }

    pub fn message(&mut self) {
        self.more = self.more.saturating_add(PER_MESSAGE);
    }

    pub fn text(&mut self, text: Text<'_>) {
        self.counter.json(text.raw());
    }

    /// Counts a value as the JSON text it is: tools and schemas.
    pub fn verbatim(&mut self, raw: &[u8]) {
        self.counter.json(raw);
    }

    /// Counts the text in any value of a message.
    pub fn value(&mut self, scan: &mut Scan<'_>) -> Result<(), Broken> {
        match scan.peek() {
            Some(b'"') => {
                self.text(scan.string()?);
                Ok(())
            }
            Some(b'[') => scan.array(|scan| self.value(scan)),
            Some(b'{') => scan.object(|key, scan| self.member(key, scan)),
            _ => scan.skip(),
        }
    }

    fn member(&mut self, key: Text<'_>, scan: &mut Scan<'_>) -> Result<(), Broken> {
        match key.raw() {
            b"type" => scan.skip(),
            b"image_url" | b"image" => self.image(scan),
            b"video_url" | b"video" => {
                self.more = self.more.saturating_add(VIDEO);
                scan.skip()
            }
            b"input_audio" => self.media(scan, AUDIO_LETTERS),
            b"file" | b"file_data" | b"fileData" => self.media(scan, FILE_LETTERS),
            // Anthropic's and Gemini's: the type inside tells what it is.
            b"source" | b"inlineData" | b"inline_data" if scan.peek() == Some(b'{') => self.typed(scan),
            // Arguments are anything at all.
            b"input" | b"args" => {
                let raw = scan.value()?;
                self.verbatim(raw);
                Ok(())
            }
            _ => self.value(scan),
        }
    }

    fn image(&mut self, scan: &mut Scan<'_>) -> Result<(), Broken> {
        let mut low = false;
        if scan.peek() == Some(b'{') {
            scan.object(|key, scan| {
                let value = scan.value()?;
                low |= key.raw() == b"detail" && value == b"\"low\"";
                Ok::<(), Broken>(())
            })?;
        } else {
            scan.skip()?;
        }
        self.more = self.more.saturating_add(if low { IMAGE_LOW } else { IMAGE });
        Ok(())
    }

    /// An object with a media type and data, or (a text source, a link) a value like any other.
    fn typed(&mut self, scan: &mut Scan<'_>) -> Result<(), Broken> {
        let raw = scan.value()?;
        let mut kind: &[u8] = b"";
        let mut data = 0;
        Scan::new(raw).object(|key, scan| {
            let value = scan.value()?;
            match key.raw() {
                b"media_type" | b"mimeType" | b"mime_type" => kind = value,
                b"data" => data = value.len() as u64,
                b"url" => kind = b"\"image/\"",
                _ => {}
            }
            Ok::<(), Broken>(())
        })?;
        let letters = match kind {
            kind if kind.starts_with(b"\"image/") => {
                self.more = self.more.saturating_add(IMAGE);
                return Ok(());
            }
            kind if kind.starts_with(b"\"video/") => {
                self.more = self.more.saturating_add(VIDEO);
                return Ok(());
            }
            kind if kind.starts_with(b"\"audio/") => AUDIO_LETTERS,
            b"" | b"\"text/plain\"" => {
                self.verbatim(raw);
                return Ok(());
            }
            _ => FILE_LETTERS,
        };
        self.more = self.more.saturating_add(data.div_ceil(letters));
        Ok(())
    }

    fn media(&mut self, scan: &mut Scan<'_>, letters_per_token: u64) -> Result<(), Broken> {
        let letters = scan.value()?.len() as u64;
        self.more = self.more.saturating_add(letters.div_ceil(letters_per_token));
        Ok(())
    }
}
