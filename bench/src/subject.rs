//! What is measured: the direct way, the bare proxy, tollgate.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::children::{Part, free_address};
use crate::stat::Sample;
use crate::tollgate::{self, Grown};

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
                let (part, key) = serve(place, name, addr, Grown::default(), None)?;
                Ok(subject(part, key))
            }
        }
    }

    /// A tollgate that is not new; without a key it makes one.
    pub fn grown(place: &Place, name: &str, grown: Grown<'_>, key: Option<&str>) -> anyhow::Result<Self> {
        let addr = free_address()?;
        let (part, key) = serve(place, name, addr, grown, key)?;
        Ok(Self { kind: Kind::Tollgate, addr, key, part: Some(part) })
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

/// Starts tollgate, and gives it an account with a key where none is given.
fn serve(
    place: &Place,
    name: &str,
    addr: SocketAddr,
    grown: Grown<'_>,
    key: Option<&str>,
) -> anyhow::Result<(Part, String)> {
    let executable = place.tollgate.as_deref().context("no tollgate given")?;
    let config = tollgate::write_config(&place.scratch.join(name), addr, place.upstream, grown)?;
    let key = key.map_or_else(|| tollgate::create_key(executable, &config), |key| Ok(key.to_owned()))?;
    let config = path_text(&config)?;
    let part = Part::server(executable, &["serve", "--config", config], place.subject_core, addr)?;
    Ok((part, key))
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path in UTF-8")
}
