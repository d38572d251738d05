//! What every kind of call tells the till before it is sent: which model and endpoint type it
//! needs, and what it may use at most.

use super::meter::fitted;
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use std::borrow::Cow;
use tollgate_catalog::{Face, Model, Price, Quantities, Uncharged};
use tollgate_store::Counters;
use tollgate_wire::Dropped;
use tollgate_wire::error::Code;

/// What must be known of a request to price it. Enough for a quote: nothing here can send anything.
pub trait Priced: Send + Sync {
    /// The public name of the model.
    fn model(&self) -> &str;
    /// The value of `supported_endpoint_types` that the model must offer.
    fn endpoint_type(&self) -> &'static str;
    /// What else may refuse the call before it is priced: nothing is sent that no provider of the
    /// model could take. What it may use at most can depend on what they are sent.
    fn fits(&self, _: &Fetcher, _: &Serving, _: &Model) -> Result<(), Refusal> {
        Ok(())
    }
    /// Whether it can be sold at the price that was found for it.
    fn sold_at(&self, _: &Price) -> Result<(), Refusal> {
        Ok(())
    }
    /// Fields of the request that a provider of the model does not get, though it takes the call.
    fn drops(&self, _: &Fetcher, _: &Serving, _: &Model) -> Dropped {
        Dropped::default()
    }
    /// What the call may use at most of this model, or why it cannot be served by it.
    fn need(&self, model: &Model) -> Result<Need, Refusal>;
    /// The effective value of a parameter by dotted path, after defaults. Asked only for paths that
    /// a tier of the model goes by, so it may look through the whole body.
    fn attribute(&self, path: &str) -> Option<Cow<'_, str>>;
    /// By which endpoint it comes, where prices tell them apart: its type, or a word for one of
    /// several paths of that type.
    fn endpoint(&self) -> &'static str {
        self.endpoint_type()
    }
    /// Whether it asks the model to think, or not to; `None`: it does not say.
    fn thinking(&self) -> Option<bool> {
        None
    }
    /// What is said of a model that is paused, or whose providers all are.
    fn unavailable(&self) -> Code {
        Code::NoRouteAvailable
    }
    /// It looks by itself whether its model is paused, because a call may try one that is.
    fn tries_paused(&self) -> bool {
        false
    }
    /// What the meter of such a call would show for a use that somebody states: nothing, where that
    /// would be free.
    fn metered(&self, stated: Counters) -> Counters {
        stated
    }
}

/// What a call may use at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Need {
    /// Input tokens as estimated: what tiers for long input go by.
    pub context_len: u64,
    /// The most input tokens a provider could report.
    pub context_max: u64,
    /// The most of everything.
    pub most: Counters,
    /// `most` is what will be used, not a bound. Otherwise the kind of the tokens under `input` and
    /// `output` is not known before the end, and they are held for at the dearest face of their
    /// side.
    pub exact: bool,
    /// A model may go on producing up to this many output tokens, more than `most` says: a stream's
    /// hold is then extended on the way.
    pub output_ceiling: u64,
    /// The caller names no limit of the output.
    pub open_end: Option<OpenEnd>,
    /// The parameter that makes the bound smaller, named in refusals.
    pub sized_by: &'static str,
    /// What the charge depends on besides the request, each with the face whose price makes it
    /// matter.
    pub depends_on: &'static [(Face, &'static str)],
}

/// An answer whose caller names no limit for it: `short.rs` says what is held for it.
#[derive(Clone, Copy, Debug)]
pub struct OpenEnd {
    pub choices: u64,
    /// It is streamed, so that its hold can grow on the way.
    pub stream: bool,
}

impl Need {
    /// The most of each face of a price, tokens under the dearest face of their side.
    pub fn bound(&self, price: &Price) -> Result<Quantities, Uncharged> {
        let mut bound = fitted(self.most, price).quantities(price)?;
        if !self.exact {
            for (plain, dearest) in [(Face::Input, price.dearest_input()), (Face::Output, price.dearest_output())] {
                let tokens = std::mem::take(&mut bound[plain]);
                bound[dearest] = bound[dearest].checked_add(tokens).ok_or(Uncharged::Overflow)?;
            }
        }
        Ok(bound)
    }
}
