//! Accounts, keys, usage, audit. A command goes to the running server through its socket, because one process owns the data;
//! when none is running the store is opened here.

use crate::args;
use crate::real;
use crate::serve::settings;
use crate::show::Output;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::Money;
use tollgate_catalog::form::parse_duration;
use tollgate_gateway::caller::network;
use tollgate_gateway::start::{admin_socket, place};
use tollgate_store::admin::{self, CallError, Command};
use tollgate_store::{AccountId, CallId, Credit, CreditKind, KeyId, NewAccount, NewKey, Options, Page, Pot, Store};

const ACTOR: &str = "command line";
/// Accounts are listed in pages of this size.
const PAGE: u32 = 1_000;

const ACCOUNT_COLUMNS: &[(&str, &str)] = &[
    ("account", "id"),
    ("name", "name"),
    ("available USD", "paid_available$"),
    ("trial USD", "trial_available$"),
    ("held USD", "paid_held$"),
    ("trial held USD", "trial_held$"),
    ("topped up", "topped_up"),
    ("created", "created_at@"),
];
const KEY_COLUMNS: &[(&str, &str)] = &[
    ("key", "id"),
    ("begins with", "prefix"),
    ("name", "name"),
    ("created", "created_at@"),
    ("expires", "expires_at@"),
    ("revoked", "revoked_at@"),
    ("models", "models"),
    ("networks", "cidrs"),
    ("cap USD", "cap$"),
    ("spent USD", "spent$"),
];
const USAGE_COLUMNS: &[(&str, &str)] = &[
    ("call", "call"),
    ("at", "at@"),
    ("account", "account"),
    ("model", "model"),
    ("provider", "provider"),
    ("ending", "ending"),
    ("reason", "reason"),
    ("input", "counters.input"),
    ("output", "counters.output"),
    ("estimated", "estimated"),
    ("hold USD", "hold$"),
    ("charge USD", "charge$"),
];

