//! What a call has used. Each kind of work fills the meter that suits it; the till reads all of
//! them alike, as disjoint counters.

use super::tokens::Tokens;
use tollgate_catalog::{BillingUnit, Face, Price};
use tollgate_store::{Counters, Side};
use tollgate_wire::usage::Usage;

#[derive(Clone, Default)]
pub enum Meter {
    /// Nothing came out: no charge, whatever was sent in.
    #[default]
    Nothing,
    /// Tokens, of which the provider reports or we count as they pass.
    Tokens(Tokens),
    /// Something that is known when the answer is there: calls, images, characters, seconds.
    Known { used: Counters, estimated: bool, raw_usage: Option<String> },
    /// What its provider never reports, and what is therefore counted here.
    Counted(Counters),
}

impl Meter {
    /// No charge, whatever was sent in.
    pub fn is_empty(&self) -> bool {
        match self {
            Meter::Nothing => true,
            Meter::Tokens(tokens) => tokens.is_empty(),
            Meter::Known { used, .. } | Meter::Counted(used) => *used == Counters::default(),
        }
    }

    /// What is charged for, and whether we had to count it ourselves.
    pub fn measured(&self) -> (Counters, bool) {
        match self {
            Meter::Nothing => (Counters::default(), false),
            Meter::Tokens(tokens) => {
                let (usage, estimated) = tokens.measured();
                (Counters { tools: tokens.tools, ..counters(&usage) }, estimated)
            }
            Meter::Known { used, estimated, .. } => (*used, *estimated),
            Meter::Counted(used) => (*used, true),
        }
    }

    /// What a call without a charge has to show: the provider's own report.
    pub fn reported(&self) -> Counters {
        match self {
            Meter::Tokens(Tokens { reported: Some(usage), .. }) => counters(usage),
            _ => Counters::default(),
        }
    }

    pub fn raw_usage(&self) -> Option<&str> {
        match self {
            Meter::Nothing | Meter::Counted(_) => None,
            Meter::Tokens(Tokens { raw_usage, .. }) | Meter::Known { raw_usage, .. } => raw_usage.as_deref(),
        }
    }

    /// No more output than this is charged for.
    pub fn bound(&mut self, ceiling: u64) {
        if let Meter::Tokens(tokens) = self {
            tokens.ceiling = Some(ceiling);
        }
    }

    /// The token meter; a meter of another kind becomes one.
    pub fn tokens(&mut self) -> &mut Tokens {
        if !matches!(self, Meter::Tokens(_)) {
            *self = Meter::Tokens(Tokens::default());
        }
        match self {
            Meter::Tokens(tokens) => tokens,
            _ => unreachable!("made a token meter above"),
        }
    }
}

/// Everything that went in, in tokens: what tiers for long input go by.
pub fn context_len(used: &Counters) -> u64 {
    used.total(Side::Input)
}

/// Calls and seconds count only where they are what is sold; tokens stay as information.
pub fn fitted(used: Counters, price: &Price) -> Counters {
    let by_seconds = price.faces.has(Face::VideoSecond) || price.unit == BillingUnit::AudioDuration;
    Counters {
        calls: if price.faces.has(Face::PerCall) { used.calls } else { 0 },
        seconds: if by_seconds { used.seconds } else { 0 },
        ..used
    }
}

/// The same with no more output than this; what is too much is taken off the text first.
pub fn within(used: Counters, ceiling: u64) -> Counters {
    let mut within = used;
    let mut over = used.total(Side::Output).saturating_sub(ceiling);
    for part in [&mut within.output, &mut within.reasoning, &mut within.audio_output, &mut within.image_output] {
        let off = over.min(*part);
        *part -= off;
        over -= off;
    }
    within
}

/// The one place where what a provider reported becomes what is priced.
pub fn counters(usage: &Usage) -> Counters {
    Counters {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write_5m: usage.cache_write_5m,
        cache_write_1h: usage.cache_write_1h,
        image_input: usage.image_input,
        audio_input: usage.audio_input,
        output: usage.output,
        reasoning: usage.reasoning,
        image_output: usage.image_output,
        audio_output: usage.audio_output,
        calls: 1,
        ..Counters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_taken_off_from_the_text_on() {
        let used =
            Counters { input: 9, output: 10, reasoning: 5, audio_output: 3, image_output: 2, ..Counters::default() };
        let left = |ceiling| {
            let one = within(used, ceiling);
            assert_eq!(one.input, 9);
            (one.output, one.reasoning, one.audio_output, one.image_output)
        };
        assert_eq!(left(20), (10, 5, 3, 2));
        assert_eq!(left(19), (9, 5, 3, 2));
        assert_eq!(left(8), (0, 3, 3, 2));
        assert_eq!(left(1), (0, 0, 0, 1));
        assert_eq!(left(0), (0, 0, 0, 0));
        assert_eq!(left(u64::MAX), (10, 5, 3, 2));
    }

    #[test]
    fn what_is_not_sold_by_the_call_does_not_count_calls() {
        let used = Counters { input: 5, calls: 1, seconds: 3, ..Counters::default() };
        let priced = |text: &str| {
            let files = [("test.toml".to_owned(), text.to_owned())];
            let catalog = tollgate_catalog::load(&files).expect("a catalog");
            let model = catalog.model("m").expect("a model").clone();
            model.price(&tollgate_catalog::PriceFacts::at(0)).expect("a price")
        };
        let tokens = priced(
            "[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = \"p\", upstream_model = \"u\" }]",
        );
        assert_eq!(fitted(used, &tokens), Counters { input: 5, ..Counters::default() });
        let calls = priced(
            "[model.m]\nbilling_unit = \"per_call\"\nprice = { per_call = 1 }\nroute = [{ provider = \"p\", upstream_model = \"u\" }]",
        );
        assert_eq!(fitted(used, &calls), Counters { input: 5, calls: 1, ..Counters::default() });
    }
}
