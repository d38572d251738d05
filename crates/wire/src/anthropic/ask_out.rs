//! A request of the hub written for a provider that speaks Anthropic messages.

use super::blocks_out::{self, Marks};
use super::thinking::{Thinking, choice_beside};
use crate::dialect::Dialect;
use crate::hub::{
    Ask, Carry, Dropped, FREE_TEXT, Format, Merge, Names, Role, Target, Tool, ToolChoice, ToolKind, for_anthropic,
    free_text_schema, object_schema, paired, sent_name,
};
use crate::json::{Array, Object};
use crate::problem::Problem;
use std::collections::HashSet;

const JSON_ONLY: &str = "Answer with one JSON object and nothing else: no explanation, no code fence.";

/// Stands where a conversation begins with the assistant.
const BEGINS: &str = "<system-reminder>\nThe assistant speaks first in this conversation.\n</system-reminder>";

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, Names), Problem> {
    let mut carry = Carry::new(target);
    let names = Names::of(&ask.tools, Dialect::Anthropic);
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    let system = blocks_out::prepare(&mut ask, &mut carry)?;
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::All)?;
    if ask.turns.is_empty() {
        return Err(Problem::new(
            crate::error::Code::InvalidRequest,
            "messages",
            "There is no message but the system's.",
        ));
    }
    let thinking = Thinking::of(&ask, &mut carry)?;
    body.text("model", &target.model);
    body.number("max_tokens", thinking.max_tokens);
    let mut marks = Marks::default();
    let instruction = instruction(&ask, target);
    if !system.is_empty() || instruction.is_some() {
        blocks_out::system(&system, instruction.as_deref(), &mut body, &mut marks);
    }
    let mut list = Array::begin(body.key("messages"));
    if ask.turns.first().is_some_and(|turn| turn.role == Role::Assistant) {
        // The first to speak must be the user, who cannot say nothing.
        list.object(|first| {
            first.text("role", "user");
            first.text("content", BEGINS);
        });
    }
    for turn in &ask.turns {
        blocks_out::message(turn, &mut list, &mut carry, &mut marks)?;
    }
    list.end();
    if ask.stream {
        body.bool("stream", true);
    }
    tools(&ask, thinking.is_on(), &mut body, &mut carry, &mut marks)?;
    write_thinking(&ask, &thinking, target.native_schema, &mut body);
    sampling(&ask, thinking.is_on(), &mut body, &mut carry)?;
    others(&ask, &mut body, &mut carry)?;
    body.end();
    Ok((out, carry.dropped, names))
}

/// What the model is told in words because the provider has no field for it.
fn instruction(ask: &Ask<'_>, target: &Target) -> Option<String> {
    match &ask.format {
        Some(Format::Json) => Some(JSON_ONLY.to_owned()),
        Some(Format::Schema { schema, .. }) if !target.native_schema => {
            Some(format!("{JSON_ONLY} It must follow this JSON Schema:\n{schema}"))
        }
        _ => None,
    }
}

fn write_thinking(ask: &Ask<'_>, thinking: &Thinking, native_schema: bool, body: &mut Object<'_>) {
    if thinking.is_on() {
        body.object("thinking", |inner| {
            match thinking.budget {
                Some(budget) => {
                    inner.text("type", "enabled");
                    inner.number("budget_tokens", budget);
                }
                None => inner.text("type", "adaptive"),
            }
            if let Some(shown) = thinking.shown {
                inner.text("display", if shown { "summarized" } else { "omitted" });
            }
        });
    }
    let schema = match &ask.format {
        Some(Format::Schema { schema, .. }) if native_schema => Some(for_anthropic(schema)),
        _ => None,
    };
    if thinking.effort.is_some() || schema.is_some() {
        body.object("output_config", |config| {
            config.maybe("effort", thinking.effort);
            if let Some(schema) = &schema {
                config.object("format", |format| {
                    format.text("type", "json_schema");
                    format.raw("schema", schema);
                });
            }
        });
    }
}

fn sampling(ask: &Ask<'_>, thinking: bool, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if thinking || !carry.target.sampling {
        carry.drop_if("temperature", ask.temperature.is_some_and(|text| text != "1"))?;
        carry.drop_if("top_p", ask.top_p.is_some_and(|text| text != "1"))?;
        carry.drop_if("top_k", ask.top_k.is_some())?;
        return Ok(());
    }
    if let Some(text) = ask.temperature {
        // Anthropic's scale ends at 1.
        let above = text.parse::<f64>().is_ok_and(|value| value > 1.0);
        carry.drop_if("temperature", above)?;
        body.raw("temperature", if above { "1" } else { text });
        // Newer models refuse the two together.
        carry.drop_if("top_p", ask.top_p.is_some())?;
    } else {
        body.maybe_raw("top_p", ask.top_p);
    }
    body.maybe_raw("top_k", ask.top_k);
    Ok(())
}

