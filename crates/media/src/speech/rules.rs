//! What one model takes: voices, formats, how long a text, how fast. A request is settled by it
//! before anything is held, and what is settled is what is sent and priced.

use super::format::SpeechFormat;
use super::request::{SpeechRequest, SpeechVoice};
use serde_json::{Map, Number, Value};
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// The rules of a model, as its catalog has them.
#[derive(Clone, Copy, Debug)]
pub struct SpeechRules<'a> {
    /// None: any name is taken.
    pub voices: &'a [String],
    pub default_voice: Option<&'a str>,
    pub formats: &'a [String],
    pub default_format: Option<&'a str>,
    pub most_characters: u64,
    /// The range of `speed` in hundredths; none where it cannot be chosen.
    pub speed: Option<(u32, u32)>,
    pub instructions: bool,
    /// Fields of its own that cost nothing and are passed on.
    pub extra: &'a [String],
}

/// A request with everything decided.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledSpeech {
    pub text: String,
    pub voice: SpeechVoice,
    pub format: SpeechFormat,
    pub speed: Option<Number>,
    pub instructions: Option<String>,
    pub events: bool,
    pub extra: Map<String, Value>,
    /// Fields that the provider does not get.
    pub dropped: Vec<String>,
}

/// Most values named in a message.
const NAMED: usize = 40;

impl SpeechRules<'_> {
    pub fn settle(&self, asked: &SpeechRequest) -> Result<SettledSpeech, Problem> {
        let mut dropped = Vec::new();
        let instructions = asked.instructions.clone().filter(|_| {
            if !self.instructions {
                dropped.push("instructions".to_owned());
            }
            self.instructions
        });
        let mut extra = Map::new();
        for (field, value) in &asked.others {
            if self.extra.contains(field) {
                extra.insert(field.clone(), value.clone());
            } else if SpeechRequest::is_about_the_caller(field) {
                dropped.push(field.clone());
            } else {
                // What it would cost is not known, so it is not passed on.
                let text = format!("`{field}` is not a parameter of this model.");
                return Err(Problem::new(Code::UnknownParameter, field, text));
            }
        }
        self.check_length(&asked.input)?;
        Ok(SettledSpeech {
            text: asked.input.clone(),
            voice: self.voice(asked)?,
            format: self.format(asked)?,
            speed: self.speed(asked)?,
            instructions,
            events: asked.events,
            extra,
            dropped,
        })
    }

    fn check_length(&self, text: &str) -> Result<(), Problem> {
        let (most, count) = (self.most_characters, text.chars().count() as u64);
        if count <= most {
            return Ok(());
        }
        let text = format!("`input` has {count} characters; this model takes at most {most}.");
        Err(Problem::new(Code::InvalidParameter, "input", text))
    }

    fn voice(&self, asked: &SpeechRequest) -> Result<SpeechVoice, Problem> {
        let default = || self.default_voice.map(|name| SpeechVoice::Named(name.to_owned()));
        let voice = asked.voice.clone().or_else(default).ok_or_else(|| Problem::missing("voice"))?;
        if self.voices.is_empty() || self.voices.iter().any(|one| one == voice.id()) {
            return Ok(voice);
        }
        let text = format!("`voice` is not one of this model's voices: {}.", list(self.voices));
        Err(Problem::new(Code::UnsupportedValue, "voice", text))
    }

    fn format(&self, asked: &SpeechRequest) -> Result<SpeechFormat, Problem> {
        let first = self.formats.first().map(String::as_str);
        let mp3 = self.formats.iter().any(|one| one == "mp3").then_some("mp3");
        let name = asked.response_format.as_deref().or(self.default_format).or(mp3).or(first).unwrap_or("mp3");
        let offered = self.formats.iter().any(|one| one == name);
        SpeechFormat::named(name).filter(|_| offered).ok_or_else(|| {
            let text = format!("`response_format` is not offered by this model; it offers {}.", list(self.formats));
            Problem::new(Code::UnsupportedValue, "response_format", text)
        })
    }

    fn speed(&self, asked: &SpeechRequest) -> Result<Option<Number>, Problem> {
        let Some(given) = &asked.speed else { return Ok(None) };
        let value = given.as_f64().unwrap_or(f64::NAN);
        match self.speed {
            Some((least, most)) => {
                let (least, most) = (f64::from(least) / 100.0, f64::from(most) / 100.0);
                if (least..=most).contains(&value) {
                    return Ok(Some(given.clone()));
                }
                let text = format!("`speed` must be between {least} and {most} for this model.");
                Err(Problem::new(Code::UnsupportedValue, "speed", text))
            }
            // The speed that it has anyway.
            None if (value - 1.0).abs() < f64::EPSILON => Ok(None),
            None => Err(Problem::new(Code::UnsupportedValue, "speed", "The `speed` of this model cannot be chosen.")),
        }
    }
}

