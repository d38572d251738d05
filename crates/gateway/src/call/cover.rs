//! How far a stream's hold reaches, and how it is made to reach further (docs/money-rules.md R3).
//!
//! The hold covers a number of output tokens. When four fifths of them are produced, more is asked
//! for while the stream goes on; what lies beyond the cover is held back until the answer is there.
//! So nothing is given away that nobody has money for, and a stream with money is not delayed. With
//! each piece one comparison is made; prices are looked at once per step.
//!
//! What is asked for is granted as far as the account has it. Where the hold is already made for
//! all that the request allows, an honest provider cannot outgrow it; one that surely has is one
//! that ignores limits, and is stopped at the operator's cost.

use super::need::Need;
use super::open::OpenCall;
use super::tokens::surely_above;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tollgate_catalog::Money;
use tollgate_store::{Extend, HoldRefused};
use tollgate_wire::error::Code;

pub struct Cover {
    /// From this count on more is asked for.
    ask_at: u64,
    /// What lies beyond this count stays here.
    ends_at: u64,
    /// Output tokens that are held for.
    held: u64,
    /// Tokens held for at first: the size of each step.
    step: u64,
    /// The most that the model may be asked to produce.
    ceiling: u64,
    /// All that is held.
    money: Money,
    /// Extensions asked for so far; a step that was refused is asked for again under its own
    /// number.
    steps: u32,
    asking: Option<Asking>,
}

struct Asking {
    tokens: u64,
    more: Money,
    /// The whole hold as it is then.
    answer: Pin<Box<dyn Future<Output = Result<Money, HoldRefused>> + Send>>,
}

/// May a piece go out?
#[derive(Debug, PartialEq, Eq)]
pub enum Covered {
    Yes,
    /// Not before more is held.
    NotYet,
    /// The provider ignores the limit that it was given: no more of this.
    Never,
}

impl Cover {
    pub fn new(call: &OpenCall) -> Cover {
        let quote = &call.quote;
        let free = quote.price.faces.get(quote.price.dearest_output()).unwrap_or(0) == 0;
        let (held, ceiling) =
            if free { (u64::MAX, u64::MAX) } else { (quote.need.most.output, quote.need.output_ceiling) };
        let (money, steps) = (call.held, call.extensions);
        let mut cover =
            Cover { ask_at: u64::MAX, ends_at: u64::MAX, held, step: held, ceiling, money, steps, asking: None };
        cover.reach(held, held);
        cover
    }

    /// The hold is good for `held` tokens, the last `step` of them new.
    fn reach(&mut self, held: u64, step: u64) {
        self.held = held;
        (self.ends_at, self.ask_at) = if held >= self.ceiling {
            (surely_above(self.ceiling), u64::MAX)
        } else {
            (held, held.saturating_sub(step / 5))
        };
    }

    /// Looks at what was produced with a piece that would go out now, and begins to ask for more
    /// when it is time. `seen` is our own count of it: what shows only in a report cannot be
    /// stopped any more.
    pub fn check(&mut self, produced: u64, seen: u64, call: &OpenCall) -> Covered {
        if self.held >= self.ceiling {
            return if seen > self.ends_at { Covered::Never } else { Covered::Yes };
        }
        if produced >= self.ask_at && self.asking.is_none() {
            self.ask(produced, call);
        }
        if produced > self.ends_at { Covered::NotYet } else { Covered::Yes }
    }

    fn ask(&mut self, produced: u64, call: &OpenCall) {
        let left = self.ceiling.saturating_sub(self.held);
        let tokens = self.step.max(produced.saturating_sub(self.held)).min(left);
        // A cost beyond all numbers is more than any account has.
        let cost = |tokens| call.quote.more_output(&call.model, tokens).unwrap_or(Money::MAX);
        let (more, least) = (cost(tokens), cost(1));
        let extend = Extend { call: call.id, account: call.caller.account.id, step: self.steps + 1, more, least };
        let store = call.till.store.clone();
        let answer = Box::pin(async move {
            let mut held = store.extend(extend).await?;
            held.durable().await.map_err(|_| HoldRefused::Unavailable)?;
            Ok(held.total())
        });
        self.asking = Some(Asking { tokens, more, answer });
    }