fn others(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let stops: Vec<_> = ask.stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
    carry.drop_if("stop", stops.len() < ask.stop.len())?;
    if !stops.is_empty() {
        body.array("stop_sequences", |list| stops.iter().for_each(|stop| list.text(stop)));
    }
    if ask.n.is_some_and(|n| n > 1) {
        return Err(Problem::unsupported("n", "The model's provider gives one choice per call."));
    }
    if ask.logprobs {
        return Err(Problem::unsupported("logprobs", "The model's provider gives no log probabilities."));
    }
    for (name, given) in [
        ("frequency_penalty", ask.frequency_penalty.is_some_and(|text| text != "0")),
        ("presence_penalty", ask.presence_penalty.is_some_and(|text| text != "0")),
        ("seed", ask.seed.is_some()),
        ("verbosity", ask.verbosity.is_some()),
        ("prompt_cache_key", ask.cache_key.is_some()),
        ("metadata", ask.metadata.is_some_and(|raw| raw != "{}")),
    ] {
        carry.drop_if(name, given)?;
    }
    if let Some(user) = &ask.user {
        body.object("metadata", |metadata| metadata.text("user_id", user));
    }
    match ask.tier.as_deref() {
        None => {}
        Some("auto" | "priority") => body.text("service_tier", "auto"),
        Some("default" | "standard") => body.text("service_tier", "standard_only"),
        Some(_) => carry.drop("service_tier")?,
    }
    if ask.cache_all {
        body.object("cache_control", |mark| mark.text("type", "ephemeral"));
    }
    carry.rest(ask.origin, &ask.rest)
}

fn tools(
    ask: &Ask<'_>,
    thinking: bool,
    body: &mut Object<'_>,
    carry: &mut Carry<'_>,
    marks: &mut Marks,
) -> Result<(), Problem> {
    if ask.tools.is_empty() {
        return history_tools(ask, body);
    }
    let allowed = match &ask.choice {
        Some(ToolChoice::Allowed { names, .. }) => {
            carry.drop("tool_choice.allowed_tools")?;
            Some(names)
        }
        _ => None,
    };
    let mut list = Array::begin(body.key("tools"));
    for tool in &ask.tools {
        if allowed.is_none_or(|names| names.contains(&tool.name)) {
            carry.part_rest(&tool.rest)?;
            write_tool(tool, &mut list, carry, marks)?;
        }
    }
    list.end();
    let choice = choice_beside(ask.choice.as_ref(), thinking, carry)?;
    let (kind, name) = match choice {
        None if ask.parallel == Some(false) => ("auto", None),
        None => return Ok(()),
        Some(ToolChoice::None) => ("none", None),
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => ("auto", None),
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => ("any", None),
        Some(ToolChoice::Named(name)) => ("tool", Some(sent_name(Dialect::Anthropic, None, name))),
        Some(ToolChoice::Foreign(_)) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    };
    body.object("tool_choice", |inner| {
        inner.text("type", kind);
        inner.maybe("name", name.as_deref());
        if ask.parallel == Some(false) && kind != "none" {
            inner.bool("disable_parallel_tool_use", true);
        }
    });
    Ok(())
}

/// Anthropic refuses calls in the history of a request without tools: they are declared from it.
fn history_tools(ask: &Ask<'_>, body: &mut Object<'_>) -> Result<(), Problem> {
    let mut known: HashSet<String> = HashSet::new();
    let mut names: Vec<String> = Vec::new();
    for call in ask.turns.iter().flat_map(|turn| turn.calls()) {
        let name = sent_name(Dialect::Anthropic, call.namespace.as_deref(), &call.name).into_owned();
        if known.insert(name.clone()) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        body.array("tools", |list| {
            for name in &names {
                list.object(|tool| {
                    tool.text("name", name);
                    tool.text("description", "Used earlier in this conversation.");
                    tool.raw("input_schema", &object_schema(None));
                });
            }
        });
        body.object("tool_choice", |choice| choice.text("type", "none"));
    }
    Ok(())
}

fn write_tool(tool: &Tool<'_>, list: &mut Array<'_>, carry: &mut Carry<'_>, marks: &mut Marks) -> Result<(), Problem> {
    let schema = match &tool.kind {
        ToolKind::Function { schema, .. } => object_schema(schema.as_deref()),
        ToolKind::Custom { format } => {
            carry.drop_if(&format!("{}.format", tool.at), format.is_some_and(|raw| !raw.contains("\"text\"")))?;
            free_text_schema(FREE_TEXT)
        }
        ToolKind::WebSearch => {
            list.object(|one| {
                one.text("type", "web_search_20250305");
                one.text("name", "web_search");
            });
            return Ok(());
        }
        ToolKind::Hosted => {
            let text = format!("The tool `{}` runs at another provider.", tool.name);
            return Err(Problem::unsupported(&tool.at, text));
        }
    };
    let strict = matches!(tool.kind, ToolKind::Function { strict: Some(true), .. });
    let marked = tool.cached && marks.take();
    list.object(|one| {
        one.text("name", &sent_name(Dialect::Anthropic, tool.namespace.as_deref(), &tool.name));
        one.maybe("description", tool.description.as_deref());
        one.raw("input_schema", &schema);
        if strict {
            one.bool("strict", true);
        }
        if marked {
            one.object("cache_control", |mark| mark.text("type", "ephemeral"));
        }
    });
    Ok(())
}
