//! `GET /api/admin/route-health`: how every model and every route did within the window, over all
//! replicas. Operators see small figures too.

use super::schemas::record;
use super::{OPERATOR, look};
use crate::app::App;
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Family, Row};
use crate::routes::figures::shown;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::Money;
use tollgate_store::{CountedRoute, RouteCounts};

pub const FAMILY: Family = Family { tag: "operators: routes", rows, schemas };

fn rows() -> Vec<Row> {
    let about = "How models and their routes did lately, over all replicas";
    vec![Row::get("/api/admin/route-health", OPERATOR, health, about).gives(named("List"))]
}

fn schemas() -> Value {
    json!({ "RouteHealth": record("How a model or one of its routes did", &["model", "provider", "upstream_model", "health"]) })
}

async fn health(State(app): State<Arc<App>>, request: Request) -> Response {
    let work = async |mut query: super::Query| {
        let (model, provider) = (query.take("model"), query.take("provider"));
        query.finish()?;
        let figures = app.routes.figures.now();
        let wanted = |(route, _): &&(CountedRoute, RouteCounts)| {
            model.as_ref().is_none_or(|name| route.model == *name)
                && provider.as_ref().is_none_or(|name| route.provider == *name)
        };
        let hours = app.settings.price_list.health_hours;
        let rows = figures.counted.iter().filter(wanted).map(|(route, counts)| row(route, counts, hours));
        let mut list = super::list(rows.collect());
        let day = app.store.probe_day(app.world.now_ms()).await?;
        let most_usd = Money::from_nano(day.nano_usd).to_string();
        list["probes_today"] = json!({ "calls": day.calls, "most_nano_usd": day.nano_usd, "most_usd": most_usd });
        Ok(list)
    };
    look(&app, request, work).await
}

/// Without a provider: the calls of the model as its customers saw them.
fn row(route: &CountedRoute, counts: &RouteCounts, hours: u32) -> Value {
    let named = |name: &String| (!name.is_empty()).then(|| name.clone());
    let first_byte = (counts.good > 0).then(|| counts.first_byte_ms / counts.good.max(1));
    json!({
        "model": route.model,
        "provider": named(&route.provider),
        "upstream_model": named(&route.upstream_model),
        "health": shown(counts, hours),
        "mean_first_byte_ms": first_byte,
        "probes": { "calls": counts.probes, "good": counts.good_probes },
    })
}
