//! Rerank at a provider: how one maker's request is written, and where its reply has the results.

use crate::chat::judge;
use crate::{Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use tollgate_media::rerank::{RankShape, RerankRequest};
use tollgate_wire::{Dropped, Problem, UpstreamError};

/// How one kind of provider puts documents into order. Documents are never asked for again: the
/// gateway has them.
pub trait Rerank: Sync + std::fmt::Debug {
    fn shape(&self) -> &'static RankShape;

    /// The body of the request; `model` is the provider's name for it.
    fn body(&self, request: &RerankRequest, model: &str) -> Result<RerankSent, Problem>;

    /// The request; `None` when its path does not fit into an address.
    fn request(&self, provider: &Provider, call_id: &str, body: Bytes) -> Option<Outgoing>;

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }

    /// What an error object inside a reply of status 200 means.
    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::inside(error)
    }
}

/// A request as a provider gets it.
#[derive(Debug, PartialEq, Eq)]
pub struct RerankSent {
    pub body: Bytes,
    /// What the provider does not get.
    pub dropped: Dropped,
}
