//! Qwen-Omni: sessions in the words of OpenAI's beta interface, at an address of their own.

use crate::chat::{bearer, judge};
use crate::realtime::{Realtime, RealtimeAsk, in_query, opening};
use crate::{Fault, Outgoing, Provider, WholeReply};
use tollgate_media::realtime::{LiveForm, QwenAudio, QwenProvider};

#[derive(Clone, Copy, Debug)]
pub(crate) struct QwenRealtime;

impl Realtime for QwenRealtime {
    fn request(&self, provider: &Provider, ask: &RealtimeAsk<'_>) -> Option<Outgoing> {
        let path = format!("/api-ws/v1/realtime?model={}", in_query(ask.model));
        let mut request = opening(provider, &path, ask)?;
        bearer(&mut request, provider);
        Some(request)
    }

    fn form(&self, _: &RealtimeAsk<'_>) -> Option<Box<dyn LiveForm>> {
        Some(Box::new(QwenProvider::new(QwenAudio::default())))
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        judge::refused(reply)
    }
}
