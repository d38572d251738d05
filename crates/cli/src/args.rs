//! What can be typed. The doc comments are the help texts.

mod admin;
mod alerts;
mod init;
mod models;
mod money;
mod pauses;
mod people;
mod prices;
mod providers;
mod social;
mod usage;
mod video;
mod workflows;

pub use admin::{ActorArgs, AdminKeyCommand};
pub use alerts::{AlertCommand, AlertRuleArgs, NoticeArgs};
pub use init::InitArgs;
pub use models::{EnableArgs, ImportArgs, UpdateArgs};
pub use money::{CodesCommand, OrderCommand};
pub use pauses::{LogArgs, PauseCommand, PauseNames};
pub use people::{PersonCommand, PersonCreateArgs};
pub use prices::{CatalogCommand, QuoteArgs};
pub use providers::{ProviderAddArgs, ProviderCommand, ProviderTestArgs};
pub use social::{McpArgs, SocialCallArgs, SocialChangeArgs, SocialCommand, SocialExportArgs};
pub use usage::{SumArgs, SumFormat, UsageArgs};
pub use video::{GatewayArgs, VideoCommand, VideoWaitArgs};
pub use workflows::{RunInputArgs, RunWaitArgs, WorkflowCommand, WorkflowRunArgs};

use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A gateway to models that keeps exact money.
#[derive(Parser)]
#[command(name = "tollgate", version, about, propagate_version = true)]
pub struct Cli {
    /// The configuration file.
    #[arg(long, short, global = true, default_value = "tollgate.toml", value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON for scripts instead of tables for people.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Write a configuration and a catalog that work, after four questions.
    Init(InitArgs),
    /// Serve the configuration until SIGTERM or Ctrl-C.
    Serve {
        /// Begin with secrets for links and webhooks that this database does not know: those of
        /// before were lost, or are to end.
        #[arg(long)]
        new_secrets: bool,
    },
    /// Gateway and simulated providers in one process, with a funded account: try it at once.
    Demo(DemoArgs),
    /// The simulated provider alone.
    Sim {
        /// Where it listens; port 0 takes a free one.
        #[arg(long, default_value = "127.0.0.1:9099")]
        listen: SocketAddr,
    },
    /// Read configuration and catalog and name every mistake with file, line, field and reason.
    Check {
        /// Print the commented default configuration instead.
        #[arg(long)]
        print_default: bool,
    },
    /// The catalog: what is on sale at what price.
    Catalog {
        #[command(subcommand)]
        command: CatalogCommand,
    },
    /// The price of a request in a file, from the catalog alone.
    Quote(QuoteArgs),
    /// Accounts: the customers.
    Account {
        #[command(subcommand)]
        command: AccountCommand,
    },
    /// Keys: what applications present.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Admin keys: what operators present to /api/admin.
    AdminKey {
        #[command(subcommand)]
        command: AdminKeyCommand,
    },
    /// Alerts: what is watched, where it is sent, and what fires.
    Alert {
        #[command(subcommand)]
        command: AlertCommand,
    },
    /// Redemption codes: credit for whoever types one in.
    Codes {
        #[command(subcommand)]
        command: CodesCommand,
    },
    /// Orders: what customers pay in by themselves.
    Order {
        #[command(subcommand)]
        command: OrderCommand,
    },
    /// People: who signs in, and what they may do.
    Person {
        #[command(subcommand)]
        command: PersonCommand,
    },
    /// Models: stop selling one for a while without deleting it.
    Model {
        #[command(subcommand)]
        command: PauseCommand,
    },
    /// Providers: those that are known by name, those of the configuration, and pauses.
    Provider {
        #[command(subcommand)]
        command: ProviderCommand,
    },
    /// What operators did to accounts, keys and admin keys, with who did it and why; newest first.
    Log(LogArgs),
    /// The same as `account topup`.
    #[command(hide = true)]
    Topup(TopupArgs),
    /// Give back what a call was charged, once, to the pots it came from.
    Refund(RefundArgs),
    /// The usage log, newest first; with --from, added up.
    Usage(Box<UsageArgs>),
    /// What was sold and what it cost, by day, model and route.
    Margin(MarginArgs),
    /// The ledger.
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    },
    /// Receipts: signed proofs of what calls cost.
    Receipt {
        #[command(subcommand)]
        command: ReceiptCommand,
    },
    /// What time the ledger goes by, and what it thinks of the clock.
    Clock {
        #[command(subcommand)]
        command: Option<ClockCommand>,
    },
    /// Social data: pause and resume cells, see how they are.
    Social {
        #[command(subcommand)]
        command: SocialCommand,
    },
    /// Workflows: records in the catalog's folder, how far their contracts are, and runs of them.
    Workflow {
        #[command(subcommand)]
        command: WorkflowCommand,
    },
    /// Videos as a customer: make one, wait for it, fetch it. The key is in TOLLGATE_API_KEY.
    Video {
        #[command(subcommand)]
        command: VideoCommand,
    },
    /// Social data as tools for agents: the Model Context Protocol on stdin and stdout. The key is
    /// in TOLLGATE_API_KEY.
    Mcp(McpArgs),
    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },
}