pub async fn account(config: &Path, command: args::Account, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::Account::Create { name, groups, trial } => {
            let trial = trial.as_deref().map(amount).transpose()?;
            let made = ask(config, Command::AccountCreate { account: NewAccount { id: None, name, groups } }).await?;
            let id: AccountId = serde_json::from_value(made["id"].clone())?;
            let shown = match trial {
                Some(amount) => {
                    credit(config, format!("trial-{id}"), id, Pot::Trial, amount, "trial credit".to_owned()).await?
                }
                None => made,
            };
            out.say(&shown, || format!("{id}"));
        }
        args::Account::List => {
            let mut all = Vec::new();
            loop {
                let after = all.last().map(|one: &Value| serde_json::from_value(one["id"].clone())).transpose()?;
                let page = ask(config, Command::AccountList { after, limit: PAGE }).await?;
                let page = page.as_array().cloned().unwrap_or_default();
                let last = page.len() < PAGE as usize;
                all.extend(page);
                if last {
                    break;
                }
            }
            out.table(&Value::Array(all.clone()), &all, ACCOUNT_COLUMNS);
        }
        args::Account::Show { account } => {
            let id: AccountId = account.parse().context("account")?;
            let shown = ask(config, Command::AccountShow { account: id }).await?;
            let keys = ask(config, Command::KeyList { account: id }).await?;
            if out.json {
                out.say(&json!({ "account": shown, "keys": keys }), String::new);
            } else {
                out.table(&shown, std::slice::from_ref(&shown), ACCOUNT_COLUMNS);
                println!();
                out.table(&keys, keys.as_array().map_or(&[], Vec::as_slice), KEY_COLUMNS);
            }
        }
        args::Account::Topup(topup) => {
            let id: AccountId = topup.account.parse().context("account")?;
            let amount = amount(&topup.usd)?;
            let pot = if topup.trial { Pot::Trial } else { Pot::Paid };
            let payment = topup.id.unwrap_or_else(|| format!("cli-{}", real::new_secret()));
            let account = credit(config, payment, id, pot, amount, topup.reason).await?;
            out.say(&account, || format!("{id} has {} USD", total(&account)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn total(account: &Value) -> Money {
    let part = |name: &str| account[name].as_i64().unwrap_or(0);
    Money::from_nano(part("paid_available").saturating_add(part("trial_available")))
}

async fn credit(
    config: &Path,
    id: String,
    account: AccountId,
    pot: Pot,
    amount: Money,
    reason: String,
) -> anyhow::Result<Value> {
    let credit = Credit { id, account, kind: CreditKind::TopUp, pot, amount, reason, actor: ACTOR.to_owned() };
    let done = ask(config, Command::Credit { credit }).await?;
    if done["applied"] == false {
        eprintln!("this payment had been applied before; nothing changed");
    }
    Ok(done["account"].clone())
}

pub async fn key(config: &Path, command: args::Key, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::Key::Create { account, name, expires, models, ips, cap } => {
            for one in &ips {
                if network(one).is_none() {
                    bail!("--ip {one}: not an address or network such as 10.0.0.0/8");
                }
            }
            let expires_at = match expires {
                Some(text) => {
                    let span = parse_duration(&text).map_err(|why| anyhow::anyhow!("--expires {text}: {why}"))?;
                    Some(real::now_ms().saturating_add(i64::try_from(span.as_millis())?))
                }
                None => None,
            };
            let key = NewKey {
                account: account.parse().context("account")?,
                name,
                expires_at,
                models: (!models.is_empty()).then_some(models),
                cidrs: (!ips.is_empty()).then_some(ips),
                cap: cap.as_deref().map(amount).transpose()?,
            };
            let secret = real::new_secret();
            let mut made = ask(config, Command::KeyCreate { key, secret: secret.clone() }).await?;
            made["secret"] = json!(secret);
            out.say(&made, || secret.clone());
            if !out.json {
                eprintln!("(shown once; only its hash is kept)");
            }
        }
        args::Key::List { account } => {
            let keys = ask(config, Command::KeyList { account: account.parse().context("account")? }).await?;
            out.table(&keys, keys.as_array().map_or(&[], Vec::as_slice), KEY_COLUMNS);
        }
        args::Key::Revoke { key } => {
            let id: KeyId = key.parse().context("key (`tollgate key list ACCOUNT` shows them)")?;
            let revoked = ask(config, Command::KeyRevoke { key: id }).await?;
            out.say(&revoked, || format!("{id} is revoked"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn usage(config: &Path, usage: args::Usage, out: &Output) -> anyhow::Result<ExitCode> {
    let account = usage.account.map(|text| text.parse::<AccountId>().context("--account")).transpose()?;
    if let (Some(call), Some(account)) = (&usage.call, account) {
        let call: CallId = call.parse().context("--call")?;
        let row = ask(config, Command::UsageShow { account, call }).await?;
        out.say(&row, || serde_json::to_string_pretty(&row).unwrap_or_default());
        return Ok(ExitCode::SUCCESS);
    }
    let before = usage.before.map(|text| text.parse::<CallId>().context("--before")).transpose()?;
    let rows = ask(config, Command::UsageList { account, page: Page { before, limit: usage.limit } }).await?;
    out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), USAGE_COLUMNS);
    Ok(ExitCode::SUCCESS)
}

pub async fn verify(config: &Path, out: &Output) -> anyhow::Result<ExitCode> {
    let report = ask(config, Command::LedgerVerify).await?;
    let breaches = report["breaches"].as_array().cloned().unwrap_or_default();
    out.say(&report, || {
        let mut text = format!(
            "{} accounts, {} entries, {} usage rows: {}",
            report["accounts"],
            report["entries"],
            report["usage_rows"],
            if breaches.is_empty() { "every number adds up" } else { "BROKEN" }
        );
        for breach in &breaches {
            text.push_str(&format!("\n{}", breach["invariant"].as_str().unwrap_or("?")));
            for row in breach["rows"].as_array().into_iter().flatten() {
                text.push_str(&format!("\n  {}", row.as_str().unwrap_or_default()));
            }
        }
        text
    });
    Ok(if breaches.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// To the running server if there is one, otherwise to the store itself.
async fn ask(config: &Path, command: Command) -> anyhow::Result<Value> {
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

fn amount(text: &str) -> anyhow::Result<Money> {
    let amount: Money = text.parse().map_err(|why| anyhow::anyhow!("{text:?} {why}"))?;
    if amount.is_negative() || amount.is_zero() {
        bail!("{text:?} is not an amount above zero");
    }
    Ok(amount)
}
