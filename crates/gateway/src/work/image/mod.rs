//! Pictures, made and changed: what a request costs at most, how it is sent along a route, and how
//! what comes back becomes our result. Large answers pass, or lie on disk for a moment; they are
//! never held as a whole.

mod answer;
mod ask;
mod call;
mod gather;
mod linked;
mod links;
pub mod store;
mod stream;

pub use ask::ImageAsk;

use super::long_replies::LongReplies;
use crate::door::bodies::BodyShare;
use crate::door::spool::SpoolDisk;
use crate::secrets::Secrets;
use bytes::Bytes;
use std::sync::Arc;
use store::PictureStore;
use tollgate_upstream::{Client, PictureFile};

/// What pictures need beside the till.
pub struct ImageDesk {
    /// For links that only providers have written: it reaches public addresses only.
    pub(crate) outside: Client,
    /// Where pictures lie until all of them are there.
    pub(crate) spool: Arc<SpoolDisk>,
    /// Where pictures are stored that are handed over by links of ours; nowhere: there are none.
    pub store: Option<Arc<PictureStore>>,
    /// Where long results lie that an Idempotency-Key may ask for again.
    pub replies: Arc<LongReplies>,
    pub(crate) secrets: Arc<Secrets>,
}

/// A request for pictures that is to be answered.
pub struct ImageCall {
    ask: ImageAsk,
    files: Vec<PictureFile>,
    /// Where the caller reaches us.
    base: String,
    desk: Arc<ImageDesk>,
    /// What the request takes of the memory for bodies, as long as it is needed.
    _room: RequestRoom,
}

/// What is taken of the memory for bodies by a request that is being answered.
pub enum RequestRoom {
    None,
    /// The fields of a form.
    Form(BodyShare),
    /// A body with its room.
    Body(Bytes),
}

impl ImageDesk {
    /// The call that answers it.
    pub fn call(
        self: &Arc<Self>,
        ask: ImageAsk,
        files: Vec<PictureFile>,
        base: String,
        room: RequestRoom,
    ) -> ImageCall {
        ImageCall { ask, files, base, desk: self.clone(), _room: room }
    }

    /// Whether links can be handed over to pictures whose maker has none.
    pub fn has_links(&self) -> bool {
        self.store.is_some()
    }
}
