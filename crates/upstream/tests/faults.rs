//! Whose fault a provider's error is, and what the client gets to read.

use http::HeaderMap;
use tollgate_upstream::{Adaptor, Blame, Fault, OpenAi, kind};
use tollgate_wire::chat::{StreamFault, UpstreamError};
use tollgate_wire::error::Code;

fn fault(status: u16, body: &str) -> Fault {
    OpenAi.fault(status, &HeaderMap::new(), body.as_bytes())
}

fn error(message: &str, kind: &str, code: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":"{code}"}}}}"#)
}

#[test]
fn the_table() {
    use Blame::*;
    use Code::*;
    let bad = error("Unknown field x.", "invalid_request_error", "unknown_parameter");
    for (status, body, blame, code, try_other) in [
        (400, bad.as_str(), Caller, InvalidRequest, false),
        (413, &bad, Caller, InvalidRequest, false),
        (422, r#"{"detail":"bad"}"#, Caller, InvalidRequest, false),
        (400, "", Caller, InvalidRequest, false),
        (
            400,
            &error("too long", "invalid_request_error", "context_length_exceeded"),
            Caller,
            ContextLengthExceeded,
            false,
        ),
        (400, &error("pay", "x", "Arrearage"), Operator, UpstreamError, true),
        (404, &error("no model", "invalid_request_error", "model_not_found"), Operator, UpstreamError, true),
        (404, "<html>", Operator, UpstreamError, true),
        (404, r#"{"error":{"message":"no","param":"previous_response_id"}}"#, Caller, InvalidRequest, false),
        (401, &bad, Operator, UpstreamError, true),
        (402, "", Operator, UpstreamError, true),
        (403, "", Operator, UpstreamError, true),
        (302, "", Operator, UpstreamError, true),
        (408, "", Provider, UpstreamError, true),
        (409, "", Provider, UpstreamError, true),
        (429, &error("slow", "rate_limit_error", "rate_limit_exceeded"), Provider, RateLimitExceeded, true),
        (
            429,
            &error("You exceeded your current quota", "insufficient_quota", "insufficient_quota"),
            Operator,
            UpstreamError,
            true,
        ),
        (500, "oops", Provider, UpstreamError, true),
        (503, "", Provider, UpstreamError, true),
        (529, "", Provider, UpstreamError, true),
    ] {
        let fault = fault(status, body);
        assert_eq!((fault.blame, fault.code, fault.try_other), (blame, code, try_other), "{status} {body}");
        assert_eq!(fault.upstream_status, Some(status));
        assert!(fault.sent && !fault.maybe_charged && !fault.message.is_empty() && fault.message.len() <= 1024);
    }
}

#[test]
fn the_callers_mistake_keeps_the_providers_words() {
    let text = "Invalid 'temperature': must be <= 2.";
    assert_eq!(fault(400, &error(text, "invalid_request_error", "x")).message, text);
}

#[test]
fn nothing_leaks() {
    let told = error(
        "Key sk-live-12345678 of org-abcdef at https://api.secret.example.com (request id: req_abcdef123)",
        "t",
        "c",
    );
    for status in [400, 401, 404, 429, 500, 502] {
        let message = fault(status, &told).message;
        for word in ["sk-live", "secret", "org-abc", "req_abc"] {
            assert!(!message.contains(word), "{status}: {message}");
        }
    }
    let trace = error(r#"Traceback (most recent call last):\n File \"main.py\", line 3"#, "server_error", "");
    assert!(!fault(500, &trace).message.contains("main"));
    assert_eq!(
        fault(500, &error("The server had an error.", "server_error", "busy")).message,
        "The provider failed (HTTP 500, busy): The server had an error."
    );
}

#[test]
fn a_huge_error_is_no_trouble() {
    let huge = error(&"word.example.com ".repeat(600_000), "t", "c");
    assert!(fault(400, &huge).message.len() <= 1024);
    assert!(fault(500, &"[".repeat(10_000_000)).message.len() <= 1024);
}

#[test]
fn waiting_is_bounded() {
    let wait = |name: &'static str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        OpenAi.fault(429, &headers, b"").retry_after
    };
    assert_eq!(wait("retry-after", "7"), Some(7));
    assert_eq!(wait("retry-after", "0"), Some(1));
    assert_eq!(wait("retry-after", "86400"), Some(60));
    assert_eq!(wait("retry-after", "1.5"), Some(1));
    assert_eq!(wait("retry-after-ms", "1500"), Some(2));
    assert_eq!(wait("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
    assert_eq!(wait("retry-after", "-5"), None);
}

#[test]
fn errors_inside_a_reply() {
    let inside = |code: &str, kind: &str| {
        let error = UpstreamError {
            code: Some(code.into()),
            kind: Some(kind.into()),
            message: "m".into(),
            ..Default::default()
        };
        Fault::of_stream(&OpenAi, &StreamFault::Upstream(Box::new(error)))
    };
    assert_eq!(inside("rate_limit_exceeded", "").code, Code::RateLimitExceeded);
    assert_eq!(inside("x", "invalid_request_error").blame, Blame::Caller);
    assert_eq!(inside("x", "server_error").blame, Blame::Provider);
    assert_eq!(inside("insufficient_quota", "").blame, Blame::Operator);
    assert_eq!(Fault::of_stream(&OpenAi, &StreamFault::TooLong).code, Code::UpstreamInvalidReply);
}

#[test]
fn the_registry() {
    assert_eq!(kind("openai").unwrap().kind(), "openai");
    assert!(kind("nobody").is_none());
}
