//! Chat requests: what is checked, and that every byte but two places goes on as it came.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_dialects::CheckedRequest;
use tollgate_wire::error::Code;
use tollgate_wire::{Dialect, Problem};

fn read(text: &str) -> Result<CheckedRequest, Problem> {
    read_request(Bytes::copy_from_slice(text.as_bytes()))
}

fn read_request(body: Bytes) -> Result<CheckedRequest, Problem> {
    CheckedRequest::read(Dialect::Chat, body, None)
}

fn refused(text: &str) -> (Code, String) {
    let problem = read(text).expect_err(text);
    (problem.code, problem.param.unwrap_or_default())
}

const HI: &str = r#""messages":[{"role":"user","content":"hi"}]"#;

#[test]
fn the_facts() {
    let request = read(
        r#"{"model":"gpt-x","messages":[{"role":"user","content":"hi"}],"stream":true,"n":2,
        "stream_options":{"include_usage":true},"max_tokens":5,"max_completion_tokens":7,"service_tier":"flex",
        "reasoning":{"effort":"high"},"temperature":0.5,"odd":[{"deep":null}]}"#,
    )
    .unwrap();
    assert_eq!(request.model, "gpt-x");
    assert!(request.stream && request.wants_usage);
    assert_eq!((request.choices, request.max_output), (2, Some(7)));
    assert_eq!(request.service_tier.as_deref(), Some("flex"));
    assert_eq!(request.attr("reasoning.effort").as_deref(), Some("high"));
    assert_eq!(request.attr("temperature").as_deref(), Some("0.5"));
    assert_eq!(request.attr("odd"), None);
    assert_eq!(request.attr("nothing.here"), None);
    assert_eq!(request.own_body("gpt-x").as_ptr(), request.body().as_ptr());
}

