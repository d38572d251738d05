//! What can be typed about workflows.

use super::{ActorArgs, GatewayArgs};
use clap::{Args, Subcommand};
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
    /// As a customer: what a run can cost at most, and what is to be confirmed. Nothing is begun.
    /// The key is in TOLLGATE_API_KEY.
    Quote {
        #[command(flatten)]
        inputs: RunInputArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// As a customer: quote a run, have it confirmed, begin it and wait for its end, step by step.
    /// Exits with 1 if it is not completed.
    Run(WorkflowRunArgs),
    /// As a customer: wait until a run rests. Exits with 1 if it is not completed.
    Wait {
        /// Its id, as its beginning gave it.
        run: String,
        #[command(flatten)]
        wait: RunWaitArgs,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// As a customer: let a run that was stopped go on, the same task first.
    Resume {
        run: String,
        /// The most that the whole run may cost from now on, in USD.
        #[arg(long, value_name = "USD")]
        max_cost: Option<String>,
        /// Send the step once more whose charge nobody can tell. It may be paid twice.
        #[arg(long)]
        resubmit: bool,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// As a customer: end a run before its next step.
    Cancel {
        run: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// As a customer: the runs of the account, newest first.
    Runs {
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
        /// Continue after this run.
        #[arg(long, value_name = "RUN")]
        after: Option<String>,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}

#[derive(Args)]
pub struct RunInputArgs {
    pub slug: String,
    /// An input of the record: its text, number or word, or @FILE for a text in a file (repeat the
    /// option).
    #[arg(long = "input", short, value_name = "NAME=VALUE")]
    pub inputs: Vec<String>,
    /// A file that is uploaded for an asset (repeat the option).
    #[arg(long = "file", short, value_name = "NAME=PATH")]
    pub files: Vec<String>,
}

#[derive(Args)]
pub struct RunWaitArgs {
    /// Seconds between two looks.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub every: u64,
    /// Give up after so many seconds. The run goes on all the same.
    #[arg(long, default_value_t = 86_400)]
    pub patience: u64,
    /// A folder for the files that steps made.
    #[arg(long, short, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Args)]
pub struct WorkflowRunArgs {
    #[command(flatten)]
    pub inputs: RunInputArgs,
    /// Confirm what the quote asks for: the privacy sheet, its cost and the inputs it names.
    /// Without it you are asked, and where nobody can be asked nothing is begun.
    #[arg(long, short, alias = "confirm")]
    pub yes: bool,
    /// The most that it may cost, in USD. Left out: what the quote says.
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<String>,
    /// Whoever repeats it with the same inputs gets the same run.
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    /// Print the run as soon as it is begun.
    #[arg(long)]
    pub no_wait: bool,
    #[command(flatten)]
    pub wait: RunWaitArgs,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}
