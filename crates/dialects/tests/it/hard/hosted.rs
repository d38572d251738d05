//! 2.3: tools that run at the provider. Web search is translated; what agents offer with every
//! request is left out and reported, any other is refused by the name of its field; what they left
//! in the history is dropped and reported, and so is what they leave in an answer.

use super::*;

fn with_tool(from: Dialect, tool: Value) -> Value {
    match from {
        Dialect::Chat => json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [tool]}),
        Dialect::Anthropic => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], "tools": [tool]})
        }
        Dialect::Responses => json!({"model": "m", "input": "q", "tools": [tool]}),
        Dialect::Gemini => {
            json!({"contents": [{"parts": [{"text": "q"}]}], "tools": [{"functionDeclarations": [{"name": "f"}]}, tool]})
        }
    }
}

#[test]
fn tools_of_another_provider_are_refused_by_their_place() {
    for (from, tool, place) in [
        (A, json!({"type": "code_execution_20250825", "name": "code_execution"}), "tools[0]"),
        (
            A,
            json!({"type": "computer_20250124", "name": "computer", "display_width_px": 1, "display_height_px": 1}),
            "tools[0]",
        ),
        (A, json!({"type": "bash_20250124", "name": "bash"}), "tools[0]"),
        (A, json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}), "tools[0]"),
        (R, json!({"type": "code_interpreter", "container": {"type": "auto"}}), "tools[0]"),
        (R, json!({"type": "file_search", "vector_store_ids": ["v"]}), "tools[0]"),
        (R, json!({"type": "computer_use_preview", "environment": "browser"}), "tools[0]"),
        (R, json!({"type": "mcp", "server_label": "s", "server_url": "https://x.example"}), "tools[0]"),
        (R, json!({"type": "local_shell"}), "tools[0]"),
        (
            R,
            json!({"type": "namespace", "name": "n", "tools": [{"type": "mcp", "server_label": "s"}]}),
            "tools[0].tools[0]",
        ),
        (G, json!({"codeExecution": {}}), "tools[1].codeExecution"),
        (G, json!({"fileSearch": {"fileSearchStoreNames": ["s"]}}), "tools[1].fileSearch"),
        (G, json!({"computer_use": {"environment": "ENVIRONMENT_BROWSER"}}), "tools[1].computer_use"),
        (G, json!({"googleMaps": {}}), "tools[1].googleMaps"),
        (C, json!({"type": "code_interpreter"}), "tools[0]"),
    ] {
        for to in [C, A, R, G].into_iter().filter(|to| *to != from) {
            assert_eq!(refused(from, to, with_tool(from, tool.clone())), place, "{from:?} to {to:?}: {tool}");
        }
        // In its own dialect every byte passes.
        let body = with_tool(from, tool);
        assert_eq!(request(from, &body).upstream_body(&Target::new(from, "m")).unwrap().body, body.to_string());
    }
    assert_eq!(
        refused(
            A,
            C,
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], "mcp_servers": [{"type": "url", "url": "https://x.example", "name": "s"}]})
        ),
        "mcp_servers"
    );
    assert_eq!(
        refused(
            A,
            R,
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], "container": "c"})
        ),
        "container"
    );
}

