//! A request for a transcript, read from the fields of a form in any order.
//!
//! A field that is not known is refused by its name: some providers take options by which they
//! listen to another file, or charge more.

use super::format::TranscriptFormat;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;

/// What is asked, besides the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptionRequest {
    pub model: String,
    /// Into English.
    pub translate: bool,
    pub format: TranscriptFormat,
    pub stream: bool,
    /// All other fields, checked, as they were sent and in their order; lists with one entry each.
    pub others: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Text of at most so many bytes.
    Text(usize),
    /// A number from 0 to 1.
    Fraction,
    OneOf(&'static [&'static str]),
}

/// A field: its name, whether it is a list of at most so many, what each value is, and whether it
/// can be sent with a translation.
struct FieldRule(&'static str, Option<usize>, Takes, bool);

const FIELDS: &[FieldRule] = &[
    FieldRule("language", None, Takes::Text(64), false),
    FieldRule("prompt", None, Takes::Text(32 << 10), true),
    FieldRule("temperature", None, Takes::Fraction, true),
    FieldRule("timestamp_granularities", Some(2), Takes::OneOf(&["word", "segment"]), false),
    FieldRule("include", Some(4), Takes::OneOf(&["logprobs"]), false),
    FieldRule("chunking_strategy", None, Takes::Text(1 << 10), false),
    FieldRule("known_speaker_names", Some(4), Takes::Text(256), false),
    FieldRule("known_speaker_references", Some(4), Takes::Text(1 << 20), false),
    FieldRule("keywords", Some(100), Takes::Text(256), false),
    FieldRule("languages", Some(100), Takes::Text(64), false),
];

impl TranscriptionRequest {
    /// From the fields of a form: name and text of each.
    pub fn read<'f>(
        fields: impl Iterator<Item = (&'f str, &'f str)>,
        translate: bool,
    ) -> Result<TranscriptionRequest, Problem> {
        let (mut model, mut format, mut stream) = (None, None, None);
        let mut others: Vec<(String, String)> = Vec::new();
        for (name, text) in fields {
            match name {
                "file" => return Err(Problem::wrong("file", "a file: a part of the form with a file name")),
                "model" => once(&mut model, name, text)?,
                "response_format" => once(&mut format, name, text)?,
                "stream" if !translate => once(&mut stream, name, text)?,
                _ => {
                    let name = checked(name, text, translate)?;
                    let rule = |name: &str| name.ends_with("[]");
                    if !rule(&name) && others.iter().any(|(known, _)| *known == name) {
                        return Err(twice(&name));
                    }
                    others.push((name, text.to_owned()));
                }
            }
        }
        for FieldRule(name, most, ..) in FIELDS {
            let count = others.iter().filter(|(known, _)| known.strip_suffix("[]") == Some(name)).count();
            if most.is_some_and(|most| count > most) {
                let text = format!("`{name}` has more than {} values.", most.unwrap_or(0));
                return Err(Problem::new(Code::InvalidParameter, name, text));
            }
        }
        let request = TranscriptionRequest {
            model: model.filter(|model| !model.is_empty()).ok_or_else(|| Problem::missing("model"))?,
            translate,
            format: match format.as_deref() {
                None | Some("") => TranscriptFormat::Json,
                Some(name) => TranscriptFormat::named(name).ok_or_else(unknown_format)?,
            },
            stream: match stream.as_deref() {
                None | Some("" | "false" | "False" | "0") => false,
                Some("true" | "True" | "1") => true,
                Some(_) => return Err(Problem::wrong("stream", "true or false")),
            },
            others,
        };
        if request.get("timestamp_granularities[]").is_some() && request.format != TranscriptFormat::VerboseJson {
            let text = "`timestamp_granularities` goes with `response_format` verbose_json.";
            return Err(Problem::new(Code::InvalidParameter, "timestamp_granularities", text));
        }
        Ok(request)
    }

    /// The fields of one value, beside model, format and stream.
    pub fn scalars() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().filter(|FieldRule(_, most, ..)| most.is_none()).map(|FieldRule(name, ..)| *name)
    }

    /// The first value of a field beside model, format and stream.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.others.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Whether one of the values of a list is this.
    pub fn has(&self, list: &str, value: &str) -> bool {
        self.others.iter().any(|(name, text)| name == list && text == value)
    }
}

fn once(slot: &mut Option<String>, name: &str, text: &str) -> Result<(), Problem> {
    if text.len() > 256 {
        return Err(Problem::wrong(name, "at most 256 bytes long"));
    }
    if slot.replace(text.to_owned()).is_some() { Err(twice(name)) } else { Ok(()) }
}

fn twice(name: &str) -> Problem {
    Problem::new(Code::InvalidParameter, name, format!("`{name}` was sent twice."))
}

fn unknown_format() -> Problem {
    let names: Vec<&str> = TranscriptFormat::ALL.iter().map(|format| format.name()).collect();
    Problem::wrong("response_format", &format!("one of {}", names.join(", ")))
}

