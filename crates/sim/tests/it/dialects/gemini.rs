//! Gemini: strictness, shapes, lists and events, and a tool turn with signatures.

use serde_json::{Value, json};
use tollgate_sim::{Sim, SimSettings};

use super::{Dialect::Gemini, events, refusals};
use crate::it::client::{read, request, request_with, sim};

fn user(parts: Value) -> Value {
    json!({"role": "user", "parts": parts})
}

fn model(parts: Value) -> Value {
    json!({"role": "model", "parts": parts})
}

#[tokio::test]
async fn refuses_what_google_refuses() {
    let sim = sim().await;
    let call = json!({"functionCall": {"name": "look", "args": {}}});
    let result = json!({"functionResponse": {"name": "look", "response": {"output": "fine"}}});
    let hi = user(json!([{"text": "hi"}]));
    let part = |part: Value| json!({"contents": [user(json!([part]))]});
    let declared = |function: Value| json!({"tools": [{"functionDeclarations": [function]}]});
    let config = |config: Value| json!({"generationConfig": config});
    refusals(Gemini, &sim, "m", &[
        (json!({"-": "contents"}), "contents: must be set"),
        (json!({"contents": []}), "contents is not specified"),
        (json!({"messages": []}), "Unknown name \"messages\": Cannot find field"),
        (json!({"stream": true}), "Unknown name \"stream\""),
        (json!({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}), "valid role: user, model"),
        (json!({"contents": [model(json!([{"text": "x"}])), hi]}), "begin with a user turn"),
        (json!({"contents": [hi, model(json!([{"text": "x"}]))]}), "end with a user role"),
        (json!({"contents": [user(json!([]))]}), "must not be empty"),
        (part(json!({})), "oneof field 'data'"),
        (part(json!({"text": "x", "inlineData": {"mimeType": "image/png", "data": "AAAA"}})), "oneof field 'data'"),
        (part(json!({"text": "x", "cache_control": {}})), "Unknown name \"cache_control\" at 'contents[0].parts[0]'"),
        (part(json!({"inline_data": {"mime_type": "image/png", "data": "_-__"}})), ""),
        (part(json!({"inlineData": {"mimeType": "image/png", "data": "%"}})), "Base64 decoding failed"),
        (part(json!({"fileData": {"fileUri": "https://example.com/a.png"}})), "Unsupported file uri"),
        (part(json!({"text": "x", "thoughtSignature": "not base64!"})), "Base64 decoding failed"),
        (part(json!({"text": "x", "thoughtSignature": "Zm9yZ2Vk"})), "Thought signature is not valid"),
        (json!({"contents": [hi, model(json!([call, call])), user(json!([result]))]}), "number of function response parts"),
        (json!({"contents": [hi, model(json!([call])), hi]}), "number of function response parts"),
        (json!({"contents": [hi, user(json!([result]))]}), "immediately after a function call turn"),
        (json!({"contents": [hi, model(json!([call, call])), user(json!([result, result]))]}), ""),
        (json!({"contents": [hi, model(json!([call])), user(json!([{"functionResponse": {"name": "look", "response": "x"}}]))]}), "response is an object"),
        (json!({"contents": [hi, model(json!([call])), user(json!([{"functionResponse": {"name": "look", "response": {"$ref": "#"}}}]))]}), "undefined schema"),
        (declared(json!({"name": "1st"})), "Must start with a letter"),
        (declared(json!({"name": "x", "parameters": {"type": "object", "additionalItems": 1}})), "Unknown name \"additionalItems\""),
        (declared(json!({"name": "x", "parameters": {"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}}}})), "Unknown name \"exclusiveMinimum\""),
        (declared(json!({"name": "x", "parametersJsonSchema": {"exclusiveMinimum": 0}})), ""),
        (declared(json!({"name": "x", "strict": true})), "Unknown name \"strict\""),
        (json!({"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["x"]}}}), "should only be set when"),
        (json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}), "no function declarations"),
        (part(json!({"inlineData": {"mimeType": "image/svg+xml", "data": "AAAA"}})), "Unsupported MIME type"),
        (json!({"contents": [hi, model(json!([{"text": "x"}])), model(json!([call])), user(json!([result]))]}), "immediately after a user turn"),
        (json!({"tools": [{"functionDeclarations": [{"name": "x"}, {"name": "x"}]}]}), "Duplicate function declaration"),
        (declared(json!({"name": "x", "parameters": {"type": "array"}})), "items: missing field"),
        (declared(json!({"name": "x", "parameters": {"type": "object", "properties": {"n": {"type": "integer", "enum": [1]}}}})), "(TYPE_STRING), 1"),
        (declared(json!({"name": "x", "parameters": {"type": "object", "properties": {}, "required": ["n"]}})), "property is not defined"),
        (config(json!({"max_output_tokens": 20})), ""),
        (config(json!({"maxTokens": 20})), "Unknown name \"maxTokens\" at 'generationConfig'"),
        (config(json!({"responseJsonSchema": {"type": "object"}})), "response_mime_type"),
        (config(json!({"thinkingConfig": {"thinkingBudget": 5, "thinkingLevel": "LOW"}})), "only set one of"),
        (config(json!({"stopSequences": ["a", "b", "c", "d", "e", "f"]})), "stop sequences is 5"),
        (json!({"systemInstruction": "be brief"}), "systemInstruction"),
        (json!({"safetySettings": [{"category": "X", "threshold": "OFF"}]}), "category"),
    ]).await;
}

#[tokio::test]
async fn knows_keys_in_header_and_query() {
    let sim = Sim::start(SimSettings { require_key: Some("z".into()), ..SimSettings::default() }).await.unwrap();
    let body = Gemini.body("m", "x").to_string();
    let path = "/v1/models/sim-plain:generateContent";
    let refused = read(request(&sim, "POST", path, &body).await).await;
    assert_eq!((refused.status(), &refused.json()["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
    assert_eq!(read(request_with(&sim, "POST", path, "x-goog-api-key: z\r\n", &body).await).await.status(), 200);
    assert_eq!(read(request(&sim, "POST", &format!("{path}?key=z"), &body).await).await.status(), 200);
}

#[tokio::test]
async fn streams_events_or_one_list() {
    let sim = sim().await;
    let mut body = Gemini.body("m", "one two");
    body["generationConfig"] = json!({"thinkingConfig": {"includeThoughts": true}});
    let answer = Gemini.stream(&sim, "sim-reasoning", &body).await;
    let events = events(&answer);
    assert!(events.iter().all(|(name, _)| name.is_empty()), "no event lines");
    let thoughts = events.iter().filter(|(_, data)| data["candidates"][0]["content"]["parts"][0]["thought"] == true);
    assert_eq!(thoughts.count(), 7);
    let usage = &events.last().unwrap().1["usageMetadata"];
    assert_eq!((&usage["candidatesTokenCount"], &usage["thoughtsTokenCount"]), (&json!(12), &json!(7)));
    assert_eq!(events.last().unwrap().1["candidates"][0]["finishReason"], "STOP");
    let path = "/v1beta/models/sim-reasoning:streamGenerateContent";
    let list = read(request(&sim, "POST", path, &body.to_string()).await).await;
    assert!(list.head.contains("content-type: application/json"));
    assert_eq!(list.json().as_array().unwrap().len(), events.len());
    let count =
        read(request(&sim, "POST", "/v1beta/models/m:countTokens", &Gemini.body("m", "a b").to_string()).await).await;
    assert_eq!(count.json()["totalTokens"], 2);
}

#[tokio::test]
async fn a_tool_turn_needs_its_signature_back() {
    let sim = sim().await;
    let mut body = Gemini.body("m", "weather?");
    let schema = json!({"type": "OBJECT", "properties": {"city": {"type": "STRING"}}});
    body["tools"] = json!([{"functionDeclarations": [{"name": "look", "parameters": schema}]}]);
    let first = Gemini.ask(&sim, "sim-reasoning_tools", &body).await.json();
    let parts = first["candidates"][0]["content"]["parts"].as_array().unwrap().clone();
    assert!(parts[0]["thoughtSignature"].is_string() && parts[1].get("thoughtSignature").is_none());
    assert_eq!(parts[0]["functionCall"]["args"], json!({"city": "Paris"}));
    let result = json!({"functionResponse": {"name": "look", "response": {"output": "sunny"}}});
    let with = |parts: &[Value]| {
        let mut body = body.clone();
        let results: Vec<_> = parts.iter().map(|_| result.clone()).collect();
        body["contents"].as_array_mut().unwrap().extend([model(json!(parts)), user(json!(results))]);
        body
    };
    let ask = async |parts: &[Value]| Gemini.ask(&sim, "sim-reasoning_tools", &with(parts)).await;
    assert_eq!(ask(&parts).await.status(), 200);
    let unsigned = json!({"functionCall": parts[0]["functionCall"]});
    assert!(ask(&[unsigned.clone(), parts[1].clone()]).await.text().contains("missing a thought_signature"));
    let mut moved = parts.clone();
    moved[0]["functionCall"]["args"] = json!({"city": "Rome"});
    assert!(ask(&moved).await.text().contains("Thought signature is not valid"));
    for stand_in in ["skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="] {
        let mut part = unsigned.clone();
        part["thoughtSignature"] = json!(stand_in);
        assert_eq!(ask(&[part]).await.status(), 200, "{stand_in}");
    }
    let plain = Gemini.ask(&sim, "sim-tools", &body).await.json();
    let call = &plain["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert!(call.get("id").is_none(), "calls of models that do not think have no id");
}

/// 2.5 Pro, Flash and Flash-Lite.
#[tokio::test]
async fn budgets_are_taken_within_the_range_of_the_model() {
    let sim = sim().await;
    let thinking = |thinking: Value| json!({"generationConfig": {"thinkingConfig": thinking}});
    for (model, table) in [
        (
            "sim-budget-128-32768",
            [(-1, ""), (0, "only works in thinking mode"), (127, "between 128 and"), (32_768, ""), (32_769, "32768")],
        ),
        ("sim-budget-0-24576", [(-1, ""), (0, ""), (1, ""), (24_576, ""), (24_577, "between 0 and 24576")]),
        ("sim-budget-512-24576-off", [(-1, ""), (0, ""), (511, "between 512"), (512, ""), (24_577, "24576")]),
    ] {
        let rows = table.map(|(budget, expected)| (thinking(json!({"thinkingBudget": budget})), expected));
        refusals(Gemini, &sim, model, &rows).await;
        refusals(Gemini, &sim, model, &[(thinking(json!({"thinkingLevel": "LOW"})), "level is not supported")]).await;
    }
}
