//! Catalogs that were published: their text by its hash, and who put which of them on sale, when
//! and why. One row says which is on sale; it is changed by whoever has seen what it says.

use serde::{Deserialize, Serialize};

/// The texts of so many of the newest versions are stored. Rows of older ones stay, without a text.
pub const CATALOG_TEXTS: i64 = 100;

/// A catalog that is to be put on sale.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewCatalogVersion {
    pub hash: String,
    /// All files with their names, as JSON.
    pub files: String,
    pub pricing_version: String,
    pub models: i64,
    /// The version whose text it is again.
    pub rolled_back_to: Option<i64>,
}

/// A catalog that was put on sale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogVersion {
    #[serde(rename = "version")]
    pub number: i64,
    pub hash: String,
    pub pricing_version: String,
    pub models: i64,
    #[serde(rename = "published_at_ms")]
    pub at: i64,
    pub actor: String,
    pub reason: String,
    pub request_id: Option<String>,
    pub rolled_back_to: Option<i64>,
    /// Of its text; nothing: the text is stored no longer.
    pub bytes: Option<i64>,
}
