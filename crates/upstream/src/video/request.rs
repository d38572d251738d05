//! What goes out and what comes back: one way to write requests for all video adaptors.

use super::Remembers;
use crate::outgoing::outgoing;
use crate::{Outgoing, Provider};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Uri};
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

impl Asking<'_> {
    /// A request with the provider's bearer key. `None` when the path makes no address.
    pub(crate) fn bearer(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Outgoing> {
        self.keyed(method, path, body, self.provider.authorization())
    }

    /// A request with a key of another make.
    pub(crate) fn keyed(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<(http::HeaderName, HeaderValue)>,
    ) -> Option<Outgoing> {
        let uri = self.provider.base_url.join(path).ok()?;
        let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let mut request = outgoing(method, uri, "application/json", bytes);
        if body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some((name, value)) = key {
            request.headers_mut().insert(name, value);
        }
        Some(request)
    }

    /// A request to any link, without a key.
    pub(crate) fn plain(&self, url: &str) -> Option<Outgoing> {
        let uri: Uri = url.parse().ok()?;
        Some(outgoing(Method::GET, uri, "*/*", Bytes::new()))
    }

    /// Whether a link leads to the provider itself.
    pub(crate) fn is_own(&self, url: &str) -> bool {
        let base = self.provider.base_url.join("/").ok();
        let (Some(base), Ok(uri)) = (base, url.parse::<Uri>()) else { return false };
        uri.scheme() == base.scheme() && uri.authority() == base.authority()
    }
}
