//! Sessions as OpenAI has them, and everybody who copied its GA interface. Azure has them too, with
//! its own name for the key; its older form names a deployment and a version, and speaks the beta
//! interface.

use crate::chat::{bearer, judge, key_in};
use crate::realtime::{Realtime, RealtimeAsk, in_query, opening};
use crate::{Fault, Outgoing, Provider, WholeReply};
use tollgate_media::realtime::{BetaProvider, LiveForm};

/// The base address ends in the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiRealtime;

const AZURE: &str = ".azure.com";

impl Realtime for OpenAiRealtime {
    fn request(&self, provider: &Provider, ask: &RealtimeAsk<'_>) -> Option<Outgoing> {
        let mut request = match ask.api_version {
            None => opening(provider, &current(ask), ask)?,
            Some(version) => {
                let mut request = opening(provider, "/realtime", ask)?;
                *request.uri_mut() = provider.base_url.without_version().join(&older(ask, version)).ok()?;
                request
            }
        };
        let host = provider.base_url.host().to_ascii_lowercase();
        match provider.kind.key_header.is_none() && host.ends_with(AZURE) {
            true => key_in(&mut request, "api-key", provider),
            false => bearer(&mut request, provider),
        }
        Some(request)
    }

    fn form(&self, ask: &RealtimeAsk<'_>) -> Option<Box<dyn LiveForm>> {
        ask.api_version?;
        Some(Box::new(BetaProvider::new()))
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }
}

/// A session that only listens names its model in its configuration.
fn current(ask: &RealtimeAsk<'_>) -> String {
    match ask.transcription {
        true => "/realtime?intent=transcription".to_owned(),
        false => format!("/realtime?model={}", in_query(ask.model)),
    }
}

fn older(ask: &RealtimeAsk<'_>, version: &str) -> String {
    let version = in_query(version);
    match ask.transcription {
        true => format!("/realtime?api-version={version}&intent=transcription"),
        false => format!("/realtime?api-version={version}&deployment={}", in_query(ask.model)),
    }
}
