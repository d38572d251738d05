//! Function declarations, tools that run at Google, and the choice among them.

use serde_json::{Value, json};

use super::super::check::{Checked, Place};
use super::schema;
use crate::ask::Tool;
use crate::refusal::Refusal;

const KINDS: &str = "functionDeclarations googleSearch googleSearchRetrieval urlContext codeExecution googleMaps \
    fileSearch computerUse mcpServers";

pub(super) fn read(root: &Place<'_>) -> Checked<Vec<Tool>> {
    let mut offered = Vec::new();
    for tool in root.entries("tools")? {
        tool.fields(KINDS)?;
        for function in tool.entries("functionDeclarations")? {
            let tool = declared(&function)?;
            if offered.iter().any(|known: &Tool| known.name == tool.name) {
                let text = format!("Duplicate function declaration found: {}", tool.name);
                return Err(Refusal::bad("tools", &text));
            }
            offered.push(tool);
        }
    }
    choice(root, &offered)?;
    Ok(offered)
}

fn declared(function: &Place<'_>) -> Checked<Tool> {
    function.fields("name! description parameters parametersJsonSchema response responseJsonSchema behavior")?;
    let name = function.need("name")?;
    let word = name.text()?;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.:-".contains(letter);
    let first = word.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if !(first && word.len() <= 128 && word.chars().all(fits)) {
        let text = "Invalid function name. Must start with a letter or an underscore, at most 128 characters.";
        return Err(Refusal::bad(&name.path, text));
    }
    let (own, json) = (function.field("parameters"), function.field("parametersJsonSchema"));
    if own.is_some() && json.is_some() {
        return Err(function.wrong("only one of parameters and parameters_json_schema can be set"));
    }
    if let Some(own) = &own {
        schema::check(own)?;
    }
    let schema = own.or(json).map_or(json!({}), |schema| lowered(schema.value));
    Ok(Tool { name: word.to_string(), schema, free: false })
}

/// Types in small letters, as the maker of example arguments knows them.
fn lowered(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let lower = |(key, value): (&String, &Value)| match value.as_str() {
                Some(word) if key == "type" => (key.clone(), json!(word.to_lowercase())),
                _ => (key.clone(), lowered(value)),
            };
            map.iter().map(lower).collect()
        }
        Value::Array(list) => list.iter().map(lowered).collect(),
        other => other.clone(),
    }
}

pub(super) fn is_off(root: &Place<'_>) -> bool {
    let config = root.field("toolConfig").and_then(|config| config.field("functionCallingConfig"));
    config.is_some_and(|config| config.value["mode"] == "NONE")
}

/// Which function must be called; any when several may be.
pub(super) fn forced(root: &Place<'_>) -> Option<String> {
    let config = root.field("toolConfig").and_then(|config| config.field("functionCallingConfig"))?;
    let names = config.value["allowedFunctionNames"].as_array();
    let only = names.filter(|names| names.len() == 1).and_then(|names| names[0].as_str());
    (config.value["mode"] == "ANY").then(|| only.unwrap_or_default().to_string())
}

fn choice(root: &Place<'_>, offered: &[Tool]) -> Checked {
    let Some(config) = root.field("toolConfig") else { return Ok(()) };
    config.fields("functionCallingConfig retrievalConfig includeServerSideToolInvocations")?;
    let Some(calling) = config.field("functionCallingConfig") else { return Ok(()) };
    calling.fields("mode allowedFunctionNames streamFunctionCallArguments")?;
    let mode =
        calling.field("mode").map_or(Ok("AUTO"), |mode| mode.one_of("AUTO ANY NONE VALIDATED MODE_UNSPECIFIED"))?;
    let names = calling.entries("allowedFunctionNames")?;
    if !names.is_empty() && !matches!(mode, "ANY" | "VALIDATED") {
        let text = "Allowed function names should only be set when the function calling mode is ANY or VALIDATED.";
        return Err(Refusal::bad(&calling.path, text));
    }
    for name in names {
        if !offered.iter().any(|tool| name.value == tool.name.as_str()) {
            return Err(name.wrong("allowed function name is not declared"));
        }
    }
    if mode == "ANY" && offered.is_empty() {
        let text = "Function calling mode is set to ANY but no function declarations are provided.";
        return Err(Refusal::bad(&calling.path, text));
    }
    Ok(())
}
