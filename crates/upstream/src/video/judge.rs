//! Whose fault a refusal is, from a provider's own table of codes. Statuses lie: money trouble
//! comes as 400 and as 429.

use super::read::text;
use crate::{Blame, Fault, WholeReply, safe_text};
use tollgate_wire::error::Code;

/// What a provider's code means for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The caller's request.
    Caller,
    /// Our key, account, money or configuration.
    Operator,
    /// Too fast, too many at once, or overloaded: later, or elsewhere. Nothing was made.
    Busy,
    /// The provider's own failure, in its own words: it says that nothing was made. That is
    /// not as good as a refusal, which is decided before anything is begun, so nobody else is
    /// asked.
    Failed,
    /// It gave up waiting for itself: the task may exist.
    Unsure,
}

/// What a provider said went wrong.
pub(crate) struct ProviderError<'a> {
    pub code: &'a str,
    pub text: &'a str,
}

/// One provider's codes. A row ending in `*` stands for all codes that begin so; the first row that
/// fits counts.
pub(crate) type Table = &'static [(&'static str, Verdict)];

const TEXT: usize = 900;
const CODE: usize = 100;

/// What a reply that is no success means. `said` is `None` when the provider's own shape of errors
/// was not found in it.
pub(crate) fn judge(reply: &WholeReply, said: Option<ProviderError<'_>>, table: Table) -> Fault {
    let verdict = said.as_ref().and_then(|said| {
        let fits = |row: &str| row.strip_suffix('*').map_or(row == said.code, |start| said.code.starts_with(start));
        table.iter().find(|(row, _)| fits(row)).map(|(_, verdict)| *verdict)
    });
    let verdict = verdict.unwrap_or_else(|| by_status(reply.status, said.is_some()));
    let fault = match verdict {
        Verdict::Caller => caller(said.as_ref()),
        Verdict::Operator => {
            let message = format!("The provider did not accept the gateway's request (HTTP {}).", reply.status);
            base(Blame::Operator, Code::UpstreamError, message)
        }
        Verdict::Busy => {
            let message = "The provider is limiting requests; try again in a moment.".to_owned();
            base(Blame::Provider, Code::RateLimitExceeded, message)
        }
        Verdict::Failed => {
            let fault = base(Blame::Provider, Code::UpstreamError, failed(reply.status, said.as_ref()));
            Fault { try_other: false, ..fault }
        }
        Verdict::Unsure => {
            let message = failed(reply.status, said.as_ref());
            let fault = base(Blame::Provider, Code::UpstreamTimeout, message);
            Fault { maybe_charged: true, try_other: false, ..fault }
        }
    };
    // How we stand with the provider is nobody else's business.
    let safe = said.filter(|_| verdict != Verdict::Operator).map(|said| safe_text(said.code, CODE));
    let upstream_code = safe.filter(|code| !code.is_empty());
    Fault { upstream_status: Some(reply.status), upstream_code, retry_after: retry_after(reply), ..fault }
}

/// A server's failure in somebody else's words (a proxy's page) says nothing about what the
/// provider did.
fn by_status(status: u16, own_words: bool) -> Verdict {
    match status {
        400 | 413 | 415 | 422 => Verdict::Caller,
        408 | 504 => Verdict::Unsure,
        429 => Verdict::Busy,
        200..=299 | 500.. if !own_words => Verdict::Unsure,
        200..=299 | 500.. => Verdict::Failed,
        _ => Verdict::Operator,
    }
}

fn caller(said: Option<&ProviderError<'_>>) -> Fault {
    let parts = said.map(|said| (safe_text(said.code, CODE), text(said.text, TEXT)));
    let message = match parts {
        Some((code, text)) if !code.is_empty() && !text.is_empty() => format!("{code}: {text}"),
        Some((code, text)) if !(code.is_empty() && text.is_empty()) => code + &text,
        _ => "The provider refused the request.".to_owned(),
    };
    let own = said.is_some_and(|said| said.code == Code::TaskTypeConstraint.code());
    let code = if own { Code::TaskTypeConstraint } else { Code::InvalidRequest };
    Fault { try_other: false, ..base(Blame::Caller, code, message) }
}

fn failed(status: u16, said: Option<&ProviderError<'_>>) -> String {
    match said.map(|said| safe_text(said.code, CODE)).filter(|code| !code.is_empty()) {
        Some(code) => format!("The provider failed (HTTP {status}, {code})."),
        None => format!("The provider failed (HTTP {status})."),
    }
}

fn base(blame: Blame, code: Code, message: String) -> Fault {
    Fault {
        blame,
        code,
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

fn retry_after(reply: &WholeReply) -> Option<u32> {
    let value = reply.headers.get("retry-after")?.to_str().ok()?;
    value.trim().parse::<u64>().ok().and_then(|seconds| u32::try_from(seconds.clamp(1, 60)).ok())
}
