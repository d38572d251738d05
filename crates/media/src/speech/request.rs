//! A request for speech as it was sent, checked for types and bounds only: what a model takes is
//! said by its rules.

use crate::tree;
use serde_json::{Map, Number, Value};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeechRequest {
    pub model: String,
    /// The text to be spoken; not empty.
    pub input: String,
    pub voice: Option<SpeechVoice>,
    pub response_format: Option<String>,
    pub speed: Option<Number>,
    pub instructions: Option<String>,
    /// The audio is wanted as events.
    pub events: bool,
    /// Fields outside this list.
    pub others: Map<String, Value>,
}

/// The value of `voice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpeechVoice {
    Named(String),
    /// A voice that somebody made, as `{"id": …}`.
    Made(String),
}

impl SpeechVoice {
    pub fn id(&self) -> &str {
        match self {
            SpeechVoice::Named(id) | SpeechVoice::Made(id) => id,
        }
    }

    /// As it was written.
    pub fn json(&self) -> Value {
        match self {
            SpeechVoice::Named(name) => Value::from(name.as_str()),
            SpeechVoice::Made(id) => serde_json::json!({ "id": id }),
        }
    }
}

/// Longest name of a model, a voice, a format.
const NAME: usize = 256;
/// Longest body: far above what any model speaks at once.
const BODY: usize = 1 << 20;
/// Longest text of instructions, in bytes.
const INSTRUCTIONS: usize = 16 << 10;
/// Fields that say who asks, and nothing about the speech.
const ABOUT_THE_CALLER: &[&str] = &["user", "safety_identifier", "metadata"];

/// Fields that are read here.
const COMMON: &[&str] = &["model", "input", "voice", "response_format", "speed", "instructions", "stream_format"];

impl SpeechRequest {
    pub fn from_json(body: &[u8]) -> Result<SpeechRequest, Problem> {
        let mut fields = tree::members(body, BODY)?;
        fields.retain(|_, value| !value.is_null());
        let model = text(&mut fields, "model", NAME)?.ok_or_else(|| Problem::missing("model"))?;
        let input = text(&mut fields, "input", usize::MAX)?.ok_or_else(|| Problem::missing("input"))?;
        if input.is_empty() {
            return Err(Problem::wrong("input", "a string that is not empty"));
        }
        Ok(SpeechRequest {
            model,
            input,
            voice: voice(&mut fields)?,
            response_format: text(&mut fields, "response_format", NAME)?,
            speed: speed(&mut fields)?,
            instructions: text(&mut fields, "instructions", INSTRUCTIONS)?.filter(|text| !text.is_empty()),
            events: events(&mut fields)?,
            others: fields,
        })
    }

    /// Whether every request can have this field, so that none of its own can have its name.
    pub fn is_common(field: &str) -> bool {
        COMMON.contains(&field)
    }

    /// Fields that are left out without harm.
    pub(super) fn is_about_the_caller(field: &str) -> bool {
        ABOUT_THE_CALLER.contains(&field)
    }
}

fn text(fields: &mut Map<String, Value>, name: &str, most: usize) -> Result<Option<String>, Problem> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) if text.len() <= most => Ok(Some(text)),
        Some(Value::String(_)) => Err(Problem::wrong(name, &format!("at most {most} bytes long"))),
        Some(_) => Err(Problem::wrong(name, "a string")),
    }
}

fn voice(fields: &mut Map<String, Value>) -> Result<Option<SpeechVoice>, Problem> {
    if let Some(Value::Object(made)) = fields.get_mut("voice") {
        let id = text(made, "id", NAME)?.filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Problem::wrong("voice", "a name, or an object with an `id`"))?;
        if let Some(other) = made.keys().next() {
            let field = format!("voice.{other}");
            let text = format!("`{field}` is not a field of a voice.");
            return Err(Problem::new(Code::UnknownParameter, &field, text));
        }
        fields.remove("voice");
        return Ok(Some(SpeechVoice::Made(id)));
    }
    let named =
        text(fields, "voice", NAME).map_err(|_| Problem::wrong("voice", "a name, or an object with an `id`"))?;
    Ok(named.filter(|name| !name.is_empty()).map(SpeechVoice::Named))
}

fn speed(fields: &mut Map<String, Value>) -> Result<Option<Number>, Problem> {
    match fields.remove("speed") {
        None => Ok(None),
        Some(Value::Number(speed)) => Ok(Some(speed)),
        Some(_) => Err(Problem::wrong("speed", "a number")),
    }
}

fn events(fields: &mut Map<String, Value>) -> Result<bool, Problem> {
    match text(fields, "stream_format", NAME)?.as_deref() {
        None | Some("audio") => Ok(false),
        Some("sse") => Ok(true),
        Some(_) => Err(Problem::wrong("stream_format", "\"audio\" or \"sse\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<SpeechRequest, (Code, String)> {
        SpeechRequest::from_json(body.as_bytes()).map_err(|bad| (bad.code, bad.param.unwrap_or_default()))
    }

    #[test]
    fn all_fields_are_read_and_the_others_are_left() {
        let read = read(
            r#"{"model":"m","input":"Hi","voice":{"id":"v1"},"response_format":"wav","speed":1.5,"instructions":"softly",
                "stream_format":"sse","user":"u","volume":2,"seed":null}"#,
        )
        .expect("a request");
        assert_eq!((read.model.as_str(), read.input.as_str(), read.events), ("m", "Hi", true));
        assert_eq!(read.voice, Some(SpeechVoice::Made("v1".to_owned())));
        assert_eq!(read.speed.and_then(|speed| speed.as_f64()), Some(1.5));
        assert_eq!(read.others.keys().collect::<Vec<_>>(), ["user", "volume"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, code, param) in [
            ("", Code::InvalidJson, ""),
            ("[]", Code::InvalidJson, ""),
            ("{}", Code::MissingParameter, "model"),
            (r#"{"model":7}"#, Code::InvalidParameter, "model"),
            (r#"{"model":"m"}"#, Code::MissingParameter, "input"),
            (r#"{"model":"m","input":""}"#, Code::InvalidParameter, "input"),
            (r#"{"model":"m","input":["a"]}"#, Code::InvalidParameter, "input"),
            (r#"{"model":"m","input":"a","voice":7}"#, Code::InvalidParameter, "voice"),
            (r#"{"model":"m","input":"a","voice":{}}"#, Code::InvalidParameter, "voice"),
            (r#"{"model":"m","input":"a","voice":{"id":"v","name":"n"}}"#, Code::UnknownParameter, "voice.name"),
            (r#"{"model":"m","input":"a","speed":"1"}"#, Code::InvalidParameter, "speed"),
            (r#"{"model":"m","input":"a","stream_format":"ws"}"#, Code::InvalidParameter, "stream_format"),
        ] {
            assert_eq!(read(body), Err((code, param.to_owned())), "{body}");
        }
    }
}
