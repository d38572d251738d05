//! A request of the hub written for a provider that speaks Gemini's generateContent.

use super::{parts_out, tools_out};
use crate::anthropic::reminder;
use crate::hub::{Ask, Carry, Dropped, Effort, Merge, OutputFormat, Part, Role, Target, ToolNames, paired, sent_name};
use std::collections::HashMap;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object, lossy};

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, ToolNames), Problem> {
    let mut carry = Carry::begin(&mut ask, target)?;
    let names = ToolNames::of(&ask.tools, target);
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    let system = prepare(&mut ask, &mut carry)?;
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::All)?;
    if ask.turns.last().is_none_or(|turn| turn.role == Role::Assistant) {
        let at = ask.turns.last().map_or("messages", |turn| &turn.at);
        return Err(Problem::unsupported(at, "The model's provider does not go on with an answer that was begun."));
    }
    if !system.is_empty() {
        body.object("systemInstruction", |inner| {
            inner.array("parts", |list| {
                for text in &system {
                    list.object(|part| part.text("text", text));
                }
            });
        });
    }
    contents(&ask, &mut body, &mut carry)?;
    tools_out::write(&ask, &mut body, &mut carry)?;
    generation(&ask, &mut body, &mut carry)?;
    match ask.tier.as_deref() {
        None | Some("auto") => {}
        Some("default" | "standard") => body.text("serviceTier", "standard"),
        Some(tier @ ("flex" | "priority")) => body.text("serviceTier", tier),
        Some(_) => carry.drop("service_tier")?,
    }
    for (name, given) in [
        ("user", ask.user.is_some()),
        ("metadata", ask.metadata.is_some_and(|raw| raw != "{}")),
        ("prompt_cache_key", ask.cache_key.is_some()),
        ("verbosity", ask.verbosity.is_some()),
    ] {
        carry.drop_if(name, given)?;
    }
    carry.rest(&ask)?;
    body.end();
    Ok((out, carry.dropped, names))
}

/// Takes the leading system texts out and makes reminders of later ones.
fn prepare(ask: &mut Ask<'_>, carry: &mut Carry<'_>) -> Result<Vec<String>, Problem> {
    let leading = ask.turns.iter().take_while(|turn| turn.role.is_system()).count();
    let mut system = Vec::new();
    for turn in ask.turns.drain(..leading) {
        for part in &turn.parts {
            system.push(part.system_text(&turn.at)?.0.to_owned());
        }
    }
    let turns = std::mem::take(&mut ask.turns);
    ask.turns = turns.into_iter().map(|turn| if turn.role.is_system() { reminder(turn) } else { turn }).collect();
    for turn in &mut ask.turns {
        let mut parts = Vec::with_capacity(turn.parts.len());
        for part in std::mem::take(&mut turn.parts) {
            match part {
                Part::Thought { ref thought, .. } if !parts_out::is_hers(thought) => carry.drop("reasoning")?,
                Part::Text { text, .. } if text.is_empty() => {}
                Part::Foreign { what, words: None, .. } if turn.role == Role::Assistant => carry.drop(&what)?,
                other => parts.push(other),
            }
        }
        turn.parts = parts;
    }
    ask.turns.retain(|turn| !turn.parts.is_empty());
    Ok(system)
}

