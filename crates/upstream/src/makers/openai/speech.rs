//! Speech as OpenAI makes it, and everybody who copied it: the audio itself is the answer.

use crate::chat::bearer;
use crate::speech::{AudioReader, PassedOn, SpeechAsk, SpeechMaker, post};
use crate::{Fault, Outgoing, Provider, WholeReply, making};
use http::HeaderMap;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechFormat;

/// The base address ends in the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAiSpeech;

impl SpeechMaker for OpenAiSpeech {
    fn makes(&self, _: SpeechFormat) -> bool {
        true
    }

    fn takes(&self, _: &str) -> bool {
        true
    }

    /// A stream of another form, a link instead of the audio, another rate of its samples.
    fn own(&self) -> &'static [&'static str] {
        &["stream", "return_url", "sample_rate"]
    }

    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing> {
        let speech = ask.speech;
        let mut body: Map<String, Value> = speech.extra.clone();
        let fields = [
            ("model", Some(Value::from(ask.model))),
            ("input", Some(Value::from(speech.text.as_str()))),
            ("voice", Some(speech.voice.json())),
            ("response_format", Some(Value::from(ask.made.name()))),
            ("speed", speech.speed.clone().map(Value::Number)),
            ("instructions", speech.instructions.as_deref().map(Value::from)),
        ];
        body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let mut request = post(provider, "/audio/speech", "audio/*", &Value::Object(body), ask.call_id)?;
        bearer(&mut request, provider);
        Some(request)
    }

    fn fault(&self, reply: &WholeReply) -> Fault {
        making::openai(reply)
    }

    fn reader(&self, _: &SpeechAsk<'_>, headers: &HeaderMap) -> Box<dyn AudioReader> {
        Box::new(PassedOn::of(headers))
    }
}
