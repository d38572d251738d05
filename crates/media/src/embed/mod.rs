//! Embeddings: texts in, vectors out. Two formats ask for them, OpenAI's and Gemini's; providers
//! answer in three. Within one format the client's bytes pass; between two of them a vector is
//! rewritten while it passes, and no more than one is held.

mod flow;
mod gemini;
mod input;
mod reply;
mod request;
mod unsaid;
mod vector;

pub use flow::{VectorFlow, VectorTarget};
pub use input::EmbedInput;
pub use reply::EmbedReply;
pub use request::{EmbedCaller, EmbedRequest, MOST_INPUTS};
pub use vector::{NotVectors, VectorShape};
