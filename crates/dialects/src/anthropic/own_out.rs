//! A request of Anthropic's own clients written again: as it was, with nothing added, joined or moved.

use super::blocks_out::{self, Marks};
use super::tools_out;
use crate::hub::{Ask, Carry, Dropped, Format, Names, Part, Shape};
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

pub(super) fn write(ask: &Ask<'_>, mut carry: Carry<'_>) -> Result<(Vec<u8>, Dropped, Names), Problem> {
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    body.text("model", &carry.target.model);
    if let Some(most) = ask.max_output {
        body.number("max_tokens", most);
    }
    turns(ask, &mut body, &mut carry)?;
    if ask.stream {
        body.bool("stream", true);
    }
    if !ask.tools.is_empty() {
        let mut list = Array::begin(body.key("tools"));
        for tool in &ask.tools {
            tools_out::write_tool(tool, &mut list, &mut carry, &mut Marks::default())?;
        }
        list.end();
    }
    body.maybe_raw("tool_choice", ask.choice_own);
    thinking(ask, &mut body, &carry);
    output(ask, &mut body, &carry);
    for (name, value) in [("temperature", ask.temperature), ("top_p", ask.top_p), ("top_k", ask.top_k)] {
        body.maybe_raw(name, value);
    }
    if !ask.stop.is_empty() {
        body.array("stop_sequences", |list| ask.stop.iter().for_each(|stop| list.text(stop)));
    }
    if ask.user.is_some() || ask.has_rest("metadata") {
        body.object("metadata", |metadata| {
            metadata.maybe("user_id", ask.user.as_deref());
            carry.own(metadata, "metadata", &ask.rest);
        });
    }
    body.maybe_raw("service_tier", ask.tier_own);
    carry.rest(ask, &mut body)?;
    body.end();
    Ok((out, carry.dropped, Names::default()))
}

/// `system` and `messages`.
fn turns(ask: &Ask<'_>, body: &mut Object<'_>, carry: &mut Carry<'_>) -> Result<(), Problem> {
    for turn in ask.turns.iter().filter(|turn| turn.apart) {
        content("system", &turn.parts, turn.shape, &turn.at, body, carry)?;
    }
    let mut list = Array::begin(body.key("messages"));
    for turn in ask.turns.iter().filter(|turn| !turn.apart) {
        let mut message = Object::begin(list.item());
        message.text("role", blocks_out::role(turn.role));
        content("content", &turn.parts, turn.shape, &turn.at, &mut message, carry)?;
        carry.own(&mut message, "", &turn.rest);
        message.end();
    }
    list.end();
    Ok(())
}

/// Content in the shape it had.
pub(super) fn content(
    name: &str,
    parts: &[Part<'_>],
    shape: Option<Shape>,
    at: &str,
    object: &mut Object<'_>,
    carry: &mut Carry<'_>,
) -> Result<(), Problem> {
    match (shape, parts) {
        (None, _) => {}
        (Some(Shape::Text), [Part::Text { text, .. }]) => object.text(name, text),
        (Some(Shape::Text), _) => object.text(name, ""),
        (Some(Shape::List), parts) => {
            let mut inner = Array::begin(object.key(name));
            for part in parts {
                blocks_out::block(part, at, &mut inner, carry, &mut Marks::default())?;
            }
            inner.end();
        }
    }
    Ok(())
}

fn thinking(ask: &Ask<'_>, body: &mut Object<'_>, carry: &Carry<'_>) {
    let asked = &ask.reasoning;
    if !asked.off && !asked.adaptive && asked.budget.is_none() {
        return;
    }
    body.object("thinking", |inner| {
        match asked.budget {
            Some(budget) => {
                inner.text("type", "enabled");
                inner.number("budget_tokens", budget);
            }
            None if asked.off => inner.text("type", "disabled"),
            None => inner.text("type", ask.name("adaptive", "between_tools")),
        }
        if let Some(shown) = asked.shown.filter(|_| ask.spelt.contains(&"display")) {
            inner.text("display", if shown { "summarized" } else { "omitted" });
        }
        carry.own(inner, "thinking", &ask.rest);
    });
}

fn output(ask: &Ask<'_>, body: &mut Object<'_>, carry: &Carry<'_>) {
    if ask.reasoning.word.is_none() && ask.format.is_none() && !ask.has_rest("output_config") {
        return;
    }
    body.object("output_config", |config| {
        config.maybe("effort", ask.reasoning.word.as_deref());
        if let Some(Format::Schema { name, schema, .. }) = &ask.format {
            config.object("format", |format| {
                format.text("type", "json_schema");
                format.maybe("name", name.as_deref());
                format.maybe_raw("schema", schema.as_deref());
                carry.own(format, "output_config.format", &ask.rest);
            });
        }
        carry.own(config, "output_config", &ask.rest);
    });
}
