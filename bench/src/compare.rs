//! Two runs beside each other: what got worse by more than the rounds of a run differ among
//! themselves. What is compared are ratios within a round, and memory, because two runs never find
//! the machine in the same state.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::experiment::{Results, Shape};
use crate::flat::FlatFigures;
use crate::media::MediaFigures;
use crate::pairs::Pairs;
use crate::postgres::ReplicaFigures;
use crate::realtime::LiveFigures;
use crate::report::{added_p50s, median, per_core_second, ratios};
use crate::subject::Kind;

/// Less than this is never called a change.
const LEAST: f64 = 0.05;

#[derive(Args)]
pub struct Settings {
    /// What `run --json` wrote before.
    old: PathBuf,
    /// What it wrote now.
    new: PathBuf,
}

/// One thing that was measured, round by round.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    name: String,
    higher_is_better: bool,
    rounds: Vec<f64>,
}

impl Figure {
    pub fn higher(name: impl Into<String>, rounds: Vec<f64>) -> Self {
        Self { name: name.into(), higher_is_better: true, rounds }
    }

    pub fn lower(name: impl Into<String>, rounds: Vec<f64>) -> Self {
        Self { name: name.into(), higher_is_better: false, rounds }
    }

    pub fn json(&self) -> Value {
        json!({"name": self.name, "higher_is_better": self.higher_is_better, "rounds": self.rounds})
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            higher_is_better: value["higher_is_better"].as_bool()?,
            rounds: value["rounds"].as_array()?.iter().filter_map(Value::as_f64).collect(),
        })
    }

    fn typical(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// Half of what the rounds differ by, to the median.
    fn spread(&self) -> f64 {
        let (least, most) =
            self.rounds.iter().fold((f64::MAX, f64::MIN), |(least, most), round| (least.min(*round), most.max(*round)));
        if self.rounds.is_empty() { 0.0 } else { ((most - least) / 2.0 / self.typical()).abs() }
    }
}

pub fn figures(results: &Results) -> Vec<Figure> {
    let mut all = Vec::new();
    if !results.rounds.is_empty() {
        traffic(results, &mut all);
    }
    if let Some(memory) = results.memory.get(&Kind::Tollgate) {
        all.push(Figure::lower("memory idle, KiB", vec![memory.idle as f64]));
        all.push(Figure::lower("memory after the run, KiB", vec![memory.after_run as f64]));
        all.push(Figure::lower("memory per open idle stream, KB", vec![crate::bars::per_stream(memory)]));
    }
    all.extend(results.pairs.iter().flat_map(Pairs::figures));
    all.extend(results.media.iter().flat_map(MediaFigures::figures));
    all.extend(results.live.iter().flat_map(LiveFigures::figures));
    all.extend(results.flat.iter().flat_map(FlatFigures::figures));
    all.extend(results.replicas.iter().flat_map(ReplicaFigures::figures));
    all
}

fn traffic(results: &Results, all: &mut Vec<Figure>) {
    let calls = ratios(results, Shape::Plain, Kind::Tollgate, |figures| per_core_second(figures, figures.requests));
    all.push(Figure::higher("plain calls per core second, to the proxy's", calls));
    for (shape, name) in [(Shape::Stream, "streamed"), (Shape::Paced, "paced")] {
        let events = ratios(results, shape, Kind::Tollgate, |figures| per_core_second(figures, figures.events));
        all.push(Figure::higher(format!("{name} events per core second, to the proxy's"), events));
    }
    for (shape, name) in [(Shape::Latency20, "20 ms think"), (Shape::Latency0, "answers at once")] {
        let added = added_p50s(results, shape, Kind::Tollgate).into_iter().zip(added_p50s(results, shape, Kind::Proxy));
        let added = added.map(|(own, proxy)| own / proxy.max(1.0)).collect();
        all.push(Figure::lower(format!("added p50 at 200 calls/s ({name}), to the proxy's"), added));
    }
}

pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let (old, new) = (read(&settings.old)?, read(&settings.new)?);
    let lines = compared(&old, &new);
    for line in &lines {
        println!("{}", line.text);
    }
    let worse = lines.iter().filter(|line| line.verdict == Verdict::Worse).count();
    ensure!(worse == 0, "{worse} of {} figures got worse beyond noise", lines.len());
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<Figure>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let json: Value = serde_json::from_str(&text).with_context(|| format!("the JSON of {}", path.display()))?;
    let figures = json["figures"].as_array().with_context(|| format!("no figures in {}", path.display()))?;
    Ok(figures.iter().filter_map(Figure::read).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Worse,
    Better,
    Same,
    /// Measured in one of the runs only.
    Alone,
}

struct Line {
    verdict: Verdict,
    text: String,
}

/// One line for each figure, the worse ones first.
fn compared(old: &[Figure], new: &[Figure]) -> Vec<Line> {
    let mut lines: Vec<_> = old
        .iter()
        .map(|before| match new.iter().find(|after| after.name == before.name) {
            Some(after) => change(before, after),
            None => Line { verdict: Verdict::Alone, text: format!("    only in the old run: {}", before.name) },
        })
        .collect();
    let added = new.iter().filter(|after| old.iter().all(|before| before.name != after.name));
    lines.extend(
        added.map(|figure| Line { verdict: Verdict::Alone, text: format!("    only in the new run: {}", figure.name) }),
    );
    lines.sort_by_key(|line| match line.verdict {
        Verdict::Worse => 0,
        Verdict::Better => 1,
        Verdict::Same => 2,
        Verdict::Alone => 3,
    });
    lines
}

fn change(before: &Figure, after: &Figure) -> Line {
    let (old, new) = (before.typical(), after.typical());
    // Above zero is worse, whichever way the figure goes.
    let worse = if before.higher_is_better { old / new - 1.0 } else { new / old - 1.0 };
    let noise = before.spread().max(after.spread()).max(LEAST);
    let verdict = match worse {
        worse if worse > noise => Verdict::Worse,
        worse if worse < -noise => Verdict::Better,
        _ => Verdict::Same,
    };
    let word = match verdict {
        Verdict::Worse => "WORSE",
        Verdict::Better => "better",
        _ => "same",
    };
    let name = &after.name;
    let text = format!("{word:>8}  {name:<72} {old:>10.2} → {new:<10.2} (noise {:.0} %)", noise * 100.0);
    Line { verdict, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(before: Figure, after: Figure) -> Verdict {
        change(&before, &after).verdict
    }

    #[test]
    fn a_change_is_one_beyond_the_noise_of_either_run() {
        let higher = |rounds: &[f64]| Figure::higher("rate", rounds.to_vec());
        let lower = |rounds: &[f64]| Figure::lower("wait", rounds.to_vec());
        assert_eq!(verdict(higher(&[0.50, 0.51, 0.52]), higher(&[0.40, 0.41, 0.42])), Verdict::Worse);
        assert_eq!(verdict(higher(&[0.40, 0.41, 0.42]), higher(&[0.50, 0.51, 0.52])), Verdict::Better);
        assert_eq!(verdict(higher(&[0.30, 0.51, 0.70]), higher(&[0.40, 0.41, 0.42])), Verdict::Same);
        assert_eq!(verdict(higher(&[0.50]), higher(&[0.48])), Verdict::Same);
        assert_eq!(verdict(lower(&[20.0]), lower(&[22.0])), Verdict::Worse);
        assert_eq!(verdict(lower(&[22.0]), lower(&[20.0])), Verdict::Better);
    }

    #[test]
    fn worse_comes_first_and_nothing_is_left_out() {
        let old =
            [Figure::higher("same", vec![1.0]), Figure::higher("gone", vec![1.0]), Figure::higher("bad", vec![2.0])];
        let new =
            [Figure::higher("same", vec![1.0]), Figure::higher("bad", vec![1.0]), Figure::higher("here", vec![1.0])];
        let lines = compared(&old, &new);
        let verdicts: Vec<_> = lines.iter().map(|line| line.verdict).collect();
        assert_eq!(verdicts, [Verdict::Worse, Verdict::Same, Verdict::Alone, Verdict::Alone]);
        assert!(lines[0].text.contains("bad"));
    }

    #[test]
    fn figures_are_read_as_they_were_written() {
        let figure = Figure::lower("wait", vec![1.5, 2.5]);
        assert_eq!(Figure::read(&figure.json()), Some(figure));
    }
}
