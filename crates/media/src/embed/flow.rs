//! Vectors on their way from a provider's format to the client's, one at a time, however the reply
//! is cut into pieces and over however many replies they come.

use super::reply::MOST_RAW_USAGE;
use super::request::EmbedCaller;
use super::vector::{NotVectors, VectorShape, write_vector};
use crate::trail::{PathStep, Trail};
use bytes::Bytes;
use tollgate_wire::json::{BrokenJson, JsonStep, Object, Push, Steps, quoted, whole_number};

/// Longest text of one vector.
const MOST_VECTOR: usize = 2 << 20;
/// Longest number of a text.
const MOST_INDEX: usize = 32;

/// For whom the vectors are, and how many of them.
#[derive(Clone, Debug)]
pub struct VectorTarget {
    pub caller: EmbedCaller,
    /// The public name of the model.
    pub model: String,
    pub texts: usize,
    /// Our own count of the texts, for a client that insists on a report where there is none.
    pub counted: u64,
}

/// Vectors while they pass.
pub struct VectorFlow {
    push: Push,
    pass: Pass,
    /// Tokens of all replies so far, while each has reported them.
    tokens_so_far: Option<u64>,
    replies: usize,
    raw: Option<String>,
}

impl VectorFlow {
    pub fn new(shape: &'static VectorShape, to: VectorTarget) -> VectorFlow {
        let out = match to.caller {
            EmbedCaller::OpenAi { .. } => br#"{"object":"list","data":["#.to_vec(),
            EmbedCaller::Gemini { batch: true } => br#"{"embeddings":["#.to_vec(),
            EmbedCaller::Gemini { batch: false } => br#"{"embedding":"#.to_vec(),
        };
        let pass = Pass {
            shape,
            to,
            out,
            trail: Trail::default(),
            taking: None,
            vector: Vec::new(),
            index: Vec::new(),
            report: Vec::new(),
            first: 0,
            done: 0,
            wrong: false,
        };
        VectorFlow { push: Push::default(), pass, tokens_so_far: Some(0), replies: 0, raw: None }
    }

    /// The next piece of the provider's text; what of the client's comes of it.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Bytes, NotVectors> {
        self.push.feed(bytes, &mut self.pass)?;
        if self.pass.wrong { Err(NotVectors) } else { Ok(Bytes::from(std::mem::take(&mut self.pass.out))) }
    }

    /// A reply is at its end. It must have had this many vectors; another one may follow.
    pub fn end_reply(&mut self, vectors: usize) -> Result<(), NotVectors> {
        self.push.finish()?;
        if self.pass.done - self.pass.first != vectors {
            return Err(NotVectors);
        }
        let report = String::from_utf8(std::mem::take(&mut self.pass.report)).unwrap_or_default();
        let tokens_so_far = self.tokens_so_far.zip(self.pass.shape.tokens_in(&report));
        self.tokens_so_far = tokens_so_far.map(|(all, one)| all.saturating_add(one));
        // Of several reports none is the one.
        self.raw = (self.replies == 0 && !report.is_empty()).then_some(report);
        (self.push, self.pass.first) = (Push::default(), self.pass.done);
        self.replies += 1;
        Ok(())
    }

    /// All tokens, if every reply reported them.
    pub fn tokens(&self) -> Option<u64> {
        self.tokens_so_far.filter(|tokens| *tokens > 0)
    }

    /// The provider's report as it came, where there was one reply.
    pub fn raw_usage(&self) -> Option<&str> {
        self.raw.as_deref()
    }

    /// The end of the client's text.
    pub fn end(&mut self) -> Result<Bytes, NotVectors> {
        let Pass { to, out, done, .. } = &mut self.pass;
        if *done != to.texts {
            return Err(NotVectors);
        }
        match to.caller {
            EmbedCaller::OpenAi { .. } => {
                let tokens = self.tokens_so_far.filter(|tokens| *tokens > 0).unwrap_or(to.counted);
                out.extend_from_slice(br#"],"model":"#);
                out.extend_from_slice(&quoted(&to.model));
                out.extend_from_slice(br#","usage":"#);
                let mut usage = Object::begin(out);
                usage.number("prompt_tokens", tokens);
                usage.number("total_tokens", tokens);
                usage.end();
                out.push(b'}');
            }
            EmbedCaller::Gemini { batch: true } => out.extend_from_slice(b"]}"),
            EmbedCaller::Gemini { batch: false } => out.push(b'}'),
        }
        Ok(Bytes::from(std::mem::take(out)))
    }
}

/// What is being copied, and how many brackets inside it are open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    Vector(usize),
    Index,
    Report(usize),
}

/// What is done with each step of the text.
struct Pass {
    shape: &'static VectorShape,
    to: VectorTarget,
    out: Vec<u8>,
    trail: Trail,
    taking: Option<Taking>,
    vector: Vec<u8>,
    index: Vec<u8>,
    report: Vec<u8>,
    /// Vectors of earlier replies, and all so far.
    first: usize,
    done: usize,
    wrong: bool,
}

