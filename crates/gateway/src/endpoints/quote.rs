//! `POST /v1/quote?endpoint=…`: the price of a call, before it is made. The body is the call's own.

use super::{reading, responses};
use crate::app::App;
use crate::call::{self, Needed, Quote, Terms};
use crate::quotes::{self, Shop, Told, WouldBe};
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use bytes::Bytes;
use http::Uri;
use serde::Serialize;
use std::sync::Arc;
use tollgate_catalog::{Model, Money};
use tollgate_store::Counters;
use tollgate_wire::error::{Code, Dialect};

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    told: Told,
    available_nano_usd: i64,
    /// The account has less than the hold: the call would be made with this limit of tokens for each choice of its answer.
    output_limit: Option<u64>,
    /// Why the call itself would be refused now, though it has a price: money, caps, top-up.
    would_be_refused: Option<WouldBe>,
}

pub async fn quote(State(app): State<Arc<App>>, request: Request) -> Response {
    match reading::guarded(handle(&app, request)).await {
        Ok(reply) => reply,
        Err(refusal) => reading::refused(&app, Dialect::OpenAi, refusal, ""),
    }
}

async fn handle(app: &Arc<App>, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let caller = reading::caller(app, &parts).await?;
    let (endpoint, stated) = asked(&parts.uri)?;
    let body: Bytes = reading::json_body(app, &caller, &parts, body).await?;
    // What a call continues is part of its price.
    let body = responses::whole_body(app, &caller, &endpoint, body).await?;
    let serving = app.serving.load_full();
    let request = quotes::read(&Shop { serving: &serving, caller: Some(&caller) }, &endpoint, body)?;
    let (model, group) = call::find(&serving, &caller, &*request)?;
    request.fits(&app.conversations.fetcher, &serving, &model)?;
    let stream_hold = app.settings.limits.stream_hold;
    let terms = Terms { at: app.world.now_ms(), group, topped_up: caller.account.topped_up, stream_hold };
    let (mut quote, told) = quotes::tell(&endpoint, terms, &model, &*request, stated)?;
    let (available, would) = can_pay(app, &caller, &model, &quote).await?;
    let (output_limit, would_be_refused) = match would {
        Ok(held) if held < quote.amount => (quote.shorten(&model, held), None),
        Ok(_) => (None, None),
        Err(refusal) => (None, Some(WouldBe::from(refusal))),
    };
    Ok(reading::json(&Answer { told, available_nano_usd: available.nano(), output_limit, would_be_refused }))
}

/// The endpoint and, for an exact quote, what is stated to be used: counters by their names in the usage log.
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
