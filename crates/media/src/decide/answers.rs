//! The answers of a reply, found by their questions, and written in either format.

use super::question::{DecisionQuestion, QuestionKind};
use super::reply::NotDecided;
use super::request::DecisionForm;
use tollgate_wire::json::{Node, Object};

/// One answer for each question; nothing where the model declined to answer it.
pub(super) struct Answers<'n>(Vec<Option<Answer<'n>>>);

/// Numbers stay as they were written.
enum Answer<'n> {
    Predicate(&'n str),
    /// Which option, and the probability of each.
    Choice {
        option: usize,
        confidence: &'n str,
        probabilities: Vec<&'n str>,
    },
    Score {
        score: &'n str,
        confidence: &'n str,
        probabilities: Vec<&'n str>,
    },
    Box(&'n str),
}

impl<'n> Answers<'n> {
    /// At least one of the questions must have been answered.
    pub fn read(
        from: DecisionForm,
        root: &'n Node<'_>,
        questions: &[DecisionQuestion<'_>],
    ) -> Result<Answers<'n>, NotDecided> {
        let answers = root.get("answers").ok_or(NotDecided)?;
        let mut all = Vec::with_capacity(questions.len());
        match from {
            DecisionForm::SystemOne if answers.is_map() => {
                for question in questions {
                    let found = answers.get(&question.key);
                    all.push(found.map(|node| system_one(node, question)).transpose()?);
                }
            }
            DecisionForm::Decisions if answers.items().len() == questions.len() => {
                for (node, question) in answers.items().iter().zip(questions) {
                    let refused = node.str_of("type") == "refusal";
                    all.push(if refused { None } else { Some(decisions(node, question)?) });
                }
            }
            _ => return Err(NotDecided),
        }
        // OpenAI says of each question that it is not answered; silence about all is none.
        let silent = from == DecisionForm::SystemOne && all.iter().all(Option::is_none);
        if silent { Err(NotDecided) } else { Ok(Answers(all)) }
    }
}

fn number<'n>(node: &'n Node<'_>, name: &str) -> Result<&'n str, NotDecided> {
    node.get(name).and_then(Node::decimal).ok_or(NotDecided)
}

fn system_one<'n>(node: &'n Node<'_>, question: &DecisionQuestion<'_>) -> Result<Answer<'n>, NotDecided> {
    let chances = node.get("probabilities");
    let chance = |name: &str| chances.and_then(|all| all.get(name)).and_then(Node::decimal).ok_or(NotDecided);
    match (node.str_of("type"), &question.ask) {
        ("noul", QuestionKind::Predicate { .. }) => Ok(Answer::Predicate(number(node, "noul")?)),
        ("choice", QuestionKind::Choice(options)) => {
            let chosen = node.str_of("choice");
            Ok(Answer::Choice {
                option: options.iter().position(|one| one.label == chosen).ok_or(NotDecided)?,
                confidence: number(node, "confidence")?,
                probabilities: options.iter().map(|one| chance(&one.label)).collect::<Result<_, _>>()?,
            })
        }
        ("score", QuestionKind::Score(levels)) => Ok(Answer::Score {
            score: number(node, "score")?,
            confidence: number(node, "confidence")?,
            probabilities: (0..levels.len()).map(|at| chance(&at.to_string())).collect::<Result<_, _>>()?,
        }),
        ("box", QuestionKind::Box) => Ok(Answer::Box(node.raw)),
        _ => Err(NotDecided),
    }
}

