//! From figures to tables. Ratios are taken within a round; the median of the rounds is shown.

use serde_json::{Value, json};

use crate::bars::{self, mebibytes, per_stream};
use crate::compare;
use crate::experiment::{Figures, Results, Shape};
use crate::flat::FlatFigures;
use crate::media::MediaFigures;
use crate::pairs::Pairs;
use crate::postgres::ReplicaFigures;
use crate::realtime::LiveFigures;
use crate::subject::Kind;

const KINDS: [Kind; 3] = [Kind::Direct, Kind::Proxy, Kind::Tollgate];

pub fn per_core_second(figures: &Figures, what: f64) -> f64 {
    if figures.cpu_seconds > 0.0 { what / figures.cpu_seconds } else { f64::NAN }
}

/// The subject's figure to the proxy's of the same round.
pub fn ratio(results: &Results, shape: Shape, kind: Kind, figure: impl Fn(&Figures) -> f64) -> f64 {
    median(ratios(results, shape, kind, figure))
}

pub fn ratios(results: &Results, shape: Shape, kind: Kind, figure: impl Fn(&Figures) -> f64) -> Vec<f64> {
    let pairs = rounds(results, shape, kind).iter().zip(rounds(results, shape, Kind::Proxy));
    pairs.map(|(subject, proxy)| figure(subject) / figure(proxy)).collect()
}

/// Microseconds the subject puts on top of the direct way's median, round by round.
pub fn added_p50(results: &Results, shape: Shape, kind: Kind) -> f64 {
    median(added_p50s(results, shape, kind))
}

pub fn added_p50s(results: &Results, shape: Shape, kind: Kind) -> Vec<f64> {
    added_rounds(results, shape, kind, |figures| figures.p50_us)
}

fn added(results: &Results, shape: Shape, kind: Kind, figure: impl Fn(&Figures) -> f64) -> f64 {
    median(added_rounds(results, shape, kind, figure))
}

fn added_rounds(results: &Results, shape: Shape, kind: Kind, figure: impl Fn(&Figures) -> f64) -> Vec<f64> {
    let pairs = rounds(results, shape, kind).iter().zip(rounds(results, shape, Kind::Direct));
    pairs.map(|(subject, direct)| figure(subject) - figure(direct)).collect()
}

fn rounds(results: &Results, shape: Shape, kind: Kind) -> &[Figures] {
    results.rounds.get(&(shape, kind)).map_or(&[], Vec::as_slice)
}

