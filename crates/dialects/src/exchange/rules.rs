//! What a model refuses although its dialect has it: looked for in a request of any dialect before
//! anything is sent.

use super::request::CheckedRequest;
use crate::hub::{Ask, Dropped, Effort, Part, Role, ToolChoice};
use bytes::Bytes;
use std::borrow::Cow;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::error::Code;
use tollgate_wire::json::EditKey::Name;
use tollgate_wire::json::{EditChange, Node, NodeKind};

/// The refusals of one model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelRules<'r> {
    /// Tools are taken only with this effort of reasoning.
    pub tools_need_effort: Option<&'r str>,
    /// Values of the tool choice that are refused: `auto`, `none`, `any`, `named`.
    pub refused_tool_choice: &'r [String],
    /// Roles of messages that must come with a `name`.
    pub named_roles: &'r [String],
    /// An answer that the last message begins is not gone on with.
    pub no_prefill: bool,
}

impl ModelRules<'_> {
    fn are_about_tools(&self) -> bool {
        self.tools_need_effort.is_some() || !self.refused_tool_choice.is_empty()
    }
}

impl CheckedRequest {
    /// Refuses what the model does not take, by the name that the field has in the caller's
    /// dialect.
    pub fn obeys(&self, rules: &ModelRules<'_>) -> Result<(), Problem> {
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        if self.dialect == Dialect::Chat {
            named(&node, rules.named_roles)?;
        }
        if let Ok(ask) = self.ask(&node) {
            tools(&ask, rules)?;
            choice(&ask, rules)?;
            return prefill(&ask, rules);
        }
        // A role of the model's own makes the conversation unreadable here, not what else the
        // request says, nor who speaks last.
        let silent = with_turns(self.dialect, &node, |_| false);
        match self.ask(&silent) {
            Ok(ask) => {
                tools(&ask, rules)?;
                choice(&ask, rules)?;
            }
            Err(problem) if rules.are_about_tools() => return Err(problem),
            Err(_) => {}
        }
        let last = node.get(said_in(self.dialect)).map_or(0, |turns| turns.items().len()).saturating_sub(1);
        let end = with_turns(self.dialect, &node, |at| at == last);
        let Ok(mut ask) = self.ask(&end) else { return Ok(()) };
        // What stands beside the conversation has no number.
        if let Some(turn) = ask.turns.last_mut().filter(|turn| turn.at.ends_with(']')) {
            turn.at = format!("{}[{last}]", said_in(self.dialect));
        }
        prefill(&ask, rules)
    }

    /// The request without the parameters that steer the choice of words, for a model that refuses
    /// them, and what was left out. `None` when it has none of them.
    pub fn without_sampling(&self, strict: bool) -> Result<Option<(CheckedRequest, Dropped)>, Problem> {
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        let gemini = self.dialect == Dialect::Gemini;
        let mut dropped = Dropped::default();
        let out = node.edited(|path, value| {
            let (before, name) = match path {
                [Name("generationConfig" | "generation_config")] if gemini && value.is_map() => {
                    return EditChange::Enter;
                }
                [_, Name(name)] => ("generationConfig.", *name),
                [Name(name)] if !gemini => ("", *name),
                _ => return EditChange::Keep,
            };
            if SAMPLING.contains(&name) && !value.is_null() {
                dropped.add(&format!("{before}{name}"));
            }
            EditChange::drop_if(SAMPLING.contains(&name))
        });
        match dropped.fields().first() {
            None => Ok(None),
            Some(field) if strict => {
                Err(Problem::unsupported(field, format!("`{field}`: this model does not take it.")))
            }
            Some(_) => Ok(Some((self.again(Bytes::from(out))?, dropped))),
        }
    }
}

/// Where a dialect has its conversation.
const fn said_in(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat | Dialect::Anthropic => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    }
}

