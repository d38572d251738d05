//! Whose fault a provider's error is, in the words of all four dialects. Money depends on it, so
//! there is one table of words and one verdict; adaptors only bring the error here.

use crate::{Blame, Fault, WholeReply, safe_text};
use http::HeaderMap;
use serde_json::Value;
use tollgate_wire::UpstreamError;
use tollgate_wire::error::Code;

/// What an answer with an error status means.
pub(crate) fn refused(reply: &WholeReply) -> Fault {
    let error = UpstreamError::read(&reply.body);
    let fault = judge(reply.status, error.as_ref());
    let retry_after = retry_after(&reply.headers).or(fault.retry_after);
    Fault { upstream_status: Some(reply.status), retry_after, ..fault }
}

/// What an error object inside a reply of status 200 or inside a stream means.
pub(crate) fn inside(error: &UpstreamError) -> Fault {
    let fault = judge(error.status.unwrap_or_else(|| status_of(error)), Some(error));
    Fault { upstream_status: error.status, ..fault }
}

/// Most text given to a client.
const MOST_TEXT: usize = 1024;
/// Most text taken of a provider's own failure.
const MOST_FAILURE: usize = 300;

/// Most of the text of one value in an error's details.
const MOST_DETAIL: usize = 128;
/// Gemini's name for the detail that lists wrong fields.
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// Most values taken of them.
const MOST_DETAILS: usize = 16;

/// The details that a provider gives of a request which is to blame: programs go by them. Of
/// Anthropic's only plain values, of Gemini's only the fields that are wrong; cleaned like any text
/// of a provider.
pub(crate) fn with_details(fault: Fault, error: Option<&UpstreamError>) -> Fault {
    let details = error.and_then(|error| error.details.as_deref()).filter(|_| fault.blame == Blame::Caller);
    Fault { details: details.and_then(clean_details), ..fault }
}

fn clean_details(raw: &str) -> Option<Box<str>> {
    let members = match serde_json::from_str(raw) {
        Ok(Value::Object(members)) => members,
        Ok(Value::Array(list)) => return wrong_fields(&list),
        _ => return None,
    };
    let plain = members.into_iter().filter_map(|(name, value)| {
        let is_name = name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        let value = match value {
            Value::String(text) => Value::String(safe_text(&text, MOST_DETAIL)),
            Value::Bool(_) | Value::Number(_) | Value::Null => value,
            Value::Array(_) | Value::Object(_) => return None,
        };
        // Ids of the provider's own say nothing here.
        (is_name && !name.ends_with("_id")).then_some((name, value))
    });
    let details: serde_json::Map<String, Value> = plain.take(MOST_DETAILS).collect();
    (!details.is_empty()).then(|| Value::Object(details).to_string().into())
}

/// The fields that Gemini finds wrong, in its own form. Its other details are about the operator's
/// project.
fn wrong_fields(list: &[Value]) -> Option<Box<str>> {
    let entry = list.iter().find(|entry| entry["@type"] == BAD_REQUEST)?;
    let texts = entry["fieldViolations"].as_array()?.iter().map(|violation| {
        let text = |name: &str| safe_text(violation[name].as_str().unwrap_or_default(), MOST_DETAIL);
        serde_json::json!({ "field": text("field"), "description": text("description") })
    });
    let violations: Vec<Value> = texts.take(MOST_DETAILS).collect();
    let cleaned = serde_json::json!({ "@type": BAD_REQUEST, "fieldViolations": violations });
    (!violations.is_empty()).then(|| cleaned.to_string().into())
}

/// Who is to blame for an error status, and the client's error.
fn judge(status: u16, error: Option<&UpstreamError>) -> Fault {
    if error.is_some_and(operators_trouble) {
        return operator(status);
    }
    match status {
        400 | 413 | 422 => caller(error),
        404 if error.is_some_and(about_seals) => caller(error),
        404 if error.is_some_and(|e| e.param.as_deref().is_some_and(|p| p != "model")) => caller(error),
        // A model the provider does not know is one we should not have sent there.
        404 | 401..=403 | 405 | 300..=399 => operator(status),
        429 => Fault {
            code: Code::RateLimitExceeded,
            message: "The provider is limiting requests; try again in a moment.".to_owned(),
            ..provider(status, None)
        },
        503 | 529 => Fault { code: Code::Overloaded, ..provider(status, error) },
        408 | 504 => Fault { code: Code::UpstreamTimeout, ..provider(status, error) },
        _ => provider(status, error),
    }
}

/// How providers without a code for it say that the prompt does not fit.
const TOO_LONG: &[&str] = &[
    "maximum context length",
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "exceeds the context window",
];

fn caller(error: Option<&UpstreamError>) -> Fault {
    let text = error.map(|e| safe_text(&e.message, MOST_TEXT)).filter(|text| !text.is_empty());
    let too_long = error.is_some_and(|e| {
        e.code.as_deref() == Some("context_length_exceeded") || TOO_LONG.iter().any(|text| e.message.contains(text))
    });
    Fault {
        blame: Blame::Caller,
        code: if too_long { Code::ContextLengthExceeded } else { Code::InvalidRequest },
        message: text.unwrap_or_else(|| "The provider refused the request.".to_owned()),
        param: error
            .and_then(|e| e.param.as_deref())
            .map(|param| safe_text(param, 64))
            .filter(|param| !param.is_empty()),
        try_other: false,
        sent: true,
        maybe_charged: false,
        upstream_status: None,
        retry_after: None,
        upstream_code: None,
        details: None,
        seals: error.is_some_and(about_seals),
    }
}

