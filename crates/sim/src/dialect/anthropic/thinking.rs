//! Thinking: its budget, what it does not go with, and that a turn which is still calling tools
//! keeps its thoughts.

use serde_json::Value;

use super::super::check::{Checked, Place};
use crate::refusal::Refusal;

pub(super) fn check(root: &Place<'_>, limit: Option<i64>, messages: &[Place<'_>]) -> Checked {
    let Some(thinking) = root.field("thinking") else { return Ok(()) };
    match thinking.need("type")?.one_of("enabled adaptive disabled between_tools")? {
        "enabled" => {
            thinking.fields("type! budget_tokens! display")?;
            let budget = thinking.need("budget_tokens")?;
            let tokens = budget.value.as_i64().filter(|tokens| *tokens >= 1024);
            let tokens = tokens.ok_or_else(|| budget.wrong("Input should be greater than or equal to 1024"))?;
            if limit.is_some_and(|limit| tokens >= limit) {
                return Err(Refusal::bad("max_tokens", "`max_tokens` must be greater than `thinking.budget_tokens`."));
            }
            companions(root)?;
            thoughts(messages)
        }
        "adaptive" => {
            thinking.fields("type! display")?;
            companions(root)
        }
        _ => thinking.fields("type!").map(drop),
    }
}

fn companions(root: &Place<'_>) -> Checked {
    if root.field("temperature").is_some_and(|place| place.value.as_f64() != Some(1.0)) {
        return Err(Refusal::bad("temperature", "`temperature` may only be set to 1 when thinking is enabled."));
    }
    if root.field("top_p").is_some_and(|place| place.value.as_f64().is_none_or(|top_p| top_p < 0.95)) {
        let text = "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.";
        return Err(Refusal::bad("top_p", text));
    }
    if root.field("top_k").is_some() {
        return Err(Refusal::bad("top_k", "`top_k` must be unset when thinking is enabled."));
    }
    if root.field("tool_choice").is_some_and(|choice| matches!(choice.value["type"].as_str(), Some("any" | "tool"))) {
        return Err(Refusal::bad("tool_choice", "Thinking may not be enabled when tool_choice forces tool use."));
    }
    Ok(())
}

/// From the last thing a person said on, every assistant turn that is there begins with its
/// thoughts.
fn thoughts(messages: &[Place<'_>]) -> Checked {
    let is_result = |block: &Value| block["type"] == "tool_result";
    let said = |message: &Place<'_>| {
        let content = &message.value["content"];
        message.value["role"] == "user" && !content.as_array().is_some_and(|list| list.iter().any(is_result))
    };
    let start = messages.iter().rposition(said).map_or(0, |place| place + 1);
    for message in messages.iter().skip(start).filter(|message| message.value["role"] == "assistant") {
        let first = message.value["content"][0]["type"].as_str().unwrap_or("text");
        if !matches!(first, "thinking" | "redacted_thinking") {
            let text = format!(
                "{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is \
                 enabled, a final `assistant` message must start with a thinking block.",
                message.path
            );
            return Err(Refusal::bad("messages", &text));
        }
    }
    Ok(())
}
