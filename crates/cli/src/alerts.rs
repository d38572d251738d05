//! `alert …`: rules and places of alerts, what fires and what fired; `account notice`.

use crate::admin_keys::who;
use crate::amounts::{amount, moment};
use crate::args;
use crate::keys::ask;
use crate::real;
use crate::serve::settings;
use crate::show::Output;
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use tollgate_gateway::alerts::{PlaceAddress, seal, shown};
use tollgate_gateway::secrets::Secrets;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{
    AccountId, AlertChange, AlertCondition, AlertPlaceId, AlertPlaceKind, AlertSilence, NewAlertPlace, NewAlertRule,
    NoticeWish,
};

const FIRING: &[&str] = &["since_ms", "rule_id", "subject", "notified_at_ms", "message"];
const EVENTS: &[&str] = &["at_ms", "what", "subject", "sent", "message"];
const PLACES: &[&str] = &["place_id", "name", "kind", "shown", "created_at_ms"];
const RULES: &[&str] = &["rule_id", "name", "condition", "enabled", "silenced_until_ms"];

pub async fn alert(config: &Path, command: args::AlertCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::AlertCommand::Firing => table(out, &ask(config, AdminCommand::AlertsFiring).await?, FIRING),
        args::AlertCommand::Events { limit } => {
            table(out, &ask(config, AdminCommand::AlertEvents { before: None, limit }).await?, EVENTS);
        }
        args::AlertCommand::Places => table(out, &ask(config, AdminCommand::AlertPlaceList).await?, PLACES),
        args::AlertCommand::AddPlace { name, kind, to_file, secret_file, done } => {
            let new = new_place(config, (name, &kind), &to_file, secret_file.as_deref())?;
            let made = ask(config, AdminCommand::AlertPlaceCreate { new, done: who(done)? }).await?;
            out.say(&made, || made["place_id"].as_str().unwrap_or_default().to_owned());
        }
        args::AlertCommand::RemovePlace { place, done } => {
            let id = place.parse().context("place (`tollgate alert places` shows them)")?;
            let gone = ask(config, AdminCommand::AlertPlaceRemove { place: id, done: who(done)? }).await?;
            out.say(&gone, || format!("{id} is gone"));
        }
        args::AlertCommand::Rules => table(out, &ask(config, AdminCommand::AlertRuleList).await?, RULES),
        args::AlertCommand::AddRule(asked) => {
            let condition = condition(&asked)?;
            let places = asked.places.iter().map(|place| place.parse::<AlertPlaceId>());
            let places = places.collect::<Result<_, _>>().context("--place (`tollgate alert places` shows them)")?;
            let new = Box::new(NewAlertRule { name: asked.name.clone(), condition, places });
            let made = ask(config, AdminCommand::AlertRuleCreate { new, done: who(asked.done)? }).await?;
            out.say(&made, || made["rule_id"].as_str().unwrap_or_default().to_owned());
        }
        args::AlertCommand::SwitchRule { rule, to, done } => {
            let rule = rule.parse().context("rule (`tollgate alert rules` shows them)")?;
            let change = Box::new(AlertChange { enabled: Some(to == "on"), ..AlertChange::default() });
            let after = ask(config, AdminCommand::AlertRuleChange { rule, change, done: who(done)? }).await?;
            out.say(&after, || format!("{rule} is {to}"));
        }
        args::AlertCommand::Silence { rule, duration, done } => {
            let rule = rule.parse().context("rule (`tollgate alert rules` shows them)")?;
            let silence = AlertSilence { until_ms: duration.as_deref().map(moment).transpose()? };
            let after = ask(config, AdminCommand::AlertSilence { rule, silence, done: who(done)? }).await?;
            let word = if after["silenced_until_ms"].is_null() { "sends again" } else { "is silenced" };
            out.say(&after, || format!("{rule} {word}"));
        }
        args::AlertCommand::RemoveRule { rule, done } => {
            let rule = rule.parse().context("rule (`tollgate alert rules` shows them)")?;
            let gone = ask(config, AdminCommand::AlertRuleRemove { rule, done: who(done)? }).await?;
            out.say(&gone, || format!("{rule} is gone"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(out: &Output, rows: &Value, columns: &'static [&'static str]) {
    out.table(rows, rows.as_array().map_or(&[], Vec::as_slice), columns);
}

/// Below which balance an account hears of it; without an amount: what is set.
pub async fn notice(config: &Path, asked: args::NoticeArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let account: AccountId = asked.account.parse().context("account (`tollgate account list` shows them)")?;
    let command = match asked.below.as_deref() {
        None => AdminCommand::NoticeShow { account },
        Some(below) => {
            let threshold_nano_usd = match below {
                "none" => None,
                below => Some(amount(below)?.nano()),
            };
            let wish = NoticeWish { threshold_nano_usd, mail: !asked.no_mail, webhook: !asked.no_webhook };
            AdminCommand::NoticeSet { account, wish, done: who(asked.done)? }
        }
    };
    let set = ask(config, command).await?;
    out.say(&set, || serde_json::to_string_pretty(&set).unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

/// Addresses are in files, because everybody on a machine sees what was typed.
fn new_place(
    config: &Path,
    (name, kind): (String, &str),
    to: &Path,
    secret: Option<&Path>,
) -> anyhow::Result<NewAlertPlace> {
    let settings = settings(config)?;
    let kind: AlertPlaceKind = kind
        .parse()
        .map_err(|()| anyhow!("--kind is one of {}", AlertPlaceKind::ALL.map(AlertPlaceKind::word).join(", ")))?;
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        anyhow::Ok(text.trim().to_owned())
    };
    let address = PlaceAddress { to: read(to)?, secret: secret.map(read).transpose()? };
    let signs = matches!(kind, AlertPlaceKind::Feishu | AlertPlaceKind::Dingtalk);
    if address.secret.is_some() && !signs {
        bail!("--secret-file is for places of kind feishu and dingtalk");
    }
    let shown = shown(kind, &address.to, &settings.video.webhooks).map_err(|refusal| anyhow!(refusal.message))?;
    let file = &settings.secrets_file;
    let text =
        std::fs::read_to_string(file).with_context(|| format!("{} (the first `serve` makes it)", file.display()))?;
    let secrets = Secrets::read(&text).context("the secrets file cannot be read")?;
    let sealed = seal(&secrets, &address, real::fill).context("the address cannot be sealed")?;
    Ok(NewAlertPlace { name, kind, shown, sealed })
}

fn condition(asked: &args::AlertRuleArgs) -> anyhow::Result<AlertCondition> {
    let accounts: Vec<AccountId> =
        asked.accounts.iter().map(|id| id.parse()).collect::<Result<_, _>>().context("--account")?;
    let amount_nano_usd = || {
        let text = asked.usd.as_deref().context("--usd says the bound")?;
        anyhow::Ok(amount(text)?.nano())
    };
    let window_minutes = asked.window_minutes;
    Ok(match asked.kind.as_str() {
        "balance" => AlertCondition::Balance { accounts, amount_nano_usd: amount_nano_usd()? },
        "spend" => AlertCondition::Spend { accounts, amount_nano_usd: amount_nano_usd()?, window_minutes },
        "faults" => AlertCondition::Faults {
            model: asked.model.clone(),
            provider: asked.provider.clone(),
            percent: asked.percent,
            count: asked.count.unwrap_or(10),
            window_minutes,
        },
        "unknown-tasks" => {
            AlertCondition::UnknownTasks { count: asked.count.unwrap_or(1), minutes: asked.minutes.unwrap_or(30) }
        }
        "drift" => AlertCondition::Drift { minutes: asked.minutes.unwrap_or(180) },
        "disk" => AlertCondition::Disk { bytes: asked.bytes.context("--bytes says the bound")? },
        "certificate" => AlertCondition::Certificate { days: asked.days },
        "key-end" => AlertCondition::KeyEnd { accounts, days: asked.days },
        other => bail!(
            "--kind {other:?} is none of balance, spend, faults, unknown-tasks, drift, disk, certificate, key-end"
        ),
    })
}
