//! 3.5 and 3.7: framing, ends, errors, identity.

use super::*;

fn text(delta: &str) -> Value {
    chunk(json!({"content": delta}), Value::Null)
}

fn stop() -> Value {
    chunk(json!({}), json!("stop"))
}

#[test]
fn case_77_and_78_characters_and_separators_survive_any_cut() {
    let all = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", text("中\u{2028}é"), stop());
    let bytes: Vec<&[u8]> = all.as_bytes().chunks(1).collect();
    for to in [A, R, G] {
        let played = play_raw(C, to, &bytes);
        assert!(!played.text.contains('\u{2028}') && played.text.contains("中\\u2028é"), "{to:?} {}", played.text);
    }
}

#[test]
fn case_79_every_framing_is_read() {
    let event = text("a").to_string();
    let (head, rest) = event.split_at(event.find(",\"created").unwrap() + 1);
    for framed in [
        format!("data:{event}\n\n"),
        format!("data: {event}\r\n\r\n"),
        format!("data: {event}\r\r"),
        format!(": comment\nid: 1\nretry: 5\nevent: x\ndata: {event}\n\n"),
        format!("data: {head}\ndata: {rest}\n\n"),
        format!("\u{feff}data: {event}\n\n"),
    ] {
        let all = format!("{framed}data: {}\n\ndata: [DONE]\n\n", stop());
        let played = play_raw(C, G, &[all.as_bytes()]);
        assert_eq!(played.data[0]["candidates"][0]["content"]["parts"][0]["text"], "a", "{framed:?}");
        assert!(
            played.text.lines().all(|line| line.is_empty() || line.starts_with("data: ")),
            "Gemini's clients bear no other line"
        );
    }
}

#[test]
fn case_80_an_event_of_four_mebibytes() {
    let long = "x".repeat(4 << 20);
    let played = play(C, A, &[text(&long), stop(), done()]);
    assert_eq!(played.end, "complete");
    assert!(played.text.len() > 4 << 20);
}

