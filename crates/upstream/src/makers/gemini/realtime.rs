//! Gemini Live: one address for all models, which are named in the first frame.

use crate::chat::{judge, key_in};
use crate::realtime::{Realtime, RealtimeAsk, opening};
use crate::{Fault, Outgoing, Provider, WholeReply};
use tollgate_media::realtime::{GeminiProvider, GeminiProviderSettings, LiveForm};

const PATH: &str = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";

#[derive(Clone, Copy, Debug)]
pub(crate) struct GeminiLive;

impl Realtime for GeminiLive {
    fn request(&self, provider: &Provider, ask: &RealtimeAsk<'_>) -> Option<Outgoing> {
        let mut request = opening(provider, PATH, ask)?;
        key_in(&mut request, "x-goog-api-key", provider);
        Some(request)
    }

    fn form(&self, ask: &RealtimeAsk<'_>) -> Option<Box<dyn LiveForm>> {
        let settings =
            GeminiProviderSettings { id: ask.call_id.to_owned(), model: ask.model.to_owned(), usage: ask.live_usage };
        Some(Box::new(GeminiProvider::new(settings)))
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }
}
