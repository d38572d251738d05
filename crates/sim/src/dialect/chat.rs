//! Chat completions as strictly as OpenAI itself takes them, for models named `sim-strict`,
//! whatever their scenario. The other models stand for the many servers that speak this dialect and
//! let more pass; what all of them refuse is in `ask`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Dialect;
use super::check::{Checked, Place, is_name, no_marks, no_thinking, short_names};
use super::responses::{data_url, strict_schema};
use crate::refusal::Refusal;

/// Role, fields, parts of content. `reasoning_content` is what the simulator itself sends and so
/// takes back.
const MESSAGES: &[(&str, &str, &str)] = &[
    ("developer", "role! content! name", "text"),
    ("system", "role! content! name", "text"),
    ("user", "role! content! name", "text image_url input_audio file"),
    (
        "assistant",
        "role! content name refusal audio annotations tool_calls function_call reasoning_content",
        "text refusal",
    ),
    ("tool", "role! content! tool_call_id!", "text"),
    ("function", "role! content! name!", "text"),
];
const PARTS: &[(&str, &str)] = &[
    ("text", "type! text! prompt_cache_breakpoint"),
    ("refusal", "type! refusal!"),
    ("image_url", "type! image_url! prompt_cache_breakpoint"),
    ("input_audio", "type! input_audio! prompt_cache_breakpoint"),
    ("file", "type! file! prompt_cache_breakpoint"),
];
const TIERS: &str = "auto default flex scale priority fast";

/// What a model that does not think refuses.
pub(crate) fn check_unthinking(body: &Value) -> Checked {
    no_thinking(&Place::root(Dialect::Responses, body))
}

pub(crate) fn check(body: &Value) -> Checked {
    // OpenAI words its complaints alike at both of its endpoints.
    let root = Place::root(Dialect::Responses, body);
    no_marks(&root)?;
    short_names(&root, &["safety_identifier", "user", "prompt_cache_key"])?;
    for message in root.need("messages")?.list()? {
        check_message(&message)?;
    }
    let names = tools(&root)?;
    tool_choice(&root, &names)?;
    numbers(&root)?;
    format(&root)?;
    if let Some(effort) = root.field("reasoning_effort") {
        effort.one_of("none minimal low medium high xhigh max")?;
    }
    if let Some(tier) = root.field("service_tier") {
        tier.one_of(TIERS)?;
    }
    if let Some(options) = root.field("stream_options") {
        options.fields("include_usage include_obfuscation")?;
    }
    Ok(())
}

fn check_message(message: &Place<'_>) -> Checked {
    let role = message.need("role")?.text()?;
    let Some((_, fields, parts)) = MESSAGES.iter().find(|row| row.0 == role) else { return Ok(()) };
    message.fields(fields)?;
    let calls = message.entries("tool_calls")?;
    match message.field("content") {
        None if calls.is_empty() && message.field("refusal").is_none() && message.field("function_call").is_none() => {
            return Err(Refusal::bad(&format!("{}.content", message.path), "expected a string, got null."));
        }
        Some(content) if !content.value.is_string() => {
            let list = content.list()?;
            if list.is_empty() {
                return Err(content.wrong("expected at least one part"));
            }
            for part in list {
                check_part(&part, parts)?;
            }
        }
        _ => {}
    }
    if message.field("tool_calls").is_some() && calls.is_empty() {
        return Err(Refusal::bad(&format!("{}.tool_calls", message.path), "[] is too short - 'tool_calls'"));
    }
    calls.iter().try_for_each(check_call)
}

fn check_part(part: &Place<'_>, allowed: &str) -> Checked {
    let word = part.need("type")?.text()?;
    let row = PARTS.iter().find(|row| row.0 == word && allowed.split_whitespace().any(|known| known == word));
    let Some((_, fields)) = row else {
        let text = format!("Invalid value: '{word}'. Supported values are: {allowed}.");
        return Err(Refusal::bad(&format!("{}.type", part.path), &text).with_code(Some("invalid_value")));
    };
    part.fields(fields)?;
    match word {
        "text" => part.need("text")?.text().map(drop),
        "image_url" => {
            let image = part.need("image_url")?;
            image.fields("url! detail")?;
            if let Some(detail) = image.field("detail") {
                detail.one_of("auto low high original")?;
            }
            data_url(&image.need("url")?)
        }
        "input_audio" => {
            let audio = part.need("input_audio")?;
            audio.fields("data! format!")?;
            audio.need("format")?.one_of("wav mp3").map(drop)
        }
        "file" => part.need("file")?.fields("file_id file_data filename").map(drop),
        _ => Ok(()),
    }
}

