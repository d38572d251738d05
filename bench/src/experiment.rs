//! The whole experiment. Subjects are measured in turn, round after round, so that a busy neighbour
//! disturbs all alike; figures are compared within a round and the median of the rounds counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::children::{self, Held, Part};
use crate::flat::FlatFigures;
use crate::media::MediaFigures;
use crate::pairs::Pairs;
use crate::postgres::{ReplicaFigures, Server};
use crate::realtime::LiveFigures;
use crate::subject::{Kind, Place, Subject};
use crate::{report, stat};

/// A part of the experiment that can be had alone.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Everything beside proxy and direct way.
    Traffic,
    /// Streams between the dialects.
    Dialects,
    /// Speech, pictures, recordings, vectors.
    Media,
    /// Sessions over a WebSocket.
    Realtime,
    /// One replica and two on PostgreSQL.
    Replicas,
    /// A gateway that has grown, beside a new one.
    Flat,
}

#[derive(Args)]
pub struct Settings {
    /// The tollgate executable; without it only the proxy is measured.
    #[arg(long)]
    tollgate: Option<PathBuf>,
    /// Few short rounds: to see that it works, not to judge.
    #[arg(long)]
    quick: bool,
    #[arg(long)]
    rounds: Option<usize>,
    /// Seconds of each measurement.
    #[arg(long)]
    seconds: Option<f64>,
    /// One part of it; without this all.
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Streams held open for the memory figure.
    #[arg(long, default_value_t = 2000)]
    idle_streams: usize,
    /// The folder of a private PostgreSQL server (`scripts/postgres start DIR`), for replicas.
    #[arg(long)]
    postgres: Option<PathBuf>,
    /// A data folder with many accounts and calls (`ledger_bars --write-history DIR`), for what a
    /// call costs a gateway that has grown.
    #[arg(long)]
    history: Option<PathBuf>,
    /// Write all figures here as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// One kind of traffic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Shape {
    /// As many plain calls as go through.
    Plain,
    /// 200 plain calls a second, the provider thinks 20 ms.
    Latency20,
    /// 200 plain calls a second, the provider answers at once.
    Latency0,
    /// Streams of 200 events, as fast as they are taken.
    Stream,
    /// 64 streams with an event every 4 ms.
    Paced,
    /// 100 streams a second, the provider thinks 20 ms: time to first token.
    First,
}

impl Shape {
    const ALL: [Self; 6] = [Self::Plain, Self::Latency20, Self::Latency0, Self::Stream, Self::Paced, Self::First];

    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["--model", "bench-0-0", "--connections", "64"],
            Self::Latency20 => &["--model", "bench-20-0", "--connections", "16", "--rate", "200"],
            Self::Latency0 => &["--model", "bench-0-0", "--connections", "16", "--rate", "200"],
            Self::Stream => &["--model", "bench-0-200", "--stream", "--connections", "64"],
            Self::Paced => &["--model", "bench-0-100-4", "--stream", "--connections", "64"],
            Self::First => &["--model", "bench-20-8", "--stream", "--connections", "16", "--rate", "100"],
        }
    }
}

/// One measurement of one subject.
#[derive(Clone, Debug)]
pub struct Figures {
    pub requests: f64,
    pub events: f64,
    pub seconds: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub first_p50_us: f64,
    pub first_p99_us: f64,
    /// CPU of the subject; 0 for the direct way.
    pub cpu_seconds: f64,
}

/// Memory of one subject, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub idle: u64,
    pub with_streams: u64,
    pub streams: u64,
    pub after_run: u64,
}

/// Everything measured.
#[derive(Default)]
pub struct Results {
    pub rounds: BTreeMap<(Shape, Kind), Vec<Figures>>,
    pub memory: BTreeMap<Kind, Memory>,
    pub pairs: Option<Pairs>,
    pub media: Option<MediaFigures>,
    pub live: Option<LiveFigures>,
    pub replicas: Option<ReplicaFigures>,
    pub flat: Option<FlatFigures>,
}

pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let scratch = std::env::temp_dir().join(format!("tollgate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let outcome = measure_all(settings, &scratch);
    std::fs::remove_dir_all(&scratch).context("removing the scratch directory")?;
    let results = outcome?;
    report::print(&results);
    if let Some(path) = &settings.json {
        std::fs::write(path, report::json(&results).to_string()).context("writing the JSON file")?;
    }
    Ok(())
}

fn measure_all(settings: &Settings, scratch: &std::path::Path) -> anyhow::Result<Results> {
    let cores = std::thread::available_parallelism()?.get();
    if cores < 2 {
        eprintln!("one core only: nothing is pinned, and the figures say little");
    }
    if let Some(load) = stat::load_average().filter(|load| *load > 0.5) {
        eprintln!("the machine is busy (load average {load}): expect a wide spread");
    }
    let (subject_core, load_core) = if cores < 2 { (None, None) } else { (Some(0), Some(1)) };
    let bench = std::env::current_exe()?;
    let upstream = children::free_address()?;
    let listen = upstream.to_string();
    let _upstream = Part::server(&bench, &["upstream", "--listen", &listen], load_core, upstream)?;
    let tollgate = settings.tollgate.as_ref().map(|path| path.canonicalize()).transpose();
    let tollgate = tollgate.context("the tollgate executable")?;
    let mut kinds = vec![Kind::Direct, Kind::Proxy];
    if tollgate.is_some() {
        kinds.push(Kind::Tollgate);
    }
    let place = Place { bench, tollgate, upstream, subject_core, load_core, scratch: scratch.to_path_buf() };
    let mut results = Results::default();
    let wants = |part: Only| settings.only.is_none_or(|only| only == part);
    if wants(Only::Traffic) {
        for kind in &kinds[1..] {
            eprintln!("memory of {}", kind.name());
            results.memory.insert(*kind, memory(*kind, &place, settings.idle_streams)?);
        }
        rounds(settings, &place, &kinds, &mut results)?;
    }
    let (rounds, seconds) = settings.length();
    if wants(Only::Dialects) && place.tollgate.is_some() {
        results.pairs = Some(Pairs::measured(&place, rounds, seconds)?);
    }
    if wants(Only::Media) && place.tollgate.is_some() {
        results.media = Some(MediaFigures::measured(&place, rounds, seconds)?);
    }
    if wants(Only::Realtime) && place.tollgate.is_some() {
        results.live = Some(LiveFigures::measured(&place, rounds, seconds)?);
    }
    if let Some(dir) = settings.postgres.as_deref().filter(|_| wants(Only::Replicas) && place.tollgate.is_some()) {
        let server = Server::of(dir)?;
        results.replicas = Some(ReplicaFigures::measured(&place, &server, rounds, seconds)?);
    }
    if let Some(history) = settings.history.as_deref().filter(|_| wants(Only::Flat) && place.tollgate.is_some()) {
        let history = history.canonicalize().context("the data folder")?;
        results.flat = Some(FlatFigures::measured(&place, &history, rounds, seconds)?);
    }
    Ok(results)
}

impl Settings {
    /// Rounds, and the seconds of each measurement.
    fn length(&self) -> (usize, f64) {
        let (rounds, seconds) = if self.quick { (2, 1.0) } else { (8, 1.5) };
        (self.rounds.unwrap_or(rounds), self.seconds.unwrap_or(seconds))
    }
}

fn rounds(settings: &Settings, place: &Place, kinds: &[Kind], results: &mut Results) -> anyhow::Result<()> {
    let (rounds, seconds) = settings.length();
    let subjects = kinds.iter().map(|kind| Subject::start(*kind, place, "rounds"));
    let subjects = subjects.collect::<anyhow::Result<Vec<_>>>()?;
    for subject in &subjects {
        // Pools, caches and lazily built tables are filled before anything counts.
        measure(subject, Shape::Plain.arguments(), 0.5, place)?;
        measure(subject, Shape::Stream.arguments(), 0.5, place)?;
    }
    for round in 1..=rounds {
        for shape in Shape::ALL {
            for subject in &subjects {
                eprintln!("round {round} of {rounds}: {shape:?} {}", subject.kind.name());
                let figures = measure(subject, shape.arguments(), seconds, place)?;
                results.rounds.entry((shape, subject.kind)).or_default().push(figures);
            }
        }
    }
    for subject in &subjects {
        if let (Some(sample), Some(memory)) = (subject.sample()?, results.memory.get_mut(&subject.kind)) {
            memory.after_run = sample.rss_kib;
        }
    }
    Ok(())
}

/// One load with these options against a subject.
pub fn measure(subject: &Subject, load: &[&str], seconds: f64, place: &Place) -> anyhow::Result<Figures> {
    measured_by("load", subject, load, seconds, place)
}

/// The same by another command of ours.
pub fn measured_by(
    command: &str,
    subject: &Subject,
    load: &[&str],
    seconds: f64,
    place: &Place,
) -> anyhow::Result<Figures> {
    let (target, seconds) = (subject.addr.to_string(), seconds.to_string());
    let common = [command, "--target", &target, "--key", &subject.key, "--seconds", &seconds];
    let before = subject.sample()?;
    let seen = children::ask(&place.bench, &[&common, load].concat(), place.load_core)?;
    // Work a gateway puts off until after the reply is part of the call's price.
    std::thread::sleep(Duration::from_millis(200));
    let cpu = subject.sample()?.zip(before).map_or(0.0, |(after, before)| after.cpu_seconds - before.cpu_seconds);
    ensure!(
        seen["errors"] == 0,
        "{} {}: {} errors, {}",
        subject.kind.name(),
        load.join(" "),
        seen["errors"],
        seen["last_error"]
    );
    let number = |name: &str| seen[name].as_f64().unwrap_or(0.0);
    Ok(Figures {
        requests: number("requests"),
        events: number("events"),
        seconds: number("seconds"),
        p50_us: number("p50_us"),
        p99_us: number("p99_us"),
        first_p50_us: number("first_p50_us"),
        first_p99_us: number("first_p99_us"),
        cpu_seconds: cpu,
    })
}

/// A fresh process at rest, then with streams open: memory freed by earlier work must not hide what
/// a stream takes. At rest means that the allocator has given back what the start needed, which it
/// does within two seconds.
fn memory(kind: Kind, place: &Place, streams: usize) -> anyhow::Result<Memory> {
    let subject = Subject::start(kind, place, "memory")?;
    std::thread::sleep(Duration::from_secs(3));
    let rss = || anyhow::Ok(subject.sample()?.context("no process")?.rss_kib);
    let idle = rss()?;
    let (target, count) = (subject.addr.to_string(), streams.to_string());
    let common = ["load", "--target", &target, "--key", &subject.key, "--model", "bench-idle", "--stream"];
    let arguments = [&common[..], &["--connections", &count, "--hold"]].concat();
    let held = Held::start(&place.bench, &arguments, place.load_core)?;
    std::thread::sleep(Duration::from_secs(1));
    ensure!(stat::Sample::of(held.pid()).is_ok(), "the streams did not stay open");
    let with_streams = rss()?;
    Ok(Memory { idle, with_streams, streams: streams as u64, after_run: 0 })
}

impl Figures {
    pub fn json(&self) -> Value {
        serde_json::json!({
            "requests": self.requests, "events": self.events, "seconds": self.seconds,
            "p50_us": self.p50_us, "p99_us": self.p99_us, "first_p50_us": self.first_p50_us,
            "first_p99_us": self.first_p99_us, "cpu_seconds": self.cpu_seconds,
        })
    }
}
