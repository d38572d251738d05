//! 3.4: reasoning. The way back is shown for all pairs by `next_turn.rs`.

use super::*;

fn tool_turn(assistant: Value) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "q"}, assistant, {"role": "tool", "tool_call_id": "1", "content": "r"}],
        "tools": [{"type": "function", "function": {"name": "f"}}], "reasoning_effort": "high"})
}

fn assistant(more: Value) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

#[test]
fn case_58_thinking_is_off_for_a_turn_that_lost_its_thoughts() {
    let body = tool_turn(assistant(json!({})));
    assert!(sent(C, A, body.clone()).get("thinking").is_none());
    assert_eq!(dropped(C, A, body), "reasoning");
}

#[test]
fn case_59_an_unsigned_thought_is_dropped_and_its_text_preserved() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reasoning_content": "Hm"}, {"role": "user", "content": "b"}]});
    assert_eq!(sent(C, A, body.clone())["messages"][1], json!({"role": "assistant", "content": "a"}));
    assert_eq!(dropped(C, A, body), "reasoning");
}

/// OpenAI's helper for Python joins the texts of all pieces of a stream, `format` among them.
#[test]
fn a_seal_is_known_by_the_last_word_of_a_joined_format() {
    let detail = json!({"type": "reasoning.text", "text": "Hm", "signature": "c2VhbA==", "format": "unknownunknownanthropic-claude-v1", "index": 0});
    let body = tool_turn(assistant(json!({"reasoning_content": "Hm", "reasoning_details": [detail]})));
    let thought = json!({"type": "thinking", "thinking": "Hm", "signature": "c2VhbA=="});
    assert_eq!(sent(C, A, body.clone())["messages"][1]["content"][0], thought);
    assert_eq!(dropped(C, A, body), "");
}

#[test]
fn case_63_no_item_id_for_a_provider_that_stored_nothing() {
    let body = tool_turn(assistant(
        json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "ZQ==", "format": "openai-responses-v1", "id": "rs_1", "index": 0}]}),
    ));
    let body = sent(C, R, body);
    assert_eq!(body["input"][1], json!({"type": "reasoning", "summary": [], "encrypted_content": "ZQ=="}));
    assert_eq!(body["store"], false);
}

#[test]
fn case_60_and_62_what_is_sealed_comes_back_through_another_dialect() {
    // Anthropic's redacted thoughts, remembered by a chat client and by a Responses client.
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "redacted_thinking", "data": "U0VBTA=="}, {"type": "text", "text": "a"}]});
    let mut said = reply(A, C, message.clone())["choices"][0]["message"].clone();
    said.as_object_mut().unwrap().remove("refusal");
    let back = sent(
        C,
        A,
        json!({"model": "m", "messages": [{"role": "user", "content": "q"}, said, {"role": "user", "content": "b"}]}),
    );
    assert_eq!(back["messages"][1]["content"][0], json!({"type": "redacted_thinking", "data": "U0VBTA=="}));
    let mut input = vec![json!({"role": "user", "content": "q"})];
    input.extend(reply(A, R, message)["output"].as_array().unwrap().clone());
    input.push(json!({"role": "user", "content": "b"}));
    let back = sent(R, A, json!({"model": "m", "input": input}));
    assert_eq!(back["messages"][1]["content"][0], json!({"type": "redacted_thinking", "data": "U0VBTA=="}));
    // OpenAI's encrypted item, remembered by an Anthropic client: the bytes as they were, without
    // the id of an item nobody stored (case 63).
    let response = json!({"id": "r", "object": "response", "status": "completed", "model": "up", "output": [
        {"type": "reasoning", "id": "rs_7", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": "gAAA=="},
        {"type": "message", "id": "msg_7", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]}]});
    let content = reply(R, A, response)["content"].clone();
    assert!(content[0]["signature"].as_str().unwrap().starts_with("tg1."), "{content}");
    let back = sent(
        A,
        R,
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}, {"role": "user", "content": "b"}]}),
    );
    assert_eq!(
        back["input"][1],
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": "gAAA=="})
    );
}

/// Anthropic may sign a thought and not show it. That is another block than a redacted one, and
/// refused in its place.
#[test]
fn a_signed_thought_without_its_text_comes_back_as_one() {
    let signed = json!({"type": "thinking", "thinking": "", "signature": "c2ln"});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1}, "content": [signed, {"type": "text", "text": "a"}]});
    let question = json!({"role": "user", "content": "q"});
    let turn = reply(A, C, message.clone())["choices"][0]["message"].clone();
    let chat = sent(C, A, json!({"model": "m", "messages": [question, turn, question]}));
    let mut input = vec![question.clone()];
    input.extend(reply(A, R, message.clone())["output"].as_array().unwrap().clone());
    input.push(question);
    let responses = sent(R, A, json!({"model": "m", "input": input}));
    let asked = json!({"role": "user", "parts": [{"text": "q"}]});
    let turn = reply(A, G, message)["candidates"][0]["content"].clone();
    let gemini = sent(G, A, json!({"contents": [asked, turn, asked]}));
    for back in [chat, responses, gemini] {
        assert_eq!(back["messages"][1]["content"][0], signed, "{back}");
    }
}

