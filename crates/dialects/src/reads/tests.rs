//! The inventory: what is found in a request, where, and what is left alone.

use super::Modality::{self, Audio, File, Image, Video};
use crate::{CheckedRequest, Path};
use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_wire::Dialect::{self, Anthropic as A, Chat as C, Gemini as G, Responses as R};

fn read(dialect: Dialect, body: &Value) -> CheckedRequest {
    let path = Path { model: "m", stream: false };
    CheckedRequest::read(dialect, Bytes::from(body.to_string()), (dialect == G).then_some(path)).unwrap()
}

/// A request with one part beside a text.
fn part(dialect: Dialect, part: Value) -> Value {
    match dialect {
        C => json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}, part]}]}),
        A => {
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}, part]}]})
        }
        R => json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}, part]}]}),
        G => json!({"contents": [{"role": "user", "parts": [{"text": "q"}, part]}]}),
    }
}

/// A request with one member beside the conversation.
fn with(dialect: Dialect, name: &str, value: Value) -> Value {
    let mut body = part(dialect, json!({"text": "r"}));
    body[name] = value;
    body
}

#[test]
fn what_cannot_be_bounded_is_found_with_its_place_and_modality() {
    let mime = |mime: &str| json!({"fileData": {"mimeType": mime, "fileUri": "https://x.example/f"}});
    for (dialect, one, modality, place) in [
        (
            C,
            json!({"type": "video_url", "video_url": {"url": "https://x.example/v"}}),
            Video,
            "messages[0].content[1].video_url",
        ),
        (C, json!({"type": "file", "file": {"file_id": "f"}}), File, "messages[0].content[1].file"),
        (
            C,
            json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}),
            File,
            "messages[0].content[1].file",
        ),
        (
            C,
            json!({"type": "document_url", "document_url": "https://x.example/d"}),
            File,
            "messages[0].content[1].document_url",
        ),
        (
            C,
            json!({"type": "audio_url", "audio_url": {"url": "https://x.example/a"}}),
            Audio,
            "messages[0].content[1].audio_url",
        ),
        (
            C,
            json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "opus"}}),
            Audio,
            "messages[0].content[1].input_audio",
        ),
        (
            C,
            json!({"type": "image_url", "image_url": {"url": "data:application/pdf;base64,AAAA"}}),
            File,
            "messages[0].content[1].image_url",
        ),
        (
            C,
            json!({"type": "image_url", "image_url": "data:video/mp4;base64,AAAA"}),
            Video,
            "messages[0].content[1].image_url",
        ),
        (C, json!({"type": "brand_new", "media_url": "https://x.example/a"}), File, "messages[0].content[1].media_url"),
        (
            A,
            json!({"type": "document", "source": {"type": "url", "url": "https://x.example/d.pdf"}}),
            File,
            "messages[0].content[1].source",
        ),
        (
            A,
            json!({"source": {"type": "file", "file_id": "f"}, "type": "document"}),
            File,
            "messages[0].content[1].source",
        ),
        (
            A,
            json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}),
            File,
            "messages[0].content[1].source",
        ),
        (A, json!({"type": "container_upload", "file_id": "f"}), File, "messages[0].content[1].file_id"),
        (
            A,
            json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document", "source": {"type": "url", "url": "https://x.example/d"}}]}),
            File,
            "messages[0].content[1].content[0].source",
        ),
        (R, json!({"type": "input_file", "file_url": "https://x.example/d"}), File, "input[0].content[1].file_url"),
        (R, json!({"type": "input_file", "file_id": "f"}), File, "input[0].content[1].file_id"),
        (
            R,
            json!({"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"}),
            File,
            "input[0].content[1].file_data",
        ),
        (G, mime("video/mp4"), Video, "contents[0].parts[1].fileData"),
        (G, mime("application/pdf"), File, "contents[0].parts[1].fileData"),
        (G, mime("audio/mp3"), Audio, "contents[0].parts[1].fileData"),
        (G, json!({"file_data": {"file_uri": "https://x.example/f"}}), File, "contents[0].parts[1].file_data"),
        (G, json!({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}), Video, "contents[0].parts[1].inlineData"),
        (
            G,
            json!({"functionResponse": {"name": "f", "response": {}, "parts": [mime("application/pdf")]}}),
            File,
            "contents[0].parts[1].functionResponse.parts[0].fileData",
        ),
    ] {
        let request = read(dialect, &part(dialect, one.clone()));
        let at = request.reads.unseen.unwrap_or_else(|| panic!("{dialect:?}: {one} is not found"));
        assert_eq!(request.place(at), place);
        assert_eq!(request.reads.first(modality), Some(at), "{dialect:?}: {one}");
    }
}

