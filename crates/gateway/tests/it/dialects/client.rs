//! Clients of the four dialects, as small as a test can use them: how each asks, and what it reads
//! out of an answer.

use crate::house::House;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tollgate_wire::Dialect;

/// A client of one dialect.
#[derive(Clone, Copy, Debug)]
pub struct Client(pub Dialect);

impl Client {
    pub fn all() -> [Client; 4] {
        Dialect::ALL.map(Client)
    }

    /// A request with one user turn.
    pub fn body(self, model: &str, text: &str, stream: bool) -> Value {
        let said = json!([{ "role": "user", "content": text }]);
        match self.0 {
            Dialect::Chat if stream => {
                json!({ "model": model, "messages": said, "stream": true, "stream_options": { "include_usage": true } })
            }
            Dialect::Chat => json!({ "model": model, "messages": said }),
            Dialect::Anthropic => json!({ "model": model, "max_tokens": 1_000, "messages": said, "stream": stream }),
            Dialect::Responses => json!({ "model": model, "input": said, "stream": stream }),
            Dialect::Gemini => json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] }),
        }
    }

    /// The path for a model; Gemini's says whether the answer is streamed.
    pub fn path(self, model: &str, stream: bool) -> String {
        match self.0 {
            Dialect::Chat => "/v1/chat/completions".to_owned(),
            Dialect::Anthropic => "/v1/messages".to_owned(),
            Dialect::Responses => "/v1/responses".to_owned(),
            Dialect::Gemini if stream => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
            Dialect::Gemini => format!("/v1beta/models/{model}:generateContent"),
        }
    }

    /// A request with the key where this dialect's SDK has it.
    pub fn post(self, house: &House, path: &str, body: &Value) -> RequestBuilder {
        let request = house.http.post(house.url(path)).json(body);
        match self.0 {
            Dialect::Chat | Dialect::Responses => request.bearer_auth(&house.key),
            Dialect::Anthropic => request.header("x-api-key", &house.key).header("anthropic-version", "2023-06-01"),
            Dialect::Gemini => request.header("x-goog-api-key", &house.key),
        }
    }

    pub async fn ask(self, house: &House, model: &str, text: &str, stream: bool) -> Response {
        let body = self.body(model, text, stream);
        self.post(house, &self.path(model, stream), &body).send().await.expect("a reply")
    }

    /// The text of a whole reply.
    pub fn text(self, reply: &Value) -> String {
        let list = match self.0 {
            Dialect::Chat => return reply["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned(),
            Dialect::Anthropic => &reply["content"],
            Dialect::Responses => {
                let said = reply["output"].as_array().into_iter().flatten().find(|item| item["type"] == "message");
                return said.and_then(|item| item["content"][0]["text"].as_str()).unwrap_or_default().to_owned();
            }
            Dialect::Gemini => &reply["candidates"][0]["content"]["parts"],
        };
        let parts = list.as_array().into_iter().flatten().filter(|part| part["thought"] != true);
        parts.filter_map(|part| part["text"].as_str()).collect()
    }

    /// The text of a stream.
    pub fn streamed_text(self, events: &[Value]) -> String {
        let piece = |event: &Value| -> Option<String> {
            Some(match self.0 {
                Dialect::Chat => event["choices"][0]["delta"]["content"].as_str()?.to_owned(),
                Dialect::Anthropic => event["delta"]["text"].as_str()?.to_owned(),
                Dialect::Responses if event["type"] == "response.output_text.delta" => {
                    event["delta"].as_str()?.to_owned()
                }
                Dialect::Responses => return None,
                Dialect::Gemini => self.text(event),
            })
        };
        events.iter().filter_map(piece).collect()
    }

    /// Input and output as a reply or the events of a stream tell them.
    pub fn usage(self, events: &[Value]) -> (u64, u64) {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let mut usage = (0, 0);
        for event in events {
            let report = match self.0 {
                Dialect::Chat | Dialect::Anthropic => &event["usage"],
                Dialect::Responses if event["response"].is_object() => &event["response"]["usage"],
                Dialect::Responses => &event["usage"],
                Dialect::Gemini => &event["usageMetadata"],
            };
            if !report.is_object() {
                continue;
            }
            usage = match self.0 {
                Dialect::Chat => (number(&report["prompt_tokens"]), number(&report["completion_tokens"])),
                Dialect::Anthropic | Dialect::Responses => {
                    (number(&report["input_tokens"]), number(&report["output_tokens"]))
                }
                Dialect::Gemini => {
                    let thoughts = number(&report["thoughtsTokenCount"]);
                    (number(&report["promptTokenCount"]), number(&report["candidatesTokenCount"]) + thoughts)
                }
            };
        }
        usage
    }

    /// Whether the last event says that all was said.
    pub fn is_whole(self, text: &str, events: &[Value]) -> bool {
        let last = events.last().unwrap_or(&Value::Null);
        match self.0 {
            Dialect::Chat => text.ends_with("data: [DONE]\n\n"),
            Dialect::Anthropic => last["type"] == "message_stop",
            Dialect::Responses => last["type"] == "response.completed",
            Dialect::Gemini => last["candidates"][0]["finishReason"].is_string(),
        }
    }

    /// The error that ends a stream.
    pub fn error_in(self, events: &[Value]) -> Option<&Value> {
        let last = events.last()?;
        match self.0 {
            Dialect::Anthropic if last["type"] != "error" => None,
            Dialect::Responses => Some(&last["response"]["error"]).filter(|error| error.is_object()),
            _ => Some(&last["error"]).filter(|error| error.is_object()),
        }
    }

    /// The request with a tool, and with thinking where the model is to think.
    pub fn with_tools(self, mut body: Value, thinking: bool) -> Value {
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let tool = json!({ "name": "weather", "description": "The weather of a city" });
        let with = |mut tool: Value, name: &str| {
            tool[name] = schema.clone();
            tool
        };
        match self.0 {
            Dialect::Chat => {
                body["tools"] = json!([{ "type": "function", "function": with(tool, "parameters") }]);
                if thinking {
                    body["reasoning_effort"] = json!("high");
                }
            }
            Dialect::Anthropic => {
                body["tools"] = json!([with(tool, "input_schema")]);
                if thinking {
                    body["max_tokens"] = json!(4_000);
                    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 1_024 });
                }
            }
            Dialect::Responses => {
                let mut tool = with(tool, "parameters");
                tool["type"] = json!("function");
                tool["strict"] = json!(false);
                body["tools"] = json!([tool]);
                if thinking {
                    body["reasoning"] = json!({ "effort": "high", "summary": "auto" });
                    body["include"] = json!(["reasoning.encrypted_content"]);
                    body["store"] = json!(false);
                }
            }
            Dialect::Gemini => {
                body["tools"] = json!([{ "functionDeclarations": [with(tool, "parameters")] }]);
                if thinking {
                    body["generationConfig"] = json!({ "thinkingConfig": { "includeThoughts": true } });
                }
            }
        }
        body
    }

    /// The tool calls of a whole reply: id and name.
    pub fn calls(self, reply: &Value) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match self.0 {
            Dialect::Chat => {
                let calls = list(&reply["choices"][0]["message"]["tool_calls"]);
                calls.iter().map(|call| (text(&call["id"]), text(&call["function"]["name"]))).collect()
            }
            Dialect::Anthropic => {
                let blocks = list(&reply["content"]).into_iter().filter(|block| block["type"] == "tool_use");
                blocks.map(|block| (text(&block["id"]), text(&block["name"]))).collect()
            }
            Dialect::Responses => {
                let items = list(&reply["output"]).into_iter().filter(|item| item["type"] == "function_call");
                items.map(|item| (text(&item["call_id"]), text(&item["name"]))).collect()
            }
            Dialect::Gemini => {
                let parts = list(&reply["candidates"][0]["content"]["parts"]);
                let calls = parts.iter().map(|part| &part["functionCall"]).filter(|call| call.is_object());
                calls.map(|call| (text(&call["id"]), text(&call["name"]))).collect()
            }
        }
    }

    /// The next request of the conversation: the answer as it came, then a result for each of its
    /// calls.
    pub fn next_turn(self, mut body: Value, reply: &Value) -> Value {
        let calls = self.calls(reply);
        let field = match self.0 {
            Dialect::Chat | Dialect::Anthropic => "messages",
            Dialect::Responses => "input",
            Dialect::Gemini => "contents",
        };
        let said = body[field].as_array_mut().expect("a conversation");
        match self.0 {
            Dialect::Chat => {
                said.push(reply["choices"][0]["message"].clone());
                said.extend(
                    calls.iter().map(|(id, _)| json!({ "role": "tool", "tool_call_id": id, "content": "sunny" })),
                );
            }
            Dialect::Anthropic => {
                said.push(json!({ "role": "assistant", "content": reply["content"] }));
                let result = |(id, _): &(String, String)| json!({ "type": "tool_result", "tool_use_id": id, "content": "sunny" });
                said.push(json!({ "role": "user", "content": calls.iter().map(result).collect::<Vec<_>>() }));
            }
            Dialect::Responses => {
                said.extend(reply["output"].as_array().cloned().unwrap_or_default());
                let result = |(id, _): &(String, String)| json!({ "type": "function_call_output", "call_id": id, "output": "sunny" });
                said.extend(calls.iter().map(result));
            }
            Dialect::Gemini => {
                said.push(reply["candidates"][0]["content"].clone());
                let result = |(id, name): &(String, String)| json!({ "functionResponse": { "id": id, "name": name, "response": { "output": "sunny" } } });
                said.push(json!({ "role": "user", "parts": calls.iter().map(result).collect::<Vec<_>>() }));
            }
        }
        body
    }

    /// Whether a whole reply shows thoughts.
    pub fn has_thoughts(self, reply: &Value) -> bool {
        let text = reply.to_string();
        let marks: &[&str] = match self.0 {
            // Thoughts that only their maker can read are there without any text.
            Dialect::Chat => &["\"reasoning_content\"", "\"reasoning.encrypted\""],
            Dialect::Anthropic => &["\"type\":\"thinking\"", "\"type\":\"redacted_thinking\""],
            Dialect::Responses => &["\"type\":\"reasoning\""],
            Dialect::Gemini => &["\"thought\":true", "\"thoughtSignature\""],
        };
        marks.iter().any(|mark| text.contains(mark))
    }

    /// The model that an answer names.
    pub fn model(self, reply: &Value) -> &str {
        let name = if self.0 == Dialect::Gemini { &reply["modelVersion"] } else { &reply["model"] };
        name.as_str().unwrap_or_default()
    }
}

/// Our word for an error, wherever its dialect has it.
pub fn code_of(error: &Value) -> &str {
    error["code"].as_str().or(error["details"][0]["reason"].as_str()).unwrap_or_default()
}
