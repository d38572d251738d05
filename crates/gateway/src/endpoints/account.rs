//! What an account holder asks: balance, usage log, one call with its whole calculation.

use super::openapi::shapes::{list, named, nano, number, text};
use super::reading;
use super::row::{Access, Family, MembersSee, Row};
use crate::app::App;
use crate::quotes::Calculation;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::world::Millis;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::{Money, Price};
use tollgate_store::{
    CallEntry, CallId, CallReach, Counters, Ending, Expiring, KeyAndAccount, Limits, Quota, StorageUsed, StoreError,
    UsagePage, UsageRow, UsageSearch, Used, next_day, next_month,
};
use tollgate_wire::HiddenCosts;
use tollgate_wire::error::{Code, ErrorFormat};

const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;
const DAY_MS: i64 = 86_400_000;

pub const FAMILY: Family = Family { tag: "account", rows, schemas };

fn rows() -> Vec<Row> {
    let whole = "What the account has and what is held for running calls";
    vec![
        Row::get("/v1/balance", Access::Key, balance, whole).gives(named("Balance")),
        Row::get("/v1/usage", Access::Key, usage, "The usage log, newest first")
            .with(usage_page)
            .gives(named("UsageList"))
            .to_members(MembersSee::OwnKeys),
        Row::get("/v1/usage/{call_id}", Access::Key, usage_of, "One call with its price and charge")
            .gives(named("Usage"))
            .to_members(MembersSee::OwnKeys),
    ]
}

#[derive(Serialize)]
struct Balance {
    object: &'static str,
    account_id: String,
    currency: &'static str,
    available_nano_usd: i64,
    held_nano_usd: i64,
    available_usd: String,
    held_usd: String,
    trial_available_nano_usd: i64,
    paid_available_nano_usd: i64,
    topped_up: bool,
    /// Trial credit that expires, the earliest first.
    expiring: Vec<Value>,
    limits: Value,
    /// Responses and conversations.
    storage: Value,
}

pub async fn balance(State(app): State<Arc<App>>, request: Request) -> Response {
    answer(&app, request, async |caller| {
        let unknown = || Refusal::new(Code::NotFound, "The account does not exist.");
        // Credit past its time is taken off before the balance is read.
        let expiring = app.store.expiring(caller.account.id).await?;
        let KeyAndAccount { key, account } = app.store.key_by_hash(caller.key.hash).await?.ok_or_else(unknown)?;
        let stored = app.store.stored(caller.account.id).await?;
        let now = app.world.now_ms();
        let available = sum(account.trial_available, account.paid_available)?;
        let held = sum(account.trial_held, account.paid_held)?;
        Ok(reading::json(&Balance {
            object: "balance",
            account_id: account.id.to_string(),
            currency: "USD",
            available_nano_usd: available.nano(),
            held_nano_usd: held.nano(),
            available_usd: available.to_string(),
            held_usd: held.to_string(),
            trial_available_nano_usd: account.trial_available.nano(),
            paid_available_nano_usd: account.paid_available.nano(),
            topped_up: account.topped_up,
            expiring: expiring.iter().map(expiring_json).collect(),
            limits: json!({
                "key": limits_json(&key.limits, key.spent.nano() + key.held.nano(), &key.used, now),
                "account": limits_json(&account.limits, 0, &account.used, now),
            }),
            storage: storage_json(&stored, &app.settings.storage.quota(&account)),
        }))
    })
    .await
}

/// What is stored and how much may be.
fn storage_json(used: &StorageUsed, quota: &Quota) -> Value {
    json!({
        "bytes": used.bytes, "bytes_allowed": quota.bytes,
        "objects": used.objects, "objects_allowed": quota.objects,
        "items": used.items, "items_allowed": quota.items,
    })
}

fn expiring_json(one: &Expiring) -> Value {
    json!({
        "credit": one.credit,
        "expires_at_ms": one.expires_at,
        "available_nano_usd": one.available.nano(),
        "available_usd": one.available.to_string(),
        "held_nano_usd": one.held.nano(),
    })
}

/// Only the limits there are, each with what is left of it and when it begins anew.
fn limits_json(limits: &Limits, spent: i64, used: &Used, now: Millis) -> Value {
    let table = [
        ("total", limits.total, spent, None),
        ("day", limits.day, used.day.nano(), Some(next_day(now))),
        ("month", limits.month, used.month.nano(), Some(next_month(now))),
    ];
    let shown = table.into_iter().filter_map(|(name, limit, used, anew)| {
        let left = Money::from_nano((limit?.nano() - used).max(0));
        let value = json!({
            "limit_nano_usd": limit?.nano(),
            "left_nano_usd": left.nano(),
            "left_usd": left.to_string(),
            "begins_anew_at_ms": anew,
        });
        Some((name.to_owned(), value))
    });
    Value::Object(shown.collect())
}

