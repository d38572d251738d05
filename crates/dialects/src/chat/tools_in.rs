//! Tools and the choice among them, of a chat request.

use crate::hub::{Ask, Fields, Tool, ToolChoice, ToolKind};
use std::borrow::Cow;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(super) fn read<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) -> Result<(), Problem> {
    for (at, node) in fields.list("tools").unwrap_or_default().iter().enumerate() {
        ask.tools.push(tool(node, format!("tools[{at}]"))?);
    }
    for (at, node) in fields.list("functions").unwrap_or_default().iter().enumerate() {
        let at = format!("functions[{at}]");
        let mut inner = Fields::of(node);
        let Some(name) = inner.text("name") else { return Err(Problem::missing(&format!("{at}.name"))) };
        let mut tool = function(&mut inner, name, false, at);
        inner.rest_at("function", &mut tool.rest);
        ask.tools.push(Tool { old: true, cached: node.get("cache_control").is_some(), ..tool });
    }
    if let Some(node) = fields.see("web_search_options").filter(|node| node.is_map()) {
        ask.tools.push(search(node));
    }
    let key = if fields.see("tool_choice").is_some() { "tool_choice" } else { "function_call" };
    let Some(node) = fields.take(key) else { return Ok(()) };
    ask.spelt.extend((key == "function_call").then_some("function_call"));
    ask.choice_own = Some(node.raw);
    ask.choice = Some(choice(node, ask));
    Ok(())
}

fn tool<'a>(node: &Node<'a>, at: String) -> Result<Tool<'a>, Problem> {
    let mut outer = Fields::of(node);
    let kind = if node.str_of("type") == "custom" { "custom" } else { "function" };
    let Some(inner) = outer.take(kind) else { return Ok(hosted(node, at)) };
    outer.usual("type", kind);
    let mut inner = Fields::of(inner);
    let Some(name) = inner.text("name") else { return Err(Problem::missing(&format!("{at}.function.name"))) };
    let mut tool = function(&mut inner, name, kind == "custom", at);
    tool.cached = node.get("cache_control").is_some();
    tool.rest = outer.rest();
    inner.rest_at("function", &mut tool.rest);
    Ok(tool)
}

fn function<'a>(inner: &mut Fields<'_, 'a>, name: Cow<'a, str>, custom: bool, at: String) -> Tool<'a> {
    let kind = if custom {
        ToolKind::Custom { format: inner.raw("format") }
    } else {
        let schema = inner.raw("parameters").map(Cow::Borrowed);
        ToolKind::Function { schema, strict: inner.bool("strict"), own: None }
    };
    let description = inner.text("description");
    Tool { name, namespace: None, description, kind, cached: false, old: false, at, rest: Vec::new() }
}

/// A wish for the provider's search, which stays a member of the request.
fn search<'a>(node: &Node<'a>) -> Tool<'a> {
    let mut rest = Vec::new();
    Fields::of(node).rest_at("web_search_options", &mut rest);
    let kind = ToolKind::WebSearch(node.raw);
    Tool {
        name: Cow::Borrowed("web_search"),
        kind,
        at: "web_search_options".to_owned(),
        rest,
        ..hosted(node, String::new())
    }
}

/// A tool that runs at the provider.
fn hosted<'a>(node: &Node<'a>, at: String) -> Tool<'a> {
    Tool {
        name: node.text_of("type").cloned().unwrap_or(Cow::Borrowed("tool")),
        namespace: None,
        description: None,
        kind: ToolKind::Hosted(node.raw),
        cached: false,
        old: false,
        at,
        rest: Vec::new(),
    }
}

fn choice<'a>(node: &Node<'a>, ask: &mut Ask<'a>) -> ToolChoice<'a> {
    if let Some(word) = node.text() {
        return match word.as_ref() {
            "none" => ToolChoice::None,
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            _ => ToolChoice::Foreign(node.raw),
        };
    }
    let mut fields = Fields::of(node);
    fields.text("type");
    let read = chosen(&mut fields, ask);
    fields.rest_at("tool_choice", &mut ask.rest);
    read.unwrap_or(ToolChoice::Foreign(node.raw))
}

/// `{function: {name}}`, the same of a tool with free text, `{name}`, or a list of such.
fn chosen<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) -> Option<ToolChoice<'a>> {
    if let Some(name) = named(fields, ask) {
        return Some(ToolChoice::Named(name));
    }
    let mut allowed = Fields::of(fields.map("allowed_tools")?);
    let required = allowed.text("mode").is_some_and(|mode| mode == "required");
    let mut names = Vec::new();
    for tool in allowed.list("tools").unwrap_or_default() {
        let mut one = Fields::of(tool);
        if let Some(name) = named(&mut one, ask) {
            one.text("type");
            names.push(name);
        }
        one.rest_at("tool_choice.allowed_tools.tools", &mut ask.rest);
    }
    allowed.rest_at("tool_choice.allowed_tools", &mut ask.rest);
    Some(ToolChoice::Allowed { names, required })
}

fn named<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) -> Option<Cow<'a, str>> {
    for kind in ["function", "custom"] {
        let Some(node) = fields.take_if(kind, |node| node.text_of("name").map(|_| node)) else { continue };
        let mut inner = Fields::of(node);
        let name = inner.text("name");
        inner.rest_at("tool_choice.function", &mut ask.rest);
        return name;
    }
    fields.text("name")
}
