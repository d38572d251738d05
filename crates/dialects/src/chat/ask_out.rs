//! A request of the hub written for a provider that speaks chat completions.

use crate::hub::{Ask, Carry, Dropped, Effort, Format, Merge, Names, Target, fitting_user, paired};
use std::borrow::Cow;
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

/// Most stop sequences chat takes.
const MOST_STOPS: usize = 4;

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, Names), Problem> {
    let mut carry = Carry::begin(&mut ask, target)?;
    let names = if carry.home { Names::default() } else { Names::of(&ask.tools, target) };
    if !carry.home {
        ask.turns = paired(std::mem::take(&mut ask.turns), Merge::Assistants)?;
    }
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    body.text("model", &target.model);
    messages(&ask, &mut body, &mut carry)?;
    if ask.stream {
        body.bool("stream", true);
        if !carry.home {
            body.object("stream_options", |options| options.bool("include_usage", true));
        }
    }
    // At home by the name it had, abroad by the one that the model knows.
    let current = |usual: &'static str, old: &'static str| match carry.home {
        true => ask.name(usual, old),
        false if target.current_chat => usual,
        false => old,
    };
    let (limit, user) = (current("max_completion_tokens", "max_tokens"), current("safety_identifier", "user"));
    if let Some(most) = ask.max_output {
        body.number(limit, most);
    }
    sampling(&ask, &mut body, &mut carry)?;
    output(&ask, &mut body, &mut carry)?;
    super::tools_out::write(&ask, &mut body, &mut carry)?;
    body.maybe("prompt_cache_key", ask.cache_key.as_deref());
    body.maybe("service_tier", tier(&ask, &mut carry)?);
    let who = ask.user.as_deref().map(|who| if carry.home { Cow::Borrowed(who) } else { fitting_user(who) });
    body.maybe(user, who.as_deref());
    body.maybe_raw("metadata", ask.metadata);
    carry.unmarked(ask.cache_all)?;
    carry.rest(&ask, &mut body)?;
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
        Some(tier) if carry.home || known.contains(&tier) => Ok(Some(tier)),
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
    if carry.home || !carry.target.current_chat {
        body.maybe_raw("top_k", ask.top_k);
    } else {
        carry.drop_if("top_k", ask.top_k.is_some())?;
    }
    body.maybe_raw("frequency_penalty", ask.frequency_penalty);
    body.maybe_raw("presence_penalty", ask.presence_penalty);
    body.maybe_raw("seed", ask.seed);
    if ask.stop.len() > MOST_STOPS && !carry.home {
        return Err(Problem::unsupported("stop", "The model's provider takes at most four stop sequences."));
    }
    if let [stop] = &ask.stop[..]
        && ask.stop_alone
    {
        body.text("stop", stop);
    } else if !ask.stop.is_empty() {
        body.array("stop", |list| ask.stop.iter().for_each(|stop| list.text(stop)));
    }
    if let Some(n) = ask.n {
        body.number("n", n);
    }
    if ask.logprobs {
        body.bool("logprobs", true);
    }
    if let Some(top) = ask.top_logprobs.filter(|_| ask.logprobs || carry.home) {
        body.number("top_logprobs", top);
    }
    Ok(())
}

/// How hard to think: in one word, or at home as it was said.
fn reasoning(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let asked = &ask.reasoning;
    if !carry.home {
        let effort = asked.effort.or(asked.budget.map(|budget| Effort::of_budget(budget, ask.max_output)));
        body.maybe("reasoning_effort", effort.map(Effort::word));
        carry.unshown(asked.shown.is_some())?;
        return carry.drop_if("reasoning.summary", asked.summary.is_some());
    }
    let inside = ask.spelt.contains(&"effort");
    body.maybe("reasoning_effort", asked.word.as_deref().filter(|_| !inside));
    if inside || asked.budget.is_some() || asked.shown.is_some() || ask.has_rest("reasoning") {
        body.object("reasoning", |more| {
            more.maybe("effort", asked.word.as_deref().filter(|_| inside));
            if let Some(budget) = asked.budget {
                more.number("max_tokens", budget);
            }
            if let Some(shown) = asked.shown {
                more.bool("exclude", !shown);
            }
            carry.own(more, "reasoning", &ask.rest);
        });
    }
    Ok(())
}

fn output(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    reasoning(ask, body, carry)?;
    let plain = |body: &mut Object<'_>, word: &str| {
        body.object("response_format", |format| {
            format.text("type", word);
            carry.own(format, "response_format", &ask.rest);
        });
    };
    match &ask.format {
        None => {}
        Some(Format::Text) => plain(body, "text"),
        Some(Format::Json) => plain(body, "json_object"),
        Some(Format::Schema { name, description, schema, strict, .. }) => body.object("response_format", |format| {
            format.text("type", "json_schema");
            format.object("json_schema", |inner| {
                inner.maybe("name", name.as_deref().or((!carry.home).then_some("answer")));
                inner.maybe("description", description.as_deref());
                inner.maybe_raw("schema", schema.as_deref().or((!carry.home).then_some("{}")));
                if let Some(strict) = strict {
                    inner.bool("strict", *strict);
                }
                carry.own(inner, "response_format.json_schema", &ask.rest);
            });
            carry.own(format, "response_format", &ask.rest);
        }),
    }
    body.maybe("verbosity", ask.verbosity.as_deref());
    Ok(())
}
