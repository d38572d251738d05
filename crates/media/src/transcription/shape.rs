//! Where replies of each maker have the text of a transcript, and the words with their times.

use super::transcript::TimedText;
use crate::trail::PathStep::{self, Each, Name};
use serde_json::Value;

/// Where a reply has what.
#[derive(Debug)]
pub struct TranscriptShape {
    /// All that was said; of several texts, each is a line.
    pub(super) text: &'static [PathStep],
    /// Objects with times, where there are any.
    pub(super) items: &'static [PathStep],
    pub(super) item: fn(&Value) -> HeardItem,
}

/// What one object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeardItem {
    /// A line as the provider has cut it.
    pub line: Option<TimedText>,
    pub words: Vec<TimedText>,
    pub language: Option<String>,
}

impl TranscriptShape {
    pub const OPENAI: TranscriptShape = TranscriptShape { text: &[Name("text")], items: &[], item: nothing };
    /// A reply of a conversation.
    pub const CHAT: TranscriptShape =
        TranscriptShape { text: &[Name("choices"), Each, Name("message"), Name("content")], items: &[], item: nothing };
    pub const SCRIBE: TranscriptShape =
        TranscriptShape { text: &[Name("text")], items: &[Name("words"), Each], item: scribe };
    pub const DASHSCOPE: TranscriptShape = TranscriptShape {
        text: &[Name("transcripts"), Each, Name("text")],
        items: &[Name("transcripts"), Each, Name("sentences"), Each],
        item: dashscope,
    };
}

fn nothing(_: &Value) -> HeardItem {
    HeardItem::default()
}

fn scribe(word: &Value) -> HeardItem {
    let read = || {
        let (start_ms, end_ms) = (millis(&word["start"])?, millis(&word["end"])?);
        Some(TimedText { start_ms, end_ms, text: word["text"].as_str()?.to_owned() })
    };
    let spoken = if word["type"] == "spacing" { None } else { read() };
    HeardItem { words: spoken.into_iter().collect(), ..HeardItem::default() }
}

fn dashscope(sentence: &Value) -> HeardItem {
    HeardItem {
        line: dashscope_timed(sentence),
        words: sentence["words"].as_array().into_iter().flatten().filter_map(dashscope_timed).collect(),
        language: sentence["language"].as_str().map(str::to_owned),
    }
}

/// Of words and sentences alike.
fn dashscope_timed(one: &Value) -> Option<TimedText> {
    let text = one["text"].as_str()?;
    let mark = one["punctuation"].as_str().unwrap_or_default();
    let (start_ms, end_ms) = (one["begin_time"].as_u64()?, one["end_time"].as_u64()?);
    Some(TimedText { start_ms, end_ms, text: format!("{text}{mark}") })
}

/// A time in seconds that can be one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie within ten days")]
fn millis(seconds: &Value) -> Option<u64> {
    let seconds = seconds.as_f64().filter(|seconds| (0.0..864_000.0).contains(seconds))?;
    Some((seconds * 1_000.0).round() as u64)
}
