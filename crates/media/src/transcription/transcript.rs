//! A transcript in the middle, for providers that do not write OpenAI's formats themselves.

use super::format::TranscriptFormat;
use bytes::Bytes;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What was heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    pub text: String,
    pub language: Option<String>,
    /// The length of the recording, as the provider has it.
    pub millis: Option<u64>,
    pub words: Vec<TimedText>,
    /// Lines as the provider has cut them; without, they are made of the words.
    pub lines: Vec<TimedText>,
}

/// A word or a line, and when it is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedText {
    pub start_ms: u64,
    pub end_ms: u64,
    pub text: String,
}

/// A line of subtitles has at most so many words, lasts so long, and ends at a silence of this
/// length.
const LINE_WORDS: usize = 12;
const LINE_MS: u64 = 6_000;
const SILENCE_MS: u64 = 1_500;

impl Transcript {
    /// In the format that was asked for; `None` where that takes times and there are none.
    pub fn write(&self, format: TranscriptFormat, translate: bool, with_words: bool) -> Option<Bytes> {
        let timed = !self.words.is_empty() || !self.lines.is_empty() || self.text.trim().is_empty();
        match format {
            TranscriptFormat::Json => Some(self.plain().to_string().into()),
            TranscriptFormat::Text => Some(format!("{}\n", self.text).into()),
            TranscriptFormat::Srt if timed => Some(self.subtitles("", ',', true).into()),
            TranscriptFormat::Vtt if timed => Some(self.subtitles("WEBVTT\n\n", '.', false).into()),
            TranscriptFormat::VerboseJson if timed => Some(self.verbose(translate, with_words).to_string().into()),
            _ => None,
        }
    }

    fn plain(&self) -> Value {
        let mut object = json!({ "text": self.text });
        if let Some(millis) = self.millis {
            object["usage"] = json!({ "type": "duration", "seconds": millis.div_ceil(1_000) });
        }
        object
    }

    fn verbose(&self, translate: bool, with_words: bool) -> Value {
        let end = self.words.last().or(self.lines.last()).map_or(0, |last| last.end_ms);
        let segments = self.cut().into_iter().enumerate().map(|(id, line)| {
            json!({
                "id": id, "seek": 0, "start": seconds(line.start_ms), "end": seconds(line.end_ms), "text": line.text,
                "tokens": [], "temperature": 0.0, "avg_logprob": 0.0, "compression_ratio": 0.0, "no_speech_prob": 0.0,
            })
        });
        let mut object = json!({
            "task": if translate { "translate" } else { "transcribe" },
            "language": self.language.as_deref().unwrap_or("unknown"),
            "duration": seconds(self.millis.unwrap_or(end)),
            "text": self.text,
            "segments": segments.collect::<Vec<Value>>(),
        });
        if with_words {
            let word = |word: &TimedText| json!({ "word": word.text, "start": seconds(word.start_ms), "end": seconds(word.end_ms) });
            object["words"] = self.words.iter().map(word).collect();
        }
        object
    }

    /// The provider's lines, or words gathered into lines that can be read while they are spoken.
    fn cut(&self) -> Vec<TimedText> {
        if !self.lines.is_empty() {
            return self.lines.clone();
        }
        let mut lines: Vec<(TimedText, usize)> = Vec::new();
        for word in &self.words {
            let goes_on = |(line, words): &(TimedText, usize)| {
                let ended = line.text.ends_with(['.', '!', '?', '。', '！', '？']);
                !ended
                    && *words < LINE_WORDS
                    && word.end_ms.saturating_sub(line.start_ms) <= LINE_MS
                    && word.start_ms.saturating_sub(line.end_ms) < SILENCE_MS
            };
            match lines.last_mut().filter(|last| goes_on(last)) {
                Some((line, words)) => {
                    if !line.text.is_empty() && !word.text.starts_with(char::is_whitespace) {
                        line.text.push(' ');
                    }
                    line.text.push_str(&word.text);
                    line.end_ms = line.end_ms.max(word.end_ms);
                    *words += 1;
                }
                None => {
                    let text = word.text.trim_start().to_owned();
                    lines.push((TimedText { text, ..word.clone() }, 1));
                }
            }
        }
        lines.into_iter().map(|(line, _)| line).collect()
    }

