//! Embeddings at a provider: what is asked, how one maker's request is written, and where its reply
//! has the vectors.

use crate::chat::judge;
use crate::{Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use std::ops::Range;
use tollgate_media::embed::{EmbedCaller, EmbedRequest, VectorShape};
use tollgate_wire::{Dropped, Problem, UpstreamError};

/// How one kind of provider makes embeddings.
pub trait Embeddings: Sync + std::fmt::Debug {
    /// Where its replies have vectors and report.
    fn shape(&self) -> &'static VectorShape;

    /// Texts that it takes in one request, as far as its documents say.
    fn most_inputs(&self) -> usize;

    /// Its replies say how many tokens were read.
    fn reports(&self) -> bool {
        true
    }

    /// A client of this format gets its replies as they are.
    fn speaks(&self, caller: EmbedCaller) -> bool;

    /// Why it cannot take this request at all.
    fn takes(&self, request: &EmbedRequest) -> Result<(), Problem>;

    /// The body for some texts of a request.
    fn body(&self, ask: &EmbedAsk<'_>) -> Result<EmbedSent, Problem>;

    /// The request; `None` when the model's name does not fit into an address.
    fn request(&self, provider: &Provider, model: &str, call_id: &str, body: Bytes) -> Option<Outgoing>;

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }

    /// What an error object inside a reply of status 200 means.
    fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::inside(error)
    }
}

/// What is asked of a provider in one request.
#[derive(Debug)]
pub struct EmbedAsk<'a> {
    pub request: &'a EmbedRequest,
    /// The provider's name for the model.
    pub model: &'a str,
    /// Which of the texts.
    pub range: Range<usize>,
    /// The model's provider knows vectors as lists of numbers only.
    pub floats_only: bool,
}

impl EmbedAsk<'_> {
    /// All texts of the request.
    pub(crate) fn is_whole(&self) -> bool {
        self.range == (0..self.request.tally.texts)
    }
}

/// A request as a provider gets it.
#[derive(Debug, PartialEq, Eq)]
pub struct EmbedSent {
    pub body: Bytes,
    /// What the provider does not get.
    pub dropped: Dropped,
}

/// Why token numbers cannot go to a maker that has other ones.
pub(crate) fn no_ids(request: &EmbedRequest) -> Result<(), Problem> {
    if !request.has_ids {
        return Ok(());
    }
    let text = "`input`: the provider of this model takes text, not the numbers of another maker's tokens.";
    Err(Problem::unsupported("input", text))
}
