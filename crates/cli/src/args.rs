//! What can be typed. The doc comments are the help texts.

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
    /// Serve the configuration until SIGTERM or Ctrl-C.
    Serve,
    /// Gateway and simulated providers in one process, with a funded account: try it at once.
    Demo(Demo),
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
    /// Accounts: the customers.
    Account {
        #[command(subcommand)]
        command: Account,
    },
    /// Keys: what applications present.
    Key {
        #[command(subcommand)]
        command: Key,
    },
    /// The same as `account topup`.
    #[command(hide = true)]
    Topup(Topup),
    /// The usage log, newest first.
    Usage(Usage),
    /// The ledger.
    Ledger {
        #[command(subcommand)]
        command: Ledger,
    },
    /// Print a completion script for a shell.
    Completions { shell: clap_complete::Shell },
}

#[derive(Args)]
pub struct Demo {
    /// Where the gateway listens; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where its data is kept; a temporary folder that is removed at the end when left out.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Account {
    /// Open an account.
    Create {
        /// A name for people.
        name: String,
        /// Price groups, in the order they are tried.
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// Trial credit in USD to begin with.
        #[arg(long, value_name = "USD")]
        trial: Option<String>,
    },
    /// All accounts.
    List,
    /// One account with its keys.
    Show { account: String },
    /// Add paid credit (or trial credit with --trial).
    Topup(Topup),
}

#[derive(Args)]
pub struct Topup {
    pub account: String,
    /// An exact amount such as 12.5 (at most nine decimal places).
    pub usd: String,
    /// Give trial credit instead.
    #[arg(long)]
    pub trial: bool,
    /// Your own id of the payment; repeating it changes nothing.
    #[arg(long)]
    pub id: Option<String>,
    #[arg(long, default_value = "top-up by the operator")]
    pub reason: String,
}

#[derive(Subcommand)]
pub enum Key {
    /// Make a key; its secret is shown once.
    Create {
        account: String,
        /// A name for people.
        #[arg(long, default_value = "")]
        name: String,
        /// Stop working after this time, such as 12h or 30d.
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
        /// Only these models (repeat the option).
        #[arg(long = "model", value_name = "MODEL")]
        models: Vec<String>,
        /// Only from these addresses or networks (repeat the option).
        #[arg(long = "ip", value_name = "CIDR")]
        ips: Vec<String>,
        /// Spend at most this much, ever.
        #[arg(long, value_name = "USD")]
        cap: Option<String>,
    },
    /// The keys of an account.
    List { account: String },
    /// Stop a key; it is refused within seconds on every replica.
    Revoke { key: String },
}

#[derive(Args)]
pub struct Usage {
    /// Only this account.
    #[arg(long)]
    pub account: Option<String>,
    /// One call, with its whole calculation (needs --account).
    #[arg(long, requires = "account")]
    pub call: Option<String>,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Continue before this call id.
    #[arg(long)]
    pub before: Option<String>,
}

#[derive(Subcommand)]
pub enum Ledger {
    /// Recompute every balance and charge from the entries; exits 1 and shows the rows that break an invariant.
    Verify,
}