/// How providers say that sealed reasoning is not theirs, or not any more.
const SEALS: &[&str] = &[
    "invalid `signature` in",
    "invalid `data` in `redacted_thinking`",
    "blocks in the latest assistant message cannot be modified",
    "invalid_encrypted_content",
    "encrypted content",
    // Under the id of a thought a provider looks for what it stored, and it was asked to store
    // nothing.
    "item with id",
    "thought signature",
    "thought_signature",
    // A turn that somebody else began, or that lost what was thought in it.
    "must start with a thinking block",
    // Members of chat messages that only the server which made them takes.
    "reasoning_details",
    "'reasoning_content' was unexpected",
    ".reasoning_content'",
];

fn about_seals(error: &UpstreamError) -> bool {
    let said = |text: &str| {
        let text = text.to_ascii_lowercase();
        SEALS.iter().any(|words| text.contains(words))
    };
    said(&error.message) || error.code.as_deref().is_some_and(said)
}

/// Nothing of the provider's text: it may speak of our account.
fn operator(status: u16) -> Fault {
    Fault {
        blame: Blame::Operator,
        message: format!("The provider did not accept the gateway's request (HTTP {status})."),
        ..provider(status, None)
    }
}

fn provider(status: u16, error: Option<&UpstreamError>) -> Fault {
    let mut message = format!("The provider failed (HTTP {status}");
    if let Some(code) = error.and_then(|e| e.code.as_deref().or(e.kind.as_deref())) {
        message.push_str(", ");
        message.push_str(&safe_text(code, 64));
    }
    message.push(')');
    match error.and_then(|e| plain_failure(&e.message)) {
        Some(text) => {
            message.push_str(": ");
            message.push_str(&text);
        }
        None => message.push('.'),
    }
    Fault {
        blame: Blame::Provider,
        code: Code::UpstreamError,
        message,
        param: None,
        try_other: true,
        sent: true,
        maybe_charged: false,
        upstream_status: None,
        retry_after: None,
        upstream_code: None,
        details: None,
        seals: false,
    }
}

/// The first line of a failure, unless it shows the inside of the provider's program.
fn plain_failure(text: &str) -> Option<String> {
    const INSIDES: &[&str] =
        &["Traceback", "Exception", "panicked", "File \"", ".py", ".go:", ".java", ".rs:", ".js:", "0x"];
    let line = text.lines().next()?.trim();
    if line.is_empty() || INSIDES.iter().any(|mark| text.contains(mark)) {
        return None;
    }
    Some(safe_text(line, MOST_FAILURE))
}

/// What our own account gets in a bad request: Google's for a key it does not know, that has
/// ended or may not be used from where we are, Anthropic's for an empty account.
const TROUBLE: &[&str] = &[
    "api key not valid",
    "api key not found",
    "api key expired",
    "pass a valid api key",
    "user location is not supported",
    "credit balance is too low",
];

/// Money and access trouble of our own account, in whatever status it comes.
fn operators_trouble(error: &UpstreamError) -> bool {
    const WORDS: &[&str] = &[
        "insufficient_quota",
        "insufficient_balance",
        "billing",
        "arrearage",
        "invalid_api_key",
        "authentication",
        "account_deactivated",
        "access_terminated",
        "permission_denied",
        "api_key_invalid",
    ];
    let named = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default().to_ascii_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    };
    // Some providers dress it as a bad request, and only their words tell.
    let message = error.message.to_ascii_lowercase();
    named(&error.code) || named(&error.kind) || TROUBLE.iter().any(|text| message.contains(text))
}

/// Words of error objects, by the status they would have come with.
const STATUSES: &[(u16, &[&str])] = &[
    (429, &["rate_limit", "RESOURCE_EXHAUSTED"]),
    (400, &["invalid_request_error", "context_length_exceeded", "invalid_prompt", "INVALID_ARGUMENT"]),
    (413, &["request_too_large"]),
    (401, &["authentication_error", "UNAUTHENTICATED"]),
    (403, &["permission_error", "PERMISSION_DENIED"]),
    (404, &["not_found_error", "NOT_FOUND"]),
    (503, &["overloaded", "UNAVAILABLE"]),
    (504, &["timeout_error", "DEADLINE_EXCEEDED"]),
];

/// The status an error object would have come with.
fn status_of(error: &UpstreamError) -> u16 {
    let code = error.code.as_deref().unwrap_or_default();
    let kind = error.kind.as_deref().unwrap_or_default();
    let says = |words: &[&str]| words.iter().any(|word| code.contains(word) || kind.contains(word));
    STATUSES.iter().find(|(_, words)| says(words)).map_or(500, |(status, _)| *status)
}

/// Seconds to wait, between 1 and 60; a date is not read.
fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().split('.').next()?.parse::<u64>().ok();
    let seconds = match number("retry-after-ms") {
        Some(millis) => millis.div_ceil(1000),
        None => number("retry-after")?,
    };
    u32::try_from(seconds.clamp(1, 60)).ok()
}
