//! Anthropic's `/v1/messages`: the request as a whole. Turns, blocks, tools and thinking have a
//! file each.

mod blocks;
mod say;
mod thinking;
mod tools;
mod turns;

use serde_json::Value;

use super::check::{Checked, Place};
use crate::ask::{Ask, stops, words};
use crate::refusal::Refusal;

pub(super) use say::{beats, object};

const FIELDS: &str = "model! messages! max_tokens! system tools tool_choice stop_sequences stream thinking output_config \
    cache_control metadata service_tier speed inference_geo container diagnostics user_profile_id temperature top_p \
    top_k context_management mcp_servers";
/// Counting takes what makes up the prompt and nothing else.
const COUNTED: &str = "model! messages! system tools tool_choice thinking output_config cache_control context_management \
    mcp_servers speed";

pub(super) fn read(root: &Place<'_>, count: bool) -> Checked<Ask> {
    root.fields(if count { COUNTED } else { FIELDS })?;
    let model = root.need("model")?.text()?;
    let limit = root.whole("max_tokens", 0, 1_000_000)?;
    let messages = root.need("messages")?.list()?;
    if messages.is_empty() {
        return Err(Refusal::bad("messages", "messages: at least one message is required"));
    }
    let offered = tools::read(root)?;
    system(root)?;
    let history = turns::read(&messages, root.field("tools").is_some())?;
    thinking::check(root, limit, &messages)?;
    output(root)?;
    parameters(root)?;
    blocks::check_marks(root)?;
    let forced_off = root.field("tool_choice").is_some_and(|choice| choice.value["type"] == "none");
    let one_call = root.field("tool_choice").is_some_and(|c| c.value["disable_parallel_tool_use"] == true);
    let forced =
        root.field("tool_choice").filter(|choice| matches!(choice.value["type"].as_str(), Some("any" | "tool")));
    Ok(Ask {
        model: model.to_string(),
        stream: root.flag("stream")?,
        limit: limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
        choices: 1,
        prompt_words: history.words + root.field("system").map_or(0, |system| words(&blocks::text_of(system.value))),
        last_user: history.last_user,
        tools: offered,
        one_call,
        wants_text: history.ends_with_result || forced_off,
        forced: forced.map(|choice| choice.value["name"].as_str().unwrap_or_default().to_string()),
        earlier_calls: history.calls,
        schema: root.field("output_config").and_then(|config| config.value["format"].get("schema")).cloned(),
        stop: stops(root.value.get("stop_sequences")),
        shows_thoughts: true,
        ..Ask::default()
    })
}

fn system(root: &Place<'_>) -> Checked {
    let Some(system) = root.field("system") else { return Ok(()) };
    if system.value.is_string() {
        return Ok(());
    }
    for block in system.list()? {
        blocks::check(&block, 's')?;
    }
    Ok(())
}

fn output(root: &Place<'_>) -> Checked {
    let Some(config) = root.field("output_config") else { return Ok(()) };
    config.fields("effort format task_budget")?;
    if let Some(effort) = config.field("effort") {
        effort.one_of("low medium high xhigh max")?;
    }
    if let Some(format) = config.field("format") {
        format.fields("type! schema!")?;
        format.need("type")?.one_of("json_schema")?;
        strict_schema(&format.need("schema")?)?;
    }
    Ok(())
}

/// Structured output takes a part of JSON Schema only.
pub(super) fn strict_schema(schema: &Place<'_>) -> Checked {
    const UNSUPPORTED: &[&str] = &[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "definitions",
    ];
    let Some(map) = schema.value.as_object() else { return Ok(()) };
    if let Some(word) = UNSUPPORTED.iter().find(|word| map.contains_key(**word)) {
        return Err(schema.wrong(&format!("property '{word}' is not supported")));
    }
    if map.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 1) {
        return Err(schema.wrong("'minItems' values other than 0 or 1 are not supported"));
    }
    if map.get("type") == Some(&Value::from("object")) && map.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(schema.wrong("For 'object' type, 'additionalProperties' must be explicitly set to false"));
    }
    for name in ["properties", "$defs"] {
        let Some(inner) = schema.field(name) else { continue };
        for key in inner.value.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if let Some(place) = inner.field(key) {
                strict_schema(&place)?;
            }
        }
    }
    if let Some(items) = schema.field("items") {
        strict_schema(&items)?;
    }
    for one in schema.entries("anyOf")? {
        strict_schema(&one)?;
    }
    Ok(())
}

fn parameters(root: &Place<'_>) -> Checked {
    root.number("temperature", 0.0, 1.0)?;
    root.number("top_p", 0.0, 1.0)?;
    root.whole("top_k", 0, i64::MAX)?;
    for stop in root.entries("stop_sequences")? {
        if stop.text()?.trim().is_empty() {
            return Err(stop.wrong("each stop sequence must contain non-whitespace"));
        }
    }
    if let Some(metadata) = root.field("metadata") {
        metadata.fields("user_id")?;
    }
    if let Some(tier) = root.field("service_tier") {
        tier.one_of("auto standard_only")?;
    }
    Ok(())
}
