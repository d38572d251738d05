//! A request in its provider's own dialect without reasoning that the provider cannot take back. What was said and done stays, byte for byte.
//!
//! [`unsealed`] leaves out all of it, for a provider that has refused the seals it was sent: they were made by another account, region or model
//! behind the same name. [`own_seals`] leaves out what is not the provider's own by our marks, before anything is sent: a conversation may have
//! gone on with another maker in between, by the client's choice or along another route.

use crate::chat::is_ours;
use crate::gemini::NO_SIGNATURE as STAND_IN;
use crate::hub::{MARK, Seal};
use bytes::Bytes;
use memchr::memmem;
use tollgate_wire::Dialect;
use tollgate_wire::json::{Array, Node, Object};

/// The body without what was thought. `None`: it has nothing of the kind.
pub fn unsealed(dialect: Dialect, body: &[u8]) -> Option<Bytes> {
    let leaving = Leaving { foreign: false, texts: true, stand_ins: false };
    leaving.written(dialect, body).map(|(body, _)| body)
}

/// What must be known of a model to see to the seals of a request in its own dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Home {
    /// Chat: wants `reasoning_content` back on turns with tool calls.
    pub wants_reasoning_back: bool,
    /// Gemini 3: refuses calls without a signature.
    pub gemini3: bool,
}

/// The body without what other makers thought, and whether anything was left out; calls that no Gemini model made have Google's stand-in for
/// a signature. `None`, mostly without reading it: there is nothing to change.
pub fn own_seals(dialect: Dialect, body: &[u8], home: Home) -> Option<(Bytes, bool)> {
    let has = |word: &str| memmem::find(body, word.as_bytes()).is_some();
    let marked = has(if dialect == Dialect::Gemini { MARK_IN_BASE64 } else { MARK });
    let stand_ins = dialect == Dialect::Gemini && home.gemini3 && (has("functionCall") || has("function_call"));
    let leaving = Leaving { foreign: true, texts: !home.wants_reasoning_back, stand_ins };
    if marked || stand_ins { leaving.written(dialect, body) } else { None }
}

/// How our mark begins in base64, whatever follows it.
const MARK_IN_BASE64: &str = "dGcxL";

