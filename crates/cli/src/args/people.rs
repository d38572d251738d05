//! What can be typed about people.

use super::ActorArgs;
use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub enum PersonCommand {
    /// Make a person, and a one-time link to sign in with.
    Create(PersonCreateArgs),
    /// All people, with what they may do.
    List,
    /// A one-time link to sign in with, for a person who cannot.
    Link {
        email: String,
        #[command(flatten)]
        done: ActorArgs,
    },
}

#[derive(Args)]
pub struct PersonCreateArgs {
    pub email: String,
    /// May do everything in the house.
    #[arg(long, conflicts_with = "auditor")]
    pub operator: bool,
    /// May read everything in the house.
    #[arg(long)]
    pub auditor: bool,
    /// An account they are in.
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// What they may do in that account: owner, member or viewer.
    #[arg(long, default_value = "owner")]
    pub role: String,
    /// For people.
    #[arg(long, default_value = "")]
    pub name: String,
    #[command(flatten)]
    pub done: ActorArgs,
}
