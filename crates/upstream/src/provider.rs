//! A configured provider, with everything a call needs computed beforehand.

use crate::chat::{bearer, key_in};
use crate::http1::{PLACE, PreparedHead, Written};
use crate::outgoing::outgoing;
use crate::signing::Signer;
use crate::{Ability, ChatAsk, Outgoing, ProviderKind, Secret, SocialAsk};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Method, Uri};
use std::fmt;
use std::time::Duration;
use tollgate_media::realtime::GeminiUsage;
use tollgate_wire::ChatQuirks;

/// A checked base address: scheme, host, optional path; no user, query or fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    path: String,
}

impl BaseUrl {
    /// Reads an address such as `https://api.example.com/v1`.
    pub fn parse(text: &str) -> Result<BaseUrl, BadProvider> {
        let bad = |why| Err(BadProvider(why));
        if text.contains('#') {
            return bad("base_url must not have a fragment");
        }
        let Ok(uri) = text.parse::<Uri>() else {
            return bad("base_url is not a valid address");
        };
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return bad("base_url must start with http:// or https:// and name a host");
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return bad("base_url must start with http:// or https://");
        }
        if authority.as_str().contains('@') {
            return bad("base_url must not carry a user or a password");
        }
        if authority.host().is_empty() {
            return bad("base_url must name a host");
        }
        let path = match parts.path_and_query {
            Some(path) if path.query().is_some() => return bad("base_url must not have a query"),
            Some(path) => path.path().trim_end_matches('/').to_owned(),
            None => String::new(),
        };
        Ok(BaseUrl { scheme, authority, path })
    }

    /// The address of a path below the base; `path` starts with a slash.
    pub fn join(&self, path: &str) -> Result<Uri, BadProvider> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{path}", self.path))
            .build()
            .map_err(|_| BadProvider("base_url gives no valid address"))
    }

    /// The same without a version at its end.
    pub(crate) fn without_version(&self) -> BaseUrl {
        let path = self.path.strip_suffix("/v1").unwrap_or(&self.path).to_owned();
        BaseUrl { path, ..self.clone() }
    }

    pub fn host(&self) -> &str {
        self.authority.host()
    }

    /// Host and port, spelt one way: small letters, and no port where it is the scheme's own.
    pub fn place(&self) -> String {
        let own = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        let host = self.authority.host().to_ascii_lowercase();
        self.authority
            .port_u16()
            .filter(|port| *port != own)
            .map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a provider cannot be configured so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadProvider(pub &'static str);

/// Limits and habits of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSettings {
    /// It goes on billing after the client left, so the rest is read for the true usage.
    pub bill_on_cancel: bool,
    /// From sending to the reply's headers.
    pub first_byte: Duration,
    /// Between two chunks of a reply.
    pub idle: Duration,
    /// How long and how much is read after the client left, with `bill_on_cancel`.
    pub drain_time: Duration,
    pub drain_bytes: u64,
    pub max_event_bytes: usize,
    pub max_reply_bytes: usize,
    /// A model of which more than this share of an hour's completed calls came without usage is
    /// paused; 0: never.
    pub estimated_percent: u64,
    /// … if they are at least so many.
    pub estimated_rows: u64,
    pub pause_time: Duration,
    /// Between two polls of one video task; absent: as the provider wants it.
    pub poll_every: Option<Duration>,
    /// Its routes are probed after so long without traffic; zero: never; absent: as all are.
    pub probe_every: Option<Duration>,
    /// Requests that may begin on one route in any second; 0: no limit of our own. Social data and
    /// polls of video tasks look at it.
    pub per_second: usize,
    /// Links to its files may lead to private addresses.
    pub private_links: bool,
    /// Nobody but this gateway makes videos with the account.
    pub exclusive: bool,
    /// It takes pictures and documents by their address; else the gateway fetches them.
    pub takes_links: bool,
    /// What its chat completions do not take.
    pub quirks: ChatQuirks,
    /// Azure: the version of the older form, which has deployments in its paths.
    pub api_version: Option<String>,
    /// How the usage of Gemini Live is to be read.
    pub live_usage: GeminiUsage,
    /// Tokens of a second of audio that it hears and says in sessions, where they are not as usual.
    pub live_heard: Option<u64>,
    pub live_said: Option<u64>,
    /// The row of the providers that are known by name it began with.
    pub preset: Option<String>,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        ProviderSettings {
            bill_on_cancel: false,
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            drain_time: Duration::from_secs(60),
            drain_bytes: 1 << 20,
            max_event_bytes: 1 << 20,
            max_reply_bytes: 32 << 20,
            estimated_percent: 1,
            estimated_rows: 10,
            pause_time: Duration::from_secs(10 * 60),
            poll_every: None,
            probe_every: None,
            per_second: 0,
            private_links: false,
            exclusive: false,
            takes_links: true,
            quirks: ChatQuirks::default(),
            api_version: None,
            live_usage: GeminiUsage::EachResponse,
            live_heard: None,
            live_said: None,
            preset: None,
        }
    }
}

