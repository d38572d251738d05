//! How far a stream's hold reaches, and how it is made to reach further (money.md R3).
//!
//! The hold covers a number of output tokens. When four fifths of them are produced, more is asked for while the stream goes
//! on; what lies beyond the cover is kept back until the answer is there. So nothing is given away that nobody has money
//! for, and a stream with money is not delayed. With each piece one comparison is made; prices are looked at once per step.
//!
//! Before the end there is only our own count, which leans high. Where the hold is already made for all that the request
//! allows, an honest provider cannot outgrow it, and only a count of twice as much and some is taken for one that ignores limits.

use super::open::OpenCall;
use super::quote::Quote;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tollgate_catalog::Money;
use tollgate_store::{Extend, HoldRefused};
use tollgate_wire::error::Code;

/// Of a few tokens our count can be several times the provider's: tool calls are mostly punctuation.
const FEW: u64 = 256;

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
    /// Extensions asked for so far; a step that was refused is asked for again under its own number.
    steps: u32,
    asking: Option<Asking>,
}

struct Asking {
    tokens: u64,
    answer: Pin<Box<dyn Future<Output = Result<(), HoldRefused>> + Send>>,
}

/// May a piece go out?
#[derive(Debug, PartialEq, Eq)]
pub enum Covered {
    Yes,
    /// Not before more is held.
    NotYet,
}

impl Cover {
    /// `steps`: extensions made before the answer began.
    pub fn new(quote: &Quote, steps: u32) -> Cover {
        let free = quote.price.faces.get(quote.price.dearest_output()).unwrap_or(0) == 0;
        let held = if free { u64::MAX } else { quote.need.most.output };
        let step = held;
        let mut cover = Cover {
            ask_at: u64::MAX,
            ends_at: u64::MAX,
            held,
            step,
            ceiling: quote.need.output_ceiling,
            steps,
            asking: None,
        };
        cover.reach(held, step);
        cover
    }

    /// The hold is good for `held` tokens, the last `step` of them new.
    fn reach(&mut self, held: u64, step: u64) {
        self.held = held;
        (self.ends_at, self.ask_at) = if held >= self.ceiling {
            let ends_at = held.saturating_mul(2).saturating_add(FEW);
            (ends_at, ends_at.saturating_sub(step / 5))
        } else {
            (held, held.saturating_sub(step / 5))
        };
    }

    /// Looks at the count with a piece that would go out now, and begins to ask for more when it is time.
    pub fn check(&mut self, produced: u64, call: &OpenCall) -> Covered {
        if produced < self.ask_at {
            return Covered::Yes;
        }
        if self.asking.is_none() {
            self.ask(produced, call);
        }
        if produced > self.ends_at { Covered::NotYet } else { Covered::Yes }
    }

    fn ask(&mut self, produced: u64, call: &OpenCall) {
        let left = self.ceiling.saturating_sub(self.held);
        let wanted = self.step.max(produced.saturating_sub(self.held));
        let tokens = if left == 0 { wanted } else { wanted.min(left) };
        // A cost beyond all numbers is more than any account has.
        let more = call.quote.more_output(&call.model, tokens).unwrap_or(Money::MAX);
        let extend = Extend { call: call.id, account: call.caller.account.id, step: self.steps + 1, more };
        let store = call.app.store.clone();
        let answer = Box::pin(async move {
            let mut held = store.extend(extend).await?;
            held.durable().await.map_err(|_| HoldRefused::Unavailable)
        });
        self.asking = Some(Asking { tokens, answer });
    }

    /// The answer to what was asked; pending for ever when nothing was.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), HoldRefused>> {
        let Some(asking) = &mut self.asking else { return Poll::Pending };
        let answer = std::task::ready!(asking.answer.as_mut().poll(cx));
        let tokens = asking.tokens;
        self.asking = None;
        match answer {
            Ok(()) => {
                self.steps += 1;
                self.reach(self.held.saturating_add(tokens), tokens);
            }
            // What is held may be used up; then it is asked once more, for an account may be topped up in between.
            Err(_) => self.ask_at = self.ends_at.saturating_add(1),
        }
        Poll::Ready(answer)
    }

    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Output tokens that are held for.
    pub fn held(&self) -> u64 {
        self.held
    }
}

impl OpenCall {
    /// Holds for so many input tokens more, before anything is sent: what a link leads to is known only when it was fetched.
    pub async fn cover_input(&mut self, tokens: u64) -> Result<(), HoldRefused> {
        let Some((need, more)) = self.quote.more_input(&self.model, tokens) else {
            return Err(HoldRefused::Insufficient);
        };
        if !more.is_zero() {
            let step = self.extensions + 1;
            let extend = Extend { call: self.id, account: self.caller.account.id, step, more };
            let mut held = self.app.store.extend(extend).await?;
            held.durable().await.map_err(|_| HoldRefused::Unavailable)?;
            self.extensions = step;
        }
        self.quote.need = need;
        Ok(())
    }
}

/// What a client is told whose stream ends because no more could be held for it.
pub fn why_uncovered(code: Code) -> &'static str {
    match code {
        Code::InsufficientBalance => "The balance does not cover more of this answer. What was produced is charged.",
        Code::LedgerUnavailable => "No more could be held for this answer. What was produced is charged.",
        _ => "The limits of this key or account do not cover more of this answer. What was produced is charged.",
    }
}
