//! A supplier of social data, played from the published table of cells (`catalog/social`) and from
//! what is known of its envelope, errors and habits. It shares the table with the product, and none
//! of its code.
//!
//! A call picks a scenario by a marker in any of its parameters, `[[sim:empty]]` or
//! `[[sim:huge mib=5]]`, or by an order for its path ([`crate::Sim::social_order`]). [`scenarios`]
//! lists what there is. Lists have three pages unless the marker says `pages=N`; `mib=N` makes any
//! answer so large. Only status 200 is billed (`accepted` in the records).
//!
//! Under `/api` without `/v1` it plays a source that somebody runs himself: the same routes, no
//! key, a smaller envelope, errors without `detail`.

mod ask;
mod page;
mod scenario;
mod table;

use bytes::Bytes;
use http::Response;
use http_body_util::{Either, Full};
use serde_json::{Value, json};
use std::time::Duration;

use crate::fault::response;
use crate::record::{Received, Watch};
use crate::reply::Outgoing;
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};
use ask::Ask;
pub(crate) use scenario::Orders;
pub use scenario::scenarios;
use scenario::{Choice, Play};

pub(crate) async fn answer(
    world: &World,
    reset: Reset,
    parts: &http::request::Parts,
    body: Bytes,
) -> Response<Outgoing> {
    let mut received = Received::new(parts, body);
    let path = received.path.trim_start_matches("/api").trim_start_matches("/v1").to_owned();
    received.model.clone_from(&path);
    let house = if received.path.starts_with("/api/v1/") { House::Supplier } else { House::Own };
    let read = check(world, &received, &path, house);
    let choice = match &read {
        Ok(ask) => scenario::choose(&world.social, &received.path, ask),
        Err(_) => Choice::plain(),
    };
    received.scenario = choice.name().to_owned();
    let whole = match &read {
        Err((status, body)) => refusal(*status, body, house),
        Ok(ask) => play(ask, &choice, world, house),
    };
    received.accepted = whole.status() == 200;
    received.status = whole.status().as_u16();
    let mut watch = world.records.add(received);
    world.gate.pass(parts.uri.path()).await;
    let think = choice.millis("think_ms").unwrap_or(match choice.play {
        Play::Slow => Duration::from_secs(1),
        _ => world.think,
    });
    if !think.is_zero() {
        tokio::time::sleep(think).await;
    }
    if choice.play == Play::Hang {
        std::future::pending::<()>().await;
    }
    if choice.play == Play::Cut {
        return cut(whole, choice.text("cut") != Some("eof"), watch, reset);
    }
    watch.over(true);
    whole.map(|body| Either::Left(Full::new(body)))
}

/// Half of the answer, then nothing more. A reset takes with it what is still on its way.
fn cut(whole: Response<Bytes>, hard: bool, watch: Watch, reset: Reset) -> Response<Outgoing> {
    let half = whole.body().slice(..whole.body().len() / 2);
    let script = Script::new(vec![Step::Send(half), Step::Cut { reset: hard }], Ending::Broken, Some(watch), reset);
    whole.map(|_| Either::Right(script))
}

type Refused = (u16, Value);

/// Who is played.
#[derive(Clone, Copy, PartialEq, Eq)]
enum House {
    Supplier,
    /// A source that somebody runs himself.
    Own,
}

fn check(world: &World, received: &Received, path: &str, house: House) -> Result<Ask, Refused> {
    if let Some(key) = world.require_key.as_ref().filter(|_| house == House::Supplier)
        && !received.authorization_is(&format!("Bearer {key}"))
    {
        return Err(failed(401, "Invalid API token."));
    }
    // The edge in front of the supplier turns bare libraries away.
    let agent = received.header("user-agent").unwrap_or_default();
    if agent.is_empty() || ["python", "hyper", "reqwest"].iter().any(|library| agent.starts_with(library)) {
        return Err((403, Value::from("<html>403 Forbidden</html>")));
    }
    let route = table::route(path).ok_or((404, json!({"detail": "Not Found"})))?;
    Ask::read(route, received)
}

/// An error of the supplier, as it was seen.
fn failed(status: u16, message: &str) -> Refused {
    let detail = json!({
        "code": status, "message": message, "message_zh": "请求失败", "request_id": "sim-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
        "support": "https://discord.sim.internal/x", "docs": "https://api.sim.internal/docs", "cache_url": null,
    });
    (status, json!({"detail": detail}))
}

fn refusal(status: u16, body: &Value, house: House) -> Response<Bytes> {
    let body = match body.get("detail").filter(|detail| detail.is_object() && house == House::Own) {
        Some(detail) => &json!({
            "code": status, "message": detail["message"], "support": detail["support"], "time": "2026-01-01 00:00:00",
            "router": "/api", "params": {},
        }),
        None => body,
    };
    match body.as_str() {
        Some(html) => response(status, "text/html", html.to_owned().into()),
        None => response(status, "application/json", body.to_string().into()),
    }
}

fn play(ask: &Ask, choice: &Choice, world: &World, house: House) -> Response<Bytes> {
    let (status, body) = match choice.play {
        Play::Error(404) => failed(404, "The requested resource was not found."),
        Play::Error(status) => {
            failed(status, "Request failed. Please retry. Host api-7.sim.internal, key sk-sim-secret-1234.")
        }
        Play::Once400 if world.social.first(&ask.fingerprint()) => failed(400, "Request failed. Please retry."),
        Play::Gone => failed(404, "Database did not find endpoint data."),
        Play::Shape => (
            422,
            json!({"detail": [{"loc": ["query", choice.text("param").unwrap_or("cursor")], "msg": "value is not valid", "type": "value_error"}]}),
        ),
        Play::Html => (502, Value::from("<html>502 Bad Gateway edge-3.sim.internal</html>")),
        Play::Packed => return crate::fault::packed(200),
        Play::Garbage => return response(200, "application/json", "{\"code\":200,\"data\":{\"a\":".into()),
        Play::Busy => {
            let mut busy = refusal(429, &failed(429, "Too many requests.").1, house);
            busy.headers_mut().insert("retry-after", choice.number("retry_after").unwrap_or(7).into());
            return busy;
        }
        _ => return response(200, "application/json", page::envelope(ask, choice, house == House::Own)),
    };
    refusal(status, &body, house)
}
