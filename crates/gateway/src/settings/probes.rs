//! `[probes]` in tollgate.toml: calls that the gateway makes by itself along routes without
//! traffic. Nobody but the operator pays for them, so there are none unless he says so.

use std::time::Duration;
use tollgate_catalog::form::Form;
use tollgate_catalog::{Money, probe_every};
use tollgate_store::ProbeLimits;
use tollgate_upstream::{Ability, Provider};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSettings {
    /// A route without traffic for this long is probed; `None`: only where a provider or a route
    /// says so.
    pub every: Option<Duration>,
    /// What all probes of a day may come to, over all replicas.
    pub daily: ProbeLimits,
    pub kinds: Vec<Ability>,
    /// How often routes that are due are looked for.
    pub look_every: Duration,
}

impl Default for ProbeSettings {
    fn default() -> ProbeSettings {
        ProbeSettings {
            every: None,
            daily: ProbeLimits { calls: 1_000, nano_usd: 1_000_000_000 },
            kinds: KINDS.iter().map(|(_, kind)| *kind).collect(),
            look_every: Duration::from_secs(60),
        }
    }
}

/// Sorts of which one request costs next to nothing.
const KINDS: [(&str, Ability); 3] =
    [("chat", Ability::Chat), ("embeddings", Ability::Embeddings), ("rerank", Ability::Rerank)];

impl ProbeSettings {
    pub fn read(form: &mut Form<'_>) -> ProbeSettings {
        let default = ProbeSettings::default();
        let mut table = form.table("probes");
        let words = KINDS.map(|(word, _)| word);
        let kinds = match table.has("kinds") {
            false => default.kinds,
            true => {
                let named = table.words("kinds", &words);
                KINDS.iter().filter(|(word, _)| named.iter().any(|one| one == word)).map(|(_, kind)| *kind).collect()
            }
        };
        let usd: Money = table.parsed_or("usd_per_day", Money::from_nano(default.daily.nano_usd));
        let settings = ProbeSettings {
            every: probe_every(&mut table, "every"),
            daily: ProbeLimits {
                calls: table.int_or("calls_per_day", default.daily.calls, 0..=1_000_000),
                nano_usd: usd.nano().max(0),
            },
            kinds,
            look_every: table.duration_or("look_every", default.look_every),
        };
        table.finish();
        settings
    }

    /// How long a route may be without traffic; `None`: it is never probed. The route's own word
    /// comes first, then its provider's.
    pub fn every(&self, provider: &Provider, route: Option<Duration>) -> Option<Duration> {
        route.or(provider.settings.probe_every).or(self.every).filter(|every| !every.is_zero())
    }
}
