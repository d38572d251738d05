//! Reads what a model produced: the `message` of a reply or the `delta` of an event.

use crate::pattern::Said;
use std::ops::Range;
use tollgate_wire::count::{IMAGE, SPOKEN_LETTERS, TokenCounter};
use tollgate_wire::json::{BrokenJson, Scan, whole_number};
use tollgate_wire::usage::{UsageReport, UsageShape};

/// What was produced so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputTally {
    /// Any text, refusal, tool call, sound, picture or reasoning.
    pub output: bool,
    /// There is a choice at all, with or without anything in it.
    pub choice: bool,
    /// Choices that said anything, that called a tool, and that gave a `finish_reason`.
    spoke: Choices,
    called: Choices,
    pub ended: Choices,
    /// Whether to count at all: a reply with usage needs no count.
    pub counting: bool,
    /// The last string of text or thought in this chunk, as a place in it.
    pub said: Option<SaidAt>,
    text: TokenCounter,
    thought: TokenCounter,
    call: TokenCounter,
}

/// A set of choices: a bit for each index. Nobody can ask for more of them.
pub(crate) type Choices = u128;

/// A string of a chunk and where it stands, between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SaidAt {
    pub kind: Said,
    pub from: usize,
    pub to: usize,
}

impl OutputTally {
    pub fn counting() -> Self {
        OutputTally { counting: true, ..OutputTally::default() }
    }

    /// The same counts with no output seen yet.
    pub fn silent(self) -> Self {
        OutputTally { output: false, said: None, ..self }
    }

    /// Counts a string as it stands in JSON.
    pub fn say(&mut self, kind: Said, raw: &[u8]) {
        self.output |= !raw.is_empty();
        match kind {
            Said::Text => self.text.json(raw),
            Said::Thought => self.thought.json(raw),
        }
    }

    /// The same counts, wherever the strings stood.
    pub fn same(&self, other: &Self) -> bool {
        *self == OutputTally { said: self.said, ..*other }
    }

