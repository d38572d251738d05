//! Keys and usage; accounts are in `accounts.rs`, the audit in `ledger/`. A command goes to the
//! running server through its socket, because one process owns the data; when none is running the
//! store is opened here.

use crate::admin_keys::who;
use crate::amounts::{change, first_limit, moment};
use crate::args;
use crate::catalog::in_catalog;
use crate::real;
use crate::serve::settings;
use crate::show::Output;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::Snapshot;
use tollgate_gateway::start::{admin_socket, place};
use tollgate_gateway::who::caller::network;
use tollgate_store::admin::{self, AdminCommand, CallError};
use tollgate_store::{
    AccountId, CallId, Change, KeyChange, KeyId, KeyScope, Limits, NewKey, NewLimits, Options, Store, UsagePage,
};

pub const KEY_COLUMNS: &[&str] = &[
    "key_id",
    "key_prefix",
    "name",
    "scope",
    "created_at_ms",
    "expires_at_ms",
    "revoked_at_ms",
    "models",
    "cidrs",
    "limits.total_nano_usd",
    "spent_nano_usd",
    "limits.day_nano_usd",
    "used.day_nano_usd",
    "limits.month_nano_usd",
    "used.month_nano_usd",
];
const USAGE_COLUMNS: &[&str] = &[
    "call_id",
    "started_at_ms",
    "account_id",
    "model",
    "provider",
    "ending",
    "reason",
    "usage.input",
    "usage.output",
    "estimated",
    "hold_nano_usd",
    "charge_nano_usd",
    "refunded_nano_usd",
];

