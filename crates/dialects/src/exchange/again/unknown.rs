//! A member that nobody knows, in every object of every golden answer: its own dialect gets it
//! back, every other gets its name.

use super::super::reply::convert;
use super::super::stream::{ReplyStream, Setup};
use super::events::wrong;
use super::golden::{events, originals, voice};
use super::notes::Notes;
use super::replies::again;
use crate::hub::ToolNames;
use bytes::Bytes;
use serde_json::Value;
use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

const NAME: &str = "x_unknown";
const UNKNOWN: &str = r#""x_unknown":{"a":[1,null]}"#;

/// Members that repeat the request, counters by kind of token, entries of log probabilities: nobody
/// else has a form for what is in them.
const OPAQUE: [&str; 5] = ["tools", "metadata", "candidatesTokensDetails", "logprobs", "error"];
/// Where citations stand. One that is no link is reported as `citations`.
const CITED: [&str; 4] = ["citations", "annotations", "annotation", "groundingChunks"];

/// The text with the member in one of its objects, and the words that lead to that object: members,
/// and types and first members of the objects on the way, by one of which it is reported if it is
/// reported as a whole.
pub(super) struct Put {
    pub words: Vec<String>,
    pub text: String,
}

pub(super) fn with_unknown(text: &str) -> Vec<Put> {
    let mut all = Vec::new();
    put(text, &Node::read(text).unwrap(), &[], &mut all);
    all
}

fn put(text: &str, node: &Node<'_>, words: &[&str], all: &mut Vec<Put>) {
    for one in node.items() {
        put(text, one, words, all);
    }
    if !node.is_map() {
        return;
    }
    let first = node.members().first().map_or("", |(name, _)| name);
    let words = [words, &[node.str_of("type"), first]].concat();
    let end = node.raw.as_ptr() as usize - text.as_ptr() as usize + node.raw.len() - 1;
    let comma = if node.members().is_empty() { "" } else { "," };
    let changed = format!("{}{comma}{UNKNOWN}{}", &text[..end], &text[end..]);
    all.push(Put { words: words.iter().map(|word| (*word).to_owned()).collect(), text: changed });
    for (name, one) in node.members() {
        put(text, one, &[&words[..], &[name.as_ref()]].concat(), all);
    }
}

impl Put {
    /// Arguments and log probabilities are data: a member there is one argument more, and where a
    /// stream says the same twice, the other one would have to change too.
    fn is_data(&self) -> bool {
        self.words.iter().any(|word| word == "input" || word == "logprobs")
    }

    /// The member was reported by its name or with what it stands in, or it went along as a part of
    /// something.
    fn is_seen_to(&self, dropped: &[String], sent: &[u8]) -> bool {
        let tells =
            |word: &str| dropped.iter().any(|field| field.rsplit('.').next() == Some(word) || is_all(field, word));
        let cited = |word: &String| CITED.contains(&word.as_str()) && tells("citations");
        tells(NAME)
            || String::from_utf8_lossy(sent).contains(NAME)
            || self.words.iter().any(|word| tells(word) || cited(word) || OPAQUE.contains(&word.as_str()))
    }
}

/// Names of events have dots in them.
fn is_all(field: &str, word: &str) -> bool {
    field.strip_prefix("answer.") == Some(word)
}

fn others(from: Dialect) -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(move |to| *to != from)
}

#[test]
fn of_a_reply() {
    let mut count = 0;
    for original in originals("replies") {
        if again(original.from, &original.text, &mut Notes::default()).is_err() {
            continue;
        }
        for put in with_unknown(&original.text) {
            let whole: Value = serde_json::from_str(&put.text).unwrap();
            let mut notes = Notes::default();
            assert_eq!(again(original.from, &put.text, &mut notes), Ok(whole), "{} {:?}", original.name, put.words);
            assert!(notes.unlisted().is_empty(), "{} {:?} {:?}", original.name, put.words, notes.unlisted());
            count += 1;
            for to in others(original.from) {
                let body = Bytes::from(put.text.clone());
                let sent = convert(original.from, to, body, &ToolNames::default(), &voice()).unwrap();
                let dropped = sent.dropped.fields();
                let fine = sent.facts.error.is_some() || put.is_seen_to(dropped, &sent.body);
                assert!(fine, "{} to {to:?}: {:?} {dropped:?}", original.name, put.words);
            }
        }
    }
    assert!(count >= 239, "{count} objects");
}

/// What was reported, what was sent, and how many events the stream took.
fn play(from: Dialect, to: Dialect, events: &[String]) -> (Vec<String>, Vec<u8>, usize) {
    let setup = Setup { from, to, voice: voice(), names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
    let mut stream = ReplyStream::new(setup);
    let mut sent = Vec::new();
    let mut taken = 0;
    for event in events.iter().take_while(|event| Node::read(event).is_ok()) {
        // An error is reported in other ways, and what comes after the end not at all.
        let Ok(bytes) = stream.feed(Bytes::from(format!("data: {event}\n\n"))) else { break };
        sent.extend_from_slice(&bytes);
        taken += 1;
    }
    let dropped = stream.dropped().map(|dropped| dropped.fields().to_vec()).unwrap_or_default();
    (dropped, sent, taken)
}

#[test]
fn of_a_stream() {
    let mut count = 0;
    for original in originals("events").into_iter().chain(originals("chat")) {
        let events = events(&original.text);
        for at in (0..events.len()).filter(|at| Node::read(&events[*at]).is_ok()) {
            for put in with_unknown(&events[at]).into_iter().filter(|put| !put.is_data()) {
                let mut changed = events.clone();
                changed[at].clone_from(&put.text);
                let mut notes = Notes::default();
                assert_eq!(wrong(original.from, &changed, &mut notes), None, "{} {:?}", original.name, put.words);
                assert!(notes.unlisted().is_empty(), "{} {:?} {:?}", original.name, put.words, notes.unlisted());
                count += 1;
                for to in others(original.from) {
                    let (dropped, sent, taken) = play(original.from, to, &changed);
                    let seen = at >= taken || put.is_seen_to(&dropped, &sent);
                    assert!(seen, "{} to {to:?}: {:?} {dropped:?}", original.name, put.words);
                }
            }
        }
    }
    assert!(count >= 900, "{count} objects");
}
