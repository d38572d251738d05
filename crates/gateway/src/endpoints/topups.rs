//! Money that an account pays in by itself: orders that are paid at the payment provider
//! (`/api/account/topups`), redemption codes (`/api/account/redeem`), and the news of the payment
//! provider (`/api/payments/stripe/webhook`).

use super::admin::{object, unknown, wrong};
use super::openapi::shapes::{idempotency, named, nano, number, text, text_or_null};
use super::reading;
use super::row::{Access, Family, MembersSee, Row};
use crate::app::App;
use crate::payments::codes;
use crate::refusal::Refusal;
use crate::who::caller::client_address;
use crate::who::holder::{self, AccountHolder, AccountRole};
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use http::request::Parts;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate_store::{CodeRefused, OrderFilter, OrderId, OrderIdem, OrderState, PayOrder, StoreError};
use tollgate_wire::error::{Code, ErrorFormat};

const TOPUPS: &str = "/api/account/topups";
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;
/// The largest message of a payment provider.
const LARGEST_EVENT: usize = 256 << 10;
/// An order that is looked at is not asked about at the payment provider more often than this.
const ASK_AGAIN_MS: i64 = 5_000;

pub const FAMILY: Family = Family { tag: "money in", rows, schemas };

fn rows() -> Vec<Row> {
    let (owner, viewer) = (Access::Account(AccountRole::Owner), Access::Account(AccountRole::Viewer));
    vec![
        Row::post(TOPUPS, owner, create, "Makes an order, and the page where it is paid")
            .with(idempotency)
            .takes(json!({ "type": "object", "required": ["amount_minor"], "additionalProperties": false, "properties": {
                "amount_minor": { "type": "integer", "minimum": 1, "description": "In the smallest unit of the currency" },
                "currency": { "type": "string", "minLength": 3, "maxLength": 3, "description": "Left out: the one there is" },
            } }))
            .gives(named("Order"))
            .refused_with(&[404, 409, 429, 502]),
        Row::get(TOPUPS, viewer, orders, "Orders of the account, newest first")
            .with(order_page)
            .gives(named("OrderPage"))
            .to_members(MembersSee::Nothing),
        Row::get("/api/account/topups/{order_id}", viewer, order, "One order as it stands")
            .gives(named("Order"))
            .refused_with(&[404])
            .to_members(MembersSee::Nothing),
        Row::post("/api/account/redeem", owner, redeem, "Redeems a code")
            .takes(json!({ "type": "object", "required": ["code"], "additionalProperties": false, "properties": {
                "code": { "type": "string", "minLength": 1, "maxLength": 128 },
            } }))
            .gives(named("RedeemedCode"))
            .refused_with(&[409, 429]),
        Row::post("/api/payments/stripe/webhook", Access::Public, stripe, "Takes news of Stripe, signed by it")
            .takes(json!({ "type": "object", "description": "An event of Stripe" }))
            .with(|| {
                vec![json!({ "name": "Stripe-Signature", "in": "header", "required": true, "schema": { "type": "string" } })]
            })
            .gives(json!({ "type": "object", "required": ["received"], "properties": { "received": { "const": true } } }))
            .refused_with(&[404]),
    ]
}

/// Finds who manages the account, runs, and turns a refusal into a reply.
async fn held(
    app: &Arc<App>,
    request: Request,
    role: AccountRole,
    work: impl AsyncFnOnce(AccountHolder, Parts, Body) -> Result<Value, Refusal>,
) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        let holder = holder::authenticate(&app.register(), &parts).await?;
        holder.must_be(role)?;
        work(holder, parts, body).await
    };
    match reading::guarded(outcome).await {
        Ok(value) => reading::json(&value),
        Err(refusal) => reading::refused(app, ErrorFormat::OpenAi, refusal, ""),
    }
}

async fn create(State(app): State<Arc<App>>, request: Request) -> Response {
    held(&app, request, AccountRole::Owner, async |holder, parts, body| {
        may_pay(&app, &holder).await?;
        let body = reading::small_json_body(&app, &parts, body).await?;
        let mut fields = object(&body)?;
        let currency = &app.payments.stripe()?.currency;
        let amount = match fields.remove("amount_minor") {
            None | Some(Value::Null) => {
                let text = format!("`amount_minor` is required: a whole number in the smallest unit of {currency}.");
                return Err(Refusal::about(Code::MissingParameter, "amount_minor", text));
            }
            Some(value) => value.as_i64().ok_or_else(|| wrong("amount_minor", "a whole number"))?,
        };
        if fields.remove("currency").is_some_and(|given| given.as_str() != Some(currency)) {
            return Err(wrong("currency", &format!("`{currency}`, the only one there is")));
        }
        if let Some(name) = fields.keys().next() {
            return Err(unknown(name));
        }
        let idem = reading::idempotency(&parts.headers, TOPUPS, &body)?;
        let idem = idem.map(|one| OrderIdem { key_hash: one.key_hash, fingerprint: one.fingerprint });
        let order = app.payments.order(holder.id(), amount, holder.actor, idem).await?;
        Ok(order_json(&order))
    })
    .await
}

