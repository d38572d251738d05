//! Black-box tests of the gateway in one process with the simulator, over real sockets. The files
//! mirror the paths: a missing file is a missing test.

mod api;
mod endpoints_page;
mod engine;
mod generated;
mod house;
mod sent;
mod watch;

mod dialects;
mod door;
mod faults;
mod gone;
mod health;
mod incidents;
mod limits;
mod mcp;
mod no_window;
mod openapi;
mod pricing;
mod reload;
mod simulation;
mod slow;
mod stop;
mod tls;
mod v1 {
    mod balance;
    mod chat_completions;
    mod chat_faults;
    mod chat_streams;
    pub mod client_secrets;
    mod decisions;
    pub mod embeddings;
    mod every_object;
    mod every_path;
    mod extension;
    mod generated_media;
    mod groups;
    mod holds;
    mod idempotency;
    mod images;
    mod keys;
    mod models;
    mod music;
    mod overdraft;
    mod paused_routes;
    mod quote;
    mod quote_and_charge;
    pub mod realtime;
    mod realtime_forms;
    mod receipts;
    mod reports;
    mod rerank;
    mod responses;
    mod small_balance;
    mod social;
    mod speech;
    mod spending;
    mod suspended;
    mod switched_off;
    mod tiers;
    pub mod transcriptions;
    mod usage;
    mod videos;
}
