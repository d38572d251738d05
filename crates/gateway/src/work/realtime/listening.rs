//! Input that is written down by a recognition model: each piece is a call of its own, at that
//! model's price. Audio is held for before it is passed on.

use super::needs::NextTranscript;
use super::session::Shared;
use crate::call::{self, SessionCall};
use crate::refusal::Refusal;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_catalog::{BillingUnit, Model};
use tollgate_media::realtime::live_usage;
use tollgate_store::{Counters, Ending};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;

/// What is held for at first.
pub(super) const FIRST_SECONDS: u64 = 30;
/// Pieces that wait for their transcript.
const MOST_PENDING: usize = 64;

/// A session's transcripts.
#[derive(Default)]
pub struct Listening {
    model: Option<Arc<Model>>,
    upstream: String,
    /// For the audio that is being appended.
    standing: Option<(SessionCall, u64)>,
    /// By item, with the seconds that are in it.
    pending: HashMap<String, (SessionCall, u64)>,
}

impl Listening {
    /// Of a session that does nothing else, with the hold for its first audio.
    pub fn with(call: SessionCall, upstream: String) -> Listening {
        let model = Some(call.model().clone());
        Listening { model, upstream, standing: Some((call, FIRST_SECONDS)), pending: HashMap::new() }
    }

    /// The public name of the model that listens, by the provider's name for it.
    pub fn public_name(&self, upstream: &str) -> Option<&str> {
        let model = self.model.as_ref().filter(|_| self.upstream == upstream)?;
        Some(&model.name)
    }

    /// From now on this model listens. Gives the provider's name for it.
    pub async fn begin(&mut self, shared: &Shared, provider: &Arc<Provider>, name: &str) -> Result<String, Refusal> {
        let ask = NextTranscript { model: name.to_owned(), seconds: FIRST_SECONDS };
        let serving = shared.terms.till.serving.load_full();
        let (model, _) = call::find(&serving, &shared.caller, &ask)?;
        let route = model.routes.iter().find(|route| route.provider == provider.name);
        let Some(route) = route else {
            let text = format!("The model `{name}` cannot listen to this session: another provider has it.");
            return Err(Refusal::about(Code::UnsupportedValue, "session.audio.input.transcription.model", text));
        };
        if self.model.as_ref().is_none_or(|old| old.name != model.name) {
            self.end("not_listening");
            self.upstream.clone_from(&route.upstream_model);
            self.model = Some(model);
            self.stand(shared, provider, FIRST_SECONDS).await?;
        }
        Ok(self.upstream.clone())
    }

    async fn stand(&mut self, shared: &Shared, provider: &Arc<Provider>, seconds: u64) -> Result<(), Refusal> {
        let Some(model) = &self.model else { return Ok(()) };
        let ask = NextTranscript { model: model.name.clone(), seconds };
        let caller = shared.caller.clone();
        let call = shared.terms.next(caller, shared.ids.call(), ask, provider.clone(), &self.upstream).await?;
        self.standing = Some((call, seconds));
        Ok(())
    }

    /// Nobody listens any more.
    pub fn stop(&mut self) {
        if let Some((call, _)) = self.standing.take() {
            call.let_go(Ending::ClientLeft, "not_listening");
        }
        self.model = None;
    }

    /// So much audio waits to be committed: it is held for before it is passed on.
    pub async fn cover(&mut self, seconds: u64) -> Result<(), Refusal> {
        let (Some((call, held)), Some(model)) = (&mut self.standing, &self.model) else { return Ok(()) };
        if seconds > *held {
            let wanted = seconds.max(held.saturating_mul(2));
            let wants = NextTranscript { model: model.name.clone(), seconds: wanted };
            Box::pin(call.cover_all(&wants)).await?;
            *held = wanted;
        }
        Ok(())
    }

    /// So much audio has become an item, which is written down now.
    pub async fn committed(
        &mut self,
        shared: &Shared,
        provider: &Arc<Provider>,
        item: &str,
        seconds: u64,
    ) -> Result<(), Refusal> {
        let Some((call, _)) = self.standing.take() else { return Ok(()) };
        if self.pending.len() >= MOST_PENDING
            && let Some(oldest) = self.pending.keys().next().cloned()
            && let Some((call, _)) = self.pending.remove(&oldest)
        {
            call.let_go(Ending::UpstreamFault, "no_transcript");
        }
        self.pending.insert(item.to_owned(), (call, seconds));
        self.stand(shared, provider, FIRST_SECONDS).await
    }

    /// The transcript of an item is there, with what it used.
    pub fn completed(&mut self, item: &str, usage: &Value) {
        let Some((mut call, seconds)) = self.pending.remove(item) else { return };
        let (used, estimated) = charged(call.model(), seconds, usage);
        call.measured(item, used, estimated, &usage.to_string());
        call.settle(Ending::Answered, "transcribed");
    }

    pub fn failed(&mut self, item: &str) {
        if let Some((call, _)) = self.pending.remove(item) {
            call.let_go(Ending::UpstreamFault, "transcription_failed");
        }
    }

    /// The session is over, or another model listens: what came to nothing costs nothing.
    pub fn end(&mut self, reason: &str) {
        self.stop();
        for (_, (call, _)) in self.pending.drain() {
            call.let_go(Ending::UpstreamFault, reason);
        }
    }
}

/// What a transcript is charged for: what its provider reports, in the unit of its price; our own
/// length of the audio otherwise.
fn charged(model: &Model, seconds: u64, usage: &Value) -> (Counters, bool) {
    let own = || NextTranscript::counted(model, seconds).unwrap_or_default();
    if model.billing_unit == BillingUnit::Tokens {
        return match live_usage(usage) {
            Some(Usage { input, audio_input, output, .. }) if input + audio_input > 0 => {
                (Counters { input, audio_input, output, calls: 1, ..Counters::default() }, false)
            }
            _ => (own(), true),
        };
    }
    // A provider that cut silence off has heard less; more than was sent it cannot have heard.
    let reported =
        usage["seconds"].as_f64().filter(|seconds_said| *seconds_said > 0.0 && *seconds_said <= seconds as f64 + 1.0);
    let whole = reported.map(|said| said.ceil() as u64);
    let used = whole.and_then(|whole| NextTranscript::counted(model, whole.min(seconds.max(1))));
    used.map_or_else(|| (own(), usage["seconds"].is_number()), |used| (used, false))
}
