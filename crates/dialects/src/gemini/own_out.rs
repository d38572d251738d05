//! A request of Gemini's own clients written again: as it was, with nothing added, joined or moved. Names are written in the
//! usual one of their two spellings.

use crate::hub::{Ask, Carry, Dropped, Format, Media, Names, Part, Place, Shape, Tool, ToolKind, Turn};
use tollgate_wire::Problem;
use tollgate_wire::json::{Array, Object};

pub(super) fn write(ask: &Ask<'_>, mut carry: Carry<'_>) -> Result<(Vec<u8>, Dropped, Names), Problem> {
    let mut out = Vec::with_capacity(4096);
    let mut body = Object::begin(&mut out);
    turns(ask, &mut body, &carry);
    tools(ask, &mut body, &carry);
    generation(ask, &mut body, &carry);
    body.maybe_raw("serviceTier", ask.tier_own);
    body.maybe_raw("labels", ask.metadata);
    carry.rest(ask, &mut body)?;
    body.end();
    Ok((out, carry.dropped, Names::default()))
}

/// `systemInstruction` and `contents`, which may be a single one.
fn turns(ask: &Ask<'_>, body: &mut Object<'_>, carry: &Carry<'_>) {
    let leading = usize::from(ask.turns.first().is_some_and(|turn| turn.apart && turn.at == "systemInstruction"));
    let (before, turns) = ask.turns.split_at(leading);
    for turn in before {
        match (&turn.parts[..], turn.shape) {
            ([Part::Text { text, .. }], Some(Shape::Text)) => body.text("systemInstruction", text),
            _ => body.object("systemInstruction", |one| content(turn, one, carry)),
        }
    }
    match turns {
        [turn] if turn.apart => body.object("contents", |one| content(turn, one, carry)),
        _ => body.array("contents", |list| turns.iter().for_each(|turn| list.object(|one| content(turn, one, carry)))),
    }
}

/// One content; an unusual role is among the members that are left.
fn content(turn: &Turn<'_>, one: &mut Object<'_>, carry: &Carry<'_>) {
    if !carry.is_own("role", "", &turn.rest) {
        one.text("role", super::role_word(turn.role));
    }
    if turn.shape.is_some() {
        one.array("parts", |list| turn.parts.iter().for_each(|part| write_part(part, list, carry)));
    }
    carry.own(one, "", &turn.rest);
}

fn write_part(part: &Part<'_>, list: &mut Array<'_>, carry: &Carry<'_>) {
    match part {
        // A seal that stands in another part is written there.
        Part::Thought { own, .. } => own.iter().for_each(|raw| list.raw(raw)),
        Part::Foreign { raw, .. } => list.raw(raw),
        Part::Text { text, rest, .. } | Part::Refusal { text, rest, .. } => list.object(|one| {
            one.text("text", text);
            carry.own(one, "", rest);
        }),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) | Part::File(media) => {
            list.object(|one| write_media(media, one, carry));
        }
        Part::Call(call) => list.object(|one| {
            one.object("functionCall", |inner| {
                inner.filled("name", &call.name);
                inner.maybe_raw("args", Some(call.args.as_ref()).filter(|args| !args.is_empty()));
                carry.own(inner, "functionCall", &call.rest);
            });
            carry.own(one, "", &call.rest);
        }),
        Part::Result { name, rest, .. } => list.object(|one| {
            one.object("functionResponse", |inner| {
                inner.filled("name", name.as_deref().unwrap_or_default());
                carry.own(inner, "functionResponse", rest);
            });
            carry.own(one, "", rest);
        }),
    }
}

fn write_media(media: &Media<'_>, one: &mut Object<'_>, carry: &Carry<'_>) {
    match &media.place {
        Place::Data { mime, base64 } => one.object("inlineData", |inner| {
            inner.filled("mimeType", mime);
            inner.filled("data", base64);
            inner.maybe("displayName", media.name.as_deref());
            carry.own(inner, "inlineData", &media.rest);
        }),
        Place::Url(uri) | Place::Id(uri) | Place::Text(uri) => one.object("fileData", |inner| {
            inner.filled("fileUri", uri);
            carry.own(inner, "fileData", &media.rest);
        }),
    }
    carry.own(one, "", &media.rest);
}

