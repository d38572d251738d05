//! Tools and the choice among them, of a generateContent request.

use super::schema::from_gemini;
use crate::hub::{Ask, Fields, Group, Tool, ToolChoice, ToolKind};
use std::borrow::Cow;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(super) fn read<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) -> Result<(), Problem> {
    for (at, node) in fields.list("tools").unwrap_or_default().iter().enumerate() {
        group(node, &format!("tools[{at}]"), ask)?;
    }
    if let Some(node) = fields.map("toolConfig") {
        let mut config = Fields::loose(node);
        if let Some(calling) = config.take("functionCallingConfig") {
            ask.choice_own = Some(calling.raw);
            ask.choice = choice(calling, ask);
        }
        config.rest_at("toolConfig", &mut ask.rest);
    }
    Ok(())
}

/// One object of functions, and of tools that run at the provider.
fn group<'a>(node: &Node<'a>, at: &str, ask: &mut Ask<'a>) -> Result<(), Problem> {
    if !node.is_map() {
        return Err(Problem::wrong(at, "an object"));
    }
    let from = ask.tools.len();
    let mut fields = Fields::loose(node);
    for (inner, declaration) in fields.list("functionDeclarations").unwrap_or_default().iter().enumerate() {
        ask.tools.push(function(declaration, format!("{at}.functionDeclarations[{inner}]"))?);
    }
    for (name, value) in node.members() {
        // What stood in the list is read; an empty one and nulls are left over.
        let hosted =
            |_: &Node<'a>| (!matches!(name.as_ref(), "functionDeclarations" | "function_declarations")).then_some(());
        if fields.take_if(name, hosted).is_none() {
            continue;
        }
        let mut rest = Vec::new();
        let kind = match name.as_ref() {
            "googleSearch" | "google_search" | "googleSearchRetrieval" => {
                Fields::of(value).rest_at("googleSearch", &mut rest);
                ToolKind::WebSearch(value.raw)
            }
            _ => ToolKind::Hosted(value.raw),
        };
        let (at, name) = (format!("{at}.{name}"), name.clone());
        ask.tools.push(Tool { name, namespace: None, description: None, kind, cached: false, old: false, at, rest });
    }
    ask.groups.push(Group { name: None, tools: from..ask.tools.len(), rest: fields.rest() });
    Ok(())
}

fn function<'a>(node: &Node<'a>, at: String) -> Result<Tool<'a>, Problem> {
    let mut fields = Fields::loose(node);
    let Some(name) = fields.text("name") else { return Err(Problem::missing(&format!("{at}.name"))) };
    let mut own = None;
    let schema = fields.raw("parametersJsonSchema").map(Cow::Borrowed).or_else(|| {
        let node = fields.take("parameters")?;
        own = Some(node.raw);
        Some(Cow::Owned(from_gemini(node)))
    });
    let kind = ToolKind::Function { schema, strict: None, own };
    let description = fields.text("description");
    Ok(Tool { name, namespace: None, description, kind, cached: false, old: false, at, rest: fields.rest() })
}

fn choice<'a>(node: &Node<'a>, ask: &mut Ask<'a>) -> Option<ToolChoice<'a>> {
    let mut fields = Fields::loose(node);
    let mode = fields.text("mode").unwrap_or_default();
    let mut names = fields.texts("allowedFunctionNames").unwrap_or_default();
    fields.rest_at("toolConfig.functionCallingConfig", &mut ask.rest);
    match mode.as_ref() {
        "NONE" => Some(ToolChoice::None),
        "ANY" if names.len() == 1 => names.pop().map(ToolChoice::Named),
        "ANY" if names.is_empty() => Some(ToolChoice::Required),
        "ANY" => Some(ToolChoice::Allowed { names, required: true }),
        "AUTO" | "VALIDATED" if !names.is_empty() => Some(ToolChoice::Allowed { names, required: false }),
        "AUTO" | "VALIDATED" => Some(ToolChoice::Auto),
        _ => None,
    }
}
