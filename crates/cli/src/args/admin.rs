//! What can be typed about admin keys.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum AdminKeyCommand {
    /// Make an admin key; its secret is shown once.
    Create {
        /// Who uses it: it stands in the log beside everything that is done with it.
        name: String,
        /// Stop working after this time, such as 12h or 30d.
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// All admin keys.
    List,
    /// Stop an admin key at once.
    Revoke {
        key: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Who made and revoked admin keys, when and why; newest first.
    Log {
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
}

#[derive(Args, Clone)]
pub struct ActorArgs {
    /// Why. It is stored with the change.
    #[arg(long, default_value = "by the operator")]
    pub reason: String,
    /// Who does it.
    #[arg(long, default_value = "command line")]
    pub actor: String,
}
