//! Rerank: a question and documents in, the documents' places and scores out. One format, in which
//! Cohere, Jina and most who copied them are asked; replies are written anew, so that they are
//! sorted, complete and never larger than what was sent.

mod reply;
mod request;

pub use reply::{NotRanked, RankShape, Ranking, RerankAnswer};
pub use request::{MOST_DOCUMENTS, RerankRequest, SEARCH_UNIT};
