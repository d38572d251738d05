//! `admin-key create|list|revoke|log`: who may use the operator's API.

use crate::amounts::moment;
use crate::args;
use crate::keys::ask;
use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use tollgate_gateway::routes::switches::AUTO;
use tollgate_store::admin::AdminCommand;
use tollgate_store::{AdminKeyId, Attribution, AuditPage, NewAdminKey};

const KEYS: &[&str] = &["admin_key_id", "key_prefix", "name", "created_at_ms", "expires_at_ms", "revoked_at_ms"];
const LOG: &[&str] = &["at_ms", "action", "subject", "actor", "reason"];

pub async fn admin_key(config: &Path, command: args::AdminKeyCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::AdminKeyCommand::Create { name, expires, done } => {
            let expires_at = expires.as_deref().map(moment).transpose()?;
            let secret = real::new_admin_secret();
            let key = NewAdminKey { name, expires_at, done: who(done)? };
            let mut made = ask(config, AdminCommand::AdminKeyCreate { key, secret: secret.clone() }).await?;
            made["secret"] = json!(secret);
            out.say(&made, || secret.clone());
            if !out.json {
                eprintln!("(shown once; only its hash is stored)");
            }
        }
        args::AdminKeyCommand::List => {
            let keys = ask(config, AdminCommand::AdminKeyList).await?;
            out.table(&keys, keys.as_array().map_or(&[], Vec::as_slice), KEYS);
        }
        args::AdminKeyCommand::Revoke { key, done } => {
            let id: AdminKeyId = key.parse().context("key (`tollgate admin-key list` shows them)")?;
            let revoked = ask(config, AdminCommand::AdminKeyRevoke { key: id, done: who(done)? }).await?;
            out.say(&revoked, || format!("{id} is revoked"));
        }
        args::AdminKeyCommand::Log { limit } => {
            let rows = ask(config, AdminCommand::Audit { page: AuditPage { limit, ..AuditPage::default() } }).await?;
            out.table(&rows, rows.as_array().map_or(&[], Vec::as_slice), LOG);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Who does it, and why: what is stored with a change says both. The gateway's own name is nobody
/// else's.
pub fn who(done: args::ActorArgs) -> anyhow::Result<Attribution> {
    if done.actor == AUTO || done.actor.trim().is_empty() || done.reason.trim().is_empty() {
        bail!("--actor says who and --reason why; {AUTO:?} is the name of the gateway itself");
    }
    Ok(Attribution::by(done.actor, done.reason))
}
