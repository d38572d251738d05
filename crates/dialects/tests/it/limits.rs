//! What is sent buys no more than what is held for: the limit of the output that a provider gets is
//! never above the one that the call knows, whatever else a request says.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_dialects::{CheckedRequest, Path, Target};
use tollgate_wire::Dialect;

/// Asks for so much at most, and for so much thinking by budget or effort.
fn body(dialect: Dialect, most: Option<u64>, budget: Option<u64>, effort: Option<&str>) -> Value {
    let said = json!([{"role": "user", "content": "q"}]);
    let mut body = match dialect {
        Dialect::Chat => json!({"model": "m", "messages": said, "max_tokens": most}),
        Dialect::Anthropic => json!({"model": "m", "messages": said, "max_tokens": most.unwrap_or(1)}),
        Dialect::Responses => json!({"model": "m", "input": said, "max_output_tokens": most}),
        Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "q"}]}],
            "generationConfig": {"maxOutputTokens": most, "thinkingConfig": {}}}),
    };
    match (dialect, budget, effort) {
        (Dialect::Chat, budget, effort) => body["reasoning"] = json!({"max_tokens": budget, "effort": effort}),
        (Dialect::Anthropic, Some(budget), _) => {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        }
        (Dialect::Anthropic, None, effort) => {
            body["thinking"] = json!({"type": "adaptive"});
            body["output_config"] = json!({"effort": effort});
        }
        (Dialect::Responses, _, effort) => body["reasoning"] = json!({"effort": effort}),
        (Dialect::Gemini, budget, effort) => {
            let level = effort.map(str::to_uppercase);
            body["generationConfig"]["thinkingConfig"] = json!({"thinkingBudget": budget, "thinkingLevel": level});
        }
    }
    body
}

fn read(dialect: Dialect, body: &Value) -> CheckedRequest {
    let path = Path { model: "gemini-x", stream: false };
    let path = (dialect == Dialect::Gemini).then_some(path);
    CheckedRequest::read(dialect, Bytes::from(body.to_string()), path).unwrap()
}

/// The limit of the output, and the budget within it.
fn limits(dialect: Dialect, sent: &Value) -> (Option<u64>, Option<u64>) {
    match dialect {
        Dialect::Chat => (sent["max_completion_tokens"].as_u64().or(sent["max_tokens"].as_u64()), None),
        Dialect::Anthropic => (sent["max_tokens"].as_u64(), sent["thinking"]["budget_tokens"].as_u64()),
        Dialect::Responses => (sent["max_output_tokens"].as_u64(), None),
        Dialect::Gemini => (sent["generationConfig"]["maxOutputTokens"].as_u64(), None),
    }
}

proptest! {
    #[test]
    fn no_provider_is_asked_for_more_than_is_held(
        most in prop_oneof![1u64..40, 1_000u64..3_000, 1u64..300_000],
        limited in any::<bool>(),
        budget in prop::option::of(prop_oneof![1u64..3_000, 1u64..300_000]),
        effort in prop::option::of(prop_oneof![Just("low"), Just("medium"), Just("high")]),
        adaptive in any::<bool>(),
    ) {
        for from in Dialect::ALL {
            let most = (limited || from == Dialect::Anthropic).then_some(most);
            let request = read(from, &body(from, most, budget, effort));
            prop_assert_eq!(request.max_output, most);
            for to in Dialect::ALL {
                let target = Target {
                    adaptive_thinking: adaptive,
                    gemini3: adaptive,
                    default_max_output: 8_192,
                    ..Target::new(to, "up")
                };
                let sent = request.upstream_body(&target).unwrap();
                let (limit, thinking) = limits(to, &serde_json::from_slice(&sent.body).unwrap());
                // Without a limit of the client's a provider gets none, or the model's usual one.
                let held = request.max_output.unwrap_or(if to == Dialect::Anthropic { 8_192 } else { u64::MAX });
                prop_assert!(limit.unwrap_or(held) <= held, "{:?} to {:?}: {:?} of {}", from, to, limit, held);
                if from != to && to == Dialect::Anthropic {
                    prop_assert!(thinking.is_none_or(|budget| budget >= 1_024 && Some(budget) < limit));
                    let less = budget.is_some_and(|asked| thinking.is_none_or(|got| got < asked));
                    let dropped = sent.dropped.fields().iter().any(|field| field == "reasoning");
                    prop_assert!(adaptive || from == Dialect::Responses || !less || dropped, "{:?}: {:?}", from, thinking);
                }
            }
        }
    }
}

#[test]
fn thinking_goes_by_the_limit() {
    for (most, budget, sent, dropped) in [
        (1, 60_000, None, true),
        (1_024, 1_024, None, true),
        (1_025, 1_024, Some(1_024), false),
        (2_000, 1_999, Some(1_999), false),
        (2_000, 2_000, Some(1_024), true),
        (61_024, 60_000, Some(60_000), false),
        (32_000, 60_000, Some(30_976), true),
    ] {
        let request = read(Dialect::Chat, &body(Dialect::Chat, Some(most), Some(budget), None));
        let target = Target { adaptive_thinking: false, ..Target::new(Dialect::Anthropic, "up") };
        let written = request.upstream_body(&target).unwrap();
        let limits = limits(Dialect::Anthropic, &serde_json::from_slice(&written.body).unwrap());
        assert_eq!(limits, (Some(most), sent), "{budget} of {most}");
        assert_eq!(written.dropped.to_string(), if dropped { "reasoning" } else { "" }, "{budget} of {most}");
        let strict = request.upstream_body(&Target { strict: true, ..target });
        assert_eq!(strict.is_err(), dropped, "{budget} of {most}");
    }
}

/// Two limits in one request: both pass within the dialect, so the larger one is held for.
#[test]
fn of_two_limits_the_larger_is_held_for() {
    for (one, other) in [(1, 60_000), (60_000, 1)] {
        let chat = json!({"model": "m", "messages": [{"role": "user", "content": "q"}],
            "max_tokens": one, "max_completion_tokens": other});
        assert_eq!(read(Dialect::Chat, &chat).max_output, Some(60_000));
        let gemini = |name: &str, of: [&str; 2]| {
            let config = json!({of[0]: one, of[1]: other});
            read(Dialect::Gemini, &json!({"contents": [{"parts": [{"text": "q"}]}], name: config}))
        };
        for name in ["generationConfig", "generation_config"] {
            assert_eq!(gemini(name, ["maxOutputTokens", "max_output_tokens"]).max_output, Some(60_000));
        }
        let two = json!({"contents": [{"parts": [{"text": "q"}]}],
            "generationConfig": {"maxOutputTokens": one, "candidateCount": 1},
            "generation_config": {"maxOutputTokens": other, "candidateCount": 2}});
        let request = read(Dialect::Gemini, &two);
        assert_eq!((request.max_output, request.choices), (Some(60_000), 2));
    }
}
