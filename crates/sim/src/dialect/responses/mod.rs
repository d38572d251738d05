//! OpenAI's `/v1/responses`: the request as a whole. Items and tools have a file each.

mod items;
mod say;
mod tools;

use serde_json::Value;

use super::check::{Checked, Place, is_name, no_marks, short_names};
use crate::ask::{Ask, forced, words};
use crate::refusal::Refusal;

pub(super) use items::check_url as data_url;
pub(super) use say::{beats, failures, object};
pub(super) use tools::strict_schema;

const FIELDS: &str = "model! input instructions previous_response_id conversation store background stream stream_options \
    max_output_tokens max_tool_calls tools tool_choice parallel_tool_calls reasoning text include top_logprobs \
    temperature top_p truncation service_tier metadata prompt prompt_cache_key prompt_cache_options \
    prompt_cache_retention safety_identifier context_management moderation image user client_metadata";
const COUNTED: &str = "model! input instructions previous_response_id conversation tools tool_choice parallel_tool_calls \
    reasoning text truncation";
const INCLUDE: &str = "reasoning.encrypted_content message.output_text.logprobs web_search_call.action.sources \
    web_search_call.results file_search_call.results code_interpreter_call.outputs \
    computer_call_output.output.image_url message.input_image.image_url";

pub(super) fn read(root: &Place<'_>, count: bool) -> Checked<Ask> {
    root.fields(if count { COUNTED } else { FIELDS })?;
    let model = root.need("model")?.text()?;
    state(root)?;
    no_marks(root)?;
    let input = items::read(&root.need("input")?)?;
    let offered = tools::read(root)?;
    let stream = root.flag("stream")?;
    if let Some(options) = root.field("stream_options") {
        options.fields("include_obfuscation")?;
        if !stream {
            return Err(options.wrong("only allowed when 'stream' is enabled"));
        }
    }
    let limit = root.whole("max_output_tokens", 16, 1_000_000)?;
    parameters(root)?;
    let schema = format(root, &input.all_text)?;
    let instructions = root.field("instructions").map_or(Ok(""), |place| place.text())?;
    Ok(Ask {
        model: model.to_string(),
        stream,
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        choices: 1,
        prompt_words: words(&input.all_text) + words(instructions),
        last_user: input.last_user,
        tools: offered,
        instructions: Some(instructions.to_string()).filter(|text| !text.is_empty()),
        one_call: root.value.get("parallel_tool_calls") == Some(&Value::Bool(false)),
        wants_text: input.ends_with_result || root.value["tool_choice"] == "none",
        forced: forced(root.value.get("tool_choice")),
        earlier_calls: input.calls,
        schema,
        made: tools::made(root)?,
        shows_thoughts: root.field("reasoning").is_some_and(|reasoning| reasoning.field("summary").is_some()),
        ..Ask::default()
    })
}

/// A provider that keeps nothing knows no earlier response.
fn state(root: &Place<'_>) -> Checked {
    if let Some(previous) = root.field("previous_response_id") {
        let text = format!("Previous response with id '{}' not found.", previous.text()?);
        let refusal = Refusal::bad("previous_response_id", &text);
        return Err(refusal.with_code(Some("previous_response_not_found")));
    }
    if let Some(conversation) = root.field("conversation") {
        let id = conversation.value["id"].as_str().or(conversation.value.as_str()).unwrap_or_default();
        return Err(Refusal {
            status: 404,
            ..Refusal::bad("conversation", &format!("Conversation '{id}' not found."))
        });
    }
    Ok(())
}

fn parameters(root: &Place<'_>) -> Checked {
    root.number("temperature", 0.0, 2.0)?;
    root.number("top_p", 0.0, 1.0)?;
    root.whole("top_logprobs", 0, 20)?;
    root.whole("max_tool_calls", 1, 1_000_000)?;
    for entry in root.entries("include")? {
        entry.one_of(INCLUDE)?;
    }
    for (name, words) in
        [("truncation", "auto disabled"), ("service_tier", "auto default flex scale priority fast ultrafast")]
    {
        if let Some(place) = root.field(name) {
            place.one_of(words)?;
        }
    }
    for name in ["store", "background", "parallel_tool_calls"] {
        root.flag(name)?;
    }
    short_names(root, &["prompt_cache_key", "safety_identifier"])?;
    if let Some(metadata) = root.field("metadata") {
        let map = metadata.value.as_object().filter(|map| map.len() <= 16 && map.values().all(Value::is_string));
        map.ok_or_else(|| metadata.wrong("expected at most 16 pairs of strings"))?;
    }
    if let Some(reasoning) = root.field("reasoning") {
        reasoning.fields("effort summary generate_summary context mode")?;
        if let Some(effort) = reasoning.field("effort") {
            effort.one_of("none minimal low medium high xhigh max")?;
        }
        if let Some(summary) = reasoning.field("summary") {
            summary.one_of("auto concise detailed")?;
        }
    }
    Ok(())
}

/// `text.format`, which is flat here; the schema if there is one.
fn format(root: &Place<'_>, input: &str) -> Checked<Option<Value>> {
    let Some(text) = root.field("text") else { return Ok(None) };
    text.fields("format verbosity")?;
    if let Some(verbosity) = text.field("verbosity") {
        verbosity.one_of("low medium high")?;
    }
    let Some(format) = text.field("format") else { return Ok(None) };
    match format.need("type")?.one_of("text json_object json_schema")? {
        "json_schema" => {
            format.fields("type! name! schema! description strict")?;
            let name = format.need("name")?;
            if !is_name(name.text()?, 64) {
                return Err(name.wrong("expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"));
            }
            let schema = format.need("schema")?;
            if format.flag("strict")? {
                tools::strict_schema(&schema, "response_format")?;
            }
            Ok(Some(schema.value.clone()))
        }
        "json_object" if !input.to_lowercase().contains("json") => {
            let text = "Response input messages must contain the word 'json' in some form to use 'text.format' of type \
                        'json_object'.";
            Err(Refusal::bad("input", text))
        }
        _ => format.fields("type!").map(|_| None),
    }
}
