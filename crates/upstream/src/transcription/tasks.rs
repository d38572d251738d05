//! Recordings that a provider takes by their address and writes down later: put into the provider's
//! own store, begun once, asked about until the task is over, and read from a link.
//!
//! Only [`TranscriptionTasks::begin`] costs anything.

use super::{TranscriptionAsk, TranscriptionUsage};
use crate::{Fault, Outgoing, Provider, WholeReply};
use std::time::Duration;

/// How one kind of provider does it. Its [`super::Transcriber`] writes the request that begins a
/// task, and reads the transcript behind the link.
pub trait TranscriptionTasks: Sync + std::fmt::Debug {
    /// Asks where the file may be put.
    fn place(&self, provider: &Provider, ask: &TranscriptionAsk<'_>) -> Option<Outgoing>;

    /// How it is put there, by the answer to that. The key is not for the store.
    fn upload(&self, ask: &TranscriptionAsk<'_>, reply: &WholeReply) -> Result<StoreUpload, Fault>;

    /// Begins the task for the file at this address.
    fn begin(&self, provider: &Provider, ask: &TranscriptionAsk<'_>, address: &str) -> Option<Outgoing>;

    /// How a task stands, by the answer to its beginning or to a question about it.
    fn standing(&self, reply: &WholeReply) -> Result<RecordingStanding, Fault>;

    /// Asks about a task.
    fn poll(&self, provider: &Provider, task: &str) -> Option<Outgoing>;

    /// Between two questions.
    fn poll_every(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// A file on its way into a provider's store.
#[derive(Debug)]
pub struct StoreUpload {
    pub request: Outgoing,
    /// What the task knows the file by.
    pub address: String,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingStanding {
    /// It is not over: the provider's id of it.
    Open(String),
    /// The transcript is behind a link.
    Done {
        link: String,
        /// What the provider says of it.
        report: TranscriptionUsage,
    },
    /// Nothing was said in the recording.
    Silent,
}
