//! Cross-origin requests: which web pages may call this gateway from a browser. Requests are
//! authorised by a key that the page has, never by a cookie, so any page may ask unless the
//! operator names some. The operator's own paths stay closed to pages.

use crate::settings::Pages;
use axum::body::Body;
use axum::response::Response;
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, StatusCode};

/// A browser remembers a preflight for so many seconds, two hours at most whatever it is sent.
const REMEMBERED: HeaderValue = HeaderValue::from_static("7200");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
const ANY: HeaderValue = HeaderValue::from_static("*");
/// Longer lists of header names are not repeated.
const LONGEST_LIST: usize = 4096;
/// Never opened to pages: what an operator sees, and what a signed-in person does.
const CLOSED: [&str; 9] = [
    "/api/admin",
    "/api/account",
    "/api/session",
    "/api/sign-up",
    "/api/password",
    "/api/email",
    "/api/invites",
    "/api/first-operator",
    "/metrics",
];

impl Pages {
    /// The headers for a request from a page; `None` for one that comes from no page, or from one
    /// that may not ask.
    pub fn admit<B>(&self, request: &Request<B>) -> Option<Admitted> {
        let origin = request.headers().get(header::ORIGIN)?;
        if CLOSED.iter().any(|closed| request.uri().path().starts_with(closed)) {
            return None;
        }
        let allowed = match self {
            Pages::All => ANY,
            Pages::These(list) => {
                list.iter().any(|one| one.text().as_bytes() == origin.as_bytes()).then(|| origin.clone())?
            }
        };
        let asks_first = request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        let headers = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS);
        let headers = headers.filter(|list| asks_first && list.len() <= LONGEST_LIST).cloned();
        Some(Admitted { allowed, asks_first, headers })
    }
}

/// A request from a page that may ask.
pub struct Admitted {
    allowed: HeaderValue,
    asks_first: bool,
    headers: Option<HeaderValue>,
}

impl Admitted {
    /// The answer to a browser that asks whether it may ask.
    pub fn preflight(&self) -> Option<Response> {
        self.asks_first.then(|| {
            let mut reply = Response::new(Body::empty());
            *reply.status_mut() = StatusCode::NO_CONTENT;
            let reply_headers = reply.headers_mut();
            reply_headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            reply_headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
            if let Some(headers) = &self.headers {
                reply_headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, headers.clone());
            }
            self.mark(reply_headers);
            reply
        })
    }

    /// Lets the page read a reply.
    pub fn mark(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.allowed.clone());
        // Call id, charge, limits and retry advice are of use to pages too.
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANY);
        if self.allowed != ANY {
            headers.append(header::VARY, HeaderValue::from(HeaderName::from_static("origin")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Origin;

    fn asked(method: &str, path: &str, origin: Option<&str>) -> Request<()> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        if method == "OPTIONS" {
            request = request
                .header("access-control-request-method", "POST")
                .header("access-control-request-headers", "authorization,content-type,x-stainless-os");
        }
        request.body(()).expect("a request")
    }

    #[test]
    fn any_page_may_ask_unless_some_are_named() {
        let page = Some("https://app.example.com");
        let marked = |pages: &Pages, request: Request<()>| {
            let mut headers = HeaderMap::new();
            pages.admit(&request)?.mark(&mut headers);
            Some(headers["access-control-allow-origin"].to_str().expect("text").to_owned())
        };
        let named = Pages::of(vec!["https://app.example.com".parse().expect("an origin")]);
        for (pages, path, origin, expected) in [
            (&Pages::All, "/v1/models", page, Some("*")),
            (&Pages::All, "/v1/models", None, None),
            (&Pages::All, "/api/pricing", page, Some("*")),
            (&Pages::All, "/api/admin/social/cells", page, None),
            (&Pages::All, "/metrics", page, None),
            (&named, "/v1/models", page, page),
            (&named, "/v1/models", Some("https://app.example.com.evil.test"), None),
            (&Pages::These(vec![]), "/v1/models", page, None),
        ] {
            assert_eq!(marked(pages, asked("GET", path, origin)).as_deref(), expected, "{path} {origin:?}");
        }
        assert_eq!(Pages::of(vec!["*".parse().expect("all")]), Pages::All);
    }

    #[test]
    fn a_preflight_is_answered_without_a_key() {
        let request = asked("OPTIONS", "/v1/chat/completions", Some("https://app.example.com"));
        let reply = Pages::All.admit(&request).and_then(|page| page.preflight()).expect("an answer");
        assert_eq!(reply.status(), 204);
        // A `*` would not let a browser send the key.
        assert_eq!(reply.headers()["access-control-allow-headers"], "authorization,content-type,x-stainless-os");
        assert_eq!(reply.headers()["access-control-allow-origin"], "*");
        assert!(!reply.headers().contains_key("access-control-allow-credentials"));
        let plain = asked("GET", "/v1/models", Some("https://app.example.com"));
        assert!(Pages::All.admit(&plain).is_some_and(|page| page.preflight().is_none()));
    }

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for good in ["https://app.example.com", "http://localhost:3000", "*"] {
            assert!(good.parse::<Origin>().is_ok(), "{good}");
        }
        for bad in ["app.example.com", "https://app.example.com/", "https://app.example.com:443", "https://A.example"] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
