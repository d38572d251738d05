//! Citations, in every form a provider has for them, for clients of the other dialects: carried
//! with their place in the answer, or reported. The same whole and streamed. And names of files,
//! wherever a file can stand.

use super::*;

/// What a client of a dialect reads of links: address, begin, end. Gemini counts bytes, which is
/// what it is held to here.
fn links(to: Dialect, whole: &Value) -> Vec<(String, u64, u64)> {
    let text = |node: &Value| node.as_str().unwrap().to_owned();
    let number = |node: &Value| node.as_u64().unwrap();
    let list = |node: &Value| node.as_array().cloned().unwrap_or_default();
    match to {
        C => list(&whole["choices"][0]["message"]["annotations"])
            .iter()
            .map(|note| &note["url_citation"])
            .map(|note| (text(&note["url"]), number(&note["start_index"]), number(&note["end_index"])))
            .collect(),
        R => list(&whole["output"])
            .iter()
            .flat_map(|item| list(&item["content"]))
            .flat_map(|part| list(&part["annotations"]))
            .map(|note| (text(&note["url"]), number(&note["start_index"]), number(&note["end_index"])))
            .collect(),
        A => list(&whole["content"])
            .iter()
            .flat_map(|block| list(&block["citations"]))
            .map(|cite| (text(&cite["url"]), 0, 0))
            .collect(),
        G => {
            let grounding = &whole["candidates"][0]["groundingMetadata"];
            let supports = list(&grounding["groundingSupports"]);
            let place = |at: usize| supports.iter().find(|one| one["groundingChunkIndices"] == json!([at]));
            let chunks = list(&grounding["groundingChunks"]);
            let one = |(at, chunk): (usize, &Value)| {
                let end = |name: &str| place(at).map_or(0, |one| number(&one["segment"][name]));
                (text(&chunk["web"]["uri"]), end("startIndex"), end("endIndex"))
            };
            chunks.iter().enumerate().map(one).collect()
        }
    }
}

/// The same of a stream: what came in pieces is put together as its client does.
fn streamed_links(to: Dialect, data: &[Value]) -> Vec<(String, u64, u64)> {
    let whole = match to {
        C => {
            let notes: Vec<Value> = data
                .iter()
                .filter_map(|chunk| chunk["choices"][0]["delta"]["annotations"].as_array())
                .flatten()
                .cloned()
                .collect();
            json!({"choices": [{"message": {"annotations": notes}}]})
        }
        R => data.last().unwrap()["response"].clone(),
        A => {
            let cites: Vec<&Value> =
                data.iter().map(|event| &event["delta"]["citation"]).filter(|cite| !cite.is_null()).collect();
            json!({"content": [{"citations": cites}]})
        }
        G => data.last().unwrap().clone(),
    };
    links(to, &whole)
}

fn one(place: (u64, u64)) -> Vec<(String, u64, u64)> {
    vec![("https://x.example/".to_owned(), place.0, place.1)]
}

fn anthropic_link() -> Value {
    json!({"type": "web_search_result_location", "url": "https://x.example/", "title": "T", "cited_text": "q", "encrypted_index": "e"})
}

fn anthropic_page() -> Value {
    json!({"type": "page_location", "cited_text": "p", "document_index": 0, "document_title": "D", "start_page_number": 1, "end_page_number": 2})
}

/// The second block is cited.
fn anthropic() -> (Value, Vec<Value>) {
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let whole = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn", "usage": usage,
        "content": [{"type": "text", "text": "Äb. "}, {"type": "text", "text": "Cited.", "citations": [anthropic_link(), anthropic_page()]}]});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let begins = |index: u64| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": "", "citations": []}});
    let ends = |index: u64| json!({"type": "content_block_stop", "index": index});
    let events = vec![
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "up", "content": [], "usage": usage}}),
        begins(0),
        delta(0, json!({"type": "text_delta", "text": "Äb. "})),
        ends(0),
        begins(1),
        delta(1, json!({"type": "citations_delta", "citation": anthropic_link()})),
        delta(1, json!({"type": "text_delta", "text": "Ci"})),
        delta(1, json!({"type": "text_delta", "text": "ted."})),
        delta(1, json!({"type": "citations_delta", "citation": anthropic_page()})),
        ends(1),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop"}),
    ];
    (whole, events)
}

