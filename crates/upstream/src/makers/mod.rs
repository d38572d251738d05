//! The makers: what each of them is sent and what its answers mean, a file or a folder per maker.
//! What they can do together stands in `kind.rs`; what is the same for all of one ability, in
//! `chat/`, `video/`, `social.rs`, `embed.rs` and
//! `rerank.rs`.

mod anthropic;
mod ark;
mod cohere;
mod dashscope;
mod gemini;
mod jina;
mod kling;
mod minimax;
mod openai;
mod tikhub;

pub(crate) use anthropic::Anthropic;
pub(crate) use ark::Ark;
pub(crate) use cohere::{CohereEmbeddings, CohereRerank};
pub(crate) use dashscope::DashScope;
pub(crate) use gemini::{GeminiChat, GeminiEmbeddings, Veo};
pub(crate) use jina::JinaRerank;
pub(crate) use kling::Kling;
pub(crate) use minimax::MiniMax;
pub(crate) use openai::{OpenAiChat, OpenAiEmbeddings, Sora};
pub(crate) use tikhub::TikHub;