impl Steps for Pass {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match self.taking {
            Some(taking) => self.take(taking, step, text),
            None => self.look(step, text),
        }
        Ok(())
    }
}

impl Pass {
    /// Outside of what is copied.
    fn look(&mut self, step: JsonStep, text: &[u8]) {
        match step {
            JsonStep::Open { list } => match self.wanted() {
                Some(taking) if taking != Taking::Index => self.take(taking, step, text),
                _ => self.trail.open(list),
            },
            JsonStep::Close => {
                self.trail.close();
                if self.is_item() {
                    self.emit();
                }
            }
            JsonStep::Name { last } => self.trail.name(text, last),
            JsonStep::Plain { .. } => {
                if let Some(taking) = self.wanted() {
                    self.take(taking, step, text);
                }
            }
            JsonStep::Comma | JsonStep::Colon | JsonStep::Blank => {}
        }
    }

    /// What is to be copied of the value that begins here.
    fn wanted(&self) -> Option<Taking> {
        if self.trail.is_at(self.shape.vector) {
            Some(Taking::Vector(0))
        } else if self.trail.is_at(self.shape.index) {
            Some(Taking::Index)
        } else if self.trail.is_at(self.shape.report) {
            Some(Taking::Report(0))
        } else {
            None
        }
    }

    /// The object that was just closed is one of those that have a vector.
    fn is_item(&self) -> bool {
        let Some(each) = self.shape.vector.iter().rposition(|step| *step == PathStep::Each) else { return false };
        each + 1 < self.shape.vector.len() && self.trail.is_at(&self.shape.vector[..=each])
    }

    fn take(&mut self, taking: Taking, step: JsonStep, text: &[u8]) {
        let (copy, most) = match taking {
            Taking::Vector(_) => (&mut self.vector, MOST_VECTOR),
            Taking::Index => (&mut self.index, MOST_INDEX),
            Taking::Report(_) => (&mut self.report, MOST_RAW_USAGE),
        };
        if copy.len() + text.len() > most {
            // Half a report is none.
            self.wrong |= !matches!(taking, Taking::Report(_));
            copy.clear();
        } else {
            copy.extend_from_slice(text);
        }
        let depth = match taking {
            Taking::Vector(depth) | Taking::Report(depth) => depth,
            Taking::Index => 0,
        };
        let (depth, over) = match step {
            JsonStep::Open { .. } => (depth + 1, false),
            JsonStep::Close => (depth - 1, depth == 1),
            JsonStep::Plain { last } => (depth, depth == 0 && last),
            _ => (depth, false),
        };
        self.taking = match (over, taking) {
            (true, _) => None,
            (false, Taking::Vector(_)) => Some(Taking::Vector(depth)),
            (false, Taking::Report(_)) => Some(Taking::Report(depth)),
            (false, Taking::Index) => Some(Taking::Index),
        };
        if over && matches!(taking, Taking::Vector(_)) && self.shape.vector.last() == Some(&PathStep::Each) {
            self.emit();
        }
    }