#[test]
fn a_name_written_with_escapes_is_the_same_name() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"v","v\u0069deo_url":{"url":"https://x.example"}}]}]}"#;
    let request = CheckedRequest::read(C, Bytes::from(body), None).unwrap();
    assert_eq!(request.place(request.reads.unseen.unwrap()), "messages[0].content[0].video_url");
}

#[test]
fn what_the_provider_has_is_found_in_every_dialect() {
    for (dialect, name, value) in [
        (C, "prompt", json!({"id": "p"})),
        (C, "thread", json!({"id": "t"})),
        (C, "thread_id", json!("t")),
        (C, "cached_content", json!("c")),
        (C, "documents", json!([{"id": "d"}])),
        (A, "container", json!("c")),
        (R, "prompt", json!({"id": "p"})),
        (R, "previous_response_id", json!("r")),
        (R, "conversation", json!("c")),
        (G, "cachedContent", json!("cachedContents/c")),
        (G, "cached_content", json!("cachedContents/c")),
    ] {
        let request = read(dialect, &with(dialect, name, value));
        assert_eq!(request.reads.unseen.map(|at| request.place(at)).as_deref(), Some(name), "{dialect:?}");
        let none = read(dialect, &with(dialect, name, Value::Null));
        assert_eq!(none.reads.unseen, None, "{dialect:?}: {name}");
    }
    let item = read(R, &json!({"model": "m", "input": [{"type": "item_reference", "id": "i"}]}));
    assert_eq!(item.reads.unseen.map(|at| item.place(at)).as_deref(), Some("input[0]"));
    let spoken = json!({"model": "m", "messages": [{"role": "assistant", "audio": {"id": "a"}}, {"role": "user", "content": "q"}]});
    let spoken = read(C, &spoken);
    assert_eq!(spoken.reads.unseen.map(|at| spoken.place(at)).as_deref(), Some("messages[0].audio"));
}

#[test]
fn shortening_counts_only_where_the_conversation_is_read_again() {
    let edits = |kind: &str| json!({"edits": [{"type": kind}]});
    assert!(!read(A, &with(A, "context_management", edits("clear_thinking_20251015"))).reads.compacts);
    assert!(read(A, &with(A, "context_management", edits("compact_20260112"))).reads.compacts);
    assert!(read(R, &with(R, "context_management", json!([{"type": "compaction"}]))).reads.compacts);
}

