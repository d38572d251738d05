//! Realtime sessions beside a bare WebSocket relay: audio frames per second of the subject's CPU
//! in each direction, the time that a frame takes, and what an idle session takes in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use crate::bars::{Bar, mebibytes};
use crate::children::{self, Held};
use crate::compare::Figure;
use crate::experiment::{Figures, measured_by};
use crate::live::Talk;
use crate::report::{median, per_core_second};
use crate::subject::{Kind, Place, Subject};

/// Sessions of the memory figure.
const IDLE: u64 = 1_000;
const TALKS: [(Talk, &str, &str); 3] =
    [(Talk::Hears, "hears", "16"), (Talk::Speaks, "speaks", "16"), (Talk::Echo, "echo", "8")];

/// What was measured.
pub struct LiveFigures {
    rounds: BTreeMap<(Talk, Kind), Vec<Figures>>,
    /// Resident memory of tollgate at rest, and with idle sessions, in KiB.
    idle: u64,
    with_sessions: u64,
}

impl LiveFigures {
    pub fn measured(place: &Place, rounds: usize, seconds: f64) -> anyhow::Result<Self> {
        let (idle, with_sessions) = memory(place)?;
        let subjects = [
            Subject::start(Kind::Direct, place, "live")?,
            Subject::relay(place)?,
            Subject::start(Kind::Tollgate, place, "live")?,
        ];
        let mut all = Self { rounds: BTreeMap::new(), idle, with_sessions };
        for round in 0..=rounds {
            for (talk, name, sessions) in TALKS {
                for subject in &subjects {
                    eprintln!("round {round} of {rounds}: realtime {name} {}", subject.kind.name());
                    let load = ["--talk", name, "--sessions", sessions];
                    let figures = measured_by("talk", subject, &load, seconds, place)?;
                    // The first round fills pools and caches.
                    if round > 0 {
                        all.rounds.entry((talk, subject.kind)).or_default().push(figures);
                    }
                }
            }
        }
        Ok(all)
    }

    fn pairs(&self, talk: Talk, kind: Kind, other: Kind) -> impl Iterator<Item = (&Figures, &Figures)> {
        self.rounds[&(talk, kind)].iter().zip(&self.rounds[&(talk, other)])
    }

    /// Frames per second of CPU, to the relay's of the same round.
    fn to_relay(&self, talk: Talk) -> Vec<f64> {
        let rate = |figures: &Figures| per_core_second(figures, figures.events);
        self.pairs(talk, Kind::Tollgate, Kind::Proxy).map(|(own, relay)| rate(own) / rate(relay)).collect()
    }

    pub fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::higher("audio frames heard per core second, to a relay's", self.to_relay(Talk::Hears)),
            Figure::higher("audio frames spoken per core second, to a relay's", self.to_relay(Talk::Speaks)),
            Figure::lower("memory per idle realtime session, KB", vec![self.per_session()]),
        ]
    }

    /// Microseconds on top of the direct way's median.
    fn added(&self, kind: Kind) -> f64 {
        median(self.pairs(Talk::Echo, kind, Kind::Direct).map(|(own, direct)| own.p50_us - direct.p50_us).collect())
    }

    fn per_session(&self) -> f64 {
        self.with_sessions.saturating_sub(self.idle) as f64 * 1.024 / IDLE as f64
    }

    pub fn print(&self) {
        println!("\nRealtime sessions (proxy is a bare WebSocket relay)");
        println!("{:>10} {:>10} {:>12} {:>16} {:>10}", "", "", "frames/s", "frames/core-s", "p50 µs");
        for ((talk, kind), rounds) in &self.rounds {
            let name = TALKS.iter().find(|row| row.0 == *talk).map_or("", |row| row.1);
            let of = |figure: &dyn Fn(&Figures) -> f64| median(rounds.iter().map(figure).collect());
            let (rate, p50) = (of(&|figures| figures.events / figures.seconds), of(&|figures| figures.p50_us));
            let core = of(&|figures| per_core_second(figures, figures.events));
            println!("{name:>10} {:>10} {rate:>12.0} {core:>16.0} {p50:>10.0}", kind.name());
        }
        let (idle, above) = (mebibytes(self.idle), mebibytes(self.with_sessions.saturating_sub(self.idle)));
        println!("{IDLE} idle sessions: {above:.1} MiB above {idle:.1} MiB at rest");
    }

    pub fn bars(&self) -> Vec<Bar> {
        let bar = |name: &str, got, limit, at_least, unit| Bar { name: name.to_owned(), limit, at_least, got, unit };
        let added = self.added(Kind::Tollgate) / self.added(Kind::Proxy).max(1.0);
        vec![
            bar(
                "audio frames heard per core second, to a bare relay's",
                median(self.to_relay(Talk::Hears)),
                0.7,
                true,
                "×",
            ),
            bar(
                "audio frames spoken per core second, to a bare relay's",
                median(self.to_relay(Talk::Speaks)),
                0.7,
                true,
                "×",
            ),
            bar("added p50 of a frame there and back, to a bare relay's", added, 2.0, false, "×"),
            bar("memory per idle realtime session", self.per_session(), 40.0, false, " KB"),
        ]
    }

    pub fn json(&self) -> Value {
        let one = |((talk, kind), rounds): (&(Talk, Kind), &Vec<Figures>)| {
            let rounds: Vec<_> = rounds.iter().map(Figures::json).collect();
            json!({"talk": format!("{talk:?}").to_lowercase(), "subject": kind.name(), "rounds": rounds})
        };
        let rounds: Vec<_> = self.rounds.iter().map(one).collect();
        json!({"rounds": rounds, "idle_kib": self.idle, "with_sessions_kib": self.with_sessions, "sessions": IDLE})
    }
}

/// Memory of a fresh tollgate at rest, and with sessions in which nothing is said.
fn memory(place: &Place) -> anyhow::Result<(u64, u64)> {
    let subject = Subject::start(Kind::Tollgate, place, "idle-sessions")?;
    std::thread::sleep(Duration::from_secs(3));
    let rss = || anyhow::Ok(subject.sample()?.context("no process")?.rss_kib);
    let idle = rss()?;
    let (target, count) = (subject.addr.to_string(), IDLE.to_string());
    let arguments = ["talk", "--target", &target, "--key", &subject.key, "--sessions", &count, "--hold"];
    let _held: Held = children::Held::start(&place.bench, &arguments, place.load_core)?;
    // What opening them took is given back by then.
    std::thread::sleep(Duration::from_secs(3));
    Ok((idle, rss()?))
}
