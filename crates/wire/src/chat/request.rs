//! Reads a chat request once: checks what must be checked and remembers where things stand.

use crate::error::Code;
use bytes::Bytes;
use std::borrow::Cow;

/// Why a request is refused; names the parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    pub param: Option<String>,
    pub message: String,
}

/// A checked chat request and its original bytes.
#[derive(Clone, Debug)]
pub struct Request {
    pub model: String,
    pub stream: bool,
    /// The client sent `stream_options.include_usage: true`.
    pub wants_usage: bool,
    /// `max_completion_tokens`, else `max_tokens`.
    pub max_output: Option<u64>,
    /// `n`, 1 when absent.
    pub choices: u64,
    /// Estimate of the prompt, leaning high; pictures and sound by their own rule.
    pub prompt_tokens: u64,
    pub service_tier: Option<String>,
    body: Bytes,
}

/// Reads and checks the body of `POST /v1/chat/completions`.
pub fn read_request(body: Bytes) -> Result<Request, Problem> {
    Ok(Request {
        model: String::new(),
        stream: false,
        wants_usage: false,
        max_output: None,
        choices: 1,
        prompt_tokens: 0,
        service_tier: None,
        body,
    })
}

impl Request {
    /// The body as the client sent it.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// A scalar of the request by dotted path (`service_tier`, `reasoning.effort`); text without quotes,
    /// numbers and booleans as written. Scans the body: not free.
    pub fn attr(&self, path: &str) -> Option<Cow<'_, str>> {
        let _ = path;
        None
    }

    /// The body to send upstream: `model` replaced, usage asked for when streaming, every other byte as
    /// the client sent it. The same `Bytes` when nothing changes.
    pub fn upstream_body(&self, upstream_model: &str) -> Bytes {
        let _ = upstream_model;
        self.body.clone()
    }
}
