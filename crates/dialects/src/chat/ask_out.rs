//! A request of the hub written for a provider that speaks chat completions.

use crate::hub::{Ask, Carry, Dropped, Effort, Merge, OutputFormat, Target, ToolNames, fitting_user, paired};
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// Most stop sequences chat takes.
const MOST_STOPS: usize = 4;

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, ToolNames), Problem> {
    let mut carry = Carry::begin(&mut ask, target)?;
    let names = ToolNames::of(&ask.tools, target);
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::Assistants)?;
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    body.text("model", &target.model);
    messages(&ask, &mut body, &mut carry)?;
    if ask.stream {
        body.bool("stream", true);
        body.object("stream_options", |options| options.bool("include_usage", true));
    }
    let (limit, user) = match target.current_chat {
        true => ("max_completion_tokens", "safety_identifier"),
        false => ("max_tokens", "user"),
    };
    if let Some(most) = ask.max_output {
        body.number(limit, most);
    }
    sampling(&ask, &mut body, &mut carry)?;
    output(&ask, &mut body, &mut carry)?;
    super::tools_out::write(&ask, &mut body, &mut carry)?;
    body.maybe("prompt_cache_key", ask.cache_key.as_deref());
    body.maybe("service_tier", tier(&ask, &mut carry)?);
    body.maybe(user, ask.user.as_deref().map(fitting_user).as_deref());
    body.maybe_raw("metadata", ask.metadata);
    carry.drop_cache_mark(ask.cache_all)?;
    carry.rest(&ask)?;
    body.end();
    Ok((out, carry.dropped, names))
}

fn messages(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let mut list = Array::begin(body.key("messages"));
    super::turns_out::write(ask, &mut list, carry)?;
    list.end();
    Ok(())
}

fn tier<'a>(ask: &'a Ask<'_>, carry: &mut Carry<'_>) -> Result<Option<&'a str>, Problem> {
    let known = ["auto", "default", "flex", "scale", "priority", "fast"];
    match ask.tier.as_deref() {
        Some(tier) if known.contains(&tier) => Ok(Some(tier)),
        None => Ok(None),
        Some(_) => carry.drop("service_tier").map(|()| None),
    }
}

fn sampling(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    if carry.target.sampling {
        body.maybe_raw("temperature", ask.temperature);
        body.maybe_raw("top_p", ask.top_p);
    } else {
        carry.drop_if("temperature", ask.temperature.is_some())?;
        carry.drop_if("top_p", ask.top_p.is_some())?;
    }
    // Many compatible servers take it, OpenAI's own does not.
    if !carry.target.current_chat {
        body.maybe_raw("top_k", ask.top_k);
    } else {
        carry.drop_if("top_k", ask.top_k.is_some())?;
    }
    body.maybe_raw("frequency_penalty", ask.frequency_penalty);
    body.maybe_raw("presence_penalty", ask.presence_penalty);
    body.maybe_raw("seed", ask.seed);
    if ask.stop.len() > MOST_STOPS {
        return Err(Problem::unsupported("stop", "The model's provider takes at most four stop sequences."));
    }
    if !ask.stop.is_empty() {
        body.array("stop", |list| ask.stop.iter().for_each(|stop| list.text(stop)));
    }
    if let Some(n) = ask.n {
        body.number("n", n);
    }
    if ask.logprobs {
        body.bool("logprobs", true);
    }
    if let Some(top) = ask.top_logprobs.filter(|_| ask.logprobs) {
        body.number("top_logprobs", top);
    }
    Ok(())
}

/// How hard to think, in one word.
fn reasoning(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let asked = &ask.reasoning;
    let effort = asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)));
    body.maybe("reasoning_effort", effort.map(Effort::word));
    carry.drop_display(asked.shown.is_some())?;
    carry.drop_if("reasoning.summary", asked.summary.is_some())
}

fn output(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    reasoning(ask, body, carry)?;
    let plain = |body: &mut Object<'_>, word: &str| {
        body.object("response_format", |format| format.text("type", word));
    };
    match &ask.format {
        None => {}
        Some(OutputFormat::Text) => plain(body, "text"),
        Some(OutputFormat::Json) => plain(body, "json_object"),
        Some(OutputFormat::Schema { name, description, schema, strict }) => body.object("response_format", |format| {
            format.text("type", "json_schema");
            format.object("json_schema", |inner| {
                inner.text("name", name.as_deref().unwrap_or("answer"));
                inner.maybe("description", description.as_deref());
                inner.raw("schema", schema.as_deref().unwrap_or("{}"));
                if let Some(strict) = strict {
                    inner.bool("strict", *strict);
                }
            });
        }),
    }
    body.maybe("verbosity", ask.verbosity.as_deref());
    Ok(())
}
