//! What can be typed about alerts.

use super::ActorArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum AlertCommand {
    /// Everything that fires now, the longest first.
    Firing,
    /// What fired and ceased to, newest first, and what its places said.
    Events {
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
    },
    /// Where alerts go.
    Places,
    /// A new place for alerts.
    AddPlace {
        /// For people.
        name: String,
        /// webhook, mail, slack, discord, feishu, dingtalk, wecom or telegram.
        #[arg(long)]
        kind: String,
        /// A file with the address: a URL, or an e-mail address.
        #[arg(long, value_name = "FILE")]
        to_file: std::path::PathBuf,
        /// A file with what signatures are made with, for feishu and dingtalk.
        #[arg(long, value_name = "FILE")]
        secret_file: Option<std::path::PathBuf>,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Nothing is sent to a place any more.
    RemovePlace {
        place: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// The rules of alerts.
    Rules,
    /// A new rule of alerts.
    AddRule(Box<AlertRuleArgs>),
    /// Look at a rule or not.
    SwitchRule {
        rule: String,
        /// on or off.
        #[arg(value_parser = ["on", "off"])]
        to: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Send nothing about a rule for so long, such as 2h; without --for it is sent again.
    Silence {
        rule: String,
        #[arg(long = "for", value_name = "DURATION")]
        duration: Option<String>,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// End a rule of alerts.
    RemoveRule {
        rule: String,
        #[command(flatten)]
        done: ActorArgs,
    },
}

#[derive(Args)]
pub struct AlertRuleArgs {
    /// For people; it begins every message.
    pub name: String,
    /// balance, spend, faults, unknown-tasks, drift, disk, certificate or key-end.
    #[arg(long)]
    pub kind: String,
    /// Where it is sent; may be given several times.
    #[arg(long = "place")]
    pub places: Vec<String>,
    /// Of balance, spend and key-end: this account; may be given several times.
    #[arg(long = "account")]
    pub accounts: Vec<String>,
    /// Of balance and spend: the bound.
    #[arg(long)]
    pub usd: Option<String>,
    /// Of spend and faults: how far back.
    #[arg(long, default_value_t = 60)]
    pub window_minutes: i64,
    /// Of faults: of this model only.
    #[arg(long)]
    pub model: Option<String>,
    /// Of faults: attempts along routes of this provider.
    #[arg(long)]
    pub provider: Option<String>,
    /// Of faults: the share that fails.
    #[arg(long, default_value_t = 20)]
    pub percent: i64,
    /// Of faults (10) and unknown-tasks (1): so many at least.
    #[arg(long)]
    pub count: Option<i64>,
    /// Of unknown-tasks (30) and drift (180): for so long.
    #[arg(long)]
    pub minutes: Option<i64>,
    /// Of disk: less is free.
    #[arg(long)]
    pub bytes: Option<i64>,
    /// Of certificate and key-end: so soon.
    #[arg(long, default_value_t = 14)]
    pub days: i64,
    #[command(flatten)]
    pub done: ActorArgs,
}

#[derive(Args)]
pub struct NoticeArgs {
    pub account: String,
    /// An amount, or `none`.
    #[arg(long, value_name = "USD")]
    pub below: Option<String>,
    /// Not by mail.
    #[arg(long)]
    pub no_mail: bool,
    /// Not by webhook.
    #[arg(long)]
    pub no_webhook: bool,
    #[command(flatten)]
    pub done: ActorArgs,
}