/// The request with those of its turns that `keep` names by their place.
fn with_turns<'a>(dialect: Dialect, body: &Node<'a>, keep: impl Fn(usize) -> bool) -> Node<'a> {
    let stays = |(name, value): &(Cow<'a, str>, Node<'a>)| {
        let value = match &value.kind {
            NodeKind::List(turns) if name == said_in(dialect) => {
                let turns = turns.iter().enumerate().filter(|(at, _)| keep(*at)).map(|(_, turn)| turn.clone());
                Node { raw: value.raw, kind: NodeKind::List(turns.collect()) }
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    Node { raw: body.raw, kind: NodeKind::Map(body.members().iter().map(stays).collect()) }
}

const SAMPLING: &[&str] = &["temperature", "top_p", "top_k", "topP", "topK"];

/// Where a dialect's clients say how hard the model is to think, and how they say this effort.
fn effort_in(dialect: Dialect, effort: &str) -> (&'static str, String) {
    let off = effort == "none";
    match dialect {
        Dialect::Chat => ("reasoning_effort", format!("`reasoning_effort` set to `{effort}`")),
        Dialect::Responses => ("reasoning.effort", format!("`reasoning.effort` set to `{effort}`")),
        Dialect::Anthropic if off => ("thinking", "`thinking` set to `{\"type\":\"disabled\"}`".to_owned()),
        Dialect::Anthropic => ("output_config.effort", format!("`output_config.effort` set to `{effort}`")),
        Dialect::Gemini => {
            let field = "generationConfig.thinkingConfig";
            let value =
                if off { "thinkingBudget` set to `0".to_owned() } else { format!("thinkingLevel` set to `{effort}") };
            (field, format!("`{field}.{value}`"))
        }
    }
}

fn tools(ask: &Ask<'_>, rules: &ModelRules<'_>) -> Result<(), Problem> {
    let Some(needed) = rules.tools_need_effort else { return Ok(()) };
    let wanted = Effort::of(needed);
    if ask.tools.is_empty() || (wanted.is_some() && ask.reasoning.effort == wanted) {
        return Ok(());
    }
    let (field, said) = effort_in(ask.origin, needed);
    Err(Problem::unsupported(field, format!("This model takes tools only with {said}.")))
}

fn choice(ask: &Ask<'_>, rules: &ModelRules<'_>) -> Result<(), Problem> {
    let word = match &ask.choice {
        None | Some(ToolChoice::Foreign) => return Ok(()),
        Some(ToolChoice::None) => "none",
        Some(ToolChoice::Auto | ToolChoice::Allowed { required: false, .. }) => "auto",
        Some(ToolChoice::Required | ToolChoice::Allowed { required: true, .. }) => "any",
        Some(ToolChoice::Named(_)) => "named",
    };
    if !rules.refused_tool_choice.iter().any(|refused| refused == word) {
        return Ok(());
    }
    let field = if ask.origin == Dialect::Gemini { "toolConfig" } else { "tool_choice" };
    let what = match word {
        "any" => "that some tool must be called",
        "named" => "that a certain tool must be called",
        "none" => "that no tool may be called",
        _ => "that tools may be called",
    };
    Err(Problem::unsupported(field, format!("This model does not take a `{field}` that says {what}.")))
}

/// An answer that was begun ends with text. One that ends with what a tool of the provider's did is
/// to be continued, which is another thing.
fn prefill(ask: &Ask<'_>, rules: &ModelRules<'_>) -> Result<(), Problem> {
    let Some(last) = ask.turns.last().filter(|turn| rules.no_prefill && turn.role == Role::Assistant) else {
        return Ok(());
    };
    if !matches!(last.parts.last(), Some(Part::Text { .. } | Part::Refusal { .. })) {
        return Ok(());
    }
    let text =
        format!("`{}`: this model does not go on with an answer that was begun. Let the user speak last.", last.at);
    Err(Problem::unsupported(&last.at, text))
}

fn named(body: &Node<'_>, roles: &[String]) -> Result<(), Problem> {
    let messages = body.get("messages").map_or(&[][..], Node::items);
    for (at, message) in messages.iter().enumerate() {
        let role = message.str_of("role");
        if roles.iter().any(|named| named == role) && message.str_of("name").is_empty() {
            let field = format!("messages[{at}].name");
            let text = format!("`{field}` is required: this model wants a name on messages of the role `{role}`.");
            return Err(Problem::new(Code::MissingParameter, &field, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
