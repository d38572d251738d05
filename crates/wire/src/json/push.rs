//! The grammar of the scanner for text that arrives in pieces. Each step is passed on as it comes,
//! with its bytes; nothing is remembered but which brackets are open. A name or a plain value may
//! come in several pieces, the last of which may be empty.

use super::{BrokenJson, DEPTH, plain_run};

/// One step through a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonStep {
    Open { list: bool },
    Close,
    Name { last: bool },
    Plain { last: bool },
    Comma,
    Colon,
    Blank,
}

/// Who takes the steps.
pub trait Steps {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson>;
}

#[derive(Debug)]
pub struct Push {
    /// Is it a list? For each open bracket.
    open: Vec<bool>,
    state: State,
    /// Bytes of earlier pieces.
    before: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    Colon,
    /// A value has ended.
    After,
    Text {
        name: bool,
        escape: Escape,
    },
    Word {
        word: &'static [u8],
        done: usize,
    },
    Number(Digits),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Slash,
    Hex(u8),
}

/// What of a number has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Dot,
    Fraction,
    E,
    Sign,
    Exponent,
}

impl Digits {
    fn then(self, byte: u8) -> Option<Digits> {
        Some(match (self, byte) {
            (Digits::Minus, b'0') => Digits::Zero,
            (Digits::Minus | Digits::Whole, b'0'..=b'9') => Digits::Whole,
            (Digits::Zero | Digits::Whole, b'.') => Digits::Dot,
            (Digits::Dot | Digits::Fraction, b'0'..=b'9') => Digits::Fraction,
            (Digits::Zero | Digits::Whole | Digits::Fraction, b'e' | b'E') => Digits::E,
            (Digits::E, b'+' | b'-') => Digits::Sign,
            (Digits::E | Digits::Sign | Digits::Exponent, b'0'..=b'9') => Digits::Exponent,
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(self, Digits::Zero | Digits::Whole | Digits::Fraction | Digits::Exponent)
    }
}

impl Default for Push {
    fn default() -> Push {
        Push { open: Vec::new(), state: State::Value, before: 0 }
    }
}

impl Push {
    /// The next piece of the text.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl Steps) -> Result<(), BrokenJson> {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::Text { name, escape } => self.text(bytes, at, at, (name, escape), sink)?,
                State::Word { word, done } => self.word(bytes, at, word, done, sink)?,
                State::Number(digits) => self.number(bytes, at, digits, sink)?,
                _ => self.mark(bytes, at, sink)?,
            };
        }
        self.before += bytes.len();
        Ok(())
    }

    /// In the middle of a text that is no name: what follows up to its end is plain.
    pub fn is_in_text(&self) -> bool {
        matches!(self.state, State::Text { name: false, escape: Escape::None })
    }

    /// So many more bytes of that text, which somebody else has looked at: there is no quote, no
    /// backslash and no control character in them.
    pub fn passed(&mut self, bytes: usize) {
        self.before += bytes;
    }

    /// Was that all?
    pub fn finish(&self) -> Result<(), BrokenJson> {
        match self.state {
            State::After if self.open.is_empty() => Ok(()),
            State::Number(digits) if self.open.is_empty() && digits.may_end() => Ok(()),
            _ => Err(self.broken(0)),
        }
    }

    fn broken(&self, at: usize) -> BrokenJson {
        BrokenJson::Syntax { at: self.before + at }
    }

    /// A bracket, a separator, blanks, or the beginning of a name or value.
    fn mark(&mut self, bytes: &[u8], at: usize, sink: &mut impl Steps) -> Result<usize, BrokenJson> {
        let blanks = bytes[at..].iter().take_while(|byte| b" \n\r\t".contains(byte)).count();
        if blanks > 0 {
            sink.step(JsonStep::Blank, &bytes[at..at + blanks])?;
            return Ok(at + blanks);
        }
        let value = matches!(self.state, State::Value | State::ValueOrEnd);
        match bytes[at] {
            b'"' if value => self.text(bytes, at, at + 1, (false, Escape::None), sink),
            b'"' if matches!(self.state, State::Name | State::NameOrEnd) => {
                self.text(bytes, at, at + 1, (true, Escape::None), sink)
            }
            mark @ (b'{' | b'[') if value => {
                if self.open.len() == DEPTH as usize {
                    return Err(BrokenJson::Depth);
                }
                let list = mark == b'[';
                self.open.push(list);
                self.state = if list { State::ValueOrEnd } else { State::NameOrEnd };
                self.one_byte(JsonStep::Open { list }, bytes, at, sink)
            }
            mark @ (b'}' | b']') => {
                let list = mark == b']';
                let empty = if list { State::ValueOrEnd } else { State::NameOrEnd };
                if self.open.last() != Some(&list) || (self.state != State::After && self.state != empty) {
                    return Err(self.broken(at));
                }
                self.open.pop();
                self.state = State::After;
                self.one_byte(JsonStep::Close, bytes, at, sink)
            }
            b',' if self.state == State::After && !self.open.is_empty() => {
                self.state = if self.open.last() == Some(&true) { State::Value } else { State::Name };
                self.one_byte(JsonStep::Comma, bytes, at, sink)
            }
            b':' if self.state == State::Colon => {
                self.state = State::Value;
                self.one_byte(JsonStep::Colon, bytes, at, sink)
            }
            b't' if value => self.word(bytes, at, b"true", 0, sink),
            b'f' if value => self.word(bytes, at, b"false", 0, sink),
            b'n' if value => self.word(bytes, at, b"null", 0, sink),
            b'-' if value => self.number_from(bytes, at, Digits::Minus, sink),
            b'0' if value => self.number_from(bytes, at, Digits::Zero, sink),
            b'1'..=b'9' if value => self.number_from(bytes, at, Digits::Whole, sink),
            _ => Err(self.broken(at)),
        }
    }

    fn one_byte(&self, step: JsonStep, bytes: &[u8], at: usize, sink: &mut impl Steps) -> Result<usize, BrokenJson> {
        sink.step(step, &bytes[at..=at])?;
        Ok(at + 1)
    }

    /// A string whose piece begins at `from`, read up to `at`.
    fn text(
        &mut self,
        bytes: &[u8],
        from: usize,
        mut at: usize,
        (name, mut escape): (bool, Escape),
        sink: &mut impl Steps,
    ) -> Result<usize, BrokenJson> {
        let piece = |last| if name { JsonStep::Name { last } } else { JsonStep::Plain { last } };
        loop {
            if escape == Escape::None {
                at += plain_run(&bytes[at..]);
            }
            let Some(&byte) = bytes.get(at) else { break };
            escape = match (escape, byte) {
                (Escape::None, b'"') => {
                    self.state = if name { State::Colon } else { State::After };
                    sink.step(piece(true), &bytes[from..=at])?;
                    return Ok(at + 1);
                }
                (Escape::None, b'\\') => Escape::Slash,
                (Escape::Slash, b'u') => Escape::Hex(4),
                (Escape::Slash, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::None,
                (Escape::Hex(1), byte) if byte.is_ascii_hexdigit() => Escape::None,
                (Escape::Hex(left), byte) if byte.is_ascii_hexdigit() => Escape::Hex(left - 1),
                _ => return Err(self.broken(at)),
            };
            at += 1;
        }
        self.state = State::Text { name, escape };
        sink.step(piece(false), &bytes[from..])?;
        Ok(bytes.len())
    }

    fn word(
        &mut self,
        bytes: &[u8],
        at: usize,
        word: &'static [u8],
        done: usize,
        sink: &mut impl Steps,
    ) -> Result<usize, BrokenJson> {
        let rest = &word[done..];
        let here = rest.len().min(bytes.len() - at);
        if bytes[at..at + here] != rest[..here] {
            return Err(self.broken(at));
        }
        let last = here == rest.len();
        self.state = if last { State::After } else { State::Word { word, done: done + here } };
        sink.step(JsonStep::Plain { last }, &bytes[at..at + here])?;
        Ok(at + here)
    }

    fn number_from(
        &mut self,
        bytes: &[u8],
        at: usize,
        first: Digits,
        sink: &mut impl Steps,
    ) -> Result<usize, BrokenJson> {
        sink.step(JsonStep::Plain { last: false }, &bytes[at..=at])?;
        self.state = State::Number(first);
        Ok(at + 1)
    }

    fn number(
        &mut self,
        bytes: &[u8],
        from: usize,
        mut digits: Digits,
        sink: &mut impl Steps,
    ) -> Result<usize, BrokenJson> {
        let mut at = from;
        while let Some(more) = bytes.get(at).and_then(|byte| digits.then(*byte)) {
            digits = more;
            at += 1;
        }
        let last = at < bytes.len();
        if last && !digits.may_end() {
            return Err(self.broken(at));
        }
        self.state = if last { State::After } else { State::Number(digits) };
        sink.step(JsonStep::Plain { last }, &bytes[from..at])?;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scan;
    use super::*;
    use proptest::prelude::*;

    /// Puts the text together again, and counts names and values.
    #[derive(Default)]
    struct Copy {
        text: Vec<u8>,
        names: usize,
        plain: usize,
    }

    impl Steps for Copy {
        fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
            self.text.extend_from_slice(text);
            self.names += usize::from(step == JsonStep::Name { last: true });
            self.plain += usize::from(step == JsonStep::Plain { last: true });
            Ok(())
        }
    }

    fn in_pieces(text: &[u8], size: usize) -> Result<Copy, BrokenJson> {
        let (mut push, mut copy) = (Push::default(), Copy::default());
        for piece in text.chunks(size) {
            push.feed(piece, &mut copy)?;
        }
        push.finish()?;
        Ok(copy)
    }

    #[test]
    fn every_step_is_passed_with_its_bytes() {
        let text = r#" {"a" : [1, -0.5e+3,"x\n\u00e9" ],"b":{"":null,"c":[ ]} , "d":true} "#;
        for size in 1..text.len() {
            let copy = in_pieces(text.as_bytes(), size).expect("JSON");
            assert_eq!((&copy.text[..], copy.names, copy.plain), (text.as_bytes(), 5, 5), "pieces of {size}");
        }
    }

    #[test]
    fn what_the_scanner_refuses_is_refused_in_pieces_too() {
        let deep = "[".repeat(129);
        let cases = [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":}",
            "{\"a\"}",
            "{,}",
            "{\"a\":1,}",
            "01",
            "1.",
            "1e",
            "-",
            "tru",
            "nul1",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\u{1}\"",
            "[1}",
            "{]",
            "1 2",
            "}",
            "{\"a\":1 \"b\":2}",
            "[1 2]",
            &deep,
        ];
        for text in cases {
            for size in [1, 2, 3, 200] {
                assert!(in_pieces(text.as_bytes(), size).is_err(), "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_scanner(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\u00", "\\\"", "0", "-1", ".5", "e9", "true", "null", " "]),
                0..12,
            ),
            size in 1usize..5,
        ) {
            let text = pieces.concat();
            let mut scan = Scan::new(text.as_bytes());
            let whole = scan.skip().and_then(|()| scan.end());
            prop_assert_eq!(in_pieces(text.as_bytes(), size).is_ok(), whole.is_ok(), "{}", text);
        }
    }
}
