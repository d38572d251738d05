//! Sealed reasoning: what only the provider that made it can read, on its way through other
//! dialects.
//!
//! Anthropic signs thoughts, OpenAI encrypts them (bound to an item's id), Gemini signs parts
//! (bound to a call). Each wants its own back, byte for byte. A dialect that has a field for a seal
//! but not for its origin gets an envelope: a marker, the origin, the id it is bound to, the seal.
//! On the way back it is opened again; a seal of another maker is never sent to a provider.

use super::base64;
use super::ids::fitting_id;
use std::borrow::Cow;
use tollgate_wire::Dialect;

/// Who made a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealMaker {
    Anthropic,
    OpenAi,
    Gemini,
    /// A chat-compatible server, in `reasoning_details` of a format we do not know.
    Other,
}

impl SealMaker {
    const ALL: [(SealMaker, &'static str, &'static str); 4] = [
        (SealMaker::Anthropic, "a", "anthropic-claude-v1"),
        (SealMaker::OpenAi, "o", "openai-responses-v1"),
        (SealMaker::Gemini, "g", "google-gemini-v1"),
        (SealMaker::Other, "x", "unknown"),
    ];

    /// Whose seals a dialect carries without an envelope.
    pub fn native(dialect: Dialect) -> SealMaker {
        match dialect {
            Dialect::Chat => SealMaker::Other,
            Dialect::Anthropic => SealMaker::Anthropic,
            Dialect::Responses => SealMaker::OpenAi,
            Dialect::Gemini => SealMaker::Gemini,
        }
    }

    /// The name used in `reasoning_details`.
    pub fn format(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// Helpers of streams may join the words of all pieces; that of the piece with the seal is the
    /// last.
    pub fn of_format(format: &str) -> SealMaker {
        Self::ALL.iter().find(|(_, _, name)| format.ends_with(name)).map_or(SealMaker::Other, |(origin, ..)| *origin)
    }

    fn letter(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn of_letter(letter: &str) -> Option<SealMaker> {
        Self::ALL.iter().find(|(_, name, _)| *name == letter).map(|(origin, ..)| *origin)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seal<'a> {
    pub origin: SealMaker,
    pub data: Cow<'a, str>,
    /// What it is bound to: an item's id, or a tool call's. Empty when nothing.
    pub bound: Cow<'a, str>,
}

/// How everything begins that we put in the place of a seal.
pub(crate) const MARK: &str = "tg1.";
/// Stands where a seal would: the thought is nobody's who signs. Without it a provider could not be
/// not shown it as its own.
pub(crate) const UNSIGNED: &str = "tg1.x..";
/// Before the text that Anthropic signed, in what its seal is bound to. What is redacted has none,
/// and is another thing than a thought that was signed and not shown.
pub(crate) const SIGNED: char = '=';
/// Gemini: bound to the text that follows rather than to a call.
pub(crate) const NEXT_TEXT: &str = "@text";

impl<'a> Seal<'a> {
    pub fn new(origin: SealMaker, data: impl Into<Cow<'a, str>>, bound: impl Into<Cow<'a, str>>) -> Self {
        Seal { origin, data: data.into(), bound: bound.into() }
    }

    /// As it is written in a field of `dialect`: plain when it is at home there, else in an
    /// envelope.
    pub fn written(&self, dialect: Dialect) -> Cow<'_, str> {
        if SealMaker::native(dialect) == self.origin {
            return Cow::Borrowed(&self.data);
        }
        let bound = base64::encode(self.bound_in(dialect).as_bytes());
        let envelope = format!("{MARK}{}.{bound}.{}", self.origin.letter(), self.data);
        // Gemini's clients insist on base64.
        Cow::Owned(if dialect == Dialect::Gemini { base64::encode(envelope.as_bytes()) } else { envelope })
    }

    /// What it is bound to as `dialect` spells it: the id of a call may have to change there.
    pub fn bound_in(&self, dialect: Dialect) -> Cow<'_, str> {
        match self.origin {
            SealMaker::Gemini if !self.bound.is_empty() && self.bound != NEXT_TEXT => fitting_id(dialect, &self.bound),
            _ => Cow::Borrowed(&self.bound),
        }
    }

    /// The same with the text that it signs, for dialects that may lose it on the way, or cannot
    /// say that there is none.
    pub fn with_signed(&self, redacted: bool, text: &str) -> Cow<'_, Seal<'_>> {
        if self.origin != SealMaker::Anthropic || redacted {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Seal::new(self.origin, &*self.data, format!("{SIGNED}{text}")))
    }

    /// Takes the text out again that it signs.
    pub fn take_signed(&mut self) -> Option<String> {
        let text = self.bound.strip_prefix(SIGNED).filter(|_| self.origin == SealMaker::Anthropic)?.to_owned();
        self.bound = Cow::Borrowed("");
        Some(text)
    }

    /// Whether a field of `dialect` holds a seal that another maker's thoughts came with, or our
    /// word that there was none.
    pub fn is_foreign(dialect: Dialect, text: &str) -> bool {
        match dialect {
            Dialect::Gemini => base64::decode(text).is_some_and(|bytes| bytes.starts_with(MARK.as_bytes())),
            _ => text.starts_with(MARK),
        }
    }

    /// The same as `read`, where there may be none.
    pub fn read_any(dialect: Dialect, text: Cow<'a, str>, bound: Cow<'a, str>) -> Option<Seal<'a>> {
        (!text.is_empty() && text != UNSIGNED).then(|| Self::read(dialect, text, bound))
    }

