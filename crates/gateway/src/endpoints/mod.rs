//! The desk. `table` lists every family of endpoints, `row` says what an endpoint is; the other
//! files hold the rows of one subject and its handlers, each a few lines between reading a request
//! and a verb of `call` or `store`.

pub mod account;
pub mod admin;
mod auth_tokens;
pub mod chat;
pub mod client_secrets;
pub mod conversations;
pub mod count;
mod data_links;
pub mod decisions;
pub mod embeddings;
pub mod form;
pub mod gemini;
mod gemini_live;
pub mod health;
pub mod images;
pub mod mcp;
pub mod metrics;
pub mod models;
pub mod music;
pub mod openapi;
pub mod people;
mod picture_file;
pub mod pricing;
pub mod quote;
mod reading;
pub mod realtime;
pub mod receipts;
mod reply;
pub mod rerank;
pub mod responses;
pub mod root;
pub mod row;
pub mod runs;
pub mod social;
pub mod speech;
mod stored_file;
pub mod table;
mod tagged;
mod transcription_quote;
pub mod transcriptions;
mod unpack;
mod upgrade;
pub mod usage_sums;
pub mod video_content;
pub mod video_create;
pub mod video_tasks;
pub mod videos;
pub mod webhooks;
pub mod workflows;

pub use row::{Access, AccessRole, Row};
pub use table::{router, rows, served};
