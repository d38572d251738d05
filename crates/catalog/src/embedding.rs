//! The `embedding` table of a model: what it takes at once.

/// How many texts a model that makes embeddings takes, and in which form its providers answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingTable {
    /// Texts in one request of a customer's.
    pub most_inputs: Option<usize>,
    /// Texts in one request to a provider; a longer list is sent in several.
    pub batch: Option<usize>,
    /// Its providers answer with lists of numbers only, and refuse to be asked for base64.
    pub floats_only: bool,
}