#[test]
fn a_block_that_anthropic_cites_is_a_place_in_the_text() {
    let (whole, events) = anthropic();
    for (to, place, left_out) in [
        (C, (4, 10), "answer.cited_text,answer.encrypted_index"),
        // Within its own part.
        (R, (0, 6), "answer.cited_text,answer.encrypted_index,answer.citations"),
        (G, (5, 11), "answer.cited_text,answer.encrypted_index,answer.citations"),
    ] {
        assert_eq!(
            (links(to, &reply(A, to, whole.clone())), lost(A, to, &whole).as_str()),
            (one(place), left_out),
            "{to:?}"
        );
        let played = play(A, to, &events);
        let dropped = played.stream.dropped().map(ToString::to_string).unwrap_or_default();
        assert_eq!((streamed_links(to, &played.data), dropped.as_str()), (one(place), left_out), "{to:?}, streamed");
    }
    // A place in a document is chat's as it came, with its own place in the answer.
    let mut page = anthropic_page();
    (page["start_index"], page["end_index"]) = (json!(4), json!(10));
    assert_eq!(reply(A, C, whole)["choices"][0]["message"]["citations"], json!([page]));
    let played = play(A, C, &events);
    let cited: Vec<&Value> =
        played.data.iter().filter_map(|chunk| chunk["choices"][0]["delta"].get("citations")).collect();
    assert_eq!(cited, [&json!([page])]);
}

fn chat_note() -> Value {
    json!({"type": "url_citation", "url_citation": {"url": "https://x.example/", "title": "T", "start_index": 1, "end_index": 2}})
}

fn chat() -> (Value, Vec<Value>) {
    let whole = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Äbc", "annotations": [chat_note()]}}]});
    let mut note = chat_note();
    note["index"] = json!(0);
    let events = vec![
        chunk(json!({"role": "assistant", "content": "Äbc"}), Value::Null),
        chunk(json!({"annotations": [note]}), Value::Null),
        chunk(json!({}), json!("stop")),
        done(),
    ];
    (whole, events)
}