#[test]
fn tools_that_run_at_the_provider_have_one_name_in_all_dialects() {
    for (dialect, tool, name, most) in [
        (C, json!({"type": "web_search_preview"}), "web_search", None),
        (C, json!({"type": "code_interpreter"}), "code_execution", None),
        (C, json!({"googleSearch": {}}), "tool", None),
        (A, json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}), "web_search", Some(5)),
        (A, json!({"type": "web_fetch_20250910", "name": "web_fetch"}), "web_fetch", None),
        (A, json!({"type": "code_execution_20250825", "name": "code_execution"}), "code_execution", None),
        (A, json!({"type": "tool_search_tool_regex_20251119", "name": "t"}), "tool_search", None),
        (A, json!({"type": "advisor_20260301", "name": "advisor"}), "advisor_20260301", None),
        (R, json!({"type": "web_search"}), "web_search", None),
        (R, json!({"type": "file_search", "vector_store_ids": ["v"]}), "file_search", None),
        (R, json!({"type": "code_interpreter", "container": {"type": "auto"}}), "code_execution", None),
        (R, json!({"type": "image_generation"}), "image_generation", None),
        (R, json!({"type": "x_search", "allowed_x_handles": ["a"]}), "x_search", None),
        (R, json!({"type": "collections_search"}), "file_search", None),
        (R, json!({"type": "mcp", "server_label": "s"}), "mcp", None),
        (R, json!({"type": "shell", "environment": {"type": "container_auto"}}), "shell", None),
        (R, json!({"type": "namespace", "name": "n", "tools": [{"type": "mcp"}]}), "mcp", None),
        (G, json!({"googleSearch": {}}), "web_search", None),
        (G, json!({"google_search_retrieval": {}}), "web_search", None),
        (G, json!({"urlContext": {}}), "web_fetch", None),
        (G, json!({"googleMaps": {}}), "maps", None),
        (G, json!({"codeExecution": {}}), "code_execution", None),
        (G, json!({"fileSearch": {}}), "file_search", None),
    ] {
        let request = read(dialect, &with(dialect, "tools", json!([tool.clone()])));
        let found: Vec<_> = request.reads.hosted.iter().map(|one| (one.name.as_ref(), one.most)).collect();
        assert_eq!(found, [(name, most)], "{dialect:?}: {tool}");
        let place = request.place(request.reads.hosted[0].at);
        assert!(place.starts_with("tools[0]"), "{place}");
    }
    for (dialect, name, value, tool) in [
        (C, "web_search_options", json!({}), "web_search"),
        (C, "search_parameters", json!({"mode": "on"}), "web_search"),
        (A, "mcp_servers", json!([{"type": "url"}]), "mcp"),
    ] {
        let request = read(dialect, &with(dialect, name, value));
        assert_eq!(request.reads.hosted.len(), 1, "{name}");
        assert_eq!(request.reads.hosted[0].name, tool);
    }
    assert_eq!(read(R, &with(R, "max_tool_calls", json!(3))).reads.most_uses, Some(3));
}

#[test]
fn tools_that_the_caller_runs_are_left_alone() {
    for (dialect, tool) in [
        (C, json!({"type": "function", "function": {"name": "f"}})),
        (C, json!({"function": {"name": "f"}})),
        (C, json!({"type": "custom", "custom": {"name": "f"}})),
        (A, json!({"name": "f", "input_schema": {"type": "object"}})),
        (A, json!({"type": "bash_20250124", "name": "bash"})),
        (A, json!({"type": "text_editor_20250728", "name": "e"})),
        (A, json!({"type": "computer_20250124", "name": "c"})),
        (A, json!({"type": "memory_20250818", "name": "memory"})),
        (R, json!({"type": "function", "name": "f"})),
        (R, json!({"type": "local_shell"})),
        (R, json!({"type": "shell"})),
        (R, json!({"type": "shell", "environment": {"type": "local"}})),
        (R, json!({"type": "apply_patch"})),
        (R, json!({"type": "computer_use_preview"})),
        (R, json!({"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]})),
        (G, json!({"functionDeclarations": [{"name": "f"}], "googleSearch": null})),
        (G, json!({"computer_use": {}})),
    ] {
        let request = read(dialect, &with(dialect, "tools", json!([tool.clone()])));
        assert_eq!(request.reads.hosted, [], "{dialect:?}: {tool}");
    }
}

#[test]
fn pictures_and_plain_sound_are_bounded_by_what_is_there() {
    for (dialect, one) in [
        (C, json!({"type": "image_url", "image_url": {"url": "https://x.example/p", "detail": "low"}})),
        (A, json!({"type": "image", "source": {"type": "url", "url": "https://x.example/p"}})),
        (A, json!({"source": {"type": "file", "file_id": "f"}, "type": "image"})),
        (A, json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})),
        (R, json!({"type": "input_image", "image_url": "https://x.example/p"})),
        (R, json!({"file_id": "f", "type": "input_image"})),
        (G, json!({"fileData": {"mimeType": "image/png", "fileUri": "https://x.example/p"}})),
        (G, json!({"inline_data": {"mime_type": "image/png", "data": "AAAA"}})),
    ] {
        let request = read(dialect, &part(dialect, one.clone()));
        let reads = &request.reads;
        assert_eq!((reads.pictures, reads.unseen), (1, None), "{dialect:?}: {one}");
        assert!(reads.first(Image).is_some() && Modality::ALL[1..].iter().all(|other| reads.first(*other).is_none()));
    }
    let letters = "A".repeat(4_000);
    for (dialect, one) in [
        (C, json!({"type": "input_audio", "input_audio": {"data": letters, "format": "wav"}})),
        (G, json!({"inlineData": {"mimeType": "audio/mpeg", "data": letters}})),
    ] {
        let reads = read(dialect, &part(dialect, one)).reads;
        assert!(
            reads.packed >= 100 && reads.unseen.is_none() && reads.first(Audio).is_some(),
            "{dialect:?}: {reads:?}"
        );
    }
}

#[test]
fn what_only_looks_like_content_is_text() {
    for (dialect, one) in [
        (
            A,
            json!({"type": "tool_use", "id": "t", "name": "f", "input": {"file_id": "f", "video_url": "https://x.example"}}),
        ),
        (A, json!({"type": "search_result", "source": "https://x.example", "title": "t", "content": []})),
        (
            A,
            json!({"type": "web_search_tool_result", "tool_use_id": "t", "content": [{"type": "web_search_result", "url": "https://x.example", "title": "t"}]}),
        ),
        (
            A,
            json!({"type": "text", "text": "t", "citations": [{"type": "web_search_result_location", "url": "https://x.example"}]}),
        ),
        (A, json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}})),
        (R, json!({"type": "output_text", "text": "t", "annotations": [{"type": "file_citation", "file_id": "f"}]})),
        (G, json!({"functionCall": {"name": "f", "args": {"fileUri": "https://x.example"}}})),
        (G, json!({"functionResponse": {"name": "f", "response": {"file_id": "f", "video_url": "https://x.example"}}})),
    ] {
        let reads = read(dialect, &part(dialect, one.clone())).reads;
        assert_eq!(reads, crate::Reads::default(), "{dialect:?}: {one}");
    }
    // A picture in the result of a function is text there, however long: it cannot be passed off as
    // one.
    let long = "word ".repeat(2_000);
    let request = read(G, &part(G, json!({"functionResponse": {"name": "f", "response": {"image": long}}})));
    assert!(request.prompt_tokens > 2_000, "{}", request.prompt_tokens);
}

