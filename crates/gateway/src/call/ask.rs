//! A call as its caller asks for it.

use tollgate_store::{CallId, Idem};

/// What a caller asks for: the work, read and checked, and the name of the call.
pub struct CallRequest<W> {
    pub id: CallId,
    pub endpoint: &'static str,
    pub work: W,
    pub idem: Option<Idem>,
}
