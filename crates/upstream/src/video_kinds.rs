//! The providers of videos as kinds for the configuration. Most of them speak OpenAI's chat format too, below a path of their own.

use crate::video::{Ark, DashScope, Gemini, Kling, MiniMax, Video};
use crate::{Adaptor, Fault, OpenAi, Provider};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tollgate_wire::chat::UpstreamError;

/// One line per provider: the type, its kind in `tollgate.toml`, its path for chat.
macro_rules! kinds {
    ($($adaptor:ident, $kind:literal, $chat:literal;)*) => {
        $(impl Adaptor for $adaptor {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn video(&self) -> Option<&'static dyn Video> {
                Some(&$adaptor)
            }

            fn takes_pair(&self) -> bool {
                $kind == "kling"
            }

            fn chat_path(&self) -> &'static str {
                $chat
            }

            fn chat(&self, provider: &Provider, body: Bytes, call_id: &str) -> Request<Full<Bytes>> {
                OpenAi.chat(provider, body, call_id)
            }

            fn fault(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Fault {
                OpenAi.fault(status, headers, body)
            }

            fn error_inside(&self, error: &UpstreamError) -> Fault {
                OpenAi.error_inside(error)
            }
        })*
    };
}

kinds! {
    DashScope, "dashscope", "/compatible-mode/v1/chat/completions";
    Ark, "ark", "/chat/completions";
    // Makes videos only; a chat model routed there is refused by the provider.
    Kling, "kling", "/v1/chat/completions";
    MiniMax, "minimax", "/v1/chat/completions";
    Gemini, "gemini", "/v1beta/openai/chat/completions";
}
