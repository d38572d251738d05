//! What coding agents send with every request, as their providers take it. Whole requests of theirs
//! are in the golden files (`anthropic_claude_code`, `responses_codex`).

use super::*;

fn claude(more: Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 32_000, "messages": [{"role": "user", "content": "q"}]});
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

/// Most servers of OpenAI's dialects refuse a mark for the cache that they do not know.
#[test]
fn cache_marks_reach_only_models_that_take_them() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let text = json!({"type": "text", "text": "q", "cache_control": mark});
    let body = claude(json!({"system": [text], "messages": [{"role": "user", "content": [text]}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": mark}]}));
    for to in [C, R, G] {
        let (plain, all) = try_sent(A, &Target::new(to, "up"), &body).unwrap();
        assert!(!plain.to_string().contains("cache"), "{to:?}: {plain}");
        assert_eq!(all.dropped.to_string(), "cache_control", "{to:?}: reported once");
    }
    assert_eq!(sent(A, C, body.clone())["messages"][1]["content"], "q", "a plain text again");
    for to in [C, R] {
        let takes = Target { cache_marks: true, ..Target::new(to, "up") };
        let (marked, _) = try_sent(A, &takes, &body).unwrap();
        assert!(marked.to_string().contains(r#""prompt_cache_breakpoint":{"mode":"explicit"}"#), "{to:?}: {marked}");
    }
    // A mark in OpenAI's own words is named by them.
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "q", "prompt_cache_breakpoint": {"mode": "explicit"}}]}]});
    assert_eq!(dropped(C, R, chat), "prompt_cache_breakpoint");
}

/// An agent's id of its user is longer than OpenAI takes.
#[test]
fn a_long_user_is_sent_as_a_hash() {
    let long = format!("{{\"device_id\":\"{}\"}}", "0f".repeat(40));
    let body = |user: &str| claude(json!({"metadata": {"user_id": user}}));
    for to in [C, R] {
        let who = |user: &str| sent(A, to, body(user))["safety_identifier"].as_str().unwrap().to_owned();
        assert!(who(&long).len() <= 64 && who(&long) == who(&long) && who(&long) != who(&format!("{long} ")));
        assert_eq!(who("ann"), "ann");
    }
}

/// Agents ask for more output than some models have; those would refuse it.
#[test]
fn a_limit_above_the_models_is_cut_and_reported() {
    let asks = [
        (C, json!({"model": "m", "max_tokens": 32_000, "messages": [{"role": "user", "content": "q"}]}), "max_tokens"),
        (A, claude(json!({})), "max_tokens"),
        (R, json!({"model": "m", "max_output_tokens": 32_000, "input": "q"}), "max_output_tokens"),
        (
            G,
            json!({"contents": [{"parts": [{"text": "q"}]}], "generationConfig": {"maxOutputTokens": 32_000}}),
            "generationConfig.maxOutputTokens",
        ),
    ];
    for (from, body, dropped) in asks {
        for to in [C, A, R, G].into_iter().filter(|to| *to != from) {
            let small = Target { most_output: Some(16_384), ..Target::new(to, "up") };
            let (body, all) = try_sent(from, &small, &body).unwrap();
            assert_eq!(all.dropped.to_string(), dropped, "{from:?} to {to:?}");
            assert!(body.to_string().contains(":16384") && !body.to_string().contains("32000"), "{body}");
        }
    }
}

/// A tool that looks for tools answers with references to them; any other dialect has all tools at
/// hand.
#[test]
fn references_to_tools_are_words_and_unknown_results_are_passed_as_written() {
    let result = |block: Value| {
        claude(
            json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [block]}]}]}),
        )
    };
    let odd = json!({"type": "browser_state", "tabs": []});
    for to in [C, R, G] {
        let found = sent(A, to, result(json!({"type": "tool_reference", "tool_name": "Bash"}))).to_string();
        assert!(found.contains("The tool `Bash` is available."), "{to:?}: {found}");
        assert!(sent(A, to, result(odd.clone())).to_string().contains("browser_state"), "{to:?}");
    }
    let responses = json!({"model": "m", "input": [{"role": "user", "content": "q"}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_odd", "x": 1}]}]});
    assert!(sent(R, A, responses).to_string().contains("input_odd"));
}

/// A grammar stands beside its type in Responses and in an object of its own in chat. A server that
/// knows no free text gets a function.
#[test]
fn tools_with_a_grammar_have_the_form_of_their_dialect() {
    let flat = json!({"type": "grammar", "syntax": "lark", "definition": "start: /a/"});
    let nested = json!({"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /a/"}});
    let responses =
        json!({"model": "m", "input": "q", "tools": [{"type": "custom", "name": "apply_patch", "format": flat}]});
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [{"type": "custom", "custom": {"name": "apply_patch", "format": nested}}]});
    assert_eq!(sent(R, C, responses.clone())["tools"][0]["custom"]["format"], nested);
    assert_eq!(sent(C, R, chat)["tools"][0]["format"], flat);
    let old = Target { current_chat: false, ..Target::new(C, "up") };
    let (body, all) = try_sent(R, &old, &responses).unwrap();
    let tool = &body["tools"][0];
    assert_eq!((&tool["type"], &tool["function"]["parameters"]["required"]), (&json!("function"), &json!(["input"])));
    assert_eq!(all.dropped.to_string(), "tools[0].format");
    let answer = json!({"id": "c", "object": "chat.completion", "model": "up", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant",
        "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "apply_patch", "arguments": "{\"input\":\"*** x\"}"}}]}}]});
    let back = convert(C, R, Bytes::from(answer.to_string()), &all.names, &voice()).unwrap();
    let back: Value = serde_json::from_slice(&back.body).unwrap();
    assert_eq!(
        (&back["output"][0]["type"], &back["output"][0]["input"]),
        (&json!("custom_tool_call"), &json!("*** x"))
    );
}
