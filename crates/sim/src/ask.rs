//! Reading a chat request the way a strict provider does, and counting its words. [`Ask`] is what
//! the readers of all dialects come to (`dialect/`); this file reads chat completions.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::made::Made;
use crate::refusal::Refusal;

/// What the simulator needs to know of a request.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub model: String,
    pub stream: bool,
    pub include_usage: bool,
    pub limit: Option<u64>,
    pub choices: u64,
    pub prompt_words: u64,
    pub last_user: String,
    /// Responses repeats them in every event that has the whole response.
    pub instructions: Option<String>,
    pub tools: Vec<Tool>,
    /// At most one call in the reply.
    pub one_call: bool,
    /// The last message is a tool's result, or tools are switched off.
    pub wants_text: bool,
    /// A tool must be called: the one of this name, or any when it is empty.
    pub forced: Option<String>,
    /// Calls in the history; new ones are numbered after them, because ids must not repeat.
    pub earlier_calls: usize,
    /// The reply has to be JSON of this schema.
    pub schema: Option<Value>,
    /// Texts that end the reply before they are said.
    pub stop: Vec<String>,
    /// Thoughts may be shown (Responses, Gemini: only when asked for).
    pub shows_thoughts: bool,
    /// What is to be made beside words.
    pub made: Made,
    /// Top-level fields, as chat completions had them.
    pub fields: Vec<String>,
}

/// A function the caller offers.
#[derive(Debug)]
pub(crate) struct Tool {
    pub name: String,
    /// Of the parameters.
    pub schema: Value,
    /// Takes free text instead of JSON.
    pub free: bool,
}

impl Ask {
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
            return Err(Refusal::new(400, "We could not parse the JSON body of your request."));
        };
        let model = body.get("model").ok_or_else(|| Refusal::missing("model"))?;
        let model = model.as_str().filter(|name| !name.is_empty());
        let model = model.ok_or_else(|| Refusal::bad("model", "Invalid type for 'model': expected a string."))?;
        let messages = body.get("messages").ok_or_else(|| Refusal::missing("messages"))?;
        let messages = messages.as_array().filter(|list| !list.is_empty());
        let messages = messages.ok_or_else(|| Refusal::bad("messages", "Expected a non-empty array of messages."))?;
        for (place, message) in messages.iter().enumerate() {
            check_message(place, message)?;
        }
        check_pairs(messages)?;
        let last_role = messages.last().and_then(|message| message["role"].as_str());
        let last_user = messages.iter().rev().find(|message| message["role"] == "user");
        let stream = flag(&body, "stream")?;
        let stream_options = body.get("stream_options").filter(|options| !options.is_null());
        if stream_options.is_some() && !stream {
            let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return Err(Refusal::bad("stream_options", message));
        }
        let limit = whole(&body, "max_completion_tokens")?.or(whole(&body, "max_tokens")?);
        Ok(Self {
            model: model.to_string(),
            stream,
            include_usage: stream_options.is_some_and(|options| options["include_usage"] == true),
            limit,
            choices: whole(&body, "n")?.unwrap_or(1).min(128),
            prompt_words: messages.iter().map(|message| words(&content_text(message))).sum(),
            instructions: None,
            last_user: last_user.map(content_text).unwrap_or_default(),
            tools: offered(&body),
            one_call: body.get("parallel_tool_calls") == Some(&Value::Bool(false)),
            wants_text: last_role == Some("tool") || body.get("tool_choice").is_some_and(|choice| choice == "none"),
            forced: forced(body.get("tool_choice")),
            earlier_calls: messages.iter().flat_map(call_ids).count(),
            schema: body.get("response_format").and_then(|format| format["json_schema"].get("schema")).cloned(),
            stop: stops(body.get("stop")),
            shows_thoughts: true,
            made: Made::of_chat(&body),
            fields: body.keys().cloned().collect(),
        })
    }

    /// For `strict`: the first top-level field OpenAI does not know.
    pub fn check_fields(&self) -> Result<(), Refusal> {
        match self.fields.iter().find(|field| !KNOWN.split(' ').any(|known| known == *field)) {
            None => Ok(()),
            Some(field) => {
                let message = format!("Unrecognized request argument supplied: {field}");
                Err(Refusal::bad(field, &message).with_code(Some("unknown_parameter")))
            }
        }
    }
}

