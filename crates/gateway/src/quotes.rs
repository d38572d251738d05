//! The price of a request before it is sent, and the calculation of a charge after it: one way of
//! writing both down.
//!
//! A quote holds nothing, sends nothing and costs nothing. It is made by the very functions that
//! make the hold and the charge of a call, so the same facts give the same amount to the
//! nano-dollar.

use crate::call::{self, Priced, Quote, Terms};
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::settings::RealtimeSettings;
use crate::who::caller::Caller;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::{Face, Fraction, Line, Model, Price, Quantities, Uncharged, instant};
use tollgate_store::Counters;
use tollgate_wire::error::Code;

/// Where a price is asked for: what is on sale, and who asks. `None` is the operator, to whom
/// nothing is closed.
pub struct Shop<'a> {
    pub serving: &'a Serving,
    pub caller: Option<&'a Caller>,
    /// Links are handed over to pictures whose maker has none.
    pub picture_links: bool,
    /// What the first response of a session is held for.
    pub realtime: &'a RealtimeSettings,
}

/// Reads a call as far as its price depends on it: from the parts of its path that vary and its
/// body, or for a GET its parameters as a JSON object. Every paid endpoint has one in its row.
pub type QuoteReader = fn(&Shop<'_>, &[&str], Bytes) -> Result<Box<dyn Priced>, Refusal>;

/// A sum that anybody can do again: the sum of all lines times the multiplier, rounded up once to
/// the next nano-dollar.
#[derive(Debug, Serialize)]
pub struct Calculation {
    pub pricing_version: String,
    pub group: String,
    /// Whether these are the prices of accounts that have topped up.
    pub paid_prices: bool,
    pub billing_unit: &'static str,
    /// The tier and, for each of its conditions, the fact that met it; `null`: base prices.
    pub tier: Option<QuotedTier>,
    /// The group's multiplier times the tier's.
    pub multiplier: Fraction,
    pub lines: Vec<Line>,
    pub total_nano_usd: i64,
    pub total_usd: String,
}

#[derive(Debug, Serialize)]
pub struct QuotedTier {
    pub name: String,
    pub why: Vec<Value>,
}

impl Calculation {
    /// The calculation of these quantities at a price that was chosen at this time for an input of
    /// this length.
    pub fn new(price: &Price, used: &Quantities, at: i64, context_len: u64) -> Result<Calculation, Uncharged> {
        let total = price.charge(used)?;
        Ok(Calculation {
            pricing_version: price.version.clone(),
            group: price.group.clone(),
            paid_prices: price.paid,
            billing_unit: price.unit.name(),
            tier: price.tier.as_ref().map(|name| QuotedTier { name: name.clone(), why: price.why(at, context_len) }),
            multiplier: price.multiplier,
            lines: price.lines(used)?,
            total_nano_usd: total.nano(),
            total_usd: total.to_string(),
        })
    }

    /// The calculation of what was used; nothing used is nothing to pay.
    pub fn of(price: &Price, used: &Counters, at: i64) -> Result<Calculation, Uncharged> {
        let quantities = if *used == Counters::default() { Quantities::NONE } else { used.quantities(price)? };
        Calculation::new(price, &quantities, at, call::context_len(used))
    }
}

/// A quote as it is shown.
#[derive(Debug, Serialize)]
pub struct QuoteReply {
    object: &'static str,
    pub endpoint: String,
    pub model: String,
    /// `upper_bound`: no call with this body costs more. `exact`: a call that uses what was stated
    /// costs this. `open`: neither the request nor the catalog limits the answer, so this is what
    /// is set aside and a call may cost more.
    pub kind: &'static str,
    /// From when on the model costs something else, where that is known; a call that begins before
    /// is charged at these prices, however long it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_changes_at: Option<String>,
    /// Whether the tier can still change with the length of the input as the provider counts it.
    pub tier_is_settled: bool,
    #[serde(flatten)]
    pub calculation: Calculation,
    /// What no call with this body costs more than; `null` where there is no such amount.
    pub most_nano_usd: Option<i64>,
    pub most_usd: Option<String>,
    /// What is set aside when the call is made; that of a stream without a limit grows while it
    /// runs.
    pub hold_nano_usd: i64,
    pub hold_usd: String,
    /// What the charge depends on besides the request; empty when it is certain.
    pub depends_on: Vec<&'static str>,
}

/// The quote of a request: an upper bound, or what a stated use costs.
pub fn quote_reply(
    endpoint: &str,
    terms: Terms<'_>,
    model: &Arc<Model>,
    request: &dyn Priced,
    stated: Option<Counters>,
) -> Result<(Quote, QuoteReply), Refusal> {
    let quote = call::quote(terms, model, request)?;
    let most = quote.most(model);
    let calculation = match stated {
        None => {
            let (price, most) = most.as_ref().map_or((&quote.price, &quote.most), |bound| (&bound.price, &bound.most));
            Calculation::new(price, most, quote.at, quote.need.context_len)
        }
        Some(stated) => {
            let (price, counters, _) = quote.charge(model, request.metered(stated));
            Calculation::of(&price, &counters, quote.at)
        }
    };
    let calculation =
        calculation.map_err(|why| Refusal::new(Code::InvalidRequest, format!("This use cannot be charged: {why}.")))?;
    let exact = stated.is_some() || quote.need.exact;
    let matters = |face: &Face| quote.price.faces.get(*face).unwrap_or(0) > 0;
    let depends_on = quote.need.depends_on.iter().filter(|(face, _)| !exact && matters(face));
    let reply = QuoteReply {
        object: "quote",
        endpoint: endpoint.to_owned(),
        model: model.name.clone(),
        kind: match &most {
            _ if exact => "exact",
            Some(_) => "upper_bound",
            None => "open",
        },
        price_changes_at: model.coming(quote.at).first().map(|change| instant(change.from_ms)),
        tier_is_settled: exact || quote.settled,
        calculation,
        most_nano_usd: most.as_ref().map(|bound| bound.amount.nano()),
        most_usd: most.as_ref().map(|bound| bound.amount.to_string()),
        hold_nano_usd: quote.amount.nano(),
        hold_usd: quote.amount.to_string(),
        depends_on: depends_on.map(|(_, what)| *what).collect(),
    };
    Ok((quote, reply))
}

/// A counter that a caller states, by the name it has in the usage log.
pub fn state(stated: &mut Counters, name: &str, value: &str) -> Result<bool, Refusal> {
    if let Some(tool) = Face::named(name).filter(|face| face.is_tool()) {
        let uses: u64 = value.parse().map_err(|_| not_a_count(name))?;
        stated.tools = stated.tools.with(tool, uses);
        return Ok(true);
    }
    let Ok(mut all) = serde_json::to_value(*stated) else { return Ok(false) };
    let Some(slot) = all.get_mut(name) else { return Ok(false) };
    let number: u64 = value.parse().map_err(|_| not_a_count(name))?;
    *slot = json!(number);
    *stated = serde_json::from_value(all).map_err(|_| not_a_count(name))?;
    Ok(true)
}

fn not_a_count(name: &str) -> Refusal {
    Refusal::about(Code::InvalidParameter, name, format!("`{name}` is a whole number, not negative."))
}

/// A refusal that is shown instead of made: the call has a price, but would not be served now.
#[derive(Debug, Serialize)]
pub struct WouldBe {
    pub code: &'static str,
    pub message: String,
    pub param: Option<String>,
}

impl From<Refusal> for WouldBe {
    fn from(refusal: Refusal) -> WouldBe {
        WouldBe { code: refusal.code.code(), message: refusal.message, param: refusal.param }
    }
}
