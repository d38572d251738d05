//! A request of the hub written for a provider that speaks Responses.
//!
//! The gateway keeps conversations itself, so nothing is stored there, and sealed reasoning is
//! asked for so that the next turn can bring it back, of models that think.

use super::{items_out, tools_out};
use crate::hub::{
    Ask, Carry, Dropped, Effort, Merge, OutputFormat, Role, Target, ToolNames, Turn, fitting_user, paired,
};
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, ToolNames), Problem> {
    let mut carry = Carry::begin(&mut ask, target)?;
    let names = ToolNames::of(&ask.tools, target);
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    body.text("model", &target.model);
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::Nothing)?;
    instructions(&mut ask, &mut body, &mut carry)?;
    items(&ask.turns, &mut body, &mut carry)?;
    body.bool("store", false);
    include(&ask, target, &mut body);
    if ask.stream {
        body.bool("stream", true);
    }
    if let Some(most) = ask.max_output {
        body.number("max_output_tokens", most);
    }
    sampling(&ask, &mut body, &mut carry)?;
    reasoning(&ask, &mut body, &mut carry)?;
    output(&ask, &mut body);
    tools_out::write(&ask, &mut body, &mut carry)?;
    body.maybe("prompt_cache_key", ask.cache_key.as_deref());
    body.maybe("service_tier", ask.tier.as_deref());
    body.maybe("safety_identifier", ask.user.as_deref().map(fitting_user).as_deref());
    body.maybe_raw("metadata", ask.metadata);
    carry.drop_cache_mark(ask.cache_all)?;
    carry.rest(&ask)?;
    body.end();
    Ok((out, carry.dropped, names))
}

/// What the provider is asked to add to its answer.
fn include(ask: &Ask<'_>, target: &Target, body: &mut Object<'_>) {
    let seals = thinks(ask, target);
    if seals || ask.logprobs {
        body.array("include", |list| {
            if seals {
                list.text("reasoning.encrypted_content");
            }
            if ask.logprobs {
                list.text("message.output_text.logprobs");
            }
        });
    }
}

/// The system texts in front; a developer's stay items, which is what they are there.
fn instructions(ask: &mut Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let leading = ask.turns.iter().take_while(|turn| turn.role == Role::System).count();
    let mut texts: Vec<String> = Vec::new();
    for turn in ask.turns.drain(..leading) {
        for part in &turn.parts {
            let (text, cached) = part.system_text(&turn.at)?;
            carry.drop_cache_mark(cached)?;
            texts.push(text.to_owned());
        }
    }
    if !texts.is_empty() {
        body.text("instructions", &texts.join("\n\n"));
    }
    Ok(())
}

fn items(turns: &[Turn<'_>], body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut list = Array::begin(body.key("input"));
    for turn in turns {
        items_out::write(turn, &mut list, carry)?;
    }
    list.end();
    Ok(())
}

fn sampling(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if carry.target.sampling {
        body.maybe_raw("temperature", ask.temperature);
        body.maybe_raw("top_p", ask.top_p);
    } else {
        carry.drop_if("temperature", ask.temperature.is_some())?;
        carry.drop_if("top_p", ask.top_p.is_some())?;
    }
    if let Some(top) = ask.top_logprobs.filter(|_| ask.logprobs) {
        body.number("top_logprobs", top);
    }
    carry.drop_if("top_k", ask.top_k.is_some())?;
    carry.drop_if("frequency_penalty", ask.frequency_penalty.is_some_and(|text| text != "0"))?;
    carry.drop_if("presence_penalty", ask.presence_penalty.is_some_and(|text| text != "0"))?;
    carry.drop_if("seed", ask.seed.is_some())?;
    if !ask.stop.is_empty() {
        return Err(Problem::unsupported("stop", "The model's provider knows no stop sequences."));
    }
    if ask.n.is_some_and(|n| n > 1) {
        return Err(Problem::unsupported("n", "The model's provider gives one choice per call."));
    }
    Ok(())
}

fn effort(ask: &Ask<'_>) -> Option<Effort> {
    let asked = &ask.reasoning;
    asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)))
}

/// The model thinks, or the client says how hard it shall.
fn thinks(ask: &Ask<'_>, target: &Target) -> bool {
    target.thinks || effort(ask).is_some_and(|effort| effort != Effort::None)
}

fn reasoning(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let asked = &ask.reasoning;
    // Anthropic shows thoughts unless asked not to; Gemini when asked to.
    let mut shown = asked.shown.unwrap_or(ask.origin == Dialect::Anthropic && asked.is_on());
    if !thinks(ask, carry.target) {
        carry.drop_display(asked.shown == Some(true))?;
        shown = false;
    }
    let effort = effort(ask).map(Effort::word);
    let summary = asked.summary.as_deref().or(shown.then_some("auto"));
    if effort.is_some() || summary.is_some() {
        body.object("reasoning", |reasoning| {
            reasoning.maybe("effort", effort);
            reasoning.maybe("summary", summary);
        });
    }
    Ok(())
}

fn output(ask: &Ask<'_>, body: &mut Object<'_>) {
    if ask.format.is_none() && ask.verbosity.is_none() {
        return;
    }
    body.object("text", |text| {
        if let Some(format) = &ask.format {
            text.object("format", |one| write_format(format, one));
        }
        text.maybe("verbosity", ask.verbosity.as_deref());
    });
}

fn write_format(format: &OutputFormat<'_>, one: &mut Object<'_>) {
    match format {
        OutputFormat::Text => one.text("type", "text"),
        OutputFormat::Json => one.text("type", "json_object"),
        OutputFormat::Schema { name, description, schema, strict } => {
            one.text("type", "json_schema");
            one.text("name", name.as_deref().unwrap_or("answer"));
            one.maybe("description", description.as_deref());
            one.raw("schema", schema.as_deref().unwrap_or("{}"));
            if let Some(strict) = strict {
                one.bool("strict", *strict);
            }
        }
    }
}
