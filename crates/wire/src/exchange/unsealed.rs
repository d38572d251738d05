//! A request without sealed reasoning, for a provider that did not accept the seals it was sent: they were made by another account, region
//! or model behind the same name. What was said and done stays; what was thought is gone, and the turn is thought through anew.

use crate::dialect::Dialect;
use crate::gemini::NO_SIGNATURE as STAND_IN;
use crate::json::{Array, Node, Object};
use bytes::Bytes;

/// The body, in the provider's own dialect, without what was thought. `None`: it has nothing of the kind.
pub fn unsealed(dialect: Dialect, body: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let node = Node::read(text).ok()?;
    let mut out = Vec::with_capacity(text.len());
    let left_out = match dialect {
        Dialect::Chat => chat(&node, &mut out),
        Dialect::Anthropic => anthropic(&node, &mut out),
        Dialect::Responses => responses(&node, &mut out),
        Dialect::Gemini => gemini(&node, &mut out),
    };
    left_out.then(|| Bytes::from(out))
}

/// Writes an object anew; `change` writes a member in another way and says so.
fn rewritten(
    node: &Node<'_>,
    object: &mut Object<'_>,
    mut change: impl FnMut(&str, &Node<'_>, &mut Object<'_>) -> bool,
) {
    for (name, value) in node.members() {
        if !change(name, value, object) {
            object.raw(name, value.raw);
        }
    }
}

fn chat(body: &Node<'_>, out: &mut Vec<u8>) -> bool {
    const THOUGHTS: [&str; 3] = ["reasoning_details", "reasoning_content", "reasoning"];
    let mut any = false;
    let mut object = Object::begin(out);
    rewritten(body, &mut object, |name, value, object| {
        if name != "messages" || !value.is_list() {
            return false;
        }
        object.array("messages", |list| {
            for message in value.items() {
                list.object(|one| {
                    rewritten(message, one, |name, _, _| {
                        let thought = THOUGHTS.contains(&name);
                        any |= thought;
                        thought
                    });
                });
            }
        });
        true
    });
    object.end();
    any
}

fn is_thought(block: &Node<'_>) -> bool {
    matches!(block.str_of("type"), "thinking" | "redacted_thinking")
}

fn anthropic(body: &Node<'_>, out: &mut Vec<u8>) -> bool {
    let messages = body.get("messages").map_or(&[][..], Node::items);
    let blocks = |message: &Node<'_>| message.get("content").map_or(0, |content| content.items().len());
    let thoughts = |message: &Node<'_>| {
        message.get("content").map_or(0, |content| content.items().iter().filter(|block| is_thought(block)).count())
    };
    if !messages.iter().any(|message| thoughts(message) > 0) {
        return false;
    }
    // In the middle of a tool turn a model that thinks wants to see what it thought before.
    let answers = |message: &Node<'_>| {
        message
            .get("content")
            .is_some_and(|content| content.items().iter().any(|block| block.str_of("type") == "tool_result"))
    };
    let in_turn = messages.last().is_some_and(answers);
    let mut object = Object::begin(out);
    rewritten(body, &mut object, |name, value, object| {
        if name == "thinking" {
            return in_turn;
        }
        if name != "messages" {
            return false;
        }
        let mut list = Array::begin(object.key("messages"));
        for message in value.items() {
            match (thoughts(message), blocks(message)) {
                (0, _) => list.raw(message.raw),
                // Nothing was said but what was thought: neighbours of one role are one turn.
                (all, blocks) if all == blocks => {}
                _ => list.object(|one| {
                    rewritten(message, one, |name, value, one| {
                        if name == "content" {
                            one.array("content", |inner| {
                                value
                                    .items()
                                    .iter()
                                    .filter(|block| !is_thought(block))
                                    .for_each(|block| inner.raw(block.raw));
                            });
                        }
                        name == "content"
                    });
                }),
            }
        }
        list.end();
        true
    });
    object.end();
    true
}

