//! A request in its provider's own dialect without reasoning that the provider cannot take back.
//! What was said and done stays, byte for byte.
//!
//! [`without_reasoning`] leaves out all of it, for a provider that has refused the seals it was
//! sent: they were made by another account, region or model behind the same name. [`own_seals`]
//! leaves out what is not the provider's own by our marks, before anything is sent: a conversation
//! may have gone on with another maker in between, by the client's choice or along another route.

use crate::chat::is_ours;
use crate::gemini::NO_SIGNATURE as STAND_IN;
use crate::hub::{MARK, Seal};
use bytes::Bytes;
use memchr::memmem::{self, Finder};
use std::sync::LazyLock;
use tollgate_wire::Dialect;
use tollgate_wire::json::EditKey::{Index, Name};
use tollgate_wire::json::{EditChange, Node, Object};

/// The body without what was thought. `None`: it has nothing of the kind.
pub fn without_reasoning(dialect: Dialect, body: &[u8]) -> Option<Bytes> {
    let leaving = Leaving { foreign: false, texts: true, stand_ins: false };
    leaving.written(dialect, body).map(|(body, _)| body)
}

/// What must be known of a model to see to the seals of a request in its own dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealNeeds {
    /// Chat: wants `reasoning_content` back on turns with tool calls.
    pub wants_reasoning_back: bool,
    /// Gemini 3: refuses calls without a signature.
    pub gemini3: bool,
}

/// The body without what other makers thought, and whether anything was left out; calls that no
/// Gemini model made have Google's stand-in for a signature. `None`, mostly without reading it:
/// there is nothing to change.
pub fn own_seals(dialect: Dialect, body: &[u8], home: SealNeeds) -> Option<(Bytes, bool)> {
    let has = |word: &str| memmem::find(body, word.as_bytes()).is_some();
    let mark = if dialect == Dialect::Gemini { &FIND_MARK_IN_BASE64 } else { &FIND_MARK };
    let marked = mark.find(body).is_some();
    let stand_ins = dialect == Dialect::Gemini && home.gemini3 && (has("functionCall") || has("function_call"));
    let leaving = Leaving { foreign: true, texts: !home.wants_reasoning_back, stand_ins };
    if marked || stand_ins { leaving.written(dialect, body) } else { None }
}

static FIND_MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARK));
/// How our mark begins in base64, whatever follows it.
static FIND_MARK_IN_BASE64: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("dGcxL"));

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

impl Leaving {
    /// The body anew, and whether anything was left out of it; nothing where nothing changes.
    fn written(self, dialect: Dialect, body: &[u8]) -> Option<(Bytes, bool)> {
        let node = Node::read(std::str::from_utf8(body).ok()?).ok()?;
        let (body, left_out) = match dialect {
            Dialect::Chat => (self.chat(&node)?, true),
            Dialect::Anthropic => (self.anthropic(&node)?, true),
            Dialect::Responses => (self.responses(&node)?, true),
            Dialect::Gemini => self.gemini(&node)?,
        };
        Some((Bytes::from(body), left_out))
    }

    fn is_foreign(self, dialect: Dialect, seal: &str) -> bool {
        !self.foreign || Seal::is_foreign(dialect, seal)
    }

    fn chat(self, body: &Node<'_>) -> Option<Vec<u8>> {
        let details =
            |message: &Node<'_>| message.get("reasoning_details").is_some_and(|list| list.items().iter().any(is_ours));
        let (mut any, mut ours) = (false, false);
        let edited = body.edited(|path, value| match path {
            [Name("messages")] => EditChange::Enter,
            [Name("messages"), Index(_)] => {
                ours = !self.foreign || details(value);
                EditChange::Enter
            }
            [Name("messages"), Index(_), Name(name)] => {
                let goes = match *name {
                    "reasoning_details" => ours,
                    // The same again as plain text.
                    "reasoning_content" | "reasoning" => ours && self.texts,
                    _ => false,
                };
                any |= goes;
                EditChange::drop_if(goes)
            }
            _ => EditChange::Keep,
        });
        any.then_some(edited)
    }

    fn is_thought(self, block: &Node<'_>) -> bool {
        match block.str_of("type") {
            "thinking" => self.is_foreign(Dialect::Anthropic, block.str_of("signature")),
            "redacted_thinking" => self.is_foreign(Dialect::Anthropic, block.str_of("data")),
            _ => false,
        }
    }

