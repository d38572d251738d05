//! The order of turns: who speaks first, that nobody says nothing, and that every call has its
//! result in the turn after it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::check::{Checked, Place};
use super::blocks;
use crate::ask::words;
use crate::refusal::Refusal;

/// What the history comes to.
#[derive(Default)]
pub(super) struct History {
    pub words: u64,
    pub last_user: String,
    pub calls: usize,
    pub ends_with_result: bool,
}

pub(super) fn read(messages: &[Place<'_>], tools: bool) -> Checked<History> {
    let mut history = History::default();
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut last_role = "";
    for (at, message) in messages.iter().enumerate() {
        message.fields("role! content!")?;
        let role = message.need("role")?.one_of("user assistant system")?;
        if at == 0 && role != "user" {
            return Err(Refusal::bad("messages", "messages: first message must use the \"user\" role"));
        }
        if role == "system" {
            check_place(messages, at)?;
        }
        let content = message.need("content")?;
        check_content(&content, role, at + 1 == messages.len())?;
        // Turns of one speaker are merged, so results may be spread over them; they are due before
        // the next answer.
        if role == "assistant" && last_role != "assistant" {
            unanswered(&open, at)?;
        }
        let (calls, results) =
            (ids_of(content.value, "tool_use", "id"), ids_of(content.value, "tool_result", "tool_use_id"));
        if !(tools || calls.is_empty() && results.is_empty()) {
            let text = "Requests which have `tool_use` or `tool_result` blocks in `messages` must define tools.";
            return Err(Refusal::bad("tools", text));
        }
        if role == "user" {
            answered(&content, &results, &mut open)?;
        }
        for id in &calls {
            if !ids.insert(id.clone()) {
                return Err(content.wrong(&format!("`tool_use` ids must be unique: {id}")));
            }
        }
        history.calls += calls.len();
        open.extend(calls);
        history.words += words(&blocks::text_of(content.value));
        if role == "user" {
            history.ends_with_result = !results.is_empty();
            if let Some(text) = spoken(content.value) {
                history.last_user = text;
            }
        }
        last_role = role;
    }
    unanswered(&open, messages.len())?;
    Ok(history)
}

/// A system turn in the middle stands after a user's, and either ends the history or is answered at
/// once.
fn check_place(messages: &[Place<'_>], at: usize) -> Checked {
    let role = |at: usize| messages.get(at).map(|message| message.value["role"].as_str().unwrap_or_default());
    let (before, after) = (at.checked_sub(1).and_then(role), role(at + 1));
    if before == Some("user") && matches!(after, None | Some("assistant")) {
        return Ok(());
    }
    let text = "role 'system' must follow a user turn and be last or before an assistant turn";
    Err(messages[at].wrong(text))
}

fn check_content(content: &Place<'_>, role: &str, last: bool) -> Checked {
    let place = match role {
        "user" => 'u',
        "assistant" => 'a',
        _ => 's',
    };
    let empty = match content.value {
        Value::String(text) => text.is_empty(),
        _ => {
            let list = content.list()?;
            for block in &list {
                blocks::check(block, place)?;
            }
            list.is_empty()
        }
    };
    if empty && !(last && role == "assistant") {
        let text = "all messages must have non-empty content except for the optional final assistant message";
        return Err(content.wrong(text));
    }
    let end = match content.value {
        Value::String(text) => text.as_str(),
        other => other.as_array().and_then(|list| list.last()?["text"].as_str()).unwrap_or_default(),
    };
    if last && role == "assistant" && end.ends_with(char::is_whitespace) {
        return Err(content.wrong("final assistant content cannot end with trailing whitespace"));
    }
    Ok(())
}

fn ids_of(content: &Value, kind: &str, field: &str) -> Vec<String> {
    let blocks = content.as_array().into_iter().flatten().filter(|block| block["type"] == kind);
    blocks.map(|block| block[field].as_str().unwrap_or_default().to_string()).collect()
}

/// Results stand first, each for an open call, one for each.
fn answered(content: &Place<'_>, results: &[String], open: &mut Vec<String>) -> Checked {
    for id in results {
        let Some(place) = open.iter().position(|known| known == id) else {
            let text = format!(
                "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a \
                 corresponding `tool_use` block in the previous message."
            );
            return Err(content.wrong(&text));
        };
        open.remove(place);
    }
    let blocks = content.value.as_array().into_iter().flatten();
    let first_other = blocks.clone().position(|block| block["type"] != "tool_result");
    let last_result = blocks.clone().filter(|block| block["type"] == "tool_result").count();
    if !results.is_empty() && first_other.is_some_and(|first| first < last_result) {
        return Err(content.wrong("`tool_result` blocks must come before other content in the turn after `tool_use`"));
    }
    Ok(())
}

fn unanswered(open: &[String], at: usize) -> Checked {
    if open.is_empty() {
        return Ok(());
    }
    let text = format!(
        "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        at.saturating_sub(1),
        open.join(", ")
    );
    Err(Refusal::bad("messages", &text))
}

/// What a person said in the turn, if anything.
fn spoken(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        other => {
            let blocks = other.as_array()?.iter().filter(|block| block["type"] == "text");
            let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
    }
}
