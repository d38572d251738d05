//! A messages request read into the hub.

use super::blocks_in;
use crate::dialect::Dialect;
use crate::hub::{Ask, Effort, Format, Role, Tool, ToolChoice, ToolKind, Turn, others};
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

/// Members of a request that the hub has a place for.
const KNOWN: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stop_sequences",
    "stream",
    "thinking",
    "output_config",
    "cache_control",
    "metadata",
    "service_tier",
    "temperature",
    "top_p",
    "top_k",
];

pub(crate) fn read<'a>(body: &Node<'a>) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Anthropic);
    ask.rest.extend(others(body, KNOWN));
    ask.stream = body.get("stream").and_then(Node::bool).unwrap_or(false);
    ask.max_output = body.get("max_tokens").and_then(Node::number);
    ask.temperature = body.get("temperature").and_then(Node::decimal);
    ask.top_p = body.get("top_p").and_then(Node::decimal);
    ask.top_k = body.get("top_k").and_then(Node::decimal);
    let stops = body.get("stop_sequences").map_or(&[][..], Node::items);
    ask.stop = stops.iter().filter_map(|stop| stop.text().cloned()).collect();
    thinking(body, &mut ask);
    let config = body.get("output_config");
    ask.format = config.and_then(|config| config.get("format")).and_then(format);
    ask.tools = tools(body)?;
    if let Some(node) = body.get("tool_choice") {
        ask.choice = Some(choice(node));
        ask.parallel = node.get("disable_parallel_tool_use").and_then(Node::bool).map(|off| !off);
    }
    ask.cache_all = body.get("cache_control").is_some();
    ask.user = body.get("metadata").and_then(|metadata| metadata.text_of("user_id")).cloned();
    ask.tier = body.text_of("service_tier").map(|tier| match tier.as_ref() {
        "standard_only" => Cow::Borrowed("default"),
        _ => tier.clone(),
    });
    if let Some(system) = body.get("system") {
        let parts = blocks_in::content(system);
        if !parts.is_empty() {
            ask.turns.push(Turn::new(Role::System, parts, "system".to_owned()));
        }
    }
    for (at, message) in body.get("messages").map_or(&[][..], Node::items).iter().enumerate() {
        ask.turns.push(turn(message, at)?);
    }
    Ok(ask)
}

fn turn<'a>(message: &Node<'a>, at: usize) -> Result<Turn<'a>, Problem> {
    let place = format!("messages[{at}]");
    let role = match message.str_of("role") {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            let text = format!("`{other}` is not a role.");
            return Err(Problem::new(crate::error::Code::InvalidParameter, &format!("{place}.role"), text));
        }
    };
    let parts = message.get("content").map(blocks_in::content).unwrap_or_default();
    Ok(Turn::new(role, parts, place))
}

fn thinking<'a>(body: &Node<'a>, ask: &mut Ask<'a>) {
    ask.take_effort("output_config.effort", body.get("output_config").and_then(|config| config.get("effort")));
    let Some(node) = body.get("thinking") else { return };
    match node.str_of("type") {
        "enabled" => ask.reasoning.budget = node.get("budget_tokens").and_then(Node::number),
        "adaptive" | "between_tools" => ask.reasoning.adaptive = true,
        "disabled" => ask.reasoning.effort = Some(Effort::None),
        _ => {}
    }
    ask.reasoning.shown = node.text_of("display").map(|display| display != "omitted");
}

fn format<'a>(node: &Node<'a>) -> Option<Format<'a>> {
    (node.str_of("type") == "json_schema").then(|| Format::Schema {
        name: node.text_of("name").cloned(),
        description: None,
        schema: node.get("schema").map_or(Cow::Borrowed("{}"), |schema| Cow::Borrowed(schema.raw)),
        // Anthropic always holds the model to the schema.
        strict: Some(true),
    })
}

fn tools<'a>(body: &Node<'a>) -> Result<Vec<Tool<'a>>, Problem> {
    let mut tools = Vec::new();
    for (at, node) in body.get("tools").map_or(&[][..], Node::items).iter().enumerate() {
        let Some(name) = node.text_of("name").cloned() else {
            return Err(Problem::missing(&format!("tools[{at}].name")));
        };
        let kind = match node.str_of("type") {
            "" | "custom" => ToolKind::Function {
                schema: node.get("input_schema").map(|schema| Cow::Borrowed(schema.raw)),
                strict: node.get("strict").and_then(Node::bool),
            },
            search if search.starts_with("web_search") => ToolKind::WebSearch,
            _ => ToolKind::Hosted,
        };
        tools.push(Tool {
            name,
            namespace: None,
            description: node.text_of("description").cloned(),
            kind,
            cached: node.get("cache_control").is_some(),
            at: format!("tools[{at}]"),
            rest: others(node, &["name", "type", "description", "input_schema", "strict"]),
        });
    }
    Ok(tools)
}

fn choice<'a>(node: &Node<'a>) -> ToolChoice<'a> {
    match node.str_of("type") {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => match node.text_of("name") {
            Some(name) => ToolChoice::Named(name.clone()),
            None => ToolChoice::Foreign(node.raw),
        },
        _ => ToolChoice::Foreign(node.raw),
    }
}
