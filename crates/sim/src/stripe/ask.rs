//! Requests: who may ask, what must be in them, and what is answered.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::book::{Payment, Session, shown};
use super::{STRIPE_KEY, StripeWorld, page};

pub(super) type Answer = Response<Full<Bytes>>;

/// What a new session must have, and may not have more than.
const FIELDS: [&str; 11] = [
    "mode",
    "client_reference_id",
    "metadata[order]",
    "payment_intent_data[metadata][order]",
    "line_items[0][quantity]",
    "line_items[0][price_data][currency]",
    "line_items[0][price_data][unit_amount]",
    "line_items[0][price_data][product_data][name]",
    "success_url",
    "cancel_url",
    "expires_at",
];
const LARGEST: usize = 64 << 10;

pub(super) async fn answer(world: &StripeWorld, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await.map(|all| all.to_bytes()) else {
        return refused(400, "invalid_request_error", "body");
    };
    let path = head.uri.path().to_owned();
    if let Some(session) = path.strip_prefix("/pay/") {
        return page::answer(world, &head.method, session).await;
    }
    if let "/done" | "/back" = path.as_str() {
        let text = if path == "/done" { "Paid. The credit is there in a moment.\n" } else { "Not paid.\n" };
        return made(200, "text/plain", text.to_owned());
    }
    let query: BTreeMap<String, String> = pairs(head.uri.query().unwrap_or_default());
    {
        let mut book = world.book();
        let counted = path.rsplit_once("/cs_").map_or(path.as_str(), |(before, _)| before);
        let slash = if counted == path { "" } else { "/" };
        *book.asked.entry(format!("{} {counted}{slash}", head.method)).or_default() += 1;
        if book.broken > 0 {
            book.broken -= 1;
            return refused(500, "api_error", "");
        }
    }
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if header("authorization") != format!("Bearer {STRIPE_KEY}") {
        return refused(401, "invalid_request_error", "api_key");
    }
    if header("stripe-version").is_empty() {
        return refused(400, "invalid_request_error", "stripe_version");
    }
    match (head.method, path.as_str()) {
        (Method::POST, "/v1/checkout/sessions") => {
            if header("content-type") != "application/x-www-form-urlencoded" || body.len() > LARGEST {
                return refused(400, "invalid_request_error", "content_type");
            }
            create(world, header("idempotency-key"), &String::from_utf8_lossy(&body))
        }
        (Method::GET, "/v1/checkout/sessions") => list(world, &query),
        (Method::GET, "/v1/disputes") => disputes(world, &query),
        (Method::GET, path) => match path.strip_prefix("/v1/checkout/sessions/") {
            Some(id) => {
                let book = world.book();
                let whole = query.get("expand[]").is_some_and(|what| what == "payment_intent.latest_charge");
                let found = book.sessions.get(id).map(|one| json(200, &shown(id, one, whole)));
                found.unwrap_or_else(|| refused(404, "invalid_request_error", "resource_missing"))
            }
            None => refused(404, "invalid_request_error", "url"),
        },
        _ => refused(404, "invalid_request_error", "url"),
    }
}

fn create(world: &StripeWorld, once: &str, body: &str) -> Answer {
    let fields = pairs(body);
    if let Some(other) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return refused(400, "invalid_request_error", &format!("parameter_unknown {other}"));
    }
    if let Some(missing) = FIELDS.iter().find(|name| !fields.contains_key(**name)) {
        return refused(400, "invalid_request_error", &format!("parameter_missing {missing}"));
    }
    let text = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let number = |name: &str| text(name).parse::<i64>().ok();
    let now = world.now_s();
    let expires = number("expires_at").filter(|at| (now + 1_800..=now + 86_400).contains(at));
    let amount = number("line_items[0][price_data][unit_amount]").filter(|amount| *amount > 0);
    let mut book = world.book();
    if let Some((asked, session)) = book.repeated.get(once) {
        if asked != body {
            return refused(400, "idempotency_error", "");
        }
        let session = session.clone();
        return book
            .sessions
            .get(&session)
            .map_or_else(|| refused(500, "api_error", ""), |one| json(200, &with_url(world, &session, one)));
    }
    let (Some(expires_at), Some(amount), "payment") = (expires, amount, text("mode").as_str()) else {
        return refused(400, "invalid_request_error", "parameter_invalid");
    };
    if once.is_empty() || text("line_items[0][quantity]") != "1" {
        return refused(400, "invalid_request_error", "idempotency_key");
    }
    let number = book.sessions.len() as u64 + 1;
    let id = format!("cs_test_{number}");
    let session = Session {
        number,
        reference: text("client_reference_id"),
        amount,
        currency: text("line_items[0][price_data][currency]"),
        product: text("line_items[0][price_data][product_data][name]"),
        success_url: text("success_url"),
        cancel_url: text("cancel_url"),
        expires_at,
        live: false,
        status: "open",
        payment: Payment::None,
        refunded: 0,
        disputes: Vec::new(),
    };
    let answer = with_url(world, &id, &session);
    book.sessions.insert(id.clone(), session);
    book.repeated.insert(once.to_owned(), (body.to_owned(), id));
    json(200, &answer)
}

fn with_url(world: &StripeWorld, id: &str, session: &Session) -> Value {
    let mut value = shown(id, session, false);
    value["url"] = json!(format!("http://{}/pay/{id}", world.address));
    value
}

fn list(world: &StripeWorld, query: &BTreeMap<String, String>) -> Answer {
    let Some(payment) = query.get("payment_intent") else {
        return refused(400, "invalid_request_error", "parameter_missing");
    };
    let book = world.book();
    let found = book
        .sessions
        .iter()
        .filter(|(_, one)| one.payment != Payment::None && format!("pi_{}", one.number) == *payment);
    let data: Vec<Value> = found.map(|(id, one)| shown(id, one, false)).collect();
    json(200, &json!({ "object": "list", "data": data, "has_more": false, "url": "/v1/checkout/sessions" }))
}

fn disputes(world: &StripeWorld, query: &BTreeMap<String, String>) -> Answer {
    let Some(payment) = query.get("payment_intent") else {
        return refused(400, "invalid_request_error", "parameter_missing");
    };
    let book = world.book();
    let found = book.sessions.values().find(|one| format!("pi_{}", one.number) == *payment);
    let of = |one: &Session| {
        let shown = |(amount, status): &(i64, &str)| json!({ "object": "dispute", "amount": amount, "status": status });
        one.disputes.iter().map(shown).collect::<Vec<_>>()
    };
    let data = found.map(of).unwrap_or_default();
    json(200, &json!({ "object": "list", "data": data, "has_more": false, "url": "/v1/disputes" }))
}

fn json(status: u16, value: &Value) -> Answer {
    made(status, "application/json", value.to_string())
}

pub(super) fn made(status: u16, kind: &'static str, text: String) -> Answer {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    reply
}

fn refused(status: u16, kind: &str, code: &str) -> Answer {
    json(status, &json!({ "error": { "type": kind, "code": code, "message": "simulated" } }))
}

/// Form fields; the last of a name counts.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    parts
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let code = std::str::from_utf8(&digits).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
                bytes.push(code.unwrap_or(b'?'));
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
