//! A request of the hub written for a provider that speaks Anthropic messages.

use super::blocks_out::{self, Marks};
use super::thinking::Thinking;
use super::tools_out;
use crate::hub::{Ask, Carry, Dropped, Merge, OutputFormat, Role, Target, ToolNames, paired};
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

const JSON_ONLY: &str = "Answer with one JSON object and nothing else: no explanation, no code fence.";

/// Stands where a conversation begins with the assistant.
const BEGINS: &str = "<system-reminder>\nThe assistant speaks first in this conversation.\n</system-reminder>";

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, ToolNames), Problem> {
    let mut carry = Carry::begin(&mut ask, target)?;
    let names = ToolNames::of(&ask.tools, target);
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    let system = blocks_out::prepare(&mut ask, &mut carry)?;
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::All)?;
    if ask.turns.is_empty() {
        return Err(Problem::new(
            tollgate_wire::error::Code::InvalidRequest,
            "messages",
            "There is no message but the system's.",
        ));
    }
    let thinking = Thinking::of(&ask, &mut carry)?;
    body.text("model", &target.model);
    body.number("max_tokens", thinking.max_tokens);
    let mut marks = Marks::default();
    let schema = match &ask.format {
        Some(format) => carry.schema(format, target.native_schema)?,
        None => None,
    };
    let instruction = instruction(&ask, schema.as_deref(), target);
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
    tools_out::write(&ask, thinking.is_on(), &mut body, &mut carry, &mut marks)?;
    let schema = match schema.filter(|_| target.native_schema) {
        Some(schema) => Some(carry.closed_schema(&schema)?),
        None => None,
    };
    write_thinking(&thinking, schema, &mut body);
    sampling(&ask, thinking.is_on(), &mut body, &mut carry)?;
    others(&ask, &mut body, &mut carry)?;
    carry.drop_if("cache_control", marks.overflow())?;
    body.end();
    Ok((out, carry.dropped, names))
}

/// What the model reads in words because the provider has no field for it.
fn instruction(ask: &Ask<'_>, schema: Option<&str>, target: &Target) -> Option<String> {
    match (&ask.format, schema) {
        (Some(OutputFormat::Json), _) => Some(JSON_ONLY.to_owned()),
        (_, Some(schema)) if !target.native_schema => {
            Some(format!("{JSON_ONLY} It must follow this JSON Schema:\n{schema}"))
        }
        _ => None,
    }
}

fn write_thinking(thinking: &Thinking, schema: Option<String>, body: &mut Object<'_>) {
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
    carry.rest(ask)
}
