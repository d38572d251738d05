//! Realtime sessions at a provider: where they are opened, and in which form their frames are.

use crate::outgoing::outgoing;
use crate::{Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use http::header::{SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderName, HeaderValue, Method};
use tollgate_media::realtime::{GeminiUsage, LiveForm};

/// How one kind of provider is spoken to in sessions.
pub trait Realtime: Sync + std::fmt::Debug {
    /// The request that opens a session, with its key and without its handshake; `None` when it
    /// does not fit into an address.
    fn request(&self, provider: &Provider, ask: &RealtimeAsk<'_>) -> Option<Outgoing>;

    /// How its frames are turned into those of OpenAI's GA interface; `None`: they are such.
    fn form(&self, ask: &RealtimeAsk<'_>) -> Option<Box<dyn LiveForm>>;

    /// What a refused handshake means.
    fn fault(&self, reply: &WholeReply) -> Fault;
}

/// What is asked of a provider.
#[derive(Clone, Copy, Debug)]
pub struct RealtimeAsk<'a> {
    /// The provider's name for the model.
    pub model: &'a str,
    pub call_id: &'a str,
    /// The session only writes down what it hears.
    pub transcription: bool,
    /// Azure: the version of the older form, whose events are those of the beta interface.
    pub api_version: Option<&'a str>,
    /// How the usage of Gemini Live is to be read.
    pub live_usage: GeminiUsage,
}

const CALL_ID: HeaderName = HeaderName::from_static("x-client-request-id");

/// The opening of a session below the base address.
pub(crate) fn opening(provider: &Provider, path: &str, ask: &RealtimeAsk<'_>) -> Option<Outgoing> {
    let mut request = outgoing(Method::GET, provider.base_url.join(path).ok()?, "*/*", Bytes::new());
    if let Ok(value) = HeaderValue::try_from(ask.call_id) {
        request.headers_mut().insert(CALL_ID, value);
    }
    Some(request)
}

/// Text as it stands in a query.
pub(crate) fn in_query(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Provider {
    /// The whole request that opens a session as a WebSocket, with this nonce; `None` where it has
    /// no sessions.
    pub fn realtime(&self, ask: &RealtimeAsk<'_>, nonce: &str) -> Option<Outgoing> {
        let mut request = self.kind.realtime?.request(self, ask)?;
        let headers = request.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::try_from(nonce).ok()?);
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, ProviderSettings, Secret, kind};

    fn opened(base: &str, model: &str) -> Outgoing {
        of_kind("openai", "sk-x", base, RealtimeAsk { model, ..ASK })
    }

    const ASK: RealtimeAsk<'static> = RealtimeAsk {
        model: "voice",
        call_id: "call_1",
        transcription: false,
        api_version: None,
        live_usage: GeminiUsage::EachResponse,
    };

    fn of_kind(name: &str, key: &str, base: &str, ask: RealtimeAsk<'_>) -> Outgoing {
        let base = BaseUrl::parse(base).unwrap();
        let secret = Some(Secret::new(key));
        let provider = Provider::new("p", kind(name).unwrap(), base, secret, ProviderSettings::default()).unwrap();
        provider.realtime(&ask, "bm9uY2U=").expect("a request")
    }

    #[test]
    fn openai_is_dialled_with_the_model_in_the_address() {
        let request = opened("https://api.example.com/v1", "voice 1/x");
        assert_eq!(request.uri(), "https://api.example.com/v1/realtime?model=voice%201%2Fx");
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("authorization"), Some("Bearer sk-x"));
        assert_eq!(header("upgrade"), Some("websocket"));
        assert_eq!(header("sec-websocket-version"), Some("13"));
        assert_eq!(header("openai-beta"), None, "the GA interface");
    }

    #[test]
    fn azure_takes_its_key_under_another_name() {
        let request = opened("https://house.openai.azure.com/openai/v1", "voice");
        assert_eq!(request.uri(), "https://house.openai.azure.com/openai/v1/realtime?model=voice");
        assert_eq!(request.headers()["api-key"], "sk-x");
        assert!(!request.headers().contains_key("authorization"));
        let base = "https://house.internal/openai/v1";
        let behind_a_proxy = of_kind("azure", "sk-x", base, ASK);
        assert_eq!(behind_a_proxy.headers()["api-key"], "sk-x", "the kind says it, not the host");
        let by_token = of_kind("azure", "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.x", base, ASK);
        assert!(by_token.headers().contains_key("authorization") && !by_token.headers().contains_key("api-key"));
    }

    #[test]
    fn azure_s_older_form_names_deployment_and_version() {
        let ask = RealtimeAsk { model: "my voice", api_version: Some("2025-04-01-preview"), ..ASK };
        let base = "https://house.openai.azure.com/openai/v1";
        let request = of_kind("azure", "sk-x", base, ask);
        let path = "https://house.openai.azure.com/openai/realtime?api-version=2025-04-01-preview";
        assert_eq!(request.uri().to_string(), format!("{path}&deployment=my%20voice"));
        let maker = kind("azure").unwrap().realtime.expect("sessions");
        assert!(maker.form(&ask).is_some() && maker.form(&ASK).is_none(), "its events are those of the beta");
        let listens = of_kind("azure", "sk-x", base, RealtimeAsk { transcription: true, ..ask });
        assert_eq!(listens.uri().to_string(), format!("{path}&intent=transcription"));
    }
}
