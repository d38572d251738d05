//! Conversations as OpenAI takes them, and everybody who copied it: a bearer key, errors in an
//! `error` object.

use crate::chat::{bearer, post};
use crate::{Chat, ChatAsk, Outgoing, Provider};
use http::Uri;
use tollgate_wire::Dialect;

/// Chat completions or Responses, at a path of the maker's own. What a conversation of Responses
/// refers to is stored by the gateway, so each request is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiChat {
    pub dialect: Dialect,
    pub path: &'static str,
}

impl Chat for OpenAiChat {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn path(&self) -> &'static str {
        self.path
    }

    fn is_steady(&self) -> bool {
        true
    }

    fn request(&self, provider: &Provider, uri: Uri, ask: ChatAsk<'_>) -> Outgoing {
        let mut request = post(uri, ask.body, ask.call_id);
        bearer(&mut request, provider);
        request
    }
}
