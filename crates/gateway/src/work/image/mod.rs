//! Pictures, made and changed: what a request costs at most, how it is sent along a route, and how
//! what comes back becomes our result. Large answers pass, or lie on disk for a moment; they are
//! never held as a whole.

mod answer;
mod ask;
mod call;
mod gather;
mod links;
mod stream;

pub use ask::{ENDPOINT_TYPE, ImageAsk};

use crate::door::bodies::BodyShare;
use crate::door::spool::SpoolDisk;
use std::sync::Arc;
use tollgate_upstream::{Client, PictureFile};

/// What pictures need beside the till.
pub struct ImageDesk {
    /// For links that only providers have written: it reaches public addresses only.
    pub(crate) outside: Client,
    /// Where pictures lie until all of them are there.
    pub(crate) spool: Arc<SpoolDisk>,
}

/// A request for pictures that is to be answered.
pub struct ImageCall {
    ask: ImageAsk,
    files: Vec<PictureFile>,
    desk: Arc<ImageDesk>,
    /// What the request takes of the memory for bodies, as long as it is needed.
    _room: Option<BodyShare>,
}

impl ImageDesk {
    /// The call that answers it.
    pub fn call(self: &Arc<Self>, ask: ImageAsk, files: Vec<PictureFile>, room: Option<BodyShare>) -> ImageCall {
        ImageCall { ask, files, desk: self.clone(), _room: room }
    }
}