fn sum(a: Money, b: Money) -> Result<Money, Refusal> {
    a.checked_add(b).ok_or_else(|| Refusal::new(Code::Internal, "The balance does not fit into a number."))
}

pub async fn usage(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    answer(&app, request, async |caller| {
        let page = page(query.as_deref().unwrap_or(""))?;
        let (reach, limit) = (caller.reach(&app.store).await?, page.limit + 1);
        let mut rows = if reach.is_whole() {
            app.store.usage(Some(caller.account.id), UsagePage { limit, ..page }).await?
        } else {
            let to_ms = app.world.now_ms().saturating_add(DAY_MS);
            let search = UsageSearch { filter: reach.filter(), from_ms: 0, to_ms, before: page.before, limit };
            app.store.usage_search(search).await?
        };
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let next = more.then(|| rows.last().map(|row| row.call.to_string())).flatten();
        let mut data: Vec<Value> = rows.iter().map(row_json).collect();
        with_runs(&app, &rows, &mut data).await?;
        Ok(reading::json(&json!({ "object": "list", "data": data, "has_more": more, "next_before": next })))
    })
    .await
}

pub async fn usage_of(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answer(&app, request, async |caller| call_detail(&app, caller.reach(&app.store).await?, &id).await).await
}

/// The row of a call that has ended, if whoever asks may see it.
pub(super) async fn usage_within(app: &App, reach: CallReach, call: CallId) -> Result<Option<UsageRow>, StoreError> {
    match app.store.usage_of(reach.account, call).await? {
        Some(row) if app.store.reaches(reach, row.key).await? => Ok(Some(row)),
        _ => Ok(None),
    }
}

/// One call of an account, whole.
pub(super) async fn call_detail(app: &App, reach: CallReach, id: &str) -> Result<Response, Refusal> {
    let unknown = || Refusal::about(Code::NotFound, "call_id", format!("There is no call `{id}` of this account."));
    let call: CallId = id.parse().map_err(|_| unknown())?;
    let row = usage_within(app, reach, call).await?.ok_or_else(unknown)?;
    let entries = app.store.entries_of(reach.account, call).await?;
    let mut shown = [detail(&row, &entries)];
    with_runs(app, &[row], &mut shown).await?;
    Ok(reading::json(&shown[0]))
}

/// Names the run that a call was a step of.
pub(super) async fn with_runs(app: &App, rows: &[UsageRow], shown: &mut [Value]) -> Result<(), StoreError> {
    let runs = app.store.runs_of_calls(rows.iter().map(|row| row.call).collect()).await?;
    for (row, value) in rows.iter().zip(shown) {
        let run = runs.iter().find(|(call, _)| *call == row.call).map(|(_, run)| run);
        value["run_id"] = json!(run);
    }
    Ok(())
}

/// A call with its whole calculation: what was charged and why, and every movement of money it
/// made.
fn detail(row: &UsageRow, entries: &[CallEntry]) -> Value {
    let mut value = row_json(row);
    let Some(object) = value.as_object_mut() else { return value };
    let price = row.price.clone().and_then(|price| serde_json::from_value::<Price>(price).ok());
    let cost = row.charge.checked_add(row.write_off).unwrap_or(row.charge);
    // What was not charged has nothing to calculate, whatever was counted.
    let used = if cost.is_zero() { Counters::default() } else { row.counters };
    let calculation = price.and_then(|price| Calculation::of(&price, &used, row.at).ok());
    let entry = |one: &CallEntry| {
        json!({
            "kind": one.kind, "at_ms": one.at, "trial_nano_usd": one.trial.nano(), "paid_nano_usd": one.paid.nano(),
            "charged_nano_usd": one.taken.nano(),
        })
    };
    object.insert("calculation".to_owned(), json!(calculation));
    object.insert("entries".to_owned(), entries.iter().map(entry).collect());
    object.insert("extensions".to_owned(), json!(entries.iter().filter(|one| one.kind == "extend").count()));
    value
}

/// What customers see of a usage row: money both exact and readable; no route, host or upstream
/// name. The provider's own words come with the frozen price, in the answer about one call.
const SHOWN: [&str; 21] = [
    "object",
    "call_id",
    "account_id",
    "key_id",
    "started_at_ms",
    "ended_at_ms",
    "endpoint",
    "model",
    "ending",
    "reason",
    "status",
    "usage",
    "estimated",
    "tier",
    "dropped",
    "hold_nano_usd",
    "charge_nano_usd",
    "charge_usd",
    "refunded_nano_usd",
    "write_off_nano_usd",
    "first_byte_ms",
];

