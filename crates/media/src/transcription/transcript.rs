//! The parts of a transcript in the format that was asked for, for providers that do not write
//! OpenAI's formats themselves: its text, lines with their times, words with theirs.

use super::format::TranscriptFormat;
use serde_json::json;
use std::fmt::Write as _;
use tollgate_wire::json::quoted;

/// A word or a line, and when it is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedText {
    pub start_ms: u64,
    pub end_ms: u64,
    pub text: String,
}

/// What is known of a recording as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptFacts {
    pub language: Option<String>,
    /// Its length, as the provider has it.
    pub millis: Option<u64>,
}

/// What a transcript is to be.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptTarget {
    pub format: TranscriptFormat,
    pub translate: bool,
    pub with_words: bool,
}

/// A line of subtitles has at most so many words, lasts so long, and ends at a silence of this
/// length.
const LINE_WORDS: usize = 12;
const LINE_MS: u64 = 6_000;
const SILENCE_MS: u64 = 1_500;

/// One part of a written transcript. A provider's reply is read once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TranscriptPart {
    Text,
    Lines,
    Words,
}

impl TranscriptTarget {
    /// The parts of it, in order; `words`: there are some.
    pub(super) fn parts(self, words: bool) -> Vec<TranscriptPart> {
        match self.format {
            TranscriptFormat::Srt | TranscriptFormat::Vtt => vec![TranscriptPart::Lines],
            TranscriptFormat::VerboseJson if self.with_words && words => {
                vec![TranscriptPart::Text, TranscriptPart::Lines, TranscriptPart::Words]
            }
            TranscriptFormat::VerboseJson => vec![TranscriptPart::Text, TranscriptPart::Lines],
            _ => vec![TranscriptPart::Text],
        }
    }

    /// Whether it cannot be written without times.
    pub(super) fn is_timed(self) -> bool {
        matches!(self.format, TranscriptFormat::Srt | TranscriptFormat::Vtt | TranscriptFormat::VerboseJson)
    }

    /// What stands before a part. `end_ms` is when the last word ends.
    pub(super) fn before(self, part: TranscriptPart, facts: &TranscriptFacts, end_ms: u64) -> String {
        match (self.format, part) {
            (TranscriptFormat::VerboseJson, TranscriptPart::Text) => {
                let head = json!({
                    "task": if self.translate { "translate" } else { "transcribe" },
                    "language": facts.language.as_deref().unwrap_or("unknown"),
                    "duration": seconds(facts.millis.unwrap_or(end_ms)),
                });
                format!("{},\"text\":\"", head.to_string().trim_end_matches('}'))
            }
            (TranscriptFormat::VerboseJson, TranscriptPart::Lines) => ",\"segments\":[".to_owned(),
            (TranscriptFormat::VerboseJson, TranscriptPart::Words) => ",\"words\":[".to_owned(),
            (TranscriptFormat::Vtt, _) => "WEBVTT\n\n".to_owned(),
            (format, _) if format.is_json() => "{\"text\":\"".to_owned(),
            _ => String::new(),
        }
    }

    /// What stands behind a part; `last`: no other one follows.
    pub(super) fn after(self, part: TranscriptPart, last: bool, facts: &TranscriptFacts) -> String {
        let end = if last { "}" } else { "" };
        match (self.format, part) {
            (TranscriptFormat::VerboseJson, TranscriptPart::Text) => format!("\"{end}"),
            (TranscriptFormat::VerboseJson, _) => format!("]{end}"),
            (TranscriptFormat::Text, _) => "\n".to_owned(),
            (format, _) if format.is_json() => {
                let usage = |millis: u64| json!({ "type": "duration", "seconds": millis.div_ceil(1_000) });
                let usage = facts.millis.map(|millis| format!(",\"usage\":{}", usage(millis)));
                format!("\"{}{end}", usage.unwrap_or_default())
            }
            _ => String::new(),
        }
    }

    /// A piece of the text.
    pub(super) fn text(self, text: &str, out: &mut Vec<u8>) {
        match self.format.is_json() {
            true => {
                let quoted = quoted(text);
                out.extend_from_slice(&quoted[1..quoted.len() - 1]);
            }
            false => out.extend_from_slice(text.as_bytes()),
        }
    }

    /// The line of this number, from 0.
    pub(super) fn line(self, at: usize, line: &TimedText, out: &mut Vec<u8>) {
        let point = match self.format {
            TranscriptFormat::Srt => ',',
            TranscriptFormat::Vtt => '.',
            _ => {
                let comma = if at > 0 { "," } else { "" };
                let segment = json!({
                    "id": at, "seek": 0, "start": seconds(line.start_ms), "end": seconds(line.end_ms),
                    "text": line.text, "tokens": [], "temperature": 0.0, "avg_logprob": 0.0,
                    "compression_ratio": 0.0, "no_speech_prob": 0.0,
                });
                out.extend_from_slice(format!("{comma}{segment}").as_bytes());
                return;
            }
        };
        let mut text = String::new();
        if self.format == TranscriptFormat::Srt {
            let _ = writeln!(text, "{}", at + 1);
        }
        let (start, end) = (clock(line.start_ms, point), clock(line.end_ms, point));
        // A blank line ends a subtitle, so there is none inside.
        let words = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "{start} --> {end}\n{words}\n");
        out.extend_from_slice(text.as_bytes());
    }

    /// The word of this number, from 0.
    pub(super) fn word(self, at: usize, word: &TimedText, out: &mut Vec<u8>) {
        let comma = if at > 0 { "," } else { "" };
        let word = json!({ "word": word.text, "start": seconds(word.start_ms), "end": seconds(word.end_ms) });
        out.extend_from_slice(format!("{comma}{word}").as_bytes());
    }
}

/// Words on their way into lines that can be read while they are spoken.
#[derive(Debug, Default)]
pub(super) struct LineCutter {
    line: Option<(TimedText, usize)>,
}

impl LineCutter {
    /// The next word; the line that is over before it.
    pub fn word(&mut self, word: TimedText) -> Option<TimedText> {
        let goes_on = |(line, words): &(TimedText, usize)| {
            let ended = line.text.ends_with(['.', '!', '?', '。', '！', '？']);
            !ended
                && *words < LINE_WORDS
                && word.end_ms.saturating_sub(line.start_ms) <= LINE_MS
                && word.start_ms.saturating_sub(line.end_ms) < SILENCE_MS
        };
        if let Some((line, words)) = self.line.as_mut().filter(|line| goes_on(line)) {
            if !line.text.is_empty() && !word.text.starts_with(char::is_whitespace) {
                line.text.push(' ');
            }
            line.text.push_str(&word.text);
            line.end_ms = line.end_ms.max(word.end_ms);
            *words += 1;
            return None;
        }
        let text = word.text.trim_start().to_owned();
        self.line.replace((TimedText { text, ..word }, 1)).map(|(line, _)| line)
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.line.as_ref().map_or(0, |(line, _)| line.text.len())
    }

    /// The last line.
    pub fn end(&mut self) -> Option<TimedText> {
        self.line.take().map(|(line, _)| line)
    }
}

fn clock(ms: u64, point: char) -> String {
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    format!("{hours:02}:{minutes:02}:{:02}{point}{:03}", ms / 1_000 % 60, ms % 1_000)
}

/// As JSON has it.
fn seconds(ms: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a time that is shown, no money; below 2^53")]
    let ms = ms as f64;
    ms / 1_000.0
}