/// An account that a debt has stopped may pay it; one that an operator has stopped may not.
async fn may_pay(app: &App, holder: &AccountHolder) -> Result<(), Refusal> {
    let Err(refusal) = holder.may_change() else { return Ok(()) };
    let owing = app.store.orders_owing(holder.id()).await?;
    if owing.iter().any(|order| order.stops_account) { Ok(()) } else { Err(refusal) }
}

async fn orders(State(app): State<Arc<App>>, RawQuery(query): RawQuery, request: Request) -> Response {
    held(&app, request, AccountRole::Viewer, async |holder, _, _| {
        holder.must_see_all()?;
        let filter = filter(query.as_deref().unwrap_or(""))?;
        let limit = filter.limit as usize;
        let asked = OrderFilter { account: Some(holder.id()), limit: filter.limit + 1, ..filter };
        let mut found = app.store.orders(asked).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|order| order.id.to_string());
        let data: Vec<Value> = found.iter().map(order_json).collect();
        Ok(json!({ "object": "list", "data": data, "has_more": more, "next_before": next }))
    })
    .await
}

fn filter(query: &str) -> Result<OrderFilter, Refusal> {
    let mut filter = OrderFilter { limit: PAGE, ..OrderFilter::default() };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LARGEST_PAGE).contains(limit));
                filter.limit = limit.ok_or_else(|| wrong("limit", &format!("a number from 1 to {LARGEST_PAGE}")))?;
            }
            "before" => {
                let id = value.parse().map_err(|_| wrong("before", "`next_before` of the page before"))?;
                filter.before = Some(id);
            }
            "state" => {
                let known = OrderState::ALL.into_iter().find(|state| state.name() == value);
                let words = OrderState::ALL.map(OrderState::name).join(", ");
                filter.state = Some(known.ok_or_else(|| wrong("state", &format!("one of {words}")))?);
            }
            other => return Err(unknown(other)),
        }
    }
    Ok(filter)
}

async fn order(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    held(&app, request, AccountRole::Viewer, async |holder, _, _| {
        holder.must_see_all()?;
        let missing = || Refusal::about(Code::NotFound, "order_id", "There is no such order of this account.");
        let id: OrderId = id.parse().map_err(|_| missing())?;
        let found = app.store.order(id).await?.filter(|order| order.account == holder.id()).ok_or_else(missing)?;
        Ok(order_json(&fresh(&app, found).await?))
    })
    .await
}

/// Whoever comes back from paying hears at once what became of it.
async fn fresh(app: &App, order: PayOrder) -> Result<PayOrder, StoreError> {
    let due = app.world.now_ms().saturating_sub(order.changed_at) >= ASK_AGAIN_MS;
    if !due || !order.state.is_open() || order.session.is_none() || app.payments.stripe().is_err() {
        return Ok(order);
    }
    let id = order.id;
    app.payments.look_again(&order).await?;
    Ok(app.store.order(id).await?.unwrap_or(order))
}

/// What a customer sees of an order.
pub(super) fn order_json(order: &PayOrder) -> Value {
    let url = order.url.as_ref().filter(|_| order.state.is_open());
    json!({
        "object": "topup_order",
        "order_id": order.id,
        "account_id": order.account,
        "provider": order.provider,
        "state": order.state.name(),
        "amount_minor": order.amount_minor,
        "currency": order.currency,
        "credit_nano_usd": order.credit.nano(),
        "credit_usd": order.credit.to_string(),
        "url": url,
        "note": order.note,
        "created_at_ms": order.created_at,
        "expires_at_ms": order.expires_at,
        "credited_at_ms": order.credited_at,
        "refunded_minor": order.refunded_minor,
        "disputed_minor": order.disputed_minor,
        "taken_back_nano_usd": order.taken.nano(),
        "owed_nano_usd": order.owed.nano(),
    })
}

