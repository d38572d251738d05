//! Providers of social data: the supplier that sells it (kind `tikhub`) and sources one runs
//! oneself with the same route names (kind `social-source`). Both are asked in the same way and
//! answer in an envelope with `code` and `data`; errors of the supplier stand in `detail`, those of
//! other sources often at the top, and either is read.
//!
//! The supplier bills HTTP 200 and nothing else, so every error status is surely free, and a
//! request that was sent and not answered may have been billed.

use crate::outgoing::outgoing;
use crate::{Blame, Fault, Outgoing, Provider, SocialAsk, SocialData, WholeReply, safe_text};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use tollgate_media::social::{SupplierError, read_refused};
use tollgate_wire::error::Code;

/// The supplier, or a source of one's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TikHub;

/// Seconds to wait when a busy source does not say.
const BUSY: u32 = 3;

impl SocialData for TikHub {
    fn request(&self, provider: &Provider, ask: &SocialAsk<'_>) -> Option<Outgoing> {
        let at = |path: &str| provider.base_url.join(path).ok();
        let (method, uri, body) = match ask {
            SocialAsk::Get { path, query: "" } => (Method::GET, at(path)?, Bytes::new()),
            SocialAsk::Get { path, query } => (Method::GET, at(&format!("{path}?{query}"))?, Bytes::new()),
            SocialAsk::Post { path, body } => (Method::POST, at(path)?, body.clone()),
        };
        let has_body = method == Method::POST;
        let mut request = outgoing(method, uri, "application/json", body);
        let headers = request.headers_mut();
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((name, value)) = provider.authorization() {
            headers.insert(name, value);
        }
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        let fault = judge(reply.status, &read_refused(&reply.body));
        Fault { retry_after: retry_after(&reply.headers).or(fault.retry_after), ..fault }
    }
}

/// Who is to blame for an error status, and the client's error.
fn judge(status: u16, said: &SupplierError) -> Fault {
    let blank = Fault {
        blame: Blame::Provider,
        code: Code::SocialDataUpstreamError,
        message: format!("The data source failed (HTTP {status})."),
        param: None,
        try_other: true,
        sent: true,
        maybe_charged: false,
        upstream_status: Some(status),
        retry_after: None,
        upstream_code: None,
        details: None,
        seals: false,
    };
    let operator = |message: &str| Fault { blame: Blame::Operator, message: message.to_owned(), ..blank.clone() };
    match status {
        // Almost any failed fetch: the platform refused, the id is unknown, no resources are left.
        400 => Fault { message: "The data source could not fetch this from the platform.".to_owned(), ..blank },
        401..=403 | 405 | 300..=399 => operator("The data source did not accept the gateway's request."),
        404 if no_such_route(said) => operator("The data source does not have this route any more."),
        404 => Fault {
            blame: Blame::Caller,
            code: Code::SocialDataNoResult,
            message: "The platform found nothing for these parameters.".to_owned(),
            try_other: false,
            ..blank
        },
        422 => Fault {
            blame: Blame::Caller,
            code: Code::InvalidParameter,
            message: shape_message(said),
            param: said.param.as_deref().map(|param| safe_text(param, 64)),
            try_other: false,
            ..blank
        },
        429 => Fault {
            code: Code::SocialDataCapacityReached,
            message: "The platform is busy; try again in a few seconds.".to_owned(),
            retry_after: Some(BUSY),
            ..blank
        },
        _ => blank,
    }
}

/// The supplier's word for a route it does not have, which is not a thing that was not found.
fn no_such_route(said: &SupplierError) -> bool {
    said.bare || said.message.contains("endpoint data") || said.message == "Not Found"
}

fn shape_message(said: &SupplierError) -> String {
    let text = safe_text(&said.message, 300);
    let name = said.param.as_deref().map(|param| safe_text(param, 64)).unwrap_or_default();
    match (name.as_str(), text.as_str()) {
        ("", "") => "The data source refused a parameter.".to_owned(),
        ("", text) => format!("The data source refused a parameter: {text}"),
        (name, "") => format!("The data source refused `{name}`."),
        (name, text) => format!("The data source refused `{name}`: {text}"),
    }
}

