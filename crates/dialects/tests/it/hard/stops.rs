//! 2.6: why an answer stopped, in every dialect's own word.

use super::*;

/// A whole answer that says `a` and stops for this reason.
fn stopped(from: Dialect, reason: &str) -> Value {
    match from {
        Dialect::Chat => {
            json!({"id": "c", "model": "up", "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": reason}]})
        }
        Dialect::Anthropic => {
            json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "content": [{"type": "text", "text": "a"}],
            "stop_reason": reason, "stop_sequence": if reason == "stop_sequence" { json!("END") } else { Value::Null }, "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
        Dialect::Responses => {
            let (status, details) = match reason {
                "completed" => ("completed", Value::Null),
                reason => ("incomplete", json!({"reason": reason})),
            };
            json!({"id": "r", "object": "response", "status": status, "incomplete_details": details, "model": "up", "output": [
                {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]}]})
        }
        Dialect::Gemini => {
            json!({"candidates": [{"index": 0, "content": {"parts": [{"text": "a"}]}, "finishReason": reason}], "modelVersion": "up"})
        }
    }
}

/// What a client reads: the reason in its own dialect, and beside it what the dialect has no word
/// for.
fn stop_word(to: Dialect, reply: &Value) -> String {
    match to {
        Dialect::Chat => match reply["choices"][0]["native_finish_reason"].as_str() {
            Some(native) => format!("{}/{native}", reply["choices"][0]["finish_reason"].as_str().unwrap()),
            None => reply["choices"][0]["finish_reason"].as_str().unwrap().to_owned(),
        },
        Dialect::Anthropic => reply["stop_reason"].as_str().unwrap().to_owned(),
        Dialect::Responses => match reply["incomplete_details"]["reason"].as_str() {
            Some(reason) => format!("{}/{reason}", reply["status"].as_str().unwrap()),
            None => reply["status"].as_str().unwrap().to_owned(),
        },
        Dialect::Gemini => reply["candidates"][0]["finishReason"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn every_reason_has_a_word_in_every_dialect() {
    const END: [&str; 4] = ["stop", "end_turn", "completed", "STOP"];
    const CUT: [&str; 4] = ["length", "max_tokens", "incomplete/max_output_tokens", "MAX_TOKENS"];
    for (from, reason, words) in [
        (C, "stop", END),
        (C, "length", CUT),
        (C, "content_filter", ["content_filter", "refusal", "incomplete/content_filter", "SAFETY"]),
        (C, "weird", ["weird", "end_turn", "completed", "STOP"]),
        (A, "end_turn", END),
        (A, "stop_sequence", ["stop", "stop_sequence", "completed", "STOP"]),
        (A, "max_tokens", CUT),
        (
            A,
            "model_context_window_exceeded",
            [
                "length/model_context_window_exceeded",
                "model_context_window_exceeded",
                "incomplete/max_output_tokens",
                "MAX_TOKENS",
            ],
        ),
        (A, "refusal", ["content_filter/refusal", "refusal", "incomplete/content_filter", "SAFETY"]),
        (A, "pause_turn", ["stop/pause_turn", "pause_turn", "completed", "CONTINUATION"]),
        (A, "something_new", ["stop/something_new", "something_new", "completed", "STOP"]),
        (R, "completed", END),
        (R, "max_output_tokens", CUT),
        (R, "content_filter", ["content_filter/content_filter", "refusal", "incomplete/content_filter", "SAFETY"]),
        (G, "STOP", END),
        (G, "MAX_TOKENS", CUT),
        (G, "CONTINUATION", ["stop/CONTINUATION", "pause_turn", "completed", "CONTINUATION"]),
        (
            G,
            "MALFORMED_FUNCTION_CALL",
            ["stop/MALFORMED_FUNCTION_CALL", "end_turn", "failed", "MALFORMED_FUNCTION_CALL"],
        ),
        (G, "UNEXPECTED_TOOL_CALL", ["stop/UNEXPECTED_TOOL_CALL", "end_turn", "failed", "UNEXPECTED_TOOL_CALL"]),
    ]
    .into_iter()
    .chain(
        [
            "SAFETY",
            "PROHIBITED_CONTENT",
            "BLOCKLIST",
            "SPII",
            "RECITATION",
            "LANGUAGE",
            "IMAGE_SAFETY",
            "IMAGE_RECITATION",
            "NO_IMAGE",
        ]
        .map(|reason| (G, reason, ["", "refusal", "incomplete/content_filter", ""])),
    ) {
        for (to, word) in [C, A, R, G].into_iter().zip(words) {
            let word = match (word, to) {
                // Within its dialect a reason is what it was, and chat has the provider's own
                // beside its own.
                ("", Dialect::Gemini) => reason.to_owned(),
                ("", _) => format!("content_filter/{reason}"),
                (word, _) => word.to_owned(),
            };
            assert_eq!(stop_word(to, &reply(from, to, stopped(from, reason))), word, "{from:?} {reason} to {to:?}");
        }
    }
}

#[test]
fn what_no_dialect_says_is_reported_as_dropped() {
    assert_eq!(lost(A, R, &stopped(A, "pause_turn")), "answer.pause_turn");
    assert_eq!(lost(G, A, &stopped(G, "MALFORMED_FUNCTION_CALL")), "answer.MALFORMED_FUNCTION_CALL");
    assert_eq!(lost(A, C, &stopped(A, "pause_turn")), "", "carried in native_finish_reason");
    let failed = reply(G, R, stopped(G, "MALFORMED_FUNCTION_CALL"));
    assert_eq!(
        (&failed["error"]["code"], &failed["output"][0]["content"][0]["text"]),
        (&json!("server_error"), &json!("a"))
    );
    let mut first = stopped(G, "");
    first["candidates"][0].as_object_mut().unwrap().remove("finishReason");
    let played = play(G, R, &[first, stopped(G, "MALFORMED_FUNCTION_CALL")]);
    assert_eq!(played.data.last().unwrap()["type"], "response.failed", "in a stream too");
}

/// An answer that is nothing but an unreadable call is no answer: another route may do better, and
/// nobody pays.
#[test]
fn an_unreadable_call_and_nothing_else_is_a_fault() {
    let body = json!({"candidates": [{"index": 0, "content": {"parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}], "modelVersion": "up"});
    for to in [C, A, R] {
        let converted = convert(G, to, Bytes::from(body.to_string()), &ToolNames::default(), &voice()).unwrap();
        assert_eq!(converted.facts.error.and_then(|error| error.status), Some(502), "{to:?}");
        assert!(play(G, to, std::slice::from_ref(&body)).end.contains("MALFORMED_FUNCTION_CALL"), "{to:?}");
    }
    assert_eq!(play(G, G, &[body]).end, "complete", "in its own dialect it passes");
}

/// Why an answer was refused is reported where there is a place for it.
#[test]
fn the_details_of_a_refusal_are_carried() {
    let details = json!({"type": "refusal", "category": "cyber", "explanation": "Not this."});
    let mut message = stopped(A, "refusal");
    message["stop_details"] = details.clone();
    assert_eq!(reply(A, C, message.clone())["choices"][0]["stop_details"], details);
    assert_eq!(reply(A, G, message.clone())["candidates"][0]["finishMessage"], "cyber: Not this.");
    assert_eq!(reply(A, A, message.clone())["stop_details"], details);
    assert_eq!(lost(A, R, &message), "answer.stop_details");
    // Back to Anthropic, from a gateway that carried them and from Gemini's own.
    let mut chat = stopped(C, "content_filter");
    chat["choices"][0]["stop_details"] = details.clone();
    assert_eq!(reply(C, A, chat)["stop_details"], details);
    let mut gemini = stopped(G, "SAFETY");
    gemini["candidates"][0]["finishMessage"] = json!("Not this.");
    assert_eq!(
        reply(G, A, gemini)["stop_details"],
        json!({"type": "refusal", "category": null, "explanation": "Not this."})
    );
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": null, "stop_details": details}, "usage": {"output_tokens": 2}});
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_stop", "index": 0}),
        delta,
        json!({"type": "message_stop"}),
    ];
    let played = play(A, C, &events);
    let last = played.data.iter().find(|chunk| chunk["choices"][0]["finish_reason"].is_string()).unwrap();
    assert_eq!(last["choices"][0]["stop_details"], details);
}

/// OpenAI's dialects have words for what was refused and end as usual; to others the refusal is the
/// reason.
#[test]
fn a_refusal_is_the_reason_of_the_stop() {
    let message = |refusal: Value| json!({"role": "assistant", "content": null, "refusal": refusal});
    let chat = json!({"id": "c", "model": "up", "choices": [{"index": 0, "message": message(json!("I cannot.")), "finish_reason": "stop"}]});
    let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "refusal", "refusal": "I cannot."}]});
    let response = json!({"id": "r", "object": "response", "status": "completed", "model": "up", "output": [item]});
    for (from, body) in [(C, &chat), (R, &response)] {
        let claude = reply(from, A, body.clone());
        assert_eq!((&claude["stop_reason"], &claude["content"][0]["text"]), (&json!("refusal"), &json!("I cannot.")));
        let gemini = &reply(from, G, body.clone())["candidates"][0];
        assert_eq!(
            (&gemini["finishReason"], &gemini["content"]["parts"][0]["text"]),
            (&json!("SAFETY"), &json!("I cannot."))
        );
    }
    assert_eq!(reply(C, R, chat)["status"], "completed");
    assert_eq!(reply(R, C, response.clone())["choices"][0]["finish_reason"], "stop");
    let chunks =
        [chunk(json!({"refusal": "I can"}), Value::Null), chunk(json!({"refusal": "not."}), json!("stop")), done()];
    let delta = json!({"type": "response.refusal.delta", "output_index": 0, "item_id": "m", "content_index": 0, "delta": "I cannot."});
    let events = [
        json!({"type": "response.created", "response": {"id": "r", "model": "up"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}),
        delta,
        json!({"type": "response.output_item.done", "output_index": 0, "item": response["output"][0]}),
        json!({"type": "response.completed", "response": response}),
    ];
    for (from, events) in [(C, &chunks[..]), (R, &events)] {
        let claude = play(from, A, events);
        let reasons: Vec<&Value> = claude.data.iter().filter_map(|event| event["delta"].get("stop_reason")).collect();
        assert_eq!(reasons, ["refusal"], "{from:?}: {}", claude.text);
        let gemini = play(from, G, events);
        let reasons: Vec<&Value> =
            gemini.data.iter().filter_map(|chunk| chunk["candidates"][0].get("finishReason")).collect();
        assert_eq!(reasons, ["SAFETY"], "{from:?}: {}", gemini.text);
    }
}

/// Case 47: a filter cuts a call in the middle as the limit does.
#[test]
fn case_47_half_a_call_before_a_filter_is_half_a_call() {
    let call = |args: &str| json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "rm", "arguments": args}}]});
    let chat = |reason: &str| vec![chunk(call("{\"path\":\"/"), Value::Null), chunk(json!({}), json!(reason)), done()];
    let block = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":\"/"}});
    let claude = |reason: &str| {
        vec![
            json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "rm", "input": {}}}),
            block.clone(),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ]
    };
    for (from, cut, filtered) in
        [(C, chat("length"), chat("content_filter")), (A, claude("max_tokens"), claude("refusal"))]
    {
        for events in [cut, filtered] {
            let response = play(from, R, &events);
            let item = response.data.iter().find(|event| event["type"] == "response.output_item.done").unwrap();
            assert_eq!(item["item"]["status"], "incomplete", "{from:?}: {}", response.text);
            assert_eq!(kinds(&response.data).last(), Some(&"response.incomplete"));
            let gemini = play(from, G, &events);
            assert!(!gemini.text.contains("functionCall"), "{from:?}: an agent would run it: {}", gemini.text);
        }
    }
    // One that is whole stays one.
    let whole = [chunk(call("{}"), Value::Null), chunk(json!({}), json!("content_filter")), done()];
    assert!(play(C, G, &whole).text.contains("functionCall"));
}
