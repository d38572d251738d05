//! What an operator can set. Raw text becomes these checked values in `read`; nothing past that border sees raw text.
//! The commented file `tollgate.default.toml` is the documentation of every key.

mod fetch;
mod read;
mod tasks;

pub use fetch::FetchSettings;
pub use read::{Loaded, Source, catalog_files, catalog_paths};
pub use tasks::TaskSettings;

use crate::social::SocialSettings;
use crate::video::VideoSettings;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The text of the commented default file, embedded so that `tollgate check --print-default` can show it.
pub const DEFAULT_FILE: &str = include_str!("../../../../tollgate.default.toml");

/// Fixed for the life of a process; providers and catalog are the part that can change (`app::Serving`).
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    /// An own port for /metrics; without it the page is served to loopback peers on the main port.
    pub metrics_listen: Option<SocketAddr>,
    pub data_dir: PathBuf,
    pub catalog_dir: PathBuf,
    /// `sqlite`, or a `postgres://` address.
    pub database: String,
    pub trusted_proxies: Vec<IpNet>,
    pub limits: Limits,
    pub social: SocialSettings,
    pub video: VideoSettings,
    /// Where clients reach us; left out, the host a request names.
    pub public_url: Option<String>,
    /// The secrets that sign links and webhooks.
    pub secrets_file: PathBuf,
    pub tasks: TaskSettings,
    pub fetch: FetchSettings,
}

impl Settings {
    /// Where others reach us, as far as we know by ourselves: not where we listen at every address of the machine.
    pub fn reached_at(&self) -> Option<String> {
        let listen = Some(self.listen).filter(|listen| !listen.ip().is_unspecified());
        self.public_url.clone().or_else(|| listen.map(|listen| format!("http://{listen}")))
    }
}

/// Longer than any provider's `first_byte_time` and `idle_time` should be.
const LAST_WAIT: Duration = Duration::from_secs(10 * 60);

/// Every limit is set explicitly; none is left to a library's default.
#[derive(Clone, Debug)]
pub struct Limits {
    pub header_time: Duration,
    pub body_time: Duration,
    pub body_bytes: usize,
    /// A client that does not read for this long is taken for gone.
    pub write_time: Duration,
    pub connections: usize,
    /// Calls running at once.
    pub calls: usize,
    pub h2_streams: u32,
    pub h2_window: u32,
    pub heartbeat: Duration,
    pub stream_time: Duration,
    /// After SIGTERM open calls get this long to finish.
    pub drain_time: Duration,
    pub connect_time: Duration,
    /// Output tokens that a stream is held for at first when its caller names no limit.
    pub stream_hold: u64,
}

impl Limits {
    /// A hold outlives the longest call it can belong to: the last wait for a provider may begin at the call's deadline.
    pub fn hold_life(&self) -> Duration {
        self.stream_time + self.drain_time + LAST_WAIT
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            body_bytes: 32 << 20,
            write_time: Duration::from_secs(30),
            connections: 20_000,
            calls: 10_000,
            h2_streams: 256,
            h2_window: 1 << 20,
            heartbeat: Duration::from_secs(15),
            stream_time: Duration::from_secs(30 * 60),
            drain_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(10),
            stream_hold: 4_096,
        }
    }
}