#[test]
fn case_82_an_event_cut_before_its_blank_line_is_one_event_and_leaves_in_one_piece() {
    let first = format!("data: {}\n", text("a"));
    let rest = format!("\ndata: {}\n\ndata: [DONE]\n\n", stop());
    for to in [A, R, G] {
        let setup =
            Setup { from: C, to, voice: voice(), names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
        let mut stream = ReplyStream::new(setup);
        let before = stream.feed(Bytes::from(first.clone())).unwrap();
        assert!(before.is_empty(), "{to:?}: half an event says nothing");
        let out = stream.feed(Bytes::from(rest.clone())).unwrap();
        assert!(out.ends_with(b"\n\n") && !out.is_empty(), "{to:?}");
    }
}

#[test]
fn case_84_a_ping_is_a_heartbeat() {
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let played = play(A, C, &[start, json!({"type": "ping"})]);
    assert_eq!(played.text, ": hb\n");
}

#[test]
fn case_86_chunks_without_choices_are_no_trouble() {
    let filters = json!({"id": "", "choices": [], "prompt_filter_results": []});
    let played = play(C, A, &[filters, json!({"object": "ping"}), text("a"), stop(), done()]);
    assert_eq!(played.end, "complete");
}

#[test]
fn case_87_and_88_and_109_usage_wherever_it_stands() {
    let mut last = stop();
    last["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let played = play(C, A, &[text("a"), last, done()]);
    assert_eq!(played.data[played.data.len() - 2]["usage"]["output_tokens"], 2);
    let usage =
        json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
    let played = play(C, A, &[text("a"), stop(), usage, done()]);
    assert_eq!(played.data[played.data.len() - 2]["usage"]["input_tokens"], 3, "reported again with the stop reason");
    // A chat client that did not ask gets no report, and is metered all the same.
    for wants_usage in [true, false] {
        let voice = Voice { wants_usage, ..voice() };
        let setup =
            Setup { from: A, to: C, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
        let mut stream = ReplyStream::new(setup);
        let message = json!({"id": "m", "model": "up", "usage": {"input_tokens": 3, "output_tokens": 1}});
        let all = format!(
            "data: {}\n\ndata: {}\n\ndata: {}\n\n",
            json!({"type": "message_start", "message": message}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"})
        );
        let out = String::from_utf8(stream.feed(Bytes::from(all)).unwrap().to_vec()).unwrap();
        assert_eq!(out.contains("\"prompt_tokens\":3"), wants_usage, "{out}");
        assert_eq!(stream.usage().map(|usage| (usage.input, usage.output)), Some((3, 2)));
    }
}

#[test]
fn case_89_without_a_report_our_own_count_is_given_as_one() {
    let played = play(C, A, &[text("three small words"), stop(), done()]);
    let (usage, estimated) = played.stream.best_usage(40);
    assert!(estimated && usage.input == 40 && usage.output >= 3);
}

#[test]
fn case_90_and_91_and_92_finishes() {
    let with_reason = chunk(json!({"content": "a"}), json!("length"));
    let played = play(C, A, &[with_reason, chunk(json!({}), Value::Null), done(), text("after")]);
    assert_eq!(played.data[played.data.len() - 2]["delta"]["stop_reason"], "max_tokens");
    assert!(!played.text.contains("after"));
    let played = play(C, A, &[text("a"), done()]);
    assert_eq!(played.data[played.data.len() - 2]["delta"]["stop_reason"], "end_turn");
    let call = chunk(
        json!({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"}}]}),
        Value::Null,
    );
    let played = play(C, A, &[call, done()]);
    assert_eq!(played.data[played.data.len() - 2]["delta"]["stop_reason"], "tool_use");
    assert_eq!(play(C, A, &[chunk(json!({"role": "assistant"}), Value::Null), done()]).end, "truncated");
}

/// 93, 95 to 98: a cut and a fault are reported in each dialect's own form.
#[test]
fn case_93_and_95_to_98_errors_in_each_form() {
    for to in [C, A, R, G] {
        let from = if to == C { A } else { C };
        let events = if from == C {
            vec![text("a")]
        } else {
            vec![
                json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}),
            ]
        };
        let mut played = play(from, to, &events);
        assert_eq!(played.end, "truncated", "{to:?}");
        let event = played.stream.error_event(tollgate_wire::error::Code::UpstreamError, "The provider failed.");
        let event = String::from_utf8(event.to_vec()).unwrap();
        let data = |line: &str| serde_json::from_str::<Value>(line.strip_prefix("data: ").unwrap()).unwrap();
        let lines: Vec<&str> = event.lines().filter(|line| !line.is_empty()).collect();
        match to {
            Dialect::Chat => assert_eq!(data(lines[0])["error"]["code"], "upstream_error"),
            Dialect::Anthropic => {
                assert_eq!(lines[0], "event: error");
                assert_eq!(data(lines[1])["error"]["type"], "api_error");
            }
            Dialect::Responses => {
                let failed = lines.iter().rposition(|line| *line == "event: response.failed").unwrap();
                let failed = data(lines[failed + 1]);
                assert_eq!(failed["response"]["error"]["type"], "upstream_error");
                let last = played.data.last().unwrap()["sequence_number"].as_u64().unwrap();
                assert!(failed["sequence_number"].as_u64().unwrap() > last);
            }
            Dialect::Gemini => {
                assert_eq!(lines.len(), 1);
                assert_eq!(data(lines[0])["error"]["code"], 502, "numeric");
            }
        }
    }
}

#[test]
fn case_98_an_error_outside_any_event_is_read() {
    let all = "data: {\"candidates\":[{\"index\":0,\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n{\n \"error\": {\"code\": 503, \"message\": \"down\"}\n}\n";
    let played = play_raw(G, C, &[all.as_bytes()]);
    assert!(played.end.contains("Some(503)"), "{}", played.end);
}

#[test]
fn case_99_usage_of_a_failed_response_is_preserved() {
    let usage = json!({"input_tokens": 5, "output_tokens": 3, "total_tokens": 8});
    for (kind, status) in [("response.failed", "failed"), ("response.incomplete", "incomplete")] {
        let played = play(
            R,
            C,
            &[
                json!({"type": kind, "response": {"id": "r", "model": "up", "status": status, "output": [], "usage": usage}}),
            ],
        );
        assert_eq!(played.stream.usage().unwrap().output, 3, "{kind}");
    }
}

#[test]
fn case_100_nothing_matters_after_the_end() {
    for to in [A, R, G] {
        let mut played = play(C, to, &[text("a"), stop(), done()]);
        assert_eq!(played.end, "complete");
        assert!(played.stream.saw_done());
        assert_eq!(
            played.stream.feed(Bytes::from_static(b"data: {\"error\":{\"message\":\"late\"}}\n\n")),
            Ok(Bytes::new())
        );
        assert!(matches!(played.stream.finish(), StreamEnd::Complete { tail } if tail.is_empty()), "{to:?}");
    }
}

/// Within the dialect too: a number that is missing or does not rise would make a client drop the
/// event as one it has seen.
#[test]
fn case_103_numbers_of_a_responses_provider_are_put_right() {
    let delta = |number: Value| {
        let mut event = json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "x"});
        if !number.is_null() {
            event["sequence_number"] = number;
        }
        event
    };
    let completed = json!({"type": "response.completed", "sequence_number": 2, "response": {"id": "r", "status": "completed", "output": []}});
    let events = [
        delta(json!(0)),
        delta(json!(0)),
        delta(Value::Null),
        delta(json!(7)),
        delta(json!(7)),
        delta(json!(8)),
        completed,
    ];
    let played = play(R, R, &events);
    let numbers: Vec<u64> = played.data.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 7, 8, 9, 10]);
    assert_eq!(played.stream.response_object().map(|object| object.contains("completed")), Some(true));
}

