//! The public error table: one definition per code, read by the writers of every dialect,
//! by the documentation and by tests.

use crate::cut::{MESSAGE, NAME, cut};
use crate::json::Object;
use bytes::Bytes;
use std::borrow::Cow;

/// The format a caller speaks; decides the shape of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorFormat {
    OpenAi,
    Anthropic,
    Gemini,
}

/// What a client should do with the same request after this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// It will fail again: change something first. Sent as `x-should-retry: false`.
    Never,
    /// It may succeed at once.
    Soon,
    /// It may succeed after this many seconds (the default `Retry-After`, never above 60).
    After(u32),
}

/// One line of the table.
struct Line {
    status: u16,
    code: &'static str,
    openai: &'static str,
    anthropic: &'static str,
    gemini: &'static str,
    retry: Retry,
    meaning: &'static str,
}

macro_rules! table {
    ($($name:ident = $status:literal $code:literal, $openai:literal, $anthropic:literal, $gemini:literal, $retry:expr, $meaning:literal;)*) => {
        /// Every error a client can see.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $meaning] $name,)* }

        impl Code {
            /// All codes in the order of their status.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            const fn line(self) -> &'static Line {
                match self {
                    $(Code::$name => &Line {
                        status: $status, code: $code, openai: $openai, anthropic: $anthropic,
                        gemini: $gemini, retry: $retry, meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

table! {
    InvalidRequest = 400 "invalid_request", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "The request cannot be served as it is; the message says why.";
    InvalidParameter = 400 "invalid_parameter", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "A parameter has the wrong type or is out of range.";
    UnknownParameter = 400 "unknown_parameter", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "A parameter does not exist on this endpoint.";
    MissingParameter = 400 "missing_parameter", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "A required parameter is missing.";
    InvalidJson = 400 "invalid_json", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "The body is not a valid JSON object.";
    InvalidCatalog = 400 "invalid_catalog", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "A catalog that an operator sent cannot be served; `details` lists every mistake with file, line and field. Nothing was changed.";
    ContextLengthExceeded = 400 "context_length_exceeded", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "Prompt and requested output do not fit the model's context window.";
    UnsupportedValue = 400 "unsupported_value", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "The value exists but this model does not support it.";
    TaskTypeConstraint = 400 "InvalidParameter.TaskTypeConstraint", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "A video request mixes what the model takes only apart; the code is the provider's own.";
    ContentPolicyViolation = 400 "content_policy_violation", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "The provider refused the content of the request, or of what it made from it; the message has the provider's words.";
    PreviousResponseNotFound = 400 "previous_response_not_found", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::After(10), "The response that the request continues is not stored here: it never was, was deleted or has expired.";
    InvalidApiKey = 401 "invalid_api_key", "authentication_error", "authentication_error", "UNAUTHENTICATED", Retry::Never, "The key is missing, unknown, revoked or expired.";
    NotSignedIn = 401 "not_signed_in", "authentication_error", "authentication_error", "UNAUTHENTICATED", Retry::Never, "The path needs a session, and there is none, or it has ended.";
    SignInFailed = 401 "sign_in_failed", "authentication_error", "authentication_error", "UNAUTHENTICATED", Retry::Never, "E-mail, password or code is wrong; which of them is not said.";
    SecondFactorRequired = 401 "second_factor_required", "authentication_error", "authentication_error", "UNAUTHENTICATED", Retry::Never, "The password is right, and the code of the second factor is missing.";
    InsufficientBalance = 402 "insufficient_balance", "insufficient_quota", "billing_error", "FAILED_PRECONDITION", Retry::Never, "The account's balance does not cover the call; nothing was sent.";
    KeySpendCapReached = 402 "key_spend_cap_reached", "insufficient_quota", "billing_error", "FAILED_PRECONDITION", Retry::Never, "A spending limit of the key does not cover the call; nothing was sent.";
    AccountSpendLimitReached = 402 "account_spend_limit_reached", "insufficient_quota", "billing_error", "FAILED_PRECONDITION", Retry::Never, "A spending limit of the account does not cover the call; nothing was sent.";
    ModelRequiresTopup = 403 "model_requires_topup", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The model is open to accounts that have topped up.";
    AccountSuspended = 403 "account_suspended", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The operator has suspended the account: nothing new is begun for it.";
    ModelNotAllowed = 403 "model_not_allowed", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The key may not use this model.";
    IpNotAllowed = 403 "ip_not_allowed", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The key may not be used from this address.";
    KeyScope = 403 "key_scope", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The key was made for something else: those of scope `manage` open `/api/account`, all others make calls.";
    RoleNotAllowed = 403 "role_not_allowed", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The role in this account does not allow this.";
    StorageQuotaExceeded = 403 "storage_quota_exceeded", "permission_error", "permission_error", "RESOURCE_EXHAUSTED", Retry::Never, "The account stores as many responses, conversations or items as it may; the message says what is used and allowed. Deleting makes room.";
    LinkInvalid = 403 "link_invalid", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "A signed link has ended, or was not signed by this gateway.";
    CrossSiteRequest = 403 "cross_site_request", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "A change with a cookie comes from another site, or does not say from where.";
    RoleRequired = 403 "role_required", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The person is signed in and has not the role that this needs.";
    StepUpRequired = 403 "step_up_required", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The session must prove again who it is: POST /api/session/step-up.";
    SignUpClosed = 403 "sign_up_closed", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "People cannot sign up by themselves here.";
    TokenInvalid = 403 "token_invalid", "permission_error", "permission_error", "PERMISSION_DENIED", Retry::Never, "The one-time token is unknown, was used, or its time is over.";
    ModelNotFound = 404 "model_not_found", "invalid_request_error", "not_found_error", "NOT_FOUND", Retry::Never, "No such model, or none visible to this account.";
    TaskNotFound = 404 "task_not_found", "invalid_request_error", "not_found_error", "NOT_FOUND", Retry::Never, "No such task on this account.";
    NotFound = 404 "not_found", "invalid_request_error", "not_found_error", "NOT_FOUND", Retry::Never, "No such endpoint or object.";
    SocialEndpointNotFound = 404 "social_endpoint_not_found", "invalid_request_error", "not_found_error", "NOT_FOUND", Retry::Never, "This platform and capability are not on sale together.";
    SocialDataNoResult = 404 "social_data_no_result", "invalid_request_error", "not_found_error", "NOT_FOUND", Retry::Never, "The platform found nothing for these parameters.";
    MethodNotAllowed = 405 "method_not_allowed", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "The endpoint exists but not with this method.";
    RequestTimeout = 408 "request_timeout", "invalid_request_error", "timeout_error", "DEADLINE_EXCEEDED", Retry::Soon, "The request did not arrive in time.";
    IdempotencyConflict = 409 "idempotency_conflict", "invalid_request_error", "invalid_request_error", "ALREADY_EXISTS", Retry::Never, "The Idempotency-Key was used with another body.";
    IdempotencyInProgress = 409 "idempotency_in_progress", "invalid_request_error", "invalid_request_error", "ABORTED", Retry::After(2), "The first call with this Idempotency-Key is still running.";
    CallInProgress = 409 "call_in_progress", "invalid_request_error", "invalid_request_error", "ABORTED", Retry::After(2), "The call has not ended yet.";
    Conflict = 409 "conflict", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION", Retry::Never, "The change contradicts what is stored; nothing was changed, and the message says why.";
    ConfirmationRequired = 409 "confirmation_required", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION", Retry::Never, "A run needs a confirmation that the request does not carry; `details` has the quote, the privacy sheet and what to confirm. Nothing was begun.";
    WorkflowNotExecutable = 409 "workflow_not_executable", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION", Retry::Never, "The workflow exists and cannot be run now; `details` says why.";
    ContractChanged = 409 "contract_changed", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION", Retry::Never, "The workflow is another one than was quoted: its contract has changed since. Nothing was begun.";
    PreconditionFailed = 412 "precondition_failed", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION", Retry::Never, "Somebody changed it since it was read: `If-Match` names another version. Nothing was changed; read it again.";
    BodyTooLarge = 413 "body_too_large", "invalid_request_error", "request_too_large", "INVALID_ARGUMENT", Retry::Never, "The body exceeds the endpoint's limit.";
    UnsupportedMediaType = 415 "unsupported_media_type", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", Retry::Never, "The content type or encoding is not accepted here.";
    PreconditionRequired = 428 "precondition_required", "invalid_request_error", "invalid_request_error", "FAILED_PRECONDITION", Retry::Never, "A change needs `If-Match` with the `ETag` that was read.";
    RateLimitExceeded = 429 "rate_limit_exceeded", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED", Retry::After(5), "Too many requests; wait as Retry-After says.";
    SocialDataCapacityReached = 429 "social_data_capacity_reached", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED", Retry::After(60), "The day's capacity for social data is used up, or the platform is busy; the reason says which.";
    ClientClosed = 499 "client_closed", "invalid_request_error", "invalid_request_error", "CANCELLED", Retry::Never, "The client left before the answer; only seen in logs.";
    Internal = 500 "internal_error", "server_error", "api_error", "INTERNAL", Retry::Soon, "A fault of the gateway itself.";
    UpstreamError = 502 "upstream_error", "server_error", "api_error", "INTERNAL", Retry::Soon, "The provider failed or could not be reached.";
    UpstreamInvalidReply = 502 "upstream_invalid_reply", "server_error", "api_error", "INTERNAL", Retry::Soon, "The provider's answer could not be understood.";
    SocialDataUpstreamError = 502 "social_data_upstream_error", "server_error", "api_error", "INTERNAL", Retry::Soon, "The data source did not answer, or answered without data.";
    NoRouteAvailable = 503 "no_route_available", "server_error", "overloaded_error", "UNAVAILABLE", Retry::After(5), "No provider can serve the model now.";
    Overloaded = 503 "overloaded", "server_error", "overloaded_error", "UNAVAILABLE", Retry::After(2), "The gateway or the provider is busy.";
    LedgerUnavailable = 503 "ledger_unavailable", "server_error", "overloaded_error", "UNAVAILABLE", Retry::After(2), "The ledger cannot be reached; nothing was sent.";
    ServerDraining = 503 "server_draining", "server_error", "overloaded_error", "UNAVAILABLE", Retry::After(1), "The gateway is being stopped; another replica will answer.";
    StorageFull = 503 "storage_full", "server_error", "overloaded_error", "UNAVAILABLE", Retry::After(60), "The gateway has no room to store anything more for anybody; reading and deleting work.";
    SocialDataUnavailable = 503 "social_data_unavailable", "server_error", "overloaded_error", "UNAVAILABLE", Retry::After(30), "The endpoint is paused; the catalog lists it as paused.";
    ChargeStateUnknown = 504 "charge_state_unknown", "server_error", "timeout_error", "DEADLINE_EXCEEDED", Retry::Never, "It is not known whether the provider took the request. A video task: poll the one that the message names, do not send it again. Pictures or a song: the call broke off before its answer was handed over, nothing was charged, and the Idempotency-Key does not begin them again.";
    UpstreamTimeout = 504 "upstream_timeout", "server_error", "timeout_error", "DEADLINE_EXCEEDED", Retry::Soon, "The provider did not answer in time.";
}

impl Code {
    /// HTTP status.
    pub const fn status(self) -> u16 {
        self.line().status
    }

    /// The stable word clients match on.
    pub const fn code(self) -> &'static str {
        self.line().code
    }

    /// `error.type` in OpenAI's shape.
    pub const fn openai_type(self) -> &'static str {
        self.line().openai
    }

    /// `error.type` in Anthropic's shape.
    pub const fn anthropic_type(self) -> &'static str {
        self.line().anthropic
    }

    /// `error.status` in Gemini's shape.
    pub const fn gemini_status(self) -> &'static str {
        self.line().gemini
    }

    /// Advice for `Retry-After` and `x-should-retry`.
    pub const fn retry(self) -> Retry {
        self.line().retry
    }

    /// Whether it says more in `details`, an object of our own.
    const fn has_details(self) -> bool {
        matches!(
            self,
            Code::InvalidCatalog | Code::ConfirmationRequired | Code::WorkflowNotExecutable | Code::ContractChanged
        )
    }

    /// One sentence for people.
    pub const fn meaning(self) -> &'static str {
        self.line().meaning
    }

    /// Whether a call that ends with this code before any output costs anything: never.
    /// (A stream broken after output is charged for what was produced.)
    pub const fn charged(self) -> bool {
        false
    }
}

/// What stands in an error beside its code, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail<'a> {
    /// Such as a `reason` that tells cases of one code apart. In OpenAI's shape only.
    Word(&'a str),
    /// An amount, such as what a call needs. In every shape.
    Amount(i64),
    /// An object that a provider sent, as JSON: in the shape of its own dialect only. Gemini's have
    /// an `@type`.
    Object(&'a str),
}

/// The JSON body of an error in the caller's dialect, with more beside its code.
pub fn body_with(
    dialect: ErrorFormat,
    code: Code,
    message: &str,
    param: Option<&str>,
    request_id: &str,
    more: &[(&str, Detail<'_>)],
) -> Bytes {
    let mut out = Vec::with_capacity(message.len() + 160);
    write_detailed(&mut out, dialect, code, message, param, request_id, more);
    Bytes::from(out)
}

/// The JSON body of an error in the caller's dialect.
pub fn body(dialect: ErrorFormat, code: Code, message: &str, param: Option<&str>, request_id: &str) -> Bytes {
    body_with(dialect, code, message, param, request_id, &[])
}

pub fn write_body(
    out: &mut Vec<u8>,
    dialect: ErrorFormat,
    code: Code,
    message: &str,
    param: Option<&str>,
    request_id: &str,
) {
    write_detailed(out, dialect, code, message, param, request_id, &[]);
}

fn write_detailed(
    out: &mut Vec<u8>,
    dialect: ErrorFormat,
    code: Code,
    message: &str,
    param: Option<&str>,
    request_id: &str,
    more: &[(&str, Detail<'_>)],
) {
    // Messages name what the caller sent.
    let (message, param) = (&*cut(message, MESSAGE), param.map(|param| cut(param, NAME)));
    let param = param.as_deref();
    let amounts = || {
        more.iter().filter_map(|(name, detail)| match detail {
            Detail::Amount(amount) => Some((*name, amount.to_string())),
            Detail::Word(_) | Detail::Object(_) => None,
        })
    };
    let mut body = Object::begin(out);
    match dialect {
        ErrorFormat::OpenAi => body.object("error", |error| {
            error.text("message", message);
            error.text("type", code.openai_type());
            error.or_null("param", param);
            error.text("code", code.code());
            for (name, detail) in more {
                match detail {
                    Detail::Word(word) => error.text(name, word),
                    Detail::Amount(amount) => error.raw(name, &amount.to_string()),
                    // What is to be confirmed is ours; other objects are a provider's own.
                    Detail::Object(raw) if code.has_details() => error.raw(name, raw),
                    Detail::Object(_) => {}
                }
            }
        }),
        ErrorFormat::Anthropic => {
            body.text("type", "error");
            body.object("error", |error| {
                error.text("type", code.anthropic_type());
                error.text("message", &naming(message, param));
                error.text("code", code.code());
                for (name, amount) in amounts() {
                    error.raw(name, &amount);
                }
                let objects = more.iter().filter_map(|(name, detail)| match detail {
                    Detail::Object(raw) if !is_typed(raw) => Some((*name, *raw)),
                    Detail::Object(_) | Detail::Word(_) | Detail::Amount(_) => None,
                });
                let mut named = false;
                for (name, raw) in objects {
                    named |= name == "details";
                    error.raw(name, raw);
                }
                if param == Some("thread") && !named {
                    // Anthropic's tool runner goes on without the provider's own threads when it
                    // reads this.
                    error.object("details", |details| details.text("error_code", "thread_unsupported_request"));
                }
            });
            body.text("request_id", request_id);
        }
        ErrorFormat::Gemini => body.object("error", |error| {
            error.number("code", u64::from(code.status()));
            error.text("message", &naming(message, param));
            error.text("status", code.gemini_status());
            error.array("details", |details| {
                details.object(|info| {
                    info.text("@type", "type.googleapis.com/google.rpc.ErrorInfo");
                    info.text("reason", code.code());
                    info.object("metadata", |metadata| {
                        metadata.text("request_id", request_id);
                        // A map of texts, by Google's definition.
                        for (name, amount) in amounts() {
                            metadata.text(name, &amount);
                        }
                    });
                });
                let mut typed = more.iter().filter_map(|(_, detail)| match detail {
                    Detail::Object(raw) => Some(*raw).filter(|raw| is_typed(raw)),
                    Detail::Word(_) | Detail::Amount(_) => None,
                });
                if let Some(raw) = typed.next() {
                    details.raw(raw);
                } else if let Some(param) = param {
                    details.object(|request| {
                        request.text("@type", "type.googleapis.com/google.rpc.BadRequest");
                        request.array("fieldViolations", |list| {
                            list.object(|violation| {
                                violation.text("field", param);
                                violation.text("description", message);
                            });
                        });
                    });
                }
            });
        }),
    }
    body.end();
}

/// Whether an object is a detail as Google writes them.
fn is_typed(raw: &str) -> bool {
    raw.starts_with("{\"@type\"")
}

/// The message with the name of the field in front, unless it says it: SDKs of these dialects show
/// nothing but the message.
fn naming<'m>(message: &'m str, param: Option<&str>) -> Cow<'m, str> {
    match param.filter(|param| !message.contains(&format!("`{param}`"))) {
        Some(param) => Cow::Owned(format!("`{param}`: {message}")),
        None => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_unique_and_ordered_by_status() {
        let words: HashSet<_> = Code::ALL.iter().map(|c| c.code()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        assert!(Code::ALL.windows(2).all(|w| w[0].status() <= w[1].status()));
    }

    #[test]
    fn an_object_of_the_provider_stands_in_its_own_shape_alone() {
        let written = |dialect, param| {
            let more = [("details", Detail::Object(r#"{"error_code":"e"}"#))];
            String::from_utf8(body_with(dialect, Code::InvalidRequest, "m", param, "r", &more).to_vec()).unwrap()
        };
        for param in [None, Some("thread")] {
            let anthropic = written(ErrorFormat::Anthropic, param);
            assert!(anthropic.contains(r#""details":{"error_code":"e"}}"#), "{anthropic}");
            assert_eq!(anthropic.matches("details").count(), 1, "{anthropic}");
        }
        for other in [ErrorFormat::OpenAi, ErrorFormat::Gemini] {
            assert!(!written(other, None).contains("error_code"));
        }
    }

    #[test]
    fn retry_advice_never_exceeds_a_minute() {
        for code in Code::ALL {
            if let Retry::After(seconds) = code.retry() {
                assert!((1..=60).contains(&seconds), "{code:?}");
            }
        }
    }

    #[test]
    fn amounts_stand_in_every_dialect() {
        let more = [("reason", Detail::Word("small")), ("needed_nano_usd", Detail::Amount(7))];
        let read = |dialect| -> serde_json::Value {
            let body = body_with(dialect, Code::InsufficientBalance, "No.", None, "call_1", &more);
            serde_json::from_slice(&body).expect("JSON")
        };
        let openai = read(ErrorFormat::OpenAi);
        assert_eq!((&openai["error"]["reason"], &openai["error"]["needed_nano_usd"]), (&"small".into(), &7.into()));
        assert_eq!(read(ErrorFormat::Anthropic)["error"]["needed_nano_usd"], 7);
        assert_eq!(read(ErrorFormat::Gemini)["error"]["details"][0]["metadata"]["needed_nano_usd"], "7");
    }

    #[test]
    fn bodies_are_json_in_every_dialect() {
        let nasty = "a \"quoted\" \\ line\n\u{2028}\u{2029}\u{85}\u{1}é";
        for &code in Code::ALL {
            for dialect in [ErrorFormat::OpenAi, ErrorFormat::Anthropic, ErrorFormat::Gemini] {
                let bytes = body(dialect, code, nasty, Some("messages[0].role"), "call_1");
                assert!(!String::from_utf8_lossy(&bytes).contains(['\u{2028}', '\u{2029}', '\u{85}']));
                let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                let message = value["error"]["message"].as_str().unwrap();
                assert!(message.ends_with(nasty), "{message}");
                assert!(value.to_string().contains("messages[0].role"), "{value}");
            }
        }
    }

    #[test]
    fn the_field_is_named_once() {
        let shown = |dialect, message: &str, param| {
            let bytes = body(dialect, Code::UnsupportedValue, message, param, "call_1");
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            value["error"]["message"].as_str().unwrap().to_owned()
        };
        for dialect in [ErrorFormat::Anthropic, ErrorFormat::Gemini] {
            assert_eq!(shown(dialect, "No stop.", Some("stop")), "`stop`: No stop.");
            assert_eq!(shown(dialect, "`stop` is odd.", Some("stop")), "`stop` is odd.");
            assert_eq!(shown(dialect, "No.", None), "No.");
        }
        assert_eq!(shown(ErrorFormat::OpenAi, "No stop.", Some("stop")), "No stop.", "it has a place of its own");
    }

    #[test]
    fn a_reason_stands_beside_the_code() {
        let bytes = body_with(
            ErrorFormat::OpenAi,
            Code::InvalidParameter,
            "No.",
            Some("page"),
            "",
            &[("reason", Detail::Word("too_long"))],
        );
        let text = r#"{"error":{"message":"No.","type":"invalid_request_error","param":"page","code":"invalid_parameter","reason":"too_long"}}"#;
        assert_eq!(std::str::from_utf8(&bytes).unwrap(), text);
    }

    #[test]
    fn openai_shape() {
        let bytes = body(ErrorFormat::OpenAi, Code::InvalidApiKey, "No.", None, "call_1");
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"error":{"message":"No.","type":"authentication_error","param":null,"code":"invalid_api_key"}}"#
        );
    }
}
