//! What a reply says it used, in each dialect, and the ways a scenario gets it wrong.

use serde_json::{Value, json};

use super::{Dialect, Said};
use crate::scenario::Scenario as S;

/// The usage as the scenario reports it; none for `no_usage`.
pub(super) fn reported(dialect: Dialect, said: &Said<'_>) -> Option<Value> {
    let honest = of(dialect, said, said.speech.completion_tokens);
    match said.choice.scenario {
        S::NoUsage => None,
        S::ZeroUsageLast => Some(each(honest, &|_| json!(0))),
        S::WrongUsage => Some(wrong(dialect, honest, said.choice.text("kind").unwrap_or_default())),
        _ => Some(honest),
    }
}

/// The honest usage after so many tokens of output.
pub(super) fn of(dialect: Dialect, said: &Said<'_>, output: u64) -> Value {
    let speech = said.speech;
    let (input, cached, written) = (speech.prompt_tokens, speech.cached_tokens, speech.written_tokens);
    let thoughts = speech.reasoning_tokens.min(output);
    let usage = match dialect {
        Dialect::Anthropic => json!({
            "input_tokens": input.saturating_sub(cached).saturating_sub(written),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output,
            "service_tier": "standard",
        }),
        Dialect::Responses => json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": thoughts},
            "total_tokens": input.saturating_add(output),
        }),
        Dialect::Gemini => {
            let mut usage = json!({
                "promptTokenCount": input,
                "candidatesTokenCount": output - thoughts,
                "totalTokenCount": input.saturating_add(output),
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": input}],
            });
            let made = speech.made.tokens();
            if made > 0 {
                let (kind, words) = if speech.made.is_voice() { ("AUDIO", 0) } else { ("IMAGE", output - thoughts) };
                usage["candidatesTokenCount"] = json!(words + made);
                usage["totalTokenCount"] = json!(input.saturating_add(words + thoughts + made));
                usage["candidatesTokensDetails"] =
                    json!([{"modality": kind, "tokenCount": made}, {"modality": "TEXT", "tokenCount": words}]);
            }
            if thoughts > 0 {
                usage["thoughtsTokenCount"] = json!(thoughts);
            }
            if cached > 0 {
                usage["cachedContentTokenCount"] = json!(cached);
            }
            usage
        }
    };
    if said.choice.is(S::Priced) { priced(usage) } else { usage }
}

/// The same with what the call cost whoever pays for it.
pub(crate) fn priced(mut usage: Value) -> Value {
    usage["cost"] = json!(0.000_123);
    usage["cost_details"] = json!({"upstream_inference_cost": null, "upstream_inference_prompt_cost": 0.000_1});
    usage["is_byok"] = json!(false);
    usage
}

/// A usage no honest meter could produce.
fn wrong(dialect: Dialect, honest: Value, kind: &str) -> Value {
    match kind {
        "huge" => each(honest, &|_| json!(u64::MAX)),
        "strings" => each(honest, &|_| json!("many")),
        "float" => each(honest, &|_| json!(1e30)),
        "null" => each(honest, &|_| Value::Null),
        "partial" => {
            let total = if dialect == Dialect::Gemini { "totalTokenCount" } else { "total_tokens" };
            let left = if dialect == Dialect::Anthropic { "output_tokens" } else { total };
            json!({left: honest[left]})
        }
        "cached_over" => {
            let mut usage = honest;
            let over = match dialect {
                Dialect::Anthropic => &mut usage["cache_creation"]["ephemeral_1h_input_tokens"],
                Dialect::Responses => &mut usage["input_tokens_details"]["cached_tokens"],
                Dialect::Gemini => &mut usage["cachedContentTokenCount"],
            };
            *over = json!(1_000_000);
            usage
        }
        _ => each(honest, &|_| json!(-5)),
    }
}

fn each(value: Value, change: &dyn Fn(u64) -> Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, each(value, change))).collect(),
        Value::Array(list) => list.into_iter().map(|value| each(value, change)).collect(),
        Value::Number(number) => change(number.as_u64().unwrap_or_default()),
        other => other,
    }
}
