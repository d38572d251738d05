//! Results that may be asked for again by their Idempotency-Key and are too long for the database:
//! pictures in base64, songs, many vectors. All of such a result is spooled and put where pictures
//! with links of ours lie, under a name that no link has; only then does it go to its client. Until
//! then nothing is owed: what nobody gets is free.

use super::files::Uncopied;
use super::image::store::PictureStore;
use super::spooled_answer::{self, SpooledAnswer};
use crate::call::{Begun, BrokenOff, Call, Meter, Passed, Rewrite, StoredPieces, stored_elsewhere};
use crate::door::spool::SpoolDisk;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, stream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_upstream::{Fault, ReplyBody, SpooledFile};

/// The longest that putting a result there takes.
const LONGEST: Duration = Duration::from_secs(20);

/// Where they lie.
pub struct LongReplies {
    store: Option<Arc<PictureStore>>,
    spool: Arc<SpoolDisk>,
}

/// What became of an answer that was to be spooled.
enum Spooled {
    /// All of it, and what knows what it has used.
    Whole(SpooledFile, Box<dyn Rewrite>),
    /// There was no room for all of it: it passes as it would without a key.
    Passes(Box<Passed>),
}

impl LongReplies {
    pub fn new(store: Option<Arc<PictureStore>>, spool: Arc<SpoolDisk>) -> LongReplies {
        LongReplies { store, spool }
    }

    /// The same answer, stored if it may be asked for again and there is room for it.
    pub async fn kept(&self, call: &mut Call, begun: Begun) -> Result<Begun, Fault> {
        let Begun::Passing(passed) = begun else { return Ok(begun) };
        let Some(store) = self.store.as_ref().filter(|_| call.idempotent) else {
            return Ok(Begun::Passing(passed));
        };
        if !store.has_room(call.caller.account.id, call.till.world.now_ms()).await {
            return Ok(Begun::Passing(passed));
        }
        let content_type = passed.content_type.clone();
        let owed = std::mem::take(&mut call.meter);
        let (file, mut rewrite) = match self.spooled(call, passed).await? {
            Spooled::Whole(file, rewrite) => (file, rewrite),
            Spooled::Passes(passed) => {
                tracing::warn!(call = %call.id, "there is no room to spool a result for its Idempotency-Key");
                call.meter = owed;
                return Ok(Begun::Passing(passed));
            }
        };
        match put(call, store, file.clone()).await {
            Ok(name) => {
                let kind = content_type.to_str().unwrap_or("application/json");
                call.answer = Some(stored_elsewhere(&name, kind));
            }
            Err(why) => tracing::warn!(call = %call.id, why, "a result is not stored for its Idempotency-Key"),
        }
        call.meter = rewrite.meter().unwrap_or(owed);
        Ok(spooled_answer::passing(content_type, Bytes::new(), spooled_answer::pieces(file)))
    }

    /// All of an answer that would pass.
    async fn spooled(&self, call: &Call, passed: Box<Passed>) -> Result<Spooled, Fault> {
        let Ok(mut file) = SpooledAnswer::begin(&self.spool, call, usize::MAX).await else {
            return Ok(Spooled::Passes(passed));
        };
        let Passed { content_type, first, mut body, mut rewrite, mut left } = *passed;
        let mut next = Some(first);
        let mut ended = false;
        while let Some(piece) = next {
            let mut spooled = file.push(&piece).await;
            if ended && spooled.is_ok() {
                spooled = file.flush().await;
            }
            if spooled.is_err() {
                let rest = Resumed { body, rewrite: Shared::new(rewrite), left, ended };
                let beginning = file.given_back()?;
                return Ok(Spooled::Passes(Box::new(rest.behind(content_type, beginning))));
            }
            if ended {
                break;
            }
            next = Some(match body.chunk().await? {
                Some(piece) => {
                    left = left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
                    if Instant::now() > call.deadline {
                        return Err(Fault::idle());
                    }
                    rewrite.feed(piece)?
                }
                None => {
                    ended = true;
                    rewrite.end()?
                }
            });
        }
        Ok(Spooled::Whole(file.finish().await?, rewrite))
    }

    /// A result that was stored under this name.
    pub async fn stored(&self, name: &str) -> Option<StoredPieces> {
        let file = self.store.as_ref()?.reply(name).await.ok()?;
        Some(file.pieces.map(|piece| piece.map_err(|_| BrokenOff)).boxed())
    }
}

/// Puts a result where its key finds it; its name. A stop ends that, and takes away what is there.
async fn put(call: &Call, store: &Arc<PictureStore>, file: SpooledFile) -> Result<String, String> {
    let (store, id, account) = (store.clone(), call.id.to_string(), call.caller.account.id);
    let until = call.deadline.min(Instant::now() + LONGEST);
    let (stop, now) = (call.till.shutdown.cut.clone(), call.till.world.now_ms());
    let putting = call.till.tracker.spawn(async move {
        let cut = async {
            tokio::select! {
                () = stop.cancelled() => Uncopied::Stopped,
                () = tokio::time::sleep_until(until) => Uncopied::TooSlow,
            }
        };
        store.put_reply(&id, account, file, now, cut).await
    });
    match putting.await {
        Ok(Ok(name)) => Ok(name),
        Ok(Err(why)) => Err(format!("{why:?}")),
        Err(died) => Err(died.to_string()),
    }
}

/// How the rest of an answer is rewritten, asked by what reads it and by what counts it.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn Rewrite>>>);

impl Shared {
    fn new(rewrite: Box<dyn Rewrite>) -> Shared {
        Shared(Arc::new(Mutex::new(rewrite)))
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Rewrite>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What passes behind that which lies in the spool is ours already.
impl Rewrite for Shared {
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault> {
        Ok(piece)
    }

    fn end(&mut self) -> Result<Bytes, Fault> {
        Ok(Bytes::new())
    }

    fn broke(&mut self, fault: &Fault) -> Option<Bytes> {
        self.lock().broke(fault)
    }

    fn meter(&mut self) -> Option<Meter> {
        self.lock().meter()
    }

    fn goes_on(&self) -> bool {
        self.lock().goes_on()
    }
}

/// The rest of an answer whose beginning lies in the spool.
struct Resumed {
    body: ReplyBody,
    rewrite: Shared,
    /// The most bytes that may still come.
    left: usize,
    ended: bool,
}

impl Resumed {
    /// An answer of what was spooled and of this.
    fn behind(
        self,
        content_type: http::HeaderValue,
        spooled: impl Stream<Item = Result<Bytes, Fault>> + Send + 'static,
    ) -> Passed {
        let rewrite = Box::new(self.rewrite.clone());
        let rest = stream::try_unfold(self, async |mut rest| Ok(rest.next().await?.map(|piece| (piece, rest))));
        let body = ReplyBody::made(spooled.chain(rest));
        Passed { content_type, first: Bytes::new(), body, rewrite, left: usize::MAX }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        if self.ended {
            return Ok(None);
        }
        let Some(piece) = self.body.chunk().await? else {
            self.ended = true;
            return self.rewrite.lock().end().map(Some);
        };
        self.left = self.left.checked_sub(piece.len()).ok_or_else(Fault::too_long)?;
        let mut rewrite = self.rewrite.lock();
        let (out, rest) = (rewrite.feed(piece)?, rewrite.rest());
        if rest.is_empty() {
            return Ok(Some(out));
        }
        let mut both = BytesMut::from(&out[..]);
        both.extend_from_slice(&rest);
        Ok(Some(both.freeze()))
    }
}
