//! What can be typed about redemption codes and orders.

use super::ActorArgs;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum CodesCommand {
    /// Make redemption codes; they are shown once.
    Create {
        /// What each is worth, in USD.
        usd: String,
        /// How many.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        count: u32,
        /// Trial credit instead of paid.
        #[arg(long)]
        trial: bool,
        /// How many of them an account may use.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        per_account: u32,
        /// Stop working after this time, such as 12h or 30d.
        #[arg(long, value_name = "DURATION")]
        ends: Option<String>,
        /// For people.
        #[arg(long, default_value = "")]
        note: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Batches of codes and how many were used, newest first.
    List {
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// What was not used of a batch works no more.
    Revoke {
        batch: String,
        #[command(flatten)]
        done: ActorArgs,
    },
}

#[derive(Subcommand)]
pub enum OrderCommand {
    /// Orders of customers, newest first.
    List {
        /// Of this account only.
        #[arg(long)]
        account: Option<String>,
        /// In this state only, such as pending or mismatch.
        #[arg(long)]
        state: Option<String>,
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
    },
    /// One order with all that is known of it.
    Show { order: String },
    /// Let go of what an account still owes for an order.
    Forgive {
        order: String,
        #[command(flatten)]
        done: ActorArgs,
    },
}
