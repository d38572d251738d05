//! Requests of each dialect translated into another and back: what both dialects can say is the
//! same afterwards.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_dialects::{CheckedRequest, Path, Target};
use tollgate_wire::Dialect;

/// One exchange of a conversation.
#[derive(Clone, Debug)]
enum Round {
    Said(String, String),
    Looked(String, String),
    /// Question, text before the calls, calls with their results.
    Called(String, Option<String>, Vec<(String, Value, String)>),
}

fn word() -> impl Strategy<Value = String> {
    "[A-Za-z\u{4e2d}\"\\\\\n ]{0,6}[A-Za-z]"
}

fn any_round() -> impl Strategy<Value = Round> {
    let args = ("[a-z]{1,4}", word(), any::<i16>()).prop_map(|(key, text, number)| json!({key: [text, number]}));
    let call = ("[a-z_]{1,8}", prop_oneof![args, Just(json!({}))], word());
    prop_oneof![
        (word(), word()).prop_map(|(question, answer)| Round::Said(question, answer)),
        (word(), word()).prop_map(|(question, answer)| Round::Looked(question, answer)),
        (word(), prop::option::of(word()), prop::collection::vec(call, 1..4))
            .prop_map(|(question, text, calls)| Round::Called(question, text, calls)),
    ]
}

const PICTURE: &str = "data:image/png;base64,QUJD";

/// The conversation as a chat request in its plainest form.
fn chat(system: Option<&String>, rounds: &[Round], last: &str) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    messages.extend(system.map(|text| json!({"role": "system", "content": text})));
    for (at, round) in rounds.iter().enumerate() {
        match round {
            Round::Said(question, answer) => {
                messages.push(json!({"role": "user", "content": question}));
                messages.push(json!({"role": "assistant", "content": answer}));
            }
            Round::Looked(question, answer) => {
                messages.push(json!({"role": "user", "content": [{"type": "text", "text": question},
                    {"type": "image_url", "image_url": {"url": PICTURE}}]}));
                messages.push(json!({"role": "assistant", "content": answer}));
            }
            Round::Called(question, text, calls) => {
                messages.push(json!({"role": "user", "content": question}));
                let id = |n: usize| format!("call_{at}_{n}");
                let list: Vec<Value> = calls
                    .iter()
                    .enumerate()
                    .map(|(n, (name, args, _))| json!({"id": id(n), "type": "function", "function": {"name": name, "arguments": args.to_string()}}))
                    .collect();
                messages.push(json!({"role": "assistant", "content": text, "tool_calls": list}));
                for (n, (_, _, result)) in calls.iter().enumerate() {
                    messages.push(json!({"role": "tool", "tool_call_id": id(n), "content": result}));
                }
                messages.push(json!({"role": "assistant", "content": "So."}));
            }
        }
    }
    messages.push(json!({"role": "user", "content": last}));
    json!({
        "model": "m", "messages": messages, "max_completion_tokens": 77, "temperature": 0.5,
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks", "parameters": {"type": "object", "properties": {"z": {"type": "string"}, "a": {}}}}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    })
}

fn translated(from: Dialect, to: Dialect, body: &Value) -> Value {
    let path = Path { model: "m", stream: false };
    let request =
        CheckedRequest::read(from, Bytes::from(body.to_string()), (from == Dialect::Gemini).then_some(path)).unwrap();
    serde_json::from_slice(&request.upstream_body(&Target::new(to, "m")).unwrap().body).unwrap()
}

/// Leaves out what only one side has a default for.
fn tidy(mut body: Value) -> Value {
    for message in body["messages"].as_array_mut().unwrap() {
        for part in message["content"].as_array_mut().unwrap_or(&mut Vec::new()) {
            if let Some(image) = part.get_mut("image_url").and_then(Value::as_object_mut) {
                image.remove("detail");
            }
        }
    }
    // Responses says whether a tool is strict.
    for tool in body["tools"].as_array_mut().unwrap() {
        tool["function"].as_object_mut().unwrap().remove("strict");
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn chat_comes_back(system in prop::option::of(word()), rounds in prop::collection::vec(any_round(), 0..5), last in word()) {
        let body = chat(system.as_ref(), &rounds, &last);
        for through in [Dialect::Anthropic, Dialect::Responses, Dialect::Gemini] {
            let there = translated(Dialect::Chat, through, &body);
            let back = translated(through, Dialect::Chat, &there);
            prop_assert_eq!(tidy(back), tidy(body.clone()), "through {:?}: {}", through, there);
        }
    }

    /// From each dialect, through each other: the second time around nothing changes any more.
    #[test]
    fn every_dialect_settles(system in prop::option::of(word()), rounds in prop::collection::vec(any_round(), 0..5), last in word()) {
        let body = chat(system.as_ref(), &rounds, &last);
        for home in [Dialect::Anthropic, Dialect::Responses, Dialect::Gemini] {
            let own = translated(Dialect::Chat, home, &body);
            for through in Dialect::ALL.into_iter().filter(|through| *through != home) {
                let once = translated(through, home, &translated(home, through, &own));
                let twice = translated(through, home, &translated(home, through, &once));
                prop_assert_eq!(&once, &twice, "{:?} through {:?}", home, through);
                // And what the model reads is what it read before.
                prop_assert_eq!(tidy(translated(home, Dialect::Chat, &once)), tidy(translated(home, Dialect::Chat, &own)), "{:?} through {:?}", home, through);
            }
        }
    }
}
