//! A refusal is our own "no", or a provider's fault translated for the caller: a code from the one table of
//! public errors, a message that names the field, and retry advice. It becomes a reply in the caller's dialect here
//! and nowhere else.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};
use tollgate_catalog::Money;
use tollgate_wire::error::{self, Code, Detail, Dialect, Retry};

/// Why a request was not served.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub param: Option<String>,
    /// Seconds; the table's own advice is used when it is absent.
    pub retry_after: Option<u32>,
    /// Tells cases of one code apart, for programs.
    pub reason: Option<&'static str>,
    /// Sent again it could be made, and paid, twice: no SDK shall do that by itself.
    pub once: bool,
    /// The provider's own word for it.
    pub upstream_code: Option<Box<str>>,
    /// What else it says, as a JSON object, for clients that speak as it does.
    pub details: Option<Box<str>>,
    /// What would have been needed, for want of money.
    pub amounts: Option<Box<Amounts>>,
}

/// Money that a call needs and does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts {
    pub needed: Money,
    /// Nothing: it is a limit that stands in the way.
    pub available: Option<Money>,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            reason: None,
            once: false,
            upstream_code: None,
            details: None,
            amounts: None,
        }
    }

    pub fn about(code: Code, param: &str, message: impl Into<String>) -> Refusal {
        Refusal { param: Some(param.to_owned()), ..Refusal::new(code, message) }
    }

    pub fn after(mut self, seconds: u32) -> Refusal {
        self.retry_after = Some(seconds);
        self
    }

    pub fn once(mut self) -> Refusal {
        self.once = true;
        self
    }

    pub fn because(mut self, reason: &'static str) -> Refusal {
        self.reason = Some(reason);
        self
    }

    /// What stands beside the code, for programs.
    fn more(&self) -> Vec<(&'static str, Detail<'_>)> {
        let words = [("reason", self.reason), ("upstream_code", self.upstream_code.as_deref())];
        let words = words.into_iter().filter_map(|(name, word)| Some((name, Detail::Word(word?))));
        let needed = self.amounts.as_deref().map(|one| ("needed_nano_usd", one.needed));
        let available = self.amounts.as_deref().and_then(|one| Some(("available_nano_usd", one.available?)));
        let amounts = needed.into_iter().chain(available).map(|(name, amount)| (name, Detail::Amount(amount.nano())));
        let details = self.details.as_deref().map(|raw| ("details", Detail::Object(raw)));
        words.chain(amounts).chain(details).collect()
    }

    /// The reply in the caller's dialect. `request_id` is the call id where there is one.
    pub fn into_reply(self, dialect: Dialect, request_id: &str) -> Response {
        let body = error::body_with(dialect, self.code, &self.message, self.param.as_deref(), request_id, &self.more());
        let mut reply = Response::new(Body::from(body));
        *reply.status_mut() =
            http::StatusCode::from_u16(self.code.status()).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        let headers = reply.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if !request_id.is_empty()
            && let Ok(id) = HeaderValue::from_str(request_id)
        {
            headers.insert("x-request-id", id);
        }
        let advised = match self.code.retry() {
            _ if self.once => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
                None
            }
            // A limit by day or month is a "no" that ends; its refusal says when, if that is soon.
            Retry::Never if self.retry_after.is_some() => None,
            Retry::Never => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
                None
            }
            Retry::Soon => None,
            Retry::After(seconds) => Some(seconds),
        };
        if let Some(seconds) = self.retry_after.filter(|_| !self.once).or(advised) {
            // Some SDKs sleep as long as they are told: never tell them more than a minute. What is used up for the day or the
            // hour is the exception, and such a call is not worth repeating before.
            let used_up = matches!(self.reason, Some("daily" | "no_result_limit"));
            headers.insert(header::RETRY_AFTER, HeaderValue::from(if used_up { seconds } else { seconds.min(60) }));
            if used_up {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
        }
        if self.code == Code::InvalidApiKey {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        reply
    }
}

impl From<tollgate_wire::Problem> for Refusal {
    fn from(problem: tollgate_wire::Problem) -> Refusal {
        Refusal { param: problem.param, ..Refusal::new(problem.code, problem.message) }
    }
}

impl From<tollgate_upstream::Fault> for Refusal {
    fn from(fault: tollgate_upstream::Fault) -> Refusal {
        let busy = fault.code == Code::SocialDataCapacityReached;
        Refusal {
            param: fault.param,
            retry_after: fault.retry_after,
            reason: busy.then_some("busy"),
            upstream_code: fault.upstream_code.map(String::into_boxed_str),
            details: fault.details,
            ..Refusal::new(fault.code, fault.message)
        }
    }
}

impl From<tollgate_store::StoreError> for Refusal {
    fn from(error: tollgate_store::StoreError) -> Refusal {
        tracing::error!(%error, "store");
        Refusal::new(Code::LedgerUnavailable, "The ledger cannot be reached at the moment; nothing was charged.")
            .after(2)
    }
}
