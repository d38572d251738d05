//! Streams between every two dialects through tollgate. The yardstick is tollgate itself, where
//! client and provider speak alike and bytes pass; the figure is how much of that rate is left
//! where every event is translated. All pairs of one provider are measured one after the other,
//! round after round, so that a ratio compares neighbours.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};

use crate::bars::Bar;
use crate::compare::Figure;
use crate::experiment::{Figures, measure};
use crate::report::{median, per_core_second};
use crate::subject::{Kind, Place, Subject};
use crate::tongue::Tongue;

/// Pieces of text in each stream. They are what is counted: dialects differ in what they put around
/// them.
const PIECES: f64 = 200.0;

/// Rounds by client and provider.
#[derive(Default)]
pub struct Pairs(BTreeMap<(Tongue, Tongue), Vec<Figures>>);

impl Pairs {
    pub fn measured(place: &Place, rounds: usize, seconds: f64) -> anyhow::Result<Self> {
        let subject = Subject::start(Kind::Tollgate, place, "dialects")?;
        let mut pairs = Self::default();
        let all = || Tongue::ALL.into_iter().flat_map(|provider| Tongue::ALL.map(|client| (client, provider)));
        for (client, provider) in all() {
            one(&subject, client, provider, 0.2, place)?;
        }
        for round in 1..=rounds {
            for (client, provider) in all() {
                eprintln!("round {round} of {rounds}: {} from {}", client.name(), provider.name());
                let figures = one(&subject, client, provider, seconds, place)?;
                pairs.0.entry((client, provider)).or_default().push(figures);
            }
        }
        Ok(pairs)
    }

    /// What is left of the rate of bytes that pass, within a round: pieces per second of CPU, and
    /// per second.
    fn share(&self, client: Tongue, provider: Tongue, rate: fn(&Figures) -> f64) -> f64 {
        median(self.shares(client, provider, rate))
    }

    fn shares(&self, client: Tongue, provider: Tongue, rate: fn(&Figures) -> f64) -> Vec<f64> {
        let rounds = self.0[&(client, provider)].iter().zip(&self.0[&(provider, provider)]);
        rounds.map(|(translated, passed)| rate(translated) / rate(passed)).collect()
    }

    pub fn figures(&self) -> Vec<Figure> {
        let one = |(client, provider): (Tongue, Tongue)| {
            let name = format!("events per core second, {} from {}, to untranslated", client.name(), provider.name());
            Figure::higher(name, self.shares(client, provider, per_core))
        };
        self.translated().map(one).collect()
    }

    fn translated(&self) -> impl Iterator<Item = (Tongue, Tongue)> {
        self.0.keys().copied().filter(|(client, provider)| client != provider)
    }

    pub fn print(&self) {
        println!("\nStreams between dialects, 64 streams of 200 events as fast as they are taken");
        println!(
            "{:>10} {:>10} {:>10} {:>16} {:>12} {:>16}",
            "client", "provider", "events/s", "events/core-s", "CPU µs/event", "to pass-through"
        );
        for ((client, provider), rounds) in &self.0 {
            let rate = median(rounds.iter().map(per_second).collect());
            let core = median(rounds.iter().map(per_core).collect());
            let share = self.share(*client, *provider, per_core);
            let (client, provider) = (client.name(), provider.name());
            println!("{client:>10} {provider:>10} {rate:>10.0} {core:>16.0} {:>12.2} {share:>16.2}", 1e6 / core);
        }
    }

    /// The slowest of them decides, by CPU and by the clock.
    pub fn bars(&self) -> Vec<Bar> {
        let slowest = |what: &str, rate: fn(&Figures) -> f64| {
            let share =
                self.translated().map(|(client, provider)| (self.share(client, provider, rate), client, provider));
            let (got, client, provider) = share.min_by(|one, other| one.0.total_cmp(&other.0))?;
            let name = format!("translated events per {what}, slowest: {} from {}", client.name(), provider.name());
            Some(Bar { name, limit: 0.75, at_least: true, got, unit: "×" })
        };
        slowest("core second", per_core).into_iter().chain(slowest("second", per_second)).collect()
    }

    pub fn json(&self) -> Value {
        let pair = |((client, provider), rounds): (&(Tongue, Tongue), &Vec<Figures>)| {
            let rounds: Vec<_> = rounds.iter().map(Figures::json).collect();
            let share = self.share(*client, *provider, per_core);
            json!({"client": client.name(), "provider": provider.name(), "to_pass_through": share, "rounds": rounds})
        };
        self.0.iter().map(pair).collect()
    }
}

fn per_core(figures: &Figures) -> f64 {
    per_core_second(figures, figures.events)
}

fn per_second(figures: &Figures) -> f64 {
    figures.events / figures.seconds
}

fn one(subject: &Subject, client: Tongue, provider: Tongue, seconds: f64, place: &Place) -> anyhow::Result<Figures> {
    let model = provider.model();
    let arguments = ["--model", &model, "--tongue", client.name(), "--stream", "--connections", "64"];
    let figures = measure(subject, &arguments, seconds, place)?;
    let pieces = figures.requests * PIECES;
    let (client, provider) = (client.name(), provider.name());
    ensure!(figures.requests > 0.0, "{client} from {provider}: no stream came to its end");
    ensure!(figures.events >= pieces, "{client} from {provider}: {} events of {pieces} pieces", figures.events);
    Ok(Figures { events: pieces, ..figures })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(events: f64, cpu_seconds: f64) -> Figures {
        let nothing = 0.0;
        Figures {
            requests: events / PIECES,
            events,
            seconds: 1.0,
            p50_us: nothing,
            p99_us: nothing,
            first_p50_us: nothing,
            first_p99_us: nothing,
            cpu_seconds,
        }
    }

    /// Each pair against what passes from the same provider; the slowest one is the bar's, also
    /// when another is below the bar too.
    #[test]
    fn the_slowest_pair_is_the_bar() {
        let mut pairs = Pairs::default();
        for provider in Tongue::ALL {
            for client in Tongue::ALL {
                let cpu = match (client, provider) {
                    (Tongue::Gemini, Tongue::Anthropic) => 4.0,
                    (Tongue::Anthropic, Tongue::Chat) => 2.5,
                    _ if client == provider => 1.0,
                    _ => 1.25,
                };
                pairs.0.insert((client, provider), vec![figures(1000.0, cpu); 3]);
            }
        }
        let [core, clock] = &pairs.bars()[..] else { panic!("two bars") };
        assert_eq!(core.name, "translated events per core second, slowest: gemini from anthropic");
        assert!((core.got - 0.25).abs() < 1e-9 && !core.met());
        assert!((clock.got - 1.0).abs() < 1e-9 && clock.met());
    }
}
