//! Whole replies: the same JSON value, with every member, null ones included.

use super::super::reader::Reader;
use super::super::reply::written;
use super::golden::{originals, voice};
use super::lay::{Lay, value};
use crate::dialect::Dialect;
use crate::hub::{Event, Gather, Members, Names, Restore};
use crate::json::Node;
use serde_json::Value;

/// A reply as it is after the hub. `None`: it is an error.
pub(super) fn again(from: Dialect, text: &str) -> Option<Value> {
    let node = Node::read(text).unwrap();
    let mut gather = Gather::default();
    let mut restore = Restore::new(Names::default());
    let mut known: Option<Members> = None;
    Reader::new(from, from).whole(&node, &mut |event: Event<'_>| {
        restore.pass(event, &mut |event| match event {
            Event::Rest(rest) => {
                assert_eq!(rest.node.raw, node.raw, "one for the whole reply");
                assert!(known.replace(rest.known).is_none());
            }
            event => gather.take(&event),
        });
    });
    if gather.answer.error.is_some() {
        return None;
    }
    let written: Value = serde_json::from_slice(&written(from, &gather.answer, &voice())).unwrap();
    let mut lay = Lay::default();
    let again = lay.again(&node, known.expect("told what was taken"), Some(&written));
    assert!(lay.settled(), "something of a call is missing");
    Some(again)
}

#[test]
fn every_reply_comes_back() {
    let mut count = 0;
    for original in originals("replies") {
        let Some(again) = again(original.from, &original.text) else { continue };
        assert_eq!(again, value(&Node::read(&original.text).unwrap()), "{}", original.name);
        count += 1;
    }
    assert!(count >= 28, "{count} replies");
}

/// A reader that forgets something is found out.
#[test]
fn what_the_hub_does_not_carry_would_be_missing() {
    let reply = r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
    let node = Node::read(reply).unwrap();
    let written = serde_json::json!({"content": [], "stop_reason": "end_turn"});
    let known: Members = &[
        crate::hub::Known::Is(&["stop_reason"]),
        crate::hub::Known::Each("content", |_| Some(&[crate::hub::Known::Is(&["text"])])),
    ];
    assert_ne!(Lay::default().again(&node, known, Some(&written)), value(&node));
}
