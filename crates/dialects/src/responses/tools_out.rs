//! Tools and the choice among them, written for a provider that speaks Responses.

use crate::hub::{Ask, Carry, NO_ARGUMENTS, Tool, ToolChoice, ToolKind, grammar, sent_name};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// What the search of a Responses provider is called.
const SEARCH: &str = "web_search";

pub(super) fn write(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if ask.tools.is_empty() {
        return Ok(());
    }
    let mut list = Array::begin(body.key("tools"));
    for tool in &ask.tools {
        carry.drop_cache_mark(tool.cached)?;
        write_tool(tool, &mut list);
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
        Some(ToolChoice::Foreign) => {
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

fn write_tool(tool: &Tool<'_>, list: &mut Array<'_>) {
    let kind = match &tool.kind {
        ToolKind::Function { .. } => "function",
        ToolKind::Custom { .. } => "custom",
        ToolKind::WebSearch => return list.object(|one| one.text("type", SEARCH)),
        // None is left.
        ToolKind::Hosted(_) => return,
    };
    list.object(|one| {
        one.text("type", kind);
        one.text("name", &sent_name(Dialect::Responses, tool.namespace.as_deref(), &tool.name));
        one.maybe("description", tool.description.as_deref());
        match &tool.kind {
            ToolKind::Function { schema, strict, .. } => {
                one.raw("parameters", schema.as_deref().unwrap_or(NO_ARGUMENTS));
                // Absent means strict here and loose everywhere else.
                one.bool("strict", strict.unwrap_or(false));
            }
            ToolKind::Custom { format } => one.maybe_raw("format", grammar(*format, false).as_deref()),
            ToolKind::WebSearch | ToolKind::Hosted(_) => {}
        }
    });
}