pub async fn key(config: &Path, command: args::KeyCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::KeyCommand::Create { account, name, scope, expires, models, ips, limits, done } => {
            networks(&ips)?;
            in_catalog(config, &models, Snapshot::unknown_model).await?;
            let expires_at = expires.as_deref().map(moment).transpose()?;
            let key = NewKey {
                account: account.parse().context("account")?,
                name,
                expires_at,
                models: (!models.is_empty()).then_some(models),
                cidrs: (!ips.is_empty()).then_some(ips),
                limits: Limits {
                    total: first_limit("--limit-total", limits.limit_total.as_deref())?,
                    day: first_limit("--limit-day", limits.limit_day.as_deref())?,
                    month: first_limit("--limit-month", limits.limit_month.as_deref())?,
                },
                scope: if scope == "manage" { KeyScope::Manage } else { KeyScope::Call },
            };
            let secret = real::new_secret();
            let mut made =
                ask(config, AdminCommand::KeyCreate { key, secret: secret.clone(), done: who(done)? }).await?;
            made["secret"] = json!(secret);
            out.say(&made, || secret.clone());
            if !out.json {
                eprintln!("(shown once; only its hash is stored)");
            }
        }
        args::KeyCommand::Update { key, name, expires, models, ips, limits, done } => {
            let id: KeyId = key.parse().context("key (`tollgate key list ACCOUNT` shows them)")?;
            let limits = NewLimits {
                total: change("--limit-total", limits.limit_total.as_deref())?,
                day: change("--limit-day", limits.limit_day.as_deref())?,
                month: change("--limit-month", limits.limit_month.as_deref())?,
            };
            let (models, cidrs) = (listed(models), listed(ips));
            if let Change::Set(models) = &models {
                in_catalog(config, models, Snapshot::unknown_model).await?;
            }
            if let Change::Set(ips) = &cidrs {
                networks(ips)?;
            }
            let expires_at = match expires.as_deref() {
                None => Change::Keep,
                Some(NONE) => Change::Lift,
                Some(when) => Change::Set(moment(when)?),
            };
            let change = KeyChange { name, models, cidrs, expires_at, limits };
            let changed =
                ask(config, AdminCommand::KeyChange { key: id, change, done: who(done)?, seen: None }).await?;
            out.record(&changed, KEY_COLUMNS);
        }
        args::KeyCommand::Rotate { key, grace, done } => {
            let id: KeyId = key.parse().context("key (`tollgate key list ACCOUNT` shows them)")?;
            let grace_ms = (moment(&grace)? - real::now_ms()).max(0);
            let secret = real::new_secret();
            let command = AdminCommand::KeyRotate { key: id, secret: secret.clone(), grace_ms, done: who(done)? };
            let mut rotated = ask(config, command).await?;
            rotated["secret"] = json!(secret);
            out.say(&rotated, || secret.clone());
            if !out.json {
                eprintln!("(shown once; the secret before it works for {grace} more)");
            }
        }
        args::KeyCommand::List { account } => {
            let keys = ask(config, AdminCommand::KeyList { account: account.parse().context("account")? }).await?;
            out.table(&keys, keys.as_array().map_or(&[], Vec::as_slice), KEY_COLUMNS);
        }
        args::KeyCommand::Revoke { key, done } => {
            let id: KeyId = key.parse().context("key (`tollgate key list ACCOUNT` shows them)")?;
            let revoked = ask(config, AdminCommand::KeyRevoke { key: id, done: who(done)? }).await?;
            out.say(&revoked, || format!("{id} is revoked"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is typed to have no restriction any more.
const NONE: &str = "none";

/// The new list, if there is one.
fn listed(given: Vec<String>) -> Change<Vec<String>> {
    match given.as_slice() {
        [] => Change::Keep,
        [one] if one == NONE => Change::Lift,
        _ => Change::Set(given),
    }
}

fn networks(ips: &[String]) -> anyhow::Result<()> {
    if let Some(one) = ips.iter().find(|one| network(one).is_none()) {
        bail!("--ip {one}: not an address or network such as 10.0.0.0/8");
    }
    Ok(())
}

pub async fn usage(config: &Path, usage: args::UsageArgs, out: &Output) -> anyhow::Result<ExitCode> {
    if usage.sums.from.is_some() {
        return crate::sums::sums(config, usage.account, usage.sums, out).await;
    }
    let account = usage.account.map(|text| text.parse::<AccountId>().context("--account")).transpose()?;
    if let (Some(call), Some(account)) = (&usage.call, account) {
        let call: CallId = call.parse().context("--call")?;
        let row = ask(config, AdminCommand::UsageShow { account, call }).await?;
        out.say(&row, || serde_json::to_string_pretty(&row).unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    let before = usage.before.map(|text| text.parse::<CallId>().context("--before")).transpose()?;
    let rows = ask(config, AdminCommand::UsageList { account, page: UsagePage { before, limit: usage.limit } }).await?;
    out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), USAGE_COLUMNS);
    Ok(ExitCode::SUCCESS)
}

const MARGIN_COLUMNS: &[&str] =
    &["day", "model", "provider", "upstream_model", "calls", "sold_usd", "cost_usd", "margin_usd", "cost_unknown"];

/// What was sold and what it cost.
pub async fn margin(config: &Path, asked: &args::MarginArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let now = real::now_ms();
    let from_ms = (now.div_euclid(DAY_MS) + 1 - i64::from(asked.days)) * DAY_MS;
    let rows = ask(config, AdminCommand::Margins { from_ms, to_ms: now + 1 }).await?;
    let report = tollgate_gateway::margin_report::margin_report(rows, &asked.by);
    let data = report["data"].as_array().map_or(&[][..], Vec::as_slice);
    let columns: Vec<&str> =
        MARGIN_COLUMNS.iter().copied().filter(|name| data.iter().any(|row| row.get(*name).is_some())).collect();
    out.table(&report, data, &columns);
    Ok(ExitCode::SUCCESS)
}

const DAY_MS: i64 = 86_400_000;

/// To the running server if there is one, otherwise to the store itself.
pub async fn ask(config: &Path, command: AdminCommand) -> anyhow::Result<Value> {
    let settings = settings(config)?;
    match admin::call(&admin_socket(&settings), &command).await {
        Err(CallError::NoServer) => {}
        answered => return Ok(answered?),
    }
    let opened = Store::open(place(&settings), Options::default(), real::world().for_store()).await?;
    let answer = opened.store.execute(command).await;
    opened.store.shut().await;
    Ok(answer?)
}
