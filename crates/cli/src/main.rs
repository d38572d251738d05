//! The executable. Reads the command line and the environment once, and hands values to the rooms
//! below.

// `println!` panics when its reader has left; `show::print` does not.
#![deny(clippy::print_stdout)]
#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod accounts;
mod admin_keys;
mod alerts;
mod amounts;
mod args;
mod catalog;
mod clock;
mod codes;
mod demo;
mod export;
mod http;
mod init;
mod keys;
mod ledger;
mod mcp;
mod models;
mod pauses;
mod people;
mod providers;
mod quote;
mod real;
mod receipts;
mod serve;
mod show;
mod social;
mod sums;
mod video;
mod workflow_runs;
mod workflows;

use clap::{CommandFactory as _, Parser as _};
use std::process::ExitCode;
use tollgate_store::PauseKind;

/// jemalloc gives memory back in the background; measured best for long-running proxies by several
/// teams.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    real::keep_files_private();
    let cli = args::Cli::parse();
    if let args::Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut args::Cli::command(), "tollgate", &mut script);
        show::print(&String::from_utf8_lossy(&script));
        return ExitCode::SUCCESS;
    }
    match real::runtime().block_on(run(cli)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tollgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: args::Cli) -> anyhow::Result<ExitCode> {
    use args::Command;
    let out = show::Output { json: cli.json, width: real::width() };
    match cli.command {
        Command::Init(asked) => init::init(&cli.config, &asked, &out),
        Command::Serve { new_secrets } => serve::serve(&cli.config, new_secrets).await.map(|()| ExitCode::SUCCESS),
        Command::Demo(demo) => demo::demo(demo, &out).await.map(|()| ExitCode::SUCCESS),
        Command::Sim { listen } => demo::sim(listen, &out).await.map(|()| ExitCode::SUCCESS),
        Command::Check { print_default } => Ok(serve::check(&cli.config, print_default, &out).await),
        Command::Catalog { command } => Ok(catalog::run(&cli.config, command, &out).await),
        Command::Quote(asked) => quote::quote(&cli.config, &asked, &out).await,
        Command::Account { command } => accounts::account(&cli.config, command, &out).await,
        Command::Key { command } => keys::key(&cli.config, command, &out).await,
        Command::AdminKey { command } => admin_keys::admin_key(&cli.config, command, &out).await,
        Command::Alert { command } => alerts::alert(&cli.config, command, &out).await,
        Command::Codes { command } => codes::codes(&cli.config, command, &out).await,
        Command::Order { command } => codes::order(&cli.config, command, &out).await,
        Command::Person { command } => people::person(&cli.config, command, &out).await,
        Command::Model { command } => pauses::pausable(&cli.config, PauseKind::Model, command, &out).await,
        Command::Provider { command } => providers::provider(&cli.config, command, &out).await,
        Command::Log(log) => pauses::log(&cli.config, log, &out).await,
        Command::Refund(refund) => accounts::refund(&cli.config, refund, &out).await,
        Command::Topup(topup) => accounts::account(&cli.config, args::AccountCommand::Topup(topup), &out).await,
        Command::Usage(usage) => keys::usage(&cli.config, *usage, &out).await,
        Command::Margin(asked) => keys::margin(&cli.config, &asked, &out).await,
        Command::Ledger { command } => ledger::ledger(&cli.config, command, &out).await,
        Command::Receipt { command } => receipts::receipt(&cli.config, command, &out).await,
        Command::Clock { command } => clock::clock(&cli.config, command.as_ref(), &out).await,
        Command::Social { command } => social::social(&cli.config, command, &out).await,
        Command::Video { command } => video::video(command, &out).await,
        Command::Workflow { command } => workflows::workflow(&cli.config, command, &out).await,
        Command::Mcp(args) => mcp::mcp(args, &real::api_key()).await.map(|()| ExitCode::SUCCESS),
        Command::Completions { .. } => Ok(ExitCode::SUCCESS),
    }
}
