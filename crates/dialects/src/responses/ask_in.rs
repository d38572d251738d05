//! A Responses request read into the hub.

use super::{items_in, tools_in};
use crate::hub::{Ask, Fields, OutputFormat, Part, Role, Turn};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

const LOGPROBS: &str = "message.output_text.logprobs";

pub(crate) fn read<'a>(body: &Node<'a>) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Responses);
    let mut fields = Fields::of(body);
    fields.take("model");
    ask.stream = fields.on("stream");
    ask.max_output = fields.number("max_output_tokens");
    ask.temperature = fields.decimal("temperature");
    ask.top_p = fields.decimal("top_p");
    ask.presence_penalty = fields.decimal("presence_penalty");
    ask.frequency_penalty = fields.decimal("frequency_penalty");
    let include = fields.see("include").map_or(&[][..], Node::items);
    ask.logprobs = include.iter().any(|item| item.text().is_some_and(|text| text == LOGPROBS));
    ask.top_logprobs = fields.number("top_logprobs");
    reasoning(&mut fields, &mut ask);
    output(&mut fields, &mut ask);
    tools_in::read(&mut fields, &mut ask)?;
    ask.parallel = fields.bool("parallel_tool_calls");
    ask.cache_key = fields.text("prompt_cache_key");
    ask.tier = fields.text("service_tier");
    ask.metadata = fields.raw("metadata");
    ask.user = fields.text("safety_identifier");
    if ask.user.is_none() {
        ask.user = fields.text("user");
    }
    if let Some(text) = fields.text("instructions") {
        ask.turns.push(Turn::new(Role::System, vec![Part::text(text)], "instructions".to_owned()));
    }
    let Some(input) = fields.take("input") else { return Err(Problem::missing("input")) };
    match input.text() {
        Some(text) => {
            ask.turns.push(Turn::new(Role::User, vec![Part::text(text.clone())], "input".to_owned()));
        }
        None if !input.is_list() => return Err(Problem::wrong("input", "a text or a list of items")),
        None => {
            for (at, item) in input.items().iter().enumerate() {
                ask.turns.push(items_in::read(item, at)?);
            }
        }
    }
    fields.rest_at("", &mut ask.rest);
    Ok(ask)
}

fn reasoning<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let Some(node) = fields.map("reasoning") else { return };
    let mut more = Fields::of(node);
    ask.reasoning.effort = more.effort("effort");
    ask.reasoning.summary = more.text("summary");
    if ask.reasoning.summary.is_none() {
        ask.reasoning.summary = more.text("generate_summary");
    }
    more.rest_at("reasoning", &mut ask.rest);
}

/// `text`: the form of the output, and how much of it. A form that nobody knows is left over.
fn output<'a>(fields: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let Some(node) = fields.map("text") else { return };
    let mut text = Fields::of(node);
    ask.verbosity = text.text("verbosity");
    let known = |node: &&Node<'a>| matches!(node.str_of("type"), "text" | "json_object" | "json_schema");
    if let Some(node) = text.take_if("format", |node| Some(node).filter(known)) {
        let mut format = Fields::of(node);
        ask.format = Some(match format.text("type").as_deref() {
            Some("text") => OutputFormat::Text,
            Some("json_object") => OutputFormat::Json,
            _ => OutputFormat::schema(&mut format),
        });
        format.rest_at("text.format", &mut ask.rest);
    }
    text.rest_at("text", &mut ask.rest);
}
