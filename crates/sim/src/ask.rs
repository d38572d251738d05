//! Reading a chat request the way a strict provider does, and counting its words.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// What the simulator needs to know of a request.
#[derive(Debug)]
pub(crate) struct Ask {
    pub model: String,
    pub stream: bool,
    pub include_usage: bool,
    pub limit: Option<u64>,
    pub choices: u64,
    pub prompt_words: u64,
    pub last_user: String,
    /// Functions the caller offers: name and schema of the parameters.
    pub tools: Vec<(String, Value)>,
    /// At most one call in the reply.
    pub one_call: bool,
    /// The last message is a tool's result, or tools are switched off.
    pub wants_text: bool,
    fields: Vec<String>,
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
            last_user: last_user.map(content_text).unwrap_or_default(),
            tools: offered(&body),
            one_call: body.get("parallel_tool_calls") == Some(&Value::Bool(false)),
            wants_text: last_role == Some("tool") || body.get("tool_choice").is_some_and(|choice| choice == "none"),
            fields: body.keys().cloned().collect(),
        })
    }

    /// For `strict`: the first field OpenAI does not know.
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

fn offered(body: &Map<String, Value>) -> Vec<(String, Value)> {
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    let functions = tools.filter_map(|tool| {
        let name = tool["function"]["name"].as_str()?;
        Some((name.to_string(), tool["function"]["parameters"].clone()))
    });
    functions.collect()
}

/// Every top-level field of the published request.
const KNOWN: &str = "model messages temperature top_p frequency_penalty presence_penalty logit_bias seed n \
    max_completion_tokens max_tokens stop tools tool_choice parallel_tool_calls functions \
    function_call response_format modalities audio logprobs top_logprobs prediction \
    verbosity reasoning_effort stream stream_options prompt_cache_key prompt_cache_options \
    prompt_cache_retention service_tier store metadata safety_identifier user moderation \
    web_search_options";