/// Agents offer these with every request. Without them the model answers from what it knows.
#[test]
fn tools_that_agents_offer_unasked_are_left_out_and_reported() {
    for (from, tool, left_out) in [
        (A, json!({"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3}), "tools.web_fetch"),
        (A, json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search"}), "tools.tool_search"),
        (R, json!({"type": "image_generation", "output_format": "png"}), "tools.image_generation"),
        (R, json!({"type": "tool_search"}), "tools.tool_search"),
        (G, json!({"urlContext": {}}), "tools.urlContext"),
    ] {
        for to in [C, A, R, G].into_iter().filter(|to| *to != from) {
            let body = with_tool(from, tool.clone());
            assert_eq!(dropped(from, to, body.clone()), left_out, "{from:?} to {to:?}");
            let strict = Target { strict: true, ..Target::new(to, "up") };
            assert_eq!(try_sent(from, &strict, &body).unwrap_err().param.unwrap(), left_out, "{from:?} to {to:?}");
        }
    }
    // A chat provider may have no search at all; the tools of the client stay.
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    let search = json!({"type": "web_search", "external_web_access": true});
    let codex = json!({"model": "m", "input": "q", "tool_choice": "auto", "parallel_tool_calls": true, "tools": [function, search]});
    let (body, all) = try_sent(R, &Target::new(C, "up"), &codex).unwrap();
    assert_eq!((body["tools"].as_array().unwrap().len(), all.dropped.to_string().as_str()), (1, "tools.web_search"));
    let alone =
        json!({"model": "m", "input": "q", "tool_choice": "auto", "parallel_tool_calls": true, "tools": [search]});
    let body = sent(R, C, alone);
    let none = ["tools", "tool_choice", "parallel_tool_calls"].iter().all(|name| body.get(name).is_none());
    assert!(none, "{body}");
    for (from, tool, left_out) in [
        (A, json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 8}), "tools.web_search"),
        (G, json!({"googleSearch": {}}), "tools.googleSearch"),
    ] {
        assert_eq!(dropped(from, C, with_tool(from, tool)), left_out, "{from:?}");
    }
}

/// What a request insists on is not left out.
#[test]
fn a_search_that_must_be_made_is_made_or_refused() {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let mut claude = with_tool(A, search);
    claude["tool_choice"] = json!({"type": "tool", "name": "web_search"});
    let mut responses = with_tool(R, json!({"type": "web_search"}));
    responses["tool_choice"] = json!({"type": "web_search"});
    for body in [(A, &claude), (R, &responses)] {
        assert_eq!(refused(body.0, C, body.1.clone()), "tool_choice");
    }
    assert_eq!(sent(A, R, claude.clone())["tool_choice"], json!({"type": "web_search"}));
    assert_eq!(sent(R, A, responses.clone())["tool_choice"], json!({"type": "tool", "name": "web_search"}));
    // Gemini, and chat models that can search, search when they see fit.
    for (from, body) in [(A, &claude), (R, &responses)] {
        let has = Target { web_search: true, ..Target::new(C, "up") };
        for target in [has, Target::new(G, "up")] {
            let (body, all) = try_sent(from, &target, body).unwrap();
            assert_eq!(all.dropped.to_string(), "tool_choice", "{from:?}");
            assert!(body.get("tool_choice").is_none() && body.get("toolConfig").is_none(), "{body}");
        }
    }
    claude["tool_choice"] = json!({"type": "any"});
    assert_eq!(refused(A, C, claude), "tool_choice");
}

/// Chat has no tool for it but a member of the request, for models that take it.
#[test]
fn a_search_of_chat_is_one_of_the_others() {
    let has = Target { web_search: true, ..Target::new(C, "up") };
    let (body, all) = try_sent(R, &has, &with_tool(R, json!({"type": "web_search"}))).unwrap();
    assert_eq!((&body["web_search_options"], body.get("tools"), all.dropped.is_empty()), (&json!({}), None, true));
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "web_search_options": {"search_context_size": "low"}});
    for (to, tools) in [
        (A, json!([{"type": "web_search_20250305", "name": "web_search"}])),
        (R, json!([{"type": "web_search"}])),
        (G, json!([{"googleSearch": {}}])),
    ] {
        let (body, all) = try_sent(C, &Target::new(to, "up"), &chat).unwrap();
        assert_eq!(body["tools"], tools, "{to:?}");
        assert_eq!(all.dropped.to_string(), "web_search_options.search_context_size", "{to:?}");
    }
}

#[test]
fn what_they_did_before_is_left_out_and_reported() {
    let claude = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}},
        {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"type": "code_execution_result", "stdout": "4", "stderr": "", "return_code": 0, "content": []}},
        {"type": "text", "text": "Four."}]}, {"role": "user", "content": "more"}]});
    let responses = json!({"model": "m", "input": [{"role": "user", "content": "q"},
        {"type": "code_interpreter_call", "id": "ci", "status": "completed", "container_id": "c", "code": "2+2", "outputs": []},
        {"type": "file_search_call", "id": "fs", "status": "completed", "queries": []},
        {"role": "assistant", "content": "Four."}, {"role": "user", "content": "more"}]});
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": [
        {"executableCode": {"language": "PYTHON", "code": "2+2"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}}, {"text": "Four."}]},
        {"role": "user", "parts": [{"text": "more"}]}]});
    for (from, body, left_out) in [
        (A, claude, "server_tool_use,code_execution_tool_result"),
        (R, responses, "code_interpreter_call,file_search_call"),
        (G, gemini, "executableCode,codeExecutionResult"),
    ] {
        for to in [C, A, R, G].into_iter().filter(|to| *to != from) {
            let (sent, all) = try_sent(from, &Target::new(to, "up"), &body).unwrap();
            assert_eq!(all.dropped.to_string(), left_out, "{from:?} to {to:?}");
            assert!(sent.to_string().contains("Four."), "{from:?} to {to:?}: {sent}");
        }
    }
}

