//! Streams: the same events, one by one.
//!
//! Anthropic and Responses name their events: each that was written is laid into the next original
//! of its name, in order. An original without one must be about something reported as a whole, or a
//! piece without content. Chat and Gemini send parts of one object: what was written while an
//! original was read is put together and laid into it. What a writer adds where the provider left
//! it out is listed in `is_repair`. A stream that ends broken is compared up to where it breaks.

use super::super::meter::StreamMeter;
use super::super::reader::DialectReader;
use super::super::writer::DialectWriter;
use super::golden::{events, facts, originals};
use super::lay::{Lay, is_whole, says_anything, value};
use super::notes::{Notes, What};
use crate::hub::{Event, Known, RestMembers, Restore, ToolNames};
use serde_json::Value;
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

/// One event of the provider's, and what was written while it was read.
pub(super) struct Step {
    pub text: String,
    /// `None`: an event that nobody knows, reported by its name.
    known: Option<RestMembers>,
    pub written: Vec<Value>,
    finishes: bool,
}

fn values(out: Vec<u8>) -> Vec<Value> {
    let written = events(&String::from_utf8(out).unwrap());
    written.iter().filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Reads a stream into the hub and writes it again. What is written at the end belongs to the last
/// step.
pub(super) fn steps(from: Dialect, events: &[String]) -> Vec<Step> {
    let mut reader = DialectReader::new(from, from, "");
    let mut restore = Restore::new(ToolNames::default());
    let mut meter = StreamMeter::new(from);
    let mut writer = DialectWriter::new(from, from, &facts(from, events), &ToolNames::default());
    let mut steps: Vec<Step> = Vec::new();
    let mut ended = false;
    for text in events {
        let mut out = Vec::new();
        let mut failed = false;
        let mut step = Step { text: text.clone(), known: None, written: Vec::new(), finishes: false };
        let mut sink = |event: Event<'_>| {
            restore.pass(event, &mut |event| match event {
                Event::Rest(rest) => {
                    assert_eq!(rest.node.raw, text, "one for each event");
                    assert!(step.known.replace(rest.known).is_none());
                }
                Event::Fail(_) => failed = true,
                Event::End => ended = true,
                event => {
                    step.finishes |= matches!(event, Event::Finish { .. });
                    meter.see(&event);
                    writer.write(&event, meter.usage(), &mut out);
                }
            });
        };
        if text == "[DONE]" {
            reader.done(&mut sink);
            break;
        }
        let Some(node) = Node::read(text).ok().filter(Node::is_map) else { return steps };
        reader.read(&node, &mut sink);
        if failed {
            return steps;
        }
        step.written = values(out);
        steps.push(step);
    }
    if (ended || reader.finished()) && !steps.is_empty() {
        let mut out = Vec::new();
        writer.end(meter.usage(), &mut out);
        let last = steps.len() - 1;
        // Gemini's writer says why it ended when it ends.
        let at = if from == Dialect::Gemini { steps.iter().position(|step| step.finishes) } else { None };
        steps[at.unwrap_or(last)].written.extend(values(out));
    }
    steps
}

/// Two parts of one object put together: texts follow each other, entries with a number find each
/// other.
fn join(one: &mut Value, more: Value) {
    match (one, more) {
        (Value::Object(one), Value::Object(more)) => {
            for (name, more) in more {
                match one.get_mut(&name) {
                    Some(Value::String(text)) if TEXTS.contains(&name.as_str()) => {
                        text.push_str(more.as_str().unwrap_or_default());
                    }
                    Some(known) => join(known, more),
                    None => drop(one.insert(name, more)),
                }
            }
        }
        (Value::Array(one), Value::Array(more)) => {
            for more in more {
                let same = |known: &&mut Value| more.get("index").is_some() && known.get("index") == more.get("index");
                match one.iter_mut().find(same) {
                    Some(known) => join(known, more),
                    None => one.push(more),
                }
            }
        }
        (_, Value::Null) => {}
        (one, more) => *one = more,
    }
}

const TEXTS: [&str; 5] = ["content", "refusal", "reasoning_content", "arguments", "input"];

/// Says what is wrong with a stream after the hub.
pub(super) fn wrong(from: Dialect, events: &[String], notes: &mut Notes) -> Option<String> {
    let steps = steps(from, events);
    match from {
        Dialect::Chat | Dialect::Gemini => wrong_parts(from, steps, notes),
        Dialect::Anthropic | Dialect::Responses => wrong_named(from, &steps, notes),
    }
}

fn wrong_parts(from: Dialect, steps: Vec<Step>, notes: &mut Notes) -> Option<String> {
    let mut lay = Lay::new(from, notes);
    for step in steps {
        let node = Node::read(&step.text).unwrap();
        let mut written = Value::Object(serde_json::Map::new());
        step.written.into_iter().for_each(|one| join(&mut written, one));
        let again = lay.again(&node, step.known.expect("knows what was taken"), Some(&written));
        if again != value(&node) {
            return Some(format!("{}\nbecame {again}\nout of {written}", step.text));
        }
    }
    (!lay.settled()).then(|| "something of a call was never said".to_owned())
}

