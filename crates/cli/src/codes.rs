//! `codes create|list|revoke` and `order list|show|forgive`: money in.

use crate::admin_keys::who;
use crate::amounts::{amount, moment};
use crate::args;
use crate::keys::ask;
use crate::real;
use crate::show::Output;
use anyhow::Context as _;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use tollgate_gateway::payments::codes::{new_code, read};
use tollgate_store::admin::AdminCommand;
use tollgate_store::{NewCodeBatch, OrderFilter, OrderState, Pot};

const BATCHES: &[&str] = &[
    "batch_id",
    "amount_nano_usd",
    "pot",
    "count",
    "used",
    "per_account",
    "created_at_ms",
    "ends_at_ms",
    "revoked_at_ms",
    "note",
];
const ORDERS: &[&str] = &[
    "order_id",
    "account_id",
    "state",
    "amount_minor",
    "currency",
    "credit_nano_usd",
    "taken_back_nano_usd",
    "owed_nano_usd",
    "created_at_ms",
    "note",
];

pub async fn codes(config: &Path, command: args::CodesCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::CodesCommand::Create { usd, count, trial, per_account, ends, note, done } => {
            let made: Vec<String> = (0..count).map(|_| new_code(real::fill)).collect();
            let done = who(done)?;
            let batch = NewCodeBatch {
                amount: amount(&usd)?,
                pot: if trial { Pot::Trial } else { Pot::Paid },
                per_account,
                ends_at: ends.as_deref().map(moment).transpose()?,
                note,
                actor: done.actor,
                reason: done.reason,
                hashes: made.iter().filter_map(|code| read(code)).collect(),
            };
            let mut record = ask(config, AdminCommand::CodesCreate { batch: Box::new(batch) }).await?;
            record["codes"] = json!(made);
            out.say(&record, || made.join("\n"));
            if !out.json {
                eprintln!("(shown once; only their hashes are stored)");
            }
        }
        args::CodesCommand::List { limit } => {
            let batches = ask(config, AdminCommand::CodesList { before: None, limit }).await?;
            out.table(&batches, batches.as_array().map_or(&[], Vec::as_slice), BATCHES);
        }
        args::CodesCommand::Revoke { batch, done } => {
            let id = batch.parse().context("batch (`tollgate codes list` shows them)")?;
            let revoked = ask(config, AdminCommand::CodesRevoke { batch: id, done: who(done)? }).await?;
            out.say(&revoked, || format!("{id} is revoked"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn order(config: &Path, command: args::OrderCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::OrderCommand::List { account, state, limit } => {
            let state = match state {
                None => None,
                Some(text) => {
                    let known = OrderState::ALL.into_iter().find(|state| state.name() == text);
                    Some(known.with_context(|| {
                        format!("--state is one of {}", OrderState::ALL.map(OrderState::name).join(", "))
                    })?)
                }
            };
            let account = account.map(|text| text.parse()).transpose().context("--account")?;
            let filter = OrderFilter { account, state, before: None, limit };
            let orders = ask(config, AdminCommand::OrderList { filter }).await?;
            out.table(&orders, orders.as_array().map_or(&[], Vec::as_slice), ORDERS);
        }
        args::OrderCommand::Show { order } => {
            let id = order.parse().context("order (`tollgate order list` shows them)")?;
            let shown = ask(config, AdminCommand::OrderShow { order: id }).await?;
            out.say(&shown, || serde_json::to_string_pretty(&shown).unwrap_or_default());
        }
        args::OrderCommand::Forgive { order, done } => {
            let id = order.parse().context("order (`tollgate order list` shows them)")?;
            let after = ask(config, AdminCommand::OrderForgive { order: id, done: who(done)? }).await?;
            out.say(&after, || format!("nothing is owed for {id} any more"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
