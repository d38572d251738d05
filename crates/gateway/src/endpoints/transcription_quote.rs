//! How a transcript is quoted: `{"model": …, "seconds": 12.5}` instead of the recording itself,
//! with `bytes` and `format` where the model's limits of them are to be looked at, and any field of
//! the form that the price may depend on.

use crate::call::Priced;
use crate::refusal::Refusal;
use crate::work::transcription::AskedTranscription;
use serde_json::{Map, Value};
use tollgate_media::audio::Length;
use tollgate_media::transcription::{Recording, TranscriptionRequest, UPLOAD_FORMATS};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// The longest recording there is.
const DAY_MS: u64 = 86_400_000;

/// A transcript as far as its price depends on it.
pub fn priced(body: &[u8], translate: bool) -> Result<Box<dyn Priced>, Refusal> {
    let mut fields: Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| Refusal::new(Code::InvalidJson, "The body is a JSON object."))?;
    let length = Length::of(millis(fields.remove("seconds"))?, 1_000);
    let bytes = match fields.remove("bytes") {
        None | Some(Value::Null) => None,
        Some(bytes) => Some(bytes.as_u64().ok_or_else(|| Problem::wrong("bytes", "a whole number, not negative"))?),
    };
    let container = match fields.remove("format") {
        None | Some(Value::Null) => None,
        Some(word) => {
            let known = UPLOAD_FORMATS.iter().find(|(name, _)| word.as_str() == Some(name));
            let words: Vec<&str> = UPLOAD_FORMATS.iter().map(|(name, _)| *name).collect();
            let wrong = || Problem::wrong("format", &format!("one of {}", words.join(", ")));
            Some(known.ok_or_else(wrong)?.1)
        }
    };
    let mut texts: Vec<(String, String)> = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Null => {}
            Value::Array(items) => texts.extend(items.iter().map(|item| (name.clone(), plain(item)))),
            other => texts.push((name, plain(&other))),
        }
    }
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let request = TranscriptionRequest::read(texts, translate)?;
    Ok(Box::new(AskedTranscription { request, recording: Recording { length, bytes, container, codec: None } }))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whole milliseconds, rounded up.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to lie within a day")]
fn millis(seconds: Option<Value>) -> Result<u64, Problem> {
    let seconds = seconds.ok_or_else(|| Problem::missing("seconds"))?;
    let wrong = || Problem::wrong("seconds", "the length of the recording, above 0 and at most a day");
    if let Some(whole) = seconds.as_u64() {
        return Some(whole.saturating_mul(1_000)).filter(|ms| (1..=DAY_MS).contains(ms)).ok_or_else(wrong);
    }
    let number = seconds.as_f64().filter(|number| *number > 0.0 && *number <= 86_400.0).ok_or_else(wrong)?;
    // A number such as 1.001 is not exact in binary: what is meant is its nearest microsecond.
    let micros = (number * 1_000_000.0).round() as u64;
    Ok(micros.div_ceil(1_000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_as_people_write_them() {
        for (given, ms) in
            [(json!(1), 1_000), (json!(1.0), 1_000), (json!(1.001), 1_001), (json!(0.0001), 1), (json!(86_400), DAY_MS)]
        {
            assert_eq!(millis(Some(given.clone())), Ok(ms), "{given}");
        }
        for wrong in [json!(0), json!(-1), json!("1"), json!(86_400.1), json!(null), json!(1e300)] {
            assert_eq!(
                millis(Some(wrong.clone())).map_err(|problem| problem.param),
                Err(Some("seconds".to_owned())),
                "{wrong}"
            );
        }
        assert_eq!(millis(None).map_err(|problem| problem.code), Err(Code::MissingParameter));
    }

    #[test]
    fn other_fields_are_read_as_in_the_form() {
        let read = |body: Value| priced(body.to_string().as_bytes(), false).map_err(|refusal| refusal.param);
        let body = json!({ "model": "m", "seconds": 2.5, "stream": true, "response_format": "verbose_json",
            "timestamp_granularities": ["word"], "bytes": 7, "format": "wav" });
        let asked = read(body).expect("a quote");
        assert_eq!((asked.model(), asked.attribute("stream").as_deref()), ("m", Some("true")));
        for (body, param) in [
            (json!({ "model": "m", "seconds": 1, "format": "avi" }), "format"),
            (json!({ "model": "m", "seconds": 1, "bytes": -1 }), "bytes"),
            (json!({ "model": "m", "seconds": 1, "url": "x" }), "url"),
            (json!({ "seconds": 1 }), "model"),
        ] {
            assert_eq!(read(body).err(), Some(Some(param.to_owned())));
        }
    }
}
