//! Every scenario in every dialect: the same words, the same bill, the same faults in another
//! shape.

use serde_json::{Value, json};

use super::{ALL, Dialect, events, said};
use crate::it::client::{End, sim};

fn usage(dialect: Dialect, reply: &Value) -> (u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    match dialect {
        Dialect::Gemini => {
            let usage = &reply["usageMetadata"];
            let thoughts = usage["thoughtsTokenCount"].as_u64().unwrap_or(0);
            (number(&usage["promptTokenCount"]), number(&usage["candidatesTokenCount"]) + thoughts)
        }
        _ => (number(&reply["usage"]["input_tokens"]), number(&reply["usage"]["output_tokens"])),
    }
}

#[tokio::test]
async fn say_the_same_and_bill_the_same() {
    let sim = sim().await;
    let words = "the gate opens for every coin and counts each one with care";
    for dialect in ALL {
        let whole = dialect.ask(&sim, "sim-plain", &dialect.body("sim-plain", "hello there")).await.json();
        assert_eq!(
            (said(dialect, std::slice::from_ref(&whole)).as_str(), usage(dialect, &whole)),
            (words, (2, 12)),
            "{dialect:?}"
        );
        let answer = dialect.stream(&sim, "sim-plain", &dialect.body("sim-plain", "hello there")).await;
        let values: Vec<_> = events(&answer).into_iter().map(|(_, data)| data).collect();
        let text = if dialect == Dialect::Responses { words.to_string() } else { said(dialect, &values) };
        assert_eq!((text.as_str(), answer.end), (words, End::Whole), "{dialect:?}");
        assert_eq!(answer.chunks.len(), values.len(), "each event is an HTTP chunk of its own");
        let received = sim.received();
        assert!(received.iter().all(|call| call.accepted && call.finished && call.completion_tokens == 12));
        sim.clear();
    }
}

#[tokio::test]
async fn fail_in_the_provider_s_shape() {
    let sim = sim().await;
    for dialect in ALL {
        for status in [400_u16, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529] {
            let model = format!("sim-error{status}");
            let answer = dialect.stream(&sim, &model, &dialect.body(&model, "x")).await;
            let expected = if dialect == Dialect::Gemini && status == 529 { 503 } else { status };
            assert_eq!(answer.status(), expected);
            let body = answer.json();
            assert!(body["error"]["message"].is_string());
            match dialect {
                Dialect::Anthropic => assert!(body["type"] == "error" && body["request_id"].is_string()),
                Dialect::Responses => assert!(body["error"]["type"].is_string() && body["error"].get("code").is_some()),
                Dialect::Gemini => assert!(body["error"]["code"] == expected && body["error"]["status"].is_string()),
            }
        }
        assert_eq!(sim.counts().accepted, 0);
    }
    let unknown =
        Dialect::Gemini.ask(&sim, "m", &Dialect::Gemini.body("m", "[[sim:error400 code=API_KEY_INVALID]]")).await;
    assert_eq!(unknown.json()["error"]["details"][0]["reason"], "API_KEY_INVALID");
}

#[tokio::test]
async fn break_off_where_the_marker_says() {
    let sim = sim().await;
    for dialect in ALL {
        let pieces = async |marker: &str| {
            let answer = dialect.stream(&sim, "m", &dialect.body("m", marker)).await;
            let values: Vec<_> = events(&answer).into_iter().map(|(_, data)| data).collect();
            (answer.end, said(dialect, &values), values)
        };
        for (cut, end) in [("reset", End::Reset), ("fin", End::Closed), ("eof", End::Whole)] {
            let (ended, said, _) = pieces(&format!("[[sim:cut_midstream after=2 cut={cut}]]")).await;
            assert_eq!((ended, said.as_str()), (end, "the gate"), "{dialect:?} {cut}");
        }
        let (end, text, _) = pieces("[[sim:hang_midstream after=2]]").await;
        assert_eq!((end, text.as_str()), (End::Silent, "the gate"), "{dialect:?}");
        let (_, text, values) = pieces("[[sim:error_midstream after=2]]").await;
        assert_eq!(text, "the gate");
        let last = values.last().unwrap();
        match dialect {
            Dialect::Anthropic => {
                assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("api_error")))
            }
            Dialect::Responses => assert_eq!(
                (&last["type"], &values[values.len() - 2]["type"]),
                (&json!("response.failed"), &json!("error"))
            ),
            Dialect::Gemini => assert_eq!(last["error"]["code"], 500),
        }
        let (_, text, values) = pieces("[[sim:error_first]]").await;
        assert!(text.is_empty() && values.len() <= 2, "{dialect:?}");
    }
    let bare = Dialect::Gemini
        .stream(&sim, "m", &Dialect::Gemini.body("m", "[[sim:error_midstream after=1 kind=bare]]"))
        .await;
    assert!(bare.text().ends_with("}\n") && bare.text().contains("\n{\n  \"error\""));
}

#[tokio::test]
async fn end_without_their_marks() {
    let sim = sim().await;
    let ends = async |dialect: Dialect, model: &str| {
        let answer = dialect.stream(&sim, model, &dialect.body(model, "x")).await;
        events(&answer).pop().unwrap().1
    };
    assert_eq!(ends(Dialect::Anthropic, "sim-no_done").await["type"], "message_delta");
    assert_eq!(ends(Dialect::Responses, "sim-no_done").await["type"], "response.output_item.done");
    assert_eq!(ends(Dialect::Responses, "sim-no_finish").await["type"], "response.output_item.done");
    assert!(ends(Dialect::Gemini, "sim-no_finish").await["candidates"][0].get("finishReason").is_none());
}

