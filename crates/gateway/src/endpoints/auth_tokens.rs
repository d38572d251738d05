//! Ephemeral tokens of Gemini Live: `POST /v1alpha/auth_tokens`, as google-genai's
//! `auth_tokens.create` asks for them. They are client secrets: bound to the account, its key, a
//! model if one is named, a number of sessions and their ends; stored beside the others.

use super::client_secrets::{SecretTerms, made, with_body, wrong};
use super::openapi::shapes::{named, text};
use super::reading;
use super::row::{Access, Errors, Row};
use crate::app::App;
use crate::call;
use crate::refusal::Refusal;
use crate::who::client_secret::{BoundSession, TOKENS};
use crate::work::realtime::ENDPOINT_TYPE;
use crate::world::Millis;
use axum::extract::{Request, State};
use axum::response::Response;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate_media::realtime::LockedSetup;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// The type of a stored session that is one of Gemini Live.
pub const KIND: &str = "gemini_live";
const SECOND: Millis = 1_000;
/// Sessions begin within a minute and last half an hour, unless something else is said; no token is
/// good for longer than this.
const BEGINS: Millis = 60 * SECOND;
const ENDS: Millis = 30 * 60 * SECOND;
const LONGEST: Millis = 20 * 3_600 * SECOND;
/// The most sessions that are counted.
const USES: i64 = 1_000_000;

const SETUP: &str = "bidiGenerateContentSetup";
const MASK: &str = "fieldMask";

pub fn rows() -> Vec<Row> {
    let summary = "An ephemeral token that opens sessions of Gemini Live for a while";
    let paths = ["/v1alpha/auth_tokens", "/v1beta/auth_tokens", "/v1/auth_tokens"];
    let row = |path| {
        Row::post(path, Access::Key, create, summary)
            .takes(json!({ "type": "object", "properties": {
                "uses": { "type": "integer", "minimum": 0 }, "expireTime": text(), "newSessionExpireTime": text(),
                SETUP: { "type": "object" }, MASK: text(),
            } }))
            .gives(named("AuthToken"))
            .refused_with(&[402])
            .errors(Errors::In(Dialect::Gemini.errors()))
    };
    paths.map(row).into()
}

pub fn schema() -> Value {
    let time = json!({ "type": "string", "format": "date-time" });
    json!({ "type": "object", "required": ["name", "expireTime", "newSessionExpireTime", "uses"], "properties": {
        "name": text(), "expireTime": time, "newSessionExpireTime": time, "uses": { "type": "integer" },
    } })
}

pub async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    with_body(&app, request, Dialect::Gemini, async |caller, _, body| {
        let asked = TokenAsk::read(body, app.world.now_ms())?;
        if let Some(model) = asked.locked.model() {
            call::may_begin(&app.till, caller, model, ENDPOINT_TYPE)?;
        }
        let session = json!({ "type": KIND, "locked": asked.locked.to_json(), "ends_at": asked.ends_at });
        let terms = SecretTerms {
            model: asked.locked.model().unwrap_or_default(),
            session,
            expires_at: asked.begins_until,
            uses: asked.uses,
        };
        let secret = made(&app, caller, terms, (SETUP, "newSessionExpireTime")).await?;
        Ok(reading::json(&json!({
            "name": format!("{TOKENS}{secret}"),
            "expireTime": written(asked.ends_at),
            "newSessionExpireTime": written(asked.begins_until),
            "uses": asked.uses.unwrap_or(0),
        })))
    })
    .await
}

/// What a token is asked for.
#[derive(Debug, PartialEq)]
struct TokenAsk {
    /// `None`: as many as there are.
    uses: Option<u32>,
    begins_until: Millis,
    ends_at: Millis,
    locked: LockedSetup,
}

impl TokenAsk {
    fn read(mut body: Map<String, Value>, now: Millis) -> Result<TokenAsk, Refusal> {
        body.retain(|_, value| !value.is_null());
        let uses = match body.remove("uses") {
            None => Some(1),
            Some(uses) => {
                let uses = uses.as_i64().filter(|uses| (0..=USES).contains(uses));
                let uses = uses.ok_or_else(|| wrong("uses", &format!("a whole number from 0 to {USES}")))?;
                u32::try_from(uses).ok().filter(|uses| *uses > 0)
            }
        };
        let ends_at = time(body.remove("expireTime"), "expireTime", now, ENDS)?;
        let begins_until = time(body.remove("newSessionExpireTime"), "newSessionExpireTime", now, BEGINS)?;
        let setup = body.remove(SETUP).unwrap_or_default();
        let mask = match body.remove(MASK) {
            None => None,
            Some(Value::String(mask)) => Some(mask),
            Some(_) => return Err(wrong(MASK, "names of fields between commas")),
        };
        if let Some(name) = body.keys().next() {
            let text = format!("`{name}` does not exist here.");
            return Err(Refusal::about(Code::UnknownParameter, name, text));
        }
        let locked = LockedSetup::new(setup, mask.as_deref())
            .map_err(|fault| Refusal::about(Code::InvalidParameter, SETUP, fault.0))?;
        Ok(TokenAsk { uses, begins_until: begins_until.min(ends_at), ends_at, locked })
    }
}