    /// Reads a field of `dialect`; `bound` is what the field itself belongs to.
    pub fn read(dialect: Dialect, text: Cow<'a, str>, bound: Cow<'a, str>) -> Seal<'a> {
        let opened = match dialect {
            Dialect::Gemini => base64::decode(&text).and_then(|bytes| Self::open(std::str::from_utf8(&bytes).ok()?)),
            _ => Self::open(&text),
        };
        opened.unwrap_or(Seal { origin: SealMaker::native(dialect), data: text, bound })
    }

    fn open(text: &str) -> Option<Seal<'a>> {
        let (letter, rest) = text.strip_prefix(MARK)?.split_once('.')?;
        let (bound, data) = rest.split_once('.')?;
        let bound = String::from_utf8(base64::decode(bound)?).ok()?;
        Some(Seal::new(SealMaker::of_letter(letter)?, data.to_owned(), bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_seal() -> impl Strategy<Value = Seal<'static>> {
        let origin =
            prop::sample::select(vec![SealMaker::Anthropic, SealMaker::OpenAi, SealMaker::Gemini, SealMaker::Other]);
        (origin, "[A-Za-z0-9+/=._-]{0,40}", "\\PC{0,20}")
            .prop_map(|(origin, data, bound)| Seal::new(origin, data, bound))
    }

    proptest! {
        #[test]
        fn comes_back_from_every_dialect(seal in any_seal()) {
            for dialect in Dialect::ALL {
                let written = seal.written(dialect).into_owned();
                if dialect == Dialect::Gemini && seal.origin != SealMaker::Gemini {
                    prop_assert!(base64::decode(&written).is_some());
                }
                let native = SealMaker::native(dialect) == seal.origin;
                // At home the place of the field says what it is bound to.
                let bound = if native { seal.bound.to_string() } else { String::new() };
                let back = Seal::read(dialect, written.into(), bound.into());
                prop_assert_eq!(&back.data, &seal.data);
                prop_assert_eq!(back.origin, seal.origin);
                let own = if native { seal.bound.clone() } else { seal.bound_in(dialect) };
                prop_assert_eq!(back.bound, own);
            }
        }

        #[test]
        fn any_text_is_a_seal_of_its_dialect(text in "\\PC{0,30}") {
            for dialect in Dialect::ALL {
                let seal = Seal::read(dialect, text.as_str().into(), "".into());
                prop_assert!(!text.starts_with(MARK) || seal.data.len() <= text.len());
            }
        }
    }
}
