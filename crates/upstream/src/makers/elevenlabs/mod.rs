//! ElevenLabs: speech, transcripts, music. Its key stands in a header of its own, its errors are
//! reported in `detail`.

mod music;
mod scribe;
mod speech;

pub(crate) use music::ElevenLabsMusic;
pub(crate) use scribe::Scribe;
pub(crate) use speech::ElevenLabsSpeech;

use crate::video::judge::{ProviderError, Table, Verdict};
use crate::{Fault, WholeReply, making};

/// Words of `detail.status`, and of `detail.code` in newer answers.
const CODES: Table = &[
    ("quota_exceeded", Verdict::Operator),
    ("invalid_api_key", Verdict::Operator),
    ("missing_permissions", Verdict::Operator),
    ("detected_unusual_activity", Verdict::Operator),
    ("payment_required", Verdict::Operator),
    ("too_many_concurrent_requests", Verdict::Busy),
    ("rate_limit_exceeded", Verdict::Busy),
    ("system_busy", Verdict::Busy),
    ("voice_not_found", Verdict::Caller),
    ("max_character_limit_exceeded", Verdict::Caller),
];
const CONTENT: &[&str] = &["content_against_policy", "moderation", "blocked_content", "bad_prompt"];

/// Its errors are `{"detail": {"status", "message"}}`, or a list of what is wrong with the fields.
fn refused(reply: &WholeReply) -> Fault {
    let json = reply.json();
    let detail = &json["detail"];
    let word = |name: &str| detail[name].as_str();
    let code = word("status").or_else(|| word("code")).or_else(|| word("type"));
    let text = word("message").or_else(|| detail[0]["msg"].as_str()).or_else(|| detail.as_str()).unwrap_or_default();
    let said = code.or(detail.is_array().then_some("")).map(|code| ProviderError { code, text });
    let param = detail[0]["loc"].as_array().and_then(|place| place.last()?.as_str());
    let fault = making::coded(reply, said, CODES, CONTENT);
    Fault { param: param.map(|param| crate::safe_text(param, 64)).filter(|param: &String| !param.is_empty()), ..fault }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderMap;
    use tollgate_wire::error::Code;

    #[test]
    fn its_words_decide_before_its_statuses_do() {
        for (status, body, code) in [
            (401, r#"{"detail":{"status":"quota_exceeded","message":"…"}}"#, Code::UpstreamError),
            (429, r#"{"detail":{"status":"too_many_concurrent_requests"}}"#, Code::RateLimitExceeded),
            (400, r#"{"detail":{"status":"content_against_policy","message":"no"}}"#, Code::ContentPolicyViolation),
            (422, r#"{"detail":[{"loc":["body","text"],"msg":"field required"}]}"#, Code::InvalidRequest),
            (500, "oops", Code::UpstreamTimeout),
        ] {
            let reply = WholeReply { status, headers: HeaderMap::new(), body: Bytes::from_static(body.as_bytes()) };
            assert_eq!(refused(&reply).code, code, "{status} {body}");
        }
        let body = Bytes::from_static(br#"{"detail":[{"loc":["body","text"],"msg":"field required"}]}"#);
        let fault = refused(&WholeReply { status: 422, headers: HeaderMap::new(), body });
        assert_eq!((fault.param.as_deref(), fault.message.as_str()), (Some("text"), "field required"));
    }
}
