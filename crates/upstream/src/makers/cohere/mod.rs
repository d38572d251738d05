//! Cohere: embeddings and rerank of its second API.

mod embed;
mod rerank;

pub(crate) use embed::CohereEmbeddings;
pub(crate) use rerank::CohereRerank;