#[tokio::test]
async fn report_usage_as_the_marker_says() {
    let sim = sim().await;
    for dialect in ALL {
        let reply = async |marker: &str| dialect.ask(&sim, "m", &dialect.body("m", marker)).await.json();
        let name = if dialect == Dialect::Gemini { "usageMetadata" } else { "usage" };
        assert!(reply("[[sim:no_usage]]").await[name].is_null(), "{dialect:?}");
        let output = if dialect == Dialect::Gemini { "candidatesTokenCount" } else { "output_tokens" };
        for (kind, expected) in
            [("negative", json!(-5)), ("huge", json!(u64::MAX)), ("strings", json!("many")), ("null", Value::Null)]
        {
            let reply = reply(&format!("[[sim:wrong_usage kind={kind}]]")).await;
            assert_eq!(reply[name][output], expected, "{dialect:?} {kind}");
        }
        assert_eq!(reply("[[sim:zero_usage_last]]").await[name][output], 0);
        let cached = reply("[[sim:cached prompt=100 cached=60]]").await;
        assert!(cached[name].to_string().contains("60"));
    }
}

#[tokio::test]
async fn stop_refuse_and_fill_schemas() {
    let sim = sim().await;
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for dialect in ALL {
        let mut body = dialect.body("sim-plain", "as JSON");
        match dialect {
            Dialect::Anthropic => body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}}),
            Dialect::Responses => {
                body["text"] = json!({"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": true}})
            }
            Dialect::Gemini => {
                body["generationConfig"] =
                    json!({"responseMimeType": "application/json", "responseJsonSchema": schema});
            }
        }
        let reply = dialect.ask(&sim, "sim-plain", &body).await.json();
        assert_eq!(said(dialect, &[reply]), "{\"n\":7}", "{dialect:?}");
        let refused = dialect.ask(&sim, "sim-refused", &dialect.body("sim-refused", "x")).await.json();
        match dialect {
            Dialect::Anthropic => assert_eq!(refused["stop_reason"], "refusal"),
            Dialect::Responses => assert_eq!(refused["output"][0]["content"][0]["type"], "refusal"),
            Dialect::Gemini => assert_eq!(refused["candidates"][0]["finishReason"], "SAFETY"),
        }
    }
    for dialect in ALL {
        let mut body = dialect.body("sim-plain", "x");
        let functions = |name: &str| json!({"type": "function", "name": name, "parameters": schema});
        match dialect {
            Dialect::Anthropic => {
                body["tools"] =
                    json!([{"name": "shell", "input_schema": schema}, {"name": "look", "input_schema": schema}]);
                body["tool_choice"] = json!({"type": "tool", "name": "look"});
            }
            Dialect::Responses => {
                body["tools"] = json!([functions("shell"), functions("look")]);
                body["tool_choice"] = json!({"type": "function", "name": "look"});
            }
            Dialect::Gemini => {
                body["tools"] = json!([{"functionDeclarations": [{"name": "shell"}, {"name": "look"}]}]);
                body["toolConfig"] =
                    json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}});
            }
        }
        let reply = dialect.ask(&sim, "sim-plain", &body).await.json().to_string();
        assert_eq!(
            (reply.matches("\"look\"").count(), said(dialect, &[json!(reply)]).as_str()),
            (1, ""),
            "a call is forced: {reply}"
        );
    }
    let mut body = Dialect::Anthropic.body("sim-agent", "x");
    assert_eq!(
        Dialect::Anthropic.ask(&sim, "m", &body).await.json()["stop_reason"],
        "end_turn",
        "no tools are offered"
    );
    body["tools"] = json!([{"name": "shell", "input_schema": schema}, {"name": "look", "input_schema": schema}]);
    body["messages"][0]["content"] = json!("[[sim:tool=look args={\"n\":[1]}]]");
    let call = Dialect::Anthropic.ask(&sim, "m", &body).await.json()["content"].clone();
    assert_eq!(
        (&call[0]["name"], &call[0]["input"], call.as_array().unwrap().len()),
        (&json!("look"), &json!({"n": [1]}), 1)
    );
    let mut body = Dialect::Anthropic.body("sim-plain", "x");
    body["stop_sequences"] = json!([" for"]);
    let reply = Dialect::Anthropic.ask(&sim, "m", &body).await.json();
    assert_eq!((&reply["stop_reason"], &reply["stop_sequence"]), (&json!("stop_sequence"), &json!(" for")));
    assert_eq!(said(Dialect::Anthropic, &[reply]), "the gate opens");
}

#[tokio::test]
async fn frame_oddly_and_at_length() {
    let sim = sim().await;
    for dialect in ALL {
        for model in ["sim-crlf", "sim-comments", "sim-framing", "sim-split_utf8", "sim-u2028", "sim-after_done"] {
            let answer = dialect.stream(&sim, model, &dialect.body(model, "x")).await;
            assert_eq!((answer.status(), answer.end), (200, End::Whole), "{dialect:?} {model}");
        }
        let answer = dialect.stream(&sim, "sim-huge_line-2", &dialect.body("sim-huge_line-2", "x")).await;
        let longest = answer.text().lines().map(str::len).max().unwrap();
        assert!(longest > 2 << 20 && longest < (2 << 20) + 400, "{dialect:?} {longest}");
        events(&answer);
        let answer = dialect.stream(&sim, "sim-faststream-250", &dialect.body("sim-faststream-250", "x")).await;
        let pieces = events(&answer).iter().filter(|(_, data)| data.to_string().contains("\" coin\"")).count();
        assert!(pieces >= 250, "{dialect:?} {pieces}");
    }
    assert!(sim.received().iter().all(|call| call.scenario != "faststream"));
}
