//! Input that is written down by a recognition model: each piece is a call of its own, at that
//! model's price. Audio is held for before it is passed on.

use super::needs::NextTranscript;
use super::talk::Shared;
use crate::call::{self, SessionCall};
use crate::refusal::Refusal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::{BillingUnit, Model};
use tollgate_media::realtime::live_usage;
use tollgate_store::{Counters, Ending};
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;
use tollgate_wire::usage::Usage;

/// What is held for at first.
pub const FIRST_SECONDS: u64 = 30;
/// Pieces that wait for their transcript.
const MOST_PENDING: usize = 64;
/// By so much a report may be longer than the audio: its provider counts in frames of its own.
const FRAME: Duration = Duration::from_secs(1);

/// A session's transcripts.
#[derive(Default)]
pub struct Listening {
    model: Option<Arc<Model>>,
    upstream: String,
    /// Tokens of a second of sound.
    heard: u64,
    /// Tokens that the model is told beside the audio.
    prompt: u64,
    /// For the audio that is being appended.
    standing: Option<(SessionCall, u64)>,
    /// Its hold was given back because nobody speaks.
    rests: bool,
    /// By item.
    pending: BTreeMap<String, Pending>,
    /// The client wants nobody to listen any more, and the provider has not said that it is so.
    stops: bool,
    /// Audio whose transcripts were charged by a report.
    reported: Duration,
}

/// A piece that is being written down.
struct Pending {
    call: SessionCall,
    seconds: u64,
    /// Some of its transcript has come.
    begun: bool,
}

impl Pending {
    /// Charged by our own length of the audio.
    fn estimated(self, item: &str, heard: u64, reason: &str) {
        let Pending { mut call, seconds, .. } = self;
        let used = NextTranscript::counted(call.model(), seconds.max(1), heard).unwrap_or_default();
        call.measured(item, used, true, "null");
        call.settle(Ending::Answered, reason);
    }
}

fn whole_seconds(length: Duration) -> u64 {
    length.as_secs() + u64::from(length.subsec_nanos() > 0)
}

impl Listening {
    /// Nobody listens yet. A second of sound has so many tokens.
    pub fn at(heard: u64) -> Listening {
        Listening { heard, ..Listening::default() }
    }

    /// Of a session that does nothing else, with the hold for its first audio.
    pub fn with(call: SessionCall, upstream: String, heard: u64) -> Listening {
        let model = Some(call.model().clone());
        Listening { model, upstream, standing: Some((call, FIRST_SECONDS)), ..Listening::at(heard) }
    }

    /// The public name of the model that listens, by the provider's name for it.
    pub fn public_name(&self, upstream: &str) -> Option<&str> {
        let model = self.model.as_ref().filter(|_| self.upstream == upstream)?;
        Some(&model.name)
    }

    /// Pieces are being written down.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// From now on this model listens, and is told so many tokens beside each piece of audio. Gives
    /// the provider's name for it.
    pub async fn begin(
        &mut self,
        shared: &Shared,
        provider: &Arc<Provider>,
        name: &str,
        prompt: u64,
    ) -> Result<String, Refusal> {
        let ask = NextTranscript { model: name.to_owned(), seconds: FIRST_SECONDS, heard: self.heard, prompt };
        let serving = shared.terms.till.serving.load_full();
        let (model, _) = call::find(&serving, &shared.caller, &ask)?;
        let Some(route) = model.routes.iter().find(|route| route.provider == provider.name) else {
            let text = format!("The model `{name}` cannot listen to this session: another provider has it.");
            return Err(Refusal::new(Code::UnsupportedValue, text));
        };
        match &self.model {
            // Nobody could say which of the two has heard what.
            Some(old) if old.name != model.name => {
                let text = format!("The model `{}` listens to this session; open another one for `{name}`.", old.name);
                return Err(Refusal::new(Code::UnsupportedValue, text));
            }
            Some(_) => {
                self.prompt = self.prompt.max(prompt);
                self.cover_seconds(0).await?;
            }
            None => {
                self.upstream.clone_from(&route.upstream_model);
                self.prompt = prompt;
                self.model = Some(model);
                if let Err(refusal) = self.stand(shared, provider, FIRST_SECONDS).await {
                    self.model = None;
                    return Err(refusal);
                }
            }
        }
        self.stops = false;
        Ok(self.upstream.clone())
    }

    fn ask(&self, seconds: u64) -> Option<NextTranscript> {
        let model = self.model.as_ref()?.name.clone();
        Some(NextTranscript { model, seconds, heard: self.heard, prompt: self.prompt })
    }

    async fn stand(&mut self, shared: &Shared, provider: &Arc<Provider>, seconds: u64) -> Result<(), Refusal> {
        let Some(ask) = self.ask(seconds) else { return Ok(()) };
        let caller = shared.caller.clone();
        let call = shared.terms.next(caller, shared.ids.call(), ask, provider.clone(), &self.upstream).await?;
        self.standing = Some((call, seconds));
        self.rests = false;
        Ok(())
    }

    /// Nobody is to listen any more. Until the provider says so, somebody does.
    pub fn ask_to_stop(&mut self) {
        self.stops = true;
    }

    /// The provider says that nobody listens.
    pub fn confirm_stop(&mut self) {
        if std::mem::take(&mut self.stops) {
            self.stop();
        }
    }