#[test]
fn case_61_thoughts_and_calls_keep_their_order() {
    let blocks = json!([{"type": "thinking", "thinking": "one", "signature": "UzE="}, {"type": "text", "text": "a"}, {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "thinking", "thinking": "two", "signature": "UzI="}, {"type": "text", "text": "b"}, {"type": "tool_use", "id": "t2", "name": "f", "input": {}}]);
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}, "content": blocks});
    let mut input = vec![json!({"role": "user", "content": "q"})];
    input.extend(reply(A, R, message)["output"].as_array().unwrap().clone());
    input.extend(["t1", "t2"].map(|id| json!({"type": "function_call_output", "call_id": id, "output": "r"})));
    let back = sent(R, A, json!({"model": "m", "input": input}));
    assert_eq!(back["messages"][1]["content"], blocks);
}

#[test]
fn case_65_several_summary_parts_are_one_block_with_one_signature() {
    let delta = |index: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "r", "summary_index": index, "delta": text});
    let part = |index: u64| json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "item_id": "r", "summary_index": index, "part": {}});
    let item = |sealed: &str| json!({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "One"}, {"type": "summary_text", "text": "Two"}], "encrypted_content": sealed});
    let events = [
        json!({"type": "response.created", "response": {"id": "r", "model": "up"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("aGFsZg==")}),
        part(0),
        delta(0, "One"),
        part(1),
        delta(1, "Two"),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item("d2hvbGU=")}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
    ];
    let played = play(R, A, &events);
    let blocks = played.data.iter().filter(|event| event["type"] == "content_block_start").count();
    let signatures: Vec<&Value> = played
        .data
        .iter()
        .filter(|event| event["delta"]["type"] == "signature_delta")
        .map(|event| &event["delta"]["signature"])
        .collect();
    assert_eq!((blocks, signatures.len()), (1, 1));
    assert!(signatures[0].as_str().unwrap().ends_with("d2hvbGU="), "only the end has all of it: {signatures:?}");
}

#[test]
fn case_67_a_signature_comes_back_on_its_call_and_once() {
    let parts = json!([{"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": "U0lH"}, {"functionCall": {"id": "c2", "name": "f", "args": {}}}]);
    let whole = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}], "modelVersion": "up"});
    let chat = reply(G, C, whole.clone())["choices"][0]["message"].clone();
    let results = ["c1", "c2"].map(|id| json!({"role": "tool", "tool_call_id": id, "content": "r"}));
    let from_chat =
        sent(C, G, json!({"model": "m", "messages": [{"role": "user", "content": "q"}, chat, results[0], results[1]]}));
    let claude = reply(G, A, whole.clone())["content"].clone();
    let results = ["c1", "c2"].map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "r"}));
    let from_claude = sent(
        A,
        G,
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": claude}, {"role": "user", "content": results}]}),
    );
    let mut input = vec![json!({"role": "user", "content": "q"})];
    input.extend(reply(G, R, whole)["output"].as_array().unwrap().clone());
    input.extend(["c1", "c2"].map(|id| json!({"type": "function_call_output", "call_id": id, "output": "r"})));
    let from_responses = sent(R, G, json!({"model": "m", "input": input}));
    for back in [from_chat, from_claude, from_responses] {
        let parts = &back["contents"][1]["parts"];
        assert_eq!((&parts[0]["thoughtSignature"], parts[1].get("thoughtSignature")), (&json!("U0lH"), None), "{back}");
        assert_eq!(back.to_string().matches("U0lH").count(), 1, "{back}");
    }
}

