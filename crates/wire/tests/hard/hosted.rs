//! 2.3: tools that run at the provider. Web search is translated; any other is refused by the name of its field, what it left in the
//! history is dropped and told, and so is what it leaves in an answer.

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
        (A, json!({"type": "web_fetch_20250910", "name": "web_fetch"}), "tools[0]"),
        (
            A,
            json!({"type": "computer_20250124", "name": "computer", "display_width_px": 1, "display_height_px": 1}),
            "tools[0]",
        ),
        (A, json!({"type": "bash_20250124", "name": "bash"}), "tools[0]"),
        (A, json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}), "tools[0]"),
        (A, json!({"type": "tool_search_tool_regex_20251119", "name": "tool_search"}), "tools[0]"),
        (R, json!({"type": "code_interpreter", "container": {"type": "auto"}}), "tools[0]"),
        (R, json!({"type": "file_search", "vector_store_ids": ["v"]}), "tools[0]"),
        (R, json!({"type": "computer_use_preview", "environment": "browser"}), "tools[0]"),
        (R, json!({"type": "mcp", "server_label": "s", "server_url": "https://x.example"}), "tools[0]"),
        (R, json!({"type": "image_generation"}), "tools[0]"),
        (R, json!({"type": "local_shell"}), "tools[0]"),
        (
            R,
            json!({"type": "namespace", "name": "n", "tools": [{"type": "mcp", "server_label": "s"}]}),
            "tools[0].tools[0]",
        ),
        (G, json!({"codeExecution": {}}), "tools[1].codeExecution"),
        (G, json!({"urlContext": {}}), "tools[1].urlContext"),
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

#[test]
fn what_they_did_before_is_left_out_and_told() {
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
    for (from, body, told) in [
        (A, claude, "server_tool_use,code_execution_tool_result"),
        (R, responses, "code_interpreter_call,file_search_call"),
        (G, gemini, "executableCode,codeExecutionResult"),
    ] {
        for to in [C, A, R, G].into_iter().filter(|to| *to != from) {
            let (sent, all) = try_sent(from, &Target::new(to, "up"), &body).unwrap();
            assert_eq!(all.dropped.to_string(), told, "{from:?} to {to:?}");
            assert!(sent.to_string().contains("Four."), "{from:?} to {to:?}: {sent}");
        }
    }
}

#[test]
fn what_they_leave_in_an_answer_is_told() {
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
    for (from, body, told) in [
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
            let told = if to == R { told.replace("answer.web_search,", "") } else { told.to_owned() };
            assert_eq!(lost(from, to, &body), if to == from { "" } else { &told }, "{from:?} to {to:?}");
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
    for (to, told) in [
        (C, Some("answer.web_search,answer.web_search_tool_result,answer.container")),
        (R, Some("answer.web_search_tool_result,answer.citations,answer.container")),
        (G, Some("answer.web_search_tool_result,answer.citations,answer.container")),
        (A, None),
    ] {
        let played = play(A, to, &events);
        assert_eq!(played.end, "complete", "{to:?}");
        assert_eq!(played.stream.dropped().map(ToString::to_string).as_deref(), told, "{to:?}");
    }
}

/// A search is asked for in every dialect that has one, so it is answered in those that have a word for it.
#[test]
fn searches_are_told_where_there_is_a_word_for_them() {
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

/// Gemini tells its sources with the last object of a stream: of the text before, also when a call or nothing stands between.
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
        let told: usize = output
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|item| item["content"][0]["annotations"].as_array())
            .map(Vec::len)
            .sum();
        let searches = output.as_array().unwrap().iter().filter(|item| item["type"] == "web_search_call").count();
        assert_eq!((notes, told, searches), (1, 1, 1), "{output}");
    }
}

/// Sources without a place, and sources that are no pages, are not lost: a chat client has all of them.
#[test]
fn sources_of_any_kind_are_citations() {
    let grounded = |supports: Value| {
        json!({"candidates": [{"index": 0, "content": {"parts": [{"text": "Größe"}]}, "finishReason": "STOP", "groundingMetadata": {
            "groundingChunks": [{"web": {"uri": "https://x.example", "title": "X"}}, {"retrievedContext": {"uri": "store/1", "title": "Y"}}], "groundingSupports": supports}}], "modelVersion": "up"})
    };
    let support = json!([{"segment": {"startIndex": 0, "endIndex": 7}, "groundingChunkIndices": [0, 1]}]);
    for (supports, end, told) in [(json!([]), 0, "answer.citations"), (support, 5, "answer.endIndex,answer.citations")]
    {
        let body = grounded(supports);
        let message = &reply(G, C, body.clone())["choices"][0]["message"];
        assert_eq!(
            message["annotations"][0]["url_citation"],
            json!({"start_index": 0, "end_index": end, "title": "X", "url": "https://x.example"})
        );
        assert_eq!(message["citations"], json!([{"retrievedContext": {"uri": "store/1", "title": "Y"}}]));
        assert_eq!(lost(G, A, &body), told);
        assert_eq!(reply(G, A, body)["content"][0]["citations"][0]["url"], "https://x.example");
    }
}
