//! What a call needs to know of a request in any dialect, read in one pass over its bytes.
//!
//! Only what money and routing depend on is checked here; the provider judges the rest. Keys given
//! twice are refused, because two readers could understand them differently.

use super::usage_wish::Wish;
use crate::chat::{Estimate, EstimatedPart};
use crate::hub::tier_asked;
use crate::reads::Modality;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;
use tollgate_wire::json::{Scan, Text, whole_number};

/// Most choices one call may ask for.
const MOST_CHOICES: u64 = 128;
/// Longest model name.
const MOST_NAME: usize = 256;

/// Members that make a provider read a conversation more than once.
const fn steps(dialect: Dialect) -> &'static [&'static [u8]] {
    match dialect {
        Dialect::Chat => &[b"tools", b"web_search_options"],
        _ => &[b"tools", b"mcp_servers", b"context_management"],
    }
}

pub(super) struct RequestFacts<'a> {
    dialect: Dialect,
    text: &'a str,
    keys: Vec<Cow<'a, [u8]>>,
    pub model: Option<(String, Range<usize>)>,
    pub stream: bool,
    /// Chat: the report of a stream's usage must be asked for.
    pub wish: Wish,
    /// The larger one where two are given: both pass, and which one the provider goes by is its
    /// affair.
    pub max_output: Option<u64>,
    pub choices: Option<u64>,
    pub service_tier: Option<String>,
    /// Kinds of output that are asked for besides text, and where.
    pub makes: Vec<(Modality, usize)>,
    /// Names what may run at the provider, which reads the conversation again after each step of
    /// it.
    pub has_tools: bool,
    pub estimate: Estimate,
    /// Where the request ends: at its closing brace.
    pub close: usize,
    said: bool,
    /// Names what it goes on from, which may be all that there is to say.
    continues: bool,
}