#[test]
fn case_103_and_104_and_105_numbers_starts_and_indexes_are_ours() {
    let created = json!({"type": "response.created", "response": {"id": "r", "model": "up"}});
    let progress = json!({"type": "response.in_progress", "response": {"id": "r", "model": "up"}});
    let delta = |at: u64, kind: &str| json!({"type": kind, "output_index": at, "item_id": format!("i{at}"), "delta": "x", "sequence_number": 0});
    let played = play(
        R,
        A,
        &[
            created,
            progress,
            delta(0, "response.reasoning_text.delta"),
            delta(0, "response.output_text.delta"),
            json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}),
        ],
    );
    assert_eq!(kinds(&played.data).iter().filter(|kind| **kind == "message_start").count(), 1);
    let indexes: Vec<u64> = played
        .data
        .iter()
        .filter(|e| e["type"] == "content_block_start")
        .map(|e| e["index"].as_u64().unwrap())
        .collect();
    assert_eq!(indexes, [0, 1]);
}

#[test]
fn case_106_to_108_nothing_opens_no_block_and_anthropic_has_no_done() {
    let call = |args: &str| {
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": args}}]}),
            Value::Null,
        )
    };
    let played = play(C, A, &[call("{\"a\":"), text(""), call("1}"), stop(), done()]);
    assert_eq!(kinds(&played.data).iter().filter(|kind| **kind == "content_block_start").count(), 1);
    assert!(!played.text.contains("[DONE]"));
    let empty = play(C, A, &[chunk(json!({"role": "assistant"}), json!("stop")), done()]);
    assert_eq!(
        empty.data.iter().find(|e| e["type"] == "content_block_start").unwrap()["content_block"]["type"],
        "text"
    );
}

#[test]
fn case_120_and_121_stop_sequences_and_split_texts() {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "citations": []}],
        "stop_reason": "stop_sequence", "stop_sequence": "END", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let chat = reply(A, C, message);
    assert_eq!(
        (&chat["choices"][0]["message"]["content"], &chat["choices"][0]["finish_reason"]),
        (&json!("ab"), &json!("stop"))
    );
    // A chat server that names the sequence it met.
    let mut last = stop();
    last["choices"][0]["stop_reason"] = json!("END");
    let played = play(C, A, &[text("a"), last.clone(), done()]);
    let delta = &played.data[played.data.len() - 2]["delta"];
    assert_eq!((&delta["stop_reason"], &delta["stop_sequence"]), (&json!("stop_sequence"), &json!("END")));
    last["choices"][0]["stop_reason"] = Value::Null;
    let played = play(C, A, &[text("a"), last, done()]);
    assert_eq!(played.data[played.data.len() - 2]["delta"]["stop_reason"], "end_turn");
}

#[test]
fn case_123_the_tier_that_served_is_recorded_for_the_log() {
    let usage = json!({"input_tokens": 3, "output_tokens": 1, "service_tier": "priority"});
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    for to in [C, A, R, G] {
        let played = play(A, to, &events);
        assert!(played.stream.raw_usage().unwrap().contains("priority"), "{to:?}");
    }
    assert_eq!(play(A, R, &events).data.last().unwrap()["response"]["service_tier"], "priority");
}

#[test]
fn case_124_and_125_one_id_and_the_public_name() {
    let mut second = text("b");
    second["id"] = json!("other");
    second["model"] = json!("other");
    for to in [R, G, A] {
        let played = play(C, to, &[text("a"), second.clone(), stop(), done()]);
        assert!(!played.text.contains("other") && played.text.contains("public"), "{to:?}");
    }
    // Within one dialect the name changes and nothing else does.
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "up", "odd": 1.50, "usage": {"input_tokens": 1, "output_tokens": 1}}});
    assert_eq!(play(A, A, &[start]).data[0]["message"]["model"], "public");
}

