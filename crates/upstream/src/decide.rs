//! Decisions at a provider: which format it speaks, where, and what its errors mean.

use crate::chat::{bearer, judge, post};
use crate::{Fault, Outgoing, Payload, PayloadPart, Provider, SpooledFile, WholeReply};
use bytes::Bytes;
use tollgate_media::decide::{DecisionBody, DecisionForm};
use tollgate_wire::UpstreamError;

/// How one kind of provider decides.
#[derive(Clone, Copy, Debug)]
pub struct Decides {
    pub form: DecisionForm,
    /// Below the base address.
    pub path: &'static str,
}

impl Decides {
    /// The request; `None` when its path does not fit into an address. Files go into the gaps of
    /// its body in base64, while they are sent.
    pub fn request(
        &self,
        provider: &Provider,
        call_id: &str,
        body: DecisionBody,
        files: &[SpooledFile],
    ) -> Option<Outgoing> {
        let uri = provider.base_url.join(self.path).ok()?;
        let mut request = if body.gaps.is_empty() {
            post(uri, body.text, call_id)
        } else {
            let mut request = post(uri, Bytes::new(), call_id);
            *request.body_mut() = with_files(&body, files)?;
            request
        };
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

/// `None` where a gap has no file.
fn with_files(body: &DecisionBody, files: &[SpooledFile]) -> Option<Payload> {
    let (mut parts, mut done) = (Vec::with_capacity(body.gaps.len() * 2 + 1), 0);
    for (at, part) in &body.gaps {
        parts.push(PayloadPart::from(body.text.slice(done..*at)));
        parts.push(files.get(*part)?.base64_part());
        done = *at;
    }
    parts.push(PayloadPart::from(body.text.slice(done..)));
    Some(Payload::of_parts(parts))
}
