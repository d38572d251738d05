//! A request of the hub written for a provider that speaks Responses.
//!
//! The gateway keeps conversations itself, so nothing is stored there, and sealed reasoning is asked for so that
//! the next turn can bring it back.

use super::items_out;
use crate::dialect::Dialect;
use crate::hub::{
    Ask, Carry, Dropped, Effort, Format, Merge, Names, Part, Role, Target, Tool, ToolChoice, ToolKind, paired,
    sent_name,
};
use crate::json::{Array, Object};
use crate::problem::Problem;

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, Names), Problem> {
    let mut carry = Carry::new(target);
    let names = Names::of(&ask.tools, Dialect::Responses);
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::Nothing)?;
    body.text("model", &target.model);
    instructions(&mut ask, &mut body, &mut carry)?;
    items(&ask, &mut body, &mut carry)?;
    if ask.stream {
        body.bool("stream", true);
    }
    body.bool("store", false);
    body.array("include", |list| {
        list.text("reasoning.encrypted_content");
        if ask.logprobs {
            list.text("message.output_text.logprobs");
        }
    });
    if let Some(most) = ask.max_output {
        body.number("max_output_tokens", most);
    }
    sampling(&ask, &mut body, &mut carry)?;
    output(&ask, &mut body);
    tools(&ask, &mut body, &mut carry)?;
    body.maybe("prompt_cache_key", ask.cache_key.as_deref());
    body.maybe("service_tier", ask.tier.as_deref());
    body.maybe("safety_identifier", ask.user.as_deref());
    body.maybe_raw("metadata", ask.metadata);
    carry.unmarked(ask.cache_all)?;
    carry.rest(ask.origin, &ask.rest)?;
    body.end();
    Ok((out, carry.dropped, names))
}

/// The system texts in front; a developer's stay items, which is what they are there.
fn instructions(ask: &mut Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let leading = ask.turns.iter().take_while(|turn| turn.role == Role::System).count();
    let mut texts: Vec<String> = Vec::new();
    for part in ask.turns.drain(..leading).flat_map(|turn| turn.parts) {
        if let Part::Text { text, cached, rest } = part {
            carry.part_rest(&rest)?;
            carry.unmarked(cached)?;
            texts.push(text.into_owned());
        }
    }
    if !texts.is_empty() {
        body.text("instructions", &texts.join("\n\n"));
    }
    Ok(())
}

fn items(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut list = Array::begin(body.key("input"));
    for turn in &ask.turns {
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

fn output(ask: &Ask<'_>, body: &mut Object<'_>) {
    let asked = &ask.reasoning;
    let effort = asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)));
    // Anthropic shows thoughts unless told otherwise; Gemini when told so.
    let shown = asked.shown.unwrap_or(ask.origin == Dialect::Anthropic && asked.is_on());
    let summary = asked.summary.as_deref().or(shown.then_some("auto"));
    if effort.is_some() || summary.is_some() {
        body.object("reasoning", |reasoning| {
            reasoning.maybe("effort", effort.map(Effort::word));
            reasoning.maybe("summary", summary);
        });
    }
    if ask.format.is_none() && ask.verbosity.is_none() {
        return;
    }
    body.object("text", |text| {
        match &ask.format {
            None => {}
            Some(Format::Text) => text.object("format", |format| format.text("type", "text")),
            Some(Format::Json) => text.object("format", |format| format.text("type", "json_object")),
            Some(Format::Schema { name, description, schema, strict }) => text.object("format", |format| {
                format.text("type", "json_schema");
                format.text("name", name.as_deref().unwrap_or("answer"));
                format.maybe("description", description.as_deref());
                format.raw("schema", schema);
                if let Some(strict) = strict {
                    format.bool("strict", *strict);
                }
            }),
        }
        text.maybe("verbosity", ask.verbosity.as_deref());
    });
}

fn tools(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if ask.tools.is_empty() {
        return Ok(());
    }
    let mut list = Array::begin(body.key("tools"));
    for tool in &ask.tools {
        carry.part_rest(&tool.rest)?;
        carry.unmarked(tool.cached)?;
        write_tool(tool, &mut list)?;
    }
    list.end();
    if let Some(parallel) = ask.parallel {
        body.bool("parallel_tool_calls", parallel);
    }
    match &ask.choice {
        None => {}
        Some(ToolChoice::None) => body.text("tool_choice", "none"),
        Some(ToolChoice::Auto) => body.text("tool_choice", "auto"),
        Some(ToolChoice::Required) => body.text("tool_choice", "required"),
        Some(ToolChoice::Named(name)) => body.object("tool_choice", |choice| one_tool(choice, ask, name)),
        Some(ToolChoice::Allowed { names, required }) => body.object("tool_choice", |choice| {
            choice.text("type", "allowed_tools");
            choice.text("mode", if *required { "required" } else { "auto" });
            choice.array("tools", |list| {
                for name in names {
                    list.object(|tool| one_tool(tool, ask, name));
                }
            });
        }),
        Some(ToolChoice::Foreign(_)) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    }
    Ok(())
}

fn one_tool(object: &mut Object<'_>, ask: &Ask<'_>, name: &str) {
    let custom = ask.tools.iter().any(|tool| tool.name == name && matches!(tool.kind, ToolKind::Custom { .. }));
    object.text("type", if custom { "custom" } else { "function" });
    object.text("name", &sent_name(Dialect::Responses, None, name));
}

fn write_tool(tool: &Tool<'_>, list: &mut Array<'_>) -> Result<(), Problem> {
    let name = sent_name(Dialect::Responses, tool.namespace.as_deref(), &tool.name);
    match &tool.kind {
        ToolKind::Function { schema, strict } => list.object(|one| {
            one.text("type", "function");
            one.text("name", &name);
            one.maybe("description", tool.description.as_deref());
            one.raw("parameters", schema.as_deref().unwrap_or(r#"{"type":"object","properties":{}}"#));
            // Absent means strict here and loose everywhere else.
            one.bool("strict", strict.unwrap_or(false));
        }),
        ToolKind::Custom { format } => list.object(|one| {
            one.text("type", "custom");
            one.text("name", &name);
            one.maybe("description", tool.description.as_deref());
            one.maybe_raw("format", *format);
        }),
        ToolKind::WebSearch => list.object(|one| one.text("type", "web_search")),
        ToolKind::Hosted => {
            let text = format!("The tool `{}` runs at another provider.", tool.name);
            return Err(Problem::unsupported(&tool.at, text));
        }
    }
    Ok(())
}
