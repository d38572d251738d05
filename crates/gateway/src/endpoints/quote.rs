//! `POST /v1/quote?endpoint=…`: the price of a call, before it is made. The body is the call's own.

use super::openapi::shapes::{anything, named, nano, text, text_or_null};
use super::row::{Access, Expand, Family, Quoted, Row};
use super::{reading, table};
use crate::app::App;
use crate::call::{self, Needed, Priced, Quote, Terms};
use crate::quotes::{self, QuoteReader, QuoteReply, Shop, WouldBe};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::Uri;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_catalog::{Model, Money};
use tollgate_store::Counters;
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "quotes", rows, schemas };

fn rows() -> Vec<Row> {
    let summary = "The price of a call before it is made; nothing is sent, held or charged";
    let row = Row::post("/v1/quote", Access::Key, quote, summary).with(parameters);
    vec![row.takes(anything()).gives(named("Quote"))]
}

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    quote: QuoteReply,
    available_nano_usd: i64,
    /// The account has less than the hold: the call would be made with this limit of tokens for
    /// each choice of its answer.
    output_limit: Option<u64>,
    /// Why the call itself would be refused now, though it has a price: money, caps, top-up.
    would_be_refused: Option<WouldBe>,
}

pub async fn quote(State(app): State<Arc<App>>, request: Request) -> Response {
    match reading::guarded(handle(&app, request)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    }
}

async fn handle(app: &Arc<App>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let (endpoint, stated) = asked(&parts.uri)?;
    let body: Bytes = reading::json_body(app, &caller, &parts, body).await?;
    let asked = find(&endpoint)?;
    // What a call continues is part of its price.
    let body = match asked.expand {
        Some(expand) => expand(app, &caller, body).await?,
        None => body,
    };
    let serving = app.serving.load_full();
    let shop = Shop {
        serving: &serving,
        caller: Some(&caller),
        picture_links: app.images.has_links(),
        realtime: &app.settings.realtime,
    };
    let request = (asked.read)(&shop, &asked.parts, body)?;
    let (model, group) = call::find(&serving, &caller, &*request)?;
    request.fits(&app.conversations.fetcher, &serving, &model)?;
    let stream_hold = app.settings.limits.stream_hold;
    let terms = Terms { at: app.world.now_ms(), group, topped_up: caller.account.topped_up, stream_hold };
    let (mut quote, reply) = quotes::quote_reply(&endpoint, terms, &model, &*request, stated)?;
    let (available, would) = can_pay(app, &caller, &model, &quote).await?;
    let (output_limit, would_be_refused) = match would {
        Ok(held) if held < quote.amount => (quote.shorten(&model, held), None),
        Ok(_) => (None, None),
        Err(refusal) => (None, Some(WouldBe::from(refusal))),
    };
    Ok(reading::json(&Answer { quote: reply, available_nano_usd: available.nano(), output_limit, would_be_refused }))
}

/// How calls to a path are quoted.
struct Asked<'a> {
    read: QuoteReader,
    expand: Option<Expand>,
    /// What stands in the parts of the path that vary.
    parts: Vec<&'a str>,
}

/// Finds the paid endpoint at this path, or says which there are.
fn find(endpoint: &str) -> Result<Asked<'_>, Refusal> {
    let asked = table::rows().iter().find_map(|row| match row.quoted {
        Quoted::By { read, expand } => Some(Asked { read, expand, parts: row.fits(endpoint)? }),
        Quoted::Free | Quoted::As(_) => None,
    });
    asked.ok_or_else(|| {
        let text = format!("`endpoint` is the path of a paid endpoint: {}.", quoted_paths());
        Refusal::about(Code::InvalidParameter, "endpoint", text)
    })
}

/// The paths of all endpoints that can be quoted.
fn quoted_paths() -> String {
    let paths = table::rows().iter().filter(|row| matches!(row.quoted, Quoted::By { .. })).map(|row| row.path);
    paths.collect::<Vec<_>>().join(", ")
}

/// Reads a call to this path by its body alone.
pub fn read(shop: &Shop<'_>, endpoint: &str, body: Bytes) -> Result<Box<dyn Priced>, Refusal> {
    let asked = find(endpoint)?;
    (asked.read)(shop, &asked.parts, body)
}