    /// Writes the vector that was copied.
    fn emit(&mut self) {
        let position = self.done - self.first;
        let place = whole_number(&self.index).and_then(|index| usize::try_from(index).ok()).unwrap_or(position);
        self.index.clear();
        let raw = std::mem::take(&mut self.vector);
        self.done += 1;
        let Pass { to, out, first, .. } = self;
        let list = match to.caller {
            EmbedCaller::OpenAi { .. } | EmbedCaller::Gemini { batch: true } => true,
            EmbedCaller::Gemini { batch: false } => false,
        };
        if list && self.done > 1 {
            out.push(b',');
        }
        let written = match to.caller {
            EmbedCaller::OpenAi { base64 } => {
                let mut entry = Object::begin(out);
                entry.text("object", "embedding");
                entry.number("index", (*first + place) as u64);
                let written = write_vector(entry.key("embedding"), &raw, base64);
                entry.end();
                written
            }
            EmbedCaller::Gemini { .. } => {
                let mut entry = Object::begin(out);
                let written = write_vector(entry.key("values"), &raw, false);
                entry.end();
                written
            }
        };
        // Where a vector does not say which text it is of, its place does.
        let placed = place == position || matches!(to.caller, EmbedCaller::OpenAi { .. });
        self.wrong |= written.is_err() || !placed || self.done > self.to.texts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: EmbedCaller = EmbedCaller::OpenAi { base64: false };
    const BASE64: EmbedCaller = EmbedCaller::OpenAi { base64: true };
    const BATCH: EmbedCaller = EmbedCaller::Gemini { batch: true };

    fn converted(
        shape: &'static VectorShape,
        caller: EmbedCaller,
        texts: usize,
        body: &str,
        size: usize,
    ) -> Result<(String, Option<u64>), NotVectors> {
        let mut flow = VectorFlow::new(shape, VectorTarget { caller, model: "m".to_owned(), texts, counted: 9 });
        let mut out = Vec::new();
        for piece in body.as_bytes().chunks(size) {
            out.extend_from_slice(&flow.feed(piece)?);
        }
        flow.end_reply(texts)?;
        out.extend_from_slice(&flow.end()?);
        Ok((String::from_utf8(out).unwrap(), flow.tokens()))
    }

    #[test]
    fn a_vector_may_lie_deeper_than_its_item() {
        let body = r#"{"predictions":[{"embeddings":{"statistics":{"truncated":false,"token_count":3},"values":[1,2]}}],"x":1}"#;
        for size in [1, 7, 1_000] {
            let (text, tokens) = converted(&VectorShape::VERTEX, OPENAI, 1, body, size).unwrap();
            assert!(text.contains(r#""embedding":[1,2]"#), "{text}");
            assert_eq!(tokens, Some(3));
        }
        let two = body.replace("}}],", r#"}},{"embeddings":{"values":[3]}}],"#);
        assert!(converted(&VectorShape::VERTEX, OPENAI, 1, &two, 9).is_err(), "more vectors than texts");
    }

    #[test]
    fn every_shape_comes_to_every_client_however_it_is_cut() {
        let openai = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,2]},{"embedding":"AACAPwAAAEA=","index":1}],"model":"u","usage":{"prompt_tokens":5,"total_tokens":5}}"#;
        let gemini = r#"{ "embeddings": [ {"values": [1,2]}, {"values": [1,2], "shape": [2]} ] }"#;
        let cohere = r#"{"id":"x","embeddings":{"int8":[[3,4]],"float":[[1,2],[1,2]]},"texts":["a"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":5}}}"#;
        let entry = |at: usize, vector: &str| format!(r#"{{"object":"embedding","index":{at},"embedding":{vector}}}"#);
        let list = |one: &str, two: &str, tokens: u64| {
            let (one, two) = (entry(0, one), entry(1, two));
            format!(
                r#"{{"object":"list","data":[{one},{two}],"model":"m","usage":{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}}}"#
            )
        };
        let base64 = "\"AACAPwAAAEA=\"";
        for size in [1, 2, 7, 1_000] {
            for (shape, body, tokens) in [
                (&VectorShape::OPENAI, openai, Some(5)),
                (&VectorShape::GEMINI, gemini, None),
                (&VectorShape::COHERE, cohere, Some(5)),
            ] {
                let shown = tokens.unwrap_or(9);
                let to = |caller| converted(shape, caller, 2, body, size).unwrap();
                assert_eq!(to(OPENAI), (list("[1,2]", "[1,2]", shown), tokens), "{body}");
                assert_eq!(to(BASE64), (list(base64, base64, shown), tokens), "{body}");
                let values = r#"{"values":[1,2]}"#;
                assert_eq!(to(BATCH).0, format!(r#"{{"embeddings":[{values},{values}]}}"#), "{body}");
            }
        }
        let one = r#"{"data":[{"embedding":[1]}]}"#;
        let single = converted(&VectorShape::OPENAI, EmbedCaller::Gemini { batch: false }, 1, one, 3).unwrap();
        assert_eq!(single.0, r#"{"embedding":{"values":[1]}}"#);
    }

    #[test]
    fn several_replies_are_one_list() {
        let target = VectorTarget { caller: OPENAI, model: "m".to_owned(), texts: 3, counted: 9 };
        let mut flow = VectorFlow::new(&VectorShape::OPENAI, target);
        let mut out = Vec::new();
        for (body, vectors) in [
            (r#"{"data":[{"index":1,"embedding":[1]},{"index":0,"embedding":[2]}],"usage":{"total_tokens":4}}"#, 2),
            (r#"{"data":[{"index":0,"embedding":[3]}],"usage":{"total_tokens":3}}"#, 1),
        ] {
            out.extend_from_slice(&flow.feed(body.as_bytes()).unwrap());
            flow.end_reply(vectors).unwrap();
        }
        out.extend_from_slice(&flow.end().unwrap());
        let text = String::from_utf8(out).unwrap();
        let places: Vec<&str> = text.split("\"index\":").skip(1).map(|rest| &rest[..1]).collect();
        assert_eq!((places, flow.tokens()), (vec!["1", "0", "2"], Some(7)));
    }

    #[test]
    fn what_is_not_what_was_asked_for_is_a_fault() {
        for (texts, body) in [
            (2, r#"{"data":[{"embedding":[1]}]}"#),
            (1, r#"{"data":[{"embedding":[1]},{"embedding":[1]}]}"#),
            (1, r#"{"data":[{}]}"#),
            (1, r#"{"data":[{"embedding":[]}]}"#),
            (1, r#"{"data":[{"embedding":{"a":1}}]}"#),
            (1, r#"{"data":[{"embedding":[1]}"#),
            (1, r#"{"error":{"message":"m"}}"#),
            (1, "<html>"),
        ] {
            for size in [1, 1_000] {
                assert_eq!(converted(&VectorShape::OPENAI, OPENAI, texts, body, size), Err(NotVectors), "{body}");
            }
        }
        let shuffled = r#"{"data":[{"index":1,"embedding":[1]},{"index":0,"embedding":[1]}]}"#;
        assert_eq!(converted(&VectorShape::OPENAI, BATCH, 2, shuffled, 9), Err(NotVectors), "no place to say so");
    }
}
