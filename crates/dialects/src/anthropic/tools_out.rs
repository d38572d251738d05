//! Tools and the choice among them, written for a provider that speaks Anthropic messages.

use super::blocks_out::Marks;
use super::thinking::choice_beside;
use crate::hub::{
    Ask, Carry, FREE_TEXT, NO_ARGUMENTS, Tool, ToolChoice, ToolKind, any_text, chosen_name, free_text_schema, sent_name,
};
use std::borrow::Cow;
use std::collections::HashSet;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// What Anthropic's search is called.
const SEARCH: &str = "web_search";

pub(super) fn write(
    ask: &Ask<'_>,
    thinking: bool,
    body: &mut Object<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    if ask.tools.is_empty() {
        return history_tools(ask, body);
    }
    let allowed = match &ask.choice {
        Some(ToolChoice::Allowed { names, .. }) => {
            carry.drop("tool_choice.allowed_tools")?;
            Some(names)
        }
        _ => None,
    };
    let mut list = Array::begin(body.key("tools"));
    for tool in &ask.tools {
        if allowed.is_none_or(|names| names.contains(&tool.name)) {
            write_tool(tool, &mut list, carry, marks)?;
        }
    }
    list.end();
    let choice = choice_beside(ask.choice.as_ref(), thinking, carry)?;
    let (kind, name) = match choice {
        None if ask.parallel == Some(false) => ("auto", None),
        None => return Ok(()),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => ("auto", None),
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => ("any", None),
        Some(ToolChoice::Named(_)) if ask.chooses_search() => ("tool", Some(Cow::Borrowed(SEARCH))),
        Some(ToolChoice::Named(name)) => ("tool", Some(chosen_name(Dialect::Anthropic, &ask.tools, name))),
        Some(ToolChoice::Foreign(_)) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    };
    body.object("tool_choice", |inner| {
        inner.text("type", kind);
        inner.maybe("name", name.as_deref());
        if ask.parallel == Some(false) && kind != "none" {
            inner.bool("disable_parallel_tool_use", true);
        }
    });
    Ok(())
}

/// Anthropic refuses calls in the history of a request without tools: they are declared from it.
fn history_tools(ask: &Ask<'_>, body: &mut Object<'_>) -> Result<(), Problem> {
    let mut known: HashSet<String> = HashSet::new();
    let mut names: Vec<String> = Vec::new();
    for call in ask.turns.iter().flat_map(|turn| turn.calls()) {
        let name = sent_name(Dialect::Anthropic, call.namespace.as_deref(), &call.name).into_owned();
        if known.insert(name.clone()) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        body.array("tools", |list| {
            for name in &names {
                list.object(|tool| {
                    tool.text("name", name);
                    tool.text("description", "Used earlier in this conversation.");
                    tool.raw("input_schema", NO_ARGUMENTS);
                });
            }
        });
        body.object("tool_choice", |choice| choice.text("type", "none"));
    }
    Ok(())
}

pub(super) fn write_tool(
    tool: &Tool<'_>,
    list: &mut Array<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    let schema = match &tool.kind {
        ToolKind::Function { schema, .. } if carry.home => schema.as_deref().map(Cow::Borrowed),
        ToolKind::Function { .. } => Some(carry.arguments(tool)?.map_or(Cow::Borrowed(NO_ARGUMENTS), Cow::Owned)),
        ToolKind::Custom { format } => {
            carry.drop_if(&format!("{}.format", tool.at), !any_text(*format))?;
            Some(Cow::Owned(free_text_schema(FREE_TEXT)))
        }
        ToolKind::WebSearch(raw) | ToolKind::Hosted(raw) if carry.home => {
            list.raw(raw);
            return Ok(());
        }
        ToolKind::WebSearch(_) => {
            list.object(|one| {
                one.text("type", "web_search_20250305");
                one.text("name", SEARCH);
            });
            return Ok(());
        }
        // None is left.
        ToolKind::Hosted(_) => return Ok(()),
    };
    let strict = match tool.kind {
        ToolKind::Function { strict, .. } => strict.filter(|strict| *strict || carry.home),
        _ => None,
    };
    let name = match carry.home {
        true => Cow::Borrowed(tool.name.as_ref()),
        false => sent_name(Dialect::Anthropic, tool.namespace.as_deref(), &tool.name),
    };
    list.object(|one| {
        one.text("name", &name);
        one.maybe("description", tool.description.as_deref());
        one.maybe_raw("input_schema", schema.as_deref());
        if let Some(strict) = strict {
            one.bool("strict", strict);
        }
        marks.put(one, tool.cached, carry);
        carry.own(one, "", &tool.rest);
    });
    Ok(())
}
