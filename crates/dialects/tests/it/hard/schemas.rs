//! 3.3: structured output and schemas.

use super::*;

fn asked(schema: Value) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "q"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "out", "schema": schema, "strict": true}}})
}

#[test]
fn case_48_without_native_support_the_schema_is_put_in_words() {
    let mut target = Target::new(A, "up");
    target.native_schema = false;
    let (body, _) = try_sent(C, &target, &asked(json!({"type": "object"}))).unwrap();
    assert!(
        body.get("output_config").is_none()
            && body["system"].as_str().unwrap().contains(r#"{"title":"out","type":"object"}"#)
    );
}

#[test]
fn case_49_and_50_limits_are_reported_and_references_moved() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "r": {"$ref": "#/definitions/x"}}, "definitions": {"x": {"type": "object"}}});
    let schema = &sent(C, A, asked(schema))["output_config"]["format"]["schema"];
    assert_eq!(schema["properties"]["n"], json!({"type": "integer", "description": "(minimum: 1)"}));
    assert_eq!(schema["properties"]["r"], json!({"$ref": "#/$defs/x"}));
    assert_eq!(schema["$defs"]["x"]["additionalProperties"], false);
}

#[test]
fn case_52_a_property_is_no_keyword() {
    let names = json!({"minimum": {"type": "integer"}, "format": {"type": "string"}, "default": {"type": "string"}, "uniqueItems": {"type": "boolean"}});
    let schema = json!({"type": "object", "properties": names, "required": ["minimum"]});
    let properties = &sent(C, A, asked(schema))["output_config"]["format"]["schema"]["properties"];
    assert_eq!(properties, &names);
}

#[test]
fn case_51_to_54_gemini_gets_json_schema_as_it_is() {
    let schema = json!({"$schema": "x", "type": "object", "properties": {"format": {"const": 1}, "default": {}, "me": {"$ref": "#"}}, "propertyNames": {"pattern": "^a"}});
    let mut body = asked(schema.clone());
    body["tools"] = json!([{"type": "function", "function": {"name": "f", "parameters": schema}}]);
    let body = sent(C, G, body);
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"], schema);
    // But for the name it has in a field of its own elsewhere.
    let mut named = schema;
    named["title"] = json!("out");
    assert_eq!(body["generationConfig"]["responseJsonSchema"], named);
}

#[test]
fn case_55_numbers_as_text_become_numbers() {
    let body = json!({"contents": [{"parts": [{"text": "q"}]}], "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "ARRAY", "minItems": "1"}}]}]});
    assert_eq!(sent(G, C, body)["tools"][0]["function"]["parameters"]["minItems"], 1);
}

#[test]
fn case_56_a_reference_in_a_result_is_text_for_gemini() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "{\"$ref\":\"#/x\"}"}]});
    assert_eq!(
        sent(C, G, body)["contents"][2]["parts"][0]["functionResponse"]["response"],
        json!({"output": "{\"$ref\":\"#/x\"}"})
    );
}

#[test]
fn case_57_responses_takes_the_flat_form() {
    let format = &sent(C, R, asked(json!({"type": "object"})))["text"]["format"];
    assert_eq!(format, &json!({"type": "json_schema", "name": "out", "schema": {"type": "object"}, "strict": true}));
}