/// Gemini may sign the last piece of a text. A seal in front of it would break the answer in two.
#[test]
fn a_signed_last_piece_goes_on_with_the_text() {
    let piece = |part: Value, finish: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": finish}], "modelVersion": "up"});
    let events = [
        piece(json!({"text": "The gate"}), Value::Null),
        piece(json!({"text": " opens.", "thoughtSignature": "c2ln"}), json!("STOP")),
    ];
    let played = play(G, A, &events);
    let starts: Vec<&Value> = played.data.iter().filter(|event| event["type"] == "content_block_start").collect();
    let kinds: Vec<&Value> = starts.iter().map(|event| &event["content_block"]["type"]).collect();
    assert_eq!(kinds, ["text", "redacted_thinking"], "{}", played.text);
    let messages = json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "text", "text": "The gate opens."}, starts[1]["content_block"]]},
        {"role": "user", "content": "q"}]);
    let back = sent(A, G, json!({"model": "m", "max_tokens": 9, "messages": messages}));
    assert_eq!(
        back["contents"][1]["parts"],
        json!([{"text": "The gate opens."}, {"text": "", "thoughtSignature": "c2ln"}])
    );
    let output = play(G, R, &events).data.last().unwrap()["response"]["output"].clone();
    assert_eq!(output[0]["content"][0]["text"], "The gate opens.", "{output}");
}

#[test]
fn case_66_a_paragraph_between_summary_parts() {
    let events = |index: u64, text: &str| {
        [
            json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "item_id": "r", "summary_index": index, "part": {}}),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "r", "summary_index": index, "delta": text}),
        ]
    };
    let mut all = vec![json!({"type": "response.created", "response": {"id": "r", "model": "up"}})];
    all.extend(events(0, "One"));
    all.extend(events(1, "Two"));
    all.push(json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}));
    let text: String = play(R, C, &all)
        .data
        .iter()
        .filter_map(|c| c["choices"][0]["delta"]["reasoning_content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, "One\n\nTwo");
}

#[test]
fn case_68_and_69_gemini_gets_a_stand_in_on_the_first_call() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}, {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "r"}, {"role": "tool", "tool_call_id": "2", "content": "r"}]});
    let parts = &sent(C, G, body.clone())["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert!(parts[1].get("thoughtSignature").is_none() && parts.as_array().unwrap().len() == 2);
    let mut old = Target::new(G, "up");
    old.gemini3 = false;
    let (body, _) = try_sent(C, &old, &body).unwrap();
    assert!(body["contents"][1]["parts"][0].get("thoughtSignature").is_none());
}

#[test]
fn case_70_and_71_reasoning_opens_its_own_block_under_either_name() {
    let played = play(
        C,
        A,
        &[
            chunk(json!({"reasoning": "Hm"}), Value::Null),
            chunk(json!({"content": "a"}), Value::Null),
            chunk(json!({}), json!("stop")),
            done(),
        ],
    );
    let starts: Vec<&Value> = played
        .data
        .iter()
        .filter(|e| e["type"] == "content_block_start")
        .map(|e| &e["content_block"]["type"])
        .collect();
    assert_eq!(starts, ["thinking", "text"]);
}

#[test]
fn case_72_deepseek_gets_its_reasoning_back_on_tool_turns_only() {
    let mut target = Target::new(C, "up");
    target.wants_reasoning_back = true;
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": "tg1.x.."}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Ok", "signature": "tg1.x.."}, {"type": "text", "text": "a"}]}, {"role": "user", "content": "b"}]});
    let (body, _) = try_sent(A, &target, &body).unwrap();
    assert_eq!(body["messages"][1]["reasoning_content"], "Hm");
    assert!(body["messages"][3].get("reasoning_content").is_none());
}

#[test]
fn case_73_and_74_and_76_off_and_older_models() {
    let off = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "reasoning_effort": "none"});
    let body = sent(C, A, off);
    assert!(body.get("thinking").is_none() && body.get("output_config").is_none());
    let disabled = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], "thinking": {"type": "disabled"}});
    assert_eq!(sent(A, C, disabled.clone())["reasoning_effort"], "none");
    assert_eq!(sent(A, R, disabled)["reasoning"]["effort"], "none");
    let mut old = Target::new(A, "up");
    old.adaptive_thinking = false;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "reasoning_effort": "high", "temperature": 0.5, "max_tokens": 2000});
    let (body, all) = try_sent(C, &old, &body).unwrap();
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 1600}));
    assert!(body["max_tokens"].as_u64().unwrap() > 1600 && body.get("temperature").is_none());
    assert_eq!(all.dropped.to_string(), "temperature");
}

