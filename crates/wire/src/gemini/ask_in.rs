//! A generateContent request read into the hub. Model and streaming are told by the path.

use super::parts_in;
use crate::dialect::Dialect;
use crate::hub::{Ask, Effort, Format, Member, Role, Tool, ToolChoice, ToolKind, Turn, from_gemini, others};
use crate::json::Node;
use crate::problem::Problem;
use std::borrow::Cow;

/// Members of a request that the hub has a place for.
const KNOWN: &[&str] = &[
    "contents",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "tool_config",
    "labels",
    "serviceTier",
    "service_tier",
    "generationConfig",
    "generation_config",
    "model",
];

const KNOWN_CONFIG: &[&str] = &[
    "temperature",
    "topP",
    "top_p",
    "topK",
    "top_k",
    "candidateCount",
    "candidate_count",
    "maxOutputTokens",
    "max_output_tokens",
    "stopSequences",
    "stop_sequences",
    "responseMimeType",
    "response_mime_type",
    "responseSchema",
    "response_schema",
    "responseJsonSchema",
    "response_json_schema",
    "presencePenalty",
    "presence_penalty",
    "frequencyPenalty",
    "frequency_penalty",
    "seed",
    "responseLogprobs",
    "response_logprobs",
    "logprobs",
    "thinkingConfig",
    "thinking_config",
];

pub(crate) fn read<'a>(body: &Node<'a>, stream: bool) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Gemini);
    ask.rest.extend(others(body, KNOWN));
    ask.stream = stream;
    if let Some(config) = body.either("generationConfig", "generation_config") {
        generation(config, &mut ask);
    }
    ask.metadata = body.get("labels").map(|node| node.raw);
    ask.tier = body.either("serviceTier", "service_tier").and_then(Node::text).map(|tier| match tier.as_ref() {
        "standard" | "STANDARD" => Cow::Borrowed("default"),
        other => Cow::Owned(other.to_lowercase()),
    });
    for (at, tool) in body.get("tools").map_or(&[][..], Node::items).iter().enumerate() {
        tools(tool, &format!("tools[{at}]"), &mut ask.tools)?;
    }
    if let Some(config) = body.either("toolConfig", "tool_config") {
        ask.choice = config.either("functionCallingConfig", "function_calling_config").and_then(choice);
        for member in others(config, &["functionCallingConfig", "function_calling_config"]) {
            ask.rest.push(Member { name: format!("toolConfig.{}", member.name).into(), raw: member.raw });
        }
    }
    if let Some(system) = body.either("systemInstruction", "system_instruction") {
        let parts = match system.text() {
            Some(text) => vec![crate::hub::Part::text(text.clone())],
            None => parts_in::content(system, 0, &mut Vec::new()),
        };
        if !parts.is_empty() {
            ask.turns.push(Turn::new(Role::System, parts, "systemInstruction".to_owned()));
        }
    }
    let Some(contents) = body.get("contents") else { return Err(Problem::missing("contents")) };
    let one = std::slice::from_ref(contents);
    let list = if contents.is_map() { one } else { contents.items() };
    let mut open = Vec::new();
    for (at, content) in list.iter().enumerate() {
        let role = match content.str_of("role") {
            "model" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        let parts = parts_in::content(content, at, &mut open);
        ask.turns.push(Turn::new(role, parts, format!("contents[{at}]")));
    }
    Ok(ask)
}

