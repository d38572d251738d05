//! Nothing of a request disappears silently. Each field that the form in the middle has a place for
//! is put into a plain request of its dialect, one at a time: for every other provider it must then
//! be written (what is sent changes), reported (the list of what is dropped changes) or refused.
//! What asks for nothing but what is done anyway is listed here with the reason.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_dialects::{CheckedRequest, Path, Target};
use tollgate_wire::{Dialect, error};

const C: Dialect = Dialect::Chat;
const A: Dialect = Dialect::Anthropic;
const R: Dialect = Dialect::Responses;
const G: Dialect = Dialect::Gemini;

/// What becomes of a request: the body and what is reported, or the field that is refused.
#[derive(Debug, PartialEq)]
enum Outcome {
    Sent(Value, String),
    Refused(Option<String>),
}

fn outcome(from: Dialect, body: &Value, target: &Target) -> Outcome {
    let path = Path { model: "gemini-x", stream: false };
    let path = (from == G).then_some(path);
    let request = match CheckedRequest::read(from, Bytes::from(body.to_string()), path) {
        Ok(request) => request,
        Err(problem) => panic!("{from:?} {body}: {problem:?}"),
    };
    match request.upstream_body(target) {
        Ok(sent) => Outcome::Sent(serde_json::from_slice(&sent.body).unwrap(), sent.dropped.to_string()),
        Err(problem) => Outcome::Refused(problem.param),
    }
}

/// A place in a request, `messages/1/name`, and what is put there.
type Field = (&'static str, Value);

fn with(body: &Value, (place, value): &Field) -> Value {
    let mut body = body.clone();
    let (parent, name) = place.rsplit_once('/').unwrap_or(("", place));
    let mut at = &mut body;
    for step in parent.split('/').filter(|step| !step.is_empty()) {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        };
    }
    match name.parse::<usize>() {
        Ok(index) => at.as_array_mut().unwrap().insert(index, value.clone()),
        Err(_) => at[name] = value.clone(),
    }
    body
}

const SCHEMA: &str =
    r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// A conversation with a tool, its call and its result.
fn base(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat => json!({"model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,QUJD"}}]},
                {"role": "assistant", "content": "a", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "r"}]},
                {"role": "user", "content": "go on"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema()}}],
            "response_format": {"type": "json_schema", "json_schema": {"schema": schema()}}}),
        Dialect::Anthropic => json!({"model": "m", "max_tokens": 4000,
            "system": [{"type": "text", "text": "s"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}]},
                {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}]}, {"type": "text", "text": "go on"}]}],
            "tools": [{"name": "f", "input_schema": schema()}],
            "output_config": {"format": {"type": "json_schema", "schema": schema()}}}),
        Dialect::Responses => json!({"model": "m",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "q"}, {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
                    {"type": "input_file", "file_data": "data:application/pdf;base64,QUJD"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "r"}]},
                {"role": "user", "content": "go on"}],
            "tools": [{"type": "function", "name": "f", "parameters": schema(), "strict": false}],
            "text": {"format": {"type": "json_schema", "schema": schema()}}}),
        Dialect::Gemini => json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "q"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]},
                {"role": "model", "parts": [{"text": "a"}, {"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "r"}}}, {"text": "go on"}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": schema()}]}],
            "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema()}}),
    }
}

fn fields(dialect: Dialect) -> Vec<Field> {
    match dialect {
        Dialect::Chat => chat_fields(),
        Dialect::Anthropic => anthropic_fields(),
        Dialect::Responses => responses_fields(),
        Dialect::Gemini => gemini_fields(),
    }
}

