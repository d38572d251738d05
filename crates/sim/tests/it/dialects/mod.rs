//! The three other chat dialects: what they refuse, what they say, and every scenario in each of
//! them.

mod anthropic;
mod chat;
mod gemini;
mod responses;
mod scenarios;

use serde_json::{Value, json};
use tollgate_sim::Sim;

use crate::it::client::{Answer, read, request_with};

/// A dialect as a test asks it: path, headers, and a body that is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dialect {
    Anthropic,
    Responses,
    Gemini,
}

pub const ALL: [Dialect; 3] = [Dialect::Anthropic, Dialect::Responses, Dialect::Gemini];

impl Dialect {
    pub fn body(self, model: &str, text: &str) -> Value {
        match self {
            Dialect::Anthropic => {
                json!({"model": model, "max_tokens": 4096, "messages": [{"role": "user", "content": text}]})
            }
            Dialect::Responses => json!({"model": model, "input": text}),
            Dialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        }
    }

    fn path(self, model: &str, stream: bool) -> String {
        match (self, stream) {
            (Dialect::Anthropic, _) => "/v1/messages".to_string(),
            (Dialect::Responses, _) => "/v1/responses".to_string(),
            (Dialect::Gemini, false) => format!("/v1beta/models/{model}:generateContent"),
            (Dialect::Gemini, true) => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    pub async fn ask(self, sim: &Sim, model: &str, body: &Value) -> Answer {
        let headers = "anthropic-version: 2023-06-01\r\nx-goog-api-key: k\r\n";
        read(request_with(sim, "POST", &self.path(model, false), headers, &body.to_string()).await).await
    }

    pub async fn stream(self, sim: &Sim, model: &str, body: &Value) -> Answer {
        let mut body = body.clone();
        if self != Dialect::Gemini {
            body["stream"] = json!(true);
        }
        let headers = "anthropic-version: 2023-06-01\r\nx-goog-api-key: k\r\n";
        read(request_with(sim, "POST", &self.path(model, true), headers, &body.to_string()).await).await
    }
}

/// Name of the `event:` line (empty without one) and data of each event.
pub fn events(answer: &Answer) -> Vec<(String, Value)> {
    let text = answer.text();
    let blocks = text.split("\n\n").filter(|block| !block.is_empty() && *block != "data: [DONE]");
    let event = |block: &str| {
        let name = block.lines().find_map(|line| line.strip_prefix("event: ")).unwrap_or_default();
        let data: String = block.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        (name.to_string(), serde_json::from_str(&data).expect("JSON"))
    };
    blocks.map(event).collect()
}

/// What was said, from a whole reply or the events of one.
pub fn said(dialect: Dialect, values: &[Value]) -> String {
    let piece = |value: &Value| -> String {
        let texts = |list: &Value| -> String {
            let parts = list.as_array().into_iter().flatten().filter(|part| part["thought"] != true);
            parts.filter_map(|part| part["text"].as_str()).collect()
        };
        match dialect {
            Dialect::Anthropic => {
                format!("{}{}", texts(&value["content"]), value["delta"]["text"].as_str().unwrap_or_default())
            }
            Dialect::Responses if value["object"] == "response" => {
                value["output"].as_array().unwrap().iter().map(|item| texts(&item["content"])).collect()
            }
            Dialect::Responses if value["type"] == "response.output_text.delta" => {
                value["delta"].as_str().unwrap_or_default().to_string()
            }
            Dialect::Responses => String::new(),
            Dialect::Gemini => texts(&value["candidates"][0]["content"]["parts"]),
        }
    };
    values.iter().map(piece).collect()
}

/// Each change to a body that is taken, and a part of what the provider says to it.
pub async fn refusals(dialect: Dialect, sim: &Sim, model: &str, table: &[(Value, &str)]) {
    for (change, expected) in table {
        let mut body = dialect.body(model, "hello");
        for (key, value) in change.as_object().unwrap() {
            body[key] = value.clone();
        }
        if change.get("-").is_some() {
            let gone = change["-"].as_str().unwrap();
            body.as_object_mut().unwrap().retain(|key, _| key != gone && key != "-");
        }
        let answer = dialect.ask(sim, model, &body).await;
        let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_string();
        if expected.is_empty() {
            assert_eq!(answer.status(), 200, "{dialect:?} {change}: {message}");
        } else {
            assert!(matches!(answer.status(), 400 | 404), "{dialect:?} {change}: {}", answer.text());
            assert!(message.contains(expected), "{dialect:?} {change}: {message}");
        }
    }
}
