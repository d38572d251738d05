//! What tollgate must reach, next to what it reached.

use serde_json::{Value, json};

use crate::experiment::{Memory, Results, Shape};
use crate::flat::FlatFigures;
use crate::media::MediaFigures;
use crate::pairs::Pairs;
use crate::postgres::ReplicaFigures;
use crate::realtime::LiveFigures;
use crate::report::{added_p50, per_core_second, ratio, typical};
use crate::subject::Kind;

pub struct Bar {
    pub name: String,
    pub limit: f64,
    pub at_least: bool,
    pub got: f64,
    pub unit: &'static str,
}

impl Bar {
    pub fn met(&self) -> bool {
        if self.at_least { self.got >= self.limit } else { self.got <= self.limit }
    }

    pub fn line(&self) -> String {
        let (sign, verdict) = (if self.at_least { "≥" } else { "≤" }, if self.met() { "met" } else { "NOT met" });
        let Self { name, limit, got, unit, .. } = self;
        format!("{verdict:>8}  {name:<66} {got:>8.2}{unit}  (bar {sign} {limit}{unit})")
    }

    pub fn json(&self) -> Value {
        json!({"name": self.name, "limit": self.limit, "got": self.got, "met": self.met()})
    }
}

/// Of what was measured of tollgate.
pub fn all(results: &Results) -> Vec<Bar> {
    let traffic = results.memory.get(&Kind::Tollgate).map(|memory| traffic(results, memory));
    let pairs = results.pairs.as_ref().map(Pairs::bars);
    let media = results.media.as_ref().map(MediaFigures::bars);
    let live = results.live.as_ref().map(LiveFigures::bars);
    let flat = results.flat.as_ref().map(FlatFigures::bars);
    let replicas = results.replicas.as_ref().map(ReplicaFigures::bars);
    traffic.into_iter().chain(pairs).chain(media).chain(live).chain(replicas).chain(flat).flatten().collect()
}

fn traffic(results: &Results, memory: &Memory) -> Vec<Bar> {
    let calls = ratio(results, Shape::Plain, Kind::Tollgate, |figures| per_core_second(figures, figures.requests));
    let events = ratio(results, Shape::Stream, Kind::Tollgate, |figures| per_core_second(figures, figures.events));
    let added = added_p50(results, Shape::Latency20, Kind::Tollgate)
        / added_p50(results, Shape::Latency20, Kind::Proxy).max(1.0);
    let at_once = added_p50(results, Shape::Latency0, Kind::Tollgate) / 1_000.0;
    let per_core = typical(results, Shape::Plain, Kind::Tollgate, |figures| per_core_second(figures, figures.requests));
    let at_least = |name: &str, got, limit| Bar { name: name.to_owned(), limit, at_least: true, got, unit: "×" };
    let at_most = |name: &str, got, limit, unit| Bar { name: name.to_owned(), limit, at_least: false, got, unit };
    vec![
        at_least("plain calls per core second, to the proxy's", calls, 0.60),
        Bar { unit: "", ..at_least("plain calls per core second", per_core, 25_000.0) },
        at_most("added p50 at 200 calls/s (answers at once)", at_once, 1.0, " ms"),
        at_most("added p50 at 200 calls/s (20 ms think), to the proxy's", added, 1.3, "×"),
        at_least("streamed events per core second, to the proxy's", events, 1.3),
        at_most("memory idle", mebibytes(memory.idle), 20.0, " MiB"),
        at_most("memory after the run", mebibytes(memory.after_run), 40.0, " MiB"),
        at_most("memory per open idle stream", per_stream(memory), 20.0, " KB"),
    ]
}

pub fn mebibytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

pub fn per_stream(memory: &Memory) -> f64 {
    memory.with_streams.saturating_sub(memory.idle) as f64 * 1.024 / memory.streams.max(1) as f64
}