fn check_call(call: &Place<'_>) -> Checked {
    let id = call.need("id")?;
    if !(1..=64).contains(&id.text()?.len()) {
        return Err(id.wrong("string too long: expected a string with maximum length 64"));
    }
    let (function, text) = match call.need("type")?.one_of("function custom")? {
        "custom" => (call.need("custom")?, "input"),
        _ => (call.need("function")?, "arguments"),
    };
    // OpenAI's own helper of streams leaves the index in what it puts together.
    call.fields("id! type! function custom index")?;
    function.fields(&format!("name! {text}!"))?;
    check_name(&function.need("name")?)?;
    function.need(text)?.text().map(drop)
}

fn check_name(name: &Place<'_>) -> Checked {
    let fits = is_name(name.text()?, 64);
    if fits { Ok(()) } else { Err(name.wrong("expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'")) }
}

/// The names of all tools.
fn tools<'a>(root: &Place<'a>) -> Checked<BTreeSet<&'a str>> {
    let mut names = BTreeSet::new();
    if root.value.get("tools").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return Err(Refusal::bad("tools", "[] is too short - 'tools'"));
    }
    for tool in root.entries("tools")? {
        let kind = tool.need("type")?.one_of("function custom")?;
        tool.fields(&format!("type! {kind}!"))?;
        let inner = tool.need(kind)?;
        inner.fields(if kind == "custom" {
            "name! description format"
        } else {
            "name! description parameters strict"
        })?;
        let name = inner.need("name")?;
        check_name(&name)?;
        names.insert(name.text()?);
        if let Some(schema) = inner.field("parameters") {
            if schema.value["type"] != "object" {
                let got = schema.value["type"].as_str().unwrap_or("None");
                let text = format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{got}\"'.");
                return Err(Refusal::bad(
                    &schema.path,
                    &format!("Invalid schema for function '{}': {text}", name.text()?),
                ));
            }
            if inner.flag("strict")? {
                strict_schema(&schema, name.text()?)?;
            }
        }
    }
    Ok(names)
}

fn tool_choice(root: &Place<'_>, names: &BTreeSet<&str>) -> Checked {
    for field in ["tool_choice", "parallel_tool_calls"] {
        if names.is_empty() && root.field(field).is_some() {
            let text = format!("'{field}' is only allowed when 'tools' are specified.");
            return Err(Refusal::bad(field, &text));
        }
    }
    let Some(choice) = root.field("tool_choice") else { return Ok(()) };
    if choice.value.is_string() {
        return choice.one_of("none auto required").map(drop);
    }
    let kind = choice.need("type")?.one_of("function custom allowed_tools")?;
    choice.fields(&format!("type! {kind}!"))?;
    let inner = choice.need(kind)?;
    if kind == "allowed_tools" {
        inner.fields("mode! tools!")?;
        return inner.need("mode")?.one_of("auto required").map(drop);
    }
    inner.fields("name!")?;
    let name = inner.need("name")?;
    if names.contains(name.text()?) {
        return Ok(());
    }
    Err(Refusal::bad("tool_choice", &format!("Tool choice '{}' not found in 'tools' parameter.", name.text()?)))
}

fn numbers(root: &Place<'_>) -> Checked {
    root.number("temperature", 0.0, 2.0)?;
    root.number("top_p", 0.0, 1.0)?;
    root.number("frequency_penalty", -2.0, 2.0)?;
    root.number("presence_penalty", -2.0, 2.0)?;
    root.whole("n", 1, 128)?;
    if root.whole("top_logprobs", 0, 20)?.is_some() && !root.flag("logprobs")? {
        return Err(Refusal::bad(
            "top_logprobs",
            "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
        ));
    }
    if root.field("max_tokens").is_some() && root.field("max_completion_tokens").is_some() {
        let text = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(Refusal::bad("max_tokens", text));
    }
    if root.value["stop"].as_array().is_some_and(|stop| stop.len() > 4) {
        return Err(Refusal::bad("stop", "array too long: expected an array with maximum length 4"));
    }
    if let Some(metadata) = root.field("metadata") {
        let map = metadata.value.as_object().filter(|map| map.len() <= 16 && map.values().all(Value::is_string));
        map.ok_or_else(|| metadata.wrong("expected at most 16 pairs of strings"))?;
    }
    Ok(())
}

fn format(root: &Place<'_>) -> Checked {
    let Some(format) = root.field("response_format") else { return Ok(()) };
    match format.need("type")?.one_of("text json_object json_schema")? {
        "json_schema" => {
            format.fields("type! json_schema!")?;
            let inner = format.need("json_schema")?;
            inner.fields("name! schema description strict")?;
            check_name(&inner.need("name")?)?;
            match inner.field("schema").filter(|_| inner.flag("strict").unwrap_or(false)) {
                Some(schema) => strict_schema(&schema, "response_format"),
                None => Ok(()),
            }
        }
        "json_object" if !root.value["messages"].to_string().to_lowercase().contains("json") => {
            let text =
                "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.";
            Err(Refusal::bad("messages", text))
        }
        _ => format.fields("type!").map(drop),
    }
}
