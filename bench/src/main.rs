//! Measures tollgate against a bare pass-through proxy and the direct upstream. `run` is the whole
//! experiment; the other commands are its parts, started by `run` as processes of their own so that
//! each can be pinned to a core.

#![cfg_attr(not(test), deny(clippy::unwrap_used))]

mod bars;
mod children;
mod compare;
mod experiment;
mod flat;
mod http1;
mod live;
mod load;
mod media;
mod pace;
mod pairs;
mod polls;
mod postgres;
mod proxy;
mod realtime;
mod replies;
mod report;
mod stat;
mod subject;
mod timer;
mod tollgate;
mod tongue;
mod upstream;

use std::net::SocketAddr;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Tollgate against a bare proxy and the direct upstream")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The whole experiment, interleaved; prints the figures and which bars are met.
    Run(experiment::Settings),
    /// Names what got worse between two runs, beyond noise; exit code 1 if anything did.
    Compare(compare::Settings),
    /// A provider with prebuilt replies; the model name `bench-<think ms>-<events>` says which.
    Upstream {
        #[arg(long)]
        listen: SocketAddr,
    },
    /// A bare pass-through proxy.
    Proxy {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// A bare relay of WebSocket messages.
    Relay {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        upstream: SocketAddr,
    },
    /// Opens realtime sessions and prints what it saw as one line of JSON.
    Talk(live::Settings),
    /// Sends calls and prints what it saw as one line of JSON.
    Load(load::Settings),
    /// CPU time and memory of a process, as one line of JSON.
    Stat { pid: u32 },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Run(settings) => experiment::run(&settings),
        Command::Compare(settings) => compare::run(&settings),
        Command::Upstream { listen } => upstream::run(listen),
        Command::Proxy { listen, upstream } => proxy::run(listen, upstream),
        Command::Relay { listen, upstream } => live::relay(listen, upstream),
        Command::Talk(settings) => live::run(&settings),
        Command::Load(settings) => load::run(&settings),
        Command::Stat { pid } => {
            println!("{}", stat::Sample::of(pid)?.json());
            Ok(())
        }
    }
}
