//! A request for embeddings, checked, with its original bytes and what a call needs to know. Texts
//! are counted where they stand and copied for nobody.

use crate::TextTally;
use crate::body::{each_member, model, passed_on, whole};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Problem;
use tollgate_wire::json::{self, Scan, whole_number};

/// Texts in one request.
pub const MOST_INPUTS: usize = 2_048;
/// Tokens of one text, where it is given by their numbers.
const MOST_IDS: u64 = 1 << 20;
/// Numbers of a vector.
const MOST_DIMENSIONS: u64 = 65_536;

/// In which format the client asks, and how it wants its vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedCaller {
    /// `POST /v1/embeddings`; `base64`: packed numbers instead of a list.
    OpenAi { base64: bool },
    /// `:embedContent`, or `:batchEmbedContents`.
    Gemini { batch: bool },
}

/// A checked request.
#[derive(Clone, Debug)]
pub struct EmbedRequest {
    pub caller: EmbedCaller,
    pub model: String,
    pub tally: TextTally,
    /// Of the vectors that are asked for.
    pub dimensions: Option<u64>,
    /// Texts are given by the numbers of their tokens, which only the model's maker can read.
    pub has_ids: bool,
    pub(super) body: Bytes,
    /// Where the model's name stands, if the body has it.
    model_place: Option<Range<usize>>,
}

impl EmbedRequest {
    pub(super) fn new(caller: EmbedCaller, model: String, body: Bytes) -> EmbedRequest {
        let tally = TextTally::default();
        EmbedRequest { caller, model, tally, dimensions: None, has_ids: false, body, model_place: None }
    }

    /// Reads a body in OpenAI's format.
    pub fn openai(body: Bytes) -> Result<EmbedRequest, Problem> {
        let mut read = EmbedRequest::new(EmbedCaller::OpenAi { base64: false }, String::new(), body.clone());
        let mut given = false;
        each_member(&body, |key, scan| {
            match key {
                b"model" => {
                    let (name, place) = model(scan)?;
                    (read.model, read.model_place) = (name, Some(place));
                }
                b"input" => {
                    given = true;
                    read.input(scan)?;
                }
                b"dimensions" => read.dimensions = whole(scan, "dimensions", 1..=MOST_DIMENSIONS)?,
                b"encoding_format" => read.caller = EmbedCaller::OpenAi { base64: is_base64(scan)? },
                _ => passed_on(key, scan, "input")?,
            }
            Ok(())
        })?;
        match (read.model.is_empty(), given) {
            (true, _) => Err(Problem::missing("model")),
            (_, false) => Err(Problem::missing("input")),
            _ => Ok(read),
        }
    }

    /// A text, a list of texts, the tokens of a text, or a list of such.
    fn input(&mut self, scan: &mut Scan<'_>) -> Result<(), Problem> {
        match scan.peek() {
            Some(b'"') => self.text(scan, "input"),
            Some(b'[') => {
                let mut ids = 0;
                scan.array(|scan| self.item(scan, &mut ids))?;
                if ids > 0 {
                    self.tally.ids(ids);
                }
                if self.tally.texts == 0 { Err(Problem::wrong("input", "a list that is not empty")) } else { Ok(()) }
            }
            _ => Err(wrong_input("input")),
        }
    }

    /// `ids`: numbers so far, where the list itself is one text.
    fn item(&mut self, scan: &mut Scan<'_>, ids: &mut u64) -> Result<(), Problem> {
        let at = self.tally.texts;
        let place = || format!("input[{at}]");
        if at == MOST_INPUTS {
            return Err(Problem::wrong("input", &format!("a list of at most {MOST_INPUTS} texts")));
        }
        let first = scan.peek();
        let plain = first.is_some_and(|byte| byte.is_ascii_digit());
        // A list holds one kind of thing.
        if (*ids > 0 && !plain) || (plain && at > 0) || (first == Some(b'"') && self.has_ids) {
            return Err(wrong_input("input"));
        }
        match first {
            Some(b'"') => self.text(scan, &place()),
            Some(b'[') if at == 0 || self.has_ids => {
                let mut own = 0;
                scan.array(|scan| self.id(scan, &mut own, &place()))?;
                if own == 0 {
                    return Err(Problem::wrong(&place(), "a list of tokens that is not empty"));
                }
                self.tally.ids(own);
                Ok(())
            }
            Some(b'0'..=b'9') => self.id(scan, ids, "input"),
            _ => Err(wrong_input(&place())),
        }
    }

    fn id(&mut self, scan: &mut Scan<'_>, count: &mut u64, place: &str) -> Result<(), Problem> {
        let known = whole_number(scan.value()?).is_some_and(|id| id <= u64::from(u32::MAX));
        if !known || *count == MOST_IDS {
            return Err(Problem::wrong(place, &format!("a list of at most {MOST_IDS} token numbers")));
        }
        self.has_ids = true;
        *count += 1;
        Ok(())
    }

