//! What goes out and what comes back: one way to write requests for all video adaptors.

use super::{Outgoing, Remembers};
use crate::Provider;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde_json::{Map, Value};
use tollgate_media::video::{Api, Plan};

/// Whom we ask, when, and for which call.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    pub provider: &'a Provider,
    /// Unix seconds; signed keys begin and end.
    pub now: i64,
}

/// A task to be created.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub plan: &'a Plan,
    /// The provider's name for the model.
    pub model: &'a str,
    /// Our id of the task, given to providers that keep it.
    pub external_id: &'a str,
}

/// A task that a provider has. Everything here must be stored when it is created.
#[derive(Clone, Copy, Debug)]
pub struct Handle<'a> {
    pub api: Api,
    /// The operation it was created with.
    pub call: &'a str,
    pub id: &'a str,
}

/// A task whose creation was sent and not answered.
#[derive(Clone, Copy, Debug)]
pub struct Sought<'a> {
    pub api: Api,
    pub call: &'a str,
    pub model: &'a str,
    pub external_id: &'a str,
    /// Unix seconds between which it was sent.
    pub sent: (i64, i64),
    /// What of the body lists tell.
    pub body: &'a Map<String, Value>,
    /// Whoever knows its prompt again.
    pub prompt: Option<&'a dyn Remembers>,
}

/// A whole reply.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

const AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

impl Asking<'_> {
    /// A request with the provider's bearer key. `None` when the path makes no address.
    pub(super) fn bearer(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Outgoing> {
        self.keyed(method, path, body, self.provider.authorization().map(|value| (AUTHORIZATION, value)))
    }

    /// A request with a key of another make.
    pub(super) fn keyed(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<(http::HeaderName, HeaderValue)>,
    ) -> Option<Outgoing> {
        let uri = self.provider.base_url.join(path).ok()?;
        let mut request = bare(method, uri, body.map(|body| Bytes::from(body.to_string())).unwrap_or_default());
        if body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((name, value)) = key {
            request.headers_mut().insert(name, value);
        }
        Some(request)
    }

    /// A request to any link, without a key.
    pub(super) fn plain(&self, url: &str) -> Option<Outgoing> {
        let uri: Uri = url.parse().ok()?;
        let mut request = bare(Method::GET, uri, Bytes::new());
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        Some(request)
    }

    /// Whether a link leads to the provider itself.
    pub(super) fn is_own(&self, url: &str) -> bool {
        let base = self.provider.base_url.join("/").ok();
        let (Some(base), Ok(uri)) = (base, url.parse::<Uri>()) else { return false };
        uri.scheme() == base.scheme() && uri.authority() == base.authority()
    }
}

fn bare(method: Method, uri: Uri, body: Bytes) -> Outgoing {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    request
}