/// What is left out of a request.
#[derive(Clone, Copy)]
struct Leaving {
    /// Only what was sealed for another maker, or by none.
    foreign: bool,
    /// Chat: the thoughts as plain text too.
    texts: bool,
    /// Gemini: calls without a signature get the stand-in.
    stand_ins: bool,
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

fn kept<'n, 'a>(list: &'n Node<'a>, goes: impl Fn(&Node<'a>) -> bool) -> impl Iterator<Item = &'n Node<'a>> {
    list.items().iter().filter(move |item| !goes(item))
}

impl Leaving {
    /// The body anew, and whether anything was left out of it; nothing where nothing changes.
    fn written(self, dialect: Dialect, body: &[u8]) -> Option<(Bytes, bool)> {
        let node = Node::read(std::str::from_utf8(body).ok()?).ok()?;
        let mut out = Vec::with_capacity(body.len());
        let (changed, left_out) = match dialect {
            Dialect::Chat => self.chat(&node, &mut out),
            Dialect::Anthropic => self.anthropic(&node, &mut out),
            Dialect::Responses => self.responses(&node, &mut out),
            Dialect::Gemini => self.gemini(&node, &mut out),
        };
        changed.then(|| (Bytes::from(out), left_out))
    }

    fn is_foreign(self, dialect: Dialect, seal: &str) -> bool {
        !self.foreign || Seal::is_foreign(dialect, seal)
    }

    fn chat(self, body: &Node<'_>, out: &mut Vec<u8>) -> (bool, bool) {
        let details =
            |message: &Node<'_>| message.get("reasoning_details").is_some_and(|list| list.items().iter().any(is_ours));
        let mut any = false;
        let mut object = Object::begin(out);
        rewritten(body, &mut object, |name, value, object| {
            if name != "messages" || !value.is_list() {
                return false;
            }
            object.array("messages", |list| {
                for message in value.items() {
                    let ours = !self.foreign || details(message);
                    list.object(|one| {
                        rewritten(message, one, |name, _, _| {
                            let goes = match name {
                                "reasoning_details" => ours,
                                // The same again as plain text.
                                "reasoning_content" | "reasoning" => ours && self.texts,
                                _ => false,
                            };
                            any |= goes;
                            goes
                        });
                    });
                }
            });
            true
        });
        object.end();
        (any, any)
    }

    fn is_thought(self, block: &Node<'_>) -> bool {
        match block.str_of("type") {
            "thinking" => self.is_foreign(Dialect::Anthropic, block.str_of("signature")),
            "redacted_thinking" => self.is_foreign(Dialect::Anthropic, block.str_of("data")),
            _ => false,
        }
    }

    fn anthropic(self, body: &Node<'_>, out: &mut Vec<u8>) -> (bool, bool) {
        let messages = body.get("messages").map_or(&[][..], Node::items);
        let blocks = |message: &Node<'_>| message.get("content").map_or(0, |content| content.items().len());
        let said = |message: &Node<'_>| {
            message.get("content").map_or(0, |content| kept(content, |block| self.is_thought(block)).count())
        };
        let any = messages.iter().any(|message| said(message) < blocks(message));
        let mut unthought = false;
        let mut object = Object::begin(out);
        rewritten(body, &mut object, |name, value, object| {
            if name == "thinking" {
                unthought = self.ends_in_a_tool_turn(messages);
                return unthought;
            }
            if name != "messages" {
                return false;
            }
            let mut list = Array::begin(object.key("messages"));
            for message in value.items() {
                match (said(message), blocks(message)) {
                    (said, blocks) if said == blocks => list.raw(message.raw),
                    // Nothing was said but what was thought: neighbours of one role are one turn.
                    (0, _) => {}
                    _ => list.object(|one| {
                        rewritten(message, one, |name, value, one| {
                            if name == "content" {
                                one.array("content", |inner| {
                                    kept(value, |block| self.is_thought(block)).for_each(|block| inner.raw(block.raw));
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
        let changed = any || (unthought && !self.foreign);
        (changed, changed)
    }

    /// Of the answers since somebody spoke, each must begin with what was thought; where one does not, the model goes on without thinking.
    fn ends_in_a_tool_turn(self, messages: &[Node<'_>]) -> bool {
        fn content<'n, 'a>(message: &'n Node<'a>) -> &'n [Node<'a>] {
            message.get("content").map_or(&[][..], Node::items)
        }
        let result = |block: &Node<'_>| block.str_of("type") == "tool_result";
        let spoke = |message: &Node<'_>| message.str_of("role") == "user" && !content(message).iter().any(result);
        let since = messages.iter().rposition(spoke).map_or(0, |at| at + 1);
        messages[since..].iter().filter(|message| message.str_of("role") == "assistant").any(|message| {
            let first = content(message).iter().find(|block| !self.is_thought(block));
            !first.is_some_and(|block| matches!(block.str_of("type"), "thinking" | "redacted_thinking"))
        })
    }

    fn responses(self, body: &Node<'_>, out: &mut Vec<u8>) -> (bool, bool) {
        let goes = |item: &Node<'_>| {
            item.str_of("type") == "reasoning" && self.is_foreign(Dialect::Responses, item.str_of("encrypted_content"))
        };
        if !body.get("input").is_some_and(|input| input.items().iter().any(goes)) {
            return (false, false);
        }
        let mut object = Object::begin(out);
        rewritten(body, &mut object, |name, value, object| {
            if name != "input" {
                return false;
            }
            object.array("input", |list| {
                for item in kept(value, goes) {
                    if self.foreign {
                        list.raw(item.raw);
                    } else {
                        // Under its id the provider looks for the reasoning that came with the item.
                        list.object(|one| rewritten(item, one, |name, _, _| name == "id"));
                    }
                }
            });
            true
        });
        object.end();
        (true, true)
    }

    fn gemini(self, body: &Node<'_>, out: &mut Vec<u8>) -> (bool, bool) {
        let (mut stood_in, mut lost) = (false, false);
        let goes = |part: &Node<'_>| {
            let thought = part.get("thought").and_then(Node::bool) == Some(true);
            thought && (!self.foreign || signature(part).is_some_and(|seal| self.is_foreign(Dialect::Gemini, seal)))
        };
        let mut object = Object::begin(out);
        rewritten(body, &mut object, |name, value, object| {
            if name != "contents" || !value.is_list() {
                return false;
            }
            let mut list = Array::begin(object.key("contents"));
            for content in value.items() {
                let Some(parts) = content.get("parts") else {
                    list.raw(content.raw);
                    continue;
                };
                let said: Vec<_> = kept(parts, goes).collect();
                lost |= said.len() < parts.items().len();
                // Nothing was said but what was thought.
                if said.is_empty() && !parts.items().is_empty() {
                    continue;
                }
                let first = said.iter().position(|part| is_call(part));
                list.object(|one| {
                    rewritten(content, one, |name, _, one| {
                        if name == "parts" {
                            one.array("parts", |list| {
                                for (at, part) in said.iter().enumerate() {
                                    let wanted = self.stand_ins && first == Some(at);
                                    match signature(part).filter(|seal| *seal != STAND_IN) {
                                        Some(seal) if self.is_foreign(Dialect::Gemini, seal) => {
                                            lost = true;
                                            signed_anew(part, is_call(part), list);
                                        }
                                        None if wanted && signature(part).is_none() => {
                                            stood_in = true;
                                            signed_anew(part, true, list);
                                        }
                                        _ => list.raw(part.raw),
                                    }
                                }
                            });
                        }
                        name == "parts"
                    });
                });
            }
            list.end();
            true
        });
        object.end();
        (stood_in || lost, lost)
    }
}

fn is_call(part: &Node<'_>) -> bool {
    part.either("functionCall", "function_call").is_some()
}

fn signature<'n>(part: &'n Node<'_>) -> Option<&'n str> {
    part.either("thoughtSignature", "thought_signature").and_then(Node::text).map(|text| text.as_ref())
}

/// A part with the stand-in for its signature, or with none.
fn signed_anew(part: &Node<'_>, stand_in: bool, parts: &mut Array<'_>) {
    parts.object(|one| {
        rewritten(part, one, |name, _, _| matches!(name, "thoughtSignature" | "thought_signature"));
        one.maybe("thoughtSignature", stand_in.then_some(STAND_IN));
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