pub(crate) fn words(text: &str) -> u64 {
    u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX)
}

fn check_message(place: usize, message: &Value) -> Result<(), Refusal> {
    let role = message.get("role").and_then(Value::as_str);
    let known = ["developer", "system", "user", "assistant", "tool", "function"];
    let param = format!("messages[{place}].role");
    match role {
        None => Err(Refusal::missing(&param)),
        Some(role) if known.contains(&role) => Ok(()),
        Some(role) => Err(Refusal::bad(&param, &format!("Invalid value: '{role}'."))),
    }
}

fn call_ids(message: &Value) -> impl Iterator<Item = &str> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls.map(|call| call["id"].as_str().unwrap_or_default())
}

/// Every call is followed by its result, every result belongs to a call just before it.
fn check_pairs(messages: &[Value]) -> Result<(), Refusal> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (place, message) in messages.iter().enumerate() {
        let param = format!("messages[{place}]");
        if message["role"] == "tool" {
            let id =
                message["tool_call_id"].as_str().ok_or_else(|| Refusal::missing(&format!("{param}.tool_call_id")))?;
            if !open.remove(id) {
                let text = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
                return Err(Refusal::bad(&param, text));
            }
            continue;
        }
        unanswered(&open)?;
        open = call_ids(message).collect();
    }
    unanswered(&open)
}

fn unanswered(open: &BTreeSet<&str>) -> Result<(), Refusal> {
    let Some(id) = open.first() else { return Ok(()) };
    let text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                'tool_call_id'. The following tool_call_ids did not have response messages";
    Err(Refusal::bad("messages", &format!("{text}: {id}")))
}

/// Nothing, one text or a list.
pub(crate) fn stops(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_string).collect(),
        _ => Vec::new(),
    }
}

fn content_text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(Refusal::bad(name, &format!("Invalid type for '{name}': expected a boolean."))),
    }
}

fn whole(body: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refusal> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) if number > 0 => Ok(Some(number)),
            _ => Err(Refusal::bad(name, &format!("Invalid value for '{name}': expected an integer of at least 1."))),
        },
    }
}

fn offered(body: &Map<String, Value>) -> Vec<Tool> {
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    let functions = tools.filter_map(|tool| {
        let (function, custom) = (&tool["function"], &tool["custom"]);
        let name = function["name"].as_str().or(custom["name"].as_str())?;
        Some(Tool { name: name.to_string(), schema: function["parameters"].clone(), free: custom.is_object() })
    });
    functions.collect()
}

/// Which tool must be called, in the way of chat and, flat, of Responses.
pub(crate) fn forced(choice: Option<&Value>) -> Option<String> {
    let choice = choice?;
    let any = choice == "required" || choice["mode"] == "required" || choice["allowed_tools"]["mode"] == "required";
    let of = |place: &Value| place["name"].as_str().map(str::to_string);
    if any { Some(String::new()) } else { of(&choice["function"]).or(of(&choice["custom"])).or(of(choice)) }
}

/// Every top-level field of the published request.
const KNOWN: &str = "model messages temperature top_p frequency_penalty presence_penalty logit_bias seed n \
    max_completion_tokens max_tokens stop tools tool_choice parallel_tool_calls functions \
    function_call response_format modalities audio logprobs top_logprobs prediction \
    verbosity reasoning_effort stream stream_options prompt_cache_key prompt_cache_options \
    prompt_cache_retention service_tier store metadata safety_identifier user moderation \
    web_search_options";