    fn anthropic(self, body: &Node<'_>) -> Option<Vec<u8>> {
        let messages = body.get("messages").map_or(&[][..], Node::items);
        let (mut any, mut unthought) = (false, false);
        let edited = body.edited(|path, value| match path {
            [Name("thinking")] => {
                unthought = self.ends_in_a_tool_turn(messages);
                EditChange::drop_if(unthought)
            }
            [Name("messages")] => EditChange::Enter,
            [Name("messages"), Index(_)] => {
                let blocks = value.get("content").map_or(&[][..], Node::items);
                let thoughts = blocks.iter().filter(|block| self.is_thought(block)).count();
                any |= thoughts > 0;
                match thoughts {
                    0 => EditChange::Keep,
                    // Nothing was said but what was thought: neighbours of one role are one turn.
                    all if all == blocks.len() => EditChange::Drop,
                    _ => EditChange::Enter,
                }
            }
            [Name("messages"), Index(_), Name("content")] => EditChange::Enter,
            [Name("messages"), Index(_), Name("content"), Index(_)] => EditChange::drop_if(self.is_thought(value)),
            _ => EditChange::Keep,
        });
        (any || (unthought && !self.foreign)).then_some(edited)
    }

    /// Of the answers since somebody spoke, each must begin with what was thought; where one does
    /// not, the model goes on without thinking.
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

    fn responses(self, body: &Node<'_>) -> Option<Vec<u8>> {
        let mut any = false;
        let edited = body.edited(|path, value| match path {
            [Name("input")] => EditChange::Enter,
            [Name("input"), Index(_)] => {
                let thought = value.str_of("type") == "reasoning";
                let goes = thought && self.is_foreign(Dialect::Responses, value.str_of("encrypted_content"));
                any |= goes;
                match goes {
                    true => EditChange::Drop,
                    false if self.foreign => EditChange::Keep,
                    false => EditChange::Enter,
                }
            }
            // Under its id the provider looks for the reasoning that came with the item.
            [Name("input"), Index(_), Name("id")] => EditChange::Drop,
            _ => EditChange::Keep,
        });
        any.then_some(edited)
    }

    /// A thought that goes, from a part of Gemini's.
    fn goes(self, part: &Node<'_>) -> bool {
        let thought = part.get("thought").and_then(Node::bool) == Some(true);
        thought && (!self.foreign || signature(part).is_some_and(|seal| self.is_foreign(Dialect::Gemini, seal)))
    }

    /// The body, and whether anything was left out of it: what stands in for a signature is no
    /// loss.
    fn gemini(self, body: &Node<'_>) -> Option<(Vec<u8>, bool)> {
        let (mut stood_in, mut lost, mut first) = (false, false, None);
        let edited = body.edited(|path, value| match path {
            [Name("contents")] => EditChange::Enter,
            [Name("contents"), Index(_)] => {
                let Some(parts) = value.get("parts").map(Node::items) else { return EditChange::Keep };
                let said = |part: &Node<'_>| !self.goes(part);
                lost |= !parts.iter().all(said);
                first = parts.iter().position(|part| said(part) && is_call(part));
                // Nothing was said but what was thought.
                if parts.is_empty() || parts.iter().any(said) { EditChange::Enter } else { EditChange::Drop }
            }
            [Name("contents"), Index(_), Name("parts")] => EditChange::Enter,
            [Name("contents"), Index(_), Name("parts"), Index(_)] if self.goes(value) => EditChange::Drop,
            [Name("contents"), Index(_), Name("parts"), Index(at)] => {
                match signature(value).filter(|seal| *seal != STAND_IN) {
                    Some(seal) if self.is_foreign(Dialect::Gemini, seal) => {
                        lost = true;
                        EditChange::Put(signed_anew(value, is_call(value)).into())
                    }
                    None if self.stand_ins && first == Some(*at) && signature(value).is_none() => {
                        stood_in = true;
                        EditChange::Put(signed_anew(value, true).into())
                    }
                    _ => EditChange::Keep,
                }
            }
            _ => EditChange::Keep,
        });
        (stood_in || lost).then_some((edited, lost))
    }
}

fn is_call(part: &Node<'_>) -> bool {
    part.either("functionCall", "function_call").is_some()
}

fn signature<'n>(part: &'n Node<'_>) -> Option<&'n str> {
    part.either("thoughtSignature", "thought_signature").and_then(Node::text).map(|text| text.as_ref())
}

/// A part with the stand-in for its signature, or with none.
fn signed_anew(part: &Node<'_>, stand_in: bool) -> String {
    let mut out = Vec::with_capacity(part.raw.len() + 64);
    let mut one = Object::begin(&mut out);
    one.members_of(part, |name| matches!(name, "thoughtSignature" | "thought_signature"));
    one.maybe("thoughtSignature", stand_in.then_some(STAND_IN));
    one.end();
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(dialect: Dialect, body: &str) -> Option<String> {
        without_reasoning(dialect, body.as_bytes()).map(|body| String::from_utf8(body.to_vec()).unwrap())
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
