//! The head of a request that is the same for every call but for the call's id. It is written once,
//! by the same code as any other, and cut where the id stands.

use super::request::{self, Written};
use crate::Outgoing;
use bytes::{Bytes, BytesMut};
use std::fmt;

/// Stands where a call's id goes; no header has it by chance.
pub(crate) const PLACE: &str = "tollgate-prepared-call-0d9f4c1e7ab35826";

#[derive(Clone)]
pub(crate) struct PreparedHead {
    /// All of it but the length of the body; the id goes in at `at`.
    text: Bytes,
    at: usize,
}

impl PreparedHead {
    /// The head of a `POST` with [`PLACE`] for the call's id; `None` where that is not there once.
    pub fn of(request: Outgoing) -> Option<PreparedHead> {
        let (parts, _) = request.into_parts();
        let mut head = BytesMut::with_capacity(512);
        request::lines(&mut head, &parts, false);
        let (before, after) = std::str::from_utf8(&head).ok()?.split_once(PLACE)?;
        let once = !after.contains(PLACE);
        once.then(|| PreparedHead { text: [before, after].concat().into(), at: before.len() })
    }

    pub fn fill(&self, call_id: &str, body: Bytes) -> Written {
        let mut head = request::room(self.text.len() + call_id.len(), &body);
        for part in [&self.text[..self.at], call_id.as_bytes(), &self.text[self.at..]] {
            head.extend_from_slice(part);
        }
        Written::posted(head, body)
    }
}

/// The key is in it.
impl fmt::Debug for PreparedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedHead").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseUrl, ChatAsk, KINDS, Provider, ProviderSettings, Secret};
    use http::{HeaderName, HeaderValue};
    use std::time::Duration;

    /// What is written of a request, and what of its body follows.
    fn written(mut request: Written) -> (Bytes, Bytes) {
        let head = std::mem::take(request.rest());
        (head, request.rest().clone())
    }

    /// Byte for byte what the ordinary way writes, short or long, for every kind that says its head
    /// is always the same; no other kind has one.
    #[test]
    fn a_prepared_head_is_the_ordinary_one() {
        let base = BaseUrl::parse("https://x.example:8443/v1").unwrap();
        let mut steady = 0;
        for kind in KINDS {
            let secret = Some(Secret::new("sk-key-of-the-provider"));
            let settings = ProviderSettings::default();
            // Some want a key of another form.
            let Ok(provider) = Provider::new("p", kind, base.clone(), secret, settings) else { continue };
            let Some(chat) = kind.chat else { continue };
            for length in [0, 2, 16 << 10, (16 << 10) + 1] {
                let body = Bytes::from(vec![b'x'; length]);
                let ask = ChatAsk { body, call_id: "call_0190", model: "m", stream: length == 2, passed: &[] };
                let prepared = provider.prepared_chat(&ask);
                assert_eq!(prepared.is_some(), chat.is_steady(), "{}", kind.name);
                let Some((uri, prepared)) = prepared else { continue };
                let (parts, body) = provider.chat(ask).unwrap().into_parts();
                assert_eq!(*uri, parts.uri);
                let ordinary = Written::new(&parts, body, false, Duration::ZERO);
                assert_eq!(prepared.asked.method, ordinary.asked.method);
                assert_eq!(written(prepared), written(ordinary), "{}", kind.name);
                steady += 1;
            }
            let passed = [(HeaderName::from_static("anthropic-beta"), HeaderValue::from_static("a"))];
            let ask = ChatAsk { body: Bytes::new(), call_id: "c", model: "m", stream: false, passed: &passed };
            assert!(provider.prepared_chat(&ask).is_none(), "what a client passes is in no prepared head");
        }
        assert!(steady >= 8, "{steady}");
    }
}