/// Seconds to wait, between 1 and 60, as `Retry-After` or `X-RateLimit-Reset` says. Both may name a
/// moment; how far away it is, the reply's own `Date` tells.
fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let moment = |text: &str| {
        let since = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(since.as_secs())
    };
    let now = text("date").and_then(moment);
    let seconds = |text: &str| match text.parse::<u64>() {
        // More than thirty years are a moment, in seconds or in milliseconds since 1970.
        Ok(at) if at > 1_000_000_000_000 => Some((at / 1_000).saturating_sub(now?)),
        Ok(at) if at > 1_000_000_000 => Some(at.saturating_sub(now?)),
        Ok(seconds) => Some(seconds),
        Err(_) => Some(moment(text)?.saturating_sub(now?)),
    };
    let wait = text("retry-after").and_then(seconds).or_else(|| text("x-ratelimit-reset").and_then(seconds))?;
    u32::try_from(wait.clamp(1, 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, ProviderSettings, Secret, kind};
    use http::header::USER_AGENT;

    fn fault(status: u16, headers: &HeaderMap, body: &str) -> Fault {
        TikHub.fault(&WholeReply { status, headers: headers.clone(), body: Bytes::from(body.to_owned()) })
    }

    #[test]
    fn every_error_status_means_what_was_seen() {
        let read = |status: u16, body: &str| {
            let fault = fault(status, &HeaderMap::new(), body);
            assert!(!fault.maybe_charged && fault.upstream_status == Some(status), "only 200 is billed");
            (fault.code, fault.blame, fault.try_other)
        };
        let failed = r#"{"detail":{"code":400,"message":"Request failed. Please retry."}}"#;
        let error = Code::SocialDataUpstreamError;
        assert_eq!(read(400, failed), (error, Blame::Provider, true));
        for status in [401, 402, 403, 301, 405] {
            assert_eq!(read(status, ""), (error, Blame::Operator, true), "{status}");
        }
        assert_eq!(
            read(404, r#"{"detail":{"code":404,"message":"User not found"}}"#),
            (Code::SocialDataNoResult, Blame::Caller, false)
        );
        assert_eq!(read(404, r#"{"detail":"Not Found"}"#), (error, Blame::Operator, true));
        assert_eq!(
            read(404, r#"{"detail":{"message":"Database did not find endpoint data"}}"#),
            (error, Blame::Operator, true)
        );
        assert_eq!(read(429, ""), (Code::SocialDataCapacityReached, Blame::Provider, true));
        for status in [500, 502, 503, 418] {
            assert_eq!(read(status, "<html>edge-7.internal</html>"), (error, Blame::Provider, true), "{status}");
        }
        let shape =
            r#"{"detail":[{"loc":["body","cursor"],"msg":"not an integer, see https://x.example/y","type":"t"}]}"#;
        let fault = fault(422, &HeaderMap::new(), shape);
        assert_eq!((fault.code, fault.param.as_deref()), (Code::InvalidParameter, Some("cursor")));
        assert_eq!(fault.message, "The data source refused `cursor`: not an integer, see [link]");
    }

    #[test]
    fn busy_says_how_long() {
        let mut headers = HeaderMap::new();
        assert_eq!(fault(429, &headers, "").retry_after, Some(3));
        headers.insert("retry-after", HeaderValue::from_static("900"));
        assert_eq!(fault(429, &headers, "").retry_after, Some(60));
        let date = ("date", "Sun, 15 Nov 2026 09:00:00 GMT");
        let cases: &[(&[(&str, &str)], u32)] = &[
            (&[("x-ratelimit-reset", "7")], 7),
            (&[date, ("x-ratelimit-reset", "1794733212")], 12),
            (&[date, ("x-ratelimit-reset", "1794733212500")], 12),
            (&[date, ("x-ratelimit-reset", "1794733100")], 1),
            (&[("x-ratelimit-reset", "1794733212")], BUSY),
            (&[date, ("retry-after", "Sun, 15 Nov 2026 09:00:20 GMT")], 20),
            (&[("retry-after", "Sun, 15 Nov 2026 09:00:20 GMT")], BUSY),
            (&[("retry-after", "4"), ("x-ratelimit-reset", "7")], 4),
            (&[("retry-after", "soon"), ("x-ratelimit-reset", "7")], 7),
            (&[("x-ratelimit-reset", "-3")], BUSY),
        ];
        for (list, seconds) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in *list {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(fault(429, &headers, "").retry_after, Some(*seconds), "{list:?}");
        }
    }

    #[test]
    fn a_request_carries_what_the_route_takes_and_nothing_of_the_caller() {
        let base = BaseUrl::parse("https://x.example/api/v1").expect("an address");
        let provider = Provider::new(
            "p",
            kind("tikhub").expect("a kind"),
            base,
            Some(Secret::new("sk-hidden")),
            ProviderSettings::default(),
        )
        .expect("a provider");
        let get = provider.social(&SocialAsk::Get { path: "/a/b", query: "keyword=%E5" }).expect("a request");
        assert_eq!(
            (get.method(), get.uri().to_string().as_str()),
            (&Method::GET, "https://x.example/api/v1/a/b?keyword=%E5")
        );
        assert!(get.headers()[USER_AGENT].to_str().expect("text").starts_with("tollgate/"));
        assert!(!format!("{get:?}").contains("hidden") && get.headers().contains_key("authorization"));
        let post =
            provider.social(&SocialAsk::Post { path: "/c", body: Bytes::from_static(b"{}") }).expect("a request");
        assert_eq!(
            (post.method(), post.headers()[CONTENT_TYPE].to_str().ok()),
            (&Method::POST, Some("application/json"))
        );
        assert!(
            provider.social(&SocialAsk::Get { path: "/a", query: "" }).is_some_and(|one| one.uri().query().is_none())
        );
    }
}
