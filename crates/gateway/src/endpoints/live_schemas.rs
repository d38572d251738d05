//! The shapes of live events, for the description: one for each `type`.

use super::openapi::shapes::{nano, text, text_or_null};
use serde_json::{Map, Value, json};
use tollgate_store::Ending;

pub const ACCOUNT_EVENT: &str = "AccountLiveEvent";
pub const ADMIN_EVENT: &str = "AdminLiveEvent";

/// One kind of event: its `type`, when it comes, and its other members.
type Kind = (&'static str, &'static str, Value);

pub fn schemas() -> Value {
    json!({
        ACCOUNT_EVENT: one_of("What happens in an account", [shared(), of_accounts()].concat()),
        ADMIN_EVENT: one_of("What happens in the house", [shared(), of_house()].concat()),
    })
}

/// The data of an event; its `type` is the name of the event too.
fn one_of(about: &str, kinds: Vec<Kind>) -> Value {
    let shapes: Vec<Value> = kinds
        .into_iter()
        .map(|(kind, about, members)| {
            let mut properties: Map<String, Value> = members.as_object().cloned().unwrap_or_default();
            properties.insert("type".to_owned(), json!({ "const": kind }));
            let required: Vec<String> = properties.keys().cloned().collect();
            json!({ "type": "object", "title": kind, "description": about, "required": required, "properties": properties })
        })
        .collect();
    json!({ "description": format!("{about}: the `data` of an event, by its `type`"), "oneOf": shapes })
}

fn int() -> Value {
    json!({ "type": "integer" })
}

fn int_or_null() -> Value {
    json!({ "type": ["integer", "null"] })
}

fn yes_or_no() -> Value {
    json!({ "type": "boolean" })
}

fn shared() -> Vec<Kind> {
    let reasons = json!({ "enum": ["slow", "gap", "unknown_mark"] });
    vec![
        ("reset", "What was shown may lack something: read it again", json!({ "reason": reasons })),
        (
            "end",
            "The last event: a code of the error table, or `too_long`",
            json!({ "reason": text(), "message": text() }),
        ),
    ]
}

fn of_accounts() -> Vec<Kind> {
    let call = json!({
        "call_id": text(), "key_id": text(), "model": text(), "endpoint": text(),
        "ending": { "enum": Ending::ALL.map(Ending::name) }, "reason": text(), "status": int(),
        "started_at_ms": int(), "ended_at_ms": int(), "estimated": yes_or_no(),
        "charge_nano_usd": nano(), "charge_usd": text(), "refunded_nano_usd": nano(),
    });
    vec![
        (
            "ready",
            "The first event. `resumed`: what was missed follows",
            json!({ "account_id": text(), "resumed": yes_or_no(), "at_ms": int(), "heartbeat_seconds": int() }),
        ),
        ("usage.closed", "A call has ended and has its row in the usage log", call.clone()),
        ("usage.refunded", "A call was refunded", call),
        ("usage.skipped", "More calls ended than are listed: read the usage log", json!({ "at_ms": int() })),
        (
            "balance.changed",
            "The balance, at most once a second",
            json!({
                "available_nano_usd": nano(), "available_usd": text(), "held_nano_usd": nano(),
                "trial_available_nano_usd": nano(), "paid_available_nano_usd": nano(),
            }),
        ),
        (
            "balance.low",
            "The balance is below what the account wants to hear of",
            json!({ "threshold_nano_usd": int_or_null(), "since_ms": int_or_null(), "available_nano_usd": nano() }),
        ),
        (
            "account.changed",
            "The operator has suspended the account, or reopened it",
            json!({ "suspended": yes_or_no(), "suspended_at_ms": int_or_null() }),
        ),
        (
            "key.changed",
            "A key was made, changed, rotated or revoked",
            json!({
                "key_id": text(), "name": text(), "key_prefix": text(), "changed_at_ms": int(),
                "expires_at_ms": int_or_null(), "revoked_at_ms": int_or_null(),
            }),
        ),
        (
            "task.changed",
            "A task came into another state, or further",
            json!({
                "task_id": text(), "key_id": text(), "model": text(), "state": text(), "progress": int_or_null(),
                "created_at_ms": int(), "ended_at_ms": int_or_null(), "failure_code": text_or_null(),
            }),
        ),
        (
            "run.changed",
            "A run of a workflow came into another state",
            json!({
                "run_id": text(), "key_id": text(), "workflow": text(), "status": text(), "changed_at_ms": int(),
                "ended_at_ms": int_or_null(),
            }),
        ),
    ]
}

fn of_house() -> Vec<Kind> {
    let logged = json!({
        "seq": int(), "at_ms": int(), "actor": text(), "action": text(), "subject": text(), "account_id": text_or_null(),
    });
    let alert = json!({
        "alert_id": text(), "rule": text_or_null(), "subject": text(),
        "what": { "enum": ["firing", "reminder", "cleared", "test"] }, "message": text(), "at_ms": int(),
    });
    vec![
        (
            "ready",
            "The first event",
            json!({ "replica": text(), "resumed": yes_or_no(), "at_ms": int(), "heartbeat_seconds": int() }),
        ),
        (
            "traffic",
            "Calls of all replicas that ended within the second before, and calls that this replica has open",
            json!({
                "at_ms": int(), "span_ms": int(), "ended": int(), "charged": int(), "charge_nano_usd": nano(),
                "replica": text(), "running_here": int(),
            }),
        ),
        ("change.logged", "A row of the log of who changed what", logged.clone()),
        ("account.suspended", "An account was suspended", logged.clone()),
        ("account.reopened", "An account was reopened", logged),
        (
            "pause.changed",
            "A model, cell or provider was paused or resumed",
            json!({
                "kind": { "enum": ["model", "provider"] }, "name": text(), "paused": yes_or_no(), "actor": text(),
                "reason": text(), "at_ms": int(),
            }),
        ),
        (
            "route.paused",
            "This replica asks a provider for a model no more, or again, by itself",
            json!({ "provider": text(), "model": text(), "paused": yes_or_no(), "replica": text() }),
        ),
        (
            "health.changed",
            "How routes are doing, of those that changed; once a minute at most",
            json!({ "routes": { "type": "array", "items": { "type": "object" } }, "more": yes_or_no(), "at_ms": int() }),
        ),
        ("alert.raised", "A rule fires, or still does", alert.clone()),
        ("alert.cleared", "A rule fires no more", alert),
        (
            "catalog.published",
            "Another catalog is on sale",
            json!({ "hash": text(), "version": int_or_null(), "models": int(), "at_ms": int() }),
        ),
        (
            "job.changed",
            "A job got further, or ended",
            json!({ "job_id": text(), "kind": text(), "state": text(), "done": int(), "total": int() }),
        ),
    ]
}
