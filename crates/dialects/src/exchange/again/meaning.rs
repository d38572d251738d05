//! What the writers say means what was said: an answer written for its own dialect and read again
//! is the same answer.
//!
//! This is where reports of usage are compared, and forms that the hub hears as something else
//! (thoughts in details, grounding, log probabilities, lists of parts). The fold is the hub's own
//! way to gather a whole answer: pieces of one block follow each other, and everything else is
//! compared as it is.

use super::super::reader::DialectReader;
use super::super::reply::written;
use super::events::steps;
use super::golden::{events, facts, originals};
use crate::chat::joined;
use crate::hub::{Answer, Citation, Event, Gather, OutputBlock, Restore, ToolNames};
use serde_json::Value;
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

/// What is not in a written answer though it is in the one that came, or the other way round. At
/// home it is in `Event::Rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Tier,
    Search,
    /// A citation that is no link.
    Place,
    /// What a link's support says, and where it begins, if not where it ends.
    Quote,
    /// The id to which a seal is bound.
    Bound,
}

const LEFT: &[(Dialect, Piece, &str)] = &[
    (Dialect::Responses, Piece::Tier, "is `default` where a provider does not say"),
    (Dialect::Anthropic, Piece::Search, "is half of a pair of blocks"),
    (Dialect::Gemini, Piece::Place, "stands in its own form, which other sources of a grounding have not"),
    (Dialect::Responses, Piece::Place, "is an annotation of a file"),
    (Dialect::Gemini, Piece::Quote, "a support has both ends or none"),
    (Dialect::Responses, Piece::Bound, "is the item's own, which has an id of the call"),
];

/// The answer that a reply or the events of a stream give.
fn answer(from: Dialect, texts: &[String], whole: bool) -> Answer {
    let mut gather = Gather::default();
    let mut restore = Restore::new(ToolNames::default());
    let mut reader = DialectReader::new(from, from, "");
    for text in texts {
        let Some(node) = Node::read(text).ok().filter(Node::is_map) else { continue };
        let mut sink = |event: Event<'_>| restore.pass(event, &mut |event| gather.take(&event));
        if whole { reader.whole(&node, &mut sink) } else { reader.read(&node, &mut sink) }
    }
    reader.done(&mut |event| restore.pass(event, &mut |event| gather.take(&event)));
    gather.answer
}

/// JSON by its meaning.
fn plain(raw: &str) -> String {
    serde_json::from_str::<Value>(raw).map_or_else(|_| raw.to_owned(), |value| value.to_string())
}

/// Leaves out the pieces, and what is not a matter of meaning: the ids and names that `lay`
/// compares, how JSON inside was written, and blocks that are carried as they came.
fn bare(mut answer: Answer, pieces: &[Piece]) -> Answer {
    answer.id.clear();
    answer.model.clear();
    if pieces.contains(&Piece::Tier) {
        answer.tier = None;
    }
    for choice in &mut answer.choices {
        let left = |output: &OutputBlock| match output {
            OutputBlock::Foreign { .. } => true,
            OutputBlock::Search(_) => pieces.contains(&Piece::Search),
            _ => false,
        };
        choice.outputs.retain(|output| !left(output));
        for output in &mut choice.outputs {
            match output {
                OutputBlock::Text { cites, .. } => {
                    cites.retain(|cite| !matches!(cite, Citation::Foreign { .. }) || !pieces.contains(&Piece::Place));
                    cites.iter_mut().for_each(|one| bare_cite(one, pieces));
                }
                OutputBlock::Call(call) => call.args = plain(&call.args).into(),
                OutputBlock::Thought(thought) => {
                    if let Some(seal) = thought.seal.as_mut().filter(|_| pieces.contains(&Piece::Bound)) {
                        seal.bound = "".into();
                    }
                }
                _ => {}
            }
        }
        choice.logprobs = vec![plain(&joined(&choice.logprobs))];
    }
    answer
}

fn bare_cite(cite: &mut Citation<'_>, pieces: &[Piece]) {
    match cite {
        Citation::Foreign { raw, .. } => *raw = plain(raw).into(),
        Citation::Url { from, to: None, quote, .. } if pieces.contains(&Piece::Quote) => {
            (*from, *quote) = (None, "".into());
        }
        Citation::Url { .. } => {}
    }
}

/// Why it ended and what it used are said at the end: one that broke has neither.
fn without_end(mut answer: Answer) -> Answer {
    answer.usage = None;
    answer.choices.iter_mut().for_each(|choice| (choice.finish, choice.cut) = (None, Vec::new()));
    answer
}

struct Pair {
    from: Dialect,
    name: String,
    came: Answer,
    again: Answer,
}

fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for original in originals("replies") {
        let (from, texts) = (original.from, [original.text.clone()]);
        let came = answer(from, &texts, true);
        if came.error.is_none() {
            let again = String::from_utf8(written(from, &came, &facts(from, &texts), &ToolNames::default())).unwrap();
            pairs.push(Pair { from, name: original.name, came, again: answer(from, &[again], true) });
        }
    }
    for original in originals("events").into_iter().chain(originals("chat")) {
        let (from, name) = (original.from, original.name);
        let steps = steps(from, &events(&original.text));
        let came: Vec<String> = steps.iter().map(|step| step.text.clone()).collect();
        let again: Vec<String> = steps.iter().flat_map(|step| step.written.iter().map(Value::to_string)).collect();
        let (mut came, mut again) = (answer(from, &came, false), answer(from, &again, false));
        if came.choices.iter().all(|choice| choice.finish.is_none()) {
            (came, again) = (without_end(came), without_end(again));
        }
        pairs.push(Pair { from, name, came, again });
    }
    pairs
}

#[test]
fn of_every_answer() {
    let pairs = pairs();
    let same = |pair: &Pair, but: Option<Piece>| {
        let left = LEFT.iter().filter(|(from, piece, _)| *from == pair.from && Some(*piece) != but);
        let left: Vec<Piece> = left.map(|(_, piece, _)| *piece).collect();
        (bare(pair.came.clone(), &left), bare(pair.again.clone(), &left))
    };
    for pair in &pairs {
        let (came, again) = same(pair, None);
        assert_eq!(came, again, "{} {:?}", pair.name, pair.from);
    }
    for (from, piece, _) in LEFT {
        let needs = |pair: &Pair| {
            let (came, again) = same(pair, Some(*piece));
            came != again
        };
        assert!(pairs.iter().any(|pair| pair.from == *from && needs(pair)), "{from:?} {piece:?} is no longer so");
    }
}
