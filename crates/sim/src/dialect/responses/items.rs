//! Input items: which there are, what they must contain, and that calls, results and sealed
//! thoughts belong together.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::check::{Checked, Place};
use super::super::seal;
use crate::refusal::Refusal;

/// Type and fields. Items of tools that run at the provider are not looked into.
const ITEMS: &[(&str, &str)] = &[
    ("message", "type role! content! id status phase"),
    ("function_call", "type! call_id! name! arguments! id status namespace"),
    ("function_call_output", "type! call_id! output! id status"),
    ("custom_tool_call", "type! call_id! name! input! id status namespace"),
    ("custom_tool_call_output", "type! call_id! output! id status"),
    ("reasoning", "type! summary! id content encrypted_content status"),
    ("item_reference", "type id!"),
    ("compaction", "type! encrypted_content! id"),
];
const HOSTED: &str = "web_search_call file_search_call code_interpreter_call computer_call computer_call_output \
    image_generation_call local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call \
    apply_patch_call_output mcp_list_tools mcp_call mcp_approval_request mcp_approval_response tool_search_call \
    tool_search_output compaction_trigger configuration_update additional_tools program program_output";

const CONTENT: &[(&str, &str)] = &[
    ("input_text", "type! text! prompt_cache_breakpoint"),
    ("input_image", "type! image_url file_id detail prompt_cache_breakpoint"),
    ("input_file", "type! file_data file_id file_url filename detail prompt_cache_breakpoint"),
];
const ANSWERED: &[(&str, &str)] = &[("output_text", "type! text! annotations logprobs"), ("refusal", "type! refusal!")];

/// What the input comes to.
#[derive(Default)]
pub(super) struct Input {
    pub all_text: String,
    pub last_user: String,
    pub calls: usize,
    pub ends_with_result: bool,
}

pub(super) fn read(input: &Place<'_>) -> Checked<Input> {
    let mut read = Input::default();
    if let Some(text) = input.value.as_str() {
        (read.all_text, read.last_user) = (text.to_string(), text.to_string());
        return Ok(read);
    }
    let items = input.list()?;
    if items.is_empty() {
        return Err(input.wrong("expected at least one item"));
    }
    for item in &items {
        let kind = kind(item)?;
        read.ends_with_result = kind.ends_with("_output");
        let text = match kind {
            "message" => message(item)?,
            "function_call" | "custom_tool_call" => {
                read.calls += 1;
                call(item)?
            }
            "function_call_output" | "custom_tool_call_output" => output(item)?,
            "reasoning" => thought(item)?,
            _ => String::new(),
        };
        if kind == "message" && item.value["role"] == "user" {
            read.last_user.clone_from(&text);
        }
        read.all_text += &text;
        read.all_text += "\n";
    }
    together(&items)?;
    Ok(read)
}

/// The type of an item, which may be left out for messages and references.
fn kind<'a>(item: &Place<'a>) -> Checked<&'a str> {
    let word = match item.field("type") {
        Some(kind) => kind.text()?,
        None if item.value.get("role").is_some() => "message",
        None => "item_reference",
    };
    if HOSTED.split_whitespace().any(|known| known == word) {
        return Ok(word);
    }
    let Some((_, fields)) = ITEMS.iter().find(|row| row.0 == word) else {
        return Err(item.wrong(&format!("'{word}' is not a supported type of item")));
    };
    item.fields(fields)?;
    check_id(item, word)?;
    if word == "item_reference" || word == "compaction" {
        return Err(not_found(item.value["id"].as_str().unwrap_or_default()));
    }
    Ok(word)
}

/// An item's own id tells what it is.
fn check_id(item: &Place<'_>, kind: &str) -> Checked {
    let prefix = match kind {
        "message" => "msg",
        "function_call" => "fc",
        "custom_tool_call" => "ctc",
        "reasoning" => "rs",
        _ => return Ok(()),
    };
    let Some(id) = item.field("id") else { return Ok(()) };
    if id.text()?.starts_with(prefix) {
        return Ok(());
    }
    let (path, said) = (&id.path, id.text()?);
    Err(Refusal::bad(path, &format!("Invalid '{path}': '{said}'. Expected an ID that begins with '{prefix}'.")))
}

fn not_found(id: &str) -> Refusal {
    let text = format!("Item with id '{id}' not found. Items are not persisted when `store` is set to false.");
    Refusal { status: 404, code: None, ..Refusal::bad("input", &text) }
}

fn message(item: &Place<'_>) -> Checked<String> {
    let role = item.need("role")?.one_of("user system developer assistant")?;
    if let Some(phase) = item.field("phase") {
        phase.one_of("commentary final_answer")?;
    }
    let content = item.need("content")?;
    if let Some(text) = content.value.as_str() {
        return Ok(text.to_string());
    }
    parts(&content, if role == "assistant" { ANSWERED } else { CONTENT })
}

