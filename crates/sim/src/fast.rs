//! Replies for load: built once, chosen without reading the JSON, neither recorded nor counted.

use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::scenario::Choice;
use crate::script::Step;

const EVENTS: u64 = 100;

static WHOLE: LazyLock<Bytes> = LazyLock::new(|| {
    let message = json!({"role": "assistant", "content": "the gate opens for every coin", "refusal": null});
    let reply = json!({
        "id": "chatcmpl-sim-fast", "object": "chat.completion", "created": 1_767_225_600, "model": "sim-fast",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 6, "total_tokens": 15},
    });
    reply.to_string().into()
});
static LAST: LazyLock<Bytes> = LazyLock::new(|| event(json!({}), json!("stop")));

/// Whether the body names a fast scenario as its model. Looks at bytes only; inside a prompt the
/// quotes would be escaped, so the pattern cannot match there.
pub(crate) fn is_fast(body: &[u8]) -> bool {
    let key = b"\"model\"";
    let mut places = body.windows(key.len()).enumerate().filter(|(_, window)| window == key);
    places.any(|(place, _)| {
        let value = body[place + key.len()..].trim_ascii_start();
        let value = value.strip_prefix(b":").unwrap_or_default();
        value.trim_ascii_start().starts_with(b"\"sim-fast")
    })
}

pub(crate) fn whole() -> Bytes {
    WHOLE.clone()
}

/// The events of `faststream[-N]`, none if the caller did not ask for a stream.
pub(crate) fn stream(ask: &Ask) -> Option<Vec<Step>> {
    if !ask.stream {
        return None;
    }
    let argument = ask.model.strip_prefix("sim-faststream-");
    let events = argument.and_then(|text| text.parse().ok()).unwrap_or(EVENTS);
    let size = Choice::of(&ask.model, &ask.last_user).map_or(0, |choice| choice.count("size", 0));
    let said = event(json!({"content": piece(size)}), Value::Null);
    let mut steps = vec![Step::Repeat(said, events), Step::Send(LAST.clone())];
    if ask.include_usage {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": events, "total_tokens": 9 + events});
        let chunk = json!({
            "id": "chatcmpl-sim-fast", "object": "chat.completion.chunk", "created": 1_767_225_600,
            "model": "sim-fast", "choices": [], "usage": usage,
        });
        steps.push(Step::Send(format!("data: {chunk}\n\n").into()));
    }
    steps.push(Step::Send(Bytes::from_static(b"data: [DONE]\n\n")));
    Some(steps)
}

/// What is said in every event, so many bytes of it at least.
pub(crate) fn piece(size: usize) -> String {
    format!("{:x<size$}", " coin")
}

fn event(delta: Value, finish: Value) -> Bytes {
    let chunk = json!({
        "id": "chatcmpl-sim-fast", "object": "chat.completion.chunk", "created": 1_767_225_600, "model": "sim-fast",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    });
    format!("data: {chunk}\n\n").into()
}
