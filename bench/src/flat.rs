//! Whether a call costs the same when everything has grown: plain calls of a new gateway, and of
//! one with 5,000 models and a ledger full of accounts and calls, in turn.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::bars::Bar;
use crate::compare::Figure;
use crate::experiment::{Figures, Shape, measure};
use crate::report::{median, per_core_second};
use crate::subject::{Kind, Place, Subject};
use crate::tollgate::Grown;

const MODELS: usize = 5_000;
/// The share of a core below which a gateway counts as idle, for so long.
const IDLE: f64 = 0.03;
const LOOK: Duration = Duration::from_secs(2);
const MOST_LOOKS: u32 = 900;

/// Of each round the new one's figures and the grown one's.
pub struct FlatFigures(Vec<[Figures; 2]>);

impl FlatFigures {
    pub fn measured(place: &Place, history: &Path, rounds: usize, seconds: f64) -> anyhow::Result<Self> {
        let new = Subject::start(Kind::Tollgate, place, "new")?;
        let grown = Grown { data: Some(history), models: MODELS, ..Grown::default() };
        let grown = Subject::grown(place, "grown", grown, None)?;
        let mut all = Vec::new();
        for round in 0..=rounds {
            eprintln!("round {round} of {rounds}: a gateway that has grown");
            let one = |subject| measure(subject, Shape::Plain.arguments(), seconds, place);
            let pair = [one(&new)?, one(&grown)?];
            // The first round fills pools and caches. The ledger is audited under it, and no call
            // may be refused for that. What a call costs is measured after it.
            if round == 0 {
                until_idle(&grown)?;
            } else {
                all.push(pair);
            }
        }
        Ok(Self(all))
    }

    /// CPU of a call of the grown one, to the new one's of the same round.
    fn to_new(&self) -> Vec<f64> {
        self.0.iter().map(|[new, grown]| per_call(grown) / per_call(new)).collect()
    }

    pub fn figures(&self) -> Vec<Figure> {
        vec![Figure::lower("CPU of a call with a large ledger and 5,000 models, to a new gateway's", self.to_new())]
    }

    pub fn print(&self) {
        println!("\nPlain calls of a new gateway, and of one with a large ledger and {MODELS} models (CPU µs/call)");
        let typical = |place: usize| median(self.0.iter().map(|pair| per_call(&pair[place])).collect());
        println!("{:>10} {:>10.2}\n{:>10} {:>10.2}", "new", typical(0), "grown", typical(1));
    }

    pub fn bars(&self) -> Vec<Bar> {
        let name = "CPU of a call with a large ledger and 5,000 models, to a new one's".to_owned();
        vec![Bar { name, limit: 1.1, at_least: false, got: median(self.to_new()), unit: "×" }]
    }

    pub fn json(&self) -> Value {
        self.0.iter().map(|[new, grown]| json!({"new": new.json(), "grown": grown.json()})).collect()
    }
}

/// Waits until a subject has done what it does after a start.
fn until_idle(subject: &Subject) -> anyhow::Result<()> {
    let used = || anyhow::Ok(subject.sample()?.map_or(0.0, |sample| sample.cpu_seconds));
    for _ in 0..MOST_LOOKS {
        let before = used()?;
        std::thread::sleep(LOOK);
        if used()? - before < IDLE * LOOK.as_secs_f64() {
            return Ok(());
        }
    }
    anyhow::bail!("the grown gateway is not idle after {:?}", LOOK * MOST_LOOKS)
}

/// Microseconds of CPU.
fn per_call(figures: &Figures) -> f64 {
    1e6 / per_core_second(figures, figures.requests)
}
