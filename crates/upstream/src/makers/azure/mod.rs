//! Azure OpenAI: OpenAI's formats below a resource of one's own. The current form names the model
//! in the body (`/openai/v1/…`); the older one has the deployment in the path and a version in the
//! query.

use crate::chat::{bearer, post};
use crate::embed::{EmbedAsk, EmbedSent, Embeddings};
use crate::makers::OpenAiEmbeddings;
use crate::makers::gemini::in_a_path;
use crate::{Chat, ChatAsk, Outgoing, Provider};
use bytes::Bytes;
use http::Uri;
use tollgate_media::embed::{EmbedCaller, EmbedRequest, VectorShape};
use tollgate_wire::{Dialect, Problem};

/// Chat completions or Responses. The base address ends in `/openai/v1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AzureChat {
    pub dialect: Dialect,
    pub path: &'static str,
}

impl Chat for AzureChat {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn path(&self) -> &'static str {
        self.path
    }

    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let uri = match self.dialect {
            Dialect::Chat => of_deployment(provider, ask.model, self.path).unwrap_or(uri),
            _ => uri,
        };
        let mut request = post(uri, ask.body, ask.call_id);
        bearer(&mut request, provider);
        request
    }
}

/// Embeddings, in both forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AzureEmbeddings;

const EMBEDDINGS: OpenAiEmbeddings = OpenAiEmbeddings::OWN;

impl Embeddings for AzureEmbeddings {
    fn shape(&self) -> &'static VectorShape {
        EMBEDDINGS.shape()
    }

    fn most_inputs(&self) -> usize {
        EMBEDDINGS.most_inputs()
    }

    fn speaks(&self, caller: EmbedCaller) -> bool {
        EMBEDDINGS.speaks(caller)
    }

    fn takes(&self, request: &EmbedRequest) -> Result<(), Problem> {
        EMBEDDINGS.takes(request)
    }

    fn body(&self, ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem> {
        EMBEDDINGS.body(ask)
    }

    fn request(&self, provider: &Provider, model: &str, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = EMBEDDINGS.request(provider, model, call_id, body)?;
        if let Some(uri) = of_deployment(provider, model, EMBEDDINGS.path) {
            *request.uri_mut() = uri;
        }
        Some(request)
    }
}

/// The older form, where the operator names an `api_version`.
fn of_deployment(provider: &Provider, deployment: &str, path: &str) -> Option<Uri> {
    let version = provider.settings.api_version.as_deref()?;
    let name = in_a_path(deployment).replace('/', "%2F");
    let path = format!("/deployments/{name}{path}?api-version={}", in_a_path(version));
    provider.base_url.without_version().join(&path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, ProviderSettings, Secret, kind};

    fn provider(key: &str, api_version: Option<&str>) -> Provider {
        let base = BaseUrl::parse("https://mine.openai.azure.com/openai/v1").unwrap();
        let api_version = api_version.map(str::to_owned);
        let settings = ProviderSettings { api_version, ..ProviderSettings::default() };
        Provider::new("a", kind("azure").unwrap(), base, Some(Secret::new(key)), settings).unwrap()
    }

    fn asked(provider: &Provider) -> Outgoing {
        let ask = ChatAsk { body: Bytes::from_static(b"{}"), call_id: "c", model: "my gpt", stream: true, passed: &[] };
        provider.chat(ask).unwrap()
    }

    #[test]
    fn two_forms_of_the_path_and_two_of_the_key() {
        let request = asked(&provider("0a1b", None));
        assert_eq!(request.uri(), "https://mine.openai.azure.com/openai/v1/chat/completions");
        assert_eq!(request.headers()["api-key"], "0a1b");
        assert!(!request.headers().contains_key("authorization"));
        let older = provider("eyJhbGciOi.eyJhdWQiOi.c2ln", Some("2024-10-21"));
        let request = asked(&older);
        let path = "https://mine.openai.azure.com/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21";
        assert_eq!(request.uri(), path);
        assert_eq!(request.headers()["authorization"], "Bearer eyJhbGciOi.eyJhdWQiOi.c2ln");
        assert!(!request.headers().contains_key("api-key"));
        let request = AzureEmbeddings.request(&older, "vec", "c", Bytes::new()).unwrap();
        let path = "https://mine.openai.azure.com/openai/deployments/vec/embeddings?api-version=2024-10-21";
        assert_eq!(request.uri(), path);
    }
}
