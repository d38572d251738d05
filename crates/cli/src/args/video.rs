//! `video …` on the command line.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args)]
pub struct GatewayArgs {
    /// The gateway; TOLLGATE_URL names it for all commands. The key is in TOLLGATE_API_KEY.
    #[arg(long, env = "TOLLGATE_URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// A file with the certificates (PEM) to trust instead of the public authorities, for a gateway
    /// with a certificate of its own, such as `tollgate demo --tls`.
    #[arg(long, env = "SSL_CERT_FILE", value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

#[derive(Args)]
pub struct VideoWaitArgs {
    /// Its id, as the answer to its creation gave it.
    pub id: String,
    /// Where the finished file goes.
    #[arg(long, short)]
    pub out: Option<PathBuf>,
    /// Seconds between two looks.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub every: u64,
    /// Give up after so many seconds. The task goes on all the same.
    #[arg(long, default_value_t = 3_600)]
    pub patience: u64,
    #[command(flatten)]
    pub gateway: GatewayArgs,
}

#[derive(Subcommand)]
pub enum VideoCommand {
    /// Begin a video, and print its task.
    Create {
        /// The public name of a video model.
        #[arg(long, short)]
        model: String,
        /// What shall be seen.
        prompt: String,
        /// More fields of the request, as JSON: '{"size":"1280*720","metadata":{}}'.
        #[arg(long, default_value = "{}")]
        fields: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// Wait until a task has ended, with a progress bar; exits 1 if it failed.
    Wait(VideoWaitArgs),
    /// One task as it stands.
    Show {
        id: String,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
    /// The newest tasks of the account.
    List {
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
        #[command(flatten)]
        gateway: GatewayArgs,
    },
}
