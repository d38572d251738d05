//! Sessions as OpenAI has them, and everybody who copied its GA interface; Azure with its own name
//! for the key.

use crate::chat::{bearer, judge, key_in};
use crate::realtime::{Realtime, RealtimeAsk, in_query, opening};
use crate::{Fault, Outgoing, Provider, WholeReply};
use tollgate_media::realtime::LiveForm;

/// The base address ends in the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiRealtime;

const AZURE: &str = ".azure.com";

impl Realtime for OpenAiRealtime {
    fn request(&self, provider: &Provider, ask: &RealtimeAsk<'_>) -> Option<Outgoing> {
        // A session that only listens names its model in its configuration.
        let path = match ask.transcription {
            true => "/realtime?intent=transcription".to_owned(),
            false => format!("/realtime?model={}", in_query(ask.model)),
        };
        let mut request = opening(provider, &path, ask)?;
        match provider.base_url.host().to_ascii_lowercase().ends_with(AZURE) {
            true => key_in(&mut request, "api-key", provider),
            false => bearer(&mut request, provider),
        }
        Some(request)
    }

    fn form(&self, _: &RealtimeAsk<'_>) -> Option<Box<dyn LiveForm>> {
        None
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }
}
