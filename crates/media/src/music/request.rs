//! A request for music as it was sent, checked for types and bounds only. Names of fields that one
//! maker made common are taken too.

use crate::tree;
use serde_json::{Map, Value};
use tollgate_wire::Problem;

/// One request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MusicRequest {
    pub model: String,
    /// What it is to sound like.
    pub prompt: Option<String>,
    pub lyrics: Option<String>,
    /// Without a voice.
    pub instrumental: bool,
    /// Lyrics are to be written from the prompt.
    pub writes_lyrics: bool,
    /// Seconds.
    pub duration: Option<u64>,
    pub response_format: Option<String>,
    /// A link is wanted instead of the song itself.
    pub link: bool,
    /// Fields outside this list.
    pub others: Map<String, Value>,
}

const NAME: usize = 256;
/// Longest body.
const BODY: usize = 1 << 20;
/// Longest text, in bytes.
const TEXT: usize = 64 << 10;

impl MusicRequest {
    pub fn from_json(body: &[u8]) -> Result<MusicRequest, Problem> {
        let mut fields = tree::members(body, BODY)?;
        fields.retain(|_, value| !value.is_null());
        let model = text(&mut fields, "model", NAME)?.ok_or_else(|| Problem::missing("model"))?;
        Ok(MusicRequest {
            model,
            prompt: text(&mut fields, "prompt", TEXT)?.filter(|text| !text.is_empty()),
            lyrics: text(&mut fields, "lyrics", TEXT)?.filter(|text| !text.is_empty()),
            instrumental: either(&mut fields, "instrumental", "is_instrumental")?,
            writes_lyrics: flag(&mut fields, "lyrics_optimizer")?.unwrap_or(false),
            duration: duration(&mut fields)?,
            response_format: format(&mut fields)?,
            link: link(&mut fields)?,
            others: fields,
        })
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

fn flag(fields: &mut Map<String, Value>, name: &str) -> Result<Option<bool>, Problem> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(_) => Err(Problem::wrong(name, "true or false")),
    }
}

fn either(fields: &mut Map<String, Value>, one: &str, other: &str) -> Result<bool, Problem> {
    let (one, other) = (flag(fields, one)?, flag(fields, other)?);
    Ok(one.or(other).unwrap_or(false))
}

fn duration(fields: &mut Map<String, Value>) -> Result<Option<u64>, Problem> {
    match fields.remove("duration") {
        None => Ok(None),
        Some(value) => match value.as_u64().filter(|seconds| (1..=86_400).contains(seconds)) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(Problem::wrong("duration", "a whole number of seconds")),
        },
    }
}

/// `response_format`, or `audio_setting.format` as one maker has it.
fn format(fields: &mut Map<String, Value>) -> Result<Option<String>, Problem> {
    let own = text(fields, "response_format", NAME)?;
    let Some(setting) = fields.remove("audio_setting") else { return Ok(own) };
    let Value::Object(mut setting) = setting else { return Err(Problem::wrong("audio_setting", "an object")) };
    let other = text(&mut setting, "format", NAME).map_err(|bad| bad.about("audio_setting.format"))?;
    if let Some(name) = setting.keys().next() {
        let field = format!("audio_setting.{name}");
        return Err(Problem::wrong(&field, "left out: only `format` can be chosen"));
    }
    Ok(own.or(other))
}

fn link(fields: &mut Map<String, Value>) -> Result<bool, Problem> {
    match text(fields, "output", NAME)?.as_deref() {
        None | Some("b64_json") => Ok(false),
        Some("url") => Ok(true),
        Some(_) => Err(Problem::wrong("output", "\"b64_json\" or \"url\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read() {
        let read = |body: &str| MusicRequest::from_json(body.as_bytes());
        let ours = read(r#"{"model":"m","prompt":"jazz","instrumental":true,"response_format":"wav","duration":30}"#);
        let theirs = read(
            r#"{"model":"m","prompt":"jazz","is_instrumental":true,"audio_setting":{"format":"wav"},"duration":30}"#,
        );
        assert_eq!(ours, theirs);
        assert!(ours.expect("a request").instrumental);
        for (body, param) in [
            (r#"{"prompt":"x"}"#, "model"),
            (r#"{"model":"m","duration":1.5}"#, "duration"),
            (r#"{"model":"m","duration":0}"#, "duration"),
            (r#"{"model":"m","output":"file"}"#, "output"),
            (r#"{"model":"m","instrumental":"yes"}"#, "instrumental"),
            (r#"{"model":"m","audio_setting":{"bitrate":1}}"#, "audio_setting.bitrate"),
        ] {
            assert_eq!(read(body).expect_err(body).param.as_deref(), Some(param), "{body}");
        }
    }
}
