//! A request that becomes a WebSocket: what it must say, and what it is answered. One place for all
//! endpoints that have one.

use crate::app::App;
use crate::door::http1::ConnectionClaim;
use crate::refusal::Refusal;
use crate::who::caller;
use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tollgate_wire::error::Code;
use tollgate_wire::http1::lists_word;

/// The subprotocol that browsers offer beside their key, one of which a server must take.
const REALTIME: &str = "realtime";

/// A WebSocket that can be opened.
pub struct SocketRequest {
    accept: HeaderValue,
    realtime: bool,
    pub connection: ConnectionClaim,
    /// Its place among all of them, until it is over.
    pub place: OwnedSemaphorePermit,
}

impl SocketRequest {
    /// Reads the handshake; `otherwise` is said where there is none.
    pub fn read(app: &App, parts: &mut Parts, otherwise: &str) -> Result<SocketRequest, Refusal> {
        let accept = accept_key(&parts.headers, otherwise)?;
        // Of what was offered only this is ever named again: another may be a key.
        let realtime = caller::protocols(&parts.headers).any(|offered| offered == REALTIME);
        let no_upgrade =
            || Refusal::new(Code::InvalidRequest, "This connection cannot become a WebSocket; use HTTP/1.1.");
        let connection = parts.extensions.remove::<ConnectionClaim>().ok_or_else(no_upgrade)?;
        let Ok(place) = app.sockets.clone().try_acquire_owned() else {
            return Err(Refusal::new(Code::Overloaded, "Too many WebSockets are open; try again soon."));
        };
        Ok(SocketRequest { accept, realtime, connection, place })
    }

    /// The answer with which it is one.
    pub fn reply(&self) -> Response {
        let mut reply = Response::new(Body::empty());
        *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = reply.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        if self.realtime {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(REALTIME));
        }
        reply
    }
}

fn accept_key(headers: &HeaderMap, otherwise: &str) -> Result<HeaderValue, Refusal> {
    let is = |name, value| lists_word(headers.get_all(name).iter().map(HeaderValue::as_bytes), value);
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| {
        is(header::UPGRADE, "websocket") && is(header::CONNECTION, "upgrade") && is(header::SEC_WEBSOCKET_VERSION, "13")
    });
    let accept = key.and_then(|key| HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok());
    accept.ok_or_else(|| Refusal::new(Code::MethodNotAllowed, otherwise))
}