/// What goes out when nothing of a stream went out before is well-formed by itself.
#[test]
fn an_error_in_the_place_of_the_first_piece_stands_alone() {
    let first = format!("data: {}\n\n", text("a"));
    let gemini = "data: {\"candidates\":[{\"index\":0,\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n";
    let created = "data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\"}}\n\n";
    for (from, to, piece) in [(C, G, first.as_str()), (G, G, gemini), (C, R, first.as_str()), (R, R, created)] {
        let voice = Voice { array: to == G, ..voice() };
        let setup = Setup { from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
        let mut stream = ReplyStream::new(setup);
        assert!(!stream.feed(Bytes::copy_from_slice(piece.as_bytes())).unwrap().is_empty());
        stream.forget_unsent();
        let out = stream.error_event(tollgate_wire::error::Code::InsufficientBalance, "no");
        let out = String::from_utf8(out.to_vec()).unwrap();
        if to == G {
            let list: Vec<Value> = serde_json::from_str(&out).unwrap();
            assert_eq!((list.len(), &list[0]["error"]["code"]), (1, &json!(402)), "{from:?}");
        } else {
            let kinds: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
            assert_eq!(kinds, ["response.created", "response.in_progress", "response.failed"], "{from:?}");
            assert!(out.contains("\"sequence_number\":0,"), "{from:?}");
        }
    }
}

/// The final object of Responses repeats the stream, so a stream without end has one there.
#[test]
fn a_stream_that_must_be_buffered_has_a_limit() {
    let long = format!("data: {}\n\n", text(&"x".repeat(4 << 20)));
    let pieces: Vec<&[u8]> = (0..20).map(|_| long.as_bytes()).collect();
    assert_eq!(play_raw(C, R, &pieces).end, "TooLong");
    assert_eq!(play_raw(C, R, &pieces[..2]).end, "truncated");
}

/// Citations, pictures and searches that come in the middle of a call wait until it is whole.
#[test]
fn nothing_parts_a_call() {
    let call = |args: &str| json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": args}}]});
    let note = json!({"annotations": [{"type": "url_citation", "url_citation": {"url": "https://x.example", "title": "X", "start_index": 0, "end_index": 1}}]});
    let picture = json!({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]});
    let events = [
        chunk(json!({"content": "a"}), Value::Null),
        chunk(call("{\"k\":"), Value::Null),
        chunk(note, Value::Null),
        chunk(json!({"refusal": "No"}), Value::Null),
        chunk(picture, Value::Null),
        chunk(call("1}"), Value::Null),
        chunk(json!({}), json!("tool_calls")),
        done(),
    ];
    let claude = play(C, A, &events);
    let mut blocks: Vec<String> = Vec::new();
    for event in &claude.data {
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(event["content_block"]["type"].as_str().unwrap().to_owned()),
            "content_block_delta" => {
                let delta = &event["delta"];
                let said = ["text", "partial_json"].iter().find_map(|name| delta[name].as_str());
                blocks.last_mut().unwrap().push_str(&format!(" {}", said.unwrap_or("note")));
            }
            _ => {}
        }
    }
    assert_eq!(blocks, ["text a", "tool_use {\"k\": 1}", "text note No[image/png image]"], "{}", claude.text);
    let response = play(C, R, &events);
    let items: Vec<String> = response
        .data
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| {
            let item = &event["item"];
            let parts = item["content"].as_array().cloned().unwrap_or_default();
            let kinds: Vec<String> = parts
                .iter()
                .map(|part| {
                    format!("{} {}", part["type"].as_str().unwrap(), part["annotations"].as_array().map_or(0, Vec::len))
                })
                .collect();
            format!(
                "{} {}{}",
                item["type"].as_str().unwrap(),
                item["arguments"].as_str().unwrap_or(""),
                kinds.join(", ")
            )
        })
        .collect();
    let expected = [
        "message output_text 0",
        "function_call {\"k\":1}",
        "message output_text 1, refusal 0",
        "image_generation_call ",
    ];
    assert_eq!(items, expected, "{}", response.text);
    assert_eq!(response.data.last().unwrap()["response"]["output"].as_array().unwrap().len(), 4);
}

/// Gemini shows pictures it thought with: they are no answer.
#[test]
fn a_picture_that_was_thought_is_not_given_as_an_answer() {
    let part = |thought: bool| json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thought": thought});
    let chunk = |part: Value, reason: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": reason}], "modelVersion": "up"});
    for to in [C, A, R] {
        let played = play(G, to, &[chunk(part(true), Value::Null), chunk(json!({"text": "a"}), json!("STOP"))]);
        assert!(!played.text.contains("AAAA") && !played.text.contains("[image/png"), "{to:?}: {}", played.text);
        assert_eq!(played.stream.dropped().unwrap().to_string(), "answer.inlineData", "{to:?}");
        let shown = play(G, to, &[chunk(part(false), Value::Null), chunk(json!({"text": "a"}), json!("STOP"))]);
        assert!(shown.text.contains("AAAA") || shown.text.contains("[image/png"), "{to:?}: {}", shown.text);
    }
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [part(true), {"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}]});
    for to in [C, A, R] {
        assert!(!sent(G, to, body.clone()).to_string().contains("AAAA"), "{to:?}");
        assert_eq!(dropped(G, to, body.clone()), "inlineData", "{to:?}");
    }
}
