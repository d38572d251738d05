//! The providers of videos as kinds for the configuration. Most of them speak OpenAI's chat format too, below a path of their own.

use crate::video::{Ark, DashScope, Kling, MiniMax, Video};
use crate::{Adaptor, ChatAsk, Fault, OpenAi, Provider};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::Full;
use tollgate_wire::Dialect;
use tollgate_wire::UpstreamError;

/// One line per provider: the type, its kind in `tollgate.toml`, its path for chat, and the dialect it takes there.
macro_rules! kinds {
    ($($adaptor:ident, $kind:literal, $chat:literal, $dialect:expr;)*) => {
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

            fn dialect(&self) -> Option<Dialect> {
                $dialect
            }

            fn chat(&self, provider: &Provider, ask: ChatAsk<'_>) -> Request<Full<Bytes>> {
                OpenAi.chat(provider, ask)
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
    DashScope, "dashscope", "/compatible-mode/v1/chat/completions", Some(Dialect::Chat);
    Ark, "ark", "/chat/completions", Some(Dialect::Chat);
    // Makes videos only.
    Kling, "kling", "/v1/chat/completions", None;
    MiniMax, "minimax", "/v1/chat/completions", Some(Dialect::Chat);
}
