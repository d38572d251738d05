//! Tools and the choice among them, of a Responses request.

use crate::hub::{Ask, Fields, Tool, ToolChoice, ToolKind};
use std::borrow::Cow;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(super) fn read<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) -> Result<(), Problem> {
    for (at, node) in fields.list("tools").unwrap_or_default().iter().enumerate() {
        let at = format!("tools[{at}]");
        if node.str_of("type") == "namespace" {
            namespace(node, &at, ask)?;
        } else {
            ask.tools.push(tool(node, None, at)?);
        }
    }
    if let Some(node) = fields.take("tool_choice") {
        ask.choice = Some(choice(node, ask));
    }
    Ok(())
}

/// Tools under one name.
fn namespace<'a>(node: &Node<'a>, at: &str, ask: &mut Ask<'a>) -> Result<(), Problem> {
    let mut fields = Fields::of(node);
    fields.take("type");
    let Some(name) = fields.text("name") else { return Err(Problem::missing(&format!("{at}.name"))) };
    for (inner, node) in fields.list("tools").unwrap_or_default().iter().enumerate() {
        ask.tools.push(tool(node, Some(&name), format!("{at}.tools[{inner}]"))?);
    }
    fields.rest_at("namespace", &mut ask.groups_rest);
    Ok(())
}

fn tool<'a>(node: &Node<'a>, namespace: Option<&Cow<'a, str>>, at: String) -> Result<Tool<'a>, Problem> {
    let mut fields = Fields::of(node);
    let word = fields.text("type").unwrap_or_default();
    let kind = match word.as_ref() {
        "function" => {
            ToolKind::Function { schema: fields.raw("parameters").map(Cow::Borrowed), strict: fields.bool("strict") }
        }
        "custom" => ToolKind::Custom { format: fields.raw("format") },
        search if search.starts_with("web_search") => ToolKind::WebSearch,
        _ => ToolKind::Hosted(node.raw),
    };
    let named = matches!(kind, ToolKind::Function { .. } | ToolKind::Custom { .. });
    let name = match fields.text("name") {
        Some(name) => name,
        None if named => return Err(Problem::missing(&format!("{at}.name"))),
        None => word,
    };
    let description = fields.text("description");
    let namespace = namespace.cloned();
    Ok(Tool { name, namespace, description, kind, cached: false, old: false, at, rest: fields.rest() })
}

fn choice<'a>(node: &Node<'a>, ask: &mut Ask<'a>) -> ToolChoice<'a> {
    if let Some(word) = node.text() {
        return match word.as_ref() {
            "none" => ToolChoice::None,
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            _ => ToolChoice::Foreign,
        };
    }
    let mut fields = Fields::of(node);
    let word = fields.text("type").unwrap_or_default();
    let read = match word.as_ref() {
        "function" | "custom" => fields.text("name").map(ToolChoice::Named),
        // By the name that the tool itself is known under.
        search if search.starts_with("web_search") => Some(ToolChoice::Named(word.clone())),
        "allowed_tools" => {
            let required = fields.text("mode").is_some_and(|mode| mode == "required");
            let mut names = Vec::new();
            for node in fields.list("tools").unwrap_or_default() {
                let mut one = Fields::of(node);
                if let Some(name) = one.text("name") {
                    one.text("type");
                    names.push(name);
                }
                one.rest_at("tool_choice.tools", &mut ask.rest);
            }
            Some(ToolChoice::Allowed { names, required })
        }
        _ => None,
    };
    fields.rest_at("tool_choice", &mut ask.rest);
    read.unwrap_or(ToolChoice::Foreign)
}
