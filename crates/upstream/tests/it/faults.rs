//! Whose fault a provider's error is, and what the client gets to read.

use bytes::Bytes;
use http::HeaderMap;
use tollgate_upstream::{Blame, Chat, Fault, WholeReply, kind};
use tollgate_wire::error::Code;
use tollgate_wire::{StreamFault, UpstreamError};

fn chat(name: &str) -> &'static dyn Chat {
    kind(name).and_then(|kind| kind.chat).expect("a kind that takes conversations")
}

fn reply(status: u16, headers: HeaderMap, body: &str) -> WholeReply {
    WholeReply { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn fault(status: u16, body: &str) -> Fault {
    chat("openai").fault(&reply(status, HeaderMap::new(), body))
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
        (408, "", Provider, UpstreamTimeout, true),
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
        (503, "", Provider, Overloaded, true),
        (504, "", Provider, UpstreamTimeout, true),
        (529, "", Provider, Overloaded, true),
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
    let body = error(
        "Key sk-live-12345678 of org-abcdef at https://api.secret.example.com (request id: req_abcdef123)",
        "t",
        "c",
    );
    for status in [400, 401, 404, 429, 500, 502] {
        let message = fault(status, &body).message;
        for word in ["sk-live", "secret", "org-abc", "req_abc"] {
            assert!(!message.contains(word), "{status}: {message}");
        }
    }
    // Case 126.
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
        chat("openai").fault(&reply(429, headers, "")).retry_after
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
        Fault::of_stream(chat("openai"), &StreamFault::Upstream(Box::new(error)))
    };
    assert_eq!(inside("rate_limit_exceeded", "").code, Code::RateLimitExceeded);
    assert_eq!(inside("x", "invalid_request_error").blame, Blame::Caller);
    assert_eq!(inside("x", "server_error").blame, Blame::Provider);
    assert_eq!(inside("insufficient_quota", "").blame, Blame::Operator);
    assert_eq!(Fault::of_stream(chat("openai"), &StreamFault::TooLong).code, Code::UpstreamInvalidReply);
}

/// The same verdicts for the words of the other dialects, with a status and inside an answer.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn errors_of_every_dialect() {
    use Blame::*;
    use Code::*;
    for (kind, status, body, blame, code) in [
        (
            "anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: bad"}}"#,
            Caller,
            InvalidRequest,
        ),
        (
            "anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            Caller,
            ContextLengthExceeded,
        ),
        (
            "anthropic",
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
            Operator,
            UpstreamError,
        ),
        (
            "anthropic",
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            Operator,
            UpstreamError,
        ),
        (
            "anthropic",
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"too large"}}"#,
            Caller,
            InvalidRequest,
        ),
        (
            "anthropic",
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#,
            Provider,
            RateLimitExceeded,
        ),
        (
            "anthropic",
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Provider,
            Overloaded,
        ),
        (
            "openai-responses",
            400,
            r#"{"error":{"message":"bad","type":"invalid_request_error","param":"input","code":null}}"#,
            Caller,
            InvalidRequest,
        ),
        (
            "openai-responses",
            429,
            r#"{"error":{"message":"no money","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Operator,
            UpstreamError,
        ),
        (
            "gemini",
            400,
            r#"{"error":{"code":400,"message":"Unknown name","status":"INVALID_ARGUMENT"}}"#,
            Caller,
            InvalidRequest,
        ),
        (
            "gemini",
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
            Operator,
            UpstreamError,
        ),
        (
            "gemini",
            400,
            r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
            Caller,
            ContextLengthExceeded,
        ),
        (
            "gemini",
            403,
            r#"{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}"#,
            Operator,
            UpstreamError,
        ),
        (
            "gemini",
            429,
            r#"{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}"#,
            Provider,
            RateLimitExceeded,
        ),
        ("gemini", 503, r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#, Provider, Overloaded),
    ] {
        let chat = chat(kind);
        let fault = chat.fault(&reply(status, HeaderMap::new(), body));
        assert_eq!((fault.blame, fault.code), (blame, code), "{kind} {status} {body}");
        // The same error in a reply of status 200 or in mid-stream has no status of its own but in
        // Gemini's.
        let inside = chat.error_inside(&tollgate_wire::UpstreamError::read(body.as_bytes()).expect("an error"));
        assert_eq!((inside.blame, inside.code), (blame, code), "inside: {kind} {body}");
    }
}