/// A time to come, as RFC 3339 writes it. Without a zone it is UTC.
fn time(asked: Option<Value>, place: &str, now: Millis, default: Millis) -> Result<Millis, Refusal> {
    let Some(asked) = asked else { return Ok(now + default) };
    let text = asked.as_str().unwrap_or_default();
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.parse().ok()?;
        local.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    });
    let at = at.ok_or_else(|| wrong(place, "a time, such as `2026-01-31T12:00:00Z`"))?.as_millisecond();
    if at <= now || at > now + LONGEST {
        return Err(wrong(place, "a time within the next 20 hours"));
    }
    Ok(at)
}

fn written(at: Millis) -> String {
    Timestamp::from_millisecond(at).map(|time| time.to_string()).unwrap_or_default()
}

/// A token that somebody opens a session with.
pub struct LiveToken {
    bound: BoundSession,
    pub locked: LockedSetup,
    ends_at: Millis,
}

impl LiveToken {
    /// Secrets of the other interface say how a session begins in its words.
    pub fn read(bound: BoundSession) -> Result<LiveToken, Refusal> {
        let stored: Value = serde_json::from_str(&bound.session).unwrap_or_default();
        let Some(ends_at) = stored["ends_at"].as_i64().filter(|_| stored["type"] == KIND) else {
            let text =
                "This client secret opens sessions of `/v1/realtime`: ask for a token at `/v1alpha/auth_tokens`.";
            return Err(Refusal::new(Code::InvalidApiKey, text).because("client_secret"));
        };
        Ok(LiveToken { locked: LockedSetup::from_json(&stored["locked"]), ends_at, bound })
    }

    /// Takes one of its uses for a session with this model. Says how long that may be.
    pub async fn admits(&self, app: &App, model: &str) -> Result<Duration, Refusal> {
        let bound = &self.bound.model;
        if !bound.is_empty() && bound != model {
            let text = format!("This token was made for the model `{bound}`.");
            return Err(Refusal::about(Code::UnsupportedValue, "model", text));
        }
        self.bound.take_use(&app.register()).await?;
        let left = (self.ends_at - app.world.now_ms()).max(SECOND);
        Ok(Duration::from_millis(left.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 1_800_000_000_000;

    fn read(body: &Value) -> Result<TokenAsk, (Code, Option<String>)> {
        let body = body.as_object().expect("an object").clone();
        TokenAsk::read(body, NOW).map_err(|refusal| (refusal.code, refusal.param))
    }

    #[test]
    fn what_is_not_said_is_as_at_google() {
        let asked = read(&json!({})).expect("read");
        assert_eq!((asked.uses, asked.begins_until, asked.ends_at), (Some(1), NOW + 60_000, NOW + 1_800_000));
        assert_eq!(asked.locked, LockedSetup::default());
        let asked = json!({ "uses": 0, "expireTime": "2027-01-15T10:01:00+02:00", "newSessionExpireTime": null,
            SETUP: { "model": "models/m" } });
        let asked = read(&asked).expect("read");
        assert_eq!((asked.uses, asked.ends_at, asked.locked.model()), (None, NOW + 60_000, Some("m")));
        for (time, written) in
            [("2027-01-15T08:20:00", "2027-01-15T08:20:00Z"), ("2027-01-15T09:20:00+01:00", "2027-01-15T08:20:00Z")]
        {
            let asked = read(&json!({ "newSessionExpireTime": time })).expect("read");
            assert_eq!(super::written(asked.begins_until), written);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, code, param) in [
            (json!({ "uses": -1 }), Code::InvalidParameter, "uses"),
            (json!({ "uses": 1.5 }), Code::InvalidParameter, "uses"),
            (json!({ "uses": 2_000_000 }), Code::InvalidParameter, "uses"),
            (json!({ "expireTime": 5 }), Code::InvalidParameter, "expireTime"),
            (json!({ "expireTime": "soon" }), Code::InvalidParameter, "expireTime"),
            (json!({ "expireTime": "2027-01-15T07:59:00Z" }), Code::InvalidParameter, "expireTime"),
            (json!({ "newSessionExpireTime": "2027-01-17T08:00:00Z" }), Code::InvalidParameter, "newSessionExpireTime"),
            (json!({ SETUP: 1 }), Code::InvalidParameter, SETUP),
            (json!({ SETUP: { "tools": [{ "googleSearch": {} }] } }), Code::InvalidParameter, SETUP),
            (json!({ MASK: ["a"] }), Code::InvalidParameter, MASK),
            (json!({ "name": "auth_tokens/mine" }), Code::UnknownParameter, "name"),
        ] {
            assert_eq!(read(&body), Err((code, Some(param.to_owned()))), "{body}");
        }
    }
}
