//! Whole replies: the same JSON value, with every member, null ones included.

use super::super::reader::DialectReader;
use super::super::reply::written;
use super::golden::{facts, originals};
use super::lay::{Lay, value};
use super::notes::Notes;
use crate::hub::{Event, Gather, RestMembers, Restore, ToolNames};
use serde_json::Value;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;
use tollgate_wire::json::Node;

/// A reply as it is after the hub, or the error that it is.
pub(super) fn again(from: Dialect, text: &str, notes: &mut Notes) -> Result<Value, UpstreamError> {
    let node = Node::read(text).unwrap();
    let mut gather = Gather::default();
    let mut restore = Restore::new(ToolNames::default());
    let mut known: Option<RestMembers> = None;
    DialectReader::new(from, from, "").whole(&node, &mut |event: Event<'_>| {
        restore.pass(event, &mut |event| match event {
            Event::Rest(rest) => {
                assert_eq!(rest.node.raw, node.raw, "one for the whole reply");
                assert!(known.replace(rest.known).is_none());
            }
            event => gather.take(&event),
        });
    });
    if let Some(error) = gather.answer.error {
        return Err(error);
    }
    let written: Value =
        serde_json::from_slice(&written(from, &gather.answer, &facts(from, &[text.to_owned()]), &ToolNames::default()))
            .unwrap();
    let mut lay = Lay::new(from, notes);
    let again = lay.again(&node, known.expect("knows what was taken"), Some(&written));
    assert!(lay.settled(), "something of a call is missing");
    Ok(again)
}

pub(super) fn all(notes: &mut Notes) {
    let (mut count, mut errors) = (0, 0);
    for original in originals("replies") {
        let node = Node::read(&original.text).unwrap();
        match again(original.from, &original.text, notes) {
            Ok(again) => assert_eq!(again, value(&node), "{}", original.name),
            // An error is never written again: the gateway judges what its provider says and has
            // words of its own for it.
            Err(error) => {
                let said = node.get("error").unwrap();
                assert_eq!(error.message, said.str_of("message"), "{}", original.name);
                assert_eq!(error.code.as_deref(), said.text_of("code").map(|code| &**code), "{}", original.name);
                errors += 1;
            }
        }
        count += 1;
    }
    assert!(count >= 33 && errors == 2, "{count} replies, {errors} errors");
}

/// A reader that forgets something is found out.
#[test]
fn what_the_hub_does_not_carry_would_be_missing() {
    let reply = r#"{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
    let node = Node::read(reply).unwrap();
    let written = serde_json::json!({"content": [], "stop_reason": "end_turn"});
    let known: RestMembers = &[
        crate::hub::Known::Is(&["stop_reason"]),
        crate::hub::Known::Each("content", |_| Some(&[crate::hub::Known::Is(&["text"])])),
    ];
    assert_ne!(Lay::new(Dialect::Anthropic, &mut Notes::default()).again(&node, known, Some(&written)), value(&node));
}
