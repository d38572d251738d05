//! 3.3: structured output and schemas.

use super::*;

fn asked(schema: Value) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "q"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "out", "schema": schema, "strict": true}}})
}

#[test]
fn case_48_without_native_support_the_schema_is_told_in_words() {
    let mut target = Target::new(A, "up");
    target.native_schema = false;
    let (body, _) = try_sent(C, &target, &asked(json!({"type": "object"}))).unwrap();
    assert!(
        body.get("output_config").is_none()
            && body["system"].as_str().unwrap().contains(r#"{"title":"out","type":"object"}"#)
    );
}

#[test]
fn case_49_and_50_limits_are_told_and_references_moved() {
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
    let kept = &sent(C, A, asked(schema))["output_config"]["format"]["schema"]["properties"];
    assert_eq!(kept, &names);
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
