//! What was sold and what it cost, as an operator watches it: counters by model and provider.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Pairs of model and provider that are counted apart; those that come later are counted together.
const MOST_PAIRS: usize = 2_000;
const OTHER: &str = "other";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SoldLabels {
    model: String,
    provider: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TokenLabels {
    model: String,
    provider: String,
    /// `input` or `output`.
    side: &'static str,
}

#[derive(Default)]
pub struct MarginMeter {
    known: Mutex<HashSet<SoldLabels>>,
    sold: Family<SoldLabels, Counter>,
    cost: Family<SoldLabels, Counter>,
    unknown: Family<SoldLabels, Counter>,
    losses: Family<SoldLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
}

impl MarginMeter {
    /// A call ended with this charge, and with a cost where somebody knows it.
    pub fn sold(&self, model: &str, provider: &str, charge: i64, cost: Option<i64>) {
        let labels = self.labels(model, provider);
        let amount = |nano: i64| u64::try_from(nano).unwrap_or(0);
        self.sold.get_or_create(&labels).inc_by(amount(charge));
        match cost {
            Some(cost) => {
                self.cost.get_or_create(&labels).inc_by(amount(cost));
                if cost > charge {
                    self.losses.get_or_create(&labels).inc();
                }
            }
            None => {
                self.unknown.get_or_create(&labels).inc();
            }
        }
    }

    /// A call used so many tokens.
    pub fn used(&self, model: &str, provider: &str, input: u64, output: u64) {
        for (side, tokens) in [("input", input), ("output", output)] {
            if tokens > 0 {
                let SoldLabels { model, provider } = self.labels(model, provider);
                self.tokens.get_or_create(&TokenLabels { model, provider, side }).inc_by(tokens);
            }
        }
    }

    fn labels(&self, model: &str, provider: &str) -> SoldLabels {
        let labels = SoldLabels { model: model.to_owned(), provider: provider.to_owned() };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&labels) || known.len() < MOST_PAIRS {
            known.insert(labels.clone());
            return labels;
        }
        SoldLabels { model: OTHER.to_owned(), provider: OTHER.to_owned() }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "What customers were charged, by model and provider, in nano-USD";
        registry.register("sold_nano_usd", help, self.sold.clone());
        let help =
            "What calls cost the operator, by model and provider, in nano-USD; without those whose cost nobody knows";
        registry.register("cost_nano_usd", help, self.cost.clone());
        let help = "Calls whose cost nobody knows, by model and provider";
        registry.register("cost_unknown_calls", help, self.unknown.clone());
        let help = "Calls that cost more than they were sold for, by model and provider";
        registry.register("cost_above_charge_calls", help, self.losses.clone());
        let help = "Tokens that calls used, by model, provider and side";
        registry.register("tokens", help, self.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_a_bound() {
        let meter = MarginMeter::default();
        for at in 0..MOST_PAIRS + 10 {
            meter.sold(&format!("m{at}"), "p", 5, Some(7));
        }
        let count = |model: &str, provider: &str| {
            let labels = SoldLabels { model: model.to_owned(), provider: provider.to_owned() };
            (meter.cost.get_or_create(&labels).get(), meter.losses.get_or_create(&labels).get())
        };
        assert_eq!(count("m0", "p"), (7, 1));
        assert_eq!(count(OTHER, OTHER), (70, 10));
        assert_eq!(meter.known.lock().expect("a lock").len(), MOST_PAIRS);
        meter.used("m0", "p", 3, 0);
        meter.used("m0", "p", 4, 5);
        meter.used("one more", "p", 6, 7);
        let tokens = |model: &str, provider: &str, side| {
            let labels = TokenLabels { model: model.to_owned(), provider: provider.to_owned(), side };
            meter.tokens.get_or_create(&labels).get()
        };
        assert_eq!((tokens("m0", "p", "input"), tokens("m0", "p", "output")), (7, 5));
        assert_eq!((tokens(OTHER, OTHER, "input"), tokens(OTHER, OTHER, "output")), (6, 7));
    }
}
