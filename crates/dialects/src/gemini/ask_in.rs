//! A generateContent request read into the hub. Model and streaming are named by the path.

use super::schema::from_gemini;
use super::{parts_in, tools_in};
use crate::hub::{Ask, Effort, Fields, OutputFormat, Part, Role, Turn, tier_asked};
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::Node;

pub(crate) fn read<'a>(body: &Node<'a>, stream: bool) -> Result<Ask<'a>, Problem> {
    let mut ask = Ask::new(Dialect::Gemini);
    let mut fields = Fields::loose(body);
    ask.stream = stream;
    if let Some(node) = fields.map("generationConfig") {
        let mut config = Fields::loose(node);
        generation(&mut config, &mut ask);
        config.rest_at("generationConfig", &mut ask.rest);
    }
    ask.metadata = fields.raw("labels");
    ask.tier = fields.text("serviceTier").map(|tier| tier_asked(Dialect::Gemini, tier));
    tools_in::read(&mut fields, &mut ask)?;
    let anything = |node: &&Node<'a>| node.text().is_some() || !node.members().is_empty();
    if let Some(system) = fields.take_if("systemInstruction", |node| Some(node).filter(anything)) {
        let place = "systemInstruction".to_owned();
        ask.turns.push(match system.text() {
            Some(text) => Turn::new(Role::System, vec![Part::text(text.clone())], place),
            None => parts_in::turn(system, Role::System, place, 0, &mut Vec::new()),
        });
    }
    let Some(contents) = fields.take("contents") else { return Err(Problem::missing("contents")) };
    let one = std::slice::from_ref(contents);
    let list = if contents.is_map() { one } else { contents.items() };
    if !contents.is_map() && (!contents.is_list() || !list.iter().all(Node::is_map)) {
        return Err(Problem::wrong("contents", "a list of contents"));
    }
    let mut open = Vec::new();
    for (at, content) in list.iter().enumerate() {
        let role = match content.str_of("role") {
            "model" => Role::Assistant,
            "system" => Role::System,
            _ => Role::User,
        };
        ask.turns.push(parts_in::turn(content, role, format!("contents[{at}]"), at, &mut open));
    }
    fields.rest_at("", &mut ask.rest);
    Ok(ask)
}

fn generation<'a>(config: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    ask.temperature = config.decimal("temperature");
    ask.top_p = config.decimal("topP");
    ask.top_k = config.decimal("topK");
    ask.n = config.number("candidateCount");
    ask.max_output = config.number("maxOutputTokens");
    ask.presence_penalty = config.decimal("presencePenalty");
    ask.frequency_penalty = config.decimal("frequencyPenalty");
    ask.seed = config.decimal("seed");
    ask.logprobs = config.on("responseLogprobs");
    ask.top_logprobs = config.number("logprobs");
    ask.stop = config.texts("stopSequences").unwrap_or_default();
    format(config, ask);
    if let Some(node) = config.map("thinkingConfig") {
        let mut thinking = Fields::loose(node);
        let asked = &mut ask.reasoning;
        asked.effort = thinking.effort("thinkingLevel");
        match thinking.take_if("thinkingBudget", |node| (node.raw == "-1" || node.number().is_some()).then_some(node)) {
            Some(budget) if budget.raw == "-1" => asked.adaptive = true,
            Some(budget) if budget.number() == Some(0) => (asked.off, asked.effort) = (true, Some(Effort::None)),
            Some(budget) => asked.budget = budget.number(),
            None => {}
        }
        asked.shown = thinking.bool("includeThoughts");
        thinking.rest_at("generationConfig.thinkingConfig", &mut ask.rest);
    }
}

/// A schema says that the answer is JSON; a type beside it is left over.
fn format<'a>(config: &mut Fields<'_, 'a>, ask: &mut Ask<'a>) {
    let schema = config.raw("responseJsonSchema").map(Cow::Borrowed);
    let schema = schema.or_else(|| Some(Cow::Owned(from_gemini(config.take("responseSchema")?))));
    ask.format = if schema.is_some() {
        Some(OutputFormat::Schema { name: None, description: None, schema, strict: None })
    } else if config.word("responseMimeType", "application/json") {
        Some(OutputFormat::Json)
    } else if config.word("responseMimeType", "text/plain") {
        Some(OutputFormat::Text)
    } else {
        None
    };
}