/// Each object of tools as it was, and the choice in its own form.
fn tools(ask: &Ask<'_>, body: &mut Object<'_>, carry: &Carry<'_>) {
    if !ask.groups.is_empty() {
        body.array("tools", |list| {
            for group in &ask.groups {
                let tools = &ask.tools[group.tools.clone()];
                let functions = tools.iter().filter(|tool| matches!(tool.kind, ToolKind::Function { .. }));
                list.object(|one| {
                    if functions.clone().next().is_some() {
                        one.array("functionDeclarations", |list| {
                            functions.for_each(|tool| list.object(|one| declare(tool, one, carry)));
                        });
                    }
                    for tool in tools {
                        if let ToolKind::WebSearch(raw) | ToolKind::Hosted(raw) = tool.kind {
                            one.raw(&tool.name, raw);
                        }
                    }
                    carry.own(one, "", &group.rest);
                });
            }
        });
    }
    if ask.choice_own.is_some() || ask.has_rest("toolConfig") {
        body.object("toolConfig", |config| {
            config.maybe_raw("functionCallingConfig", ask.choice_own);
            carry.own(config, "toolConfig", &ask.rest);
        });
    }
}

fn declare(tool: &Tool<'_>, one: &mut Object<'_>, carry: &Carry<'_>) {
    one.text("name", &tool.name);
    one.maybe("description", tool.description.as_deref());
    match &tool.kind {
        ToolKind::Function { own: Some(own), .. } => one.raw("parameters", own),
        ToolKind::Function { schema, .. } => one.maybe_raw("parametersJsonSchema", schema.as_deref()),
        _ => {}
    }
    carry.own(one, "", &tool.rest);
}

fn generation(ask: &Ask<'_>, body: &mut Object<'_>, carry: &Carry<'_>) {
    let mut out = Vec::new();
    let mut config = Object::begin(&mut out);
    for (name, value) in [
        ("temperature", ask.temperature),
        ("topP", ask.top_p),
        ("topK", ask.top_k),
        ("presencePenalty", ask.presence_penalty),
        ("frequencyPenalty", ask.frequency_penalty),
        ("seed", ask.seed),
    ] {
        config.maybe_raw(name, value);
    }
    for (name, value) in
        [("candidateCount", ask.n), ("maxOutputTokens", ask.max_output), ("logprobs", ask.top_logprobs)]
    {
        if let Some(value) = value {
            config.number(name, value);
        }
    }
    if ask.logprobs {
        config.bool("responseLogprobs", true);
    }
    if !ask.stop.is_empty() {
        config.array("stopSequences", |list| ask.stop.iter().for_each(|stop| list.text(stop)));
    }
    match &ask.format {
        None => {}
        Some(Format::Text) => config.text("responseMimeType", "text/plain"),
        Some(Format::Json) => config.text("responseMimeType", "application/json"),
        Some(Format::Schema { own: Some(own), .. }) => config.raw("responseSchema", own),
        Some(Format::Schema { schema, .. }) => config.maybe_raw("responseJsonSchema", schema.as_deref()),
    }
    thinking(ask, &mut config, carry);
    carry.own(&mut config, "generationConfig", &ask.rest);
    config.end();
    if out != b"{}" {
        body.raw("generationConfig", &String::from_utf8_lossy(&out));
    }
}

fn thinking(ask: &Ask<'_>, config: &mut Object<'_>, carry: &Carry<'_>) {
    const PLACE: &str = "generationConfig.thinkingConfig";
    let asked = &ask.reasoning;
    let budget = match asked.budget {
        Some(budget) => Some(budget.to_string()),
        None if asked.adaptive => Some("-1".to_owned()),
        None => asked.off.then(|| "0".to_owned()),
    };
    if budget.is_none() && asked.word.is_none() && asked.shown.is_none() && !ask.has_rest(PLACE) {
        return;
    }
    config.object("thinkingConfig", |inner| {
        inner.maybe("thinkingLevel", asked.word.as_deref());
        inner.maybe_raw("thinkingBudget", budget.as_deref());
        if let Some(shown) = asked.shown {
            inner.bool("includeThoughts", shown);
        }
        carry.own(inner, PLACE, &ask.rest);
    });
}