fn wrong_named(from: Dialect, steps: &[Step], notes: &mut Notes) -> Option<String> {
    let mut found = Vec::new();
    let mut next = 0;
    for written in steps.iter().flat_map(|step| &step.written) {
        let same = |step: &Step| {
            let node = Node::read(&step.text).unwrap();
            let known = step.known.filter(|_| node.str_of("type") == written["type"] && !may_be_missing(step));
            let mut notes = Notes::default();
            known.is_some_and(|known| Lay::new(from, &mut notes).again(&node, known, Some(written)) == value(&node))
        };
        let Some(at) = (next..steps.len()).find(|at| same(&steps[*at])) else {
            if is_repair(from, written, steps) {
                notes.add(from, What::Repaired, written["type"].as_str().unwrap_or_default());
                continue;
            }
            return Some(format!("{written} was not there"));
        };
        if let Some(step) = steps[next..at].iter().find(|step| !may_be_missing(step)) {
            return Some(format!("{} is missing before {written}", step.text));
        }
        found.push((at, written));
        next = at + 1;
    }
    if let Some(step) = steps[next..].iter().find(|step| !may_be_missing(step)) {
        return Some(format!("{} is missing at the end", step.text));
    }
    for step in steps.iter().filter(|step| may_be_missing(step)) {
        notes.add(from, What::Skipped, Node::read(&step.text).unwrap().str_of("type"));
    }
    let mut lay = Lay::new(from, notes);
    for (at, written) in found {
        let node = Node::read(&steps[at].text).unwrap();
        lay.again(&node, steps[at].known.unwrap_or(&[]), Some(written));
    }
    (!lay.settled()).then(|| "something of a call was never said".to_owned())
}

/// It is about something that is reported as a whole.
fn is_aside(step: &Step) -> bool {
    let node = Node::read(&step.text).unwrap();
    let inner = |known: &Known| match known {
        Known::Each(name, kind) => node.get(name).filter(|one| one.is_map()).is_some_and(|one| is_whole(kind(one))),
        _ => false,
    };
    is_whole(step.known) || step.known.is_some_and(|known| known.iter().any(inner))
}

fn may_be_missing(step: &Step) -> bool {
    let node = Node::read(&step.text).unwrap();
    let word = node.str_of("type");
    let empty = !step.known.is_some_and(|known| says_anything(&node, known));
    // The parts of a summary are one thought, with an empty line between.
    let part = ["response.reasoning_summary_text.done", "response.reasoning_summary_part.added"].contains(&word)
        || word == "response.reasoning_summary_part.done";
    is_aside(step) || (empty && (word.ends_with("delta") || part))
}

/// What a writer says where the provider left it out.
fn is_repair(from: Dialect, written: &Value, steps: &[Step]) -> bool {
    let word = written["type"].as_str().unwrap_or_default();
    // Items that came only with the end are written in pieces.
    let is = |step: &Step, word: &str| Node::read(&step.text).unwrap().str_of("type") == word && !is_aside(step);
    let count = |word: &str| steps.iter().filter(|step| is(step, word)).count();
    let in_pieces = || count(word) > 0;
    match from {
        Dialect::Anthropic => match word {
            // An end without its events, a call without arguments, an answer without a block.
            "message_stop" => !in_pieces(),
            "content_block_stop" => count("content_block_stop") < count("content_block_start").max(1),
            "message_delta" => written["delta"]["stop_reason"] == "end_turn",
            "content_block_delta" => written["delta"]["partial_json"] == "{}",
            "content_block_start" => written["content_block"]["type"] == "text" && !in_pieces(),
            _ => false,
        },
        Dialect::Responses => match word {
            word if word.ends_with(".delta") && !in_pieces() => true,
            "response.function_call_arguments.delta" => written["delta"] == "{}",
            "response.reasoning_summary_text.delta" => written["delta"] == "\n\n",
            // Written only with the finished text.
            "response.output_text.annotation.added" => {
                let url = written["annotation"]["url"].as_str().unwrap_or_default();
                let tells = |step: &&Step| step.text.contains(url);
                !steps.iter().filter(|step| is(step, word)).any(|step| tells(&step))
                    && steps.iter().any(|step| tells(&step))
            }
            // Where the provider announces fewer than there are items.
            word => {
                let left_out = count(word) < count("response.output_item.done").max(1);
                left_out && ANNOUNCED.iter().any(|known| word.strip_prefix("response.") == Some(known))
            }
        },
        Dialect::Chat | Dialect::Gemini => false,
    }
}

/// Events that begin and end items and parts, which some servers leave out.
const ANNOUNCED: [&str; 15] = [
    "in_progress",
    "output_item.added",
    "output_item.done",
    "content_part.added",
    "content_part.done",
    "output_text.annotation.added",
    "output_text.done",
    "refusal.done",
    "reasoning_summary_part.added",
    "reasoning_summary_part.done",
    "reasoning_summary_text.done",
    "function_call_arguments.done",
    "web_search_call.in_progress",
    "web_search_call.searching",
    "web_search_call.completed",
];

pub(super) fn all(notes: &mut Notes) {
    let mut count = 0;
    for original in originals("events").into_iter().chain(originals("chat")) {
        if let Some(wrong) = wrong(original.from, &events(&original.text), notes) {
            panic!("{}: {wrong}", original.name);
        }
        count += 1;
    }
    assert!(count >= 84, "{count} streams");
}