fn chat_fields() -> Vec<Field> {
    let mark = || json!({"mode": "explicit"});
    vec![
        ("stream", json!(true)),
        ("max_completion_tokens", json!(77)),
        ("max_tokens", json!(77)),
        ("temperature", json!(0.25)),
        ("top_p", json!(0.25)),
        ("top_k", json!(7)),
        ("frequency_penalty", json!(0.5)),
        ("presence_penalty", json!(0.5)),
        ("seed", json!(7)),
        ("stop", json!(["END"])),
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(3)),
        ("reasoning_effort", json!("high")),
        ("reasoning", json!({"max_tokens": 2000})),
        ("reasoning", json!({"exclude": true, "effort": "low"})),
        ("reasoning", json!({"exclude": false})),
        ("response_format/json_schema/name", json!("person")),
        ("response_format/json_schema/description", json!("somebody")),
        ("response_format", json!({"type": "json_object"})),
        ("verbosity", json!("low")),
        ("tools/0/function/description", json!("does")),
        ("tools/0/function/strict", json!(true)),
        (
            "tools/1",
            json!({"type": "custom", "custom": {"name": "free", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}}}}),
        ),
        ("tool_choice", json!("required")),
        ("tool_choice", json!("none")),
        ("tool_choice", json!({"type": "function", "function": {"name": "f"}})),
        ("parallel_tool_calls", json!(false)),
        ("prompt_cache_key", json!("k")),
        ("service_tier", json!("flex")),
        ("safety_identifier", json!("u")),
        ("user", json!("u")),
        ("metadata", json!({"a": "b"})),
        ("store", json!(true)),
        ("messages/0/name", json!("boss")),
        ("messages/1/name", json!("ann")),
        ("messages/2/name", json!("bot")),
        ("messages/2/phase", json!("commentary")),
        ("messages/2/refusal", json!("no")),
        ("messages/2/reasoning_content", json!("hm")),
        ("messages/1/content/0/prompt_cache_breakpoint", mark()),
        ("messages/1/content/1/image_url/detail", json!("high")),
        ("messages/1/content/1/prompt_cache_breakpoint", mark()),
        ("messages/1/content/2/file/filename", json!("mine.pdf")),
        ("messages/3/content/0/prompt_cache_breakpoint", mark()),
        ("unheard_of", json!(1)),
        ("messages/1/unheard_of", json!(1)),
    ]
}

fn anthropic_fields() -> Vec<Field> {
    let mark = || json!({"type": "ephemeral"});
    vec![
        ("stream", json!(true)),
        ("temperature", json!(0.25)),
        ("top_p", json!(0.25)),
        ("top_k", json!(7)),
        ("stop_sequences", json!(["END"])),
        ("thinking", json!({"type": "enabled", "budget_tokens": 2000})),
        ("thinking", json!({"type": "disabled"})),
        ("thinking", json!({"type": "adaptive", "display": "omitted"})),
        ("thinking", json!({"type": "adaptive", "display": "summarized"})),
        ("output_config/effort", json!("high")),
        ("tools/0/description", json!("does")),
        ("tools/0/strict", json!(true)),
        ("tools/0/cache_control", mark()),
        ("tool_choice", json!({"type": "any"})),
        ("tool_choice", json!({"type": "none"})),
        ("tool_choice", json!({"type": "tool", "name": "f"})),
        ("tool_choice", json!({"type": "auto", "disable_parallel_tool_use": true})),
        ("metadata", json!({"user_id": "u"})),
        ("service_tier", json!("standard_only")),
        ("cache_control", mark()),
        ("context_management", json!({"edits": []})),
        ("system/0/cache_control", mark()),
        ("messages/0/content/0/cache_control", mark()),
        ("messages/0/content/0/cache_control", json!({"type": "ephemeral", "ttl": "1h"})),
        ("messages/0/content/1/cache_control", mark()),
        ("messages/0/content/2/title", json!("mine")),
        ("messages/0/content/2/context", json!("about")),
        ("messages/0/content/2/citations", json!({"enabled": true})),
        ("messages/0/content/3/title", json!("mine")),
        ("messages/1/content/1/cache_control", mark()),
        ("messages/2/content/0/is_error", json!(true)),
        ("messages/2/content/0/cache_control", mark()),
        ("messages/2/content/0/content/0/cache_control", mark()),
        ("messages/2/content/0/content/1/cache_control", mark()),
        ("messages/2/content/0/content/1/title", json!("mine")),
        ("unheard_of", json!(1)),
    ]
}

fn responses_fields() -> Vec<Field> {
    let mark = || json!({"mode": "explicit"});
    vec![
        ("stream", json!(true)),
        ("instructions", json!("be kind")),
        ("max_output_tokens", json!(77)),
        ("temperature", json!(0.25)),
        ("top_p", json!(0.25)),
        ("presence_penalty", json!(0.5)),
        ("frequency_penalty", json!(0.5)),
        ("top_logprobs", json!(3)),
        ("include", json!(["message.output_text.logprobs"])),
        ("include", json!(["file_search_call.results"])),
        ("include", json!(["reasoning.encrypted_content", "web_search_call.action.sources"])),
        ("reasoning", json!({"effort": "high"})),
        ("reasoning", json!({"summary": "auto"})),
        ("reasoning", json!({"summary": "detailed", "effort": "low"})),
        ("text/format/name", json!("person")),
        ("text/format/description", json!("somebody")),
        ("text/verbosity", json!("low")),
        ("tools/0/description", json!("does")),
        ("tools/0/strict", json!(true)),
        (
            "tools/1",
            json!({"type": "custom", "name": "free", "format": {"type": "grammar", "syntax": "regex", "definition": "a"}}),
        ),
        ("tool_choice", json!("required")),
        ("tool_choice", json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]})),
        ("parallel_tool_calls", json!(false)),
        ("prompt_cache_key", json!("k")),
        ("service_tier", json!("flex")),
        ("safety_identifier", json!("u")),
        ("metadata", json!({"a": "b"})),
        ("max_tool_calls", json!(3)),
        ("input/0/content/0/prompt_cache_breakpoint", mark()),
        ("input/0/content/1/detail", json!("high")),
        ("input/0/content/2/filename", json!("mine.pdf")),
        ("input/1/phase", json!("commentary")),
        ("input/2/namespace", json!("ns")),
        ("input/3/output/0/prompt_cache_breakpoint", mark()),
        ("unheard_of", json!(1)),
    ]
}

