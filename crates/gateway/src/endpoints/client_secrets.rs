//! Client secrets: `POST /v1/realtime/client_secrets`, and the older `/v1/realtime/sessions`. An
//! application asks for one with its key and hands it to a browser, which opens realtime sessions
//! with it. Free of charge; made for accounts that could begin a call of that model.

use super::openapi::shapes::{named, text};
use super::row::{Access, Family, Row};
use super::{auth_tokens, chat, reading};
use crate::app::App;
use crate::call;
use crate::refusal::Refusal;
use crate::sale::recordings;
use crate::who::caller::Caller;
use crate::who::client_secret::PREFIX;
use crate::who::operator::new_secret;
use crate::work::realtime::{ENDPOINT_TYPE, check_fixed};
use crate::world::Millis;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tollgate_media::realtime::{BetaClient, LiveForm as _, LiveFrame};
use tollgate_store::{ClientSecretLimits, ClientSecretsFull, NewClientSecret, hash_secret};
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// A session without responses.
const LISTENS: &str = "transcription";
/// The most that have not expired.
const LIMITS: ClientSecretLimits = ClientSecretLimits { account: 1_000, key: 500 };
/// Bytes of a session as it is stored.
const SESSION_BYTES: usize = 32 << 10;
/// How long a secret may open sessions, in seconds.
const SECONDS: RangeInclusive<i64> = 10..=7_200;
const DEFAULT_SECONDS: i64 = 600;
/// The same for the older endpoint.
const OLDER_SECONDS: i64 = 60;

pub const FAMILY: Family = Family { tag: "client secrets", rows, schemas };

fn rows() -> Vec<Row> {
    let seconds = json!({ "type": "integer", "minimum": 10, "maximum": 7200 });
    let expires = json!({ "type": ["object", "null"], "properties": {
        "anchor": { "const": "created_at" }, "seconds": seconds,
    } });
    let session = json!({ "type": "object", "properties": {
        "type": { "enum": ["realtime", "transcription"] }, "model": text(),
    } });
    let mut rows = vec![
        Row::post(
            "/v1/realtime/client_secrets",
            Access::Key,
            create,
            "A secret that opens realtime sessions for a while",
        )
        .takes(json!({ "type": "object", "required": ["session"], "properties": {
                "expires_after": expires, "session": session,
            } }))
        .gives(named("ClientSecret"))
        .refused_with(&[402]),
        Row::post("/v1/realtime/sessions", Access::Key, create_older, "The same in the older form")
            .takes(json!({ "type": "object", "required": ["model"], "properties": {
                "model": text(), "client_secret": { "type": "object", "properties": { "expires_after": expires } },
            } }))
            .gives(named("RealtimeSessionWithSecret"))
            .refused_with(&[402]),
    ];
    rows.extend(auth_tokens::rows());
    rows
}

fn schemas() -> Value {
    let expires_at = json!({ "type": "integer", "description": "seconds since 1970" });
    json!({
        "AuthToken": auth_tokens::schema(),
        "ClientSecret": { "type": "object", "required": ["value", "expires_at", "session"], "properties": {
            "value": text(), "expires_at": expires_at, "session": { "type": "object" },
        } },
        "RealtimeSessionWithSecret": { "type": "object", "required": ["id", "object", "model", "client_secret"], "properties": {
            "id": text(), "object": { "const": "realtime.session" }, "model": text(),
            "client_secret": { "type": "object", "required": ["value", "expires_at"], "properties": {
                "value": text(), "expires_at": expires_at,
            } },
        } },
    })
}

pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    with_body(&app, request, Dialect::Chat, async |caller, id, body| {
        let asked = Asked::read(body)?;
        let (value, expires_at) = asked.made(&app, caller).await?;
        let session = asked.shown(id);
        Ok(reading::json(&json!({ "value": value, "expires_at": expires_at, "session": session })))
    })
    .await
}

