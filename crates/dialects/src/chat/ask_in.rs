//! A chat request read into the hub.

use super::tools_in;
use crate::hub::{Ask, CallKind, Effort, Fields, OutputFormat};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(crate) fn read<'a>(body: &Node<'a>) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Chat);
    let mut fields = Fields::of(body);
    fields.take("model");
    ask.stream = fields.on("stream");
    limit(&mut fields, &mut ask);
    ask.temperature = fields.decimal("temperature");
    ask.top_p = fields.decimal("top_p");
    ask.top_k = fields.decimal("top_k");
    ask.frequency_penalty = fields.decimal("frequency_penalty");
    ask.presence_penalty = fields.decimal("presence_penalty");
    ask.seed = fields.decimal("seed");
    match fields.text("stop") {
        Some(one) => ask.stop = vec![one],
        None => ask.stop = fields.texts("stop").unwrap_or_default(),
    }
    ask.n = fields.number("n");
    ask.logprobs = fields.on("logprobs");
    ask.top_logprobs = fields.number("top_logprobs");
    reasoning(&mut fields, &mut ask);
    format(&mut fields, &mut ask);
    ask.verbosity = fields.text("verbosity");
    tools_in::read(&mut fields, &mut ask)?;
    ask.parallel = fields.bool("parallel_tool_calls");
    ask.cache_key = fields.text("prompt_cache_key");
    ask.tier = fields.text("service_tier");
    ask.metadata = fields.raw("metadata");
    ask.user = fields.text("safety_identifier");
    if ask.user.is_none() {
        ask.user = fields.text("user");
    }
    ask.turns = super::turns_in::read(fields.take("messages"))?;
    fields.rest_at("", &mut ask.rest);
    Ok(ask)
}

/// The smaller of the two limits holds; the other one is left over.
fn limit<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let limit = |name: &str| fields.see(name).and_then(Node::number);
    let old = match (limit("max_completion_tokens"), limit("max_tokens")) {
        (Some(new), Some(old)) => old < new,
        (None, old) => old.is_some(),
        (Some(_), None) => false,
    };
    ask.max_output = fields.number(if old { "max_tokens" } else { "max_completion_tokens" });
    ask.old_limit = old;
}

/// `reasoning_effort`, or the object other gateways take.
fn reasoning<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let mut effort = fields.effort("reasoning_effort");
    if let Some(node) = fields.map("reasoning") {
        let mut more = Fields::of(node);
        if effort.is_none() {
            effort = more.effort("effort");
        }
        ask.reasoning.budget = more.number("max_tokens");
        ask.reasoning.shown = more.bool("exclude").map(|hidden| !hidden);
        ask.reasoning.off = more.see("enabled").and_then(Node::bool) == Some(false);
        more.rest_at("reasoning", &mut ask.rest);
    }
    ask.reasoning.effort = if ask.reasoning.off { Some(Effort::None) } else { effort };
}

/// A form of the output that nobody knows is left over.
fn format<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let known = |node: &Node<'a>| match node.str_of("type") {
        "text" | "json_object" => true,
        "json_schema" => node.get("json_schema").is_some_and(Node::is_map),
        _ => false,
    };
    let Some(node) = fields.take_if("response_format", |node| Some(node).filter(|node| known(node))) else { return };
    let mut outer = Fields::of(node);
    outer.take("type");
    ask.format = Some(match node.str_of("type") {
        "text" => OutputFormat::Text,
        "json_object" => OutputFormat::Json,
        _ => {
            let mut inner = outer.take("json_schema").map(Fields::of).unwrap_or_else(|| Fields::of(node));
            let format = OutputFormat::schema(&mut inner);
            inner.rest_at("response_format.json_schema", &mut ask.rest);
            format
        }
    });
    outer.rest_at("response_format", &mut ask.rest);
}

/// The kind of a call's `type`.
pub(super) fn call_kind(node: &Node<'_>) -> CallKind {
    if node.get("custom").is_some() { CallKind::Custom } else { CallKind::Function }
}
