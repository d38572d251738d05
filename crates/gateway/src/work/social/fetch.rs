//! One request to a source. It runs apart from the call that wants it: a client that leaves does
//! not end it, because the source bills it all the same; what then comes is judged as if somebody
//! waited, and cached for a while for the same question of the same account.

use super::answer_cache::{AnswerCache, Coming, Question};
use super::judge::{Judged, open};
use super::track::Track;
use super::{SocialDesk, as_social, no_data};
use crate::call::HELD;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_upstream::{Fault, HeldReply, Outgoing, Provider, ReplyBody, is_encoded};

const ENCODED: &str = "The data source's answer is compressed, which it was asked not to do.";

/// What is to be fetched, for whom.
pub struct Errand {
    pub desk: Arc<SocialDesk>,
    pub provider: Arc<Provider>,
    pub request: Outgoing,
    pub until: Instant,
    pub track: Arc<Track>,
}

/// An answer of status 200.
pub enum Fetched {
    Whole(Bytes),
    /// The beginning of one that is too large to be held, and the rest.
    Large {
        held: Bytes,
        body: ReplyBody,
    },
}

/// Whoever waits for an answer. Dropped before it is here, the answer counts as coming from that
/// moment on, so that the same question asked a moment later finds it.
struct Waiting {
    cache: AnswerCache,
    question: Question,
    left: Option<oneshot::Sender<Coming>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(left) = self.left.take() {
            // One that is refused has its answer, or never gets one.
            let _ = left.send(self.cache.coming(self.question));
        }
    }
}

/// Fetches, and goes on when nobody waits for it any more.
pub async fn fetch(errand: Errand) -> Result<Fetched, Fault> {
    let (send, receive) = oneshot::channel();
    let (left_send, mut left_receive) = oneshot::channel();
    let desk = errand.desk.clone();
    let mut waiting = Waiting { cache: desk.cache.clone(), question: errand.track.question(), left: Some(left_send) };
    desk.till.tracker.clone().spawn(async move {
        let (track, cut) = (errand.track.clone(), desk.till.shutdown.cut.clone());
        let asking = ask(errand);
        tokio::pin!(asking);
        let coming = tokio::select! {
            biased;
            answer = &mut asking => {
                // Whoever waits is to be the last who holds the track.
                drop(track);
                return drop(send.send(answer));
            }
            () = cut.cancelled() => return,
            Ok(coming) = &mut left_receive => coming,
        };
        tokio::select! {
            answer = &mut asking => left(&desk, &track, coming, answer),
            () = cut.cancelled() => {}
        }
    });
    let answer = receive.await.unwrap_or_else(|_| Err(Fault::cut()));
    waiting.left = None;
    answer
}

/// An answer whose client has left.
fn left(desk: &SocialDesk, track: &Track, coming: Coming, answer: Result<Fetched, Fault>) {
    match answer {
        Ok(Fetched::Whole(bytes)) => match open(track.cell(), &bytes) {
            Ok(_) => {
                track.works();
                track.covered();
                coming.came(bytes, track.call(), desk.till.world.now_ms());
            }
            Err(Judged::NoResult) => track.nothing(),
            Err(_) => track.failed(&no_data()),
        },
        // Too large to be cached, and nobody reads it to its end.
        Ok(Fetched::Large { .. }) => {}
        Err(fault) => track.failed(&as_social(fault)),
    }
}

async fn ask(errand: Errand) -> Result<Fetched, Fault> {
    let Errand { desk, provider, request, until, track } = errand;
    let reply = desk.till.client.send(&provider, request).await?;
    track.asked(&provider.name, reply.status() == http::StatusCode::UNAUTHORIZED);
    if !reply.status().is_success() {
        let refused = desk.till.client.refused(&provider, reply).await;
        return Err(provider.kind.social.map_or_else(no_data, |social| social.fault(&refused)));
    }
    // From here on the source bills.
    track.bills();
    if is_encoded(reply.headers()) {
        tracing::warn!(provider = provider.name, "the source compresses its answers, which it is asked not to do");
        return Err(Fault { message: ENCODED.to_owned(), ..no_data() });
    }
    let most = provider.settings.max_reply_bytes;
    let body = ReplyBody::new(reply.into_body(), provider.settings.idle);
    Ok(match body.up_to(HELD, most, until).await? {
        HeldReply::Whole(bytes) => Fetched::Whole(bytes),
        HeldReply::Large { start, rest } => Fetched::Large { held: start, body: rest },
    })
}
