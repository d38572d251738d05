//! What an operator looks at: where an account is, providers, settings in force, the state of the
//! ledger. Of a secret it says whether there is one.

use super::presets;
use super::schemas::record;
use super::{OPERATOR, look};
use crate::app::App;
use crate::endpoints::changes;
use crate::endpoints::openapi::shapes::{named, number};
use crate::endpoints::row::{Family, Row};
use crate::refusal::Refusal;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate_store::AccountSearch;
use tollgate_upstream::Provider;
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "operators: overview", rows, schemas };

fn rows() -> Vec<Row> {
    let rows = vec![
        Row::get("/api/admin/search", OPERATOR, search, "Accounts by id, part of a name, first letters of a key, or a call")
            .with(|| vec![json!({ "name": "q", "in": "query", "required": true, "schema": { "type": "string", "minLength": 1, "maxLength": 200 } }), number("limit", 1, 100, 20)])
            .gives(named("List")),
        Row::get("/api/admin/providers", OPERATOR, providers, "The providers, without their secrets").gives(named("List")),
        Row::get("/api/admin/settings", OPERATOR, settings, "The settings in force, without secrets").gives(named("SettingsInForce")),
        Row::get("/api/admin/ledger/state", OPERATOR, ledger, "How the ledger stands: last audit, open holds by age")
            .gives(named("LedgerState")),
    ];
    rows.into_iter().chain(presets::preset_rows()).collect()
}

/// Accounts that fit what is known of them.
async fn search(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, async |mut query| {
        let limit = u32::try_from(query.number("limit", 20, 1..=100)?).unwrap_or(20);
        let text = query.take("q").filter(|text| (1..=200).contains(&text.chars().count()));
        let text = text.ok_or_else(|| Refusal::about(Code::MissingParameter, "q", "`q` says what to look for."))?;
        query.finish()?;
        let search = match (text.parse(), text.parse()) {
            (Ok(account), _) => AccountSearch::Id(account),
            (_, Ok(call)) => AccountSearch::Call(call),
            // However much of a key was given, its beginning is what is stored.
            _ if text.starts_with("sk-") => AccountSearch::KeyPrefix(text.chars().take(7).collect()),
            _ => AccountSearch::Name(text),
        };
        let found = app.store.find_accounts(search, limit).await?;
        let mut answer = json!(found);
        changes::with_versions("account_list", &mut answer);
        Ok(super::list(answer.as_array().cloned().unwrap_or_default()))
    })
    .await
}

async fn providers(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, async |query| {
        query.finish()?;
        let serving = app.serving.load();
        let mut all: Vec<&Arc<Provider>> = serving.providers.values().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let routes = |name: &str| {
            serving
                .catalog
                .models
                .values()
                .filter(|model| model.routes.iter().any(|route| route.provider == name))
                .count()
        };
        let shown = all.into_iter().map(|provider| {
            json!({
                "name": provider.name,
                "kind": provider.kind.name,
                "address": provider.base_url.to_string(),
                "key": if provider.has_key() { "set" } else { "missing" },
                "takes": abilities(provider),
                "models": routes(&provider.name),
                "paused": app.routes.switches.provider_is_paused(&provider.name),
            })
        });
        Ok(super::list(shown.collect()))
    })
    .await
}

fn abilities(provider: &Provider) -> Vec<&'static str> {
    let kind = provider.kind;
    let all = [
        ("chat", kind.chat.is_some()),
        ("video", kind.video.is_some()),
        ("social", kind.social.is_some()),
        ("image", kind.image.is_some()),
        ("speech", kind.speech.is_some()),
        ("transcription", kind.transcription.is_some()),
        ("music", kind.music.is_some()),
        ("embeddings", kind.embeddings.is_some()),
        ("rerank", kind.rerank.is_some()),
        ("decisions", kind.decides.is_some()),
        ("realtime", kind.realtime.is_some()),
    ];
    all.into_iter().filter_map(|(name, has)| has.then_some(name)).collect()
}

async fn settings(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, async |query| {
        query.finish()?;
        let own = &app.settings;
        let seconds = |time: Duration| time.as_secs();
        let limits = &own.limits;
        Ok(json!({
            "object": "settings",
            "version": env!("CARGO_PKG_VERSION"),
            "listen": own.listen.to_string(),
            "metrics_listen": own.metrics_listen.map(|listen| listen.to_string()),
            "tls": if own.tls.is_some() { "set" } else { "missing" },
            "public_url": own.public_url,
            // Its address may carry a password.
            "database": if own.database == "sqlite" { "sqlite" } else { "postgres" },
            "secrets_file": "set",
            "trusted_proxies": own.trusted_proxies.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "limits": {
                "header_seconds": seconds(limits.header_time), "idle_seconds": seconds(limits.idle_time),
                "body_seconds": seconds(limits.body_time), "body_bytes": limits.body_bytes,
                "upload_bytes": limits.upload_bytes, "write_seconds": seconds(limits.write_time),
                "connections": limits.connections,
            },
            "health_hours": own.price_list.health_hours,
            "catalog": { "source": own.catalog_source.word(), "models": app.serving.load().catalog.models.len(), "providers": app.serving.load().providers.len() },
        }))
    })
    .await
}

async fn ledger(State(app): State<Arc<App>>, request: Request) -> Response {
    look(&app, request, async |query| {
        query.finish()?;
        let gauges = app.store.gauges();
        let [ten_seconds, minute, ten_minutes, hour, older] = gauges.open_by_age;
        Ok(json!({
            "object": "ledger.state",
            "last_entry": app.store.last_entry().await?,
            "last_audit_age_seconds": app.metrics.audit_age(app.world.steady_ms()),
            "breaches": gauges.breaches,
            "available": !gauges.down,
            "open_holds": gauges.open_holds,
            "open_holds_by_age": {
                "below_10s": ten_seconds, "below_1m": minute, "below_10m": ten_minutes, "below_1h": hour, "older": older,
            },
            "oldest_open_ms": gauges.oldest_open_ms,
            "task_holds": gauges.task_holds,
            "waiting_to_be_written": gauges.queue_len,
            "write_off_total_nano_usd": gauges.write_off_total.nano(),
            "late_closes": gauges.late_closes,
        }))
    })
    .await
}

fn schemas() -> Value {
    let mut all = presets::preset_schemas();
    let own = json!({
        "SettingsInForce": record("The settings in force; of a secret whether it is set", &["object", "version", "listen"]),
        "LedgerState": record("How the ledger stands", &["last_entry", "breaches", "open_holds", "last_audit_age_seconds"]),
    });
    own.as_object().into_iter().flatten().for_each(|(name, schema)| all[name] = schema.clone());
    all
}
