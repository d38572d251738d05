//! Requests of the dialects that pass through: what is checked and known of them; and what a call
//! takes from its request to its answer.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_dialects::{CheckedRequest, Echo, Path, ReplyStream, Setup, Target, ToolNames, Voice, convert, responses};
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

const A: Dialect = Dialect::Anthropic;
const R: Dialect = Dialect::Responses;
const G: Dialect = Dialect::Gemini;

fn read(dialect: Dialect, body: &str) -> Result<CheckedRequest, (Code, String)> {
    let path = Path { model: "gemini-x", stream: true };
    let path = (dialect == G).then_some(path);
    CheckedRequest::read(dialect, Bytes::copy_from_slice(body.as_bytes()), path)
        .map_err(|problem| (problem.code, problem.param.unwrap_or_default()))
}

fn refused(dialect: Dialect, body: &str) -> (Code, String) {
    read(dialect, body).expect_err(body)
}

const HI: &str = r#""messages":[{"role":"user","content":"hi"}]"#;

#[test]
fn the_facts_of_each_dialect() {
    let request =
        read(A, &format!(r#"{{"model":"m","max_tokens":7,"stream":true,"service_tier":"auto",{HI}}}"#)).unwrap();
    assert_eq!((request.model.as_str(), request.stream, request.max_output), ("m", true, Some(7)));
    assert_eq!((request.service_tier.as_deref(), request.choices, request.wants_usage), (Some("auto"), 1, true));
    let request = read(R, r#"{"model":"m","input":"hi","max_output_tokens":7,"reasoning":{"effort":"low"}}"#).unwrap();
    assert_eq!((request.stream, request.max_output), (false, Some(7)));
    assert_eq!(request.attr("reasoning.effort").as_deref(), Some("low"));
    let body = r#"{"contents":[{"parts":[{"text":"hi"}]}],"generation_config":{"maxOutputTokens":7,"candidate_count":2},"serviceTier":"flex"}"#;
    let request = read(G, body).unwrap();
    assert_eq!((request.model.as_str(), request.stream), ("gemini-x", true), "the path says so");
    assert_eq!((request.max_output, request.choices, request.service_tier.as_deref()), (Some(7), 2, Some("flex")));
}

#[test]
fn refusals_name_the_parameter() {
    use Code::{InvalidJson, InvalidParameter, InvalidRequest, MissingParameter};
    for dialect in [A, R, G] {
        for text in ["", "[]", "{", "null", "{\"a\":}"] {
            assert_eq!(refused(dialect, text).0, InvalidJson, "{dialect:?} {text}");
        }
        assert_eq!(
            refused(dialect, r#"{"x":1,"x":2,"model":"m","max_tokens":1,"input":"","messages":[{}],"contents":[{}]}"#)
                .0,
            InvalidRequest
        );
    }
    assert_eq!(refused(A, &format!(r#"{{"model":"m",{HI}}}"#)), (MissingParameter, "max_tokens".into()));
    assert_eq!(refused(A, r#"{"model":"m","max_tokens":1}"#), (MissingParameter, "messages".into()));
    assert_eq!(refused(A, &format!(r#"{{"max_tokens":1,{HI}}}"#)), (MissingParameter, "model".into()));
    assert_eq!(refused(A, r#"{"model":"m","max_tokens":1,"messages":[]}"#), (InvalidParameter, "messages".into()));
    assert_eq!(
        refused(A, r#"{"model":"m","max_tokens":1,"messages":["a"]}"#),
        (InvalidParameter, "messages[0]".into())
    );
    assert_eq!(
        refused(A, &format!(r#"{{"model":"m","max_tokens":-1,{HI}}}"#)),
        (InvalidParameter, "max_tokens".into())
    );
    assert_eq!(refused(A, &format!(r#"{{"model":7,"max_tokens":1,{HI}}}"#)), (InvalidParameter, "model".into()));
    assert_eq!(refused(R, r#"{"model":"m"}"#), (MissingParameter, "input".into()));
    assert_eq!(refused(R, r#"{"model":"m","input":7}"#), (InvalidParameter, "input".into()));
    assert_eq!(refused(R, r#"{"model":"m","input":"a","stream":1}"#), (InvalidParameter, "stream".into()));
    assert_eq!(refused(G, "{}"), (MissingParameter, "contents".into()));
    for count in ["0", "129", "-1", "1.5"] {
        let body = format!(r#"{{"contents":[{{}}],"generationConfig":{{"candidateCount":{count}}}}}"#);
        assert_eq!(refused(G, &body), (InvalidParameter, "generationConfig.candidateCount".into()), "{count}");
    }
    assert!(read(G, r#"{"contents":[{}],"generationConfig":{"candidateCount":128}}"#).is_ok());
}

#[test]
fn media_is_not_counted_as_text() {
    let letters = "QUJD".repeat(50_000);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": letters}});
    let body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [image]}]}).to_string();
    assert!((1_000..4_000).contains(&read(A, &body).unwrap().prompt_tokens));
    let body =
        json!({"contents": [{"parts": [{"inline_data": {"mime_type": "audio/wav", "data": letters}}]}]}).to_string();
    assert!((300..2_000).contains(&read(G, &body).unwrap().prompt_tokens));
    let file = json!({"type": "input_file", "file_data": format!("data:application/pdf;base64,{letters}")});
    let body = json!({"model": "m", "input": [{"role": "user", "content": [file]}]}).to_string();
    assert!((5_000..12_000).contains(&read(R, &body).unwrap().prompt_tokens));
    // Text that claims to be a picture, in the arguments of a call, is text.
    let call = json!({"type": "tool_use", "id": "t", "name": "f", "input": {"source": {"media_type": "image/png", "data": letters}}});
    let body =
        json!({"model": "m", "max_tokens": 1, "messages": [{"role": "assistant", "content": [call]}]}).to_string();
    assert!(read(A, &body).unwrap().prompt_tokens > 50_000);
    let plain = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "word ".repeat(10_000)}});
    let body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [plain]}]}).to_string();
    assert!(read(A, &body).unwrap().prompt_tokens > 9_000);
}

#[test]
fn within_a_dialect_only_the_name_changes() {
    for (dialect, body) in [
        (A, format!(r#"{{ "model" : "m" ,"max_tokens":1, {HI}, "x":[1.50,{{"model":"in"}}]}}"#)),
        (R, r#"{"input":"a", "model":"m","odd": {"y":1e2}}"#.to_owned()),
    ] {
        let request = read(dialect, &body).unwrap();
        let sent = request.upstream_body(&Target::new(dialect, "other")).unwrap();
        assert_eq!(sent.body, body.replacen("\"m\"", "\"other\"", 1));
        assert_eq!(request.upstream_body(&Target::new(dialect, "m")).unwrap().body.as_ptr(), request.body().as_ptr());
    }
    let body = r#"{"contents":[{"parts":[{"text":"a"}]}],"odd":1.50}"#;
    let request = read(G, body).unwrap();
    assert_eq!(request.upstream_body(&Target::new(G, "other")).unwrap().body, body, "the name is in the path");
}

#[test]
fn counting_tokens_needs_less_than_a_call() {
    let body = format!(r#"{{"model":"m",{HI}}}"#);
    let request = CheckedRequest::read_prompt(A, Bytes::from(body), None).unwrap();
    assert!(request.prompt_tokens > 0);
    assert_eq!(A.token_count(5), r#"{"input_tokens":5}"#);
    let path = Some(Path { model: "gemini-x", stream: false });
    let wrapped = r#"{"generateContentRequest":{"contents":[{"parts":[{"text":"a few words more"}]}]}}"#;
    let bare = r#"{"contents":[{"parts":[{"text":"a few words more"}]}]}"#;
    let count = |body: &'static str| CheckedRequest::read_prompt(G, Bytes::from(body), path).unwrap().prompt_tokens;
    assert_eq!(count(wrapped), count(bare));
    assert_eq!(G.token_count(5), r#"{"totalTokens":5}"#);
    assert_eq!(R.token_count(5), r#"{"object":"response.input_tokens","input_tokens":5}"#);
}

fn voice(echo: Echo) -> Voice {
    Voice { id: "call_1".into(), model: "public".into(), created: 5, echo, ..Voice::default() }
}

fn played(from: Dialect, to: Dialect, names: ToolNames, echo: Echo, events: &[Value]) -> (Vec<Value>, ReplyStream) {
    let setup = Setup { from, to, voice: voice(echo), names, rename: true, max_event_bytes: 1 << 20 };
    let mut stream = ReplyStream::new(setup);
    let mut out = Vec::new();
    for event in events {
        out.extend_from_slice(&stream.feed(Bytes::from(format!("data: {event}\n\n"))).unwrap());
    }
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    (lines.map(|data| serde_json::from_str(data).unwrap()).collect(), stream)
}

/// What a coding agent on Responses needs of a provider that speaks Anthropic: free text,
/// namespaces, its own names.
#[test]
fn tools_come_back_as_they_were_given() {
    let body = json!({"model": "m", "input": "go", "temperature": 0.25, "tools": [
        {"type": "custom", "name": "apply_patch", "description": "d", "format": {"type": "text"}},
        {"type": "namespace", "name": "mcp", "tools": [{"type": "function", "name": "run", "parameters": {"type": "object"}}]}]});
    let request = read(R, &body.to_string()).unwrap();
    let sent = request.upstream_body(&Target::new(A, "up")).unwrap();
    let tools: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!((&tools["tools"][0]["name"], &tools["tools"][1]["name"]), (&json!("apply_patch"), &json!("mcp__run")));
    let block = |at: u64, name: &str, args: [&str; 2]| {
        let mut events = vec![
            json!({"type": "content_block_start", "index": at, "content_block": {"type": "tool_use", "id": format!("t{at}"), "name": name, "input": {}}}),
        ];
        events.extend(args.map(|text| json!({"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": text}})));
        events.push(json!({"type": "content_block_stop", "index": at}));
        events
    };
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "model": "up", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ];
    events.extend(block(0, "apply_patch", ["{\"input\":\"*** a\\n", "b\"}"]));
    events.extend(block(1, "mcp__run", ["{\"x\":", "1}"]));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}));
    events.push(json!({"type": "message_stop"}));
    let (data, stream) = played(A, R, sent.names.clone(), request.echo(), &events);
    let last = data.last().unwrap();
    let output = &last["response"]["output"];
    assert_eq!(
        (&output[0]["type"], &output[0]["name"], &output[0]["input"]),
        (&json!("custom_tool_call"), &json!("apply_patch"), &json!("*** a\nb"))
    );
    assert_eq!(
        (&output[1]["namespace"], &output[1]["name"], &output[1]["arguments"]),
        (&json!("mcp"), &json!("run"), &json!("{\"x\":1}"))
    );
    assert_eq!(last["response"]["temperature"], 0.25, "the client's parameters are repeated");
    // What is stored is what was said.
    let stored: Value = serde_json::from_str(stream.response_object().unwrap()).unwrap();
    assert_eq!(&stored, &last["response"]);
    let answer = responses::ResponseOutline::read(stream.response_object().unwrap().as_bytes()).unwrap();
    assert_eq!((answer.items.len(), answer.id.as_str()), (2, stored["id"].as_str().unwrap()));
    // The next turn names the stored one; its items come first, and the provider finds its calls.
    let next = r#"{"model":"m","previous_response_id":"resp_1","input":[{"type":"custom_tool_call_output","call_id":"t0","output":"ok"},{"type":"function_call_output","call_id":"t1","output":"ok"}]}"#;
    let mut all = responses::input_items(request.body(), &[]);
    all.extend(answer.items.into_iter().map(|(_, item)| item));
    all.extend(responses::input_items(next.as_bytes(), &[]));
    let whole = responses::with_input(next.as_bytes(), &all).unwrap();
    let sent = read(R, std::str::from_utf8(&whole).unwrap()).unwrap().upstream_body(&Target::new(A, "up")).unwrap();
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({"input": "*** a\nb"}));
    assert_eq!(body["messages"][1]["content"][1]["name"], "mcp__run");
    assert_eq!(body["messages"][2]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn a_response_that_passes_is_stored_as_its_client_got_it() {
    let response = json!({"id": "resp_9", "model": "up", "status": "completed", "output": [], "odd": 1});
    let events = [
        json!({"type": "response.created", "sequence_number": 0, "response": response}),
        json!({"type": "response.completed", "sequence_number": 1, "response": response}),
    ];
    for (echo, id) in [(Echo::default(), "resp_9"), (Echo::default().stored_here(), "resp_1")] {
        let (data, stream) = played(R, R, ToolNames::default(), echo, &events);
        let last = &data.last().unwrap()["response"];
        assert_eq!((&last["model"], &last["id"], &last["odd"]), (&json!("public"), &json!(id), &json!(1)));
        let stored: Value = serde_json::from_str(stream.response_object().unwrap()).unwrap();
        assert_eq!(stored, *last);
    }
    let (_, stream) = played(A, Dialect::Chat, ToolNames::default(), Echo::default(), &[]);
    assert!(stream.response_object().is_none());
}

#[test]
fn every_field_of_a_response_is_there() {
    let reply = r#"{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let converted = convert(A, R, Bytes::from(reply), &ToolNames::default(), &voice(Echo::default())).unwrap();
    let response: Value = serde_json::from_slice(&converted.body).unwrap();
    for field in [
        "id",
        "object",
        "created_at",
        "completed_at",
        "status",
        "incomplete_details",
        "model",
        "previous_response_id",
        "instructions",
        "output",
        "error",
        "tools",
        "tool_choice",
        "truncation",
        "parallel_tool_calls",
        "text",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "top_logprobs",
        "temperature",
        "reasoning",
        "usage",
        "max_output_tokens",
        "max_tool_calls",
        "store",
        "background",
        "service_tier",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
    ] {
        assert!(response.get(field).is_some(), "{field}");
    }
}

/// Words of a catalog.
#[test]
fn words() {
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::of_word(dialect.word()), Some(dialect));
    }
    assert_eq!(Dialect::of_word("openai-video"), None);
}