pub async fn create_older(State(app): State<Arc<App>>, request: Request) -> Response {
    with_body(&app, request, Dialect::Chat, async |caller, id, body| {
        let asked = Asked::read_older(body)?;
        let (value, expires_at) = asked.made(&app, caller).await?;
        let mut session = asked.shown(id);
        session["client_secret"] = json!({ "value": value, "expires_at": expires_at });
        Ok(reading::json(&session))
    })
    .await
}

/// What a secret is asked for.
#[derive(Debug, PartialEq)]
struct Asked {
    model: String,
    /// It has no responses: its model writes down what is said.
    listens: bool,
    /// Without its model, which is the secret's.
    session: Map<String, Value>,
    /// The same as it came.
    shown: Map<String, Value>,
    seconds: i64,
}

impl Asked {
    fn read(mut body: Map<String, Value>) -> Result<Asked, Refusal> {
        let seconds = lifetime(body.remove("expires_after"), "expires_after", DEFAULT_SECONDS)?;
        let Some(session) = body.remove("session") else {
            return Err(Refusal::about(Code::MissingParameter, "session", "`session` is missing."));
        };
        if let Some(name) = body.keys().next() {
            let text = format!("`{name}` does not exist here: a session is described in `session`.");
            return Err(Refusal::about(Code::UnknownParameter, name, text));
        }
        let Value::Object(mut session) = session else { return Err(wrong("session", "an object")) };
        let kind = session.entry("type").or_insert_with(|| json!("realtime"));
        let listens = match kind.as_str() {
            Some("realtime") => false,
            Some(LISTENS) => true,
            _ => return Err(wrong("session.type", "`realtime` or `transcription`")),
        };
        let model = match listens {
            true => {
                let input = session.get("audio").and_then(|audio| audio.pointer("/input/transcription/model"));
                model(input.cloned(), "session.audio.input.transcription.model")?
            }
            false => model(session.remove("model"), "session.model")?,
        };
        check_fixed(&session, &model)?;
        Ok(Asked { model, listens, shown: session.clone(), session, seconds })
    }

    /// The session is the body itself.
    fn read_older(mut body: Map<String, Value>) -> Result<Asked, Refusal> {
        let expires = match body.remove("client_secret") {
            None | Some(Value::Null) => None,
            Some(Value::Object(mut secret)) => secret.remove("expires_after"),
            Some(_) => return Err(wrong("client_secret", "an object")),
        };
        let seconds = lifetime(expires, "client_secret.expires_after", OLDER_SECONDS)?;
        let model = model(body.remove("model"), "model")?;
        let update = json!({ "type": "session.update", "session": body });
        let renamed = BetaClient::default().read(LiveFrame::Text(update.to_string()));
        let renamed = renamed.map_err(|fault| Refusal::new(Code::InvalidParameter, fault.0))?;
        let session = renamed.iter().find_map(|event| match serde_json::from_str(event) {
            Ok(Value::Object(mut event)) => event.remove("session"),
            _ => None,
        });
        let Some(Value::Object(session)) = session else { return Err(wrong("session", "a session")) };
        check_fixed(&session, &model)?;
        Ok(Asked { model, listens: false, shown: body, session, seconds })
    }

    /// A new secret and when it expires, in seconds since 1970.
    async fn made(&self, app: &App, caller: &Caller) -> Result<(String, i64), Refusal> {
        let endpoint_type = if self.listens { recordings::ENDPOINT_TYPE } else { ENDPOINT_TYPE };
        call::may_begin(&app.till, caller, &self.model, endpoint_type)?;
        let expires_at = app.world.now_ms() / 1_000 + self.seconds;
        let session = Value::Object(self.session.clone());
        let terms = SecretTerms { model: &self.model, session, expires_at: expires_at * 1_000, uses: None };
        Ok((made(app, caller, terms, ("session", "expires_after")).await?, expires_at))
    }

    fn shown(&self, id: &str) -> Value {
        let mut session = self.shown.clone();
        session.insert("id".to_owned(), json!(id));
        session.insert("object".to_owned(), json!("realtime.session"));
        if !self.listens {
            session.insert("model".to_owned(), json!(self.model));
        }
        Value::Object(session)
    }
}

pub(super) fn wrong(param: &str, expected: &str) -> Refusal {
    Refusal::about(Code::InvalidParameter, param, format!("`{param}` must be {expected}."))
}

