//! The error for a caller who gets no hold: for want of money with what is needed and what there
//! is, in words and in numbers.

use super::quote::Quote;
use super::{admit, limited};
use crate::refusal::{Amounts, Refusal};
use crate::world::Millis;
use tollgate_catalog::{Model, Money};
use tollgate_store::HoldRefused;
use tollgate_wire::error::Code;

/// What a call could not have.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// What must be set aside at least.
    pub amount: Money,
    /// The parameter that makes it less; empty where there is none.
    pub lower: &'static str,
}

impl Needed {
    /// For refusals that are not about money.
    pub const NOTHING: Needed = Needed { amount: Money::ZERO, lower: "" };

    pub fn of(quote: &Quote, model: &Model) -> Needed {
        // Where the caller names no limit, it is the prompt that counts.
        let lower = if quote.need.open_end.is_some() { "" } else { quote.need.sized_by };
        Needed { amount: quote.least(model), lower }
    }

    fn insufficient(self, available: Money) -> Refusal {
        let advice = match self.lower {
            "" => String::new(),
            name => format!(", or lower `{name}`"),
        };
        let text = format!(
            "This call needs {} USD set aside before it is sent, and the account has {available} USD for it. Top up{advice}.",
            self.amount
        );
        let amounts = Box::new(Amounts { needed: self.amount, available: Some(available) });
        Refusal { amounts: Some(amounts), ..Refusal::new(Code::InsufficientBalance, text) }
    }
}

pub fn why_refused(refused: &HoldRefused, needed: Needed, now: Millis) -> Refusal {
    match refused {
        HoldRefused::Insufficient { available } => needed.insufficient(*available),
        HoldRefused::Limit(reached) => {
            let amounts = Box::new(Amounts { needed: needed.amount, available: None });
            Refusal { amounts: Some(amounts), ..limited::limited(reached, now) }
        }
        HoldRefused::NoAccount => Refusal::new(Code::InvalidApiKey, "This key is revoked."),
        HoldRefused::Suspended => admit::suspended(),
        HoldRefused::IdemConflict => Refusal::about(
            Code::IdempotencyConflict,
            "Idempotency-Key",
            "This Idempotency-Key was used with another body.",
        ),
        HoldRefused::IdemRunning(first) => Refusal::about(
            Code::IdempotencyInProgress,
            "Idempotency-Key",
            format!("The call {first} with this Idempotency-Key is still running."),
        )
        .after(1),
        HoldRefused::Unavailable | HoldRefused::NotOpen | HoldRefused::ToppedUp | HoldRefused::IdemDone { .. } => {
            Refusal::new(
                Code::LedgerUnavailable,
                "The ledger cannot take holds at the moment; nothing was sent and nothing was charged.",
            )
            .after(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_want_of_money_is_stated_in_words_and_numbers() {
        let available = Money::from_nano(20_000_000);
        let message = |lower| {
            let needed = Needed { amount: Money::from_nano(1_500_000_000), lower };
            why_refused(&HoldRefused::Insufficient { available }, needed, 0)
        };
        let refusal = message("duration");
        assert_eq!(
            refusal.message,
            "This call needs 1.5 USD set aside before it is sent, and the account has 0.02 USD for it. Top up, or lower `duration`."
        );
        let amounts = refusal.amounts.expect("amounts");
        assert_eq!((amounts.needed.nano(), amounts.available), (1_500_000_000, Some(available)));
        assert!(message("").message.ends_with("for it. Top up."));
    }
}
