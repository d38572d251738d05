//! Conversations in Google's own dialect: the path names the model.

use crate::chat::{judge, key_in, post};
use crate::{Chat, ChatAsk, Fault, Outgoing, Provider, WholeReply};
use http::Uri;
use tollgate_wire::{Dialect, UpstreamError};

/// The base address has no path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeminiChat;

impl Chat for GeminiChat {
    fn dialect(&self) -> Dialect {
        Dialect::Gemini
    }

    fn path(&self) -> &'static str {
        "/v1beta/models"
    }

    /// The path names the model and says whether the answer is streamed.
    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let verb = if ask.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        let path = format!("{}/{}:{verb}", self.path(), in_a_path(ask.model));
        let uri = provider.base_url.join(&path).unwrap_or(uri);
        let mut request = post(uri, ask.body, ask.call_id);
        key_in(&mut request, "x-goog-api-key", provider);
        request
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::with_details(judge::refused(reply), UpstreamError::read(&reply.body).as_ref())
    }

    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::with_details(judge::inside(error), Some(error))
    }
}

/// A model's name as part of a path; names come from the catalog, which is not asked for clean ones
/// at providers.
pub(crate) fn in_a_path(model: &str) -> String {
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
    use crate::{BaseUrl, ProviderSettings, Secret, kind};
    use bytes::Bytes;

    #[test]
    fn the_path_says_what_is_asked() {
        let base = BaseUrl::parse("https://g.example").unwrap();
        let provider =
            Provider::new("g", kind("gemini").unwrap(), base, Some(Secret::new("k-1")), ProviderSettings::default())
                .unwrap();
        let ask = |model, stream| {
            let body = Bytes::from_static(b"{}");
            provider.chat(ChatAsk { body, call_id: "call_1", model, stream, passed: &[] }).unwrap()
        };
        assert_eq!(ask("gemini-3-pro", false).uri(), "https://g.example/v1beta/models/gemini-3-pro:generateContent");
        let streamed = ask("models/a b?c", true);
        assert_eq!(streamed.uri(), "https://g.example/v1beta/models/a%20b%3Fc:streamGenerateContent?alt=sse");
        assert_eq!(streamed.headers()["x-goog-api-key"], "k-1");
        assert!(!streamed.headers().contains_key("authorization"));
    }
}