pub fn typical(results: &Results, shape: Shape, kind: Kind, figure: impl Fn(&Figures) -> f64) -> f64 {
    median(rounds(results, shape, kind).iter().map(figure).collect())
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

pub fn print(results: &Results) {
    if !results.rounds.is_empty() {
        traffic(results);
    }
    if let Some(pairs) = &results.pairs {
        pairs.print();
    }
    if let Some(media) = &results.media {
        media.print();
    }
    if let Some(live) = &results.live {
        live.print();
    }
    if let Some(replicas) = &results.replicas {
        replicas.print();
    }
    if let Some(flat) = &results.flat {
        flat.print();
    }
    println!();
    for bar in bars::all(results) {
        println!("{}", bar.line());
    }
}

fn traffic(results: &Results) {
    let kinds = || KINDS.into_iter().filter(|kind| results.rounds.contains_key(&(Shape::Plain, *kind)));
    println!("\nPlain calls, 64 connections, closed loop");
    println!("{:>10} {:>10} {:>16} {:>12} {:>12}", "", "calls/s", "calls/core-s", "CPU µs/call", "to proxy");
    for kind in kinds() {
        let rate = typical(results, Shape::Plain, kind, |figures| figures.requests / figures.seconds);
        work(results, Shape::Plain, kind, rate, |figures| figures.requests);
    }
    for (shape, title) in [
        (Shape::Stream, "Streamed events, 64 streams of 200 events as fast as they are taken"),
        (Shape::Paced, "Streamed events, 64 streams with an event every 4 ms"),
    ] {
        println!("\n{title}");
        println!("{:>10} {:>10} {:>16} {:>12} {:>12}", "", "events/s", "events/core-s", "CPU µs/event", "to proxy");
        for kind in kinds() {
            let rate = typical(results, shape, kind, |figures| figures.events / figures.seconds);
            work(results, shape, kind, rate, |figures| figures.events);
        }
    }
    for (shape, title) in [
        (Shape::Latency20, "Latency at 200 calls/s, provider thinks 20 ms (µs)"),
        (Shape::Latency0, "Latency at 200 calls/s, provider answers at once (µs)"),
    ] {
        println!("\n{title}");
        latency(results, shape, kinds(), |figures| figures.p50_us, |figures| figures.p99_us);
    }
    println!("\nTime to first token at 100 streams/s, provider thinks 20 ms (µs)");
    latency(results, Shape::First, kinds(), |figures| figures.first_p50_us, |figures| figures.first_p99_us);
    println!("\nMemory");
    println!("{:>10} {:>10} {:>12} {:>18}", "", "idle MiB", "after MiB", "KB per open stream");
    for (kind, memory) in &results.memory {
        let (idle, after, stream) = (mebibytes(memory.idle), mebibytes(memory.after_run), per_stream(memory));
        println!("{:>10} {idle:>10.1} {after:>12.1} {stream:>18.1}", kind.name());
    }
}

fn work(results: &Results, shape: Shape, kind: Kind, rate: f64, what: fn(&Figures) -> f64) {
    let name = kind.name();
    if kind == Kind::Direct {
        println!("{name:>10} {rate:>10.0}");
        return;
    }
    let core = typical(results, shape, kind, |figures| per_core_second(figures, what(figures)));
    let to_proxy = ratio(results, shape, kind, |figures| per_core_second(figures, what(figures)));
    println!("{name:>10} {rate:>10.0} {core:>16.0} {:>12.2} {to_proxy:>12.2}", 1e6 / core);
}

fn latency(
    results: &Results,
    shape: Shape,
    kinds: impl Iterator<Item = Kind>,
    p50: fn(&Figures) -> f64,
    p99: fn(&Figures) -> f64,
) {
    println!("{:>10} {:>10} {:>10} {:>12} {:>12} {:>14}", "", "p50", "p99", "added p50", "added p99", "p50 to proxy");
    let proxy = added(results, shape, Kind::Proxy, p50).max(1.0);
    for kind in kinds {
        let name = kind.name();
        let (middle, tail) = (typical(results, shape, kind, p50), typical(results, shape, kind, p99));
        let (more, more_tail) = (added(results, shape, kind, p50), added(results, shape, kind, p99));
        if kind == Kind::Direct {
            println!("{name:>10} {middle:>10.0} {tail:>10.0}");
        } else {
            let times = more / proxy;
            println!("{name:>10} {middle:>10.0} {tail:>10.0} {more:>12.0} {more_tail:>12.0} {times:>14.2}");
        }
    }
}

pub fn json(results: &Results) -> Value {
    let rounds: Vec<_> = results
        .rounds
        .iter()
        .map(|((shape, kind), rounds)| {
            let figures: Vec<_> = rounds.iter().map(Figures::json).collect();
            json!({"shape": format!("{shape:?}").to_lowercase(), "subject": kind.name(), "rounds": figures})
        })
        .collect();
    let memory: serde_json::Map<_, _> = results
        .memory
        .iter()
        .map(|(kind, memory)| {
            let shown = json!({
                "idle_kib": memory.idle, "after_run_kib": memory.after_run, "streams": memory.streams,
                "with_streams_kib": memory.with_streams, "kb_per_stream": per_stream(memory),
            });
            (kind.name().to_string(), shown)
        })
        .collect();
    let bars: Vec<_> = bars::all(results).iter().map(bars::Bar::json).collect();
    let pairs = results.pairs.as_ref().map(Pairs::json);
    let media = results.media.as_ref().map(MediaFigures::json);
    let live = results.live.as_ref().map(LiveFigures::json);
    let replicas = results.replicas.as_ref().map(ReplicaFigures::json);
    let flat = results.flat.as_ref().map(FlatFigures::json);
    let figures: Vec<_> = compare::figures(results).iter().map(compare::Figure::json).collect();
    json!({
        "figures": figures, "measurements": rounds, "memory": memory, "dialects": pairs, "media": media, "realtime": live, "replicas": replicas, "flat": flat,
        "bars": bars,
    })
}
