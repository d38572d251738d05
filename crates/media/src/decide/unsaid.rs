//! What of a request only one of the two formats has a place for. Where a provider speaks the
//! other, it is left out, and named.

use super::request::{DecisionForm, DecisionRequest};
use tollgate_wire::json::Node;
use tollgate_wire::{Dropped, Problem};

/// What both formats say, by the name that each has for it: of a request, and of a question.
const SYSTEM_ONE: [&[&str]; 2] = [&["model", "state", "questions", "assets"], &["type", "instructions", "criteria"]];
const DECISIONS: [&[&str]; 2] =
    [&["model", "input", "questions"], &["type", "name", "instructions", "choices", "levels"]];
/// And of the entries of a question's lists.
const ENTRY: [(&str, &[&str]); 2] = [("choices", &["value", "description"]), ("levels", &["label", "description"])];

impl DecisionRequest {
    /// Fields that a provider of this format does not get.
    pub fn unsaid(&self, to: DecisionForm) -> Result<Dropped, Problem> {
        let mut dropped = Dropped::default();
        if to == self.form {
            return Ok(dropped);
        }
        let root = self.tree()?;
        let [whole, each] = match self.form {
            DecisionForm::SystemOne => SYSTEM_ONE,
            DecisionForm::Decisions => DECISIONS,
        };
        beside(&root, whole, "", &mut dropped);
        let Some(questions) = root.get("questions") else { return Ok(dropped) };
        for (name, question) in questions.members() {
            beside(question, each, &format!("questions.{name}."), &mut dropped);
        }
        for (at, question) in questions.items().iter().enumerate() {
            let place = format!("questions[{at}].");
            beside(question, each, &place, &mut dropped);
            for (list, known) in ENTRY {
                for (entry, node) in question.get(list).into_iter().flat_map(Node::items).enumerate() {
                    beside(node, known, &format!("{place}{list}[{entry}]."), &mut dropped);
                }
            }
        }
        Ok(dropped)
    }
}

fn beside(node: &Node<'_>, known: &[&str], place: &str, dropped: &mut Dropped) {
    let given = node.members().iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_ref());
    given.filter(|name| !known.contains(name)).for_each(|name| dropped.add(&format!("{place}{name}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn what_the_other_format_has_no_word_for_is_named() {
        let one =
            r#"{"model":"m","state":"x","seed":1,"questions":{"a":{"type":"noul","instructions":"?","weight":2}}}"#;
        let decisions = r#"{"model":"m","input":"x","prompt_cache_key":"k","safety_identifier":null,"questions":[
            {"type":"predicate","instructions":"?"},
            {"type":"choice","instructions":"?","choices":[{"value":"a"},{"value":"b","rank":1}],"strict":true}]}"#;
        for (form, body, other, unsaid) in [
            (DecisionForm::SystemOne, one, DecisionForm::Decisions, "seed,questions.a.weight"),
            (
                DecisionForm::Decisions,
                decisions,
                DecisionForm::SystemOne,
                "prompt_cache_key,questions[1].strict,questions[1].choices[1].rank",
            ),
        ] {
            let request = DecisionRequest::read(form, Bytes::from(body)).expect("a request");
            assert_eq!(request.unsaid(other).expect("read").to_string(), unsaid);
            assert!(request.unsaid(form).expect("read").is_empty(), "every byte is sent");
        }
    }
}
