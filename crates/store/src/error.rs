//! What can go wrong in the store. Callers act on three cases: try again later, the request is
//! wrong, a bug or damage.

/// The database did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or written now; nothing was decided. Try again later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// Another process owns the data directory.
    #[error("the data directory is in use by another process: {0}")]
    InUse(String),
    /// The thing named does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// The request contradicts what is stored (an id used for something else, a refund above the
    /// charge …).
    #[error("{0}")]
    Conflict(String),
    /// The same, and this field of the request is what contradicts.
    #[error("{why}")]
    ConflictOf { field: &'static str, why: String },
    /// It was changed since it was read; nothing was done.
    #[error("{0} was changed since it was read")]
    Stale(String),
    /// The stored data or the place itself is not usable.
    #[error("the store is damaged or misconfigured: {0}")]
    Broken(String),
}

impl StoreError {
    pub(crate) fn broken(what: impl std::fmt::Display) -> Self {
        Self::Broken(what.to_string())
    }

    /// The same, naming where it happened.
    pub(crate) fn at(self, path: &std::path::Path) -> Self {
        match self {
            Self::Broken(why) => Self::Broken(format!("{}: {}", path.display(), why.trim_start_matches("file: "))),
            other => other,
        }
    }

    pub(crate) fn away(what: impl std::fmt::Display) -> Self {
        Self::Unavailable(what.to_string())
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(e: rusqlite::Error) -> Self {
        Self::Unavailable(format!("sqlite: {e}"))
    }
}

impl From<std::io::Error> for StoreError {
    fn from(e: std::io::Error) -> Self {
        Self::Broken(format!("file: {e}"))
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(e: tokio_postgres::Error) -> Self {
        // The server's message is preserved, the connection string never is.
        match e.as_db_error() {
            Some(db) => Self::Unavailable(format!("postgresql: {} ({})", db.message(), db.code().code())),
            None => Self::Unavailable(format!("postgresql: {}", with_causes(&e))),
        }
    }
}

/// An error and what caused it, which the driver's own text leaves out: "error connecting to
/// server: Connection refused".
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| match cause.to_string() {
        said if text.ends_with(&said) => text,
        cause => format!("{text}: {cause}"),
    })
}
