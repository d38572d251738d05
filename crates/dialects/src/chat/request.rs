//! Reads a chat request once: checks what must be checked and remembers where things stand.
//!
//! Only what money and routing depend on is checked here; the provider judges the rest. Keys
//! given twice are refused, because two readers could understand them differently.

use super::prompt::{Estimate, Part};
use crate::reads::Reads;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;
use tollgate_wire::json::{self, Broken, Edit, Scan, Text};

/// A checked chat request and its original bytes.
#[derive(Clone, Debug)]
pub struct Request {
    pub model: String,
    pub stream: bool,
    /// The client sent `stream_options.include_usage: true`.
    pub wants_usage: bool,
    /// `max_completion_tokens` or `max_tokens`, the larger one where both are given: both pass, and which one the provider goes by is its affair.
    pub max_output: Option<u64>,
    /// `n`, 1 when absent.
    pub choices: u64,
    /// Estimate of the prompt, leaning high; pictures and sound by their own rule.
    pub prompt_tokens: u64,
    pub service_tier: Option<String>,
    /// Names what may run at the provider, which reads the conversation again after each step of it.
    pub has_tools: bool,
    /// What the provider reads besides the text.
    pub reads: Reads,
    body: Bytes,
    model_place: Range<usize>,
    /// What must be written where so that the provider reports usage of a stream.
    ask_usage: Option<(Range<usize>, &'static str)>,
}

/// Most choices one call may ask for.
const MOST_CHOICES: u64 = 128;
/// Longest model name.
const MOST_NAME: usize = 256;

/// Reads and checks the body of `POST /v1/chat/completions`.
pub fn read_request(body: Bytes) -> Result<Request, Problem> {
    if std::str::from_utf8(&body).is_err() {
        return Err(Problem::not_json("The body is not valid UTF-8."));
    }
    let mut form = Form::new();
    let mut scan = Scan::new(&body);
    if scan.peek() != Some(b'{') {
        return Err(Problem::not_json("The body must be a JSON object."));
    }
    scan.object(|key, scan| form.member(key, scan)).map_err(|problem| first_mistake(&body, problem))?;
    // The object's closing brace is the last byte read.
    let close = scan.at() - 1;
    scan.end()?;
    let form = form.checked()?;
    let (Some((model, model_place)), Some(())) = (form.model, form.messages) else {
        let absent = if form.messages.is_none() { "messages" } else { "model" };
        return Err(Problem::missing(absent));
    };
    let wants_usage = matches!(form.options, Options::Asks);
    let ask_usage = match form.options {
        _ if !form.stream => None,
        Options::Absent => Some((close..close, r#","stream_options":{"include_usage":true}"#)),
        Options::Null(place) => Some((place, r#"{"include_usage":true}"#)),
        Options::Empty(place) => Some((place, r#""include_usage":true"#)),
        Options::Without(place) => Some((place, r#""include_usage":true,"#)),
        Options::Refuses(place) => Some((place, "true")),
        Options::Asks => None,
    };
    Ok(Request {
        model,
        stream: form.stream,
        wants_usage,
        max_output: form.max_completion_tokens.max(form.max_tokens),
        choices: form.n.unwrap_or(1),
        prompt_tokens: form.estimate.tokens(),
        service_tier: form.service_tier,
        has_tools: form.has_tools,
        reads: form.estimate.reads(),
        model_place,
        ask_usage,
        body,
    })
}

/// A wrong member may only be the place where the text breaks off: then the text is the mistake.
pub(crate) fn first_mistake(body: &[u8], problem: Problem) -> Problem {
    let mut scan = Scan::new(body);
    match scan.skip().and_then(|()| scan.end()) {
        Ok(()) => problem,
        Err(broken) => broken.into(),
    }
}

/// What `stream_options` says about usage, and the place where it can be made to ask for it.
enum Options {
    Absent,
    Null(Range<usize>),
    /// An empty object: between its braces.
    Empty(Range<usize>),
    /// Members but not this one: after the opening brace.
    Without(Range<usize>),
    /// `false` or `null`: the value.
    Refuses(Range<usize>),
    Asks,
}

/// What is known while the members go by.
struct Form<'a> {
    keys: Vec<Cow<'a, [u8]>>,
    model: Option<(String, Range<usize>)>,
    messages: Option<()>,
    stream: bool,
    options: Options,
    max_completion_tokens: Option<u64>,
    max_tokens: Option<u64>,
    n: Option<u64>,
    service_tier: Option<String>,
    has_tools: bool,
    estimate: Estimate,
}

impl<'a> Form<'a> {
    fn new() -> Self {
        Form {
            keys: Vec::with_capacity(16),
            model: None,
            messages: None,
            stream: false,
            options: Options::Absent,
            max_completion_tokens: None,
            max_tokens: None,
            n: None,
            service_tier: None,
            has_tools: false,
            estimate: Estimate::new(),
        }
    }

    fn member(&mut self, key: Text<'a>, scan: &mut Scan<'a>) -> Result<(), Problem> {
        let key = key.bytes();
        match key.as_ref() {
            b"model" => self.model(scan)?,
            b"messages" => self.messages(scan)?,
            b"stream" => self.stream = boolean(scan, "stream")?.unwrap_or(false),
            b"stream_options" => self.stream_options(scan)?,
            b"max_completion_tokens" => self.max_completion_tokens = whole(scan, "max_completion_tokens")?,
            b"max_tokens" => self.max_tokens = whole(scan, "max_tokens")?,
            b"n" => {
                self.n = whole(scan, "n")?;
                if self.n.is_some_and(|n| n == 0 || n > MOST_CHOICES) {
                    return Err(Problem::wrong("n", "between 1 and 128"));
                }
            }
            b"service_tier" if scan.peek() == Some(b'"') => {
                self.service_tier = Some(scan.string()?.text().into_owned());
            }
            b"tools" => {
                self.has_tools = true;
                self.estimate.tools(Dialect::Chat, scan)?;
            }
            b"functions" | b"response_format" => self.estimate.verbatim(scan.value()?),
            name => {
                self.has_tools |= name == b"web_search_options";
                self.estimate.around(Dialect::Chat, name, scan)?;
            }
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

    fn messages(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        match scan.peek() {
            Some(b'[') => {}
            Some(b'n') => return Ok(scan.skip()?),
            _ => return Err(Problem::wrong("messages", "an array")),
        }
        let mut count = 0usize;
        scan.array(|scan| {
            self.message(count, scan)?;
            count += 1;
            Ok::<(), Problem>(())
        })?;
        if count == 0 {
            return Err(Problem::wrong("messages", "an array with at least one message"));
        }
        self.messages = Some(());
        Ok(())
    }

    fn message(&mut self, index: usize, scan: &mut Scan<'a>) -> Result<(), Problem> {
        if scan.peek() != Some(b'{') {
            return Err(Problem::wrong(&format!("messages[{index}]"), "an object"));
        }
        self.estimate.message();
        let at = scan.at();
        let mut part = Part::default();
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

    fn stream_options(&mut self, scan: &mut Scan<'a>) -> Result<(), Problem> {
        let first = scan.peek();
        let start = scan.at();
        if first != Some(b'{') {
            if scan.value()? != b"null" {
                return Err(Problem::wrong("stream_options", "an object"));
            }
            self.options = Options::Null(start..scan.at());
            return Ok(());
        }
        let mut members = 0;
        let mut usage = None;
        scan.object(|key, scan| {
            members += 1;
            if !key.is("include_usage") {
                return Ok(scan.skip()?);
            }
            if usage.is_some() {
                return Err(Problem::wrong("stream_options.include_usage", "given once"));
            }
            scan.peek();
            let from = scan.at();
            let asks = boolean(scan, "stream_options.include_usage")?.unwrap_or(false);
            usage = Some(if asks { Options::Asks } else { Options::Refuses(from..scan.at()) });
            Ok(())
        })?;
        let inside = start + 1..start + 1;
        self.options = usage.unwrap_or(if members == 0 { Options::Empty(inside) } else { Options::Without(inside) });
        Ok(())
    }

    /// Refuses a key that was given twice.
    fn checked(mut self) -> Result<Self, Problem> {
        self.keys.sort_unstable();
        match self.keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let name = String::from_utf8_lossy(&pair[0]);
                let name = &name[..name.floor_char_boundary(64)];
                Err(Problem::new(Code::InvalidRequest, name, format!("`{name}` is given more than once.")))
            }
            None => Ok(self),
        }
    }
}

/// A boolean; null counts as absent.
fn boolean(scan: &mut Scan<'_>, param: &str) -> Result<Option<bool>, Problem> {
    match scan.value()? {
        b"true" => Ok(Some(true)),
        b"false" => Ok(Some(false)),
        b"null" => Ok(None),
        _ => Err(Problem::wrong(param, "true or false")),
    }
}

/// A whole number not below zero; null counts as absent.
fn whole(scan: &mut Scan<'_>, param: &str) -> Result<Option<u64>, Problem> {
    match scan.value()? {
        b"null" => Ok(None),
        text => match json::whole_number(text) {
            Some(number) => Ok(Some(number)),
            None => Err(Problem::wrong(param, "a whole number, not negative")),
        },
    }
}

impl Request {
    /// The body as the client sent it.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// A scalar of the request by dotted path (`service_tier`, `reasoning.effort`); text without quotes,
    /// numbers and booleans as written. Scans the body: not free.
    pub fn attr(&self, path: &str) -> Option<Cow<'_, str>> {
        attr(&self.body, path)
    }

    /// The body to send upstream: `model` replaced, usage asked for when streaming, every other byte as
    /// the client sent it. The same `Bytes` when nothing changes.
    pub fn upstream_body(&self, upstream_model: &str) -> Bytes {
        let name = (self.model != upstream_model).then(|| json::quoted(upstream_model));
        let name = name.as_ref().map(|name| (self.model_place.clone(), name.as_slice()));
        let usage = self.ask_usage.as_ref().map(|(place, text)| (place.clone(), text.as_bytes()));
        let edits: &[Edit<'_>] = match (name, usage) {
            (None, None) => return self.body.clone(),
            (Some(one), None) | (None, Some(one)) => &[one],
            (Some(name), Some(usage)) if name.0.start < usage.0.start => &[name, usage],
            (Some(name), Some(usage)) => &[usage, name],
        };
        Bytes::from(json::splice(&self.body, edits))
    }
}

/// A scalar of a body by dotted path.
pub(crate) fn attr<'b>(body: &'b [u8], path: &str) -> Option<Cow<'b, str>> {
    let mut found = None;
    look_up(&mut Scan::new(body), path, &mut found).ok()?;
    found
}

fn look_up<'a>(scan: &mut Scan<'a>, path: &str, found: &mut Option<Cow<'a, str>>) -> Result<(), Broken> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    scan.object(|key, scan| {
        if !key.is(name) {
            return scan.skip();
        }
        match (rest, scan.peek()) {
            (Some(rest), Some(b'{')) => look_up(scan, rest, found),
            (None, Some(b'"')) => {
                *found = Some(scan.string()?.text());
                Ok(())
            }
            (None, Some(b'-' | b'0'..=b'9' | b't' | b'f')) => {
                *found = Some(String::from_utf8_lossy(scan.value()?));
                Ok(())
            }
            _ => scan.skip(),
        }
    })
}