impl<'a> RequestFacts<'a> {
    /// `call`: the body of a call, which must have all that a call needs; else of a count of
    /// tokens.
    pub fn read(dialect: Dialect, body: &'a [u8], call: bool) -> Result<RequestFacts<'a>, Problem> {
        let text = std::str::from_utf8(body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let mut facts = RequestFacts {
            dialect,
            text,
            keys: Vec::with_capacity(16),
            model: None,
            stream: false,
            wish: Wish::Absent,
            max_output: None,
            choices: None,
            service_tier: None,
            makes: Vec::new(),
            has_tools: false,
            estimate: Estimate::new(),
            close: 0,
            said: false,
            continues: false,
        };
        let mut scan = Scan::new(body);
        if scan.peek() != Some(b'{') {
            return Err(Problem::not_json("The body must be a JSON object."));
        }
        scan.object(|key, scan| facts.member(key, scan)).map_err(|problem: Problem| first_mistake(body, problem))?;
        facts.close = scan.at() - 1;
        scan.end()?;
        facts.check(call)?;
        Ok(facts)
    }

    fn member(&mut self, key: Text<'a>, scan: &mut Scan<'a>) -> Result<(), Problem> {
        let key = key.bytes();
        match self.dialect {
            Dialect::Chat => self.chat(&key, scan)?,
            Dialect::Gemini => self.gemini(&key, scan)?,
            Dialect::Anthropic | Dialect::Responses => self.other(&key, scan)?,
        }
        self.keys.push(key);
        Ok(())
    }

    fn chat(&mut self, name: &[u8], scan: &mut Scan<'a>) -> Result<(), Problem> {
        match name {
            b"model" => self.model(scan),
            b"messages" => self.conversation("messages", scan),
            b"stream" => self.streams(scan),
            b"stream_options" => {
                self.wish = Wish::read(scan)?;
                Ok(())
            }
            b"max_completion_tokens" => self.limit(scan, "max_completion_tokens"),
            b"max_tokens" => self.limit(scan, "max_tokens"),
            b"n" => self.choices(scan, "n"),
            b"service_tier" => self.tier(scan),
            b"modalities" => self.makes(scan),
            b"tools" => Ok(self.estimate.tools(self.dialect, scan)?),
            b"functions" | b"response_format" => self.verbatim(scan),
            name => Ok(self.estimate.around(self.dialect, name, scan)?),
        }
    }

    fn gemini(&mut self, name: &[u8], scan: &mut Scan<'a>) -> Result<(), Problem> {
        match name {
            b"contents" => self.conversation("contents", scan),
            b"generationConfig" | b"generation_config" => self.config(scan),
            b"systemInstruction" | b"system_instruction" => Ok(self.estimate.value(scan)?),
            b"serviceTier" | b"service_tier" => self.tier(scan),
            b"tools" => Ok(self.estimate.tools(self.dialect, scan)?),
            name => Ok(self.estimate.around(self.dialect, name, scan)?),
        }
    }

    fn other(&mut self, name: &[u8], scan: &mut Scan<'a>) -> Result<(), Problem> {
        match (self.dialect, name) {
            (_, b"model") => self.model(scan),
            (_, b"stream") => self.streams(scan),
            (_, b"service_tier") => self.tier(scan),
            (_, b"tools") => Ok(self.estimate.tools(self.dialect, scan)?),
            (Dialect::Anthropic, b"messages") => self.conversation("messages", scan),
            (Dialect::Anthropic, b"max_tokens") => self.limit(scan, "max_tokens"),
            (Dialect::Anthropic, b"system") => Ok(self.estimate.value(scan)?),
            (Dialect::Responses, b"previous_response_id" | b"conversation") => {
                self.continues |= scan.peek() != Some(b'n');
                Ok(self.estimate.around(self.dialect, name, scan)?)
            }
            (Dialect::Responses, b"input") => self.conversation("input", scan),
            (Dialect::Responses, b"max_output_tokens") => self.limit(scan, "max_output_tokens"),
            (Dialect::Responses, b"instructions") => Ok(self.estimate.value(scan)?),
            (_, b"output_config" | b"text") => self.verbatim(scan),
            (_, name) => Ok(self.estimate.around(self.dialect, name, scan)?),
        }
    }

    fn model(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        match scan.peek() {
            Some(b'"') => {}
            Some(b'n') => return Ok(scan.skip()?),
            _ => return Err(Problem::wrong("model", "a string")),
        }
        let start = scan.at();
        let name = scan.string()?.of(self.text);
        if name.is_empty() || name.len() > MOST_NAME {
            return Err(Problem::wrong("model", "the name of a model"));
        }
        self.model = Some((name.into_owned(), start..scan.at()));
        Ok(())
    }

    fn streams(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        self.stream = flag(scan, "stream")?;
        Ok(())
    }

    fn limit(&mut self, scan: &mut Scan<'a>, param: &str) -> Result<(), Problem> {
        self.max_output = self.max_output.max(whole(scan, param)?);
        Ok(())
    }

    fn choices(&mut self, scan: &mut Scan<'a>, param: &str) -> Result<(), Problem> {
        self.choices = self.choices.max(whole(scan, param)?);
        match self.choices {
            None | Some(1..=MOST_CHOICES) => Ok(()),
            Some(_) => Err(Problem::wrong(param, "between 1 and 128")),
        }
    }

    fn verbatim(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        self.estimate.verbatim(scan.value()?);
        Ok(())
    }

    fn tier(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        if scan.peek() != Some(b'"') {
            return Ok(scan.skip()?);
        }
        let word = scan.string()?.text();
        let given = self.service_tier.replace(tier_asked(self.dialect, word).into_owned());
        if given.is_some() && self.dialect == Dialect::Gemini {
            // Prices go by it, and which of two spellings the provider goes by is its affair.
            let message = "`serviceTier` is given more than once.";
            return Err(Problem::new(Code::InvalidRequest, "serviceTier", message.to_owned()));
        }
        Ok(())
    }

    /// The turns: there must be one, and each adds its overhead to the estimate.
    fn conversation(&mut self, name: &str, scan: &mut Scan<'a>) -> Result<(), Problem> {
        match scan.peek() {
            Some(b'[') => {
                let mut count = 0;
                scan.array(|scan| {
                    count += 1;
                    self.estimate.message();
                    if scan.peek() != Some(b'{') {
                        return Err(Problem::wrong(&format!("{name}[{}]", count - 1), "an object"));
                    }
                    if self.dialect == Dialect::Chat {
                        return self.message(count - 1, scan);
                    }
                    Ok(self.estimate.value(scan)?)
                })?;
                match (count, self.dialect) {
                    (0, Dialect::Chat) => return Err(Problem::wrong(name, "an array with at least one message")),
                    (0, Dialect::Anthropic | Dialect::Gemini) => {
                        return Err(Problem::wrong(name, "an array with at least one element"));
                    }
                    _ => {}
                }
            }
            Some(b'"') if self.dialect == Dialect::Responses => {
                self.estimate.message();
                self.estimate.value(scan)?;
            }
            Some(b'{') if self.dialect == Dialect::Gemini => self.estimate.value(scan)?,
            Some(b'n') => return Ok(scan.skip()?),
            _ => return Err(Problem::wrong(name, "an array")),
        }
        self.said = true;
        Ok(())
    }

    /// Chat: a message must have a role, which counts as no text.
    fn message(&mut self, index: usize, scan: &mut Scan<'a>) -> Result<(), Problem> {
        let at = scan.at();
        let mut part = EstimatedPart::default();
        let mut role = false;
        scan.object(|key, scan| {
            if key.is("role") {
                role = scan.peek() == Some(b'"') && !scan.string()?.is_empty();
                if !role {
                    return Err(Problem::wrong(&format!("messages[{index}].role"), "a string"));
                }
                return Ok(());
            }
            Ok(self.estimate.member(key, scan, &mut part)?)
        })?;
        self.estimate.resolve(&part, at);
        if role { Ok(()) } else { Err(Problem::missing(&format!("messages[{index}].role"))) }
    }

    fn config(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        if scan.peek() != Some(b'{') {
            return match scan.value()? {
                b"null" => Ok(()),
                _ => Err(Problem::wrong("generationConfig", "an object")),
            };
        }
        scan.object(|key, scan| match key.bytes().as_ref() {
            b"maxOutputTokens" | b"max_output_tokens" => self.limit(scan, "generationConfig.maxOutputTokens"),
            b"candidateCount" | b"candidate_count" => self.choices(scan, "generationConfig.candidateCount"),
            b"responseSchema" | b"response_schema" | b"responseJsonSchema" | b"response_json_schema" => {
                self.verbatim(scan)
            }
            b"responseModalities" | b"response_modalities" => self.makes(scan),
            _ => Ok::<(), Problem>(scan.skip()?),
        })
    }

    /// Words for kinds of output: a list of them, or one. What is none is the provider's affair.
    fn makes(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        match scan.peek() {
            Some(b'[') => scan.array(|scan| self.made(scan)),
            _ => self.made(scan),
        }
    }

    fn made(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        if scan.peek() != Some(b'"') {
            return Ok(scan.skip()?);
        }
        let at = scan.at();
        let word = scan.string()?.text();
        let kind = Modality::ALL.into_iter().find(|kind| word.eq_ignore_ascii_case(kind.word()));
        if let Some(kind) = kind.filter(|kind| self.makes.iter().all(|(known, _)| known != kind)) {
            self.makes.push((kind, at));
        }
        Ok(())
    }

    /// Refuses what is missing and a key that was given twice.
    fn check(&mut self, call: bool) -> Result<(), Problem> {
        self.keys.sort_unstable();
        if let Some(pair) = self.keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = String::from_utf8_lossy(&pair[0]);
            let name = &name[..name.floor_char_boundary(64)];
            return Err(Problem::new(Code::InvalidRequest, name, format!("`{name}` is given more than once.")));
        }
        let steps = steps(self.dialect);
        self.has_tools = self.keys.iter().any(|key| steps.contains(&key.as_ref()));
        let name = match self.dialect {
            Dialect::Gemini => "contents",
            Dialect::Responses => "input",
            _ => "messages",
        };
        if !self.said && !self.continues {
            return Err(Problem::missing(name));
        }
        if self.dialect == Dialect::Anthropic && self.max_output.is_none() && call {
            return Err(Problem::missing("max_tokens"));
        }
        Ok(())
    }
}

/// A wrong member may only be the place where the text breaks off: then the text is the mistake.
fn first_mistake(body: &[u8], problem: Problem) -> Problem {
    let mut scan = Scan::new(body);
    match scan.skip().and_then(|()| scan.end()) {
        Ok(()) => problem,
        Err(broken) => broken.into(),
    }
}

/// A boolean; null is false.
pub(super) fn flag(scan: &mut Scan<'_>, param: &str) -> Result<bool, Problem> {
    match scan.value()? {
        b"true" => Ok(true),
        b"false" | b"null" => Ok(false),
        _ => Err(Problem::wrong(param, "true or false")),
    }
}

/// A whole number not below zero; null counts as absent.
fn whole(scan: &mut Scan<'_>, param: &str) -> Result<Option<u64>, Problem> {
    match scan.value()? {
        b"null" => Ok(None),
        text => match whole_number(text) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::wrong(param, "a whole number, not negative")),
        },
    }
}
