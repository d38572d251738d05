//! Opening a session at a provider: one route after the other, before the client is answered, so
//! that it learns of a refusal by an ordinary HTTP error.

use crate::call::{Attempts, Call};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS};
use std::sync::Arc;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tollgate_catalog::Route;
use tollgate_media::realtime::LiveForm;
use tollgate_upstream::{Blame, Fault, Provider, RealtimeAsk, Upgrade, Upgraded};

pub struct SessionDial {
    /// The session only writes down what it hears.
    pub transcription: bool,
}

/// A session that is open at its provider.
pub struct Dialled {
    pub io: Upgraded,
    pub form: Option<Box<dyn LiveForm>>,
}

impl Attempts for SessionDial {
    type Begun = Dialled;

    async fn attempt_at(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Dialled, Fault> {
        let unable = || Fault { blame: Blame::Operator, ..Fault::unreachable() };
        let maker = provider.kind.realtime.ok_or_else(unable)?;
        let mut nonce = [0; 16];
        call.till.world.fill(&mut nonce);
        let nonce = STANDARD.encode(nonce);
        let id = call.id.to_string();
        let ask = RealtimeAsk {
            model: &route.upstream_model,
            call_id: &id,
            transcription: self.transcription,
            api_version: provider.settings.api_version.as_deref(),
            live_usage: provider.settings.live_usage,
        };
        let request = provider.realtime(&ask, &nonce).ok_or_else(unable)?;
        let reply = match call.till.client.upgrade(provider, request).await? {
            Upgrade::Switched(reply) => reply,
            Upgrade::Refused(reply) => {
                let reply = Box::pin(call.till.client.refused(provider, reply)).await;
                return Err(maker.fault(&reply));
            }
        };
        let accepted = reply
            .headers()
            .get(SEC_WEBSOCKET_ACCEPT)
            .is_some_and(|value| value == &derive_accept_key(nonce.as_bytes()));
        // No extension was offered, so none can be agreed on.
        if !accepted || reply.headers().contains_key(SEC_WEBSOCKET_EXTENSIONS) {
            return Err(Fault { maybe_charged: false, ..Fault::garbage() });
        }
        Ok(Dialled { io: reply.into_body(), form: maker.form(&ask) })
    }
}