fn gemini_fields() -> Vec<Field> {
    let config = |name: &str, value: Value| {
        let mut config = json!({"responseMimeType": "application/json", "responseJsonSchema": schema()});
        config[name] = value;
        ("generationConfig", config)
    };
    vec![
        config("maxOutputTokens", json!(77)),
        config("temperature", json!(0.25)),
        config("topP", json!(0.25)),
        config("topK", json!(7)),
        config("presencePenalty", json!(0.5)),
        config("frequencyPenalty", json!(0.5)),
        config("seed", json!(7)),
        config("stopSequences", json!(["END"])),
        config("candidateCount", json!(2)),
        config("responseLogprobs", json!(true)),
        config("logprobs", json!(3)),
        config("thinkingConfig", json!({"thinkingBudget": 2000})),
        config("thinkingConfig", json!({"thinkingLevel": "HIGH"})),
        config("thinkingConfig", json!({"includeThoughts": true})),
        config("thinkingConfig", json!({"includeThoughts": false, "thinkingLevel": "HIGH"})),
        config("mediaResolution", json!("MEDIA_RESOLUTION_LOW")),
        ("labels", json!({"a": "b"})),
        ("serviceTier", json!("flex")),
        ("safetySettings", json!([{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}])),
        ("toolConfig", json!({"functionCallingConfig": {"mode": "ANY"}})),
        ("toolConfig", json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}})),
        ("tools/0/functionDeclarations/0/behavior", json!("NON_BLOCKING")),
        ("tools/0/functionDeclarations/0/response", json!({"type": "OBJECT"})),
        ("contents/0/parts/0/thoughtSignature", json!("c2lnbmVk")),
        ("contents/1/parts/0/thoughtSignature", json!("c2lnbmVk")),
        ("contents/1/parts/1/thoughtSignature", json!("c2lnbmVk")),
        ("unheardOf", json!(1)),
    ]
}