    /// The answer to what was asked; pending for ever when nothing was.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), HoldRefused>> {
        let Some(asking) = &mut self.asking else { return Poll::Pending };
        let answer = std::task::ready!(asking.answer.as_mut().poll(cx));
        let (tokens, more) = (asking.tokens, asking.more);
        self.asking = None;
        Poll::Ready(match answer {
            Ok(all) => {
                self.steps += 1;
                let granted = all.checked_sub(self.money).unwrap_or(Money::ZERO);
                let tokens = covered(tokens, more, granted);
                self.money = all;
                self.reach(self.held.saturating_add(tokens), tokens);
                Ok(())
            }
            Err(refused) => {
                // What is held may be used up; then it is asked once more, for an account may be
                // topped up in between.
                self.ask_at = self.ends_at.saturating_add(1);
                Err(refused)
            }
        })
    }

    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }
}

/// How many of the tokens that cost `more` are paid for by what was granted of it.
fn covered(tokens: u64, more: Money, granted: Money) -> u64 {
    if granted >= more {
        return tokens;
    }
    let part = u128::from(tokens) * u128::try_from(granted.nano()).unwrap_or(0)
        / u128::try_from(more.nano()).unwrap_or(1).max(1);
    u64::try_from(part).unwrap_or(tokens)
}

impl OpenCall {
    /// Holds for all that is needed now, before it is used. Refused with what would have been
    /// needed.
    pub async fn cover_all(&mut self, need: Need) -> Result<(), (HoldRefused, Money)> {
        let bound = self.quote.bound(&self.model, need).map_or(Money::MAX, |bound| bound.amount);
        let more = bound.checked_sub(self.quote.amount).unwrap_or(Money::ZERO).max(Money::ZERO);
        self.cover_need(need, more).await
    }

    /// Holds for so many input tokens more, before anything is sent: what a link leads to is known
    /// only when it was fetched. Refused with what would have been needed.
    pub async fn cover_input(&mut self, tokens: u64) -> Result<(), (HoldRefused, Money)> {
        let Some((need, more)) = self.quote.more_input(&self.model, tokens) else {
            return Err((HoldRefused::Insufficient { available: Money::ZERO }, Money::MAX));
        };
        self.cover_need(need, more).await
    }

    /// Holds for a need that is larger than what was quoted, and costs so much more.
    async fn cover_need(&mut self, need: Need, more: Money) -> Result<(), (HoldRefused, Money)> {
        if !more.is_zero() {
            let step = self.extensions + 1;
            let extend = Extend { call: self.id, account: self.caller.account.id, step, more, least: more };
            let mut held = self.till.store.extend(extend).await.map_err(|refused| (refused, more))?;
            held.durable().await.map_err(|_| (HoldRefused::Unavailable, more))?;
            self.extensions = step;
            self.held = held.total();
            self.quote.amount = self.quote.amount.checked_add(more).unwrap_or(Money::MAX);
        }
        self.quote.need = need;
        Ok(())
    }
}

/// The error for a client whose stream ends because no more could be held for it.
pub fn why_uncovered(code: Code) -> &'static str {
    match code {
        Code::InsufficientBalance => "The balance does not cover more of this answer. What was produced is charged.",
        Code::LedgerUnavailable => "No more could be held for this answer. What was produced is charged.",
        _ => "The limits of this key or account do not cover more of this answer. What was produced is charged.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_granted_covers_its_part_of_the_tokens() {
        let nano = Money::from_nano;
        for (tokens, more, granted, covers) in [
            (100, 1_000, 1_000, 100),
            (100, 1_000, 2_000, 100),
            (100, 1_000, 999, 99),
            (100, 1_000, 10, 1),
            (100, 1_000, 9, 0),
            (100, 1_000, 0, 0),
            (u64::MAX, i64::MAX, i64::MAX - 1, u64::MAX - 3),
            (5, 0, 0, 5),
        ] {
            assert_eq!(covered(tokens, nano(more), nano(granted)), covers, "{granted} of {more} for {tokens}");
        }
    }
}
