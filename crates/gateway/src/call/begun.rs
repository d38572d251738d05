//! An answer that has begun: what the till gets of a work when a route answers.

use super::complete::Completion;
use super::pass::Passed;
use super::reader::EventReader;
use bytes::Bytes;
use http::HeaderValue;
use std::sync::Arc;
use tollgate_upstream::ReplyBody;
use tollgate_wire::StreamFault;

/// The answer has begun.
pub enum Begun {
    Whole(WholeAnswer),
    Passing(Box<Passed>),
    Stream(Box<Started>),
}

/// An answer in one piece, metered and ready to go out.
pub struct WholeAnswer {
    pub content_type: HeaderValue,
    pub body: Bytes,
    /// What is done before it goes out.
    pub completion: Option<Arc<dyn Completion>>,
}

/// A stream whose first event is here.
pub struct Started {
    pub first: Bytes,
    /// A fault that came in one piece with the first events; it follows them.
    pub fault: Option<StreamFault>,
    pub body: ReplyBody,
    pub reader: Box<dyn EventReader>,
    pub content_type: HeaderValue,
    /// What is done before its last event goes out.
    pub completion: Option<Arc<dyn Completion>>,
}