#[test]
fn what_they_leave_in_an_answer_is_reported() {
    let claude = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "container": {"id": "c", "expires_at": "x"}, "content": [
        {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}},
        {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {}}, {"type": "text", "text": "Four."}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}});
    let responses = json!({"id": "r", "object": "response", "status": "completed", "model": "up", "output": [
        {"type": "web_search_call", "id": "w", "status": "completed"}, {"type": "mcp_call", "id": "x", "name": "f", "arguments": "{}", "server_label": "s"},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Four.", "annotations": []}, {"type": "output_audio", "data": ""}]}]});
    let gemini = json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"executableCode": {"code": "2+2"}}, {"codeExecutionResult": {"output": "4"}}, {"text": "Four."}]},
        "finishReason": "STOP", "safetyRatings": [{"category": "x"}], "urlContextMetadata": {"urlMetadata": []},
        "groundingMetadata": {"webSearchQueries": ["q"], "searchEntryPoint": {"renderedContent": "<p>"}, "groundingChunks": [], "retrievalMetadata": {}}}], "modelVersion": "up"});
    for (from, body, left_out) in [
        (A, claude, "answer.server_tool_use,answer.code_execution_tool_result,answer.container"),
        (R, responses, "answer.web_search_call,answer.mcp_call,answer.output_audio"),
        (
            G,
            gemini,
            "answer.executableCode,answer.codeExecutionResult,answer.web_search,answer.groundingMetadata.searchEntryPoint,answer.safetyRatings,answer.urlContextMetadata",
        ),
    ] {
        for to in [C, A, R, G] {
            // Responses has an item for a search.
            let left_out = if to == R { left_out.replace("answer.web_search,", "") } else { left_out.to_owned() };
            assert_eq!(lost(from, to, &body), if to == from { "" } else { &left_out }, "{from:?} to {to:?}");
            assert!(reply(from, to, body.clone()).to_string().contains("Four."), "{from:?} to {to:?}");
        }
    }
}

