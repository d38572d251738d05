//! Whose fault it is when something was not made: speech, a picture, a song. It costs the provider
//! from the moment it is begun, so a failure that does not say that nothing was begun is nobody
//! else's to try; and a provider that does not want to make it for what it says is a case of its
//! own.

use crate::chat::judge;
use crate::video::judge::{ProviderError, Table, judge as by_table};
use crate::{Blame, Fault, WholeReply, safe_text};
use tollgate_wire::UpstreamError;
use tollgate_wire::error::Code;

/// Most of a provider's words about content.
const WORDS: usize = 900;

/// Codes of a content refusal, by which clones of OpenAI know it too.
const CONTENT: &[&str] = &[
    "moderation_blocked",
    "content_policy_violation",
    "content_policy",
    "content_filter",
    "content_moderation",
    "safety_violation",
    "sensitive",
];

impl Fault {
    /// The provider does not want the content, before or after it made something of it.
    pub fn content(said: &str) -> Fault {
        let said = safe_text(said, WORDS);
        let message = match said.is_empty() {
            true => "The provider refused the content.".to_owned(),
            false => said,
        };
        Fault { blame: Blame::Caller, code: Code::ContentPolicyViolation, message, try_other: false, ..Fault::garbage() }
            .unmade()
    }

    /// Nothing came of it, and nothing was charged for it.
    fn unmade(self) -> Fault {
        Fault { maybe_charged: false, ..self }
    }
}

/// What a reply with an error status means, in the words of OpenAI and its clones.
pub(crate) fn openai(reply: &WholeReply) -> Fault {
    let said = UpstreamError::read(&reply.body);
    if let Some(error) = said.as_ref().filter(|error| is_content(error)) {
        return Fault { upstream_status: Some(reply.status), ..Fault::content(&error.message) };
    }
    cautious(judge::refused(reply), reply.status, said.is_some())
}

/// The same of an error object in a reply of status 200.
pub(crate) fn openai_inside(error: &UpstreamError) -> Fault {
    if is_content(error) {
        return Fault::content(&error.message);
    }
    cautious(judge::inside(error), error.status.unwrap_or(500), true)
}

fn is_content(error: &UpstreamError) -> bool {
    let says = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default().to_ascii_lowercase();
        CONTENT.iter().any(|word| text.contains(word))
    };
    says(&error.code) || says(&error.kind)
}

/// Limits and refusals are decided before anything is begun; a server's failure is not.
fn cautious(fault: Fault, status: u16, own_words: bool) -> Fault {
    match status {
        // Too busy to begin, in its own words.
        503 | 529 if own_words => fault,
        408 | 504 => Fault { maybe_charged: true, try_other: false, ..fault },
        500.. => Fault { maybe_charged: !own_words, try_other: false, ..fault },
        _ => fault,
    }
}

/// What a reply that is no success means, by a provider's own table of codes; some of them say that
/// the content is refused.
pub(crate) fn coded(
    reply: &WholeReply,
    said: Option<ProviderError<'_>>,
    table: Table,
    content: &[&str],
) -> Fault {
    if let Some(error) = said.as_ref().filter(|error| content.iter().any(|code| error.code.contains(code))) {
        let fault = Fault::content(error.text);
        return Fault {
            upstream_status: Some(reply.status),
            upstream_code: Some(safe_text(error.code, 100)),
            ..fault
        };
    }
    by_table(reply, said, table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;

    fn reply(status: u16, body: &'static str) -> WholeReply {
        WholeReply { status, headers: HeaderMap::new(), body: Bytes::from_static(body.as_bytes()) }
    }

    #[test]
    fn who_may_try_again_and_what_may_have_been_begun() {
        let busy = r#"{"error":{"message":"overloaded","type":"server_error"}}"#;
        for (status, body, code, try_other, begun) in [
            (429, "{}", Code::RateLimitExceeded, true, false),
            (503, busy, Code::Overloaded, true, false),
            (503, "<html>", Code::Overloaded, false, true),
            (500, busy, Code::UpstreamError, false, true),
            (502, "<html>", Code::UpstreamError, false, true),
            (504, "", Code::UpstreamTimeout, false, true),
            (401, "{}", Code::UpstreamError, true, false),
            (400, r#"{"error":{"message":"bad voice","param":"voice"}}"#, Code::InvalidRequest, false, false),
            (
                400,
                r#"{"error":{"message":"not that","code":"moderation_blocked"}}"#,
                Code::ContentPolicyViolation,
                false,
                false,
            ),
        ] {
            let fault = openai(&reply(status, body));
            assert_eq!((fault.code, fault.try_other, fault.may_have_begun()), (code, try_other, begun), "{status} {body}");
        }
    }
}
