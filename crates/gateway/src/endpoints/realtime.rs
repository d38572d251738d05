//! `GET /v1/realtime`: a WebSocket on which a client talks with a model, in OpenAI's events. What
//! cannot be had is refused before the connection is changed, by an ordinary HTTP error.

use super::row::{Access, Errors, Family, Row, no_schemas};
use super::upgrade::SocketRequest;
use super::{auth_tokens, chat, gemini_live};
use crate::app::App;
use crate::refusal::Refusal;
use crate::who::caller;
use crate::who::client_secret::{BoundSession, RealtimeCaller, open_realtime};
use crate::work::realtime::{ENDPOINT, ENDPOINT_TYPE, Opening, first_response};
use axum::extract::{Request, State};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_media::realtime::{BetaClient, LiveForm};
use tollgate_store::CallId;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const BETA: HeaderName = HeaderName::from_static("openai-beta");

pub const FAMILY: Family = Family { tag: "realtime", rows, schemas: no_schemas };

fn rows() -> Vec<Row> {
    let summary = "A realtime session over a WebSocket; each of its responses is a call of its own";
    let mut rows = vec![
        Row::get(ENDPOINT, Access::Paid, open, summary)
            .with(|| {
                let parameter = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
                let intent = json!({ "enum": ["transcription"] });
                vec![parameter("model", json!({ "type": "string" })), parameter("intent", intent)]
            })
            .replies_bare(101)
            .refused_with(&[405, 426, 502, 503, 504])
            .quoted(|shop, _, body| {
                let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
                let model = asked["model"].as_str().ok_or_else(no_model)?;
                Ok(Box::new(first_response(shop.serving, shop.realtime, model)))
            })
            .serves(ENDPOINT_TYPE)
            .names_itself(),
    ];
    let summary = "The same for clients of Gemini Live";
    rows.extend(gemini_live::ENDPOINTS.iter().map(|path| {
        Row::get(path, Access::Paid, gemini_live::open, summary)
            .replies_bare(101)
            .refused_with(&[405, 426, 503])
            .errors(Errors::In(Dialect::Gemini.errors()))
            .quoted_as(ENDPOINT)
    }));
    rows
}

pub async fn open(State(app): State<Arc<App>>, request: Request) -> Response {
    let id = app.new_call_id();
    let mut reply = chat::answered(&app, Dialect::Chat, id, || upgrade(&app, id, request)).await;
    if let Ok(value) = HeaderValue::try_from(id.to_string()) {
        reply.headers_mut().entry(REQUEST_ID).or_insert(value);
    }
    reply
}

/// Who opens a session, with which model, and how it is to begin. What a client secret says holds:
/// no other session is opened with it.
async fn opening(app: &App, parts: &Parts) -> Result<Opening, Refusal> {
    let RealtimeCaller { caller, bound } = open_realtime(&app.register(), parts).await?;
    let (named, listens) = (model_of(parts), only_listens(parts));
    let form = is_beta(parts).then(|| Box::new(BetaClient::new()) as Box<dyn LiveForm>);
    let Some(BoundSession { model, session, .. }) = bound else {
        let model = named.ok_or_else(no_model)?;
        return Ok(Opening { caller, model, transcription: listens, configured: None, longest: None, form });
    };
    let configured: Option<Value> = serde_json::from_str(&session).ok();
    let transcription = configured.as_ref().is_some_and(|session| session["type"] == "transcription");
    if configured.as_ref().is_some_and(|session| session["type"] == auth_tokens::KIND) {
        let text = "This client secret is an ephemeral token: it opens sessions of Gemini Live.";
        return Err(Refusal::new(Code::InvalidApiKey, text).because("client_secret"));
    }
    let other = |param: &str, text: String| Err(Refusal::about(Code::UnsupportedValue, param, text));
    if named.is_some_and(|named| named != model) {
        return other("model", format!("This client secret was made for the model `{model}`."));
    }
    if listens && !transcription {
        return other("intent", "This client secret was made for a session with responses.".to_owned());
    }
    Ok(Opening { caller, model, transcription, configured, longest: None, form })
}

async fn upgrade(app: &Arc<App>, id: CallId, request: Request) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    let opening = opening(app, &parts).await?;
    let socket = SocketRequest::read(app, &mut parts, "`GET` opens a WebSocket here.")?;
    let session = app.realtime.open(id, opening).await?;
    let reply = socket.reply();
    let SocketRequest { connection, place, .. } = socket;
    app.tracker.spawn(async move {
        let _place = place;
        if let Some(io) = connection.stream().await {
            session.run(io).await;
        }
    });
    Ok(reply)
}

fn no_model() -> Refusal {
    Refusal::about(Code::MissingParameter, "model", "`?model=` names the model that the session is with.")
}

/// `?intent=transcription`: the session has no responses.
fn only_listens(parts: &Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "intent=transcription"))
}

/// `?model=`, decoded.
fn model_of(parts: &Parts) -> Option<String> {
    let query = parts.uri.query()?;
    let raw = query.split('&').find_map(|pair| pair.strip_prefix("model="))?;
    let name = decoded(raw)?;
    Some(name).filter(|name| !name.is_empty() && name.len() <= 256)
}

fn decoded(raw: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Whether the client speaks the interface of before.
fn is_beta(parts: &Parts) -> bool {
    let header = parts.headers.get(BETA).and_then(|value| value.to_str().ok());
    header.is_some_and(|value| value.contains("realtime=v1"))
        || caller::protocols(&parts.headers).any(|offered| offered == "openai-beta.realtime-v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_the_query() {
        let of = |uri: &str| {
            let (parts, _) = http::Request::get(uri).body(()).expect("a request").into_parts();
            model_of(&parts)
        };
        assert_eq!(of("/v1/realtime?model=voice").as_deref(), Some("voice"));
        assert_eq!(of("/v1/realtime?x=1&model=a%20b%2Fc").as_deref(), Some("a b/c"));
        for uri in ["/v1/realtime", "/v1/realtime?model=", "/v1/realtime?model=%zz", "/v1/realtime?model=%ff"] {
            assert_eq!(of(uri), None, "{uri}");
        }
    }
}