/// OpenAI refuses settings of thinking, and to be asked for sealed thoughts, where a model does
/// not think.
#[test]
fn case_74_nothing_is_said_about_thinking_to_a_model_that_does_not() {
    let claude = |thinking: Value| {
        (
            A,
            json!({"model": "m", "max_tokens": 9000, "messages": [{"role": "user", "content": "q"}], "thinking": thinking}),
        )
    };
    let gemini = |thinking: Value| {
        (
            G,
            json!({"contents": [{"role": "user", "parts": [{"text": "q"}]}], "generationConfig": {"thinkingConfig": thinking}}),
        )
    };
    let shown = "generationConfig.thinkingConfig.includeThoughts";
    for ((from, body), dropped) in [
        (claude(json!({"type": "disabled"})), ""),
        (claude(json!({"type": "adaptive"})), ""),
        (gemini(json!({"thinkingBudget": 0})), ""),
        (gemini(json!({"includeThoughts": true})), shown),
        ((C, json!({"model": "m", "messages": [{"role": "user", "content": "q"}]})), ""),
    ] {
        for to in [C, R].into_iter().filter(|to| *to != from) {
            let target = Target { thinks: false, ..Target::new(to, "up") };
            let (sent, all) = try_sent(from, &target, &body).unwrap();
            let silent = ["reasoning", "reasoning_effort", "include"].iter().all(|name| sent.get(name).is_none());
            assert!(silent, "{body} to {to:?}: {sent}");
            assert_eq!(all.dropped.to_string(), dropped, "{body} to {to:?}");
        }
    }
    let unthinking = Target { thinks: false, ..Target::new(R, "up") };
    // A budget is what other makers' clients send without being asked to: reported, not sent.
    let (budget, level) = (json!({"type": "enabled", "budget_tokens": 8000}), json!({"thinkingLevel": "HIGH"}));
    for (from, body) in [claude(budget), gemini(level)] {
        for to in [C, R] {
            let target = Target { thinks: false, ..Target::new(to, "up") };
            let (sent, all) = try_sent(from, &target, &body).unwrap();
            let silent = ["reasoning", "reasoning_effort", "include"].iter().all(|name| sent.get(name).is_none());
            assert!(silent && all.dropped.to_string() == "reasoning", "{body} to {to:?}: {sent}");
        }
    }
    // What a client says in OpenAI's own words is asked for.
    let high = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "reasoning_effort": "high"});
    let (sent, _) = try_sent(C, &unthinking, &high).unwrap();
    assert_eq!(
        (&sent["include"], &sent["reasoning"]["effort"]),
        (&json!(["reasoning.encrypted_content"]), &json!("high"))
    );
    let none = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "reasoning_effort": "none", "logprobs": true});
    let (sent, _) = try_sent(C, &unthinking, &none).unwrap();
    assert_eq!(
        (&sent["include"], &sent["reasoning"]["effort"]),
        (&json!(["message.output_text.logprobs"]), &json!("none"))
    );
}

/// Gemini 2.5 takes budgets of thoughts within the range of the model only.
#[test]
fn budgets_are_cut_to_what_the_model_takes() {
    let model = |least: u64, most: u64, always: bool| Target {
        gemini3: false,
        budgets: least..=most,
        thinks_always: always,
        ..Target::new(G, "up")
    };
    let (pro, flash, lite) = (model(128, 32_768, true), model(0, 24_576, false), model(512, 24_576, false));
    let claude = |budget: u64| (A, json!({"thinking": {"type": "enabled", "budget_tokens": budget}}));
    let effort = |word: &str| (C, json!({"reasoning_effort": word}));
    let off = || (A, json!({"thinking": {"type": "disabled"}}));
    for ((from, asked), target, budget, dropped) in [
        (claude(31_999), &pro, 31_999, ""),
        (claude(31_999), &flash, 24_576, "reasoning"),
        (claude(60_000), &pro, 32_768, "reasoning"),
        (claude(64), &pro, 128, "reasoning"),
        (claude(64), &flash, 64, ""),
        (claude(64), &lite, 512, "reasoning"),
        (effort("max"), &flash, 24_576, ""),
        (effort("max"), &pro, 32_768, ""),
        (effort("medium"), &flash, 20_000, ""),
        (effort("none"), &flash, 0, ""),
        (effort("none"), &lite, 0, ""),
        (effort("none"), &pro, 128, "reasoning"),
        (off(), &pro, 128, "reasoning"),
        (off(), &lite, 0, ""),
    ] {
        let mut body = json!({"model": "m", "max_tokens": 40_000, "messages": [{"role": "user", "content": "q"}]});
        asked.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        let (sent, all) = try_sent(from, target, &body).unwrap();
        assert_eq!(sent["generationConfig"]["thinkingConfig"]["thinkingBudget"], budget, "{asked}: {sent}");
        assert_eq!(all.dropped.to_string(), dropped, "{asked}");
    }
    let strict = Target { strict: true, ..flash };
    let body = json!({"model": "m", "max_tokens": 40_000, "messages": [{"role": "user", "content": "q"}], "thinking": {"type": "enabled", "budget_tokens": 31_999}});
    assert_eq!(try_sent(A, &strict, &body).unwrap_err().param.unwrap(), "reasoning");
}