/// The name as it is sent on, after a look at the value. An entry of a list comes as `name`,
/// `name[]` or `name[0]`; `chunking_strategy` may be an object, `chunking_strategy[type]`.
fn checked(name: &str, text: &str, translate: bool) -> Result<String, Problem> {
    let (base, path) = name.split_at(name.find('[').unwrap_or(name.len()));
    let unknown = || {
        let text = format!("`{name}` is not a parameter of this endpoint.");
        Problem::new(Code::UnknownParameter, name, text)
    };
    let known = |rule: &&FieldRule| rule.0 == base && (!translate || rule.3);
    let FieldRule(_, list, takes, _) = FIELDS.iter().find(known).ok_or_else(unknown)?;
    let index = |path: &str| path.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::to_owned);
    let sent = match (list, index(path)) {
        (Some(_), None) if path.is_empty() => format!("{base}[]"),
        (Some(_), Some(at)) if at.bytes().all(|b| b.is_ascii_digit()) && at.len() < 5 => format!("{base}[]"),
        (None, None) if path.is_empty() => base.to_owned(),
        (None, Some(member)) if base == "chunking_strategy" && is_member(&member) => name.to_owned(),
        _ => return Err(unknown()),
    };
    match takes {
        Takes::Text(most) if text.len() > *most => Err(Problem::wrong(base, &format!("at most {most} bytes long"))),
        Takes::Fraction if !text.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number)) => {
            Err(Problem::wrong(base, "a number from 0 to 1"))
        }
        Takes::OneOf(words) if !words.contains(&text) => {
            Err(Problem::wrong(base, &format!("one of {}", words.join(", "))))
        }
        _ => Ok(sent),
    }
}

fn is_member(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)], translate: bool) -> Result<TranscriptionRequest, Problem> {
        TranscriptionRequest::read(fields.iter().copied(), translate)
    }

    #[test]
    fn fields_in_any_order_and_lists_in_every_spelling() {
        let request = read(
            &[
                ("stream", "true"),
                ("timestamp_granularities[]", "word"),
                ("timestamp_granularities", "segment"),
                ("chunking_strategy[type]", "server_vad"),
                ("response_format", "verbose_json"),
                ("include[0]", "logprobs"),
                ("temperature", "0.2"),
                ("model", "whisper-1"),
                ("language", "de"),
            ],
            false,
        )
        .expect("a request");
        assert_eq!((request.format, request.stream), (TranscriptFormat::VerboseJson, true));
        assert!(request.has("timestamp_granularities[]", "segment") && request.has("include[]", "logprobs"));
        assert_eq!((request.get("language"), request.get("prompt")), (Some("de"), None));
        let plain = read(&[("model", "m"), ("response_format", ""), ("stream", "false")], false).expect("a request");
        assert_eq!((plain.format, plain.stream, plain.others.len()), (TranscriptFormat::Json, false, 0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let model = ("model", "m");
        let long = "x".repeat(70);
        let many: Vec<(&str, &str)> =
            std::iter::once(model).chain((0..3).map(|_| ("timestamp_granularities", "word"))).collect();
        for (fields, translate, param, code) in [
            (vec![], false, "model", Code::MissingParameter),
            (vec![("model", "")], false, "model", Code::MissingParameter),
            (vec![model, model], false, "model", Code::InvalidParameter),
            (vec![model, ("language", "de"), ("language", "en")], false, "language", Code::InvalidParameter),
            (vec![model, ("language", long.as_str())], false, "language", Code::InvalidParameter),
            (vec![model, ("response_format", "html")], false, "response_format", Code::InvalidParameter),
            (vec![model, ("stream", "maybe")], false, "stream", Code::InvalidParameter),
            (vec![model, ("temperature", "1.5")], false, "temperature", Code::InvalidParameter),
            (vec![model, ("temperature", "NaN")], false, "temperature", Code::InvalidParameter),
            (vec![model, ("url", "https://a/b.mp3")], false, "url", Code::UnknownParameter),
            (vec![model, ("use_multi_channel", "true")], false, "use_multi_channel", Code::UnknownParameter),
            (vec![model, ("keyterms[]", "x")], false, "keyterms[]", Code::UnknownParameter),
            (vec![model, ("language[x]", "de")], false, "language[x]", Code::UnknownParameter),
            (vec![model, ("file", "text")], false, "file", Code::InvalidParameter),
            (
                vec![model, ("timestamp_granularities[]", "word")],
                false,
                "timestamp_granularities",
                Code::InvalidParameter,
            ),
            (many, false, "timestamp_granularities", Code::InvalidParameter),
            (vec![model, ("language", "de")], true, "language", Code::UnknownParameter),
            (vec![model, ("stream", "true")], true, "stream", Code::UnknownParameter),
        ] {
            let problem = read(&fields, translate).expect_err(param);
            assert_eq!((problem.param.as_deref(), problem.code), (Some(param), code), "{fields:?}");
        }
        assert!(read(&[model, ("prompt", "p"), ("temperature", "0")], true).is_ok());
    }
}
