//! Plain calls with the ledger on PostgreSQL, beside the bare proxy: with one replica, and with two
//! that share the database. CPU is counted for the gateway alone and with that of the server. What
//! a second replica brings follows from the gateway's CPU per call, because replicas and server
//! share the cores of this machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::bars::Bar;
use crate::compare::Figure;
use crate::experiment::{Figures, Shape, measure};
use crate::report::{median, per_core_second};
use crate::stat;
use crate::subject::{Kind, Place, Subject};
use crate::tollgate::Grown;

/// A private server, started by `scripts/postgres start DIR`.
pub struct Server {
    pid: u32,
    pub url: String,
}

impl Server {
    pub fn of(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("data/postmaster.pid");
        let text = std::fs::read_to_string(&path).with_context(|| format!("no server: {}", path.display()))?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let line = |place: usize| lines.get(place).copied().context("an odd postmaster.pid");
        let url = format!("postgres://tollgate@127.0.0.1:{}/postgres", line(3)?);
        Ok(Self { pid: line(0)?.parse()?, url })
    }

    fn cpu_seconds(&self) -> anyhow::Result<f64> {
        stat::family_cpu_seconds(self.pid)
    }
}

/// A measurement of one or two replicas.
struct Shared {
    requests: f64,
    seconds: f64,
    gateway_cpu: f64,
    server_cpu: f64,
}

impl Shared {
    /// Microseconds of CPU a call took of the gateway, and of the server.
    fn per_call(&self) -> (f64, f64) {
        let per_call = |cpu: f64| cpu * 1e6 / self.requests.max(1.0);
        (per_call(self.gateway_cpu), per_call(self.server_cpu))
    }

    fn json(&self) -> Value {
        json!({
            "requests": self.requests, "seconds": self.seconds,
            "gateway_cpu_seconds": self.gateway_cpu, "server_cpu_seconds": self.server_cpu,
        })
    }
}

struct Round {
    proxy: Figures,
    one: Shared,
    two: Shared,
}

pub struct ReplicaFigures(Vec<Round>);

impl ReplicaFigures {
    pub fn measured(place: &Place, server: &Server, rounds: usize, seconds: f64) -> anyhow::Result<Self> {
        let proxy = Subject::start(Kind::Proxy, place, "replicas")?;
        let grown = Grown { database: Some(&server.url), ..Grown::default() };
        let first = Subject::grown(place, "replica-1", grown, None)?;
        let second = Subject::grown(place, "replica-2", grown, Some(&first.key))?;
        let mut all = Vec::new();
        for round in 0..=rounds {
            eprintln!("round {round} of {rounds}: replicas on PostgreSQL");
            let measured = Round {
                proxy: measure(&proxy, Shape::Plain.arguments(), seconds, place)?,
                one: shared(&[&first], server, seconds, place)?,
                two: shared(&[&first, &second], server, seconds, place)?,
            };
            // The first round fills pools and caches.
            if round > 0 {
                all.push(measured);
            }
        }
        Ok(Self(all))
    }

    fn each(&self, figure: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.0.iter().map(figure).collect()
    }

    /// Calls per second of the gateway's CPU, to the proxy's of the same round.
    fn gateway_to_proxy(&self) -> Vec<f64> {
        self.each(|round| proxy_cpu(round) / round.one.per_call().0)
    }

    /// The same with the server's CPU.
    fn both_to_proxy(&self) -> Vec<f64> {
        self.each(|round| proxy_cpu(round) / (round.one.per_call().0 + round.one.per_call().1))
    }

    /// What two replicas can serve, to what one can.
    fn scale(&self) -> Vec<f64> {
        self.each(|round| 2.0 * round.one.per_call().0 / round.two.per_call().0)
    }

    pub fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::higher("plain calls on PostgreSQL per core second, to the proxy's", self.gateway_to_proxy()),
            Figure::higher("the same with the server's CPU", self.both_to_proxy()),
            Figure::higher("two replicas to one, by CPU per call", self.scale()),
        ]
    }

    pub fn print(&self) {
        println!("\nPlain calls on PostgreSQL, 64 connections, closed loop");
        println!("{:>14} {:>10} {:>18} {:>18}", "", "calls/s", "gateway µs/call", "server µs/call");
        let one = |name: &str, of: fn(&Round) -> &Shared| {
            let rate = median(self.each(|round| of(round).requests / of(round).seconds));
            let gateway = median(self.each(|round| of(round).per_call().0));
            let server = median(self.each(|round| of(round).per_call().1));
            println!("{name:>14} {rate:>10.0} {gateway:>18.1} {server:>18.1}");
        };
        println!("{:>14} {:>10} {:>18.1}", "proxy", "", median(self.each(proxy_cpu)));
        one("one replica", |round| &round.one);
        one("two replicas", |round| &round.two);
    }

    pub fn bars(&self) -> Vec<Bar> {
        let bar = |name: &str, got: Vec<f64>, limit| Bar {
            name: name.to_owned(),
            limit,
            at_least: true,
            got: median(got),
            unit: "×",
        };
        vec![
            bar("plain calls on PostgreSQL per core second, to the proxy's", self.gateway_to_proxy(), 0.45),
            bar("the same with the server's CPU", self.both_to_proxy(), 0.25),
            bar("two replicas on PostgreSQL to one, by the gateway's CPU per call", self.scale(), 1.8),
        ]
    }

    pub fn json(&self) -> Value {
        let round =
            |round: &Round| json!({"proxy": round.proxy.json(), "one": round.one.json(), "two": round.two.json()});
        self.0.iter().map(round).collect()
    }
}

/// Microseconds of CPU a call took of the proxy.
fn proxy_cpu(round: &Round) -> f64 {
    1e6 / per_core_second(&round.proxy, round.proxy.requests)
}

/// The load of plain calls, shared by these replicas.
fn shared(replicas: &[&Subject], server: &Server, seconds: f64, place: &Place) -> anyhow::Result<Shared> {
    let before = server.cpu_seconds()?;
    let connections = (64 / replicas.len()).to_string();
    let load = ["--model", "bench-0-0", "--connections", &connections];
    let figures: Vec<Figures> = std::thread::scope(|scope| {
        let loads: Vec<_> =
            replicas.iter().map(|replica| scope.spawn(|| measure(replica, &load, seconds, place))).collect();
        let ended = loads.into_iter().map(|load| load.join().map_err(|_| anyhow::anyhow!("a load broke off"))?);
        ended.collect::<anyhow::Result<_>>()
    })?;
    // What replicas still write afterwards is part of the price.
    std::thread::sleep(Duration::from_millis(300));
    let sum = |figure: fn(&Figures) -> f64| figures.iter().map(figure).sum::<f64>();
    let requests = sum(|figures| figures.requests);
    ensure!(requests > 0.0, "no call came through");
    Ok(Shared {
        requests,
        seconds: sum(|figures| figures.seconds) / replicas.len() as f64,
        gateway_cpu: sum(|figures| figures.cpu_seconds),
        server_cpu: server.cpu_seconds()? - before,
    })
}
