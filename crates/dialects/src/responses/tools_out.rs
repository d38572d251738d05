//! Tools and the choice among them, written for a provider that speaks Responses.

use crate::hub::{Ask, Carry, Group, NO_ARGUMENTS, Tool, ToolChoice, ToolKind, grammar, sent_name};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// What the search of a Responses provider is called.
const SEARCH: &str = "web_search";

pub(super) fn write(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if carry.home {
        return own(ask, body, carry);
    }
    if ask.tools.is_empty() {
        return Ok(());
    }
    let mut list = Array::begin(body.key("tools"));
    for tool in &ask.tools {
        carry.unmarked(tool.cached)?;
        write_tool(tool, &mut list, carry)?;
    }
    list.end();
    if let Some(parallel) = ask.parallel {
        body.bool("parallel_tool_calls", parallel);
    }
    match &ask.choice {
        None => {}
        Some(ToolChoice::None) => body.text("tool_choice", "none"),
        Some(ToolChoice::Auto) => body.text("tool_choice", "auto"),
        Some(ToolChoice::Required) => body.text("tool_choice", "required"),
        Some(ToolChoice::Named(_)) if ask.chooses_search() => {
            body.object("tool_choice", |choice| choice.text("type", SEARCH));
        }
        Some(ToolChoice::Named(name)) => body.object("tool_choice", |choice| one_tool(choice, ask, name)),
        Some(ToolChoice::Allowed { names, required }) => body.object("tool_choice", |choice| {
            choice.text("type", "allowed_tools");
            choice.text("mode", if *required { "required" } else { "auto" });
            choice.array("tools", |list| {
                for name in names {
                    list.object(|tool| one_tool(tool, ask, name));
                }
            });
        }),
        Some(ToolChoice::Foreign(_)) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    }
    Ok(())
}

fn one_tool(object: &mut Object<'_>, ask: &Ask<'_>, name: &str) {
    let custom = ask.tools.iter().any(|tool| tool.name == name && matches!(tool.kind, ToolKind::Custom { .. }));
    object.text("type", if custom { "custom" } else { "function" });
    object.text("name", &sent_name(Dialect::Responses, None, name));
}

/// As they were declared: namespaces around their tools, the choice in its own form.
fn own(ask: &Ask<'_>, body: &mut Object<'_>, carry: &Carry<'_>) -> Result<(), Problem> {
    if !ask.tools.is_empty() || !ask.groups.is_empty() {
        let mut list = Array::begin(body.key("tools"));
        let mut done = 0;
        for group in &ask.groups {
            own_tools(&ask.tools[done..group.tools.start], &mut list, carry)?;
            own_group(ask, group, &mut list, carry)?;
            done = group.tools.end;
        }
        own_tools(&ask.tools[done..], &mut list, carry)?;
        list.end();
    }
    if let Some(parallel) = ask.parallel {
        body.bool("parallel_tool_calls", parallel);
    }
    body.maybe_raw("tool_choice", ask.choice_own);
    Ok(())
}

fn own_tools(tools: &[Tool<'_>], list: &mut Array<'_>, carry: &Carry<'_>) -> Result<(), Problem> {
    tools.iter().try_for_each(|tool| write_tool(tool, list, carry))
}

fn own_group(ask: &Ask<'_>, group: &Group<'_>, list: &mut Array<'_>, carry: &Carry<'_>) -> Result<(), Problem> {
    let mut one = Object::begin(list.item());
    one.text("type", "namespace");
    one.maybe("name", group.name.as_deref());
    if !group.tools.is_empty() {
        let mut inner = Array::begin(one.key("tools"));
        own_tools(&ask.tools[group.tools.clone()], &mut inner, carry)?;
        inner.end();
    }
    carry.own(&mut one, "namespace", &group.rest);
    one.end();
    Ok(())
}

fn write_tool(tool: &Tool<'_>, list: &mut Array<'_>, carry: &Carry<'_>) -> Result<(), Problem> {
    let kind = match &tool.kind {
        ToolKind::Function { .. } => "function",
        ToolKind::Custom { .. } => "custom",
        ToolKind::WebSearch(raw) | ToolKind::Hosted(raw) if carry.home => {
            list.raw(raw);
            return Ok(());
        }
        ToolKind::WebSearch(_) => {
            list.object(|one| one.text("type", SEARCH));
            return Ok(());
        }
        // None is left.
        ToolKind::Hosted(_) => return Ok(()),
    };
    let name = match carry.home {
        true => Cow::Borrowed(tool.name.as_ref()),
        false => sent_name(Dialect::Responses, tool.namespace.as_deref(), &tool.name),
    };
    list.object(|one| {
        one.text("type", kind);
        one.text("name", &name);
        one.maybe("description", tool.description.as_deref());
        match &tool.kind {
            ToolKind::Function { schema, strict, .. } => {
                one.maybe_raw("parameters", schema.as_deref().or((!carry.home).then_some(NO_ARGUMENTS)));
                // Absent means strict here and loose everywhere else.
                if let Some(strict) = strict.or((!carry.home).then_some(false)) {
                    one.bool("strict", strict);
                }
            }
            ToolKind::Custom { format } if carry.home => one.maybe_raw("format", *format),
            ToolKind::Custom { format } => one.maybe_raw("format", grammar(*format, false).as_deref()),
            ToolKind::WebSearch(_) | ToolKind::Hosted(_) => {}
        }
        carry.own(one, "", &tool.rest);
    });
    Ok(())
}
