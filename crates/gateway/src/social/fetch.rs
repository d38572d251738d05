//! One request to a source. It runs apart from the call that wants it: a client that leaves does not end it, because the
//! source bills it all the same; what then comes is kept for a while for the same question of the same account.

use super::call::Track;
use super::kept::Question;
use crate::app::App;
use bytes::{Bytes, BytesMut};
use http::Request;
use http_body_util::Full;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_upstream::{Body, Fault, Provider};

/// Answers up to this size are held and judged as a whole; larger ones pass while they are judged.
pub const HELD: usize = 1 << 20;

/// What is to be fetched, for whom.
pub struct Errand {
    pub app: Arc<App>,
    pub provider: Arc<Provider>,
    pub request: Request<Full<Bytes>>,
    pub until: Instant,
    pub question: Question,
    pub track: Arc<Track>,
}

/// An answer of status 200.
pub enum Fetched {
    Whole(Bytes),
    /// The beginning of one that is too large to be held, and the rest.
    Large {
        held: Bytes,
        body: Body,
    },
}

/// Fetches, and goes on when nobody waits for it any more.
pub async fn fetch(errand: Errand) -> Result<Fetched, Fault> {
    let (mut send, receive) = oneshot::channel();
    let app = errand.app.clone();
    app.tracker.clone().spawn(async move {
        let (question, cut) = (errand.question, app.cut.clone());
        let asking = ask(errand);
        tokio::pin!(asking);
        tokio::select! {
            biased;
            answer = &mut asking => return drop(send.send(answer)),
            () = cut.cancelled() => return,
            () = send.closed() => {}
        }
        let coming = app.social.kept.coming(question);
        let answer = tokio::select! {
            answer = &mut asking => answer,
            () = cut.cancelled() => return,
        };
        if let Ok(Fetched::Whole(bytes)) = answer {
            coming.came(bytes, app.world.now_ms());
        }
    });
    receive.await.unwrap_or_else(|_| Err(Fault::cut()))
}

async fn ask(errand: Errand) -> Result<Fetched, Fault> {
    let Errand { app, provider, request, until, track, .. } = errand;
    let reply = app.client.send(&provider, request).await?;
    if !reply.status().is_success() {
        return Err(app.client.fault(&provider, reply).await);
    }
    // From here on the source bills.
    track.bills();
    let most = provider.settings.max_reply_bytes;
    let mut body = Body::new(reply.into_body(), provider.settings.idle);
    let expected = usize::try_from(body.expected()).unwrap_or(usize::MAX);
    if expected > most {
        return Err(Fault::too_long());
    }
    let mut held = BytesMut::with_capacity(expected.min(HELD));
    while let Some(piece) = body.chunk().await? {
        if held.len() + piece.len() > most {
            return Err(Fault::too_long());
        }
        if Instant::now() > until {
            return Err(Fault::idle());
        }
        held.extend_from_slice(&piece);
        if held.len() > HELD {
            return Ok(Fetched::Large { held: held.freeze(), body });
        }
    }
    Ok(Fetched::Whole(held.freeze()))
}
