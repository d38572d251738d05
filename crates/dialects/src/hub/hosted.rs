//! Tools that run at a provider, on their way to one that does not have them.
//!
//! Agents offer some of them with every request, whether they are needed or not: these are left out
//! and reported, and the model answers without. The others are what a request is about, or work on
//! what only their own provider keeps: they are refused by their place. So is a request that
//! insists on a tool which would be left out. `docs/dialects.md` has the same as a table.

use super::{Ask, Carry, Target, Tool, ToolChoice, ToolKind};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

/// How the types begin of tools that are left out, by the caller's dialect. Web search has a kind
/// of its own.
const LEFT_OUT: &[(Dialect, &[&str])] = &[
    (Dialect::Anthropic, &["web_fetch", "tool_search_tool"]),
    (Dialect::Responses, &["tool_search", "image_generation"]),
    (Dialect::Gemini, &["urlContext", "url_context"]),
];

/// Sees to the tools that the target does not have.
pub(super) fn leave_out(ask: &mut Ask<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let offered = ask.tools.len();
    let functions =
        ask.tools.iter().any(|tool| matches!(tool.kind, ToolKind::Function { .. } | ToolKind::Custom { .. }));
    for tool in std::mem::take(&mut ask.tools) {
        if is_known(&tool, carry.target, functions) {
            ask.tools.push(tool);
        } else if !is_left_out(&tool, ask.origin) {
            return Err(Problem::unsupported(&tool.at, format!("The tool `{}` runs at another provider.", tool.name)));
        } else if matches!(&ask.choice, Some(ToolChoice::Named(name)) if *name == tool.name) {
            return Err(insists(&tool.name));
        } else {
            carry.drop(&format!("tools.{}", tool.name))?;
        }
    }
    if offered > 0 && ask.tools.is_empty() && ask.choice == Some(ToolChoice::Required) {
        return Err(insists("any"));
    }
    Ok(())
}

fn insists(name: &str) -> Problem {
    let text = format!("`tool_choice` asks for `{name}`: such a tool runs at another provider.");
    Problem::unsupported("tool_choice", text)
}

fn is_known(tool: &Tool<'_>, target: &Target, functions: bool) -> bool {
    match (&tool.kind, target.dialect) {
        (ToolKind::Function { .. } | ToolKind::Custom { .. }, _) => true,
        (ToolKind::WebSearch, Dialect::Chat) => target.web_search,
        // Gemini takes its search or functions, not both, and an agent lives by its functions.
        (ToolKind::WebSearch, Dialect::Gemini) => !functions,
        (ToolKind::WebSearch, Dialect::Anthropic | Dialect::Responses) => true,
        (ToolKind::Hosted(_), _) => false,
    }
}

fn is_left_out(tool: &Tool<'_>, origin: Dialect) -> bool {
    let ToolKind::Hosted(raw) = tool.kind else { return true };
    let node = Node::read(raw).ok();
    // Gemini names a tool by the member it stands in.
    let word = match origin {
        Dialect::Gemini => tool.name.as_ref(),
        _ => node.as_ref().map_or("", |node| node.str_of("type")),
    };
    let mut words = LEFT_OUT.iter().filter(|(dialect, _)| *dialect == origin).flat_map(|(_, words)| *words);
    words.any(|known| word.starts_with(known))
}