async fn redeem(State(app): State<Arc<App>>, request: Request) -> Response {
    held(&app, request, AccountRole::Owner, async |holder, parts, body| {
        holder.may_change()?;
        let body = reading::small_json_body(&app, &parts, body).await?;
        let mut fields = object(&body)?;
        let missing = || Refusal::about(Code::MissingParameter, "code", "`code` is required: a code to redeem.");
        let code = fields.remove("code").ok_or_else(missing)?;
        if let Some(name) = fields.keys().next() {
            return Err(unknown(name));
        }
        let code = code.as_str().ok_or_else(|| wrong("code", "a text"))?;
        let (account, now) = (holder.id(), app.world.steady_ms());
        let address = client_address(&app.settings.trusted_proxies, &parts);
        app.payments.guard.may_try(account, address, now).map_err(|wait| {
            let seconds = u32::try_from(wait.div_euclid(1_000).max(1)).unwrap_or(u32::MAX);
            Refusal::new(Code::RateLimitExceeded, "Too many wrong codes; wait before you try another.")
                .after(seconds)
                .because("wrong_codes")
        })?;
        // One answer for whatever does not work: whoever guesses learns nothing.
        let wrong_code = || {
            app.payments.guard.was_wrong(account, address, now);
            wrong("code", "not a code that works")
        };
        let hash = codes::read(code).ok_or_else(&wrong_code)?;
        match app.store.redeem(hash, account, holder.actor).await {
            Ok(Ok(done)) => Ok(json!({
                "object": "redeemed_code",
                "amount_nano_usd": done.amount.nano(),
                "amount_usd": done.amount.to_string(),
                "pot": done.pot,
                "paid_available_nano_usd": done.account.paid_available.nano(),
                "trial_available_nano_usd": done.account.trial_available.nano(),
            })),
            Ok(Err(CodeRefused::Unknown)) => Err(wrong_code()),
            Ok(Err(CodeRefused::Before)) => {
                Err(Refusal::about(Code::Conflict, "code", "This account has redeemed this code before."))
            }
            Ok(Err(CodeRefused::Enough)) => Err(Refusal::about(
                Code::Conflict,
                "code",
                "This account has used as many codes of this kind as it may.",
            )),
            Err(StoreError::Conflict(why)) => Err(Refusal::about(Code::Conflict, "code", format!("{why}."))),
            Err(error) => Err(error.into()),
        }
    })
    .await
}

/// 2xx only when the news are written down; what they say is looked at afterwards.
async fn stripe(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let outcome = async {
        app.payments.stripe()?;
        let header = parts.headers.get("stripe-signature").and_then(|value| value.to_str().ok());
        let missing = || Refusal::about(Code::MissingParameter, "Stripe-Signature", "`Stripe-Signature` is required.");
        let header = header.ok_or_else(missing)?.to_owned();
        let body = reading::raw_body(&app, &parts, body, LARGEST_EVENT).await?;
        app.payments.hear(&header, &body).await
    };
    match reading::guarded(outcome).await {
        Ok(()) => reading::json(&json!({ "received": true })),
        Err(refusal) => {
            app.metrics.payment_event("refused");
            reading::refused(&app, ErrorFormat::OpenAi, refusal, "")
        }
    }
}

fn order_page() -> Vec<Value> {
    vec![
        number("limit", 1, LARGEST_PAGE, PAGE),
        json!({ "name": "before", "in": "query", "description": "`next_before` of the page before", "schema": { "type": "string" } }),
        json!({ "name": "state", "in": "query", "schema": { "enum": OrderState::ALL.map(OrderState::name) } }),
    ]
}

fn schemas() -> Value {
    let (word, int) = (text(), json!({ "type": "integer" }));
    json!({
        "Order": { "type": "object", "required": ["object", "order_id", "state", "amount_minor", "credit_nano_usd"], "properties": {
            "object": { "const": "topup_order" }, "order_id": word, "account_id": word, "provider": word,
            "state": { "enum": OrderState::ALL.map(OrderState::name) }, "amount_minor": int, "currency": word,
            "credit_nano_usd": nano(), "credit_usd": word, "note": word,
            "url": { "type": ["string", "null"], "description": "Where it is paid, while it can be" },
            "created_at_ms": int, "expires_at_ms": int, "credited_at_ms": { "type": ["integer", "null"] },
            "refunded_minor": int, "disputed_minor": int, "taken_back_nano_usd": nano(), "owed_nano_usd": nano(),
        } },
        "OrderPage": { "type": "object", "required": ["object", "data", "has_more", "next_before"], "properties": {
            "object": { "const": "list" }, "data": { "type": "array", "items": named("Order") },
            "has_more": { "type": "boolean" }, "next_before": text_or_null(),
        } },
        "RedeemedCode": { "type": "object", "required": ["object", "amount_nano_usd", "pot"], "properties": {
            "object": { "const": "redeemed_code" }, "amount_nano_usd": nano(), "amount_usd": word,
            "pot": { "enum": ["trial", "paid"] }, "paid_available_nano_usd": nano(), "trial_available_nano_usd": nano(),
        } },
    })
}
