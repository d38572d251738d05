//! What can be typed about workflows.

use super::ActorArgs;
use clap::Subcommand;
use std::path::PathBuf;
use tollgate_store::{AccountId, KeyId};

#[derive(Subcommand)]
pub enum WorkflowCommand {
    /// All workflows of the catalog: how far they are, and what keeps them there.
    List,
    /// A record as it stands.
    Show { slug: String },
    /// Hold records to the schema and its rules: every mistake with file, line, path and reason.
    /// Exits with 1 if there is one.
    Check {
        /// Records by themselves; left out, the workflows of the catalog with their packages and
        /// fixtures.
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Fix a contract: inputs, mapping and endpoint are checked against the API description, and
    /// the record becomes public.
    Lock {
        slug: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Let a contract change again; the record is public no more.
    Unlock {
        slug: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Run the fixture through the server that runs here; a workflow that passes is executable.
    Verify {
        slug: String,
        /// The account that pays.
        #[arg(long)]
        account: AccountId,
        /// A key of that account, by its id.
        #[arg(long)]
        key: KeyId,
        /// The most that it may cost, in USD.
        #[arg(long, default_value = "1")]
        max_cost: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Make a workflow wait for another run of its fixture.
    Withdraw {
        slug: String,
        #[command(flatten)]
        done: ActorArgs,
    },
    /// Who locked and unlocked a workflow, when and why; newest first.
    Moves {
        slug: String,
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
}
