//! `[fetch]` in tollgate.toml: pictures and documents that requests give by their address, for
//! providers that take the data only.

use ipnet::IpNet;
use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSettings {
    /// Whether they are fetched at all; else such a request is refused.
    pub links: bool,
    /// Addresses inside that may be reached all the same.
    pub private: Vec<IpNet>,
    /// The most different links of one call.
    pub links_per_call: usize,
    /// The largest file.
    pub link_bytes: usize,
    /// For all links of a call together.
    pub time: Duration,
    /// Files fetched at once, over all calls.
    pub at_once: usize,
}

impl Default for FetchSettings {
    fn default() -> FetchSettings {
        FetchSettings {
            links: true,
            private: Vec::new(),
            links_per_call: 16,
            link_bytes: 20 << 20,
            time: Duration::from_secs(10),
            at_once: 64,
        }
    }
}

impl FetchSettings {
    pub fn read(form: &mut Form<'_>) -> FetchSettings {
        let default = FetchSettings::default();
        let mut table = form.table("fetch");
        let bytes = table.size_or("link_bytes", default.link_bytes as u64);
        let settings = FetchSettings {
            links: table.flag_or("links", default.links),
            private: table.parsed_list::<IpNet>("private"),
            links_per_call: table.int_or("links_per_call", default.links_per_call, 1..=1_000),
            link_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            time: table.duration_or("time", default.time),
            at_once: table.int_or("at_once", default.at_once, 1..=10_000),
        };
        table.finish();
        settings
    }
}
