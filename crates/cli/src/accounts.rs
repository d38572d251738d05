//! Accounts on the command line: open, show, limit, top up, correct, refund, and what was done to
//! them.

use crate::admin_keys::who;
use crate::amounts::{amount, change, first_limit, moment, signed};
use crate::args;
use crate::catalog::in_catalog;
use crate::keys::{KEY_COLUMNS, ask};
use crate::real;
use crate::serve::settings;
use crate::show::{Output, print, print_line};
use anyhow::{Context as _, anyhow, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::{Money, Snapshot};
use tollgate_gateway::settings::webhook_address;
use tollgate_gateway::statements::StatementForm;
use tollgate_store::admin::{AdminCommand, Refund};
use tollgate_store::{
    AccountChange, AccountId, Attribution, CallId, Change, Credit, CreditKind, EventPage, Limits, NewAccount,
    NewLimits, Pot,
};

/// Accounts are listed in pages of this size.
const PAGE: u32 = 1_000;

const ACCOUNT_COLUMNS: &[&str] = &[
    "account_id",
    "name",
    "paid_available_nano_usd",
    "trial_available_nano_usd",
    "paid_held_nano_usd",
    "trial_held_nano_usd",
    "topped_up",
    "limits.day_nano_usd",
    "used.day_nano_usd",
    "limits.month_nano_usd",
    "used.month_nano_usd",
    "groups",
    "suspended_at_ms",
    "closed_at_ms",
    "webhook_url",
    "created_at_ms",
];
const EVENT_COLUMNS: &[&str] = &[
    "seq",
    "at_ms",
    "kind",
    "paid_nano_usd",
    "trial_nano_usd",
    "expires_at_ms",
    "actor",
    "reason",
    "reference",
    "call_id",
];
const EXPIRING_COLUMNS: &[&str] = &["credit", "expires_at_ms", "available_nano_usd", "held_nano_usd"];

pub async fn account(config: &Path, command: args::AccountCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::AccountCommand::Create { name, groups, trial, expires, limits } => {
            let trial = trial.as_deref().map(amount).transpose()?;
            let expires_at = expires.as_deref().map(moment).transpose()?;
            let limits = Limits {
                total: None,
                day: first_limit("--limit-day", limits.limit_day.as_deref())?,
                month: first_limit("--limit-month", limits.limit_month.as_deref())?,
            };
            in_catalog(config, &groups, Snapshot::unknown_group).await?;
            let account = NewAccount { id: None, name, groups, limits };
            let made = ask(config, AdminCommand::AccountCreate { account, done: by_command_line() }).await?;
            let id: AccountId = serde_json::from_value(made["account_id"].clone())?;
            let shown = match trial {
                Some(amount) => {
                    let credit = Credit {
                        id: format!("trial-{id}"),
                        account: id,
                        kind: CreditKind::TopUp,
                        pot: Pot::Trial,
                        amount,
                        expires_at,
                        reason: "trial credit".to_owned(),
                        actor: "command line".to_owned(),
                    };
                    give(config, credit).await?
                }
                None => made,
            };
            out.say(&shown, || format!("{id}"));
        }
        args::AccountCommand::List => {
            let all = list(config).await?;
            out.table(&Value::Array(all.clone()), &all, ACCOUNT_COLUMNS);
        }
        args::AccountCommand::Show { account } => show(config, &account, out).await?,
        args::AccountCommand::Update { account, name, groups, limits, done } => {
            in_catalog(config, &groups, Snapshot::unknown_group).await?;
            let limits = NewLimits {
                total: Change::Keep,
                day: change("--limit-day", limits.limit_day.as_deref())?,
                month: change("--limit-month", limits.limit_month.as_deref())?,
            };
            let groups = (!groups.is_empty()).then_some(groups);
            let change = AccountChange { name, groups, limits, ..AccountChange::default() };
            alter(config, &account, change, done, out).await?;
        }
        args::AccountCommand::Suspend { account, done } => {
            let change = AccountChange { suspended: Some(true), ..AccountChange::default() };
            alter(config, &account, change, done, out).await?;
        }
        args::AccountCommand::Reopen { account, done } => reopen(config, &account, done, out).await?,
        args::AccountCommand::Close { account, give_up, done } => {
            close(config, &account, give_up.as_deref(), done, out).await?;
        }
        args::AccountCommand::Webhook { account, url, none: _ } => {
            let id: AccountId = account.parse().context("account")?;
            let allowed = settings(config)?.video.webhooks;
            let checked = url.map(|url| webhook_address(&url, &allowed)).transpose();
            let url = checked.map_err(|refusal| anyhow!(refusal.message.replace("`webhook_url`", "the address")))?;
            let changed =
                ask(config, AdminCommand::AccountWebhook { account: id, url, done: by_command_line() }).await?;
            out.record(&changed, ACCOUNT_COLUMNS);
        }
        args::AccountCommand::Notice(asked) => return crate::alerts::notice(config, asked, out).await,
        args::AccountCommand::Statement { account, month, tz, format } => {
            let account = account.parse().context("account")?;
            let found = ask(config, AdminCommand::Statement { account, month, tz: Some(tz) }).await?;
            if out.json {
                out.say(&found, String::new);
            } else {
                let statement: tollgate_store::Statement = serde_json::from_value(found)?;
                let form = StatementForm::of(&format).unwrap_or(StatementForm::Csv);
                print(&String::from_utf8_lossy(&form.write(&statement)));
            }
        }
        args::AccountCommand::History { account, limit, before } => {
            let id: AccountId = account.parse().context("account")?;
            let events =
                ask(config, AdminCommand::AccountEvents { account: id, page: EventPage { before, limit } }).await?;
            out.table(&events, events.as_array().map_or(&[], Vec::as_slice), EVENT_COLUMNS);
        }
        args::AccountCommand::Topup(topup) => {
            let args::TopupArgs { account, usd, trial, expires, id, reason, actor } = topup;
            let wish = Wish { account, amount: amount(&usd)?, trial, expires, id, reason, actor };
            correct(config, CreditKind::TopUp, wish, out).await?;
        }
        args::AccountCommand::Adjust(adjust) => {
            let args::AdjustArgs { account, usd, reason, actor, trial, expires, id } = adjust;
            if reason.trim().is_empty() {
                bail!("--reason: say why; it is stored with the entry");
            }
            let wish = Wish { account, amount: signed(&usd)?, trial, expires, id, reason, actor };
            correct(config, CreditKind::Adjust, wish, out).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One that is suspended, or closed: whoever opens it need not know.
async fn reopen(config: &Path, account: &str, done: args::ActorArgs, out: &Output) -> anyhow::Result<()> {
    let id: AccountId = account.parse().context("account")?;
    let shown = ask(config, AdminCommand::AccountShow { account: id }).await?;
    if shown["closed_at_ms"].is_null() {
        let change = AccountChange { suspended: Some(false), ..AccountChange::default() };
        return alter(config, account, change, done, out).await;
    }
    let opened = ask(config, AdminCommand::AccountReopen { account: id, done: who(done)? }).await?;
    out.record(&opened, ACCOUNT_COLUMNS);
    Ok(())
}

async fn close(
    config: &Path,
    account: &str,
    give_up: Option<&str>,
    done: args::ActorArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let account: AccountId = account.parse().context("account")?;
    let give_up = give_up.map(amount).transpose()?;
    let closed = ask(config, AdminCommand::AccountClose { account, give_up, done: who(done)? }).await?;
    out.record(&closed, ACCOUNT_COLUMNS);
    Ok(())
}

async fn alter(
    config: &Path,
    account: &str,
    change: AccountChange,
    done: args::ActorArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let account: AccountId = account.parse().context("account")?;
    let done = who(done)?;
    let changed = ask(config, AdminCommand::AccountChange { account, change, done, seen: None }).await?;
    out.record(&changed, ACCOUNT_COLUMNS);
    Ok(())
}

fn total(account: &Value) -> Money {
    let part = |name: &str| account[name].as_i64().unwrap_or(0);
    Money::from_nano(part("paid_available_nano_usd").saturating_add(part("trial_available_nano_usd")))
}

/// What is not asked for on the command line is said for it.
pub fn by_command_line() -> Attribution {
    Attribution::by("command line", "by the operator")
}

/// A change of balance as it was typed.
struct Wish {
    account: String,
    amount: Money,
    trial: bool,
    expires: Option<String>,
    id: Option<String>,
    reason: String,
    actor: String,
}

async fn correct(config: &Path, kind: CreditKind, wish: Wish, out: &Output) -> anyhow::Result<()> {
    let id: AccountId = wish.account.parse().context("account")?;
    let credit = Credit {
        id: wish.id.unwrap_or_else(real::new_reference),
        account: id,
        kind,
        pot: if wish.trial { Pot::Trial } else { Pot::Paid },
        amount: wish.amount,
        expires_at: wish.expires.as_deref().map(moment).transpose()?,
        reason: wish.reason,
        actor: wish.actor,
    };
    let account = give(config, credit).await?;
    out.say(&account, || format!("{id} has {} USD", total(&account)));
    Ok(())
}

async fn give(config: &Path, credit: Credit) -> anyhow::Result<Value> {
    let done = ask(config, AdminCommand::Credit { credit, request: None }).await?;
    if done["applied"] == false {
        eprintln!("this payment had been applied before; nothing changed");
    }
    Ok(done["account"].clone())
}

async fn list(config: &Path) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    loop {
        let after = all.last().map(|one: &Value| serde_json::from_value(one["account_id"].clone())).transpose()?;
        let page = ask(config, AdminCommand::AccountList { after, limit: PAGE }).await?;
        let page = page.as_array().cloned().unwrap_or_default();
        let last = page.len() < PAGE as usize;
        all.extend(page);
        if last {
            return Ok(all);
        }
    }
}

async fn show(config: &Path, account: &str, out: &Output) -> anyhow::Result<()> {
    let id: AccountId = account.parse().context("account")?;
    // First what expires: credit past its time is taken off before the balance is shown.
    let expiring = ask(config, AdminCommand::AccountExpiring { account: id }).await?;
    let shown = ask(config, AdminCommand::AccountShow { account: id }).await?;
    let keys = ask(config, AdminCommand::KeyList { account: id }).await?;
    if out.json {
        out.say(&json!({ "account": shown, "keys": keys, "expiring": expiring }), String::new);
        return Ok(());
    }
    out.record(&shown, ACCOUNT_COLUMNS);
    print_line("");
    out.table(&keys, keys.as_array().map_or(&[], Vec::as_slice), KEY_COLUMNS);
    if let Some(rows) = expiring.as_array().filter(|rows| !rows.is_empty()) {
        print_line("\ntrial credit that expires:");
        out.table(&expiring, rows, EXPIRING_COLUMNS);
    }
    Ok(())
}

pub async fn refund(config: &Path, refund: args::RefundArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let call: CallId = refund.call.parse().context("call")?;
    let amount = refund.amount.as_deref().map(amount).transpose()?;
    let refund = Refund { call, amount, reason: refund.reason, actor: refund.actor };
    let done = ask(config, AdminCommand::Refund { refund, request: None }).await?;
    if done["applied"] == false {
        eprintln!("this call had been refunded before; nothing changed");
    }
    let account = &done["account"];
    out.say(account, || format!("{} has {} USD", account["account_id"].as_str().unwrap_or("?"), total(account)));
    Ok(ExitCode::SUCCESS)
}
