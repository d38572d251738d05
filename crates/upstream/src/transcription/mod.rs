//! Transcripts at a provider: what is asked, how one maker's request is written and its reply is
//! read, and what its errors mean.

mod events;
mod report;
mod tasks;

pub use events::TranscriptEvents;
pub(crate) use report::LengthReport;
pub use tasks::{RecordingStanding, StoreUpload, TranscriptionTasks};

use crate::outgoing::outgoing;
use crate::{Fault, FormPayload, Outgoing, PassingForm, Provider, SpooledFile, WholeReply, making};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use tollgate_media::audio::{Container, Measured};
use tollgate_media::transcription::{
    TranscriptFacts, TranscriptFormat, TranscriptShape, TranscriptTarget, TranscriptionRequest,
};
use tollgate_wire::Problem;

/// How one kind of provider writes recordings down.
pub trait Transcriber: Sync + std::fmt::Debug {
    /// `None` when there is no address for it.
    fn request(&self, provider: &Provider, ask: &TranscriptionAsk<'_>) -> Option<Outgoing>;

    /// The beginning of a form whose file passes while it arrives; `None` where it takes whole
    /// files only.
    fn pass(&self, _: &Provider, _: &PassingAsk<'_>) -> Option<PassingForm> {
        None
    }

    /// What follows the file in such a form, by all that is known at its end.
    fn pass_end(&self, _: &TranscriptionAsk<'_>) -> Option<Bytes> {
        None
    }

    /// The formats that it, or we from what it says, can give.
    fn formats(&self) -> &'static [TranscriptFormat];

    /// Whether it also translates into English.
    fn translates(&self) -> bool {
        false
    }

    /// Whether it sends OpenAI's events while it listens.
    fn streams(&self) -> bool {
        false
    }

    /// Where its replies have the transcript, where it is we who write this format; `None` where a
    /// reply goes to the client as it is.
    fn shape(&self, format: TranscriptFormat) -> Option<&'static TranscriptShape>;

    /// Whether a field of the form is not for it: left out, and reported.
    fn drops(&self, _field: &str) -> bool {
        false
    }

    /// Whether it takes the file.
    fn takes(&self, _: &TranscriptionAsk<'_>) -> Result<(), Problem> {
        Ok(())
    }

    /// Who is asked instead for this model, where a kind of provider has another way for some of
    /// its models.
    fn of_model(&self, _upstream_model: &str) -> Option<&'static dyn Transcriber> {
        None
    }

    /// Its tasks, where it takes files by their address and answers later.
    fn tasks(&self) -> Option<&'static dyn TranscriptionTasks> {
        None
    }

    /// What was heard, by a reply of status 200 that goes to the client as it is.
    fn heard(&self, _: &TranscriptionAsk<'_>, _: &WholeReply) -> Result<Heard, Fault> {
        Err(Fault::garbage())
    }

    /// What else is in a reply that is rewritten. `rest` is the reply without its text and its
    /// words, which are empty in it.
    fn facts(&self, ask: &TranscriptionAsk<'_>, rest: &[u8]) -> Result<HeardFacts, Fault>;

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault {
        making::openai(reply)
    }
}

/// What is asked of a provider.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptionAsk<'a> {
    pub call_id: &'a str,
    /// The provider's name for the model.
    pub model: &'a str,
    pub request: &'a TranscriptionRequest,
    /// `None` where it has passed already.
    pub file: Option<&'a SpooledFile>,
    pub measured: &'a Measured,
    /// Events are wanted, and the model has them.
    pub stream: bool,
    /// Random, for the boundary of a form.
    pub drawn: [u8; 16],
}

/// What is asked of a provider before all of it is there.
#[derive(Clone, Copy, Debug)]
pub struct PassingAsk<'a> {
    pub call_id: &'a str,
    pub model: &'a str,
    /// By the fields before the file; others may follow it.
    pub request: &'a TranscriptionRequest,
    pub container: Container,
    /// The most bytes that the file can have. Where it has fewer, fields follow it that take no
    /// more room here than they did in the caller's form.
    pub most: u64,
    pub drawn: [u8; 16],
}

impl TranscriptionAsk<'_> {
    /// What its transcript is to be, where it is we who write it.
    pub fn target(&self) -> TranscriptTarget {
        TranscriptTarget {
            format: self.request.format,
            translate: self.request.translate,
            with_words: self.request.has("timestamp_granularities[]", "word"),
        }
    }
}

/// A transcript in the format that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub body: Bytes,
    pub usage: TranscriptionUsage,
}

/// What is known of a transcript beside its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeardFacts {
    pub facts: TranscriptFacts,
    pub usage: TranscriptionUsage,
}

/// What a provider says of what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptionUsage {
    /// The length of the recording, as it has it.
    pub millis: Option<u64>,
    /// Its report of usage, as it came.
    pub raw_usage: Option<String>,
}

const CALL_ID: HeaderName = HeaderName::from_static("x-client-request-id");

/// A form to this path, with everything but the key.
pub(crate) fn upload(provider: &Provider, path: &str, form: FormPayload, call_id: &str) -> Option<Outgoing> {
    let mut request = without_body(provider, path, form.content_type(), call_id)?;
    *request.body_mut() = form.payload();
    Some(request)
}

/// The same before its body is there.
pub(crate) fn without_body(provider: &Provider, path: &str, kind: HeaderValue, call_id: &str) -> Option<Outgoing> {
    let uri = provider.base_url.join(path).ok()?;
    let mut request = outgoing(Method::POST, uri, "application/json, text/plain, text/event-stream", Bytes::new());
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    if let Ok(value) = HeaderValue::try_from(call_id) {
        headers.insert(CALL_ID, value);
    }
    Some(request)
}