    /// Notes where a string stands that comes now.
    fn note(
        &mut self,
        kind: Said,
        scan: &mut Scan<'_>,
        read: impl FnOnce(&mut Self, &mut Scan<'_>) -> Result<(), BrokenJson>,
    ) -> Result<(), BrokenJson> {
        let string = scan.peek() == Some(b'"');
        let from = scan.at() + 1;
        read(self, scan)?;
        if string {
            self.said = Some(SaidAt { kind, from, to: scan.at() - 1 });
        }
        Ok(())
    }

    /// As many choices as were asked for have said why they stopped, and none was left in the
    /// middle.
    pub fn all_ended(&self, asked: u64) -> bool {
        u64::from(self.ended.count_ones()) >= asked && self.spoke & !self.ended == 0
    }

    /// The choices that were left in the middle, and the reason that would have ended each.
    pub fn left_open(&self) -> impl Iterator<Item = (u32, &'static str)> + use<> {
        let (open, called) = (self.spoke & !self.ended, self.called);
        let reason = move |index| if called >> index & 1 == 1 { "tool_calls" } else { "stop" };
        (0..Choices::BITS).filter(move |index| open >> index & 1 == 1).map(move |index| (index, reason(index)))
    }

    pub fn tokens(&self) -> u64 {
        self.text.tokens() + self.thought.tokens() + self.call.tokens()
    }

    /// Reads one element of `choices`. A `usage` inside it (some providers put it there) goes to
    /// `usage`.
    pub fn choice(&mut self, scan: &mut Scan<'_>, usage: &mut UsageSeen) -> Result<(), BrokenJson> {
        if scan.peek() != Some(b'{') {
            return scan.skip();
        }
        self.choice = true;
        let (mut index, mut called, mut ended) = (0, false, false);
        let others = std::mem::take(&mut self.output);
        scan.object(|key, scan| match key.raw() {
            b"index" => {
                index = whole_number(scan.value()?).unwrap_or(0);
                Ok(())
            }
            b"delta" | b"message" => self.part(scan, &mut called),
            b"text" => text(scan, &mut self.text, &mut self.output, self.counting),
            b"finish_reason" => {
                ended |= scan.value()? != b"null";
                Ok(())
            }
            b"usage" => usage.scan(scan),
            _ => scan.skip(),
        })?;
        let bit = |is: bool| Choices::from(is) << index.min(u64::from(Choices::BITS) - 1);
        self.spoke |= bit(self.output);
        self.called |= bit(called);
        self.ended |= bit(ended);
        self.output |= others;
        Ok(())
    }

    fn part(&mut self, scan: &mut Scan<'_>, called: &mut bool) -> Result<(), BrokenJson> {
        if scan.peek() != Some(b'{') {
            return scan.skip();
        }
        let counting = self.counting;
        scan.object(|key, scan| match key.raw() {
            b"content" | b"refusal" => {
                self.note(Said::Text, scan, |tally, scan| text(scan, &mut tally.text, &mut tally.output, counting))
            }
            b"reasoning_content" | b"reasoning" => self
                .note(Said::Thought, scan, |tally, scan| text(scan, &mut tally.thought, &mut tally.output, counting)),
            // Repeats what `reasoning` says, or carries it sealed: seen, not counted.
            b"reasoning_details" => text(scan, &mut TokenCounter::default(), &mut self.output, false),
            b"tool_calls" if scan.peek() == Some(b'[') => scan.array(|scan| {
                *called = true;
                text(scan, &mut self.call, &mut self.output, counting)
            }),
            b"function_call" if scan.peek() == Some(b'{') => {
                *called = true;
                text(scan, &mut self.call, &mut self.output, counting)
            }
            b"audio" if scan.peek() == Some(b'{') => self.audio(scan),
            b"images" if scan.peek() == Some(b'[') => scan.array(|scan| {
                self.output = true;
                self.text.add(IMAGE);
                scan.skip()
            }),
            _ => scan.skip(),
        })
    }

    fn audio(&mut self, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        scan.object(|key, scan| match key.raw() {
            b"data" if scan.peek() == Some(b'"') => {
                let letters = scan.string()?.raw().len() as u64;
                self.output |= letters > 0;
                self.text.add(letters.div_ceil(SPOKEN_LETTERS));
                Ok(())
            }
            b"transcript" => text(scan, &mut self.text, &mut self.output, self.counting),
            _ => scan.skip(),
        })
    }
}

/// Counts all text in a value: a string, content parts, a tool call. Marks and names of the format
/// (`type`, `id`) are no output.
fn text(scan: &mut Scan<'_>, counter: &mut TokenCounter, output: &mut bool, counting: bool) -> Result<(), BrokenJson> {
    match scan.peek() {
        Some(b'"') => {
            let text = scan.string()?;
            *output |= !text.is_empty();
            if counting {
                counter.string(text);
            }
            Ok(())
        }
        Some(b'{') => scan.object(|key, scan| match key.raw() {
            b"type" | b"id" | b"index" | b"format" | b"signature" => scan.skip(),
            _ => text(scan, counter, output, counting),
        }),
        Some(b'[') => scan.array(|scan| text(scan, counter, output, counting)),
        _ => scan.skip(),
    }
}

/// A `usage` member met on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageSeen {
    /// Its place, when it was an object.
    pub place: Option<Range<usize>>,
    /// Its numbers, when their shape was sound.
    pub read: Option<UsageReport>,
}

impl UsageSeen {
    pub fn scan(&mut self, scan: &mut Scan<'_>) -> Result<(), BrokenJson> {
        if scan.peek() != Some(b'{') {
            return scan.skip();
        }
        let start = scan.at();
        let read = UsageReport::scan(UsageShape::Chat, scan)?;
        self.place = Some(start..scan.at());
        if read.is_some() {
            self.read = read;
        }
        Ok(())
    }
}
