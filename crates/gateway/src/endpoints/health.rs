//! For the machines around us: alive, ready, metrics.

use super::row::{Access, Family, Row, no_schemas};
use crate::app::App;
use crate::door::peer::Peer;
use crate::refusal::Refusal;
use crate::who::caller;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;
use std::sync::Arc;
use tollgate_store::{ClockStanding, ClockState};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "health", rows, schemas: no_schemas };

/// On the main port and on the operator's own.
pub const METRICS: &str = "/metrics";

fn rows() -> Vec<Row> {
    let busy = json!({ "type": "string", "description": "What stands in the way" });
    vec![
        Row::get("/healthz", Access::Public, alive, "The process runs").gives_text(),
        Row::get("/readyz", Access::Public, ready, "Paid calls can be taken").gives_text().replies_with(
            503,
            "text/plain",
            busy,
        ),
        Row::get(METRICS, Access::Local, metrics, "Prometheus text, for the operator").replies_with(
            200,
            "application/openmetrics-text",
            json!({ "type": "string" }),
        ),
    ]
}

/// The process runs.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// Paid calls can be taken now.
pub async fn ready(State(app): State<Arc<App>>) -> Response {
    if app.shutdown.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    if !app.store.ready() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the ledger takes no holds\n").into_response();
    }
    clock(&app.store.clock_state()).into_response()
}

/// Calls are taken whatever the clock says; that it is not believed is for people to know.
fn clock(clock: &ClockState) -> String {
    let ahead = clock.wall_ms.saturating_sub(clock.now_ms) / 1_000;
    match clock.state {
        ClockStanding::Right => "ready\n".to_owned(),
        ClockStanding::Unconfirmed => {
            "ready\nclock: far ahead of the last known time; nothing expires until it is confirmed\n".to_owned()
        }
        ClockStanding::Refused => format!("ready\nclock: refused, {ahead} s ahead of the time that is used\n"),
    }
}

/// On the main port the page is for this machine, and only while it has no port of its own.
pub async fn metrics(State(app): State<Arc<App>>, Extension(peer): Extension<Peer>, headers: HeaderMap) -> Response {
    if app.settings.metrics_listen.is_some() || !caller::is_local(&app.settings.trusted_proxies, &peer, &headers) {
        return Refusal::new(Code::NotFound, "There is no such path.").into_reply(ErrorFormat::OpenAi, "");
    }
    page(&app)
}

pub async fn metrics_for_all(State(app): State<Arc<App>>) -> Response {
    page(&app)
}

fn page(app: &App) -> Response {
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], super::metrics::page(app))
        .into_response()
}
