//! A chat request read into the hub.

use crate::dialect::Dialect;
use crate::hub::{Ask, CallKind, Effort, Format, Member, Tool, ToolChoice, ToolKind, others};
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

/// Members of a request that the hub has a place for.
const KNOWN: &[&str] = &[
    "model",
    "messages",
    "stream",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "n",
    "logprobs",
    "top_logprobs",
    "reasoning_effort",
    "reasoning",
    "response_format",
    "verbosity",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "parallel_tool_calls",
    "prompt_cache_key",
    "service_tier",
    "safety_identifier",
    "metadata",
];

pub(crate) fn read<'a>(body: &Node<'a>) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Chat);
    let decimal = |name: &str| body.get(name).and_then(Node::decimal);
    let text = |name: &str| body.text_of(name).cloned();
    let flag = |name: &str| body.get(name).and_then(Node::bool);
    let whole = |name: &str| body.get(name).and_then(Node::number);
    ask.stream = flag("stream").unwrap_or(false);
    ask.max_output = match (whole("max_completion_tokens"), whole("max_tokens")) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    ask.temperature = decimal("temperature");
    ask.top_p = decimal("top_p");
    ask.top_k = decimal("top_k");
    ask.frequency_penalty = decimal("frequency_penalty");
    ask.presence_penalty = decimal("presence_penalty");
    ask.seed = decimal("seed");
    if let Some(stop) = body.get("stop") {
        ask.stop = match stop.text() {
            Some(one) => vec![one.clone()],
            None => stop.items().iter().filter_map(|item| item.text().cloned()).collect(),
        };
    }
    ask.n = whole("n");
    ask.logprobs = flag("logprobs").unwrap_or(false);
    ask.top_logprobs = whole("top_logprobs");
    reasoning(body, &mut ask);
    ask.format = body.get("response_format").and_then(format);
    ask.verbosity = text("verbosity");
    ask.tools = tools(body)?;
    ask.choice = body.get("tool_choice").or_else(|| body.get("function_call")).map(choice);
    ask.parallel = flag("parallel_tool_calls");
    ask.cache_key = text("prompt_cache_key");
    ask.tier = text("service_tier");
    ask.metadata = body.get("metadata").map(|node| node.raw);
    ask.rest.extend(others(body, KNOWN));
    ask.user = text("safety_identifier");
    if ask.user.is_none() {
        ask.user = text("user");
        ask.rest.retain(|member| member.name != "user");
    }
    ask.turns = super::turns_in::read(body.get("messages"))?;
    Ok(ask)
}

/// `reasoning_effort`, or the object other gateways take.
fn reasoning<'a>(body: &Node<'a>, ask: &mut Ask<'a>) {
    ask.take_effort("reasoning_effort", body.get("reasoning_effort"));
    if let Some(more) = body.get("reasoning") {
        if ask.reasoning.effort.is_none() {
            ask.take_effort("reasoning.effort", more.get("effort"));
        }
        ask.reasoning.budget = more.get("max_tokens").and_then(Node::number);
        ask.reasoning.shown = more.get("exclude").and_then(Node::bool).map(|hidden| !hidden);
        if more.get("enabled").and_then(Node::bool) == Some(false) {
            ask.reasoning.effort = Some(Effort::None);
        }
    }
}

fn format<'a>(node: &Node<'a>) -> Option<Format<'a>> {
    match node.str_of("type") {
        "text" => Some(Format::Text),
        "json_object" => Some(Format::Json),
        "json_schema" => {
            let inner = node.get("json_schema")?;
            Some(Format::Schema {
                name: inner.text_of("name").cloned(),
                description: inner.text_of("description").cloned(),
                schema: inner.get("schema").map_or(Cow::Borrowed("{}"), |schema| Cow::Borrowed(schema.raw)),
                strict: inner.get("strict").and_then(Node::bool),
            })
        }
        _ => None,
    }
}

fn tools<'a>(body: &Node<'a>) -> Result<Vec<Tool<'a>>, Problem> {
    let mut tools = Vec::new();
    for (at, node) in body.get("tools").map_or(&[][..], Node::items).iter().enumerate() {
        let custom = node.str_of("type") == "custom";
        let inner = node.get(if custom { "custom" } else { "function" });
        let Some(inner) = inner else {
            tools.push(hosted(node, at));
            continue;
        };
        let Some(name) = inner.text_of("name").cloned() else {
            return Err(Problem::missing(&format!("tools[{at}].function.name")));
        };
        tools.push(function(node, inner, name, custom, format!("tools[{at}]")));
    }
    for (at, node) in body.get("functions").map_or(&[][..], Node::items).iter().enumerate() {
        let Some(name) = node.text_of("name").cloned() else {
            return Err(Problem::missing(&format!("functions[{at}].name")));
        };
        tools.push(function(node, node, name, false, format!("functions[{at}]")));
    }
    Ok(tools)
}

fn function<'a>(node: &Node<'a>, inner: &Node<'a>, name: Cow<'a, str>, custom: bool, at: String) -> Tool<'a> {
    let kind = if custom {
        ToolKind::Custom { format: inner.get("format").map(|format| format.raw) }
    } else {
        ToolKind::Function {
            schema: inner.get("parameters").map(|schema| Cow::Borrowed(schema.raw)),
            strict: inner.get("strict").and_then(Node::bool),
        }
    };
    Tool {
        name,
        namespace: None,
        description: inner.text_of("description").cloned(),
        kind,
        cached: node.get("cache_control").is_some(),
        at,
        rest: others(inner, &["name", "description", "parameters", "strict", "format"]),
    }
}

/// A tool that runs at the provider.
fn hosted<'a>(node: &Node<'a>, at: usize) -> Tool<'a> {
    Tool {
        name: node.text_of("type").cloned().unwrap_or(Cow::Borrowed("tool")),
        namespace: None,
        description: None,
        kind: ToolKind::Hosted,
        cached: false,
        at: format!("tools[{at}]"),
        rest: Vec::new(),
    }
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
    let named = |key: &str| node.get(key).and_then(|inner| inner.text_of("name")).cloned();
    if let Some(name) = named("function").or_else(|| named("custom")).or_else(|| node.text_of("name").cloned()) {
        return ToolChoice::Named(name);
    }
    match node.get("allowed_tools") {
        Some(allowed) => {
            let names = allowed.get("tools").map_or(&[][..], Node::items).iter();
            let name = |tool: &Node<'a>| tool.get("function").or_else(|| tool.get("custom"))?.text_of("name").cloned();
            ToolChoice::Allowed {
                names: names.filter_map(name).collect(),
                required: allowed.str_of("mode") == "required",
            }
        }
        None => ToolChoice::Foreign(node.raw),
    }
}

/// The kind of a call's `type`.
pub(super) fn call_kind(node: &Node<'_>) -> CallKind {
    if node.get("custom").is_some() { CallKind::Custom } else { CallKind::Function }
}

/// Members a message may have that carry no meaning for another dialect's part.
pub(super) fn leftovers<'a>(node: &Node<'a>, known: &[&str]) -> Vec<Member<'a>> {
    others(node, known)
}
