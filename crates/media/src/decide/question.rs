//! One question in either format.

use super::request::DecisionForm;
use std::borrow::Cow;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, NodeKind, Object};

/// Options of a choice, and levels of a score.
const MOST_OPTIONS: usize = 255;

/// A question, as both formats can say it.
#[derive(Debug)]
pub(super) struct DecisionQuestion<'n> {
    /// By this its answer is found in System One's format; made where a question has no name.
    pub key: Cow<'n, str>,
    /// Its own name.
    pub name: Option<&'n str>,
    /// Where it stands, for messages.
    place: String,
    instructions: Option<Cow<'n, str>>,
    pub ask: QuestionKind<'n>,
}

/// What is asked.
#[derive(Debug)]
pub(super) enum QuestionKind<'n> {
    Predicate {
        yes: Option<Cow<'n, str>>,
        no: Option<Cow<'n, str>>,
    },
    Choice(Vec<ChoiceOption<'n>>),
    Score(Vec<Level<'n>>),
    /// Where something is in a picture; System One's only.
    Box,
}

#[derive(Debug)]
pub(super) struct ChoiceOption<'n> {
    /// As it is written: a string or a boolean.
    pub value: Cow<'n, str>,
    /// The value as a string.
    pub label: Cow<'n, str>,
    description: Option<Cow<'n, str>>,
}

#[derive(Debug)]
pub(super) struct Level<'n> {
    /// As JSON, for System One's legend.
    pub raw: Cow<'n, str>,
    pub label: Cow<'n, str>,
    description: Option<Cow<'n, str>>,
}

/// A text as it is; anything else as JSON.
fn said<'n>(node: &'n Node<'_>) -> Cow<'n, str> {
    match node.text() {
        Some(text) => Cow::Borrowed(text.as_ref()),
        None => Cow::Borrowed(node.raw),
    }
}

fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&tollgate_wire::json::quoted(text)).into_owned()
}