#[derive(Args)]
pub struct DemoArgs {
    /// Where the gateway listens; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where its data is stored; a temporary folder that is removed at the end when left out.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Serve https and wss, with a certificate of its own that is stored with its data.
    #[arg(long)]
    pub tls: bool,
    /// Leave the shipped workflows as drafts; otherwise their fixtures are run before it is ready.
    #[arg(long, env = "TOLLGATE_DEMO_DRAFTS")]
    pub drafts: bool,
}

#[derive(Subcommand)]
pub enum AccountCommand {
    /// Open an account.
    Create {
        /// A name for people.
        name: String,
        /// The price groups it is in (repeat the option); `auto_groups` of the catalog is the order
        /// they are tried. Left out: default.
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// Trial credit in USD to begin with.
        #[arg(long, value_name = "USD")]
        trial: Option<String>,
        /// When it expires: after a time such as 30d, or on a day such as 2026-12-31 (00:00 UTC).
        #[arg(long, value_name = "WHEN", requires = "trial")]
        expires: Option<String>,
        #[command(flatten)]
        limits: AccountLimits,
    },
    /// All accounts.
    List,
    /// One account with its keys and the trial credit that expires.
    Show { account: String },
    /// Change the name, the price groups or the spending limits of an account; `none` lifts a
    /// limit.
    Update {
        account: String,
        /// A new name.
        #[arg(long)]
        name: Option<String>,
        /// All the price groups it is in from now on (repeat the option).
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        #[command(flatten)]
        limits: AccountLimits,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Begin nothing new for an account: its calls are refused with 403, what runs ends and is
    /// settled, its records stay readable.
    Suspend {
        account: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Close an account in which nothing runs: its keys are revoked, nobody is in it any more, and
    /// after 30 days nothing is known of its people. Ledger and usage log stay.
    Close {
        account: String,
        /// What is left of its money and is given up, exactly; left out: nothing may be left. Pay
        /// it out first with a negative `account adjust`.
        #[arg(long, value_name = "USD")]
        give_up: Option<String>,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Serve a suspended account again, or open one that was closed within the last 30 days.
    Reopen {
        account: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Tell an address of the end of every video task of an account, where the request names none
    /// of its own.
    Webhook {
        account: String,
        /// https, and not inside; `[webhooks]` in the configuration says what else may be notified.
        #[arg(required_unless_present = "none")]
        url: Option<String>,
        /// Tell nobody any more.
        #[arg(long, conflicts_with = "url")]
        none: bool,
    },
    /// Correct a balance: add credit, or take it away with a negative amount. Never below zero.
    Adjust(AdjustArgs),
    /// Below which balance its owners and its webhook hear of it; without --below: what is set.
    Notice(NoticeArgs),
    /// What an account had, what came and went, and what it has, for a month such as 2026-10.
    Statement {
        account: String,
        month: String,
        /// The time zone of the month and its days.
        #[arg(long, default_value = "UTC")]
        tz: String,
        /// csv, html or pdf; with --json the record.
        #[arg(long, default_value = "csv", value_parser = ["csv", "html", "pdf"])]
        format: String,
    },
    /// Top-ups, adjustments, refunds and expired credit, newest first, with who did it and why.
    History {
        account: String,
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Continue before this entry.
        #[arg(long)]
        before: Option<i64>,
    },
    /// Add paid credit (or trial credit with --trial).
    Topup(TopupArgs),
}

#[derive(Args)]
pub struct TopupArgs {
    pub account: String,
    /// An exact amount such as 12.5 (at most nine decimal places).
    pub usd: String,
    /// Give trial credit instead.
    #[arg(long)]
    pub trial: bool,
    /// When the trial credit expires: after a time such as 30d, or on a day such as 2026-12-31
    /// (00:00 UTC).
    #[arg(long, value_name = "WHEN", requires = "trial")]
    pub expires: Option<String>,
    /// Your own id of the payment; repeating it changes nothing.
    #[arg(long)]
    pub id: Option<String>,
    #[arg(long, default_value = "top-up by the operator")]
    pub reason: String,
    /// Who does it.
    #[arg(long, default_value = "command line")]
    pub actor: String,
}

#[derive(Args)]
pub struct AdjustArgs {
    pub account: String,
    /// An exact amount such as 12.5, or -12.5 to take it away.
    #[arg(allow_hyphen_values = true)]
    pub usd: String,
    /// Why. It is stored with the entry.
    #[arg(long)]
    pub reason: String,
    /// Who does it.
    #[arg(long, default_value = "command line")]
    pub actor: String,
    /// Correct trial credit instead of paid credit.
    #[arg(long)]
    pub trial: bool,
    /// When added trial credit expires.
    #[arg(long, value_name = "WHEN", requires = "trial")]
    pub expires: Option<String>,
    /// Your own id of the correction; repeating it changes nothing.
    #[arg(long)]
    pub id: Option<String>,
}

#[derive(Args)]
pub struct RefundArgs {
    pub call: String,
    /// Less than the whole charge.
    #[arg(long, value_name = "USD")]
    pub amount: Option<String>,
    #[arg(long, default_value = "refund by the operator")]
    pub reason: String,
    /// Who does it.
    #[arg(long, default_value = "command line")]
    pub actor: String,
}

/// Spending limits of an account, over all its keys.
#[derive(Args)]
pub struct AccountLimits {
    /// Spend at most this much in a UTC day.
    #[arg(long, value_name = "USD")]
    pub limit_day: Option<String>,
    /// Spend at most this much in a UTC month.
    #[arg(long, value_name = "USD")]
    pub limit_month: Option<String>,
}

/// Spending limits of a key.
#[derive(Args)]
pub struct KeyLimits {
    /// Spend at most this much, ever.
    #[arg(long, value_name = "USD", alias = "cap")]
    pub limit_total: Option<String>,
    /// Spend at most this much in a UTC day.
    #[arg(long, value_name = "USD")]
    pub limit_day: Option<String>,
    /// Spend at most this much in a UTC month.
    #[arg(long, value_name = "USD")]
    pub limit_month: Option<String>,
}

#[derive(Subcommand)]
pub enum KeyCommand {
    /// Make a key; its secret is shown once.
    Create {
        account: String,
        /// A name for people.
        #[arg(long, default_value = "")]
        name: String,
        /// What it is for: `call`, or `manage` for /api/account, which buys nothing.
        #[arg(long, default_value = "call", value_parser = ["call", "manage"])]
        scope: String,
        /// Stop working after this time, such as 12h or 30d.
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
        /// Only these models (repeat the option).
        #[arg(long = "model", value_name = "MODEL")]
        models: Vec<String>,
        /// Only from these addresses or networks (repeat the option).
        #[arg(long = "ip", value_name = "CIDR")]
        ips: Vec<String>,
        #[command(flatten)]
        limits: KeyLimits,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Give a key a new secret, shown once; the one before works a while longer.
    Rotate {
        key: String,
        /// How long the secret before works, such as 1h or 7d.
        #[arg(long, default_value = "1d", value_name = "DURATION")]
        grace: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Change what a key may do; `none` lifts a restriction. Limits are in force with its next
    /// call, the rest within seconds.
    Update {
        key: String,
        /// A new name.
        #[arg(long)]
        name: Option<String>,
        /// When it stops working: after a time such as 12h or 30d, or on a day such as 2026-12-31
        /// (00:00 UTC).
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
        /// Only these models from now on (repeat the option).
        #[arg(long = "model", value_name = "MODEL")]
        models: Vec<String>,
        /// Only from these addresses or networks from now on (repeat the option).
        #[arg(long = "ip", value_name = "CIDR")]
        ips: Vec<String>,
        #[command(flatten)]
        limits: KeyLimits,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// The keys of an account.
    List { account: String },
    /// Stop a key; it is refused within seconds on every replica.
    Revoke {
        key: String,
        #[command(flatten)]
        done: ActorArgs,
    },
}

#[derive(Args)]
pub struct MarginArgs {
    /// The last so many days, today included (UTC).
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=92))]
    pub days: u32,
    /// What is added up.
    #[arg(long, default_value = "model", value_parser = ["day", "model", "route", "all"])]
    pub by: String,
}

#[derive(Subcommand)]
pub enum LedgerCommand {
    /// Recompute every balance, charge and hash from the entries; exits 1 and shows the rows that
    /// break an invariant.
    Verify {
        /// Let nothing pass that a healthy ledger may have: losses, entries from before there was a
        /// hash chain.
        #[arg(long, conflicts_with = "online")]
        strict: bool,
        /// Only what has changed since the running server looked last.
        #[arg(long)]
        online: bool,
    },
    /// Write the entries, oldest first, as CSV or JSON lines.
    Export(ExportArgs),
    /// Compare a provider's bill (CSV or JSON lines) with our calls; exits 1 when they differ by
    /// more than they may.
    Reconcile(ReconcileArgs),
}

#[derive(Args)]
pub struct ExportArgs {
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    pub format: ExportFormat,
    /// Only this account.
    #[arg(long)]
    pub account: Option<String>,
    /// From this time on: 2026-02-01, 2026-02-01T12:00:00Z, or seconds since 1970.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Before this time.
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Where to; standard output when left out.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    Csv,
    Jsonl,
}

#[derive(Args)]
pub struct ReconcileArgs {
    /// Lines with an amount in USD, and either our call id or model, input tokens, output tokens
    /// and time.
    pub file: PathBuf,
    /// Only our calls to this provider.
    #[arg(long)]
    pub provider: Option<String>,
    /// Our calls from this time on; from the first line of the file when left out.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Our calls before this time; up to the last line of the file when left out.
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// What the provider is expected to bill for one dollar of ours.
    #[arg(long, default_value = "1", value_name = "RATIO")]
    pub ratio: String,
    /// Differences up to this part of what is expected are fine, in percent.
    #[arg(long, default_value = "1", value_name = "PERCENT")]
    pub tolerance: String,
    /// Differences up to this much are fine, whatever part they are.
    #[arg(long, default_value = "0.000001", value_name = "USD")]
    pub tolerance_usd: String,
    /// How far apart in time a line without a call id and its call may be.
    #[arg(long, default_value = "2m", value_name = "DURATION")]
    pub window: String,
}

#[derive(Subcommand)]
pub enum ClockCommand {
    /// The clock is right, whatever the ledger thinks of it: you have compared it with another.
    /// Trial credit past its time lapses.
    Accept,
}

#[derive(Subcommand)]
pub enum ReceiptCommand {
    /// Check a receipt without any network: the signature, and the charge computed again from the
    /// receipt's own lines. Exits 1 if it does not hold.
    Verify {
        /// The receipt, as `GET /v1/usage/{call_id}/receipt` gave it; `-` reads it from standard
        /// input.
        file: PathBuf,
        /// A saved copy of `GET /.well-known/tollgate-receipts`; without it, the keys of this
        /// gateway's own store.
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
        /// A saved copy of `GET /api/pricing/versions/{price_id}`: was the receipt computed with
        /// this price?
        #[arg(long, value_name = "FILE")]
        price: Option<PathBuf>,
    },
    /// The price that a receipt names by its `price_id`, whatever the catalog says today.
    Price { price_id: String },
    /// The receipt of a call that has ended.
    Show {
        #[arg(long)]
        account: String,
        call: String,
    },
    /// The public keys, as they are published.
    Keys,
    /// Begin a new key and erase the secret of the old one, which goes on verifying. Every replica
    /// signs with the new one at once.
    Rotate,
}
