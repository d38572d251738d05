//! The data of one event with pictures as it is read: what may leave of it, and how many pictures
//! are in it, wherever they stand.

use super::escapes::PlainLetters;
use super::letters::{PictureCheck, is_enough, own_letters};
use tollgate_wire::json::{BrokenJson, JsonStep, Steps};

/// The most of an event that is buffered besides its pictures.
pub(super) const MAX_REST: usize = 64 << 10;
/// The longest name of a member that is read.
const LONGEST_NAME: usize = 64;

/// The data of an event as it is read: what may leave of it, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct EventPictures {
    /// Pictures that may still leave.
    pub room: u64,
    /// The last name of a member, with its quotes.
    name: Vec<u8>,
    named: bool,
    /// All but the pictures.
    pub rest: Vec<u8>,
    pub out: Vec<u8>,
    text: Text,
    plain: PlainLetters,
    /// Whole pictures.
    pub whole: u64,
    /// A picture has begun.
    pub begun: bool,
    /// What is read stands between two lines of data.
    pub between: bool,
    pub too_long: bool,
}

/// What is being done with a text.
#[derive(Debug, Default)]
enum Text {
    /// We are in none.
    #[default]
    None,
    /// Too little of it is here to tell: as it came, and what it means.
    Head(Vec<u8>, Vec<u8>),
    Picture(PictureCheck),
    /// Said to be a picture, and is none.
    Foreign,
    /// A picture that was not asked for.
    Skipped,
    /// Anything else.
    Words,
}

impl Steps for EventPictures {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match step {
            JsonStep::Name { last } => {
                if std::mem::take(&mut self.named) {
                    self.name.clear();
                }
                let room = LONGEST_NAME.saturating_sub(self.name.len());
                self.name.extend_from_slice(&text[..text.len().min(room)]);
                self.named = last;
                self.words(text)
            }
            JsonStep::Plain { last } => self.plain(last, text),
            JsonStep::Blank if self.between => Ok(()),
            _ => self.words(text),
        }
    }
}

impl EventPictures {
    /// So many pictures may leave.
    pub fn with_room(room: u64) -> EventPictures {
        EventPictures { room, ..EventPictures::default() }
    }

    /// What is no picture.
    fn words(&mut self, text: &[u8]) -> Result<(), BrokenJson> {
        self.out.extend_from_slice(text);
        self.keep(text)
    }

    fn keep(&mut self, text: &[u8]) -> Result<(), BrokenJson> {
        if self.rest.len() + text.len() > MAX_REST {
            self.too_long = true;
            return Err(BrokenJson::Depth);
        }
        self.rest.extend_from_slice(text);
        Ok(())
    }

    fn plain(&mut self, last: bool, text: &[u8]) -> Result<(), BrokenJson> {
        let begins = matches!(self.text, Text::None);
        if begins && text.first() != Some(&b'"') {
            return self.words(text);
        }
        let own = if begins { &text[1..] } else { text };
        let own = if last { own.strip_suffix(b"\"").unwrap_or(own) } else { own };
        if begins {
            self.text = Text::Head(Vec::new(), Vec::new());
        }
        match &mut self.text {
            Text::Head(raw, head) => {
                raw.extend_from_slice(text);
                head.extend_from_slice(&self.plain.read(own));
                if last || is_enough(head) {
                    self.decide()?;
                }
            }
            Text::Picture(check) => {
                check.feed(&self.plain.read(own));
                self.out.extend_from_slice(text);
            }
            Text::Words => self.words(text)?,
            Text::Foreign => self.out.extend_from_slice(text),
            Text::Skipped | Text::None => {}
        }
        if last && let Text::Picture(check) = std::mem::take(&mut self.text) {
            self.whole += u64::from(check.is_whole());
        }
        Ok(())
    }

    /// Enough of a text is here to tell what it is.
    fn decide(&mut self) -> Result<(), BrokenJson> {
        let Text::Head(raw, head) = std::mem::replace(&mut self.text, Text::Words) else { return Ok(()) };
        let own = own_letters(&head);
        let kind = PictureCheck::begins(own);
        // As long as a picture, and called one.
        let is_called_one = is_enough(&head) && self.name == b"\"b64_json\"";
        if kind.is_none() && !is_called_one {
            return self.words(&raw);
        }
        self.begun = true;
        self.keep(b"\"\"")?;
        if self.whole >= self.room {
            self.text = Text::Skipped;
            self.out.extend_from_slice(b"\"\"");
            return Ok(());
        }
        self.out.extend_from_slice(&raw);
        self.text = kind.map_or(Text::Foreign, |kind| {
            let mut check = PictureCheck::new(kind);
            check.feed(own);
            Text::Picture(check)
        });
        Ok(())
    }
}
