//! Tool definitions, which are flat here, and the choice among them.

use serde_json::{Value, json};

use super::super::check::{Checked, Place, is_name};
use crate::ask::Tool;
use crate::made::Made;
use crate::refusal::Refusal;

const HOSTED: &str = "web_search web_search_preview file_search code_interpreter image_generation mcp computer \
    computer_use_preview local_shell shell apply_patch tool_search programmatic_tool_calling";

pub(super) fn read(root: &Place<'_>) -> Checked<Vec<Tool>> {
    let mut offered = Vec::new();
    for tool in root.entries("tools")? {
        one(&tool, &mut offered)?;
    }
    choice(root, &offered)?;
    Ok(offered)
}

/// Whoever offers the tool that draws gets a picture, unless tools are switched off.
pub(super) fn made(root: &Place<'_>) -> Checked<Made> {
    let draws = root.entries("tools")?.iter().any(|tool| tool.value["type"] == "image_generation");
    Ok(if draws && root.value["tool_choice"] != "none" { Made::Picture } else { Made::Nothing })
}

fn one(tool: &Place<'_>, offered: &mut Vec<Tool>) -> Checked {
    let kind = tool.need("type")?;
    match kind.text()? {
        "function" => {
            let fields = "type! name! parameters strict description defer_loading async allowed_callers output_schema";
            tool.fields(fields)?;
            let schema = tool.field("parameters").map_or(json!({}), |schema| schema.value.clone());
            // Without a word the provider makes the schema strict where it can, and goes on without
            // where it cannot.
            let strict = tool.value.get("strict") == Some(&Value::Bool(true));
            if let Some(place) = tool.field("parameters").filter(|_| strict) {
                strict_schema(&place, tool.need("name")?.text()?)?;
            }
            offered.push(Tool { name: name(tool)?, schema, free: false });
        }
        "custom" => {
            tool.fields("type! name! description format defer_loading allowed_callers")?;
            offered.push(Tool { name: name(tool)?, schema: Value::Null, free: true });
        }
        "namespace" => {
            tool.fields("type! name! description tools!")?;
            for inner in tool.need("tools")?.list()? {
                one(&inner, offered)?;
            }
        }
        word if HOSTED.split_whitespace().any(|known| known == word) => {}
        word => return Err(kind.wrong(&format!("'{word}' is not a type of tool"))),
    }
    Ok(())
}

fn name(tool: &Place<'_>) -> Checked<String> {
    let name = tool.need("name")?;
    if !is_name(name.text()?, 64) {
        return Err(name.wrong("expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'"));
    }
    name.text().map(str::to_string)
}

fn choice(root: &Place<'_>, offered: &[Tool]) -> Checked {
    let Some(choice) = root.field("tool_choice") else { return Ok(()) };
    let none = root.entries("tools")?.is_empty();
    if choice.value.is_string() {
        let word = choice.one_of("none auto required")?;
        if word == "required" && none {
            return Err(Refusal::bad(
                "tool_choice",
                "Tool choice 'required' must be specified with 'tools' parameter.",
            ));
        }
        return Ok(());
    }
    match choice.need("type")?.text()? {
        "function" | "custom" => {
            choice.fields("type! name!")?;
            let name = choice.need("name")?;
            let known = offered.iter().any(|tool| Some(tool.name.as_str()) == name.value.as_str());
            if known { Ok(()) } else { Err(name.wrong("Tool choice not found in 'tools' parameter")) }
        }
        "allowed_tools" => choice.fields("type! mode! tools!").map(drop),
        "mcp" => choice.fields("type! server_label! name").map(drop),
        word if HOSTED.split_whitespace().any(|known| known == word) => choice.fields("type!").map(drop),
        word => Err(choice.wrong(&format!("'{word}' is not a tool choice"))),
    }
}

/// Strict schemas name every property as required and allow no other.
pub(in super::super) fn strict_schema(schema: &Place<'_>, name: &str) -> Checked {
    let bad = |what: &str| Refusal::bad(&schema.path, &format!("Invalid schema for function '{name}': {what}"));
    let properties = schema.value["properties"].as_object();
    if schema.value["type"] == "object" {
        if schema.value.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Err(bad("'additionalProperties' is required to be supplied and to be false."));
        }
        let required = schema.value["required"].as_array().cloned().unwrap_or_default();
        let missing = properties.and_then(|map| map.keys().find(|key| !required.contains(&json!(key))));
        if let Some(key) = missing {
            return Err(bad(&format!("'required' is required to include every key in properties. Missing '{key}'.")));
        }
    }
    if let Some(place) = schema.field("properties") {
        for key in properties.into_iter().flat_map(serde_json::Map::keys) {
            if let Some(inner) = place.field(key) {
                strict_schema(&inner, name)?;
            }
        }
    }
    schema.field("items").map_or(Ok(()), |items| strict_schema(&items, name))
}