#[test]
fn in_a_stream_too() {
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "Four."}}),
        json!({"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"type": "char_location", "document_index": 0}}}),
        json!({"type": "content_block_stop", "index": 2}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": {"id": "c"}}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    for (to, left_out) in [
        (C, Some("answer.web_search,answer.web_search_tool_result,answer.container")),
        (R, Some("answer.web_search_tool_result,answer.citations,answer.container")),
        (G, Some("answer.web_search_tool_result,answer.citations,answer.container")),
        (A, None),
    ] {
        let played = play(A, to, &events);
        assert_eq!(played.end, "complete", "{to:?}");
        assert_eq!(played.stream.dropped().map(ToString::to_string).as_deref(), left_out, "{to:?}");
    }
}

/// A search is asked for in every dialect that has one, so it is answered in those that have a word
/// for it.
#[test]
fn searches_are_shown_where_there_is_a_word_for_them() {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let claude = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn", "usage": usage, "content": [
        {"type": "text", "text": "I look. "}, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "tolls"}}, {"type": "text", "text": "A toll."}]});
    let responses = json!({"id": "r", "object": "response", "status": "completed", "model": "up", "output": [
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "tolls"}},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "A toll.", "annotations": []}]}]});
    let gemini = json!({"candidates": [{"index": 0, "content": {"parts": [{"text": "A toll."}]}, "finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["tolls"]}}], "modelVersion": "up"});
    for (from, body) in [(A, claude.clone()), (G, gemini)] {
        let output = reply(from, R, body.clone())["output"].clone();
        let search = output.as_array().unwrap().iter().find(|item| item["type"] == "web_search_call").unwrap().clone();
        assert_eq!(
            (&search["status"], &search["action"]),
            (&json!("completed"), &json!({"type": "search", "query": "tolls"})),
            "{from:?}"
        );
        assert_eq!(lost(from, R, &body), "");
    }
    for (from, body) in [(A, claude), (R, responses)] {
        let candidate = reply(from, G, body.clone())["candidates"][0].clone();
        assert_eq!(candidate["groundingMetadata"]["webSearchQueries"], json!(["tolls"]), "{from:?}");
        assert_eq!((lost(from, G, &body), lost(from, C, &body)), (String::new(), "answer.web_search".to_owned()));
    }
    let block =
        |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": usage}}),
        block(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"query\":"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "\"tolls\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        block(1, json!({"type": "text", "text": "A toll."})),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let played = play(A, R, &events);
    let steps: Vec<&str> =
        kinds(&played.data).into_iter().filter(|kind| kind.starts_with("response.web_search_call")).collect();
    assert_eq!(
        steps,
        [
            "response.web_search_call.in_progress",
            "response.web_search_call.searching",
            "response.web_search_call.completed"
        ]
    );
    let output = &played.data.last().unwrap()["response"]["output"];
    assert_eq!((&output[0]["action"]["query"], &output[1]["content"][0]["text"]), (&json!("tolls"), &json!("A toll.")));
    assert!(play(A, G, &events).text.contains(r#""webSearchQueries":["tolls"]"#));
}

/// Gemini tells its sources with the last object of a stream: of the text before, also when a call
/// or nothing stands between.
#[test]
fn late_sources_are_annotations_all_the_same() {
    let last = json!({"candidates": [{"index": 0, "content": {"parts": []}, "finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["tolls"],
        "groundingChunks": [{"web": {"uri": "https://x.example", "title": "X"}}], "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 6}, "groundingChunkIndices": [0]}]}}], "modelVersion": "up"});
    let text = json!({"text": "A toll."});
    let call = json!({"functionCall": {"id": "c", "name": "f", "args": {}}});
    for parts in [json!([text]), json!([text, call])] {
        let first = json!({"candidates": [{"index": 0, "content": {"parts": parts}}], "modelVersion": "up"});
        let played = play(G, R, &[first, last.clone()]);
        let notes = kinds(&played.data).iter().filter(|kind| **kind == "response.output_text.annotation.added").count();
        let output = played.data.last().unwrap()["response"]["output"].clone();
        let links: usize = output
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["content"][0]["annotations"].as_array())
            .map(Vec::len)
            .sum();
        let searches = output.as_array().unwrap().iter().filter(|item| item["type"] == "web_search_call").count();
        assert_eq!((notes, links, searches), (1, 1, 1), "{output}");
    }
}

/// Sources without a place, and sources that are no pages, are not lost: a chat client has all of
/// them.
#[test]
fn sources_of_any_kind_are_citations() {
    let grounded = |supports: Value| {
        json!({"candidates": [{"index": 0, "content": {"parts": [{"text": "Größe"}]}, "finishReason": "STOP", "groundingMetadata": {
            "groundingChunks": [{"web": {"uri": "https://x.example", "title": "X"}}, {"retrievedContext": {"uri": "store/1", "title": "Y"}}], "groundingSupports": supports}}], "modelVersion": "up"})
    };
    let support = json!([{"segment": {"startIndex": 0, "endIndex": 7}, "groundingChunkIndices": [0, 1]}]);
    for (supports, end, left_out) in
        [(json!([]), 0, "answer.citations"), (support, 5, "answer.endIndex,answer.citations")]
    {
        let body = grounded(supports);
        let message = &reply(G, C, body.clone())["choices"][0]["message"];
        assert_eq!(
            message["annotations"][0]["url_citation"],
            json!({"start_index": 0, "end_index": end, "title": "X", "url": "https://x.example"})
        );
        assert_eq!(message["citations"], json!([{"retrievedContext": {"uri": "store/1", "title": "Y"}}]));
        assert_eq!(lost(G, A, &body), left_out);
        assert_eq!(reply(G, A, body)["content"][0]["citations"][0]["url"], "https://x.example");
    }
}
