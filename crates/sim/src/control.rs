//! The simulator's own endpoints, for tests that run in another process:
//! `GET /_sim/received[?since=ID]`, `DELETE /_sim/received`, `GET /_sim/count`,
//! `GET /_sim/scenarios`, `GET /_sim/videos` (scenarios of video tasks, how many tasks there are,
//! how often each maker was asked about them), `PUT /_sim/videos?hold=true` (all tasks run until
//! `hold=false`), `GET /_sim/sessions` (sockets), `PUT /_sim/social?path=PART&scenario=NAME`.

use bytes::Bytes;
use http::{Method, Response};
use serde_json::{Value, json};

use crate::fault;
use crate::record::Received;
use crate::refusal::Refusal;
use crate::scenario::scenarios;
use crate::server::World;

pub(crate) fn answer(world: &World, method: &Method, path: &str, query: &str) -> Response<Bytes> {
    let records = &world.records;
    let body = match (method.as_str(), path) {
        ("GET", "/_sim/received") => {
            let since = query.split('&').find_map(|pair| pair.strip_prefix("since="));
            let since = since.and_then(|text| text.parse().ok()).unwrap_or(0);
            let list: Vec<_> = records.after(since).iter().map(show).collect();
            json!({"received": list})
        }
        ("DELETE", "/_sim/received") => {
            records.clear();
            world.sessions.clear();
            world.asked.clear();
            json!({"cleared": true})
        }
        ("GET", "/_sim/sessions") => {
            let named: serde_json::Map<_, _> =
                crate::realtime::scenarios().map(|(name, meaning)| (name.to_string(), Value::from(meaning))).collect();
            let list: Vec<_> = world.sessions.all().iter().map(crate::SeenSession::show).collect();
            json!({"scenarios": named, "open": world.sessions.open(), "sessions": list})
        }
        ("GET", "/_sim/count") => {
            let counts = records.counts();
            json!({
                "received": counts.received, "accepted": counts.accepted, "finished": counts.finished,
                "client_closed": counts.client_closed, "dropped": counts.dropped,
            })
        }
        ("PUT", "/_sim/social") => {
            let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap_or_default();
            world.social.give(value("path="), value("scenario="));
            json!({"ordered": true})
        }
        ("PUT", "/_sim/videos") => {
            let hold = query.split('&').any(|pair| pair == "hold=true");
            world.videos.hold(hold);
            json!({"hold": hold})
        }
        ("GET", "/_sim/videos") => {
            let named: serde_json::Map<_, _> =
                crate::video::scenarios().map(|(name, meaning)| (name.to_string(), Value::from(meaning))).collect();
            let asked: serde_json::Map<_, _> = world
                .asked
                .all()
                .into_iter()
                .map(|(maker, asked)| (maker.to_string(), json!({"all": asked.all, "most_in_a_second": asked.most})))
                .collect();
            json!({"scenarios": named, "tasks": world.videos.len(), "asked": asked})
        }
        ("GET", "/_sim/scenarios") => {
            scenarios().map(|(name, meaning)| (name.to_string(), Value::from(meaning))).collect()
        }
        _ => return fault::refuse(&Refusal::new(404, "no such control endpoint")),
    };
    fault::response(200, "application/json", body.to_string().into())
}

/// `GET /v1/models`: every scenario is a model.
pub(crate) fn models() -> Response<Bytes> {
    let model = |name: &str| {
        let id = format!("sim-{name}");
        json!({"id": id, "object": "model", "created": 1_767_225_600, "owned_by": "sim"})
    };
    let list: Vec<_> = scenarios().map(|(name, _)| model(name)).collect();
    let body = json!({"object": "list", "data": list});
    fault::response(200, "application/json", body.to_string().into())
}

fn show(received: &Received) -> Value {
    let headers: serde_json::Map<_, _> =
        received.headers.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let body = match received.json() {
        Value::Null => Value::from(String::from_utf8_lossy(&received.body)),
        json => json,
    };
    json!({
        "id": received.id,
        "at_ms": received.at_ms,
        "method": received.method,
        "path": received.path,
        "query": received.query,
        "headers": headers,
        "has_authorization": received.has_authorization(),
        "body": body,
        "body_bytes": received.body.len(),
        "model": received.model,
        "scenario": received.scenario,
        "stream": received.stream,
        "accepted": received.accepted,
        "status": received.status,
        "finished": received.finished,
        "sent": received.sent,
        "prompt_tokens": received.prompt_tokens,
        "completion_tokens": received.completion_tokens,
        "client_closed_at_ms": received.client_closed_at_ms,
    })
}