#[test]
fn text_that_nobody_knows_is_counted_aside() {
    let long = "word ".repeat(2_000);
    for dialect in [C, A, R, G] {
        let known = read(dialect, &with(dialect, "metadata", json!({"note": long.clone()})));
        assert_eq!(known.reads.aside, 0, "{dialect:?}");
        let unknown = read(dialect, &with(dialect, "chat_template", json!(long.clone())));
        assert!(unknown.reads.aside > 1_000, "{dialect:?}: {:?}", unknown.reads);
        assert_eq!(unknown.prompt_tokens, known.prompt_tokens, "the estimate is not made longer by it");
    }
}

#[test]
fn tools_without_a_limit_are_given_one_where_there_is_a_field_for_it() {
    let limited = |dialect, body: &Value| -> Value {
        let sent = super::limit_uses(dialect, Bytes::from(body.to_string()), 4);
        serde_json::from_slice(&sent).expect("still JSON")
    };
    let search = json!([{"type": "web_search_20250305", "name": "web_search"}, {"name": "f", "input_schema": {"type": "object"}}]);
    let body = with(A, "tools", search);
    let mut bounded = body.clone();
    bounded["tools"][0]["max_uses"] = json!(4);
    assert_eq!(limited(A, &body), bounded);
    let mut open = body.clone();
    open["tools"][0]["max_uses"] = Value::Null;
    assert_eq!(limited(A, &open), bounded);
    let mut own = body;
    own["tools"][0]["max_uses"] = json!(2);
    assert_eq!(limited(A, &own), own, "the caller's own limit stays");
    for null in [false, true] {
        let mut body = with(R, "tools", json!([{"type": "web_search"}]));
        if null {
            body["max_tool_calls"] = Value::Null;
        }
        let mut bounded = body.clone();
        bounded["max_tool_calls"] = json!(4);
        assert_eq!(limited(R, &body), bounded);
        assert_eq!(limited(R, &bounded), bounded);
    }
    for (dialect, tools) in [
        (R, json!([{"type": "function", "name": "f"}])),
        (A, json!([{"type": "code_execution_20250825", "name": "code_execution"}])),
        (C, json!([{"type": "web_search_preview"}])),
        (G, json!([{"googleSearch": {}}])),
    ] {
        let body = with(dialect, "tools", tools);
        assert_eq!(limited(dialect, &body), body, "{dialect:?}");
    }
}
