//! A messages request read into the hub.

use super::blocks_in;
use crate::hub::{Ask, Effort, Fields, OutputFormat, Role, Tool, ToolChoice, ToolKind, Turn, tier_asked};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(crate) fn read<'a>(body: &Node<'a>) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Anthropic);
    let mut fields = Fields::of(body);
    fields.take("model");
    ask.stream = fields.on("stream");
    ask.max_output = fields.number("max_tokens");
    ask.temperature = fields.decimal("temperature");
    ask.top_p = fields.decimal("top_p");
    ask.top_k = fields.decimal("top_k");
    ask.stop = fields.texts("stop_sequences").unwrap_or_default();
    output(&mut fields, &mut ask);
    thinking(&mut fields, &mut ask);
    for (at, node) in fields.list("tools").unwrap_or_default().iter().enumerate() {
        ask.tools.push(tool(node, format!("tools[{at}]"))?);
    }
    if let Some(node) = fields.take("tool_choice") {
        choice(node, &mut ask);
    }
    ask.cache_all = fields.see("cache_control").is_some();
    if let Some(node) = fields.map("metadata") {
        let mut metadata = Fields::of(node);
        ask.user = metadata.text("user_id");
        metadata.rest_at("metadata", &mut ask.rest);
    }
    ask.tier = fields.text("service_tier").map(|tier| tier_asked(Dialect::Anthropic, tier));
    let anything = |node: &&Node<'a>| !node.items().is_empty() || node.text().is_some_and(|text| !text.is_empty());
    if let Some(system) = fields.take_if("system", |node| Some(node).filter(anything)) {
        ask.turns.push(Turn::new(Role::System, blocks_in::content(system), "system".to_owned()));
    }
    for (at, message) in fields.take("messages").map_or(&[][..], Node::items).iter().enumerate() {
        ask.turns.push(turn(message, at)?);
    }
    fields.rest_at("", &mut ask.rest);
    Ok(ask)
}

fn turn<'a>(message: &Node<'a>, at: usize) -> Result<Turn<'a>, Problem> {
    let place = format!("messages[{at}]");
    let mut fields = Fields::of(message);
    let word = fields.text("role").unwrap_or_default();
    let role = match word.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            let text = format!("`{other}` is not a role.");
            return Err(Problem::new(tollgate_wire::error::Code::InvalidParameter, &format!("{place}.role"), text));
        }
    };
    let said = fields.content("content");
    let parts = said.map(blocks_in::content).unwrap_or_default();
    Ok(Turn { rest: fields.rest(), ..Turn::new(role, parts, place) })
}

/// `output_config`: the effort, and the form of the output.
fn output<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let Some(node) = fields.map("output_config") else { return };
    let mut config = Fields::of(node);
    ask.reasoning.effort = config.effort("effort");
    let known = |node: &&Node<'a>| node.str_of("type") == "json_schema";
    if let Some(node) = config.take_if("format", |node| Some(node).filter(known)) {
        let mut format = Fields::of(node);
        format.take("type");
        ask.format = Some(OutputFormat::Schema {
            name: format.text("name"),
            description: None,
            schema: format.raw("schema").map(Cow::Borrowed),
            // Anthropic always holds the model to the schema.
            strict: Some(true),
        });
        format.rest_at("output_config.format", &mut ask.rest);
    }
    config.rest_at("output_config", &mut ask.rest);
}

/// A way of thinking that nobody knows is left over.
fn thinking<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let known = |node: &&Node<'a>| match node.str_of("type") {
        "enabled" => node.get("budget_tokens").and_then(Node::number).is_some(),
        "adaptive" | "between_tools" | "disabled" => true,
        _ => false,
    };
    let Some(node) = fields.take_if("thinking", |node| Some(node).filter(known)) else { return };
    let mut thinking = Fields::of(node);
    let asked = &mut ask.reasoning;
    match thinking.text("type").as_deref() {
        Some("enabled") => asked.budget = thinking.number("budget_tokens"),
        Some("disabled") => (asked.off, asked.effort) = (true, Some(Effort::None)),
        _ => asked.adaptive = true,
    }
    asked.shown = thinking.see("display").and_then(Node::text).map(|display| display != "omitted");
    let _ = thinking.word("display", "omitted") || thinking.word("display", "summarized");
    thinking.rest_at("thinking", &mut ask.rest);
}

fn tool<'a>(node: &Node<'a>, at: String) -> Result<Tool<'a>, Problem> {
    let mut fields = Fields::of(node);
    let Some(name) = fields.text("name") else { return Err(Problem::missing(&format!("{at}.name"))) };
    let kind = match node.get("type").map(|word| word.text().map_or("?", |word| word)) {
        // Which of the two it was stays with the tool.
        None | Some("custom") => {
            ToolKind::Function { schema: fields.raw("input_schema").map(Cow::Borrowed), strict: fields.bool("strict") }
        }
        Some(search) if search.starts_with("web_search") => ToolKind::WebSearch,
        _ => ToolKind::Hosted(node.raw),
    };
    if matches!(kind, ToolKind::WebSearch) {
        fields.take("type");
    }
    let description = fields.text("description");
    let cached = fields.see("cache_control").is_some();
    Ok(Tool { name, namespace: None, description, kind, cached, old: false, at, rest: fields.rest() })
}

fn choice<'a>(node: &Node<'a>, ask: &mut Ask<'a>) {
    let mut fields = Fields::of(node);
    let word = fields.text("type").unwrap_or_default();
    let read = match word.as_ref() {
        "auto" => Some(ToolChoice::Auto),
        "any" => Some(ToolChoice::Required),
        "none" => Some(ToolChoice::None),
        "tool" => fields.text("name").map(ToolChoice::Named),
        _ => None,
    };
    ask.parallel = fields.bool("disable_parallel_tool_use").map(|off| !off);
    ask.choice = Some(read.unwrap_or(ToolChoice::Foreign));
    fields.rest_at("tool_choice", &mut ask.rest);
}