fn decisions<'n>(node: &'n Node<'_>, question: &DecisionQuestion<'_>) -> Result<Answer<'n>, NotDecided> {
    let chances = node.get("probabilities").map_or(&[][..], Node::items);
    match (node.str_of("type"), &question.ask) {
        ("predicate", QuestionKind::Predicate { .. }) => Ok(Answer::Predicate(number(node, "probability")?)),
        ("choice", QuestionKind::Choice(options)) => {
            let is = |value: Option<&Node<'_>>, raw: &str| value.is_some_and(|value| value.raw == raw);
            let chosen = node.get("choice");
            let chance = |raw: &str| {
                let found = chances.iter().find(|one| is(one.get("value"), raw)).ok_or(NotDecided)?;
                number(found, "probability")
            };
            Ok(Answer::Choice {
                option: options.iter().position(|one| is(chosen, &one.value)).ok_or(NotDecided)?,
                confidence: number(node, "confidence")?,
                probabilities: options.iter().map(|one| chance(&one.value)).collect::<Result<_, _>>()?,
            })
        }
        ("score", QuestionKind::Score(levels)) => {
            let chance = |at: usize| {
                let is = |one: &&Node<'_>| one.get("value").and_then(Node::number) == Some(at as u64);
                number(chances.iter().find(is).ok_or(NotDecided)?, "probability")
            };
            Ok(Answer::Score {
                score: number(node, "score")?,
                confidence: number(node, "confidence")?,
                probabilities: (0..levels.len()).map(chance).collect::<Result<_, _>>()?,
            })
        }
        _ => Err(NotDecided),
    }
}

/// Writes `answers` by the names of their questions; one that was not answered is not there.
pub(super) fn write_system_one(out: &mut Object<'_>, questions: &[DecisionQuestion<'_>], answers: &Answers<'_>) {
    out.object("answers", |map| {
        for (question, answer) in questions.iter().zip(&answers.0) {
            let Some(answer) = answer else { continue };
            if let Answer::Box(raw) = answer {
                map.raw(&question.key, raw);
                continue;
            }
            map.object(&question.key, |one| match (answer, &question.ask) {
                (Answer::Choice { option, confidence, probabilities }, QuestionKind::Choice(options)) => {
                    one.text("type", "choice");
                    one.text("choice", &options[*option].label);
                    one.raw("confidence", confidence);
                    one.object("probabilities", |all| {
                        options.iter().zip(probabilities).for_each(|(option, chance)| all.raw(&option.label, chance));
                    });
                }
                (Answer::Score { score, confidence, probabilities }, QuestionKind::Score(levels)) => {
                    one.text("type", "score");
                    one.raw("score", score);
                    one.raw("confidence", confidence);
                    one.object("legend", |all| {
                        levels.iter().enumerate().for_each(|(at, level)| all.raw(&at.to_string(), &level.raw));
                    });
                    one.object("probabilities", |all| {
                        probabilities.iter().enumerate().for_each(|(at, chance)| all.raw(&at.to_string(), chance));
                    });
                }
                (Answer::Predicate(chance), _) => {
                    one.text("type", "noul");
                    one.raw("noul", chance);
                }
                _ => {}
            });
        }
    });
}

/// Writes `answers` in the order of their questions; one that was not answered says so.
pub(super) fn write_decisions(out: &mut Object<'_>, questions: &[DecisionQuestion<'_>], answers: &Answers<'_>) {
    out.array("answers", |list| {
        for (question, answer) in questions.iter().zip(&answers.0) {
            list.object(|one| {
                let kind = match answer {
                    Some(Answer::Predicate(_)) => "predicate",
                    Some(Answer::Choice { .. }) => "choice",
                    Some(Answer::Score { .. }) => "score",
                    Some(Answer::Box(_)) | None => "refusal",
                };
                one.text("type", kind);
                one.or_null("name", question.name);
                match (answer, &question.ask) {
                    (Some(Answer::Predicate(chance)), _) => one.raw("probability", chance),
                    (Some(Answer::Choice { option, confidence, probabilities }), QuestionKind::Choice(options)) => {
                        one.raw("choice", &options[*option].value);
                        one.raw("confidence", confidence);
                        one.array("probabilities", |all| {
                            for (option, chance) in options.iter().zip(probabilities) {
                                all.object(|entry| {
                                    entry.raw("value", &option.value);
                                    entry.raw("probability", chance);
                                });
                            }
                        });
                    }
                    (Some(Answer::Score { score, confidence, probabilities }), QuestionKind::Score(levels)) => {
                        one.raw("score", score);
                        one.raw("confidence", confidence);
                        one.array("probabilities", |all| {
                            for (at, (level, chance)) in levels.iter().zip(probabilities).enumerate() {
                                all.object(|entry| {
                                    entry.text("label", &level.label);
                                    entry.number("value", at as u64);
                                    entry.raw("probability", chance);
                                });
                            }
                        });
                    }
                    _ => {}
                }
            });
        }
    });
}
