//! The makers: what each of them is sent and what its answers mean, a file or a folder per maker.
//! What they can do together stands in `kind.rs`; what is the same for all of one ability, in
//! `chat/`, `video/`, `image/`, `speech/`, `transcription/`, `music/`, `social.rs`, `embed.rs`,
//! `rerank.rs` and `realtime.rs`.

mod anthropic;
mod ark;
mod azure;
mod bedrock;
mod cohere;
mod dashscope;
mod elevenlabs;
mod gemini;
mod jina;
mod kling;
mod minimax;
mod openai;
mod tikhub;
mod vertex;

pub(crate) use anthropic::Anthropic;
pub(crate) use ark::{Ark, Seedream};
pub(crate) use azure::{AzureChat, AzureEmbeddings};
pub(crate) use bedrock::Converse;
pub(crate) use cohere::{CohereEmbeddings, CohereRerank};
pub(crate) use dashscope::{DashScope, DashScopeRecognition, DashScopeSpeech, QwenImages, QwenRealtime};
pub(crate) use elevenlabs::{ElevenLabsMusic, ElevenLabsSpeech, Scribe};
pub(crate) use gemini::{GeminiChat, GeminiEmbeddings, GeminiImages, GeminiLive, GeminiSpeech, Veo};
pub(crate) use jina::JinaRerank;
pub(crate) use kling::{Kling, KlingImages};
pub(crate) use minimax::{MiniMax, MiniMaxImages, MiniMaxMusic, MiniMaxSpeech};
pub(crate) use openai::{
    OpenAiChat, OpenAiEmbeddings, OpenAiImages, OpenAiRealtime, OpenAiSpeech, OpenAiTranscriber, Sora,
};
pub(crate) use tikhub::TikHub;
pub(crate) use vertex::{VertexAnthropic, VertexEmbeddings, VertexGemini, VertexOpenAi};