    fn subtitles(&self, head: &str, point: char, numbered: bool) -> String {
        let mut out = head.to_owned();
        for (at, line) in self.cut().into_iter().enumerate() {
            if numbered {
                let _ = writeln!(out, "{}", at + 1);
            }
            let (start, end) = (clock(line.start_ms, point), clock(line.end_ms, point));
            // A blank line ends a subtitle, so there is none inside.
            let text = line.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(out, "{start} --> {end}\n{text}\n");
        }
        out
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

#[cfg(test)]
mod tests {
    use super::*;

    fn heard() -> Transcript {
        let word = |start_ms, end_ms, text: &str| TimedText { start_ms, end_ms, text: text.to_owned() };
        Transcript {
            text: "Hello there. Good day".to_owned(),
            language: Some("en".to_owned()),
            millis: Some(5_400),
            words: vec![
                word(100, 400, "Hello"),
                word(500, 900, "there."),
                word(1_000, 1_200, "Good"),
                word(3_601_000, 3_602_345, "day"),
            ],
            lines: Vec::new(),
        }
    }

    fn text(format: TranscriptFormat) -> String {
        String::from_utf8(heard().write(format, false, true).expect("written").to_vec()).expect("text")
    }

    #[test]
    fn every_format() {
        assert_eq!(text(TranscriptFormat::Text), "Hello there. Good day\n");
        let json: Value = serde_json::from_str(&text(TranscriptFormat::Json)).expect("JSON");
        assert_eq!(json, json!({ "text": "Hello there. Good day", "usage": { "type": "duration", "seconds": 6 } }));
        assert_eq!(
            text(TranscriptFormat::Srt),
            "1\n00:00:00,100 --> 00:00:00,900\nHello there.\n\n2\n00:00:01,000 --> 00:00:01,200\nGood\n\n\
             3\n01:00:01,000 --> 01:00:02,345\nday\n\n"
        );
        assert!(text(TranscriptFormat::Vtt).starts_with("WEBVTT\n\n00:00:00.100 --> 00:00:00.900\nHello there.\n\n"));
        let verbose: Value = serde_json::from_str(&text(TranscriptFormat::VerboseJson)).expect("JSON");
        assert_eq!((&verbose["duration"], &verbose["segments"][2]["end"]), (&json!(5.4), &json!(3_602.345)));
        assert_eq!(verbose["words"][1], json!({ "word": "there.", "start": 0.5, "end": 0.9 }));
    }

    #[test]
    fn lines_of_the_provider_stay_as_they_are() {
        let line = |start_ms, end_ms, text: &str| TimedText { start_ms, end_ms, text: text.to_owned() };
        let lines = vec![line(0, 900, "你好，"), line(900, 20_000, "a long line that nobody cuts")];
        let cut = Transcript { lines, ..heard() };
        let srt = cut.write(TranscriptFormat::Srt, false, false).expect("written");
        let expected = "1\n00:00:00,000 --> 00:00:00,900\n你好，\n\n2\n00:00:00,900 --> 00:00:20,000\na long line that nobody cuts\n\n";
        assert_eq!(srt, expected);
        let without_words = Transcript { words: Vec::new(), millis: None, ..cut };
        let verbose = without_words.write(TranscriptFormat::VerboseJson, false, false).expect("written");
        let verbose: Value = serde_json::from_slice(&verbose).expect("JSON");
        assert_eq!((&verbose["duration"], &verbose["segments"][1]["start"]), (&json!(20.0), &json!(0.9)));
    }

    #[test]
    fn without_times_there_are_no_subtitles_unless_nothing_was_said() {
        let plain = Transcript { text: "Hello".to_owned(), ..Transcript::default() };
        for format in [TranscriptFormat::Srt, TranscriptFormat::Vtt, TranscriptFormat::VerboseJson] {
            assert_eq!(plain.write(format, false, false), None);
            assert!(Transcript::default().write(format, false, false).is_some(), "{format}");
        }
        assert!(plain.write(TranscriptFormat::Json, false, false).is_some());
        assert_eq!(plain.write(TranscriptFormat::DiarizedJson, false, false), None);
    }
}