/// The endpoint and, for an exact quote, what is stated to be used: counters by their names in the
/// usage log.
fn asked(uri: &Uri) -> Result<(String, Option<Counters>), Refusal> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_| Refusal::new(Code::InvalidRequest, "The query cannot be read."))?;
    let mut endpoint = None;
    let mut stated: Option<Counters> = None;
    for (name, value) in pairs {
        if name == "endpoint" {
            endpoint = Some(value);
        } else if !quotes::state(stated.get_or_insert_default(), &name, &value)? {
            let name: String = name.chars().take(64).collect();
            return Err(Refusal::about(
                Code::UnknownParameter,
                &name,
                format!("`{name}` is not a parameter of this endpoint, nor the name of a counter."),
            ));
        }
    }
    let missing = || Refusal::about(Code::MissingParameter, "endpoint", "`endpoint` is required.");
    Ok((endpoint.ok_or_else(missing)?, stated))
}

/// What the account has for this model, and what would be held for the call or stands in its way.
async fn can_pay(
    app: &App,
    caller: &Caller,
    model: &Model,
    quote: &Quote,
) -> Result<(Money, Result<Money, Refusal>), Refusal> {
    let unknown = || Refusal::new(Code::NotFound, "The account does not exist.");
    // Credit past its time is taken off before the balance is read.
    app.store.expiring(caller.account.id).await?;
    let found = app.store.key_by_hash(caller.key.hash).await?.ok_or_else(unknown)?;
    let account = &found.account;
    let trial = if model.requires_topup { Money::ZERO } else { account.trial_available };
    let available = trial.checked_add(account.paid_available).unwrap_or(Money::MAX);
    let now = app.world.now_ms();
    let would = if model.requires_topup && !account.topped_up {
        Err(call::needs_topup(model))
    } else {
        let held = found.would_hold(quote.amount, quote.least(model), model.requires_topup, now);
        held.map_err(|refused| call::why_refused(&refused, Needed::of(quote, model), now))
    };
    Ok((available, would))
}

/// The endpoint, and every counter of the usage log for an exact quote.
fn parameters() -> Vec<Value> {
    let mut all = vec![json!({
        "name": "endpoint", "in": "query", "required": true, "schema": { "type": "string" },
        "description": format!("the path of the call, one of {}", quoted_paths()),
    })];
    if let Ok(Value::Object(counters)) = serde_json::to_value(Counters::default()) {
        all.extend(counters.keys().map(|name| {
            json!({
                "name": name, "in": "query", "description": "states what is used, for an exact quote",
                "schema": { "type": "integer", "minimum": 0 },
            })
        }));
    }
    all
}

fn schemas() -> Value {
    let most = json!({ "type": ["integer", "null"], "description": "No call with this body costs more; null: neither the request nor the catalog limits the answer" });
    let output_limit = json!({ "type": ["integer", "null"], "description": "The account has less than the hold: the limit of tokens that the call would be made with" });
    json!({ "Quote": { "type": "object", "required": [
        "object", "endpoint", "model", "kind", "pricing_version", "group", "tier", "multiplier", "lines", "total_nano_usd",
        "hold_nano_usd", "depends_on", "would_be_refused",
    ], "properties": {
        "object": { "const": "quote" }, "endpoint": text(), "model": text(), "kind": { "enum": ["upper_bound", "exact", "open"] },
        "pricing_version": text(), "group": text(), "paid_prices": { "type": "boolean" }, "billing_unit": text(),
        "price_changes_at": { "type": "string", "format": "date-time", "description": "From when on the model costs something else, where that is announced" },
        "tier": { "type": ["object", "null"] }, "tier_is_settled": { "type": "boolean" }, "multiplier": text(),
        "lines": { "type": "array", "items": { "type": "object" } },
        "total_nano_usd": nano(), "total_usd": text(), "hold_nano_usd": nano(), "hold_usd": text(),
        "most_nano_usd": most, "most_usd": text_or_null(), "output_limit": output_limit,
        "depends_on": { "type": "array", "items": text() }, "available_nano_usd": nano(),
        "would_be_refused": { "type": ["object", "null"] },
    } } })
}
