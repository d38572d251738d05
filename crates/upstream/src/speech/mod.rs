//! Speech at a provider: what is asked, how one maker's request is written, and how audio is taken
//! out of its answer while it comes.

mod pieces;

pub(crate) use pieces::{AudioInJson, AudioText, Documents, PassedOn, Repeats};

use crate::outgoing::outgoing;
use crate::{Fault, Outgoing, Provider, WholeReply};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};
use tollgate_media::speech::{SettledSpeech, SpeechFormat};

/// How one kind of provider makes speech.
pub trait SpeechMaker: Sync + std::fmt::Debug {
    /// Who is asked instead for this model, where a kind of provider has another way for some of
    /// its models.
    fn of_model(&self, _upstream_model: &str) -> Option<&'static dyn SpeechMaker> {
        None
    }

    /// Whether it can be asked for this format; what a model of it has, its catalog says.
    fn makes(&self, format: SpeechFormat) -> bool;

    /// Whether this field of a request can be passed on to it: `speed`, `instructions`, or `extra`
    /// for fields of its own.
    fn takes(&self, field: &str) -> bool;

    /// Names that no field of a caller's own can have here: what the gateway writes itself, and
    /// what would say another voice, format or rate than is sold and measured.
    fn own(&self) -> &'static [&'static str];

    /// `None` when what is asked for does not fit into an address.
    fn request(&self, provider: &Provider, ask: &SpeechAsk<'_>) -> Option<Outgoing>;

    /// What an answer with an error status means.
    fn fault(&self, reply: &WholeReply) -> Fault;

    /// Reads an answer of status 200.
    fn reader(&self, ask: &SpeechAsk<'_>, headers: &HeaderMap) -> Box<dyn AudioReader>;
}

/// What is asked of a provider.
#[derive(Clone, Copy, Debug)]
pub struct SpeechAsk<'a> {
    pub speech: &'a SettledSpeech,
    /// The format that it makes; the client's may be another wrapping of it.
    pub made: SpeechFormat,
    /// Samples in a second where they are bare.
    pub rate: u32,
    /// The provider's name for the model.
    pub model: &'a str,
    pub call_id: &'a str,
}

/// Audio out of an answer, in whatever pieces it comes.
pub trait AudioReader: Send {
    /// The next piece of the answer; the audio in it.
    fn feed(&mut self, piece: Bytes) -> Result<Bytes, Fault>;

    /// The answer is over: was it all? Gives what audio is left, and what the provider reports.
    fn end(&mut self) -> Result<(Bytes, Option<String>), Fault>;
}

const CALL_ID: HeaderName = HeaderName::from_static("x-client-request-id");

/// Adds the fields of the caller's own. What is said already stays as it is: it is what is priced.
pub(crate) fn add_extra(object: &mut Value, extra: &Map<String, Value>) {
    let Value::Object(object) = object else { return };
    for (name, value) in extra {
        object.entry(name).or_insert_with(|| value.clone());
    }
}

/// A request with everything but the key.
pub(crate) fn post(
    provider: &Provider,
    path: &str,
    accept: &'static str,
    body: &Value,
    call_id: &str,
) -> Option<Outgoing> {
    let uri = provider.base_url.join(path).ok()?;
    let mut request = outgoing(Method::POST, uri, accept, Bytes::from(body.to_string()));
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(value) = HeaderValue::try_from(call_id) {
        headers.insert(CALL_ID, value);
    }
    Some(request)
}

/// An answer of status 200 without any audio: nothing was made, as far as anybody can tell.
pub(crate) fn no_audio() -> Fault {
    let message = "The provider's answer has no audio.".to_owned();
    Fault { message, ..Fault::garbage() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_said_already_stays_as_it_is() {
        let mut body = json!({ "text": "sold", "voice": { "id": "a" } });
        let extra = json!({ "text": "other", "voice": { "id": "dear" }, "volume": 2 });
        add_extra(&mut body, extra.as_object().expect("an object"));
        assert_eq!(body, json!({ "text": "sold", "voice": { "id": "a" }, "volume": 2 }));
    }
}
