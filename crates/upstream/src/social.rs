//! Social data at a provider: what is asked, and how one source's request is written and its errors
//! are read.

use crate::{Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;

/// How one kind of provider sells social data.
pub trait SocialData: Sync + std::fmt::Debug {
    /// `None` when the path does not fit into an address.
    fn request(&self, provider: &Provider, ask: &SocialAsk<'_>) -> Option<Outgoing>;

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault;
}

/// One request for social data.
#[derive(Debug)]
pub enum SocialAsk<'a> {
    /// Parameters in the query string, encoded.
    Get { path: &'a str, query: &'a str },
    /// Parameters as a JSON object.
    Post { path: &'a str, body: Bytes },
}
