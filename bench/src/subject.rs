//! What is measured: the direct way, the bare proxy, tollgate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::children::{Part, free_address};
use crate::stat::Sample;
use crate::tollgate;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Direct,
    Proxy,
    Tollgate,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Proxy => "proxy",
            Self::Tollgate => "tollgate",
        }
    }
}

/// Where everything is and on which core it runs.
pub struct Place {
    pub bench: PathBuf,
    pub tollgate: Option<PathBuf>,
    pub upstream: SocketAddr,
    pub subject_core: Option<usize>,
    pub load_core: Option<usize>,
    pub scratch: PathBuf,
}

pub struct Subject {
    pub kind: Kind,
    pub addr: SocketAddr,
    pub key: String,
    part: Option<Part>,
}

impl Subject {
    /// Starts a fresh process; `name` keeps the data of several tollgates apart.
    pub fn start(kind: Kind, place: &Place, name: &str) -> anyhow::Result<Self> {
        let addr = free_address()?;
        let (listen, upstream) = (addr.to_string(), place.upstream.to_string());
        let subject = |part, key| Self { kind, addr, key, part: Some(part) };
        match kind {
            Kind::Direct => Ok(Self { kind, addr: place.upstream, key: "none".to_string(), part: None }),
            Kind::Proxy => {
                let arguments = ["proxy", "--listen", &listen, "--upstream", &upstream];
                let part = Part::server(&place.bench, &arguments, place.subject_core, addr)?;
                Ok(subject(part, "none".to_string()))
            }
            Kind::Tollgate => {
                let executable = place.tollgate.as_deref().context("no tollgate given")?;
                let dir = place.scratch.join(name);
                let config = tollgate::write_config(&dir, addr, place.upstream)?;
                let key = tollgate::create_key(executable, &config)?;
                let config = path_text(&config)?;
                let part = Part::server(executable, &["serve", "--config", config], place.subject_core, addr)?;
                Ok(subject(part, key))
            }
        }
    }

    /// A bare relay of WebSocket messages, in the place of the proxy.
    pub fn relay(place: &Place) -> anyhow::Result<Self> {
        let addr = free_address()?;
        let (listen, upstream) = (addr.to_string(), place.upstream.to_string());
        let arguments = ["relay", "--listen", &listen, "--upstream", &upstream];
        let part = Part::server(&place.bench, &arguments, place.subject_core, addr)?;
        Ok(Self { kind: Kind::Proxy, addr, key: "none".to_string(), part: Some(part) })
    }

    /// None for the direct way, which has no process between.
    pub fn sample(&self) -> anyhow::Result<Option<Sample>> {
        self.part.as_ref().map(|part| Sample::of(part.pid())).transpose()
    }
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path in UTF-8")
}