/// A request of Gemini's with one schema: of a tool's arguments, or of the answer.
fn with_schema(of_answer: bool, schema: &str) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap();
    match of_answer {
        true => json!({"contents": [{"parts": [{"text": "q"}]}], "generationConfig": {"responseSchema": schema}}),
        false => json!({"contents": [{"parts": [{"text": "q"}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parameters": schema}]}]}),
    }
}

/// Every member of Gemini's `Schema`, in a property: its schema without the member, and with it.
const GEMINI_MEMBERS: &[(&str, &str)] = &[
    ("{}", r#"{"type":"STRING"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","nullable":true}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","enum":["a"]}"#),
    (r#"{"type":"INTEGER"}"#, r#"{"type":"INTEGER","format":"int64"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","description":"d"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","title":"t"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","default":"x"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","example":"x"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","pattern":"^x"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","minLength":"1"}"#),
    (r#"{"type":"STRING"}"#, r#"{"type":"STRING","maxLength":"1"}"#),
    (r#"{"type":"NUMBER"}"#, r#"{"type":"NUMBER","minimum":1}"#),
    (r#"{"type":"NUMBER"}"#, r#"{"type":"NUMBER","maximum":1}"#),
    (r#"{"type":"ARRAY"}"#, r#"{"type":"ARRAY","items":{"type":"STRING"}}"#),
    (r#"{"type":"ARRAY"}"#, r#"{"type":"ARRAY","minItems":"1"}"#),
    (r#"{"type":"ARRAY"}"#, r#"{"type":"ARRAY","maxItems":"1"}"#),
    (r#"{"type":"OBJECT"}"#, r#"{"type":"OBJECT","properties":{"a":{}}}"#),
    (r#"{"type":"OBJECT"}"#, r#"{"type":"OBJECT","required":["a"]}"#),
    (r#"{"type":"OBJECT"}"#, r#"{"type":"OBJECT","minProperties":"1"}"#),
    (r#"{"type":"OBJECT"}"#, r#"{"type":"OBJECT","maxProperties":"1"}"#),
    (r#"{"type":"OBJECT"}"#, r#"{"type":"OBJECT","additionalProperties":{"type":"STRING"}}"#),
    (
        r#"{"type":"OBJECT","properties":{"a":{},"b":{}}}"#,
        r#"{"type":"OBJECT","properties":{"a":{},"b":{}},"propertyOrdering":["b","a"]}"#,
    ),
    (r#"{"type":"OBJECT"}"#, r#"{"type":"OBJECT","propertyOrdering":["b"]}"#),
    ("{}", r#"{"anyOf":[{"type":"STRING"}]}"#),
    ("{}", r##"{"ref":"#/defs/P"}"##),
    ("{}", r##"{"$ref":"#/$defs/P"}"##),
    ("{}", r#"{"defs":{"P":{}}}"#),
    ("{}", r#"{"$defs":{"P":{}}}"#),
];

#[test]
fn no_member_of_a_gemini_schema_disappears_in_silence() {
    // By its text: the order of properties counts.
    let outcome = |to: Dialect, of_answer: bool, inner: &str| {
        let root = format!(r#"{{"type":"OBJECT","properties":{{"p":{inner}}}}}"#);
        let (_, sent) = try_sent(G, &Target::new(to, "up"), &with_schema(of_answer, &root)).unwrap();
        (String::from_utf8(sent.body.to_vec()).unwrap(), sent.dropped.to_string())
    };
    for (without, with) in GEMINI_MEMBERS {
        for (to, of_answer) in [(C, false), (C, true), (A, false), (A, true), (R, false), (R, true)] {
            assert_ne!(outcome(to, of_answer, with), outcome(to, of_answer, without), "{to:?} {of_answer} {with}");
        }
    }
}

#[test]
fn a_root_that_is_no_object_is_reported() {
    let nullable = with_schema(false, r#"{"type":"OBJECT","nullable":true}"#);
    for to in [C, A] {
        assert_eq!(
            dropped(G, to, nullable.clone()),
            "tools[0].functionDeclarations[0].parameters.type",
            "Gemini to {to:?}"
        );
    }
    let tool = json!({"model": "m", "messages": [{"role": "user", "content": "q"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]});
    assert_eq!(dropped(C, A, tool), "tools[0].function.parameters.type");
}

#[test]
fn an_object_that_was_open_in_so_many_words_is_reported_where_all_are_closed() {
    let map =
        json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}}});
    assert_eq!(dropped(C, A, asked(map)), "response_format.json_schema.schema.additionalProperties");
    let plain = json!({"type": "object", "properties": {"m": {"type": "object"}}});
    assert_eq!(dropped(C, A, asked(plain)), "");
}

#[test]
fn strict_is_asked_of_openai_only_for_schemas_that_it_takes() {
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let mut optional = closed.clone();
    optional["properties"]["b"] = json!({"type": "string"});
    let body = |schema: &Value| {
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}},
            "tools": [{"name": "f", "input_schema": schema, "strict": true}]})
    };
    let chat = |schema: &Value| sent(A, C, body(schema));
    assert_eq!(chat(&closed)["response_format"]["json_schema"]["strict"], true);
    assert_eq!(chat(&closed)["tools"][0]["function"]["strict"], true);
    let loose = chat(&optional);
    assert_eq!(loose["response_format"]["json_schema"], json!({"name": "answer", "schema": optional}));
    assert!(loose["tools"][0]["function"].get("strict").is_none());
    let responses = |schema: &Value| sent(A, R, body(schema));
    assert_eq!(responses(&closed)["text"]["format"]["strict"], true);
    assert_eq!(responses(&closed)["tools"][0]["strict"], true);
    assert!(responses(&optional)["text"]["format"].get("strict").is_none());
    assert_eq!(responses(&optional)["tools"][0]["strict"], false);
    for to in [C, R] {
        assert_eq!(dropped(A, to, body(&optional)), "tools[0].strict");
        assert_eq!(dropped(A, to, body(&closed)), "");
    }
    // Who speaks OpenAI's words is refused by it, as there.
    assert_eq!(sent(C, R, asked(optional))["text"]["format"]["strict"], true);
}