#[test]
fn null_is_absent() {
    let request =
        read(&format!(r#"{{"model":"m",{HI},"stream":null,"n":null,"max_tokens":null,"stream_options":null}}"#))
            .unwrap();
    assert!(!request.stream && request.max_output.is_none() && request.choices == 1);
}

#[test]
fn refusals_name_the_parameter() {
    use Code::*;
    assert_eq!(refused(""), (InvalidJson, String::new()));
    assert_eq!(refused("[]"), (InvalidJson, String::new()));
    assert_eq!(refused("{"), (InvalidJson, String::new()));
    assert_eq!(refused(&format!(r#"{{"model":"m",{HI}}} x"#)), (InvalidJson, String::new()));
    assert_eq!(refused(&format!("{{{HI}}}")), (MissingParameter, "model".into()));
    assert_eq!(refused(&format!(r#"{{"model":null,{HI}}}"#)), (MissingParameter, "model".into()));
    assert_eq!(refused(&format!(r#"{{"model":"",{HI}}}"#)), (InvalidParameter, "model".into()));
    assert_eq!(refused(&format!(r#"{{"model":7,{HI}}}"#)), (InvalidParameter, "model".into()));
    assert_eq!(refused(r#"{"model":"m"}"#), (MissingParameter, "messages".into()));
    assert_eq!(refused(r#"{"model":"m","messages":[]}"#), (InvalidParameter, "messages".into()));
    assert_eq!(refused(r#"{"model":"m","messages":"hi"}"#), (InvalidParameter, "messages".into()));
    assert_eq!(refused(r#"{"model":"m","messages":["hi"]}"#), (InvalidParameter, "messages[0]".into()));
    let roleless = r#"{"model":"m","messages":[{"role":"user"},{"content":"x"}]}"#;
    assert_eq!(refused(roleless), (MissingParameter, "messages[1].role".into()));
    let numbered = r#"{"model":"m","messages":[{"role":1}]}"#;
    assert_eq!(refused(numbered), (InvalidParameter, "messages[0].role".into()));
    for (name, value) in [
        ("stream", "1"),
        ("stream", "\"true\""),
        ("max_tokens", "-5"),
        ("max_tokens", "1e9"),
        ("max_tokens", "\"5\""),
        ("max_tokens", "99999999999999999999"),
        ("max_completion_tokens", "1.5"),
        ("n", "0"),
        ("n", "129"),
        ("n", "\"2\""),
        ("stream_options", "[]"),
    ] {
        assert_eq!(refused(&format!(r#"{{"model":"m",{HI},"{name}":{value}}}"#)), (InvalidParameter, name.into()));
    }
    let odd = refused(&format!(r#"{{"model":"m",{HI},"stream_options":{{"include_usage":1}}}}"#));
    assert_eq!(odd, (InvalidParameter, "stream_options.include_usage".into()));
}

#[test]
fn a_key_given_twice_is_refused_however_it_is_spelt() {
    for twice in [r#""n":1,"n":100"#, r#""n":1,"\u006e":100"#, r#""model":"dear""#, r#""x":1,"x":2"#] {
        assert_eq!(refused(&format!(r#"{{"model":"m",{HI},{twice}}}"#)).0, Code::InvalidRequest, "{twice}");
    }
    let hidden = format!(r#"{{"model":"m",{HI},"\u0073tream":true}}"#);
    assert!(read(&hidden).unwrap().stream);
    let inner = r#"{"include_usage":true,"include_usage":false}"#;
    assert_eq!(refused(&format!(r#"{{"model":"m",{HI},"stream_options":{inner}}}"#)).0, Code::InvalidParameter);
}

#[test]
fn depth_and_encoding_are_limited() {
    let deep = format!(r#"{{"model":"m",{HI},"x":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    assert_eq!(refused(&deep).0, Code::InvalidJson);
    assert!(read_request(Bytes::from_static(b"{\"model\":\"\xff\"}")).is_err());
}

#[test]
fn usage_is_asked_for_in_every_form() {
    let ask = |options: &str| {
        let request = read(&format!(r#"{{"model":"m",{HI},"stream":true{options}}}"#)).unwrap();
        assert!(!request.wants_usage);
        let sent: Value = serde_json::from_slice(&request.own_body("m")).unwrap();
        assert_eq!(sent["stream_options"]["include_usage"], true, "{options}");
        sent["stream_options"].clone()
    };
    ask("");
    ask(r#","stream_options":null"#);
    ask(r#","stream_options":{}"#);
    ask(r#","stream_options": { } "#);
    ask(r#","stream_options":{"include_usage":false}"#);
    ask(r#","stream_options":{"include_usage" : null }"#);
    let unchanged = ask(r#","stream_options":{ "include_obfuscation":false}"#);
    assert_eq!(unchanged["include_obfuscation"], false);
    let plain = read(&format!(r#"{{"model":"m",{HI},"stream_options":{{}}}}"#)).unwrap();
    assert_eq!(plain.own_body("m"), plain.body());
}

#[test]
fn media_is_not_counted_as_text() {
    let tokens = |content: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":{content}}}]}}"#);
        read(&body).unwrap().prompt_tokens
    };
    let letters = "QUJD".repeat(50_000);
    let picture =
        tokens(&format!(r#"[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{letters}"}}}}]"#));
    assert!((1_000..4_000).contains(&picture), "{picture}");
    let low = tokens(r#"[{"type":"image_url","image_url":{"url":"https://x.example/a.png","detail":"low"}}]"#);
    assert!(low < 150, "{low}");
    let sound = tokens(&format!(r#"[{{"type":"input_audio","input_audio":{{"data":"{letters}","format":"mp3"}}}}]"#));
    assert!((300..2_000).contains(&sound), "{sound}");
    let disguised = tokens(&format!(r#"[{{"type":"text","text":"data:image/png;base64,{letters}"}}]"#));
    assert!(disguised > 50_000, "{disguised}");
    assert!(tokens("null") < 12);
    let tools = read(&format!(
        r#"{{"model":"m",{HI},"tools":[{{"type":"function","function":{{"name":"get_weather","parameters":{{"type":"object"}}}}}}]}}"#
    ));
    assert!(tools.unwrap().prompt_tokens > 20);
}

/// A request with its members in any order and any spacing.
fn any_request() -> impl Strategy<Value = String> {
    let others = prop::collection::btree_map("x_[a-z]{1,6}", "\\PC{0,10}", 0..4);
    let options = prop_oneof![
        Just(None),
        Just(Some("null".to_owned())),
        Just(Some("{}".to_owned())),
        Just(Some(r#"{ "include_usage": false }"#.to_owned())),
        Just(Some(r#"{"a":[1,{}],"include_usage":true}"#.to_owned())),
        Just(Some(r#"{"a":"}"}"#.to_owned())),
    ];
    (others, options, any::<bool>(), "\\PC{1,8}", "[ \n\t]{0,2}", any::<u64>()).prop_map(
        |(others, options, stream, model, space, seed)| {
            let mut members = vec![
                format!(r#""model"{space}:{space}{}"#, json!(model)),
                format!(r#""messages":{}"#, json!([{"role":"user","content":model}])),
                format!(r#""stream":{stream}"#),
            ];
            members.extend(options.map(|o| format!(r#""stream_options":{space}{o}"#)));
            members.extend(others.iter().map(|(k, v)| format!("{}:{}", json!(k), json!(v))));
            let turn = (seed % members.len() as u64) as usize;
            members.rotate_left(turn);
            format!("{space}{{{space}{}{space}}}{space}", members.join(&format!("{space},{space}")))
        },
    )
}

proptest! {
    #[test]
    fn only_two_places_change(text in any_request(), name in "\\PC{1,8}") {
        let request = read(&text).unwrap();
        let sent = request.own_body(&name);
        let mut before: Value = serde_json::from_str(&text).unwrap();
        let mut after: Value = serde_json::from_slice(&sent).unwrap();
        prop_assert_eq!(&after["model"], &Value::from(name));
        if request.stream {
            prop_assert_eq!(&after["stream_options"]["include_usage"], &Value::from(true));
        } else {
            prop_assert_eq!(&after["stream_options"], &before["stream_options"]);
        }
        for value in [&mut before, &mut after] {
            let map = value.as_object_mut().unwrap();
            map.remove("model");
            if let Some(Value::Object(options)) = map.get_mut("stream_options") {
                options.remove("include_usage");
            }
            if map.get("stream_options").is_none_or(|o| o.is_null() || o == &json!({})) {
                map.remove("stream_options");
            }
        }
        prop_assert_eq!(before, after);
        // Byte for byte: what was put in can be taken out again.
        let added = r#","stream_options":{"include_usage":true}"#;
        if request.stream && !text.contains("stream_options") {
            let sent = String::from_utf8(request.own_body(&request.model).to_vec()).unwrap();
            prop_assert_eq!(sent.replacen(added, "", 1), text);
        }
    }

    #[test]
    fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = read_request(Bytes::from(bytes));
    }

    #[test]
    fn damaged_requests_never_panic(text in any_request(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(request) = read_request(Bytes::from(bytes)) {
            let sent = request.own_body("other");
            prop_assert!(serde_json::from_slice::<Value>(&sent).is_ok());
        }
    }
}
