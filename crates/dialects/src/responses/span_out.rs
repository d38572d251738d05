//! How a Responses stream begins and ends: the events that hold the response as far as it is known.

use super::answer_out::{self, error};
use super::events_out::{ResponsesWriter, event};
use super::object::{self, ResponseState};
use crate::hub::Lane;
use tollgate_wire::json::Object;
use tollgate_wire::usage::Usage;

impl ResponsesWriter {
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for name in ["response.created", "response.in_progress"] {
            self.lifecycle(out, name, "in_progress", None, None);
        }
    }

    fn lifecycle(
        &mut self,
        out: &mut Vec<u8>,
        name: &str,
        status: &'static str,
        usage: Option<&Usage>,
        error: Option<(&str, &str)>,
    ) {
        let mut number = self.number;
        event(out, &mut number, name, |body| {
            body.object("response", |response| self.response(response, status, usage, error));
        });
        self.number = number;
    }

    /// The response as far as it is known.
    fn response(
        &self,
        object: &mut Object<'_>,
        status: &'static str,
        usage: Option<&Usage>,
        error: Option<(&str, &str)>,
    ) {
        let (ending, reason) = answer_out::status(self.finish.as_ref());
        let state = ResponseState {
            status,
            items: &self.items,
            usage,
            searches: self.searches,
            reason: reason.filter(|_| ending == status),
            error,
            tier: self.tier.as_deref(),
        };
        match &self.begun {
            Some(begun) => object::end(object, begun, &self.voice, &state),
            None => object::write(object, &self.voice, &state),
        }
    }

    pub fn end(&mut self, usage: Option<&Usage>, out: &mut Vec<u8>) {
        self.start(out);
        let (ending, _) = answer_out::status(self.finish.as_ref());
        let cut = if ending == "incomplete" { "incomplete" } else { "completed" };
        self.close(cut, out);
        self.drain(true, cut, out);
        debug_assert!(self.open.is_none() && self.object.is_none(), "one terminal event, after every item");
        let usage = usage.copied().unwrap_or_default();
        self.lifecycle(out, &format!("response.{ending}"), ending, Some(&usage), error(ending));
        let mut last = Vec::new();
        let mut object = Object::begin(&mut last);
        self.response(&mut object, ending, Some(&usage), error(ending));
        object.end();
        self.object = String::from_utf8(last).ok();
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// The final response object, once the stream has ended.
    pub fn object(&self) -> Option<&str> {
        self.object.as_deref()
    }

    /// It is so late now, in seconds since 1970: if the answer ends next, it ends then.
    pub fn now(&mut self, seconds: u64) {
        self.voice.ended = Some(seconds);
    }

    /// The stream passed from elsewhere up to this number, and began with this response.
    pub fn go_on(&mut self, number: u64, begun: Option<String>) {
        self.started |= number > 0;
        self.number = number;
        self.begun = begun;
    }

    /// Nothing of the stream reached the client: what is written next is written from the start.
    pub fn forget_unsent(&mut self) {
        self.started = false;
        self.number = 0;
        self.items.clear();
        self.open = None;
        self.begun = None;
        self.lane = Lane::default();
    }

    /// The terminal event of a stream that failed.
    pub fn fail(&mut self, code: &str, message: &str, usage: Option<&Usage>, out: &mut Vec<u8>) {
        self.start(out);
        self.close("incomplete", out);
        self.lifecycle(out, "response.failed", "failed", usage, Some((code, message)));
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}