/// What a field asks for is done anyway: who, where it goes, the place, its value, why.
const ANYWAY: &[(Dialect, &[Dialect], &str, &str, &str)] = &[
    (C, &[R], "reasoning", r#""exclude":true"#, "a response shows no thoughts unless it is asked to"),
    (A, &[R], "thinking", r#""display":"omitted""#, "likewise"),
    (G, &[R], "generationConfig", r#""includeThoughts":false"#, "likewise"),
    (C, &[G], "stream", "", "the path says it"),
    (A, &[G], "stream", "", "the path says it"),
    (R, &[G], "stream", "", "the path says it"),
    (A, &[C, R, G], "context_management", "", "it is empty"),
    (G, &[C, A, R], "contents/0/parts/0/thoughtSignature", "", "a user's text has no thought before it"),
];

#[test]
fn every_field_is_written_reported_or_refused() {
    let mut silent = Vec::new();
    let (mut tried, mut excused) = (0, 0);
    for from in Dialect::ALL {
        let plain = base(from);
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            for adaptive in [true, false] {
                let target = Target { adaptive_thinking: adaptive, gemini3: adaptive, ..Target::new(to, "up") };
                let before = outcome(from, &plain, &target);
                assert!(
                    matches!(&before, Outcome::Sent(_, dropped) if dropped.is_empty()),
                    "{from:?} to {to:?}: {before:?}"
                );
                for field in fields(from) {
                    tried += 1;
                    if outcome(from, &with(&plain, &field), &target) != before {
                        continue;
                    }
                    let is = |row: &&(Dialect, &[Dialect], &str, &str, &str)| {
                        row.0 == from && row.1.contains(&to) && row.2 == field.0 && field.1.to_string().contains(row.3)
                    };
                    match ANYWAY.iter().find(is) {
                        Some(_) => excused += 1,
                        None => {
                            silent.push(format!("{from:?} to {to:?} (adaptive {adaptive}): {} {}", field.0, field.1))
                        }
                    }
                }
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    assert!(tried > 800 && excused > 0, "{tried} tried, {excused} excused");
}

/// More marks than Anthropic takes, names and phases of turns that are joined on the way, and a
/// schema with labels of its own.
#[test]
fn what_only_several_show_is_reported_too() {
    let reported = |from: Dialect, to: Dialect, body: &Value| match outcome(from, body, &Target::new(to, "up")) {
        Outcome::Sent(_, reported) => reported,
        Outcome::Refused(param) => panic!("refused: {param:?}"),
    };
    let marked = |count: usize| {
        let part = json!({"type": "text", "text": "q", "prompt_cache_breakpoint": {"mode": "explicit"}});
        json!({"model": "m", "messages": [{"role": "user", "content": vec![part; count]}]})
    };
    assert_eq!((reported(C, A, &marked(4)).as_str(), reported(C, A, &marked(5)).as_str()), ("", "cache_control"));
    let two = json!({"model": "m", "messages": [{"role": "user", "content": "q"}, {"role": "user", "name": "ann", "content": "r"}]});
    for to in [A, R, G] {
        assert_eq!(reported(C, to, &two), "messages.name", "{to:?}");
    }
    let two = json!({"model": "m", "input": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
        {"role": "assistant", "phase": "final_answer", "content": "b"}, {"role": "user", "content": "q"}]});
    for to in [C, A, G] {
        assert_eq!(reported(R, to, &two), "phase", "{to:?}");
    }
    let labelled = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "response_format": {"type": "json_schema",
        "json_schema": {"name": "person", "description": "somebody", "strict": true, "schema": {"type": "object", "title": "Person", "description": "one", "properties": {}}}}});
    let names = "response_format.json_schema.name,response_format.json_schema.description";
    for to in [A, G] {
        assert_eq!(reported(C, to, &labelled), names, "{to:?}");
    }
    let words = Target { native_schema: false, ..Target::new(A, "up") };
    let Outcome::Sent(_, dropped) = outcome(C, &labelled, &words) else { panic!("refused") };
    assert_eq!(dropped, format!("{names},response_format.json_schema.strict"));
    let forced = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "tool_choice": "required"});
    for to in [A, R, G] {
        assert_eq!(reported(C, to, &forced), "tool_choice", "{to:?}");
    }
}

/// Names that stand for more than one field: thoughts of earlier turns and how much is to be
/// thought now, marks of the cache under either name, and the older name of chat's
/// `safety_identifier`.
const OTHERWISE: &[&str] = &["reasoning", "reasoning.summary", "cache_control", "user"];

fn keys(value: &Value, names: &mut Vec<String>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        names.push(name.clone());
        keys(inner, names);
    }
}

/// A refusal names the field as the client spelt it, in the body that the client reads: SDKs of
/// Anthropic and Gemini show the message alone.
#[test]
fn a_refusal_names_the_field_as_its_client_spells_it() {
    let mut refused = [0; 2];
    let mut wrong = Vec::new();
    for from in Dialect::ALL {
        for to in Dialect::ALL.into_iter().filter(|to| *to != from) {
            for (strict, field) in
                [false, true].into_iter().flat_map(|strict| fields(from).into_iter().map(move |field| (strict, field)))
            {
                let target = Target { strict, ..Target::new(to, "up") };
                let body = Bytes::from(with(&base(from), &field).to_string());
                let path = Path { model: "gemini-x", stream: false };
                let request = CheckedRequest::read(from, body, (from == G).then_some(path)).unwrap();
                let Err(problem) = request.upstream_body(&target) else { continue };
                let param = problem.param.clone().unwrap();
                if OTHERWISE.contains(&param.as_str()) {
                    continue;
                }
                refused[usize::from(strict)] += 1;
                // A name on the path, or one within what was put there.
                let mut names: Vec<String> = Vec::new();
                keys(&field.1, &mut names);
                names.extend(field.0.split('/').map(str::to_owned));
                let last = param.rsplit('.').next().unwrap();
                let last = last.split('[').next().unwrap();
                if !names.iter().any(|name| name == last) {
                    wrong.push(format!("{from:?} to {to:?}: `{param}` for {} {}", field.0, field.1));
                }
                let error = error::body(from.errors(), problem.code, &problem.message, Some(&param), "call_1");
                let error: Value = serde_json::from_slice(&error).unwrap();
                let message = error["error"]["message"].as_str().unwrap();
                let own = matches!(from, C | R) && error["error"]["param"] == param.as_str();
                if !own && !message.contains(&format!("`{param}`")) {
                    wrong.push(format!("{from:?} to {to:?}: {error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(refused[0] >= 10 && refused[1] > 100, "{refused:?}");
}
