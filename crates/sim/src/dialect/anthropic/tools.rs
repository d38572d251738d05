//! Tool definitions and the choice among them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::check::{Checked, Place, is_name};
use super::strict_schema;
use crate::ask::Tool;
use crate::refusal::Refusal;

const FIELDS: &str = "name! input_schema! description type strict cache_control defer_loading eager_input_streaming \
    input_examples allowed_callers";

pub(super) fn read(root: &Place<'_>) -> Checked<Vec<Tool>> {
    let mut offered = Vec::new();
    let mut names = BTreeSet::new();
    let tools = root.entries("tools")?;
    for tool in &tools {
        let name = tool.need("name")?;
        let word = name.text()?;
        if !is_name(word, 128) {
            return Err(name.wrong("String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"));
        }
        if !names.insert(word) {
            return Err(Refusal::bad("tools", "tools: Tool names must be unique."));
        }
        if tool.field("type").is_some_and(|kind| kind.value != "custom") {
            // A tool that runs at the provider, named with its version.
            continue;
        }
        tool.fields(FIELDS)?;
        let schema = tool.need("input_schema")?;
        if schema.value["type"] != json!("object") {
            return Err(schema.wrong("type: Input should be 'object'"));
        }
        if tool.flag("strict")? {
            strict_schema(&schema)?;
        }
        offered.push(Tool { name: word.to_string(), schema: schema.value.clone(), free: false });
    }
    choice(root, tools.is_empty(), &names)?;
    Ok(offered)
}

fn choice(root: &Place<'_>, none: bool, names: &BTreeSet<&str>) -> Checked {
    let Some(choice) = root.field("tool_choice") else { return Ok(()) };
    if none {
        return Err(Refusal::bad("tool_choice", "tool_choice: may only be specified while providing tools"));
    }
    match choice.need("type")?.one_of("auto any tool none")? {
        "tool" => {
            choice.fields("type! name! disable_parallel_tool_use")?;
            let name = choice.need("name")?;
            if !names.contains(name.text()?) {
                return Err(name.wrong(&format!("Tool '{}' not found in provided tools", name.text()?)));
            }
        }
        "none" => {
            choice.fields("type!")?;
        }
        _ => {
            choice.fields("type! disable_parallel_tool_use")?;
        }
    }
    if choice.value.get("disable_parallel_tool_use").is_some_and(|flag| !matches!(flag, Value::Bool(_))) {
        return Err(choice.wrong("disable_parallel_tool_use: expected a boolean"));
    }
    Ok(())
}
