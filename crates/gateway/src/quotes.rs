//! The price of a request before it is sent, and the calculation of a charge after it: one way of writing both down.
//!
//! A quote holds nothing, sends nothing and costs nothing. It is made by the very functions that make the hold and the charge
//! of a call, so the same facts give the same amount to the nano-dollar.

use crate::app::Serving;
use crate::call::{self, Conversation, Priced, Quote, Terms};
use crate::caller::Caller;
use crate::endpoints::social;
use crate::refusal::Refusal;
use crate::social::Asked;
use crate::video::VideoAsk;
use bytes::Bytes;
use http::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::{Face, Fraction, Line, Model, Price, Quantities, Uncharged};
use tollgate_dialects::{Path, Request};
use tollgate_store::Counters;
use tollgate_wire::Dialect;
use tollgate_wire::error::Code;

/// Where a price is asked for: what is on sale, and who asks. `None` is the operator, to whom nothing is closed.
pub struct Shop<'a> {
    pub serving: &'a Serving,
    pub caller: Option<&'a Caller>,
}

/// Reads a call as far as its price depends on it: from the parts of its path that vary and its body, or for a GET its
/// parameters as a JSON object.
pub type Reader = fn(&Shop<'_>, &[&str], Bytes) -> Result<Box<dyn Priced>, Refusal>;

/// Every paid endpoint; a test holds it to the table of paths.
pub const READERS: &[(&str, Reader)] = &[
    ("/v1/chat/completions", |_, _, body| said(Dialect::Chat, body, None)),
    ("/v1/messages", |_, _, body| said(Dialect::Anthropic, body, None)),
    ("/v1/responses", |_, _, body| said(Dialect::Responses, body, None)),
    ("/v1/responses/compact", |_, _, body| said(Dialect::Responses, body, None)),
    ("/v1beta/models/{model}:generateContent", whole),
    ("/v1beta/models/{model}:streamGenerateContent", streamed),
    ("/v1/models/{model}:generateContent", whole),
    ("/v1/models/{model}:streamGenerateContent", streamed),
    ("/v1/social/{platform}/{capability}", social_call),
    ("/v1/videos", video),
    ("/v1/video/generations", video),
    ("/v1/videos/{id}/remix", |_, _, _| {
        let text = "A remix costs what its source did: quote the request of that one.";
        Err(Refusal::about(Code::InvalidParameter, "endpoint", text))
    }),
];

/// Reads the body of a call to this path, or says which paths there are.
pub fn read(shop: &Shop<'_>, endpoint: &str, body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    for (path, reader) in READERS {
        if let Some(parts) = varying(path, endpoint) {
            return reader(shop, &parts, body);
        }
    }
    let paths: Vec<&str> = READERS.iter().map(|(path, _)| *path).collect();
    let text = format!("`endpoint` is the path of a paid endpoint: {}.", paths.join(", "));
    Err(Refusal::about(Code::InvalidParameter, "endpoint", text))
}

/// What stands in the places of a path that vary, if it is this path.
pub fn varying<'a>(path: &str, endpoint: &'a str) -> Option<Vec<&'a str>> {
    let mut parts = Vec::new();
    let (mut own, mut given) = (path.split('/'), endpoint.split('/'));
    loop {
        match (own.next(), given.next()) {
            (None, None) => return Some(parts),
            (Some(own), Some(given)) if own.starts_with('{') => {
                let after = own.split_once('}').map_or("", |(_, after)| after);
                parts.push(given.strip_suffix(after).filter(|varies| !varies.is_empty())?);
            }
            (own, given) if own == given => {}
            _ => return None,
        }
    }
}

fn video(shop: &Shop<'_>, _: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(VideoAsk::of(shop.serving, &tollgate_media::video::Request::from_json(&body)?)))
}

fn said(dialect: Dialect, body: Bytes, path: Option<Path<'_>>) -> Result<Box<dyn Priced>, Refusal> {
    Ok(Box::new(Conversation::new(Request::read(dialect, body, path)?, &HeaderMap::new())))
}

fn whole(_: &Shop<'_>, parts: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    said(Dialect::Gemini, body, Some(Path { model: parts.first().copied().unwrap_or_default(), stream: false }))
}

