//! What an operator can set. Raw text becomes these checked values in `read`; nothing past that
//! border sees raw text. The commented file `tollgate.default.toml` is the documentation of every
//! key.

mod fetch;
mod fit;
mod images;
mod jobs;
mod live;
mod pages;
mod passkeys;
mod payments;
mod people;
mod preset_record;
mod price_list;
mod probes;
mod providers;
mod read;
mod realtime;
mod runs;
mod social;
mod storage;
mod tasks;
mod tls;
mod trial;
mod video;
mod webhooks;
mod workflows;

pub use fetch::FetchSettings;
pub use fit::METRICS_CONNECTIONS;
pub use images::ImageSettings;
pub use live::LiveSettings;
pub use pages::{Origin, Pages};
pub use passkeys::PasskeySettings;
pub use payments::{PaymentSettings, StripeSettings, WrongCodes};
pub use people::{IssuerSettings, MailPassword, MailSettings, MailSink, MailTls, PeopleSettings, SignUp, origin_of};
pub use preset_record::{ability_named, preset_record};
pub use price_list::PriceListSettings;
pub use probes::ProbeSettings;
pub use read::{ConfigSource, catalog_files, catalog_lock, catalog_paths};
pub(crate) use read::{file_mistake, whole_mistake};
pub use realtime::RealtimeSettings;
pub use runs::RunSettings;
pub use social::SocialSettings;
pub use storage::StorageSettings;
pub use tasks::TaskSettings;
pub use tls::TlsFiles;
/// Providers that are known by name, for the command line.
pub use tollgate_upstream::{Ability, AddressSource, KeyNeed, Preset, preset, presets};
pub use trial::TrialSettings;
pub use video::{Bucket, CopyTo, Delivery, VideoSettings, WebhookSettings};
pub use webhooks::{public_address, webhook_address};
pub use workflows::{workflow_files, workflow_paths};

use crate::jobs::ExportRoom;
use ipnet::IpNet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The text of the commented default file, embedded so that `tollgate check --print-default` can
/// show it.
pub const DEFAULT_FILE: &str = include_str!("../../../../tollgate.default.toml");

/// Where the catalog that is on sale lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatalogSource {
    /// In the folder, as it is at any time.
    #[default]
    File,
    /// In the database, where operators publish versions of it. What lies in the folder at the
    /// first start is the first of them.
    Database,
}

impl CatalogSource {
    pub fn word(self) -> &'static str {
        match self {
            CatalogSource::File => "file",
            CatalogSource::Database => "database",
        }
    }
}

/// Fixed for the life of a process; providers and catalog are the part that can change
/// (`sale::Serving`).
#[derive(Clone, Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    /// TLS on that port; plain HTTP without it.
    pub tls: Option<TlsFiles>,
    /// An own port for /metrics; without it the page is served to loopback peers on the main port.
    pub metrics_listen: Option<SocketAddr>,
    pub data_dir: PathBuf,
    pub catalog_dir: PathBuf,
    /// Whether what lies there is on sale, or what was published.
    pub catalog_source: CatalogSource,
    /// `sqlite`, or a `postgres://` address.
    pub database: String,
    pub trusted_proxies: Vec<IpNet>,
    /// The web pages that may call us from a browser.
    pub pages: Pages,
    pub limits: ServerLimits,
    pub social: SocialSettings,
    pub video: VideoSettings,
    pub images: ImageSettings,
    /// Where clients reach us; left out, the host a request names.
    pub public_url: Option<String>,
    /// The secrets that sign links and webhooks.
    pub secrets_file: PathBuf,
    /// Secrets that the database does not know are taken. Said at a start, and in no file.
    pub new_secrets: bool,
    pub tasks: TaskSettings,
    pub runs: RunSettings,
    pub fetch: FetchSettings,
    pub realtime: RealtimeSettings,
    pub price_list: PriceListSettings,
    pub probes: ProbeSettings,
    pub storage: StorageSettings,
    pub payments: PaymentSettings,
    pub people: PeopleSettings,
    pub live: LiveSettings,
    /// Room for the files of exports.
    pub exports: ExportRoom,
}

impl Settings {
    /// Where others reach us, as far as we know by ourselves: not where we listen at every address
    /// of the machine.
    pub fn reached_at(&self) -> Option<String> {
        let listen = Some(self.listen).filter(|listen| !listen.ip().is_unspecified());
        self.public_url.clone().or_else(|| listen.map(|listen| format!("{}://{listen}", self.scheme())))
    }

    /// How an address of the listening port begins.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Longer than any provider's `first_byte_time` and `idle_time` should be.
const LAST_WAIT: Duration = Duration::from_secs(10 * 60);

/// Every limit is set explicitly; none is left to a library's default.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// From the first moment of a connection to the end of its first request's head, and for each
    /// head after that.
    pub header_time: Duration,
    /// Between the requests of a connection with a valid key.
    pub idle_time: Duration,
    pub body_time: Duration,
    pub body_bytes: usize,
    /// The largest form with files.
    pub upload_bytes: usize,
    /// Disk for the files of all uploads in flight.
    pub spool_bytes: usize,
    /// A client that does not read for this long is taken for gone.
    pub write_time: Duration,
    pub connections: usize,
    /// Of these, the most of one address; left out, half of them.
    pub connections_per_address: Option<usize>,
    /// TLS handshakes under way at once.
    pub handshakes: usize,
    /// Memory for the bodies of all requests in flight; left out, a part of the machine's.
    pub bodies_bytes: Option<usize>,
    /// Calls running at once.
    pub calls: usize,
    pub h2_streams: u32,
    pub h2_window: u32,
    pub heartbeat: Duration,
    pub stream_time: Duration,
    /// After SIGTERM open calls get this long to finish.
    pub drain_time: Duration,
    pub connect_time: Duration,
    /// A call waits this long for the ledger before it is refused.
    pub ledger_time: Duration,
    /// While the database cannot be written, calls are served by the journal for this long
    /// (SQLite).
    pub ledger_behind: Duration,
    /// Connections to one provider that wait for the next call; follows the descriptors.
    pub idle_upstream: usize,
    /// Output tokens that a stream is held for at first when its caller names no limit.
    pub stream_hold: u64,
}

impl ServerLimits {
    /// A hold outlives the longest call it can belong to: the last wait for a provider may begin at
    /// the call's deadline.
    pub fn hold_life(&self) -> Duration {
        self.stream_time + self.drain_time + LAST_WAIT
    }
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            header_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(75),
            body_time: Duration::from_secs(60),
            body_bytes: 32 << 20,
            upload_bytes: 2_050 << 20,
            spool_bytes: 8 << 30,
            write_time: Duration::from_secs(30),
            connections: 20_000,
            connections_per_address: None,
            handshakes: 1_024,
            bodies_bytes: None,
            calls: 10_000,
            h2_streams: 256,
            h2_window: 1 << 20,
            heartbeat: Duration::from_secs(15),
            stream_time: Duration::from_secs(30 * 60),
            drain_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(10),
            ledger_time: Duration::from_secs(2),
            ledger_behind: Duration::from_secs(10),
            idle_upstream: 1_024,
            stream_hold: 4_096,
        }
    }
}
