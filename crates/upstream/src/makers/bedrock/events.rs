//! A stream of Converse as Anthropic's events. Amazon begins only blocks of tool calls with an
//! event, and reports what was used after the end; both are put where Anthropic has them.

use super::frames::{AwsFrame, AwsFrames};
use super::reply::{stop_reason, usage};
use crate::Fault;
use crate::chat::ReplyShape;
use bytes::Bytes;
use tollgate_wire::json::{Node, Object};

/// What was said so far.
#[derive(Debug)]
pub(super) struct ConverseEvents {
    id: String,
    frames: AwsFrames,
    /// The block that is open.
    open: Option<u64>,
    /// Why it stopped, until the report comes.
    stopped: Option<String>,
}

impl ConverseEvents {
    pub fn new(id: String) -> ConverseEvents {
        ConverseEvents { id, frames: AwsFrames::default(), open: None, stopped: None }
    }

    fn frame(&mut self, frame: &AwsFrame, out: &mut Vec<u8>) -> Result<(), Fault> {
        let text = std::str::from_utf8(&frame.payload).map_err(|_| Fault::garbage())?;
        let node = Node::read(text).map_err(|_| Fault::garbage())?;
        if frame.message != "event" {
            failed(out, &frame.kind, &node);
            return Ok(());
        }
        let at = node.get("contentBlockIndex").and_then(Node::number).unwrap_or(0);
        match frame.kind.as_str() {
            "messageStart" => event(out, "message_start", |body| {
                body.object("message", |message| {
                    message.text("id", &self.id);
                    message.text("type", "message");
                    message.text("role", "assistant");
                    message.text("model", "bedrock");
                    message.raw("content", "[]");
                    message.null("stop_reason");
                    message.null("stop_sequence");
                    message.raw("usage", r#"{"input_tokens":0,"output_tokens":0}"#);
                });
            }),
            "contentBlockStart" => {
                if let Some(call) = node.get("start").and_then(|start| start.get("toolUse")) {
                    self.open = Some(at);
                    begin(out, at, |block| {
                        block.text("type", "tool_use");
                        block.text("id", call.str_of("toolUseId"));
                        block.text("name", call.str_of("name"));
                        block.raw("input", "{}");
                    });
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = node.get("delta") {
                    self.delta(delta, at, out);
                }
            }
            "contentBlockStop" if self.open.take().is_some() => {
                event(out, "content_block_stop", |body| body.number("index", at));
            }
            "messageStop" => self.stopped = Some(node.str_of("stopReason").to_owned()),
            "metadata" => self.close(out, node.get("usage")),
            // More may be added.
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Node<'_>, at: u64, out: &mut Vec<u8>) {
        let thought = delta.get("reasoningContent");
        if let Some(data) = thought.and_then(|thought| thought.text_of("redactedContent")) {
            begin(out, at, |block| {
                block.text("type", "redacted_thinking");
                block.text("data", data);
            });
            self.open = Some(at);
            return;
        }
        if self.open != Some(at) {
            self.open = Some(at);
            begin(out, at, |block| match thought {
                Some(_) => {
                    block.text("type", "thinking");
                    block.text("thinking", "");
                    block.text("signature", "");
                }
                None => {
                    block.text("type", "text");
                    block.text("text", "");
                }
            });
        }
        let parts = [
            ("text_delta", "text", delta.text_of("text")),
            ("input_json_delta", "partial_json", delta.get("toolUse").and_then(|call| call.text_of("input"))),
            ("thinking_delta", "thinking", thought.and_then(|thought| thought.text_of("text"))),
            ("signature_delta", "signature", thought.and_then(|thought| thought.text_of("signature"))),
        ];
        for (kind, name, text) in parts {
            let Some(text) = text else { continue };
            event(out, "content_block_delta", |body| {
                body.number("index", at);
                body.object("delta", |delta| {
                    delta.text("type", kind);
                    delta.text(name, text);
                });
            });
        }
    }

    /// The end, with the report where there is one.
    fn close(&mut self, out: &mut Vec<u8>, report: Option<&Node<'_>>) {
        let Some(word) = self.stopped.take() else { return };
        event(out, "message_delta", |body| {
            body.object("delta", |delta| {
                delta.text("stop_reason", stop_reason(&word));
                delta.null("stop_sequence");
            });
            if let Some(report) = report {
                body.object("usage", |out| usage(out, report));
            }
        });
        event(out, "message_stop", |_| {});
    }
}

impl ReplyShape for ConverseEvents {
    fn feed(&mut self, piece: &[u8]) -> Result<Bytes, Fault> {
        self.frames.feed(piece);
        let mut out = Vec::new();
        while let Some(frame) = self.frames.next()? {
            self.frame(&frame, &mut out)?;
        }
        Ok(Bytes::from(out))
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        if !self.frames.is_empty() {
            return Err(Fault::truncated());
        }
        let mut out = Vec::new();
        self.close(&mut out, None);
        Ok(Bytes::from(out))
    }
}

fn begin(out: &mut Vec<u8>, at: u64, write: impl FnOnce(&mut Object<'_>)) {
    event(out, "content_block_start", |body| {
        body.number("index", at);
        body.object("content_block", write);
    });
}

fn failed(out: &mut Vec<u8>, kind: &str, node: &Node<'_>) {
    let ours = match kind {
        "throttlingException" => "rate_limit_error",
        "serviceUnavailableException" | "modelNotReadyException" => "overloaded_error",
        "validationException" => "invalid_request_error",
        "modelTimeoutException" => "timeout_error",
        _ => "api_error",
    };
    event(out, "error", |body| {
        body.object("error", |error| {
            error.text("type", ours);
            error.text("message", node.text_of("message").map_or(kind, |text| text));
        });
    });
}

/// One event, with its name as its type.
fn event(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Object<'_>)) {
    out.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    let mut body = Object::begin(out);
    body.text("type", name);
    write(&mut body);
    body.end();
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::super::frames::tests::frame;
    use super::*;

    fn events(frames: &[(&str, &str)]) -> String {
        let mut shape = ConverseEvents::new("msg_1".to_owned());
        let mut out = Vec::new();
        for (kind, payload) in frames {
            out.extend(shape.feed(&frame("event", kind, payload)).unwrap());
        }
        out.extend(shape.end().unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_stream_with_thoughts_text_and_a_call() {
        let said = events(&[
            ("messageStart", r#"{"role":"assistant"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"t"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"text":"hi"}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
            ("contentBlockStart", r#"{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"c","name":"f"}}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{\"a\":1}"}}}"#),
            ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
            ("messageStop", r#"{"stopReason":"tool_use"}"#),
            ("metadata", r#"{"usage":{"inputTokens":3,"outputTokens":5,"totalTokens":8},"metrics":{"latencyMs":1}}"#),
        ]);
        let names: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        let block = ["content_block_start", "content_block_delta", "content_block_stop"];
        let thought = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"];
        let expected = [&["message_start"][..], &thought, &block, &block, &["message_delta", "message_stop"]].concat();
        assert_eq!(names, expected);
        let end = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":3,"output_tokens":5}}"#;
        assert!(said.contains(end), "{said}");
        assert!(said.contains(r#""delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}"#), "{said}");
    }

    #[test]
    fn an_end_without_a_report_is_an_end() {
        let said = events(&[("messageStart", "{}"), ("messageStop", r#"{"stopReason":"end_turn"}"#)]);
        assert!(said.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"), "{said}");
        let cut = events(&[("messageStart", "{}")]);
        assert!(!cut.contains("message_stop"), "{cut}");
    }

    #[test]
    fn exceptions_are_errors() {
        let mut shape = ConverseEvents::new(String::new());
        let said = shape.feed(&frame("exception", "throttlingException", r#"{"message":"slow"}"#)).unwrap();
        let expected = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}\n\n";
        assert_eq!(said, expected);
        let mut half = ConverseEvents::new(String::new());
        half.feed(&frame("event", "messageStart", "{}")[..9]).unwrap();
        assert!(half.end().is_err(), "half a frame is no end");
    }
}
