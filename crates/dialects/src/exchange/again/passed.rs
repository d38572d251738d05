//! What a client gets of an answer in its own dialect: each golden reply and stream as it came,
//! event by event and byte by byte.
//!
//! This is the way of production, and nothing is folded. What is ours on purpose is made equal: the
//! public name of the model is the provider's own here, and no response is continued. A separator
//! of lines inside a text is escaped for clients that would cut there.

use super::super::reply::convert;
use super::super::stream::{ReplyStream, Setup};
use super::golden::{Original, events, model, originals};
use super::unknown::with_unknown;
use crate::chat::StreamEnd;
use crate::hub::{ToolNames, Voice};
use bytes::Bytes;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::Node;

/// Streams of which the client gets something else, with the number of events that it does not get
/// and that it gets in their place.
const OTHERWISE: &[(&str, usize, usize, &str)] = &[
    ("anthropic_no_message_stop", 0, 1, "the end that the provider left out"),
    ("last_event_unterminated", 0, 1, "the end that the provider left out"),
    ("no_done", 0, 2, "the end that the provider left out, and usage in a chunk of its own before it"),
    ("chat_no_finish", 0, 1, "a reason of the stop, for which clients wait"),
    ("done_without_finish_tools", 0, 1, "a reason of the stop, for which clients wait"),
    ("empty_pieces_first", 0, 1, "a reason of the stop, for which clients wait"),
    ("done_without_finish_text", 0, 2, "the same, and usage in a chunk of its own"),
    ("chat_lost", 0, 1, "usage in a chunk of its own, where clients who ask for it look"),
    ("chat_thinking_parts", 0, 1, "usage in a chunk of its own, where clients who ask for it look"),
    ("chat_usage_on_last_choice", 0, 1, "usage in a chunk of its own, where clients who ask for it look"),
    ("usage_on_last_choice_asked", 0, 1, "usage in a chunk of its own, where clients who ask for it look"),
    ("usage_on_last_choice_unasked", 0, 1, "usage in a chunk of its own, where clients who ask for it look"),
    ("usage_without_choices_asked", 1, 1, "the list of choices, without which clients fail"),
    ("usage_without_choices_unasked", 1, 1, "the list of choices, without which clients fail"),
    ("control_lines_and_comments", 1, 0, "an event of another dialect, which clients of chat take for a chunk"),
    ("responses_hosted", 3, 3, "numbers that do not rise are put right"),
    ("responses_text", 1, 0, "chat's end after the end"),
    ("after_done", 1, 0, "what comes after the end"),
    ("renamed", 1, 1, "two names of one model become its public one"),
    ("cut_inside_event", 1, 0, "half an event; an error follows"),
    ("done_and_nothing", 1, 0, "an end of nothing; an error follows"),
    ("chat_done_and_nothing", 1, 0, "an end of nothing; an error follows"),
];

fn facts(model: &str) -> Voice {
    Voice { id: "call_1".into(), model: model.to_owned(), created: 1, wants_usage: true, ..Voice::default() }
}

/// What the client of a stream gets before it ends or breaks, and whether it broke.
fn passed(original: &Original, model: &str, text: String) -> (Vec<String>, bool) {
    let (from, to) = (original.from, original.from);
    let voice = facts(model);
    let setup = Setup { from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
    let mut stream = ReplyStream::new(setup);
    let (mut sent, broken) = match stream.feed(Bytes::from(text)) {
        Ok(bytes) => (bytes.to_vec(), false),
        Err(fault) => (fault.before.to_vec(), true),
    };
    let end = if broken { None } else { Some(stream.finish()) };
    if let Some(StreamEnd::Complete { tail: more } | StreamEnd::Truncated { rest: more }) = &end {
        sent.extend_from_slice(more);
    }
    (events(&String::from_utf8(sent).unwrap()), broken || matches!(end, Some(StreamEnd::Fault(_))))
}

/// As a client reads it that would cut a line at these.
fn escaped(events: &[String]) -> Vec<String> {
    let one = |event: &String| {
        event.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029").replace('\u{85}', "\\u0085")
    };
    events.iter().map(one).collect()
}

/// How many events at most stand in for how many others: those between what is the same before and
/// after.
fn differ(came: &[String], sent: &[String]) -> (usize, usize) {
    let before = came.iter().zip(sent).take_while(|(one, other)| one == other).count();
    let (came, sent) = (&came[before..], &sent[before..]);
    let after = came.iter().rev().zip(sent.iter().rev()).take_while(|(one, other)| one == other).count();
    (came.len() - after, sent.len() - after)
}

/// An event that breaks a stream: it cannot be read, or it is an error.
fn breaks(event: &str) -> bool {
    Node::read(event).is_err() || UpstreamError::read(event.as_bytes()).is_some() || event.contains("\"error\"")
}

fn check(original: &Original, model: &str, came: &[String], text: String) {
    let (sent, broken) = passed(original, model, text);
    let came = escaped(came);
    if broken {
        assert_eq!(sent, came[..sent.len()], "{}", original.name);
        // An error may stand outside any event.
        let at = came.get(sent.len()).unwrap_or(&original.text);
        assert!(breaks(at), "{} breaks at {at}", original.name);
        return;
    }
    let listed = OTHERWISE.iter().find(|(name, ..)| *name == original.name);
    let expected = listed.map_or((0, 0), |(_, came, sent, _)| (*came, *sent));
    assert_eq!(differ(&came, &sent), expected, "{}\n{came:#?}\n{sent:#?}", original.name);
}

fn streams() -> impl Iterator<Item = Original> {
    originals("events").into_iter().chain(originals("chat"))
}

#[test]
fn every_stream_reaches_its_own_clients_as_it_came() {
    let mut names: Vec<&str> = OTHERWISE.iter().map(|(name, ..)| *name).collect();
    for original in streams() {
        let came = events(&original.text);
        check(&original, &model(&came), &came, original.text.clone());
        names.retain(|name| *name != original.name);
    }
    assert_eq!(names, [""; 0], "no such stream");
}

#[test]
fn with_a_member_that_nobody_knows_in_any_object() {
    let mut count = 0;
    for original in streams() {
        let came = events(&original.text);
        let model = model(&came);
        for at in (0..came.len()).filter(|at| Node::read(&came[*at]).is_ok()) {
            for put in with_unknown(&came[at]) {
                let mut changed = came.clone();
                changed[at] = put.text;
                let text = changed.iter().map(|event| format!("data: {event}\n\n")).collect();
                check(&original, &model, &changed, text);
                count += 1;
            }
        }
    }
    assert!(count >= 980, "{count} objects");
}

#[test]
fn every_reply_reaches_its_own_clients_as_it_came() {
    let mut count = 0;
    for original in originals("replies") {
        let model = model(std::slice::from_ref(&original.text));
        let texts = with_unknown(&original.text).into_iter().map(|put| put.text);
        for text in texts.chain([original.text.clone()]) {
            let body = Bytes::from(text.clone());
            let sent = convert(original.from, original.from, body, &ToolNames::default(), &facts(&model)).unwrap();
            // That of an error too: the gateway says in words of its own what it means.
            assert_eq!(sent.body, text, "{}", original.name);
            assert!(sent.dropped.is_empty(), "{}", original.name);
            count += 1;
        }
    }
    assert!(count >= 239, "{count} replies");
}
