//! A request of the hub written for a provider that speaks chat completions.

use crate::dialect::Dialect;
use crate::hub::Merge;
use crate::hub::{
    Ask, Carry, Dropped, Effort, Format, Names, Target, Tool, ToolChoice, ToolKind, object_schema, paired, sent_name,
};
use crate::json::{Array, Object};
use crate::problem::Problem;

/// Most stop sequences chat takes.
const MOST_STOPS: usize = 4;

pub(crate) fn write(mut ask: Ask<'_>, target: &Target) -> Result<(Vec<u8>, Dropped, Names), Problem> {
    let mut carry = Carry::new(target);
    let names = Names::of(&ask.tools, Dialect::Chat);
    ask.turns = paired(std::mem::take(&mut ask.turns), Merge::Assistants)?;
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    body.text("model", &target.model);
    messages(&ask, &mut body, &mut carry)?;
    if ask.stream {
        body.bool("stream", true);
        body.object("stream_options", |options| options.bool("include_usage", true));
    }
    if let Some(most) = ask.max_output {
        body.number(if target.current_chat { "max_completion_tokens" } else { "max_tokens" }, most);
    }
    sampling(&ask, &mut body, &mut carry)?;
    output(&ask, &mut body, &mut carry)?;
    tools(&ask, &mut body, &mut carry)?;
    body.maybe("prompt_cache_key", ask.cache_key.as_deref());
    body.maybe("service_tier", tier(&ask, &mut carry)?);
    body.maybe(if target.current_chat { "safety_identifier" } else { "user" }, ask.user.as_deref());
    body.maybe_raw("metadata", ask.metadata);
    carry.unmarked(ask.cache_all)?;
    carry.rest(ask.origin, &ask.rest)?;
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
        if let Some(top) = ask.top_logprobs {
            body.number("top_logprobs", top);
        }
    }
    Ok(())
}

fn output(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    let asked = &ask.reasoning;
    let effort = match (asked.effort, asked.budget) {
        (Some(effort), _) => Some(effort),
        (None, Some(budget)) => Some(Effort::of_budget(budget, ask.max_output)),
        (None, None) => None,
    };
    body.maybe("reasoning_effort", effort.map(Effort::word));
    carry.drop_if("reasoning.summary", asked.summary.is_some())?;
    match &ask.format {
        None => {}
        Some(Format::Text) => body.object("response_format", |format| format.text("type", "text")),
        Some(Format::Json) => body.object("response_format", |format| format.text("type", "json_object")),
        Some(Format::Schema { name, description, schema, strict }) => body.object("response_format", |format| {
            format.text("type", "json_schema");
            format.object("json_schema", |inner| {
                inner.text("name", name.as_deref().unwrap_or("answer"));
                inner.maybe("description", description.as_deref());
                inner.raw("schema", schema);
                if let Some(strict) = strict {
                    inner.bool("strict", *strict);
                }
            });
        }),
    }
    body.maybe("verbosity", ask.verbosity.as_deref());
    Ok(())
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
    let sent = |name: &str| sent_name(Dialect::Chat, None, name).into_owned();
    match &ask.choice {
        None => {}
        Some(ToolChoice::None) => body.text("tool_choice", "none"),
        Some(ToolChoice::Auto) => body.text("tool_choice", "auto"),
        Some(ToolChoice::Required) => body.text("tool_choice", "required"),
        Some(ToolChoice::Named(name)) => body.object("tool_choice", |choice| one_tool(choice, ask, name, &sent(name))),
        Some(ToolChoice::Allowed { names, required }) => body.object("tool_choice", |choice| {
            choice.text("type", "allowed_tools");
            choice.object("allowed_tools", |allowed| {
                allowed.text("mode", if *required { "required" } else { "auto" });
                allowed.array("tools", |list| {
                    for name in names {
                        list.object(|tool| one_tool(tool, ask, name, &sent(name)));
                    }
                });
            });
        }),
        Some(ToolChoice::Foreign(_)) => {
            return Err(Problem::unsupported("tool_choice", "The model's provider has no such tool choice."));
        }
    }
    Ok(())
}

/// `{type, function: {name}}`, or the same of a tool with free text.
fn one_tool(object: &mut Object<'_>, ask: &Ask<'_>, name: &str, sent: &str) {
    let custom = ask.tools.iter().any(|tool| tool.name == name && matches!(tool.kind, ToolKind::Custom { .. }));
    let kind = if custom { "custom" } else { "function" };
    object.text("type", kind);
    object.object(kind, |inner| inner.text("name", sent));
}

fn write_tool(tool: &Tool<'_>, list: &mut Array<'_>) -> Result<(), Problem> {
    let name = sent_name(Dialect::Chat, tool.namespace.as_deref(), &tool.name);
    match &tool.kind {
        ToolKind::Function { schema, strict } => list.object(|one| {
            one.text("type", "function");
            one.object("function", |function| {
                function.text("name", &name);
                function.maybe("description", tool.description.as_deref());
                if let Some(schema) = schema {
                    function.raw("parameters", &object_schema(Some(schema)));
                }
                if let Some(strict) = strict {
                    function.bool("strict", *strict);
                }
            });
        }),
        ToolKind::Custom { format } => list.object(|one| {
            one.text("type", "custom");
            one.object("custom", |custom| {
                custom.text("name", &name);
                custom.maybe("description", tool.description.as_deref());
                custom.maybe_raw("format", *format);
            });
        }),
        ToolKind::WebSearch | ToolKind::Hosted => {
            let text = format!("The tool `{}` runs at another provider.", tool.name);
            return Err(Problem::unsupported(&tool.at, text));
        }
    }
    Ok(())
}
