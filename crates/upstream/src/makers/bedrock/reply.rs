//! A whole answer of Converse as Anthropic's message.

use crate::Fault;
use crate::chat::ReplyShape;
use bytes::Bytes;
use tollgate_wire::json::{Array, Node, Object};

/// Reads all of it before it says anything.
#[derive(Debug)]
pub(super) struct WholeConverse {
    id: String,
    bytes: Vec<u8>,
}

/// Larger than any answer.
const MOST: usize = 64 << 20;

impl WholeConverse {
    pub fn new(id: String) -> WholeConverse {
        WholeConverse { id, bytes: Vec::new() }
    }
}

impl ReplyShape for WholeConverse {
    fn feed(&mut self, piece: &[u8]) -> Result<Bytes, Fault> {
        if self.bytes.len() + piece.len() > MOST {
            return Err(Fault::garbage());
        }
        self.bytes.extend_from_slice(piece);
        Ok(Bytes::new())
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        let text = std::str::from_utf8(&self.bytes).map_err(|_| Fault::garbage())?;
        let node = Node::read(text).map_err(|_| Fault::garbage())?;
        let message = node.get("output").and_then(|output| output.get("message")).ok_or_else(Fault::garbage)?;
        let mut out = Vec::with_capacity(self.bytes.len() + 256);
        let mut object = Object::begin(&mut out);
        object.text("id", &self.id);
        object.text("type", "message");
        object.text("role", "assistant");
        object.text("model", "bedrock");
        object.array("content", |list| {
            message.get("content").map(Node::items).unwrap_or_default().iter().for_each(|one| block(list, one));
        });
        object.text("stop_reason", stop_reason(node.str_of("stopReason")));
        object.null("stop_sequence");
        if let Some(report) = node.get("usage") {
            object.object("usage", |out| usage(out, report));
        }
        object.end();
        Ok(Bytes::from(out))
    }
}

fn block(list: &mut Array<'_>, one: &Node<'_>) {
    if let Some(text) = one.text_of("text") {
        list.object(|out| {
            out.text("type", "text");
            out.text("text", text);
        });
    }
    if let Some(call) = one.get("toolUse") {
        list.object(|out| {
            out.text("type", "tool_use");
            out.text("id", call.str_of("toolUseId"));
            out.text("name", call.str_of("name"));
            out.raw("input", call.get("input").map_or("{}", |input| input.raw));
        });
    }
    let Some(thought) = one.get("reasoningContent") else { return };
    list.object(|out| match thought.get("reasoningText") {
        Some(text) => {
            out.text("type", "thinking");
            out.text("thinking", text.str_of("text"));
            out.text("signature", text.str_of("signature"));
        }
        None => {
            out.text("type", "redacted_thinking");
            out.text("data", thought.str_of("redactedContent"));
        }
    });
}

/// Amazon's word for it; what it has besides are interventions.
pub(super) fn stop_reason(word: &str) -> &str {
    match word {
        "guardrail_intervened" | "content_filtered" => "refusal",
        "malformed_model_output" | "malformed_tool_use" => "end_turn",
        other => other,
    }
}

/// What is read from the cache and written to it is not part of the input, as with Anthropic.
pub(super) fn usage(out: &mut Object<'_>, report: &Node<'_>) {
    for (ours, theirs) in [
        ("input_tokens", "inputTokens"),
        ("output_tokens", "outputTokens"),
        ("cache_read_input_tokens", "cacheReadInputTokens"),
        ("cache_creation_input_tokens", "cacheWriteInputTokens"),
    ] {
        out.maybe_raw(ours, report.get(theirs).map(|value| value.raw));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_with_everything() {
        let body = br#"{"metrics":{"latencyMs":7},"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"text":"hi"},{"toolUse":{"toolUseId":"c","name":"f","input":{"z":1,"a":2}}}]}},"stopReason":"tool_use","usage":{"inputTokens":3,"outputTokens":5,"totalTokens":8,"cacheReadInputTokens":2}}"#;
        let mut shape = WholeConverse::new("msg_1".to_owned());
        assert!(shape.feed(&body[..40]).unwrap().is_empty() && shape.feed(&body[40..]).unwrap().is_empty());
        let expected = concat!(
            r#"{"id":"msg_1","type":"message","role":"assistant","model":"bedrock","content":["#,
            r#"{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"hi"},"#,
            r#"{"type":"tool_use","id":"c","name":"f","input":{"z":1,"a":2}}],"stop_reason":"tool_use","stop_sequence":null,"#,
            r#""usage":{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":2}}"#,
        );
        assert_eq!(shape.end().unwrap(), expected);
        assert!(WholeConverse::new(String::new()).end().is_err(), "nothing is no answer");
    }
}