/// A key that Google does not know, that has ended or may not be used comes as a bad request: ours
/// to mend, and nothing of it is shown.
#[test]
fn a_refused_key_of_gemini_is_the_operators_affair() {
    for (text, details) in [
        ("API key not valid. Please pass a valid API key.", r#"[{"reason":"API_KEY_INVALID","domain":"d"}]"#),
        ("API key not valid. Please pass a valid API key.", "[]"),
        ("API Key not found. Please pass a valid API key.", "[]"),
        ("API key expired. Please renew the API key.", "[]"),
        ("User location is not supported for the API use.", "[]"),
        ("Something new about AIzaSyA-12345678", r#"[{"@type":"x"},{"reason":"API_KEY_INVALID"}]"#),
        ("Pay first", r#"[{"reason":"BILLING_DISABLED"}]"#),
    ] {
        let status = "INVALID_ARGUMENT";
        let body = format!(r#"{{"error":{{"code":400,"message":"{text}","status":"{status}","details":{details}}}}}"#);
        let fault = chat("gemini").fault(&reply(400, HeaderMap::new(), &body));
        assert_eq!((fault.blame, fault.code, fault.try_other), (Blame::Operator, Code::UpstreamError, true), "{text}");
        let lower = fault.message.to_lowercase();
        assert!(!lower.contains("key") && !lower.contains("location") && !lower.contains("pay"), "{lower}");
    }
}

/// Case 64: refused seals are distinguished from every other bad request.
#[test]
fn refused_seals_are_known_by_their_words() {
    for (kind, text, code, seals) in [
        ("anthropic", "messages.1.content.0: Invalid `signature` in `thinking` block", "", true),
        ("anthropic", "messages.1.content.0: Invalid `data` in `redacted_thinking` block", "", true),
        ("openai-responses", "The encrypted content gAAA could not be verified.", "invalid_encrypted_content", true),
        (
            "openai-responses",
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            "",
            true,
        ),
        ("gemini", "Thought signature is not valid.", "", true),
        ("anthropic", "max_tokens: Field required", "", false),
        ("openai-responses", "Invalid value for 'input'.", "invalid_value", false),
    ] {
        let body = format!(r#"{{"error":{{"message":"{text}","type":"invalid_request_error","code":"{code}"}}}}"#);
        let fault = chat(kind).fault(&reply(400, HeaderMap::new(), &body));
        assert_eq!((fault.blame, fault.seals), (Blame::Caller, seals), "{text}");
        assert!(!chat(kind).fault(&reply(500, HeaderMap::new(), &body)).seals, "only of a bad request");
        // What is not found is reported so, with or without the name of a field.
        let missing = chat(kind).fault(&reply(404, HeaderMap::new(), &body));
        assert_eq!((missing.blame == Blame::Caller, missing.seals), (seals, seals), "{text}");
    }
}

#[test]
fn details_of_a_bad_request_are_passed_plain_and_short() {
    let details = |chat: &dyn Chat, status, kind: &str, details: &str| {
        let body = format!(r#"{{"error":{{"type":"{kind}","message":"m","details":{details}}}}}"#);
        chat.fault(&reply(status, HeaderMap::new(), &body)).details
    };
    let bad = |text: &str| details(chat("anthropic"), 400, "invalid_request_error", text);
    let known = r#"{"error_code":"thread_unsupported_request"}"#;
    assert_eq!(bad(known).as_deref(), Some(known));
    let mixed = r#"{"n":1,"on":true,"deep":{"a":1},"list":[1],"request_id":"req_1","odd name":1,"see":"https://inside.example/x"}"#;
    assert_eq!(bad(mixed).as_deref(), Some(r#"{"n":1,"on":true,"see":"[link]"}"#));
    let long = bad(&format!(r#"{{"a":"{}"}}"#, "word ".repeat(200))).unwrap();
    assert!(long.len() < 160, "{long}");
    for none in ["{}", r#"{"deep":{}}"#, "7", "[]", "null"] {
        assert_eq!(bad(none), None, "{none}");
    }
    assert_eq!(details(chat("anthropic"), 401, "authentication_error", known), None, "the operator's affair");
    assert_eq!(details(chat("anthropic"), 400, "billing_error", known), None, "the operator's affair");
    assert_eq!(details(chat("anthropic"), 500, "api_error", known), None, "the provider's");
    assert_eq!(details(chat("openai"), 400, "invalid_request_error", known), None, "another dialect's");
}