fn parts(content: &Place<'_>, table: &[(&str, &str)]) -> Checked<String> {
    let mut texts = Vec::new();
    for part in content.list()? {
        let word = part.need("type")?.text()?;
        let Some((_, fields)) = table.iter().find(|row| row.0 == word) else {
            let known: Vec<_> = table.iter().map(|row| row.0).collect();
            let text = format!("Invalid value: '{word}'. Supported values are: {known:?}.");
            return Err(Refusal::bad(&format!("{}.type", part.path), &text).with_code(Some("invalid_value")));
        };
        part.fields(fields)?;
        if word == "input_image" && part.field("image_url").is_none() && part.field("file_id").is_none() {
            return Err(Refusal::missing(&format!("{}.image_url", part.path)));
        }
        if let Some(url) = part.field("image_url") {
            check_url(&url)?;
        }
        texts.push(part.value["text"].as_str().unwrap_or_default().to_string());
    }
    Ok(texts.join("\n"))
}

pub(in super::super) fn check_url(url: &Place<'_>) -> Checked {
    let text = url.text()?;
    let data = text.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let fits = data.map_or_else(|| text.starts_with("http"), |(_, data)| seal::is_base64(data));
    if fits { Ok(()) } else { Err(url.wrong("expected a valid URL or a base64-encoded data URL")) }
}

fn call(item: &Place<'_>) -> Checked<String> {
    call_id(item)?;
    let name = item.need("name")?;
    if !super::super::check::is_name(name.text()?, 64) {
        return Err(name.wrong("expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"));
    }
    for field in ["arguments", "input"] {
        if let Some(place) = item.field(field) {
            place.text()?;
        }
    }
    Ok(String::new())
}

fn call_id(item: &Place<'_>) -> Checked {
    let id = item.need("call_id")?;
    match id.text()?.len() {
        0 => Err(id.wrong("empty string: expected a string with minimum length 1")),
        1..=64 => Ok(()),
        _ => Err(id.wrong("string too long: expected a string with maximum length 64")),
    }
}

fn output(item: &Place<'_>) -> Checked<String> {
    call_id(item)?;
    let output = item.need("output")?;
    match output.value.as_str() {
        Some(text) => Ok(text.to_string()),
        None => parts(&output, CONTENT),
    }
}

/// Sealed thoughts are bound to the item they came in; without a seal the item would have to be
/// stored here.
fn thought(item: &Place<'_>) -> Checked<String> {
    item.need("summary")?.list()?;
    let id = item.field("id").map_or(Ok(""), |id| id.text())?;
    let Some(sealed) = item.field("encrypted_content") else {
        return Err(not_found(id));
    };
    let sealed = sealed.text()?;
    let bound = sealed.split_once('.').filter(|(bound, seal)| *seal == seal::of("openai", bound));
    if bound.is_none_or(|(bound, _)| !id.is_empty() && bound != id) {
        let text = "The encrypted content for item could not be verified.";
        return Err(Refusal::bad("input", text).with_code(Some("invalid_encrypted_content")));
    }
    Ok(String::new())
}

/// Calls have results and results calls; a thought stands before what came of it, and what came of
/// a thought after it.
fn together(items: &[Place<'_>]) -> Checked {
    let ids = |suffix: &str| {
        let of_kind =
            items.iter().filter(|item| item.value["type"].as_str().is_some_and(|kind| kind.ends_with(suffix)));
        of_kind.filter_map(|item| item.value["call_id"].as_str()).collect::<Vec<_>>()
    };
    let mut calls = ids("function_call");
    calls.extend(ids("custom_tool_call"));
    let mut results = ids("function_call_output");
    results.extend(ids("custom_tool_call_output"));
    if let Some(id) = results.iter().find(|id| !calls.contains(id)) {
        return Err(Refusal::bad("input", &format!("No tool call found for function call output with call_id {id}.")));
    }
    if let Some(id) = calls.iter().find(|id| !results.contains(id)) {
        return Err(Refusal::bad("input", &format!("No tool output found for function call {id}.")));
    }
    let mut known = BTreeSet::new();
    if let Some(id) = items.iter().filter_map(|item| item.value["id"].as_str()).find(|id| !known.insert(*id)) {
        let text = format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again.");
        return Err(Refusal::bad("input", &text));
    }
    let is_thought = |item: &Place<'_>| item.value["type"] == "reasoning";
    for (at, item) in items.iter().enumerate() {
        let next = items.get(at + 1).map(|item| item.value);
        let follows =
            next.is_some_and(|next| next["role"] == "assistant" || matches_call(next) || next["type"] == "reasoning");
        if is_thought(item) && !follows {
            let text = "Item of type 'reasoning' was provided without its required following item.";
            return Err(Refusal::bad("input", text));
        }
        let id = item.value["id"].as_str().unwrap_or_default();
        let thought_of =
            (id.starts_with("fc_thought_") || id.starts_with("ctc_thought_")) && !items[..at].iter().any(is_thought);
        if thought_of {
            let text =
                format!("Item '{id}' of type 'function_call' was provided without its required 'reasoning' item.");
            return Err(Refusal::bad("input", &text));
        }
    }
    Ok(())
}

fn matches_call(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
}
