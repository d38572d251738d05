//! What stands in the way of a start.

use std::io;
use tollgate_store::StoreError;

/// What stands in the way of a start.
#[derive(Debug, thiserror::Error)]
pub enum CannotStart {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
}