pub(super) fn row_json(row: &UsageRow) -> Value {
    let mut value = row.record();
    if let Some(object) = value.as_object_mut() {
        let whole = row.price.is_some();
        object.retain(|name, _| match name.as_str() {
            "price" | "raw_usage" => whole,
            name => SHOWN.contains(&name),
        });
        // What a provider says of its own price is for operators.
        if let Some(report) = object.get_mut("raw_usage") {
            let text = report.as_str().map_or_else(|| report.to_string(), str::to_owned);
            if let Some(shorter) = HiddenCosts::known().report(&text) {
                *report = if report.is_string() { Value::from(shorter) } else { json_of(&shorter) };
            }
        }
    }
    value
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn page(query: &str) -> Result<UsagePage, Refusal> {
    let mut page = UsagePage { before: None, limit: PAGE };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "limit" => {
                page.limit =
                    value.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit)).ok_or_else(|| {
                        Refusal::about(
                            Code::InvalidParameter,
                            "limit",
                            format!("`limit` is a number from 1 to {LARGEST_PAGE}."),
                        )
                    })?;
            }
            "before" => {
                let call = value.parse().map_err(|_| {
                    Refusal::about(
                        Code::InvalidParameter,
                        "before",
                        "`before` is the call id of the last row of the page before.",
                    )
                })?;
                page.before = Some(call);
            }
            other => {
                let name: String = other.chars().take(64).collect();
                return Err(Refusal::about(
                    Code::UnknownParameter,
                    &name,
                    format!("`{name}` is not a parameter of this endpoint."),
                ));
            }
        }
    }
    Ok(page)
}

/// Authenticates, runs, and turns a refusal into a reply.
pub(super) async fn answer(
    app: &Arc<App>,
    request: Request,
    work: impl AsyncFnOnce(Arc<Caller>) -> Result<Response, Refusal>,
) -> Response {
    let (parts, _) = request.into_parts();
    let outcome = match reading::caller(app, &parts).await {
        Ok(caller) => work(caller).await,
        Err(refusal) => Err(refusal),
    };
    outcome.unwrap_or_else(|refusal| reading::refused(app, ErrorFormat::OpenAi, refusal, ""))
}

fn usage_page() -> Vec<Value> {
    vec![
        number("limit", 1, LARGEST_PAGE, PAGE),
        json!({ "name": "before", "in": "query", "description": "`next_before` of the page before", "schema": { "type": "string" } }),
    ]
}

fn schemas() -> Value {
    let (text, nano, int) = (text(), nano(), json!({ "type": "integer" }));
    json!({
        "Balance": { "type": "object", "required": ["object", "available_nano_usd", "held_nano_usd"], "properties": {
            "object": { "const": "balance" }, "account_id": text, "currency": { "const": "USD" },
            "available_nano_usd": nano, "held_nano_usd": nano, "available_usd": text, "held_usd": text,
            "trial_available_nano_usd": nano, "paid_available_nano_usd": nano, "topped_up": { "type": "boolean" },
            "expiring": { "type": "array", "items": { "type": "object", "properties": {
                "credit": text, "expires_at_ms": int, "available_nano_usd": nano, "available_usd": text, "held_nano_usd": nano,
            } } },
            "limits": { "type": "object", "properties": { "key": { "type": "object" }, "account": { "type": "object" } } },
        } },
        "Usage": { "type": "object", "required": ["object", "call_id", "ending", "charge_nano_usd"], "properties": {
            "object": { "const": "usage" }, "call_id": text, "account_id": text, "key_id": text,
            "started_at_ms": int, "ended_at_ms": int, "endpoint": text, "model": text, "reason": text,
            "tier": { "type": ["string", "null"] }, "first_byte_ms": { "type": ["integer", "null"] },
            "ending": { "enum": Ending::ALL.map(Ending::name) },
            "status": int, "usage": { "type": "object" }, "estimated": { "type": "boolean" },
            "dropped": { "type": "array", "items": text, "description": "Fields of the request that the provider has nothing like, and (as `answer.…`) parts of the answer that the client's dialect has no form for" },
            "hold_nano_usd": nano, "charge_nano_usd": nano, "charge_usd": text, "write_off_nano_usd": nano,
            "refunded_nano_usd": nano, "run_id": { "type": ["string", "null"], "description": "The workflow run that it was a step of" },
            "calculation": { "type": ["object", "null"] }, "entries": { "type": "array" },
        } },
        "UsageList": list("Usage"),
    })
}