fn model(named: Option<Value>, place: &str) -> Result<String, Refusal> {
    match named {
        None | Some(Value::Null) => {
            Err(Refusal::about(Code::MissingParameter, place, format!("`{place}` is missing.")))
        }
        Some(Value::String(name)) if (1..=256).contains(&name.len()) => Ok(name),
        Some(_) => Err(wrong(place, "the name of a model")),
    }
}

/// `expires_after`, in seconds from now.
fn lifetime(asked: Option<Value>, place: &str, default: i64) -> Result<i64, Refusal> {
    let fields = match asked {
        None | Some(Value::Null) => return Ok(default),
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err(wrong(place, "an object")),
    };
    if fields.get("anchor").is_some_and(|anchor| anchor != "created_at") {
        return Err(wrong(&format!("{place}.anchor"), "`created_at`"));
    }
    match fields.get("seconds") {
        None | Some(Value::Null) => Ok(default),
        Some(seconds) => seconds.as_i64().filter(|seconds| SECONDS.contains(seconds)).ok_or_else(|| {
            wrong(&format!("{place}.seconds"), &format!("a whole number from {} to {}", SECONDS.start(), SECONDS.end()))
        }),
    }
}

/// What a secret is good for.
pub(super) struct SecretTerms<'a> {
    pub model: &'a str,
    pub session: Value,
    pub expires_at: Millis,
    pub uses: Option<u32>,
}

/// A new secret. `places` are the fields that say what the session is and how long it may begin.
pub(super) async fn made(
    app: &App,
    caller: &Caller,
    terms: SecretTerms<'_>,
    places: (&str, &str),
) -> Result<String, Refusal> {
    let session = terms.session.to_string();
    if session.len() > SESSION_BYTES {
        let text = format!("The session has {} bytes; at most {SESSION_BYTES} are stored.", session.len());
        return Err(Refusal::about(Code::InvalidParameter, places.0, text));
    }
    // Whoever cannot pay would be told so when the session begins, by somebody else's browser.
    reading::reads_large(app, caller).await??;
    let secret = new_secret(PREFIX, |bytes| app.world.fill(bytes));
    let new = NewClientSecret {
        hash: hash_secret(&secret),
        account: caller.account.id,
        key: caller.key.id,
        model: terms.model.to_owned(),
        session,
        expires_at: terms.expires_at,
        uses: terms.uses,
    };
    app.store.create_client_secret(new, LIMITS).await?.map_err(|full| {
        let (whose, most) = match full {
            ClientSecretsFull::Account => ("account", LIMITS.account),
            ClientSecretsFull::Key => ("key", LIMITS.key),
        };
        let text =
            format!("This {whose} has {most} client secrets that have not expired: wait, or let them expire sooner.");
        Refusal::about(Code::RateLimitExceeded, places.1, text).because("client_secrets")
    })?;
    app.metrics.client_secrets.inc();
    Ok(secret)
}

