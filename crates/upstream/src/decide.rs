//! Decisions at a provider: which format it speaks, where, and what its errors mean.

use crate::chat::{bearer, judge, post};
use crate::{Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use tollgate_media::decide::DecisionForm;
use tollgate_wire::UpstreamError;

/// How one kind of provider decides.
#[derive(Clone, Copy, Debug)]
pub struct Decides {
    pub form: DecisionForm,
    /// Below the base address.
    pub path: &'static str,
}

impl Decides {
    /// The request; `None` when its path does not fit into an address.
    pub fn request(&self, provider: &Provider, call_id: &str, body: Bytes) -> Option<Outgoing> {
        let mut request = post(provider.base_url.join(self.path).ok()?, body, call_id);
        bearer(&mut request, provider);
        Some(request)
    }

    /// What an answer with an error status means.
    pub fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }

    /// What an error object inside a reply of status 200 means.
    pub fn error_inside(&self, error: &UpstreamError) -> Fault {
        judge::inside(error)
    }

    /// Nothing is made here but an answer, which costs next to nothing: one that was not begun to
    /// be sent may be had from another route.
    pub fn after(&self, fault: Fault) -> Fault {
        let reset = fault == Fault::reset();
        Fault { maybe_charged: fault.maybe_charged && !reset, ..fault }
    }
}
