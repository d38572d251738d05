//! Tools and the choice among them, written for a provider that speaks chat completions.

use crate::hub::{
    Ask, Carry, FREE_TEXT, Tool, ToolChoice, ToolKind, any_text, chosen_name, free_text_schema, grammar, sent_name,
};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

pub(super) fn write(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let (search, tools): (Vec<_>, Vec<_>) = ask.tools.iter().partition(|tool| is_search(tool));
    if !search.is_empty() {
        body.raw("web_search_options", "{}");
        // Models that have it search when they see fit.
        carry.drop_if("tool_choice", ask.chooses_search() || (tools.is_empty() && must_call(ask)))?;
    }
    if tools.is_empty() {
        return Ok(());
    }
    let mut list = Array::begin(body.key("tools"));
    for tool in tools {
        carry.drop_cache_mark(tool.cached)?;
        let schema = arguments(tool, carry)?;
        write_tool(tool, schema.as_deref(), &mut list, carry);
    }
    list.end();
    if let Some(parallel) = ask.parallel {
        body.bool("parallel_tool_calls", parallel);
    }
    let sent = |name: &str| chosen_name(Dialect::Chat, &ask.tools, name).into_owned();
    match &ask.choice {
        None => {}
        Some(ToolChoice::None) => body.text("tool_choice", "none"),
        Some(ToolChoice::Auto) => body.text("tool_choice", "auto"),
        Some(ToolChoice::Required) => body.text("tool_choice", "required"),
        Some(ToolChoice::Named(_)) if ask.chooses_search() => {}
        Some(ToolChoice::Named(name)) => {
            body.object("tool_choice", |choice| one_tool(choice, ask, name, &sent(name), carry));
        }
        Some(ToolChoice::Allowed { names, required }) => body.object("tool_choice", |choice| {
            choice.text("type", "allowed_tools");
            choice.object("allowed_tools", |allowed| {
                allowed.text("mode", if *required { "required" } else { "auto" });
                allowed.array("tools", |list| {
                    for name in names {
                        list.object(|tool| one_tool(tool, ask, name, &sent(name), carry));
                    }
                });
            });
        }),
        Some(ToolChoice::Foreign) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    }
    Ok(())
}

/// Wished for by a member of the request, not by a tool in the list.
fn is_search(tool: &Tool<'_>) -> bool {
    matches!(tool.kind, ToolKind::WebSearch)
}

fn must_call(ask: &Ask<'_>) -> bool {
    !matches!(ask.choice, None | Some(ToolChoice::None | ToolChoice::Auto))
}

/// The schema of a function's arguments, or of the one that stands for a tool with free text.
fn arguments(tool: &Tool<'_>, carry: &mut Carry<'_>) -> Result<Option<String>, Problem> {
    match &tool.kind {
        ToolKind::Custom { format } if !carry.target.takes_free_text() => {
            carry.drop_if(&format!("{}.format", tool.at), !any_text(*format))?;
            Ok(Some(free_text_schema(FREE_TEXT)))
        }
        _ => carry.arguments(tool),
    }
}

/// `{type, function: {name}}`, or the same of a tool with free text.
fn one_tool(object: &mut Object<'_>, ask: &Ask<'_>, name: &str, sent: &str, carry: &Carry<'_>) {
    let free = |tool: &Tool<'_>| tool.name == name && matches!(tool.kind, ToolKind::Custom { .. });
    let custom = carry.target.takes_free_text() && ask.tools.iter().any(free);
    let kind = if custom { "custom" } else { "function" };
    object.text("type", kind);
    object.object(kind, |inner| inner.text("name", sent));
}

fn write_tool(tool: &Tool<'_>, schema: Option<&str>, list: &mut Array<'_>, carry: &Carry<'_>) {
    let kind = match &tool.kind {
        ToolKind::Custom { .. } if carry.target.takes_free_text() => "custom",
        ToolKind::Function { .. } | ToolKind::Custom { .. } => "function",
        // None is left.
        ToolKind::WebSearch | ToolKind::Hosted(_) => return,
    };
    list.object(|one| {
        one.text("type", kind);
        one.object(kind, |inner| function(tool, schema, inner, carry));
    });
}

fn function(tool: &Tool<'_>, schema: Option<&str>, inner: &mut Object<'_>, carry: &Carry<'_>) {
    inner.text("name", &sent_name(Dialect::Chat, tool.namespace.as_deref(), &tool.name));
    inner.maybe("description", tool.description.as_deref());
    inner.maybe_raw("parameters", schema);
    if let ToolKind::Custom { format } = &tool.kind
        && carry.target.takes_free_text()
    {
        inner.maybe_raw("format", grammar(*format, true).as_deref());
    }
    if let ToolKind::Function { strict: Some(strict), .. } = tool.kind {
        inner.bool("strict", strict);
    }
}