/// Two parts, the second of them cited.
fn responses() -> (Value, Vec<Value>) {
    let note =
        json!({"type": "url_citation", "url": "https://x.example/", "title": "T", "start_index": 1, "end_index": 2});
    let part = |text: &str, notes: Value| json!({"type": "output_text", "text": text, "annotations": notes});
    let item = json!({"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [part("Ä.", json!([])), part("bcd", json!([note]))]});
    let whole = json!({"id": "r", "object": "response", "model": "up", "status": "completed", "output": [item], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let at = |word: &str, content: u64, more: Value| {
        let mut event = json!({"type": word, "item_id": "i", "output_index": 0, "content_index": content});
        more.as_object().unwrap().iter().for_each(|(name, value)| event[name] = value.clone());
        event
    };
    let events = vec![
        json!({"type": "response.created", "response": {"id": "r", "model": "up"}}),
        at("response.output_text.delta", 0, json!({"delta": "Ä."})),
        at("response.content_part.done", 0, json!({"part": part("Ä.", json!([]))})),
        at("response.output_text.delta", 1, json!({"delta": "bcd"})),
        at("response.output_text.annotation.added", 1, json!({"annotation": note})),
        at("response.content_part.done", 1, json!({"part": part("bcd", json!([note]))})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": whole}),
    ];
    (whole, events)
}

fn gemini() -> (Value, Vec<Value>) {
    let web = |uri: &str| json!({"web": {"uri": uri, "title": "T"}});
    let grounding = json!({"groundingChunks": [web("https://x.example/")],
        "groundingSupports": [{"segment": {"startIndex": 2, "endIndex": 3, "text": "b"}, "groundingChunkIndices": [0]}]});
    let whole = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Äbc"}]}, "finishReason": "STOP", "groundingMetadata": grounding}],
        "modelVersion": "up", "responseId": "r"});
    (whole.clone(), vec![whole])
}

#[test]
fn a_link_keeps_its_place_or_that_is_reported() {
    const UNPLACED: &str = "answer.start_index,answer.end_index";
    for (from, (whole, events), places) in [
        (C, chat(), vec![(A, (0, 0), UNPLACED), (R, (1, 2), ""), (G, (2, 3), "")]),
        (R, responses(), vec![(A, (0, 0), UNPLACED), (C, (3, 4), ""), (G, (4, 5), "")]),
        (G, gemini(), vec![(A, (0, 0), "answer.startIndex,answer.endIndex"), (C, (1, 2), ""), (R, (1, 2), "")]),
    ] {
        for (to, place, left_out) in places {
            let read = links(to, &reply(from, to, whole.clone()));
            assert_eq!((read, lost(from, to, &whole).as_str()), (one(place), left_out), "{from:?} to {to:?}");
            let played = play(from, to, &events);
            let dropped = played.stream.dropped().map(ToString::to_string).unwrap_or_default();
            let read = streamed_links(to, &played.data);
            assert_eq!((read, dropped.as_str()), (one(place), left_out), "{from:?} to {to:?}, streamed");
        }
    }
}

#[test]
fn a_source_that_no_statement_names_is_a_source_all_the_same() {
    let (mut whole, _) = gemini();
    let grounding = &mut whole["candidates"][0]["groundingMetadata"];
    grounding["groundingChunks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"web": {"uri": "https://y.example/", "title": "Y"}}));
    grounding["groundingSupports"].as_array_mut().unwrap().push(json!({"groundingChunkIndices": [1, 7]}));
    let read = links(C, &reply(G, C, whole.clone()));
    assert_eq!(read[1..], [("https://y.example/".to_owned(), 0, 0)]);
    assert_eq!(lost(G, C, &whole), "answer.groundingMetadata.groundingChunkIndices");
}

#[test]
fn the_name_of_a_file_is_carried_or_reported() {
    const DATA: &str = "data:application/pdf;base64,QUJD";
    let respond = |part: Value| json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}, part]}]});
    let result = |part: Value| {
        json!({"model": "m", "input": [{"role": "user", "content": "q"}, {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": [part]}]})
    };
    let claude = |part: Value| json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [part, {"type": "text", "text": "q"}]}]});
    let claude_result = |part: Value| {
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [part]}]}]})
    };
    let google = |part: Value| json!({"contents": [{"role": "user", "parts": [part, {"text": "q"}]}]});
    let link = json!({"type": "input_file", "file_url": "https://x.example/a.pdf", "filename": "mine.pdf"});
    let data = json!({"type": "input_file", "file_data": DATA, "filename": "mine.pdf"});
    let source = json!({"type": "url", "url": "https://x.example/a.pdf"});
    let document = json!({"type": "document", "source": source, "title": "mine.pdf"});
    let inline = |mime: &str| json!({"inlineData": {"mimeType": mime, "data": "QUJD", "displayName": "mine.pdf"}});
    for (from, body) in [
        (R, respond(link.clone())),
        (R, respond(data.clone())),
        (R, result(link)),
        (R, result(data)),
        (A, claude(document.clone())),
        (A, claude_result(document)),
        (G, google(inline("application/pdf"))),
        (G, google(inline("image/png"))),
        (G, google(inline("audio/wav"))),
    ] {
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            // A place that a provider has not at all is refused by its name.
            let Ok((sent, dropped)) = try_sent(from, &Target::new(to, "up"), &body) else { continue };
            let dropped = dropped.dropped.to_string();
            let carried = sent.to_string().contains("mine.pdf");
            let named = ["filename", "title", "displayName"].iter().any(|name| dropped.contains(name));
            assert!(carried || named, "{from:?} to {to:?}: {sent} tells {dropped:?} of {body}");
        }
    }
}