fn generation<'a>(config: &Node<'a>, ask: &mut Ask<'a>) {
    let get = |camel: &str, snake: &str| config.either(camel, snake).cloned();
    ask.temperature = config.get("temperature").and_then(Node::decimal);
    ask.top_p = get("topP", "top_p").and_then(|node| node.decimal());
    ask.top_k = get("topK", "top_k").and_then(|node| node.decimal());
    ask.n = get("candidateCount", "candidate_count").and_then(|node| node.number());
    ask.max_output = get("maxOutputTokens", "max_output_tokens").and_then(|node| node.number());
    ask.presence_penalty = get("presencePenalty", "presence_penalty").and_then(|node| node.decimal());
    ask.frequency_penalty = get("frequencyPenalty", "frequency_penalty").and_then(|node| node.decimal());
    ask.seed = config.get("seed").and_then(Node::decimal);
    ask.logprobs = get("responseLogprobs", "response_logprobs").and_then(|node| node.bool()).unwrap_or(false);
    ask.top_logprobs = config.get("logprobs").and_then(Node::number);
    if let Some(stops) = get("stopSequences", "stop_sequences") {
        ask.stop = stops.items().iter().filter_map(|stop| stop.text().cloned()).collect();
    }
    let schema = get("responseJsonSchema", "response_json_schema")
        .map(|schema| Cow::Borrowed(schema.raw))
        .or_else(|| get("responseSchema", "response_schema").map(|schema| Cow::Owned(from_gemini(&schema))));
    let mime = get("responseMimeType", "response_mime_type").and_then(|mime| mime.text().cloned());
    ask.format = match (schema, mime.as_deref()) {
        (Some(schema), _) => Some(Format::Schema { name: None, description: None, schema, strict: None }),
        (None, Some("application/json")) => Some(Format::Json),
        (None, Some("text/plain")) => Some(Format::Text),
        (None, Some(_)) => {
            if let Some(mime) = get("responseMimeType", "response_mime_type") {
                ask.rest.push(Member { name: "generationConfig.responseMimeType".into(), raw: mime.raw });
            }
            None
        }
        (None, None) => None,
    };
    if let Some(thinking) = get("thinkingConfig", "thinking_config") {
        let level = thinking
            .either("thinkingLevel", "thinking_level")
            .filter(|level| level.text().is_none_or(|text| text != "THINKING_LEVEL_UNSPECIFIED"));
        ask.take_effort("generationConfig.thinkingConfig.thinkingLevel", level);
        match thinking.either("thinkingBudget", "thinking_budget").map(|budget| (budget.raw, budget.number())) {
            Some(("-1", _)) => ask.reasoning.adaptive = true,
            Some((_, Some(0))) => ask.reasoning.effort = Some(Effort::None),
            Some((_, budget)) => ask.reasoning.budget = budget,
            None => {}
        }
        ask.reasoning.shown = thinking.either("includeThoughts", "include_thoughts").and_then(Node::bool);
    }
    for member in others(config, KNOWN_CONFIG) {
        ask.rest.push(Member { name: format!("generationConfig.{}", member.name).into(), raw: member.raw });
    }
}

fn tools<'a>(node: &Node<'a>, at: &str, tools: &mut Vec<Tool<'a>>) -> Result<(), Problem> {
    for (name, value) in node.members() {
        match name.as_ref() {
            "functionDeclarations" | "function_declarations" => {
                for (inner, declaration) in value.items().iter().enumerate() {
                    tools.push(function(declaration, format!("{at}.{name}[{inner}]"))?);
                }
            }
            _ if value.is_null() => {}
            other => tools.push(Tool {
                name: name.clone(),
                namespace: None,
                description: None,
                kind: match other {
                    "googleSearch" | "google_search" | "googleSearchRetrieval" => ToolKind::WebSearch,
                    _ => ToolKind::Hosted,
                },
                cached: false,
                at: format!("{at}.{name}"),
                rest: Vec::new(),
            }),
        }
    }
    Ok(())
}

fn function<'a>(node: &Node<'a>, at: String) -> Result<Tool<'a>, Problem> {
    let Some(name) = node.text_of("name").cloned() else {
        return Err(Problem::missing(&format!("{at}.name")));
    };
    let schema = node
        .either("parametersJsonSchema", "parameters_json_schema")
        .map(|schema| Cow::Borrowed(schema.raw))
        .or_else(|| node.get("parameters").map(|schema| Cow::Owned(from_gemini(schema))));
    Ok(Tool {
        name,
        namespace: None,
        description: node.text_of("description").cloned(),
        kind: ToolKind::Function { schema, strict: None },
        cached: false,
        at,
        rest: others(node, &["name", "description", "parameters", "parametersJsonSchema", "parameters_json_schema"]),
    })
}

fn choice<'a>(node: &Node<'a>) -> Option<ToolChoice<'a>> {
    let allowed = node.either("allowedFunctionNames", "allowed_function_names").map_or(&[][..], Node::items);
    let mut names: Vec<Cow<'a, str>> = allowed.iter().filter_map(|name| name.text().cloned()).collect();
    match node.str_of("mode") {
        "NONE" => Some(ToolChoice::None),
        "ANY" if names.len() == 1 => names.pop().map(ToolChoice::Named),
        "ANY" if names.is_empty() => Some(ToolChoice::Required),
        "ANY" => Some(ToolChoice::Allowed { names, required: true }),
        "AUTO" | "VALIDATED" if !names.is_empty() => Some(ToolChoice::Allowed { names, required: false }),
        "AUTO" | "VALIDATED" => Some(ToolChoice::Auto),
        _ => None,
    }
}
