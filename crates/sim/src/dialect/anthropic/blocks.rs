//! Content blocks: which there are, where they may stand and what they must contain.

use serde_json::Value;

use super::super::check::{Checked, Place, is_name};
use super::super::seal;
use crate::refusal::Refusal;

/// Type, where it may stand (`u`ser, `a`ssistant, tool `r`esult, `s`ystem), fields.
const BLOCKS: &[(&str, &str, &str)] = &[
    ("text", "uars", "type! text! cache_control citations"),
    ("image", "ur", "type! source! cache_control transformations"),
    ("document", "ur", "type! source! title context citations cache_control"),
    ("search_result", "ur", "type! source! title! content! citations cache_control"),
    ("tool_reference", "r", "type! tool_name! cache_control"),
    ("tool_use", "a", "type! id! name! input! caller toolset_name cache_control"),
    ("tool_result", "u", "type! tool_use_id! content is_error cache_control"),
    ("thinking", "a", "type! thinking! signature!"),
    ("redacted_thinking", "a", "type! data!"),
    ("container_upload", "u", "type! file_id! cache_control"),
    ("server_tool_use", "a", "type! id! name! input! caller cache_control"),
    ("web_search_tool_result", "ua", "type! tool_use_id! content! caller cache_control"),
    ("web_fetch_tool_result", "ua", "type! tool_use_id! content! caller cache_control"),
    ("code_execution_tool_result", "ua", "type! tool_use_id! content! cache_control"),
];

const PICTURES: &str = "image/jpeg image/png image/gif image/webp";

/// One block at one of the places above.
pub(super) fn check(block: &Place<'_>, place: char) -> Checked {
    let kind = block.need("type")?;
    let word = kind.text()?;
    let row = BLOCKS.iter().find(|row| row.0 == word && row.1.contains(place));
    let Some((_, _, fields)) = row else {
        let known: Vec<_> = BLOCKS.iter().filter(|row| row.1.contains(place)).map(|row| row.0).collect();
        let text = format!("Input tag '{word}' found using 'type' does not match any of the expected tags: {known:?}");
        return Err(block.wrong(&text));
    };
    block.fields(fields)?;
    match word {
        "text" if block.need("text")?.text()?.is_empty() => {
            return Err(Refusal::bad(&block.path, "messages: text content blocks must be non-empty"));
        }
        "text" if block.need("text")?.text()?.trim().is_empty() => {
            return Err(Refusal::bad(&block.path, "messages: text content blocks must contain non-whitespace text"));
        }
        "text" => {}
        "image" => picture(&block.need("source")?)?,
        "document" => document(&block.need("source")?)?,
        "tool_use" => {
            for name in ["id", "name"] {
                let place = block.need(name)?;
                if !is_name(place.text()?, 128) {
                    return Err(place.wrong("String should match pattern '^[a-zA-Z0-9_-]+$'"));
                }
            }
            if !block.need("input")?.value.is_object() {
                return Err(block.need("input")?.wrong("Input should be a valid dictionary"));
            }
        }
        "tool_result" => {
            block.flag("is_error")?;
            let id = block.need("tool_use_id")?;
            if !is_name(id.text()?, 128) {
                return Err(id.wrong("String should match pattern '^[a-zA-Z0-9_-]+$'"));
            }
            if let Some(content) = block.field("content").filter(|content| !content.value.is_string()) {
                for inner in content.list()? {
                    check(&inner, 'r')?;
                }
            }
        }
        "thinking" => {
            let thought = block.need("thinking")?.text()?;
            if block.need("signature")?.text()? != seal::of("anthropic", thought) {
                return Err(block.wrong("Invalid `signature` in `thinking` block"));
            }
        }
        "redacted_thinking" if block.need("data")?.text()? != seal::of("redacted", "") => {
            return Err(block.wrong("Invalid `data` in `redacted_thinking` block"));
        }
        _ => {}
    }
    Ok(())
}

fn picture(source: &Place<'_>) -> Checked {
    match source.need("type")?.one_of("base64 url file")? {
        "base64" => {
            source.fields("type! media_type! data!")?;
            source.need("media_type")?.one_of(PICTURES)?;
            data(source)
        }
        "url" => source.fields("type! url!").map(drop),
        _ => source.fields("type! file_id!").map(drop),
    }
}

fn document(source: &Place<'_>) -> Checked {
    match source.need("type")?.one_of("base64 text content url file")? {
        "base64" => {
            source.fields("type! media_type! data!")?;
            source.need("media_type")?.one_of("application/pdf")?;
            data(source)
        }
        "text" => {
            source.fields("type! media_type! data!")?;
            source.need("media_type")?.one_of("text/plain").map(drop)
        }
        "content" => source.fields("type! content!").map(drop),
        "url" => source.fields("type! url!").map(drop),
        _ => source.fields("type! file_id!").map(drop),
    }
}

fn data(source: &Place<'_>) -> Checked {
    let data = source.need("data")?;
    if seal::is_base64(data.text()?) { Ok(()) } else { Err(data.wrong("invalid base64 data")) }
}

/// The text that counts as words: of text blocks, and of tool results.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match block["type"].as_str() {
                Some("text") => block["text"].as_str().unwrap_or_default().to_string(),
                Some("tool_result") => text_of(&block["content"]),
                _ => String::new(),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Cache marks anywhere in the request: well formed, on nothing that cannot be cached, four at
/// most.
pub(super) fn check_marks(root: &Place<'_>) -> Checked {
    let mut marks = 0;
    marks_in(root, &mut marks)?;
    if marks > 4 {
        let text = format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}.");
        return Err(Refusal::bad("cache_control", &text));
    }
    Ok(())
}

fn marks_in(place: &Place<'_>, marks: &mut usize) -> Checked {
    match place.value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if place.path.is_empty() { key.clone() } else { format!("{}.{key}", place.path) };
                let inner = Place { path, value, ..place.clone() };
                match key.as_str() {
                    "cache_control" => {
                        inner.fields("type! ttl")?;
                        inner.need("type")?.one_of("ephemeral")?;
                        if let Some(ttl) = inner.field("ttl") {
                            ttl.one_of("5m 1h")?;
                        }
                        *marks += 1;
                    }
                    // Free-form: a field of that name is no mark there.
                    "input" | "input_schema" | "schema" => {}
                    _ => marks_in(&inner, marks)?,
                }
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                marks_in(&Place { path: format!("{}.{at}", place.path), value, ..place.clone() }, marks)?;
            }
        }
        _ => {}
    }
    Ok(())
}
