//! Checks of what a step gave: a closed list of words, each with what it is about and perhaps a
//! number, such as `nonempty:text` or `max_chars:text:20000`.

use crate::evaluate::RecordSchema;
use crate::webvtt::check_webvtt;
use serde_json::Value;

/// What a step gave under one name.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOutput {
    Json(Value),
    File(FileFacts),
}

/// What was found out about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    pub bytes: u64,
    /// How long it plays; nothing where it could not be read as audio or video.
    pub millis: Option<u64>,
    pub has_video: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputCheck {
    /// The output it is about.
    pub about: String,
    kind: CheckKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckKind {
    Nonempty,
    JsonSchema,
    MinChars(u64),
    MaxChars(u64),
    Playable,
    MinSeconds(u64),
    MaxSeconds(u64),
    HasVideo,
    WebVtt,
}

/// The words, as they are explained to whoever wrote another one.
const WORDS: &str = "nonempty:NAME, json_schema:NAME, min_chars:NAME:N, max_chars:NAME:N, playable:NAME, \
                     min_seconds:NAME:N, max_seconds:NAME:N, has_video:NAME, webvtt:NAME";

impl OutputCheck {
    pub fn read(text: &str) -> Result<OutputCheck, String> {
        let unknown = || format!("{text:?} is none of {WORDS}");
        let mut parts = text.split(':');
        let (word, about, number) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let about = about.filter(|about| !about.is_empty()).ok_or_else(unknown)?.to_owned();
        if parts.next().is_some() {
            return Err(unknown());
        }
        let whole = number.map(|number| number.parse::<u64>().map_err(|_| format!("{text:?} needs a whole number")));
        let kind = match (word, whole.transpose()?) {
            ("nonempty", None) => CheckKind::Nonempty,
            ("json_schema", None) => CheckKind::JsonSchema,
            ("min_chars", Some(least)) => CheckKind::MinChars(least),
            ("max_chars", Some(most)) => CheckKind::MaxChars(most),
            ("playable", None) => CheckKind::Playable,
            ("min_seconds", Some(least)) => CheckKind::MinSeconds(least),
            ("max_seconds", Some(most)) => CheckKind::MaxSeconds(most),
            ("has_video", None) => CheckKind::HasVideo,
            ("webvtt", None) => CheckKind::WebVtt,
            _ => return Err(unknown()),
        };
        Ok(OutputCheck { about, kind })
    }

    /// The number of a `max_chars`.
    pub(crate) fn most_chars(&self) -> Option<u64> {
        match self.kind {
            CheckKind::MaxChars(most) => Some(most),
            _ => None,
        }
    }

    /// Whether it needs a schema for what it is about.
    pub(crate) fn by_schema(&self) -> bool {
        self.kind == CheckKind::JsonSchema
    }

    /// Whether an output passes; why not, without repeating what was said in it.
    pub fn holds(&self, output: Option<&StepOutput>, schema: Option<&RecordSchema>) -> Result<(), String> {
        let about = &self.about;
        let Some(output) = output else { return Err(format!("{about} is not there")) };
        let not = |holds: bool, what: String| if holds { Ok(()) } else { Err(format!("{about} {what}")) };
        let chars = || match output {
            StepOutput::Json(Value::String(text)) => Ok(text.chars().count() as u64),
            _ => Err(format!("{about} is not a text")),
        };
        let millis = || match output {
            StepOutput::File(FileFacts { millis: Some(millis), .. }) => Ok(*millis),
            _ => Err(format!("{about} cannot be played")),
        };
        match self.kind {
            CheckKind::Nonempty => not(!is_empty(output), "is empty".to_owned()),
            CheckKind::MinChars(least) => not(chars()? >= least, format!("has fewer than {least} characters")),
            CheckKind::MaxChars(most) => not(chars()? <= most, format!("has more than {most} characters")),
            CheckKind::Playable => millis().map(drop),
            CheckKind::MinSeconds(least) => {
                not(millis()? >= least.saturating_mul(1_000), format!("is shorter than {least} seconds"))
            }
            CheckKind::MaxSeconds(most) => {
                not(millis()? <= most.saturating_mul(1_000), format!("is longer than {most} seconds"))
            }
            CheckKind::HasVideo => {
                let pictures = matches!(output, StepOutput::File(FileFacts { has_video: true, .. }));
                not(pictures, "has no pictures".to_owned())
            }
            CheckKind::WebVtt => match output {
                StepOutput::Json(Value::String(text)) => {
                    check_webvtt(text).map_err(|why| format!("{about} is not WebVTT: {why}"))
                }
                _ => Err(format!("{about} is not a text")),
            },
            CheckKind::JsonSchema => {
                let violation = schema.map(|schema| by_schema(output, schema));
                match violation {
                    Some(None) => Ok(()),
                    Some(Some(path)) => Err(format!("{about} is not as its schema says, at {path:?}")),
                    None => Err(format!("{about} has no schema")),
                }
            }
        }
    }
}

/// The path of the first violation. Models give JSON as text.
fn by_schema(output: &StepOutput, schema: &RecordSchema) -> Option<String> {
    let value = match output {
        StepOutput::Json(Value::String(text)) => serde_json::from_str(text).ok(),
        StepOutput::Json(value) => Some(value.clone()),
        StepOutput::File(_) => None,
    };
    match value {
        Some(value) => schema.violations(&value).into_iter().next().map(|violation| violation.path),
        None => Some(String::new()),
    }
}

fn is_empty(output: &StepOutput) -> bool {
    match output {
        StepOutput::Json(Value::Null) => true,
        StepOutput::Json(Value::String(text)) => text.trim().is_empty(),
        StepOutput::Json(Value::Array(items)) => items.is_empty(),
        StepOutput::Json(Value::Object(members)) => members.is_empty(),
        StepOutput::Json(_) => false,
        StepOutput::File(facts) => facts.bytes == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_check_passes_and_fails() {
        let clip = |millis, has_video| StepOutput::File(FileFacts { bytes: 9, millis, has_video });
        let text = |text: &str| StepOutput::Json(json!(text));
        for (check, good, bad) in [
            ("nonempty:x", text("a"), text(" \n")),
            ("nonempty:x", clip(None, false), StepOutput::File(FileFacts { bytes: 0, millis: None, has_video: false })),
            ("nonempty:x", StepOutput::Json(json!([1])), StepOutput::Json(json!([]))),
            ("min_chars:x:2", text("éé"), text("é")),
            ("max_chars:x:2", text("éé"), text("ééé")),
            ("max_chars:x:2", text(""), StepOutput::Json(json!(1))),
            ("playable:x", clip(Some(0), false), clip(None, true)),
            ("min_seconds:x:2", clip(Some(2_000), false), clip(Some(1_999), false)),
            ("max_seconds:x:2", clip(Some(2_000), false), clip(Some(2_001), false)),
            ("has_video:x", clip(Some(1), true), clip(Some(1), false)),
            ("webvtt:x", text("WEBVTT\n\n00:01.000 --> 00:02.000\na"), text("WEBVTT\n\nNo.")),
            ("webvtt:x", text("WEBVTT"), StepOutput::Json(json!({ "vtt": "WEBVTT" }))),
            ("json_schema:x", StepOutput::Json(json!({ "a": "b" })), StepOutput::Json(json!({ "a": 1 }))),
            ("json_schema:x", text("{\"a\":\"b\"}"), text("{\"a\":")),
        ] {
            let schema = RecordSchema::of(json!({ "properties": { "a": { "type": "string" } } })).unwrap();
            let check = OutputCheck::read(check).unwrap();
            assert_eq!(check.holds(Some(&good), Some(&schema)), Ok(()), "{check:?}");
            assert!(check.holds(Some(&bad), Some(&schema)).is_err(), "{check:?}");
            assert!(check.holds(None, Some(&schema)).is_err(), "{check:?}");
        }
        let unschemed = OutputCheck::read("json_schema:x").unwrap();
        assert!(unschemed.holds(Some(&text("{}")), None).is_err());
    }

    #[test]
    fn a_word_that_is_not_on_the_list_is_refused() {
        for text in
            ["", "nonempty", "nonempty:", "nonempty:x:1", "max_chars:x", "max_chars:x:-1", "max_chars:x:1:2", "eval:x"]
        {
            assert!(OutputCheck::read(text).is_err(), "{text}");
        }
    }
}