/// Where calls go.
#[derive(Clone, Debug)]
pub struct Provider {
    pub name: String,
    pub kind: &'static ProviderKind,
    pub base_url: BaseUrl,
    pub settings: ProviderSettings,
    /// Where conversations go, if it takes them.
    chat_uri: Option<Uri>,
    /// What goes there before the body, where that is the same for every call.
    chat_head: Option<PreparedHead>,
    /// The header that carries the key, where it is sent as it is.
    authorization: Option<(HeaderName, HeaderValue)>,
    signer: Option<Signer>,
    secret: Option<Secret>,
    key_print: String,
}

impl Provider {
    pub fn new(
        name: impl Into<String>,
        kind: &'static ProviderKind,
        base_url: BaseUrl,
        secret: Option<Secret>,
        settings: ProviderSettings,
    ) -> Result<Provider, BadProvider> {
        let chat_uri = kind.chat.map(|chat| base_url.join(chat.path())).transpose()?;
        if secret.as_ref().is_some_and(Secret::is_empty) {
            return Err(BadProvider("the secret is empty"));
        }
        let signer = Signer::new(kind.signing, secret.as_ref(), &base_url)?;
        let authorization = match &secret {
            Some(secret) if signer.is_none() => Some(header_of(kind, secret)?),
            _ => None,
        };
        let key_print = secret.as_ref().map(|secret| secret.print(kind.key_pair)).unwrap_or_default();
        let name = name.into();
        let chat_head = None;
        let mut provider =
            Provider { name, kind, base_url, settings, chat_uri, chat_head, authorization, signer, secret, key_print };
        provider.chat_head = provider.prepared();
        Ok(provider)
    }

    /// The head of every conversation, where it is the same for all of them.
    fn prepared(&self) -> Option<PreparedHead> {
        self.kind.chat.filter(|chat| chat.is_steady() && self.signer.is_none())?;
        let ask = ChatAsk { body: Bytes::new(), call_id: PLACE, model: "", stream: false, passed: &[] };
        self.chat(ask).and_then(PreparedHead::of)
    }

    pub fn has_key(&self) -> bool {
        self.secret.is_some()
    }

    /// A conversation as it is written, and where it goes; `None` where its head is not prepared.
    pub(crate) fn prepared_chat(&self, ask: &ChatAsk<'_>) -> Option<(&Uri, Written)> {
        let head = self.chat_head.as_ref().filter(|_| ask.passed.is_empty())?;
        Some((self.chat_uri.as_ref()?, head.fill(ask.call_id, ask.body.clone())))
    }

    /// The request for a conversation; `None` where it takes none.
    pub fn chat(&self, ask: ChatAsk<'_>) -> Option<Outgoing> {
        Some(self.kind.chat?.request(self, self.chat_uri.clone()?, ask))
    }

    /// The request for social data; `None` where it sells none, or when the path does not fit into
    /// an address.
    pub fn social(&self, ask: &SocialAsk<'_>) -> Option<Outgoing> {
        self.kind.social?.request(self, ask)
    }

    /// The request for the list of its models, which costs nothing; `None` where its kind has none.
    pub fn list_of_models(&self) -> Option<Outgoing> {
        let path = match self.kind.name {
            "openai" | "openai-responses" | "jina" | "azure" | "azure-responses" => "/models",
            "anthropic" => "/v1/models",
            "gemini" => "/v1beta/models",
            "dashscope" => "/compatible-mode/v1/models",
            _ => return None,
        };
        let mut request = outgoing(Method::GET, self.base_url.join(path).ok()?, "application/json", Bytes::new());
        match self.kind.name {
            "anthropic" => {
                key_in(&mut request, "x-api-key", self);
                request.headers_mut().insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
            }
            "gemini" => key_in(&mut request, "x-goog-api-key", self),
            _ => bearer(&mut request, self),
        }
        Some(request)
    }

