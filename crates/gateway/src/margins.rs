//! What was sold and what it cost, as an operator watches it: counters by model and provider.

use foldhash::HashMap;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

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

/// What is counted of one pair of model and provider. What never happened to it has no counter: a
/// cost that nobody knows is not one of nothing.
struct PairMeter {
    labels: SoldLabels,
    sold: OnceLock<Counter>,
    cost: OnceLock<Counter>,
    unknown: OnceLock<Counter>,
    losses: OnceLock<Counter>,
    input: OnceLock<Counter>,
    output: OnceLock<Counter>,
}

/// The meters of pairs by the name of the model, then of the provider: found without making a name.
type Pairs = HashMap<String, HashMap<String, Arc<PairMeter>>>;

#[derive(Default)]
pub struct MarginMeter {
    known: RwLock<(Pairs, usize)>,
    sold: Family<SoldLabels, Counter>,
    cost: Family<SoldLabels, Counter>,
    unknown: Family<SoldLabels, Counter>,
    losses: Family<SoldLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
}

impl MarginMeter {
    /// A call ended with this charge, and with a cost where somebody knows it.
    pub fn sold(&self, model: &str, provider: &str, charge: i64, cost: Option<i64>) {
        let pair = self.pair(model, provider);
        let amount = |nano: i64| u64::try_from(nano).unwrap_or(0);
        pair.of(&pair.sold, &self.sold).inc_by(amount(charge));
        match cost {
            Some(cost) => {
                pair.of(&pair.cost, &self.cost).inc_by(amount(cost));
                if cost > charge {
                    pair.of(&pair.losses, &self.losses).inc();
                }
            }
            None => {
                pair.of(&pair.unknown, &self.unknown).inc();
            }
        }
    }

    /// A call used so many tokens.
    pub fn used(&self, model: &str, provider: &str, input: u64, output: u64) {
        if input == 0 && output == 0 {
            return;
        }
        let pair = self.pair(model, provider);
        for (counter, side, tokens) in [(&pair.input, "input", input), (&pair.output, "output", output)] {
            if tokens > 0 {
                counter.get_or_init(|| self.tokens.get_or_create(&pair.tokens(side)).clone()).inc_by(tokens);
            }
        }
    }

    fn pair(&self, model: &str, provider: &str) -> Arc<PairMeter> {
        let find = |pairs: &Pairs| pairs.get(model)?.get(provider).cloned();
        if let Some(pair) = find(&self.known.read().unwrap_or_else(PoisonError::into_inner).0) {
            return pair;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let (pairs, count) = &mut *known;
        let full = *count >= MOST_PAIRS && find(pairs).is_none();
        let (model, provider) = if full { (OTHER, OTHER) } else { (model, provider) };
        let pair = pairs.entry(model.to_owned()).or_default().entry(provider.to_owned());
        let pair = pair.or_insert_with(|| {
            *count += 1;
            Arc::new(PairMeter::new(model, provider))
        });
        pair.clone()
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

impl PairMeter {
    fn new(model: &str, provider: &str) -> PairMeter {
        PairMeter {
            labels: SoldLabels { model: model.to_owned(), provider: provider.to_owned() },
            sold: OnceLock::new(),
            cost: OnceLock::new(),
            unknown: OnceLock::new(),
            losses: OnceLock::new(),
            input: OnceLock::new(),
            output: OnceLock::new(),
        }
    }

    fn of<'c>(&self, counter: &'c OnceLock<Counter>, family: &Family<SoldLabels, Counter>) -> &'c Counter {
        counter.get_or_init(|| family.get_or_create(&self.labels).clone())
    }

    fn tokens(&self, side: &'static str) -> TokenLabels {
        let SoldLabels { model, provider } = self.labels.clone();
        TokenLabels { model, provider, side }
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
        assert_eq!(meter.known.read().expect("a lock").1, MOST_PAIRS + 1, "and the one for all others");
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