fn list(words: &[String]) -> String {
    let more = if words.len() > NAMED { ", …" } else { "" };
    format!("{}{more}", words[..words.len().min(NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(rules: &SpeechRules<'_>, more: &str) -> Result<SettledSpeech, (Code, String, String)> {
        let body = format!(r#"{{"model":"m","input":"Grüße"{more}}}"#);
        let asked = SpeechRequest::from_json(body.as_bytes()).expect("a request");
        rules.settle(&asked).map_err(|bad| (bad.code, bad.param.unwrap_or_default(), bad.message))
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_the_model_has_is_settled_and_the_rest_is_named() {
        let (voices, formats, extra) = (words(&["alloy", "echo"]), words(&["wav", "mp3"]), words(&["volume"]));
        let rules = SpeechRules {
            voices: &voices,
            default_voice: Some("echo"),
            formats: &formats,
            default_format: None,
            most_characters: 5,
            speed: Some((25, 400)),
            instructions: false,
            extra: &extra,
        };
        let plain = settle(&rules, "").expect("settled");
        assert_eq!((plain.voice.id(), plain.format, plain.speed.as_ref()), ("echo", SpeechFormat::Mp3, None));
        let full = settle(
            &rules,
            r#","voice":"alloy","response_format":"wav","speed":0.25,"instructions":"x","volume":2,"user":"u""#,
        );
        let full = full.expect("settled");
        assert_eq!((full.voice.id(), full.format), ("alloy", SpeechFormat::Wav));
        assert_eq!((full.dropped, full.extra.len()), (words(&["instructions", "user"]), 1));
        for (more, code, param) in [
            (r#","voice":"nova""#, Code::UnsupportedValue, "voice"),
            (r#","voice":{"id":"nova"}"#, Code::UnsupportedValue, "voice"),
            (r#","response_format":"aac""#, Code::UnsupportedValue, "response_format"),
            (r#","response_format":"WAV""#, Code::UnsupportedValue, "response_format"),
            (r#","speed":0.24"#, Code::UnsupportedValue, "speed"),
            (r#","speed":4.01"#, Code::UnsupportedValue, "speed"),
            (r#","subtitle":true"#, Code::UnknownParameter, "subtitle"),
        ] {
            let (message, named, _) = settle(&rules, more).expect_err(more);
            assert_eq!((message, named.as_str()), (code, param), "{more}");
        }
        let (_, _, text) = settle(&rules, r#","response_format":"aac""#).expect_err("not offered");
        assert!(text.contains("wav, mp3"), "{text}");
        // Five characters in seven bytes are five.
        assert!(settle(&SpeechRules { most_characters: 4, ..rules }, "").is_err());
        let fixed = SpeechRules { speed: None, default_voice: None, ..rules };
        assert_eq!(settle(&fixed, r#","voice":"echo","speed":1"#).expect("settled").speed, None);
        assert!(settle(&fixed, r#","voice":"echo","speed":1.1"#).is_err());
        assert_eq!(settle(&fixed, "").expect_err("no voice").0, Code::MissingParameter);
    }
}