    /// Says what is wrong with a route that needs an ability of a provider that does not have it.
    pub fn lacks(&self, ability: Ability) -> Option<String> {
        if self.kind.has(ability) {
            return None;
        }
        let able = Ability::ALL.iter().filter(|one| self.kind.has(**one)).map(Ability::to_string);
        let able: Vec<String> = able.collect();
        Some(format!(
            "{:?} is of kind {:?}, which has no {ability}; it has {}",
            self.name,
            self.kind.name,
            able.join(", ")
        ))
    }

    /// By this the account is known again; empty where no key is sent.
    pub fn key_print(&self) -> &str {
        &self.key_print
    }

    /// Whether it is the account with this key at this host.
    pub fn is_account(&self, host: &str, key_print: &str) -> bool {
        self.base_url.place() == host && self.key_print == key_print
    }

    /// Whether both are one account under two names.
    pub fn is_same_account(&self, other: &Provider) -> bool {
        self.is_account(&other.base_url.place(), &other.key_print)
    }

    /// For keys that are not sent as they are.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    pub(crate) fn authorization(&self) -> Option<(HeaderName, HeaderValue)> {
        self.authorization.clone()
    }

    /// Whoever signs its requests, where the key is not sent as it is.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }
}

/// The header that carries a key as it is. Where a kind has one of its own, a token that somebody
/// else signed is a bearer all the same.
fn header_of(kind: &ProviderKind, secret: &Secret) -> Result<(HeaderName, HeaderValue), BadProvider> {
    let bad = BadProvider("the secret cannot stand in a header");
    match kind.key_header.filter(|_| !secret.is_token()) {
        Some(name) => Ok((HeaderName::from_static(name), secret.bare().ok_or(bad)?)),
        None => Ok((AUTHORIZATION, secret.bearer().ok_or(bad)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind;
    use bytes::Bytes;

    #[test]
    fn base_urls() {
        for good in ["http://127.0.0.1:9/v1", "https://api.example.com", "https://x.example/v1/"] {
            assert!(BaseUrl::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "api.example.com/v1",
            "ftp://x/v1",
            "https://u:p@x/v1",
            "https://x/v1?a=b",
            "https://x/#f",
            "/v1",
            "http://",
        ] {
            assert!(BaseUrl::parse(bad).is_err(), "{bad}");
        }
        let base = BaseUrl::parse("https://x.example/v1/").unwrap();
        assert_eq!(base.join("/chat/completions").unwrap(), "https://x.example/v1/chat/completions");
        assert_eq!(base.to_string(), "https://x.example/v1");
        for (text, place) in [
            ("https://X.example/v1", "x.example"),
            ("https://x.example:443", "x.example"),
            ("http://x.example:443", "x.example:443"),
            ("http://x.example:80/v2", "x.example"),
            ("http://127.0.0.1:9", "127.0.0.1:9"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().place(), place, "{text}");
        }
    }

    #[test]
    fn the_secret_is_not_in_debug() {
        let base = BaseUrl::parse("https://x.example/v1").unwrap();
        let secret = Some(Secret::new("sk-hidden-value"));
        let provider = Provider::new("p", kind("openai").unwrap(), base, secret, ProviderSettings::default()).unwrap();
        assert!(!format!("{provider:?}").contains("hidden"));
        let body = Bytes::from_static(b"{}");
        let request = provider.chat(ChatAsk { body, call_id: "call_1", model: "m", stream: false, passed: &[] });
        assert!(request.is_some() && !format!("{request:?}").contains("hidden"));
    }

    #[test]
    fn an_ability_that_is_missing_is_named() {
        let base = BaseUrl::parse("https://x.example").unwrap();
        let provider = Provider::new("clips", kind("kling").unwrap(), base, None, ProviderSettings::default()).unwrap();
        assert_eq!(provider.lacks(Ability::Video), None);
        let message = r#""clips" is of kind "kling", which has no chat; it has video, images"#;
        assert_eq!(provider.lacks(Ability::Chat).as_deref(), Some(message));
        let ask = ChatAsk { body: Bytes::new(), call_id: "c", model: "m", stream: false, passed: &[] };
        assert!(provider.chat(ask).is_none() && provider.social(&SocialAsk::Get { path: "/a", query: "" }).is_none());
    }
}
