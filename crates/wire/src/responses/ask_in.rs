//! A Responses request read into the hub.

use super::items_in;
use crate::dialect::Dialect;
use crate::hub::{Ask, Format, Part, Role, Tool, ToolChoice, ToolKind, Turn, others};
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

/// Members of a request that the hub has a place for.
const KNOWN: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "max_output_tokens",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "top_logprobs",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "service_tier",
    "metadata",
    "prompt_cache_key",
    "safety_identifier",
];

const LOGPROBS: &str = "message.output_text.logprobs";

pub(crate) fn read<'a>(body: &Node<'a>) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Responses);
    let text = |name: &str| body.text_of(name).cloned();
    let decimal = |name: &str| body.get(name).and_then(Node::decimal);
    ask.rest.extend(others(body, KNOWN));
    ask.stream = body.get("stream").and_then(Node::bool).unwrap_or(false);
    ask.max_output = body.get("max_output_tokens").and_then(Node::number);
    ask.temperature = decimal("temperature");
    ask.top_p = decimal("top_p");
    ask.presence_penalty = decimal("presence_penalty");
    ask.frequency_penalty = decimal("frequency_penalty");
    let include = body.get("include").map_or(&[][..], Node::items);
    ask.logprobs = include.iter().any(|item| item.text().is_some_and(|text| text == LOGPROBS));
    ask.top_logprobs = body.get("top_logprobs").and_then(Node::number);
    if let Some(reasoning) = body.get("reasoning") {
        ask.take_effort("reasoning.effort", reasoning.get("effort"));
        ask.reasoning.summary = reasoning.either("summary", "generate_summary").and_then(Node::text).cloned();
    }
    if let Some(text) = body.get("text") {
        ask.format = text.get("format").and_then(format);
        ask.verbosity = text.text_of("verbosity").cloned();
    }
    for (at, node) in body.get("tools").map_or(&[][..], Node::items).iter().enumerate() {
        tool(node, None, &format!("tools[{at}]"), &mut ask.tools)?;
    }
    ask.choice = body.get("tool_choice").map(choice);
    ask.parallel = body.get("parallel_tool_calls").and_then(Node::bool);
    ask.cache_key = text("prompt_cache_key");
    ask.tier = text("service_tier");
    ask.metadata = body.get("metadata").map(|node| node.raw);
    ask.user = text("safety_identifier");
    if ask.user.is_none() {
        ask.user = text("user");
        ask.rest.retain(|member| member.name != "user");
    }
    if let Some(text) = text("instructions") {
        ask.turns.push(Turn::new(Role::System, vec![Part::text(text)], "instructions".to_owned()));
    }
    match body.get("input") {
        Some(input) => match input.text() {
            Some(text) => ask.turns.push(Turn::new(Role::User, vec![Part::text(text.clone())], "input".to_owned())),
            None => {
                for (at, item) in input.items().iter().enumerate() {
                    ask.turns.extend(items_in::read(item, at)?);
                }
            }
        },
        None => return Err(Problem::missing("input")),
    }
    Ok(ask)
}

fn format<'a>(node: &Node<'a>) -> Option<Format<'a>> {
    match node.str_of("type") {
        "text" => Some(Format::Text),
        "json_object" => Some(Format::Json),
        "json_schema" => Some(Format::Schema {
            name: node.text_of("name").cloned(),
            description: node.text_of("description").cloned(),
            schema: node.get("schema").map_or(Cow::Borrowed("{}"), |schema| Cow::Borrowed(schema.raw)),
            strict: node.get("strict").and_then(Node::bool),
        }),
        _ => None,
    }
}

/// One tool, or the tools of a namespace.
fn tool<'a>(
    node: &Node<'a>,
    namespace: Option<&Cow<'a, str>>,
    at: &str,
    tools: &mut Vec<Tool<'a>>,
) -> Result<(), Problem> {
    let word = node.str_of("type");
    if word == "namespace" && namespace.is_none() {
        let Some(name) = node.text_of("name") else { return Err(Problem::missing(&format!("{at}.name"))) };
        for (inner, node) in node.get("tools").map_or(&[][..], Node::items).iter().enumerate() {
            tool(node, Some(name), &format!("{at}.tools[{inner}]"), tools)?;
        }
        return Ok(());
    }
    let kind = match word {
        "function" => ToolKind::Function {
            schema: node.get("parameters").map(|schema| Cow::Borrowed(schema.raw)),
            strict: node.get("strict").and_then(Node::bool),
        },
        "custom" => ToolKind::Custom { format: node.get("format").map(|format| format.raw) },
        search if search.starts_with("web_search") => ToolKind::WebSearch,
        _ => ToolKind::Hosted,
    };
    let named = matches!(kind, ToolKind::Function { .. } | ToolKind::Custom { .. });
    let name = match node.text_of("name") {
        Some(name) => name.clone(),
        None if named => return Err(Problem::missing(&format!("{at}.name"))),
        None => node.text_of("type").cloned().unwrap_or_default(),
    };
    tools.push(Tool {
        name,
        namespace: namespace.cloned(),
        description: node.text_of("description").cloned(),
        kind,
        cached: false,
        at: at.to_owned(),
        rest: others(node, &["type", "name", "description", "parameters", "strict", "format"]),
    });
    Ok(())
}

fn choice<'a>(node: &Node<'a>) -> ToolChoice<'a> {
    if let Some(word) = node.text() {
        return match word.as_ref() {
            "none" => ToolChoice::None,
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            _ => ToolChoice::Foreign(node.raw),
        };
    }
    match node.str_of("type") {
        "function" | "custom" => match node.text_of("name") {
            Some(name) => ToolChoice::Named(name.clone()),
            None => ToolChoice::Foreign(node.raw),
        },
        "allowed_tools" => {
            let names = node.get("tools").map_or(&[][..], Node::items).iter();
            ToolChoice::Allowed {
                names: names.filter_map(|tool| tool.text_of("name").cloned()).collect(),
                required: node.str_of("mode") == "required",
            }
        }
        _ => ToolChoice::Foreign(node.raw),
    }
}
