//! Whether a recording passes to its provider while it arrives, or is spooled first
//! (docs/decisions/0034-uploads-pass.md). This is the one place that decides it. What speaks
//! against passing is never an error here: a recording that does not pass is spooled, and refused
//! at its end if it has to be.

use super::asked::AskedTranscription;
use crate::call::{Till, would_begin};
use crate::door::passing::{MayPass, PassLook, PassWay};
use crate::who::caller::Caller;
use std::sync::Arc;
use tollgate_catalog::Route;
use tollgate_media::audio::{AudioMeter, Container, Length};
use tollgate_media::transcription::{Recording, TranscriptionRequest};
use tollgate_store::CallId;
use tollgate_upstream::transcription::{PassingAsk, Transcriber};
use tollgate_upstream::{PassingUpload, Provider};

/// What a file is must show in so much of it.
const BEGINNING: usize = 64 << 10;
/// The shortest last boundary of a form whose fields behind the file are never shorter than ours:
/// our own has 18 letters, and what it encloses may be written with 9 bytes more than the caller's.
const CLOSING: usize = 6 + 18 + 9;

/// A form as far as it is there when its file begins.
pub struct BegunForm {
    pub call: CallId,
    /// By the fields before the file.
    pub request: TranscriptionRequest,
    /// The most bytes that the file can have, and the length of the form's last boundary.
    pub most: u64,
    pub closing: usize,
}

/// A recording that may pass, if its beginning agrees.
pub struct RecordingPass {
    till: Arc<Till>,
    maker: &'static dyn Transcriber,
    provider: Arc<Provider>,
    upstream_model: String,
    form: BegunForm,
    /// Looks at the beginning alone; the recording is measured by another.
    meter: AudioMeter,
    seen: usize,
}

impl RecordingPass {
    /// By all that is known before the first byte of the file.
    pub fn offered(till: &Arc<Till>, caller: &Caller, form: BegunForm) -> Option<RecordingPass> {
        if form.closing < CLOSING {
            return None;
        }
        let serving = till.serving.load();
        let least = Recording { length: Length::of(1, 1_000), bytes: None, container: None, codec: None };
        let asked = AskedTranscription { request: form.request.clone(), recording: least };
        let model = would_begin(till, &serving, caller, &asked)?;
        let largest = model.transcription.as_ref().and_then(|table| table.max_bytes);
        // What is not spooled cannot be sent along a second route.
        let known = |route: &'_ Route| serving.providers.get(&route.provider).cloned();
        let mut routes = model.routes.iter().filter_map(|route| Some((known(route)?, route)));
        let (provider, route) = routes.next().filter(|_| largest.is_none_or(|largest| form.most <= largest + 2))?;
        let paused = till.routes.switches.provider_is_paused(&provider.name)
            || till.routes.pauses.is_shut(&provider.name, &route.upstream_model);
        if paused || routes.next().is_some() {
            return None;
        }
        let maker = provider.kind.transcriber(&route.upstream_model)?;
        let (till, upstream_model) = (till.clone(), route.upstream_model.clone());
        Some(RecordingPass { till, maker, provider, upstream_model, form, meter: AudioMeter::default(), seen: 0 })
    }

    fn begin(&self, container: Container) -> Option<(PassWay, Box<PassingUpload>)> {
        let mut drawn = [0; 16];
        self.till.world.fill(&mut drawn);
        let (call_id, model) = (self.form.call.to_string(), self.upstream_model.as_str());
        let BegunForm { request, most, .. } = &self.form;
        let ask = PassingAsk { call_id: &call_id, model, request, container, most: *most, drawn };
        let form = self.maker.pass(&self.provider, &ask)?;
        let way = PassWay { provider: self.provider.name.clone(), upstream_model: model.to_owned(), drawn };
        Some((way, Box::new(self.till.client.pass(&self.provider, form))))
    }
}

impl MayPass for RecordingPass {
    fn look(&mut self, more: &[u8]) -> PassLook {
        let looked = &more[..more.len().min(BEGINNING - self.seen)];
        self.meter.feed(looked);
        self.seen += looked.len();
        match self.meter.container() {
            Some(container) => self.begin(container).map_or(PassLook::Spool, |(way, sent)| PassLook::Pass(way, sent)),
            None if self.seen == BEGINNING => PassLook::Spool,
            None => PassLook::More,
        }
    }
}
