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
    /// The catalog that was published, or that would be the first, with its mistakes.
    #[error("the catalog cannot be served:\n{0}")]
    Catalog(String),
}