fn streamed(_: &Shop<'_>, parts: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    said(Dialect::Gemini, body, Some(Path { model: parts.first().copied().unwrap_or_default(), stream: true }))
}

fn social_call(shop: &Shop<'_>, parts: &[&str], body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    let [platform, capability] = parts else {
        return Err(Refusal::about(Code::InvalidParameter, "endpoint", "The path names platform and capability."));
    };
    let cell = &social::cell(shop, platform, capability)?;
    let wrong = || Refusal::new(Code::InvalidJson, "The body is a JSON object with the parameters of the call.");
    let given: serde_json::Map<String, Value> = serde_json::from_slice(&body).map_err(|_| wrong())?;
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(wrong()),
    };
    let pairs = given.into_iter().map(|(name, value)| Ok((name, text(value)?)));
    let checked = social::checked(cell, &pairs.collect::<Result<Vec<_>, Refusal>>()?)?;
    Ok(Box::new(Asked { cell: cell.clone(), checked }))
}

/// A sum that anybody can do again: the sum of all lines times the multiplier, rounded up once to the next nano-dollar.
#[derive(Debug, Serialize)]
pub struct Calculation {
    pub pricing_version: String,
    pub group: String,
    /// Whether these are the prices of accounts that have topped up.
    pub paid_prices: bool,
    pub billing_unit: &'static str,
    /// The tier and, for each of its conditions, the fact that met it; `null`: base prices.
    pub tier: Option<Tier>,
    /// The group's multiplier times the tier's.
    pub multiplier: Fraction,
    pub lines: Vec<Line>,
    pub total_nano_usd: i64,
    pub total_usd: String,
}

#[derive(Debug, Serialize)]
pub struct Tier {
    pub name: String,
    pub why: Vec<Value>,
}

impl Calculation {
    /// The calculation of these quantities at a price that was chosen at this time for an input of this length.
    pub fn new(price: &Price, used: &Quantities, at: i64, context_len: u64) -> Result<Calculation, Uncharged> {
        let total = price.charge(used)?;
        Ok(Calculation {
            pricing_version: price.version.clone(),
            group: price.group.clone(),
            paid_prices: price.paid,
            billing_unit: price.unit.name(),
            tier: price.tier.as_ref().map(|name| Tier { name: name.clone(), why: price.why(at, context_len) }),
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

/// A quote as it is told.
#[derive(Debug, Serialize)]
pub struct Told {
    object: &'static str,
    pub endpoint: String,
    pub model: String,
    /// `upper_bound`: no call with this body costs more. `exact`: a call that uses what was stated costs this. `open`: neither the
    /// request nor the catalog limits the answer, so this is what is set aside and a call may cost more.
    pub kind: &'static str,
    /// Whether the tier can still change with the length of the input as the provider counts it.
    pub tier_is_settled: bool,
    #[serde(flatten)]
    pub calculation: Calculation,
    /// What no call with this body costs more than; `null` where there is no such amount.
    pub most_nano_usd: Option<i64>,
    pub most_usd: Option<String>,
    /// What is set aside when the call is made; that of a stream without a limit grows while it runs.
    pub hold_nano_usd: i64,
    pub hold_usd: String,
    /// What the charge depends on besides the request; empty when it is certain.
    pub depends_on: Vec<&'static str>,
}

/// The quote of a request: an upper bound, or what a stated use costs.
pub fn tell(
    endpoint: &str,
    terms: Terms<'_>,
    model: &Arc<Model>,
    request: &dyn Priced,
    stated: Option<Counters>,
) -> Result<(Quote, Told), Refusal> {
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
    let told = Told {
        object: "quote",
        endpoint: endpoint.to_owned(),
        model: model.name.clone(),
        kind: match &most {
            _ if exact => "exact",
            Some(_) => "upper_bound",
            None => "open",
        },
        tier_is_settled: exact || quote.settled,
        calculation,
        most_nano_usd: most.as_ref().map(|bound| bound.amount.nano()),
        most_usd: most.as_ref().map(|bound| bound.amount.to_string()),
        hold_nano_usd: quote.amount.nano(),
        hold_usd: quote.amount.to_string(),
        depends_on: depends_on.map(|(_, what)| *what).collect(),
    };
    Ok((quote, told))
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

/// A refusal that is told instead of made: the call has a price, but would not be served now.
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
