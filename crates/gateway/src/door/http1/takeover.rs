//! A connection that becomes something else, such as a WebSocket. The request carries a claim to
//! it; the connection is handed out when the reply that says so has been sent.

use crate::door::protocol::BegunStream;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The claim of a request to its connection. It can be used once.
#[derive(Clone)]
pub struct ConnectionClaim(Arc<Mutex<Option<oneshot::Receiver<BegunStream>>>>);

/// Who hands it out.
pub(super) struct HandOver(oneshot::Sender<BegunStream>);

pub(super) fn claim() -> (HandOver, ConnectionClaim) {
    let (give, take) = oneshot::channel();
    (HandOver(give), ConnectionClaim(Arc::new(Mutex::new(Some(take)))))
}

impl ConnectionClaim {
    /// Waits for the connection. `None`: it was lost before, or is somebody else's.
    pub async fn stream(self) -> Option<BegunStream> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting?.await.ok()
    }
}

impl HandOver {
    pub fn give(self, stream: BegunStream) {
        // Nobody waits for it any more: it is closed.
        let _ = self.0.send(stream);
    }
}
