//! `person create|list|link`, and the token of the first operator that `serve` prints.

use crate::admin_keys::who;
use crate::args;
use crate::keys::ask;
use crate::real;
use crate::serve::settings;
use crate::show::Output;
use anyhow::{Context as _, bail};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use tollgate_gateway::app::App;
use tollgate_gateway::people::post::is_address;
use tollgate_gateway::people::tokens::OneTimeToken;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AccountRole, HouseRole, Membership, NewMailToken, NewPerson, TokenPurpose};

const PEOPLE: &[&str] =
    &["person_id", "email", "name", "house_role", "created_at_ms", "verified_at_ms", "disabled_at_ms"];
/// How long a printed link lives.
pub const LINK_MS: i64 = 24 * 3_600_000;
/// People of a page.
const PAGE: u32 = 500;

pub async fn person(config: &Path, command: args::PersonCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::PersonCommand::Create(asked) => {
            let (token, new) = wished(&asked)?;
            let new = Box::new(new);
            let mut made = ask(config, AdminCommand::PersonCreate { new, done: who(asked.done)? }).await?;
            show_link(config, &mut made, &token.text, out)?;
        }
        args::PersonCommand::Link { email, done } => {
            let token = new_token();
            let command = AdminCommand::PersonLink { email, token: stored(&token), done: who(done)? };
            let mut found = ask(config, command).await?;
            show_link(config, &mut found, &token.text, out)?;
        }
        args::PersonCommand::List => {
            let mut all = Vec::new();
            let mut after = None;
            loop {
                let page = ask(config, AdminCommand::PersonList { after, limit: PAGE }).await?;
                let rows = page.as_array().cloned().unwrap_or_default();
                after = rows.last().and_then(|last| last["person_id"].as_str()).and_then(|id| id.parse().ok());
                let last = rows.len() < PAGE as usize;
                all.extend(rows);
                if last {
                    break;
                }
            }
            out.table(&json!(all), &all, PEOPLE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn wished(asked: &args::PersonCreateArgs) -> anyhow::Result<(OneTimeToken, NewPerson)> {
    if !is_address(asked.email.trim()) {
        bail!("{:?} is no e-mail address", asked.email);
    }
    let house_role = match (asked.operator, asked.auditor) {
        (true, _) => Some(HouseRole::Operator),
        (_, true) => Some(HouseRole::Auditor),
        _ => None,
    };
    let membership = match &asked.account {
        Some(account) => {
            let account = account.parse().context("--account (`tollgate account list` shows them)")?;
            let role: AccountRole = asked.role.parse().context("--role is owner, member or viewer")?;
            Some(Membership { account, role })
        }
        None => None,
    };
    let token = new_token();
    let new = NewPerson { token: Some(stored(&token)), house_role, membership, ..somebody(&asked.email, &asked.name) };
    Ok((token, new))
}

/// Somebody whom the owner of the machine knows.
pub fn somebody(email: &str, name: &str) -> NewPerson {
    NewPerson {
        email: email.trim().to_owned(),
        name: name.to_owned(),
        locale: "en".to_owned(),
        time_zone: String::new(),
        verified: true,
        wished_account: None,
        password: None,
        house_role: None,
        membership: None,
        token: None,
        mail: None,
    }
}

pub fn new_token() -> OneTimeToken {
    OneTimeToken::new(real::fill)
}

pub fn stored(token: &OneTimeToken) -> NewMailToken {
    let expires_at = real::now_ms().saturating_add(LINK_MS);
    NewMailToken { hash: token.hash, purpose: TokenPurpose::SignIn, expires_at }
}

/// Shown once; only its hash is stored.
fn show_link(config: &Path, person: &mut serde_json::Value, token: &str, out: &Output) -> anyhow::Result<()> {
    let settings = settings(config)?;
    let link = settings.reached_at().map(|base| format!("{base}/sign-in#token={token}"));
    person["token"] = json!(token);
    person["link"] = json!(link);
    out.say(person, || link.clone().unwrap_or_else(|| token.to_owned()));
    if !out.json {
        eprintln!("(works once, within a day; POST /api/session/link takes the token)");
        if !settings.people.enabled {
            eprintln!("(people do not sign in yet: set `enabled = true` in [people])");
        }
    }
    Ok(())
}

/// Where people sign in and nobody operates, whoever reads this may.
pub async fn first_operator(app: &App) -> anyhow::Result<()> {
    if !app.settings.people.enabled || app.store.has_operator().await? {
        return Ok(());
    }
    let token = new_token();
    let expires_at = app.world.now_ms().saturating_add(LINK_MS);
    let stored = NewMailToken { hash: token.hash, purpose: TokenPurpose::FirstOperator, expires_at };
    app.store.create_token(stored, None).await?;
    let base = app.settings.reached_at().unwrap_or_default();
    // To whoever started it, and not to the log.
    eprintln!(
        "Nobody operates this gateway yet. Whoever opens this within a day does:\n{base}/first-operator#token={}",
        token.text
    );
    Ok(())
}