    fn text(&mut self, scan: &mut Scan<'_>, place: &str) -> Result<(), Problem> {
        let text = scan.string()?;
        if text.is_empty() {
            return Err(Problem::wrong(place, "a string that is not empty"));
        }
        self.tally.text(text.raw());
        Ok(())
    }

    /// The body as the client sent it, with this name of the model.
    pub fn own_body(&self, model: &str) -> Bytes {
        match &self.model_place {
            Some(place) if self.model != model => {
                Bytes::from(json::splice(&self.body, &[(place.clone(), &json::quoted(model))]))
            }
            _ => self.body.clone(),
        }
    }

    /// A scalar of the request by dotted path.
    pub fn attr(&self, path: &str) -> Option<Cow<'_, str>> {
        json::attr(&self.body, path)
    }

    /// The name of a text, as the caller knows it.
    pub fn place(&self, at: usize) -> String {
        match self.caller {
            EmbedCaller::OpenAi { .. } if self.tally.texts == 1 => "input".to_owned(),
            EmbedCaller::OpenAi { .. } => format!("input[{at}]"),
            EmbedCaller::Gemini { batch: true } => format!("requests[{at}].content"),
            EmbedCaller::Gemini { batch: false } => "content".to_owned(),
        }
    }

    /// The field with all texts.
    pub fn said_in(&self) -> &'static str {
        match self.caller {
            EmbedCaller::OpenAi { .. } => "input",
            EmbedCaller::Gemini { batch: true } => "requests",
            EmbedCaller::Gemini { batch: false } => "content",
        }
    }
}

fn is_base64(scan: &mut Scan<'_>) -> Result<bool, Problem> {
    match scan.value()? {
        b"\"base64\"" => Ok(true),
        b"\"float\"" | b"null" => Ok(false),
        _ => Err(Problem::wrong("encoding_format", "`float` or `base64`")),
    }
}

fn wrong_input(place: &str) -> Problem {
    Problem::wrong(place, "a string, a list of strings, a list of token numbers, or a list of such lists")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<EmbedRequest, Problem> {
        EmbedRequest::openai(Bytes::from(body.to_owned()))
    }

    #[test]
    fn every_form_of_input_is_counted() {
        let counted = tollgate_wire::count::tokens;
        for (input, texts, tokens, ids) in [
            (r#""hello world""#, 1, counted("hello world"), false),
            (r#"["hello","world"]"#, 2, counted("hello") + counted("world"), false),
            ("[1,2,3]", 1, 3, true),
            ("[[1,2],[3]]", 2, 3, true),
        ] {
            let one = read(&format!(r#"{{"model":"m","input":{input},"encoding_format":"base64"}}"#)).unwrap();
            assert_eq!((one.tally.texts, one.tally.tokens, one.has_ids), (texts, tokens, ids), "{input}");
            assert_eq!(one.caller, EmbedCaller::OpenAi { base64: true });
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = format!("[{}\"x\"]", "\"x\",".repeat(MOST_INPUTS));
        for (body, param) in [
            (r#"{"model":"m"}"#, "input"),
            (r#"{"input":"x"}"#, "model"),
            (r#"{"model":"","input":"x"}"#, "model"),
            (r#"{"model":"m","input":""}"#, "input"),
            (r#"{"model":"m","input":[]}"#, "input"),
            (r#"{"model":"m","input":["a",""]}"#, "input[1]"),
            (r#"{"model":"m","input":["a",1]}"#, "input"),
            (r#"{"model":"m","input":[1,"a"]}"#, "input"),
            (r#"{"model":"m","input":[[1],"a"]}"#, "input"),
            (r#"{"model":"m","input":["a",[1]]}"#, "input[1]"),
            (r#"{"model":"m","input":[[]]}"#, "input[0]"),
            (r#"{"model":"m","input":[{"image":"x"}]}"#, "input[0]"),
            (r#"{"model":"m","input":[-1]}"#, "input[0]"),
            (r#"{"model":"m","input":[1.5]}"#, "input"),
            (r#"{"model":"m","input":7}"#, "input"),
            (r#"{"model":"m","input":"x","dimensions":0}"#, "dimensions"),
            (r#"{"model":"m","input":"x","encoding_format":"hex"}"#, "encoding_format"),
            (r#"{"model":"m","input":"x","input":"y"}"#, "input"),
            (r#"{"model":"m","input":"x","messages":[{"role":"user","content":"y"}]}"#, "messages"),
            (r#"{"model":"m","images":["data:image/png;base64,AA=="],"input":"x"}"#, "images"),
            (&format!(r#"{{"model":"m","input":{many}}}"#), "input"),
        ] {
            assert_eq!(read(body).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
        assert_eq!(read(r#"{"model":"#).unwrap_err().code, tollgate_wire::error::Code::InvalidJson);
    }

    #[test]
    fn only_the_name_of_the_model_changes() {
        let one = read(r#"{ "input": "x", "model" : "a", "user":"u", "images":null }"#).unwrap();
        assert_eq!(one.own_body("b"), r#"{ "input": "x", "model" : "b", "user":"u", "images":null }"#);
        assert_eq!(one.own_body("a"), one.body);
    }
}
