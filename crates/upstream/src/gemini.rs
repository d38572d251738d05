//! Google's Gemini API: conversations in its own dialect, videos as long-running predictions.

use crate::ask::{key_in, post};
use crate::video::{Gemini, Video};
use crate::{Adaptor, ChatAsk, Fault, Provider, judge};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

impl Adaptor for Gemini {
    fn kind(&self) -> &'static str {
        "gemini"
    }

    fn video(&self) -> Option<&'static dyn Video> {
        Some(&Gemini)
    }

    fn dialect(&self) -> Option<Dialect> {
        Some(Dialect::Gemini)
    }

    fn chat_path(&self) -> &'static str {
        "/v1beta/models"
    }

    /// The path names the model and says whether the answer is streamed.
    fn chat(&self, provider: &Provider, ask: ChatAsk<'_>) -> Request<Full<Bytes>> {
        let verb = if ask.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        let path = format!("{}/{}:{verb}", self.chat_path(), in_a_path(ask.model));
        let uri = provider.base_url.join(&path).unwrap_or_else(|_| provider.chat_uri());
        let mut request = post(uri, ask.body, ask.call_id);
        key_in(&mut request, "x-goog-api-key", provider);
        request
    }

    fn fault(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
        judge::refused(status, headers, body)
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::inside(error)
    }
}

/// A model's name as part of a path; names come from the catalog, which is not asked for clean ones at providers.
fn in_a_path(model: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/@:".contains(&byte);
    let mut out = String::with_capacity(model.len());
    for byte in model.trim_start_matches("models/").bytes() {
        match plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, Secret, Settings};

    #[test]
    fn the_path_says_what_is_asked() {
        let base = BaseUrl::parse("https://g.example").unwrap();
        let provider = Provider::new("g", &Gemini, base, Some(Secret::new("k-1")), Settings::default()).unwrap();
        let ask = |model, stream| {
            let body = Bytes::from_static(b"{}");
            provider.chat(ChatAsk { body, call_id: "call_1", model, stream, passed: &[] })
        };
        assert_eq!(ask("gemini-3-pro", false).uri(), "https://g.example/v1beta/models/gemini-3-pro:generateContent");
        let streamed = ask("models/a b?c", true);
        assert_eq!(streamed.uri(), "https://g.example/v1beta/models/a%20b%3Fc:streamGenerateContent?alt=sse");
        assert_eq!(streamed.headers()["x-goog-api-key"], "k-1");
        assert!(!streamed.headers().contains_key("authorization"));
    }
}
