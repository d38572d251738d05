//! A call the simulator does not take on: the error a strict provider would answer with.

use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Refusal {
    pub status: u16,
    pub kind: &'static str,
    pub code: Option<String>,
    pub param: Option<String>,
    pub message: String,
}

impl Refusal {
    pub fn new(status: u16, message: &str) -> Self {
        let (kind, code) = match status {
            401 => ("authentication_error", Some("invalid_api_key")),
            402 => ("insufficient_quota", Some("insufficient_quota")),
            403 => ("permission_error", Some("model_access_denied")),
            404 => ("invalid_request_error", Some("model_not_found")),
            408 => ("server_error", Some("request_timeout")),
            429 => ("rate_limit_error", Some("rate_limit_exceeded")),
            503 | 529 => ("server_error", Some("overloaded")),
            500.. => ("server_error", None),
            _ => ("invalid_request_error", None),
        };
        Self { status, kind, code: code.map(str::to_string), param: None, message: message.to_string() }
    }

    pub fn bad(param: &str, message: &str) -> Self {
        Self { param: Some(param.to_string()), ..Self::new(400, message) }
    }

    pub fn missing(param: &str) -> Self {
        let message = format!("Missing required parameter: '{param}'.");
        Self { code: Some("missing_required_parameter".to_string()), ..Self::bad(param, &message) }
    }

    pub fn unknown_model(model: &str) -> Self {
        let message = format!("The model '{model}' does not exist; GET /v1/models lists the scenarios");
        Self { param: Some("model".to_string()), ..Self::new(404, &message) }
    }

    pub fn with_code(mut self, code: Option<&str>) -> Self {
        if let Some(code) = code {
            self.code = Some(code.to_string());
        }
        self
    }

    pub fn with_param(mut self, param: &str) -> Self {
        self.param = Some(param.to_string());
        self
    }

    pub fn json(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
    }
}