fn contents(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut list = Array::begin(body.key("contents"));
    if ask.turns.first().is_some_and(|turn| turn.role == Role::Assistant) {
        // A conversation must begin with the user.
        list.raw(r#"{"role":"user","parts":[{"text":""}]}"#);
    }
    let calls: HashMap<String, String> = ask
        .turns
        .iter()
        .flat_map(|turn| turn.calls())
        .map(|call| {
            (call.id.to_string(), sent_name(Dialect::Gemini, call.namespace.as_deref(), &call.name).into_owned())
        })
        .collect();
    for turn in &ask.turns {
        parts_out::write(turn, &calls, &mut list, carry)?;
    }
    list.end();
    Ok(())
}

fn generation(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut out = Vec::new();
    let mut config = Object::begin(&mut out);
    if carry.target.sampling {
        config.maybe_raw("temperature", ask.temperature);
        config.maybe_raw("topP", ask.top_p);
        config.maybe_raw("topK", ask.top_k);
    } else {
        carry.drop_if("temperature", ask.temperature.is_some())?;
        carry.drop_if("top_p", ask.top_p.is_some())?;
        carry.drop_if("top_k", ask.top_k.is_some())?;
    }
    if let Some(n) = ask.n {
        config.number("candidateCount", n);
    }
    if let Some(most) = ask.max_output {
        config.number("maxOutputTokens", most);
    }
    if !ask.stop.is_empty() {
        config.array("stopSequences", |list| ask.stop.iter().for_each(|stop| list.text(stop)));
    }
    config.maybe_raw("presencePenalty", ask.presence_penalty);
    config.maybe_raw("frequencyPenalty", ask.frequency_penalty);
    config.maybe_raw("seed", ask.seed);
    if ask.logprobs {
        config.bool("responseLogprobs", true);
        if let Some(top) = ask.top_logprobs {
            config.number("logprobs", top);
        }
    }
    match &ask.format {
        None => {}
        Some(OutputFormat::Text) => config.text("responseMimeType", "text/plain"),
        Some(OutputFormat::Json) => config.text("responseMimeType", "application/json"),
        Some(format @ OutputFormat::Schema { .. }) => {
            config.text("responseMimeType", "application/json");
            config.maybe_raw("responseJsonSchema", carry.schema(format, true)?.as_deref());
        }
    }
    thinking(ask, &mut config, carry)?;
    config.end();
    if out != b"{}" {
        body.raw("generationConfig", &lossy(&out));
    }
    Ok(())
}

fn thinking(ask: &Ask<'_>, config: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let asked = &ask.reasoning;
    carry.drop_if("reasoning.summary", asked.summary.as_deref().is_some_and(|summary| summary != "auto"))?;
    let on = asked.is_on();
    let shown = asked.shown.or(asked.summary.as_ref().map(|_| true));
    let shown = shown.or((ask.origin == Dialect::Anthropic && on).then_some(true));
    if !on && asked.effort.is_none() && shown.is_none() {
        return Ok(());
    }
    let budget = if carry.target.gemini3 { None } else { budget(ask, carry)? };
    config.object("thinkingConfig", |inner| {
        if let Some(shown) = shown {
            inner.bool("includeThoughts", shown);
        }
        let effort = asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)));
        match (carry.target.gemini3, effort, budget) {
            (true, Some(effort), _) => inner.text("thinkingLevel", effort.gemini_level()),
            (false, _, Some(budget)) => inner.number("thinkingBudget", budget),
            (false, None, None) if asked.adaptive => inner.raw("thinkingBudget", "-1"),
            _ => {}
        }
    });
    Ok(())
}

/// The budget of a model that takes one, within what it takes. What the client said itself and does
/// not get is reported.
fn budget(ask: &Ask<'_>, carry: &mut Carry<'_>) -> Result<Option<u64>, Problem> {
    let asked = &ask.reasoning;
    let (least, most) = carry.target.budgets.clone().into_inner();
    let off = asked.budget == Some(0) || (asked.budget.is_none() && asked.effort == Some(Effort::None));
    if off {
        carry.drop_if("reasoning", carry.target.thinks_always)?;
        return Ok(Some(if carry.target.thinks_always { least } else { 0 }));
    }
    let wanted = asked.budget.or(asked.effort.map(|effort| effort.budget(ask.max_output)));
    let given = wanted.map(|budget| budget.min(most).max(least));
    carry.drop_if("reasoning", asked.budget.is_some() && asked.budget != given)?;
    Ok(given)
}
