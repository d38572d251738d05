//! A refusal is our own "no", or a provider's fault translated for the caller: a code from the one
//! table of public errors, a message that names the field, and retry advice. A value: `endpoints`
//! make a reply in the caller's dialect of it.

use tollgate_catalog::Money;
use tollgate_wire::error::{Code, Detail};

/// Why a request was not served.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub param: Option<String>,
    /// Seconds; the table's own advice is used when it is absent.
    pub retry_after: Option<u32>,
    /// Tells cases of one code apart, for programs.
    pub reason: Option<&'static str>,
    /// Sent again it could be made, and paid, twice: no SDK shall do that by itself.
    pub once: bool,
    /// The provider's own word for it.
    pub upstream_code: Option<Box<str>>,
    /// What else it says, as a JSON object, for clients that speak as it does.
    pub details: Option<Box<str>>,
    /// What would have been needed, for want of money.
    pub amounts: Option<Box<Amounts>>,
}

/// Money that a call needs and does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts {
    pub needed: Money,
    /// Nothing: it is a limit that stands in the way.
    pub available: Option<Money>,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            reason: None,
            once: false,
            upstream_code: None,
            details: None,
            amounts: None,
        }
    }

    pub fn about(code: Code, param: &str, message: impl Into<String>) -> Refusal {
        Refusal { param: Some(param.to_owned()), ..Refusal::new(code, message) }
    }

    pub fn after(mut self, seconds: u32) -> Refusal {
        self.retry_after = Some(seconds);
        self
    }

    pub fn once(mut self) -> Refusal {
        self.once = true;
        self
    }

    pub fn because(mut self, reason: &'static str) -> Refusal {
        self.reason = Some(reason);
        self
    }

    /// What stands beside the code, for programs.
    pub fn more(&self) -> Vec<(&'static str, Detail<'_>)> {
        let words = [("reason", self.reason), ("upstream_code", self.upstream_code.as_deref())];
        let words = words.into_iter().filter_map(|(name, word)| Some((name, Detail::Word(word?))));
        let needed = self.amounts.as_deref().map(|one| ("needed_nano_usd", one.needed));
        let available = self.amounts.as_deref().and_then(|one| Some(("available_nano_usd", one.available?)));
        let amounts = needed.into_iter().chain(available).map(|(name, amount)| (name, Detail::Amount(amount.nano())));
        let details = self.details.as_deref().map(|raw| ("details", Detail::Object(raw)));
        words.chain(amounts).chain(details).collect()
    }
}

impl From<tollgate_wire::Problem> for Refusal {
    fn from(problem: tollgate_wire::Problem) -> Refusal {
        Refusal { param: problem.param, ..Refusal::new(problem.code, problem.message) }
    }
}

impl From<tollgate_upstream::Fault> for Refusal {
    fn from(fault: tollgate_upstream::Fault) -> Refusal {
        let busy = fault.code == Code::SocialDataCapacityReached;
        Refusal {
            param: fault.param,
            retry_after: fault.retry_after,
            reason: busy.then_some("busy"),
            upstream_code: fault.upstream_code.map(String::into_boxed_str),
            details: fault.details,
            ..Refusal::new(fault.code, fault.message)
        }
    }
}

impl From<tollgate_store::StoreError> for Refusal {
    fn from(error: tollgate_store::StoreError) -> Refusal {
        tracing::error!(%error, "store");
        Refusal::new(Code::LedgerUnavailable, "The ledger cannot be reached at the moment; nothing was charged.")
            .after(2)
    }
}