    /// What was said before is still written down.
    fn stop(&mut self) {
        if let Some((call, _)) = self.standing.take() {
            call.let_go(Ending::ClientLeft, "not_listening");
        }
        self.model = None;
        self.rests = false;
    }

    /// Is so much audio that waits to be committed held for?
    pub fn covers(&self, waiting: Duration) -> bool {
        match &self.standing {
            Some((_, held)) => whole_seconds(waiting) <= *held,
            None => !self.rests,
        }
    }

    /// So much audio waits to be committed: it is held for before it is passed on.
    pub async fn cover(&mut self, shared: &Shared, provider: &Arc<Provider>, waiting: Duration) -> Result<(), Refusal> {
        let seconds = whole_seconds(waiting);
        match &self.standing {
            Some((_, held)) if seconds > *held => self.cover_seconds(seconds).await,
            None if self.rests => self.stand(shared, provider, FIRST_SECONDS.max(seconds)).await,
            _ => Ok(()),
        }
    }

    /// Nothing was said for long, and nothing waits to be committed: the hold is given back until
    /// something is said.
    pub fn rest(&mut self) {
        if let Some((call, _)) = self.standing.take() {
            call.let_go(Ending::ClientLeft, "no_response");
            self.rests = true;
        }
    }

    async fn cover_seconds(&mut self, seconds: u64) -> Result<(), Refusal> {
        let held = self.standing.as_ref().map_or(0, |(_, held)| *held);
        let wanted = if seconds > held { seconds.max(held.saturating_mul(2)) } else { held };
        let wants = self.ask(wanted);
        let (Some((call, held)), Some(wants)) = (&mut self.standing, wants) else { return Ok(()) };
        Box::pin(call.cover_all(&wants)).await?;
        *held = wanted;
        Ok(())
    }

    /// So much audio has become an item, which is written down now; so much more is waiting.
    pub async fn committed(
        &mut self,
        shared: &Shared,
        provider: &Arc<Provider>,
        item: &str,
        length: Duration,
        waiting: Duration,
    ) -> Result<(), Refusal> {
        let Some((call, _)) = self.standing.take() else { return Ok(()) };
        // Its provider has it, and bills it.
        if self.pending.len() >= MOST_PENDING
            && let Some(other) = self.pending.keys().next().cloned()
            && let Some(pending) = self.pending.remove(&other)
        {
            pending.estimated(&other, self.heard, "no_transcript");
        }
        let seconds = whole_seconds(length);
        self.pending.insert(item.to_owned(), Pending { call, seconds, begun: false });
        self.stand(shared, provider, FIRST_SECONDS.max(whole_seconds(waiting))).await
    }

    /// Some of the transcript of an item is there.
    pub fn begun(&mut self, item: &str) {
        if let Some(pending) = self.pending.get_mut(item) {
            pending.begun = true;
        }
    }

    /// The transcript of an item is there, with what it used. `appended` is all audio so far.
    pub fn completed(&mut self, item: &str, usage: &Value, appended: Duration) {
        let Some(Pending { mut call, seconds, .. }) = self.pending.remove(item) else { return };
        let unreported = appended.saturating_sub(self.reported);
        let (used, estimated) = charged(call.model(), (seconds, self.heard), usage, unreported);
        if !estimated {
            self.reported += reported_length(usage).unwrap_or_default().min(unreported);
        }
        call.measured(item, used, estimated, &usage.to_string());
        call.settle(Ending::Answered, "transcribed");
    }

    pub fn failed(&mut self, item: &str) {
        if let Some(Pending { call, .. }) = self.pending.remove(item) {
            call.let_go(Ending::UpstreamFault, "transcription_failed");
        }
    }

    /// The session is over: what came to nothing costs nothing, what was begun is charged by our
    /// own count.
    pub fn end(&mut self, reason: &str) {
        self.stop();
        for (item, pending) in std::mem::take(&mut self.pending) {
            if pending.begun {
                pending.estimated(&item, self.heard, reason);
            } else {
                pending.call.let_go(Ending::UpstreamFault, reason);
            }
        }
    }
}

fn reported_length(usage: &Value) -> Option<Duration> {
    let seconds = usage["seconds"].as_f64().filter(|seconds| *seconds > 0.0)?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// What a transcript is charged for: what its provider reports, in the unit of its price; our own
/// length of the audio otherwise. More than was sent and not yet reported it cannot have heard.
fn charged(model: &Model, (seconds, heard): (u64, u64), usage: &Value, unreported: Duration) -> (Counters, bool) {
    let own = || NextTranscript::counted(model, seconds, heard).unwrap_or_default();
    if model.billing_unit == BillingUnit::Tokens {
        return match live_usage(usage) {
            Some(Usage { input, audio_input, output, .. }) if input + audio_input > 0 => {
                (Counters { input, audio_input, output, calls: 1, ..Counters::default() }, false)
            }
            _ => (own(), true),
        };
    }
    let reported = reported_length(usage).filter(|length| *length <= unreported.saturating_add(FRAME));
    let used = reported.and_then(|length| NextTranscript::counted(model, whole_seconds(length), heard));
    used.map_or_else(|| (own(), usage["seconds"].is_number()), |used| (used, false))
}