pub(super) async fn with_body(
    app: &Arc<App>,
    request: Request,
    dialect: Dialect,
    work: impl AsyncFnOnce(&Caller, &str, Map<String, Value>) -> Result<Response, Refusal>,
) -> Response {
    let id = app.new_call_id();
    let work = async {
        let (parts, body) = request.into_parts();
        let caller = reading::caller(app, &parts).await?;
        let body = reading::small_json_body(app, &parts, body).await?;
        let Ok(Value::Object(body)) = serde_json::from_slice(&body) else {
            return Err(Refusal::new(Code::InvalidJson, "The body must be a JSON object."));
        };
        let own = id.to_string();
        let session = own.rsplit_once('_').map_or_else(|| own.clone(), |(_, own)| format!("sess_{own}"));
        work(&caller, &session, body).await
    };
    chat::answered(app, dialect, id, || work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value, older: bool) -> Result<Asked, (Code, Option<String>)> {
        let body = body.as_object().expect("an object").clone();
        let asked = if older { Asked::read_older(body) } else { Asked::read(body) };
        asked.map_err(|refusal| (refusal.code, refusal.param))
    }

    #[test]
    fn the_model_and_the_time_are_read_in_both_forms() {
        let asked = read(&json!({ "session": { "model": "m", "instructions": "Be kind." } }), false).expect("read");
        assert_eq!((asked.model.as_str(), asked.seconds), ("m", 600));
        assert_eq!(Value::Object(asked.session.clone()), json!({ "type": "realtime", "instructions": "Be kind." }));
        let shown = asked.shown("sess_1");
        assert_eq!(
            (&shown["id"], &shown["model"], &shown["object"]),
            (&json!("sess_1"), &json!("m"), &json!("realtime.session"))
        );
        let heard = json!({ "session": { "type": "transcription",
            "audio": { "input": { "transcription": { "model": "w" } } } } });
        let asked = read(&heard, false).expect("read");
        assert_eq!((asked.model.as_str(), asked.listens), ("w", true));
        let soon = json!({ "expires_after": { "anchor": "created_at", "seconds": 10 }, "session": { "model": "m" } });
        assert_eq!(read(&soon, false).expect("read").seconds, 10);
        let older = json!({ "model": "m", "voice": "ash", "client_secret": { "expires_after": { "seconds": 7200 } } });
        let asked = read(&older, true).expect("read");
        assert_eq!((asked.model.as_str(), asked.seconds), ("m", 7_200));
        assert_eq!(asked.session["audio"]["output"]["voice"], "ash", "{:?}", asked.session);
        assert_eq!(asked.shown("sess_1")["voice"], "ash");
        assert_eq!(read(&json!({ "model": "m" }), true).expect("read").seconds, 60);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let session = json!({ "model": "m" });
        for (body, older, code, param) in [
            (json!({}), false, Code::MissingParameter, "session"),
            (json!({ "session": 1 }), false, Code::InvalidParameter, "session"),
            (json!({ "session": {} }), false, Code::MissingParameter, "session.model"),
            (json!({ "session": { "model": 1 } }), false, Code::InvalidParameter, "session.model"),
            (json!({ "session": { "model": "" } }), false, Code::InvalidParameter, "session.model"),
            (json!({ "session": { "type": "live", "model": "m" } }), false, Code::InvalidParameter, "session.type"),
            (
                json!({ "session": { "model": "m", "tools": [{ "type": "mcp" }] } }),
                false,
                Code::UnsupportedValue,
                "session.tools[0].type",
            ),
            (json!({ "session": { "model": "m", "prompt": {} } }), false, Code::UnsupportedValue, "session.prompt"),
            (
                json!({ "session": { "type": "transcription", "model": "m" } }),
                false,
                Code::MissingParameter,
                "session.audio.input.transcription.model",
            ),
            (json!({ "session": session, "voice": "ash" }), false, Code::UnknownParameter, "voice"),
            (json!({ "session": session, "expires_after": 5 }), false, Code::InvalidParameter, "expires_after"),
            (
                json!({ "session": session, "expires_after": { "anchor": "now" } }),
                false,
                Code::InvalidParameter,
                "expires_after.anchor",
            ),
            (
                json!({ "session": session, "expires_after": { "seconds": 9 } }),
                false,
                Code::InvalidParameter,
                "expires_after.seconds",
            ),
            (
                json!({ "session": session, "expires_after": { "seconds": 7201 } }),
                false,
                Code::InvalidParameter,
                "expires_after.seconds",
            ),
            (
                json!({ "session": session, "expires_after": { "seconds": 60.5 } }),
                false,
                Code::InvalidParameter,
                "expires_after.seconds",
            ),
            (json!({}), true, Code::MissingParameter, "model"),
            (json!({ "model": "m", "client_secret": 1 }), true, Code::InvalidParameter, "client_secret"),
            (
                json!({ "model": "m", "client_secret": { "expires_after": { "seconds": 0 } } }),
                true,
                Code::InvalidParameter,
                "client_secret.expires_after.seconds",
            ),
        ] {
            assert_eq!(read(&body, older), Err((code, Some(param.to_owned()))), "{body}");
        }
    }
}
