//! Whole replies: usage, output, errors in disguise, the public model name.

use bytes::Bytes;
use proptest::prelude::*;
use tollgate_dialects::chat::{ChatReply, NotAReply, read_reply};
use tollgate_dialects::{ToolNames, Voice, convert};
use tollgate_wire::Dialect;

fn read(text: &str) -> Result<ChatReply, NotAReply> {
    read_reply(&Bytes::copy_from_slice(text.as_bytes()))
}

fn message(message: &str, usage: &str) -> ChatReply {
    let choice = format!(r#"{{"index":0,"message":{message},"logprobs":null,"finish_reason":"stop"}}"#);
    read(&format!(r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{choice}]{usage}}}"#))
        .unwrap()
}

const USAGE: &str = r#","usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}"#;

#[test]
fn a_plain_reply() {
    let reply = message(r#"{"role":"assistant","content":"Hi!","refusal":null}"#, USAGE);
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input, usage.output), (5, 2));
    assert_eq!(reply.raw_usage.as_deref(), Some(r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}"#));
    assert!(reply.has_output && reply.error.is_none());
    assert_eq!(reply.counted_output, 0);
    assert_eq!(reply.best_usage(1000), (usage, false));
}

/// MiniMax says in a reply of status 200 how it went.
#[test]
fn a_base_resp_is_an_error_unless_all_is_well() {
    let failed = r#"{"id":"c","choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#;
    let error = read(failed).unwrap().error.unwrap();
    assert_eq!(
        (error.status, error.code.as_deref(), &*error.message),
        (Some(402), Some("1008"), "insufficient balance")
    );
    let fine = message(r#"{"content":"Hi!"}"#, r#","base_resp":{"status_code":0,"status_msg":""}"#);
    assert!(fine.error.is_none() && fine.has_output);
    for (code, status) in [(1002, 429), (1004, 401), (1026, 400), (2013, 400), (1000, 500), (9999, 500)] {
        let text = format!(r#"{{"base_resp":{{"status_code":{code},"status_msg":"m"}}}}"#);
        assert_eq!(read(&text).unwrap().error.and_then(|error| error.status), Some(status), "{code}");
        // For clients of other dialects too.
        let names = ToolNames::default();
        let voice = Voice::default();
        let body = Bytes::from(text);
        let other = convert(Dialect::Chat, Dialect::Anthropic, body, &names, &voice).unwrap();
        assert_eq!(other.facts.error.and_then(|error| error.status), Some(status), "{code}");
    }
    assert!(read(r#"{"base_resp":{"status_code":0}}"#).is_err(), "no answer at all");
}

#[test]
fn every_kind_of_output_is_seen_and_counted() {
    for (part, least) in [
        (r#"{"content":"three small words"}"#, 3),
        (r#"{"content":null,"refusal":"I will not"}"#, 3),
        (r#"{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#, 2),
        (r#"{"content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"f","input":"abc"}}]}"#, 2),
        (r#"{"content":null,"function_call":{"name":"f","arguments":""}}"#, 1),
        (r#"{"content":null,"audio":{"id":"a","data":"QUJD","transcript":"hello"}}"#, 2),
        (r#"{"content":"","reasoning_content":"thinking hard"}"#, 2),
        (r#"{"content":[{"type":"text","text":"parts"}]}"#, 1),
    ] {
        let reply = message(part, "");
        assert!(reply.has_output && reply.usage.is_none(), "{part}");
        assert!(reply.counted_output >= least, "{part}: {}", reply.counted_output);
        assert_eq!(reply.best_usage(40).0.input, 40);
        assert!(reply.best_usage(40).1);
    }
}

#[test]
fn nothing_said_is_no_output() {
    for part in [
        r#"{"role":"assistant","content":""}"#,
        r#"{"content":null,"tool_calls":[]}"#,
        "{}",
        "null",
        r#"{"content":[]}"#,
    ] {
        assert!(!message(part, USAGE).has_output, "{part}");
    }
    assert!(!read(r#"{"choices":[]}"#).unwrap().has_output);
}

#[test]
fn a_report_that_denies_the_output_is_not_believed() {
    let zero = r#","usage":{"prompt_tokens":5,"completion_tokens":0,"total_tokens":5}"#;
    let reply = message(r#"{"content":"quite a few words in here"}"#, zero);
    let (usage, estimated) = reply.best_usage(1000);
    assert!(estimated && usage.input == 5 && usage.output == reply.counted_output && usage.output >= 6);
}

#[test]
fn errors_and_nonsense() {
    let error = read(r#"{"error":{"message":"m","type":"t","code":429}}"#).unwrap().error.unwrap();
    assert_eq!((error.message.as_str(), error.status), ("m", Some(429)));
    for text in
        ["", "[]", "{}", "<html>", r#"{"choices":{}}"#, r#"{"choices":[]"#, r#"{"choices":[]}x"#, "null", "data: {}"]
    {
        assert_eq!(read(text), Err(NotAReply), "{text}");
    }
}

#[test]
fn the_public_name() {
    let body = Bytes::from_static(br#"{ "x":{"model":"in"}, "model" : "up" ,"choices":[],"y":"model"}"#);
    let reply = read_reply(&body).unwrap();
    let expected = r#"{ "x":{"model":"in"}, "model" : "pub\"lic" ,"choices":[],"y":"model"}"#;
    assert_eq!(reply.with_model(body.clone(), "pub\"lic"), expected);
    assert_eq!(reply.with_model(body.clone(), "up").as_ptr(), body.as_ptr());
    let none = Bytes::from_static(b"{\"choices\":[]}");
    assert_eq!(read_reply(&none).unwrap().with_model(none.clone(), "a"), none);
}

#[test]
fn the_public_name_in_every_dialect() {
    for (dialect, body) in [
        (Dialect::Anthropic, r#"{ "x":{"model":"in"}, "model" : "up" ,"content":[],"y":"model"}"#),
        (Dialect::Responses, r#"{ "x":{"model":"in"}, "model" : "up" ,"output":[],"y":"model"}"#),
        (Dialect::Gemini, r#"{ "x":{"modelVersion":"in"}, "modelVersion" : "up" ,"candidates":[],"y":"model"}"#),
    ] {
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        let named = |model: &str| {
            let voice = Voice { model: model.to_owned(), ..Voice::default() };
            convert(dialect, dialect, bytes.clone(), &ToolNames::default(), &voice).unwrap().body
        };
        assert_eq!(named("pub\"lic"), body.replace(r#" "up" "#, r#" "pub\"lic" "#), "{dialect:?}");
        assert_eq!(named("up").as_ptr(), bytes.as_ptr(), "{dialect:?}: not even copied");
    }
}

proptest! {
    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = read_reply(&Bytes::from(bytes));
    }

    #[test]
    fn any_usage_value_is_safe(value in r#"[0-9eE.+"\[\]{}a-z:,-]{0,16}"#, key in "prompt_tokens|completion_tokens|prompt_tokens_details") {
        let text = format!(r#"{{"choices":[],"usage":{{"{key}":{value}}}}}"#);
        let _ = read(&text);
    }
}
