//! Answers whose caller names no limit for them: what is held, and what becomes of a call whose
//! account has less than that.
//!
//! A stream is held for a few tokens at first and its hold grows with it (`cover.rs`). A whole
//! answer is held for as long as answers usually are. Where the account has less, the hold is what
//! it has and the provider gets the limit that this covers: a small balance buys a short answer
//! instead of a refusal.

use super::need::{Need, OpenEnd};
use super::quote::Quote;
use tollgate_catalog::{ChargeBound, Model, Money};

/// Tokens of output, of each choice, that the least hold is good for: fewer are hardly an answer.
const LEAST: u64 = 256;

impl Need {
    /// A stream without a limit is held for so many tokens of each choice at first.
    pub fn begin_with(&mut self, tokens: u64) {
        if let Some(OpenEnd { choices, stream: true }) = self.open_end {
            self.most.output = self.most.output.min(tokens.max(1).saturating_mul(choices));
        }
    }

    fn with_output(self, output: u64) -> Need {
        let mut need = self;
        need.most.output = output;
        need
    }
}

impl Quote {
    /// The least hold that the call may begin with.
    pub fn least(&self, model: &Model) -> Money {
        let Some(OpenEnd { choices, .. }) = self.need.open_end else { return self.amount };
        let output = LEAST.saturating_mul(choices).min(self.need.most.output);
        self.with_output(model, output).map_or(self.amount, |bound| bound.amount.min(self.amount))
    }

    /// What the call can cost at most. Nothing: neither caller nor catalog sets a limit.
    pub fn most(&self, model: &Model) -> Option<ChargeBound> {
        let ceiling = self.need.output_ceiling.max(self.need.most.output);
        if ceiling < u64::MAX {
            return self.with_output(model, ceiling);
        }
        // Where there is no limit it is certain all the same if output costs nothing.
        let held = self.with_output(model, self.need.most.output)?;
        self.with_output(model, 0).is_some_and(|least| least.amount == held.amount).then_some(held)
    }

    /// Less was held than was asked for: how many tokens of each choice that covers. From here on
    /// the call is one for so many.
    pub fn shorten(&mut self, model: &Model, held: Money) -> Option<u64> {
        let OpenEnd { choices, .. } = self.need.open_end?;
        let choices = choices.max(1);
        let (mut covered, mut beyond) = (0, self.need.most.output / choices + 1);
        while covered + 1 < beyond {
            let middle = covered + (beyond - covered) / 2;
            let fits = self.with_output(model, middle * choices).is_some_and(|bound| bound.amount <= held);
            if fits { covered = middle } else { beyond = middle }
        }
        self.need =
            Need { output_ceiling: covered * choices, open_end: None, ..self.need.with_output(covered * choices) };
        self.amount = held;
        Some(covered)
    }

    fn with_output(&self, model: &Model, output: u64) -> Option<ChargeBound> {
        self.bound(model, self.need.with_output(output))
    }
}