fn responses(body: &Node<'_>, out: &mut Vec<u8>) -> bool {
    let is_thought = |item: &Node<'_>| item.str_of("type") == "reasoning";
    if !body.get("input").is_some_and(|input| input.items().iter().any(is_thought)) {
        return false;
    }
    let mut object = Object::begin(out);
    rewritten(body, &mut object, |name, value, object| {
        if name != "input" {
            return false;
        }
        object.array("input", |list| {
            for item in value.items().iter().filter(|item| !is_thought(item)) {
                // Under its id the provider looks for the reasoning that came with the item.
                list.object(|one| rewritten(item, one, |name, _, _| name == "id"));
            }
        });
        true
    });
    object.end();
    true
}

fn gemini(body: &Node<'_>, out: &mut Vec<u8>) -> bool {
    let mut any = false;
    let mut object = Object::begin(out);
    rewritten(body, &mut object, |name, value, object| {
        if name != "contents" || !value.is_list() {
            return false;
        }
        let mut list = Array::begin(object.key("contents"));
        for content in value.items() {
            let parts = content.get("parts").map_or(&[][..], Node::items);
            let said: Vec<_> =
                parts.iter().filter(|part| part.get("thought").and_then(Node::bool) != Some(true)).collect();
            any |= said.len() < parts.len() || said.iter().any(|part| signature(part).is_some());
            // Nothing was said but what was thought.
            if said.is_empty() && !parts.is_empty() {
                continue;
            }
            list.object(|one| {
                rewritten(content, one, |name, _, one| {
                    if name == "parts" {
                        one.array("parts", |list| said.iter().for_each(|part| unsigned(part, list)));
                    }
                    name == "parts"
                });
            });
        }
        list.end();
        true
    });
    object.end();
    any
}

/// The signature of a part, unless it only stands for one.
fn signature<'n, 'a>(part: &'n Node<'a>) -> Option<&'n Node<'a>> {
    let signature = part.either("thoughtSignature", "thought_signature");
    signature.filter(|one| one.text().is_none_or(|text| text != STAND_IN))
}

/// A part without its signature; a call gets the stand-in.
fn unsigned(part: &Node<'_>, parts: &mut Array<'_>) {
    if signature(part).is_none() {
        return parts.raw(part.raw);
    }
    let call = part.either("functionCall", "function_call").is_some();
    parts.object(|one| {
        rewritten(part, one, |name, _, one| {
            let signature = matches!(name, "thoughtSignature" | "thought_signature");
            if signature && call {
                one.text("thoughtSignature", STAND_IN);
            }
            signature
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(dialect: Dialect, body: &str) -> Option<String> {
        unsealed(dialect, body.as_bytes()).map(|body| String::from_utf8(body.to_vec()).unwrap())
    }

    /// Case 64: what was thought goes, what was said stays, byte for byte.
    #[test]
    fn seals_go_and_everything_else_stays() {
        for (dialect, body, expected) in [
            (
                Dialect::Chat,
                r#"{"x":1.50,"messages":[{"role":"assistant","content":"a","reasoning_details":[{"data":"S"}]}]}"#,
                r#"{"x":1.50,"messages":[{"role":"assistant","content":"a"}]}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"thinking":{"type":"adaptive"},"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"},{"type":"text","text":"a"}]},{"role":"user","content":"b"}]}"#,
                r#"{"thinking":{"type":"adaptive"},"messages":[{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":"b"}]}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"thinking":{"type":"adaptive"},"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"S"},{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}"#,
                r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]}"#,
            ),
            (
                Dialect::Anthropic,
                r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"S"}]},{"role":"user","content":"b"}]}"#,
                r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}"#,
            ),
            (
                Dialect::Responses,
                r#"{"input":[{"type":"reasoning","id":"rs","encrypted_content":"S"},{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}],"store":false}"#,
                r#"{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"store":false}"#,
            ),
            (
                Dialect::Gemini,
                r#"{"contents":[{"role":"model","parts":[{"text":"h","thought":true},{"functionCall":{"name":"f"},"thoughtSignature":"Uw=="},{"text":"a","thoughtSignature":"Uw=="}]}]}"#,
                r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"},{"text":"a"}]}]}"#,
            ),
        ] {
            assert_eq!(without(dialect, body).as_deref(), Some(expected), "{dialect:?}");
            assert_eq!(without(dialect, expected), None, "{dialect:?}: once is enough");
        }
        assert_eq!(without(Dialect::Responses, r#"{"input":"a"}"#), None);
        assert_eq!(without(Dialect::Chat, "no JSON"), None);
    }
}