impl<'n> DecisionQuestion<'n> {
    /// All questions of a request, in order.
    pub fn all(form: DecisionForm, root: &'n Node<'_>) -> Result<Vec<DecisionQuestion<'n>>, Problem> {
        let Some(questions) = root.get("questions") else { return Ok(Vec::new()) };
        match form {
            DecisionForm::SystemOne => {
                let named = questions.members().iter();
                named.map(|(name, node)| DecisionQuestion::of_system_one(name, node)).collect()
            }
            DecisionForm::Decisions => {
                let mut all: Vec<DecisionQuestion<'n>> = Vec::new();
                for (at, node) in questions.items().iter().enumerate() {
                    let mut one = DecisionQuestion::of_decisions(at, node)?;
                    if one.key.is_empty() || all.iter().any(|before| before.key == one.key) {
                        one.key = Cow::Owned(format!("question_{at}"));
                    }
                    all.push(one);
                }
                Ok(all)
            }
        }
    }

    fn of_system_one(name: &'n str, node: &'n Node<'_>) -> Result<DecisionQuestion<'n>, Problem> {
        let place = format!("questions.{name}");
        let criteria = node.get("criteria");
        let within = |count: usize| {
            let wanted = format!("1 to {MOST_OPTIONS} entries");
            if (1..=MOST_OPTIONS).contains(&count) {
                Ok(())
            } else {
                Err(Problem::wrong(&format!("{place}.criteria"), &wanted))
            }
        };
        let ask = match node.str_of("type") {
            "noul" => {
                let of = |name: &str| criteria.and_then(|node| node.get(name)).map(said);
                QuestionKind::Predicate { yes: of("true"), no: of("false") }
            }
            "choice" => {
                let options = criteria.map_or(&[][..], Node::members);
                within(options.len())?;
                let option = |(label, description): &'n (Cow<'_, str>, Node<'_>)| ChoiceOption {
                    value: Cow::Owned(quoted(label)),
                    label: Cow::Borrowed(label.as_ref()),
                    description: (!description.is_null()).then(|| said(description)),
                };
                QuestionKind::Choice(options.iter().map(option).collect())
            }
            "score" => {
                let levels = criteria.map_or(&[][..], Node::items);
                within(levels.len())?;
                let level =
                    |node: &'n Node<'_>| Level { raw: Cow::Borrowed(node.raw), label: said(node), description: None };
                QuestionKind::Score(levels.iter().map(level).collect())
            }
            "box" => QuestionKind::Box,
            _ => return Err(Problem::wrong(&format!("{place}.type"), "`noul`, `choice`, `score` or `box`")),
        };
        let instructions = node.get("instructions").map(said);
        if let (QuestionKind::Predicate { yes: None, no: None }, None) = (&ask, &instructions) {
            return Err(Problem::missing(&format!("{place}.instructions")));
        }
        Ok(DecisionQuestion { key: Cow::Borrowed(name), name: Some(name), place, instructions, ask })
    }

    fn of_decisions(at: usize, node: &'n Node<'_>) -> Result<DecisionQuestion<'n>, Problem> {
        let place = format!("questions[{at}]");
        let list = |name: &str| -> Result<&'n [Node<'_>], Problem> {
            let items = node.get(name).map_or(&[][..], Node::items);
            match (2..=MOST_OPTIONS).contains(&items.len()) {
                true => Ok(items),
                false => Err(Problem::wrong(&format!("{place}.{name}"), &format!("a list of 2 to {MOST_OPTIONS}"))),
            }
        };
        let ask = match node.str_of("type") {
            "predicate" => QuestionKind::Predicate { yes: None, no: None },
            "choice" => {
                QuestionKind::Choice(list("choices")?.iter().map(|one| option(one, &place)).collect::<Result<_, _>>()?)
            }
            "score" => {
                QuestionKind::Score(list("levels")?.iter().map(|one| level(one, &place)).collect::<Result<_, _>>()?)
            }
            _ => return Err(Problem::wrong(&format!("{place}.type"), "`predicate`, `choice` or `score`")),
        };
        let instructions = node.get("instructions").map(said);
        if instructions.is_none() {
            return Err(Problem::missing(&format!("{place}.instructions")));
        }
        let name = node.text_of("name").map(|name| name.as_ref());
        Ok(DecisionQuestion { key: Cow::Borrowed(name.unwrap_or_default()), name, place, instructions, ask })
    }

    /// Why a provider of this format cannot be asked it.
    pub fn fits(&self, to: DecisionForm) -> Result<(), Problem> {
        match (&self.ask, to) {
            (QuestionKind::Box, DecisionForm::Decisions) => {
                let text = format!("`{}`: the provider of this model has no questions of the type `box`.", self.place);
                Err(Problem::unsupported(&self.place, text))
            }
            (QuestionKind::Choice(options), DecisionForm::Decisions) if options.len() < 2 => self.too_few(),
            (QuestionKind::Score(levels), DecisionForm::Decisions) if levels.len() < 2 => self.too_few(),
            _ => Ok(()),
        }
    }

    fn too_few(&self) -> Result<(), Problem> {
        let text = format!("`{}.criteria`: the provider of this model wants two at least.", self.place);
        Err(Problem::unsupported(&format!("{}.criteria", self.place), text))
    }

    /// Writes it in OpenAI's format. What yes and no stand for has no field there: it is part of
    /// the instructions.
    pub fn decisions(&self, out: &mut Object<'_>) {
        let mut instructions = self.instructions.as_deref().unwrap_or_default().to_owned();
        match &self.ask {
            QuestionKind::Predicate { yes, no } => {
                for (word, meaning) in [("True", yes), ("False", no)] {
                    if let Some(meaning) = meaning {
                        let line = if instructions.is_empty() { "" } else { "\n" };
                        instructions.push_str(&format!("{line}{word}: {meaning}"));
                    }
                }
                out.text("type", "predicate");
            }
            QuestionKind::Choice(options) => {
                out.text("type", "choice");
                out.array("choices", |list| {
                    for one in options {
                        list.object(|out| {
                            out.raw("value", &one.value);
                            out.maybe("description", one.description.as_deref());
                        });
                    }
                });
            }
            QuestionKind::Score(levels) => {
                out.text("type", "score");
                out.array("levels", |list| {
                    for one in levels {
                        list.object(|out| {
                            out.text("label", &one.label);
                            out.maybe("description", one.description.as_deref());
                        });
                    }
                });
            }
            // Refused before (`fits`).
            QuestionKind::Box => out.text("type", "box"),
        }
        out.text("name", &self.key);
        out.text("instructions", if instructions.is_empty() { &self.key } else { &instructions });
    }

    /// Writes it in System One's format.
    pub fn system_one(&self, out: &mut Object<'_>) {
        match &self.ask {
            QuestionKind::Predicate { .. } => out.text("type", "noul"),
            QuestionKind::Choice(options) => {
                out.text("type", "choice");
                out.object("criteria", |map| {
                    for one in options {
                        map.or_null(&one.label, one.description.as_deref());
                    }
                });
            }
            QuestionKind::Score(levels) => {
                out.text("type", "score");
                out.array("criteria", |list| {
                    for one in levels {
                        match &one.description {
                            Some(more) => list.text(&format!("{}: {more}", one.label)),
                            None => list.text(&one.label),
                        }
                    }
                });
            }
            QuestionKind::Box => out.text("type", "box"),
        }
        out.maybe("instructions", self.instructions.as_deref());
    }
}

fn option<'n>(node: &'n Node<'_>, place: &str) -> Result<ChoiceOption<'n>, Problem> {
    let value = node.get("value").filter(|value| matches!(value.kind, NodeKind::Text(_) | NodeKind::Bool(_)));
    let value = value.ok_or_else(|| Problem::wrong(&format!("{place}.choices"), "choices with a `value`"))?;
    Ok(ChoiceOption {
        value: Cow::Borrowed(value.raw),
        label: said(value),
        description: node.get("description").map(said),
    })
}

fn level<'n>(node: &'n Node<'_>, place: &str) -> Result<Level<'n>, Problem> {
    let label = node.get("label").filter(|label| label.text().is_some());
    let label = label.ok_or_else(|| Problem::wrong(&format!("{place}.levels"), "levels with a `label`"))?;
    Ok(Level { raw: Cow::Borrowed(label.raw), label: said(label), description: node.get("description").map(said) })
}
