//! What a call needs to know of a request that passes through: read in one pass over the bytes, as for chat.

use crate::chat::Estimate;
use crate::hub::tier_asked;
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

/// What makes a provider read a conversation more than once.
const STEPS: [&[u8]; 3] = [b"tools", b"mcp_servers", b"context_management"];

pub(super) struct Facts<'a> {
    dialect: Dialect,
    keys: Vec<Cow<'a, [u8]>>,
    pub model: Option<(String, Range<usize>)>,
    pub stream: bool,
    pub max_output: Option<u64>,
    pub choices: Option<u64>,
    pub service_tier: Option<String>,
    /// Names what may run at the provider, which reads the conversation again after each step of it.
    pub has_tools: bool,
    pub estimate: Estimate,
    said: bool,
    /// Names what it goes on from, which may be all that there is to say.
    continues: bool,
}

impl<'a> Facts<'a> {
    /// `call`: the body of a call, which must have all that a call needs; else of a count of tokens.
    pub fn read(dialect: Dialect, body: &'a [u8], call: bool) -> Result<Facts<'a>, Problem> {
        if std::str::from_utf8(body).is_err() {
            return Err(Problem::not_json("The body is not valid UTF-8."));
        }
        let mut facts = Facts {
            dialect,
            keys: Vec::with_capacity(16),
            model: None,
            stream: false,
            max_output: None,
            choices: None,
            service_tier: None,
            has_tools: false,
            estimate: Estimate::new(),
            said: false,
            continues: false,
        };
        let mut scan = Scan::new(body);
        if scan.peek() != Some(b'{') {
            return Err(Problem::not_json("The body must be a JSON object."));
        }
        scan.object(|key, scan| facts.member(key, scan))
            .map_err(|problem: Problem| crate::chat::first_mistake(body, problem))?;
        scan.end()?;
        facts.checked(call)
    }

    fn member(&mut self, key: Text<'a>, scan: &mut Scan<'a>) -> Result<(), Problem> {
        let key = key.bytes();
        match (self.dialect, key.as_ref()) {
            (Dialect::Gemini, b"contents") => self.conversation("contents", scan)?,
            (Dialect::Gemini, b"generationConfig" | b"generation_config") => self.config(scan)?,
            (Dialect::Gemini, b"systemInstruction" | b"system_instruction") => self.estimate.value(scan)?,
            (Dialect::Gemini, b"serviceTier" | b"service_tier") => self.tier(scan)?,
            (_, b"tools") => self.estimate.tools(self.dialect, scan)?,
            (Dialect::Gemini, name) => self.estimate.around(self.dialect, name, scan)?,
            (_, b"model") => self.model(scan)?,
            (_, b"stream") => self.stream = flag(scan, "stream")?,
            (_, b"service_tier") => self.tier(scan)?,
            (Dialect::Anthropic, b"messages") => self.conversation("messages", scan)?,
            (Dialect::Anthropic, b"max_tokens") => self.max_output = whole(scan, "max_tokens")?,
            (Dialect::Anthropic, b"system") => self.estimate.value(scan)?,
            (Dialect::Responses, name @ (b"previous_response_id" | b"conversation")) => {
                self.continues |= scan.peek() != Some(b'n');
                self.estimate.around(self.dialect, name, scan)?;
            }
            (Dialect::Responses, b"input") => self.conversation("input", scan)?,
            (Dialect::Responses, b"max_output_tokens") => self.max_output = whole(scan, "max_output_tokens")?,
            (Dialect::Responses, b"instructions") => self.estimate.value(scan)?,
            (_, b"output_config" | b"text") => self.estimate.verbatim(scan.value()?),
            (_, name) => self.estimate.around(self.dialect, name, scan)?,
        }
        self.keys.push(key);
        Ok(())
    }

    fn model(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        match scan.peek() {
            Some(b'"') => {}
            Some(b'n') => return Ok(scan.skip()?),
            _ => return Err(Problem::wrong("model", "a string")),
        }
        let start = scan.at();
        let name = scan.string()?.text();
        if name.is_empty() || name.len() > MOST_NAME {
            return Err(Problem::wrong("model", "the name of a model"));
        }
        self.model = Some((name.into_owned(), start..scan.at()));
        Ok(())
    }

    fn tier(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        if scan.peek() != Some(b'"') {
            return Ok(scan.skip()?);
        }
        let word = scan.string()?.text();
        if self.service_tier.replace(tier_asked(self.dialect, word).into_owned()).is_some() {
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
                    Ok(self.estimate.value(scan)?)
                })?;
                if count == 0 && self.dialect != Dialect::Responses {
                    return Err(Problem::wrong(name, "an array with at least one element"));
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

    fn config(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        if scan.peek() != Some(b'{') {
            return match scan.value()? {
                b"null" => Ok(()),
                _ => Err(Problem::wrong("generationConfig", "an object")),
            };
        }
        scan.object(|key, scan| match key.bytes().as_ref() {
            b"maxOutputTokens" | b"max_output_tokens" => {
                // Of two spellings the larger one: which of them the provider goes by is its affair.
                self.max_output = self.max_output.max(whole(scan, "generationConfig.maxOutputTokens")?);
                Ok(())
            }
            b"candidateCount" | b"candidate_count" => {
                self.choices = self.choices.max(whole(scan, "generationConfig.candidateCount")?);
                match self.choices {
                    Some(0 | MOST_CHOICES..) if self.choices != Some(MOST_CHOICES) => {
                        Err(Problem::wrong("generationConfig.candidateCount", "between 1 and 128"))
                    }
                    _ => Ok(()),
                }
            }
            b"responseSchema" | b"response_schema" | b"responseJsonSchema" | b"response_json_schema" => {
                self.estimate.verbatim(scan.value()?);
                Ok(())
            }
            _ => Ok::<(), Problem>(scan.skip()?),
        })
    }

    /// Refuses what is missing and a key that was given twice.
    fn checked(mut self, call: bool) -> Result<Self, Problem> {
        self.keys.sort_unstable();
        if let Some(pair) = self.keys.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = String::from_utf8_lossy(&pair[0]);
            let name = &name[..name.floor_char_boundary(64)];
            return Err(Problem::new(Code::InvalidRequest, name, format!("`{name}` is given more than once.")));
        }
        self.has_tools = self.keys.iter().any(|key| STEPS.contains(&key.as_ref()));
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
        Ok(self)
    }
}

fn flag(scan: &mut Scan<'_>, param: &str) -> Result<bool, Problem> {
    match scan.value()? {
        b"true" => Ok(true),
        b"false" | b"null" => Ok(false),
        _ => Err(Problem::wrong(param, "true or false")),
    }
}

fn whole(scan: &mut Scan<'_>, param: &str) -> Result<Option<u64>, Problem> {
    match scan.value()? {
        b"null" => Ok(None),
        text => match whole_number(text) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::wrong(param, "a whole number, not negative")),
        },
    }
}
