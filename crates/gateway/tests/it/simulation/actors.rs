//! Who takes part: clients over HTTP, callers of the store itself, an operator, a reader. Each
//! notes what it learned at the moment it learned it; a crash between two awaits leaves the notes
//! as they are.

use super::media;
use super::outside::{Attempt, Customer, Fate, Gift, Outside, Raw, Seen, lock};
use axum::Router;
use axum::body::Body;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_gateway::app::App;
use tollgate_gateway::door::peer::Peer;
use tollgate_store::testing::price;
use tollgate_store::{CallId, Close, Counters, Credit, CreditKind, Ending, Extend, Hold, Mark, Pot, UsageFacts};
use tower::ServiceExt as _;

pub async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Sends a request of a client, once or until it has an answer.
pub async fn client(outside: Arc<Outside>, router: Router, number: usize, wait_ms: u64) {
    pause(wait_ms).await;
    let request = outside.requests()[number].clone();
    for _ in 0..if request.idem { 6 } else { 1 } {
        let slot = {
            let mut attempts = lock(&outside.attempts);
            let (call, words, seen) = (None, Vec::new(), None);
            attempts.push(Attempt { request: number, call, words, seen, fate: Fate::Whole });
            attempts.len() - 1
        };
        let seen = attempt(&outside, &router, number, slot).await;
        let again = matches!(&seen, Seen::Failed { status: 409 | 503, .. });
        lock(&outside.attempts)[slot].seen = Some((seen, outside.event()));
        if !again {
            return;
        }
        let ms = outside.draw().between(20, 900);
        pause(ms).await;
    }
}

async fn attempt(outside: &Outside, router: &Router, number: usize, slot: usize) -> Seen {
    let request = outside.requests()[number].clone();
    let customer = &outside.customers[request.customer];
    let text = format!("tell me {number}");
    let (path, kind, body) = match media::is_media(request.model) {
        true => media::asked(request.model, &text),
        false => {
            let messages = json!([{ "role": "user", "content": text }]);
            let mut body = json!({ "model": request.model, "max_tokens": 40, "messages": messages });
            if request.streams {
                body["stream"] = json!(true);
            }
            media::json_to("/v1/chat/completions", &body)
        }
    };
    let key = request.idem.then(|| format!("key-{number}"));
    let asked = asking(Method::POST, path, &customer.secret, Some((kind, body)), key);
    let reply = router.clone().oneshot(asked).await;
    let reply = reply.expect("a router never fails");
    let (parts, mut body) = reply.into_parts();
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let status = parts.status.as_u16();
    let (call, charge) = (header("x-request-id"), header("x-tollgate-charge-usd"));
    let replayed = header("idempotency-replayed").is_some();
    lock(&outside.attempts)[slot].call = call;
    let streams = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            assert!(media::is_media(request.model), "bodies of conversations do not fail");
            return Seen::Failed { status, code: "broken off".to_owned() };
        };
        let data = frame.into_data().unwrap_or_default();
        if status == 200 && media::is_media(request.model) && request.leaves_after.is_some() {
            return Seen::Left;
        }
        text.push_str(std::str::from_utf8(&data).expect("text"));
        if status == 200 && streams {
            let words = text.matches("word ").count();
            let mut attempts = lock(&outside.attempts);
            attempts[slot].words.resize(words, outside.now());
            if request.leaves_after.is_some_and(|limit| words > limit) {
                return Seen::Left;
            }
        }
    }
    let charge = charge.map(|usd| usd.parse::<Money>().expect("an amount").nano());
    match (status, streams) {
        (200, true) if text.trim_end().ends_with("data: [DONE]") => Seen::Answered { body: text, replayed, charge },
        (200, true) => Seen::Failed { status, code: "in the stream".to_owned() },
        (200, false) => Seen::Answered { body: text, replayed, charge },
        _ => {
            let error: Value = serde_json::from_str(&text).unwrap_or_default();
            Seen::Failed { status, code: error["error"]["code"].as_str().unwrap_or_default().to_owned() }
        }
    }
}

fn asking(
    method: Method,
    path: &str,
    secret: &str,
    body: Option<(&str, Vec<u8>)>,
    idem: Option<String>,
) -> http::Request<Body> {
    let mut request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {secret}"))
        .extension(Peer::new(([127, 0, 0, 1], 1).into(), None));
    if let Some(key) = idem {
        request = request.header("idempotency-key", key);
    }
    if let Some((kind, _)) = &body {
        request = request.header("content-type", *kind);
    }
    request.body(body.map_or_else(Body::empty, |(_, body)| Body::from(body))).expect("a request")
}

/// Asks for something small: the status, and the JSON that came.
pub async fn ask(
    router: &Router,
    method: Method,
    path: &str,
    secret: &str,
    body: Option<&Value>,
    idem: Option<String>,
) -> (u16, Value) {
    let body = body.map(|body| ("application/json", body.to_string().into_bytes()));
    let reply = router.clone().oneshot(asking(method, path, secret, body, idem)).await.expect("a router never fails");
    let status = reply.status().as_u16();
    let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&bytes).expect("JSON"))
}

/// Reads balances all the time; they are never below zero.
pub async fn reader(outside: Arc<Outside>, router: Router) {
    for _ in 0..4 {
        let ms = outside.draw().between(1, 1_500);
        pause(ms).await;
        for customer in &outside.customers {
            let (status, balance) = ask(&router, Method::GET, "/v1/balance", &customer.secret, None, None).await;
            assert_eq!(status, 200, "what is there can be read: {balance}");
            for part in ["available_nano_usd", "held_nano_usd"] {
                assert!(balance[part].as_i64().is_some_and(|nano| nano >= 0), "{balance}");
            }
        }
    }
}

/// The audit of every minute, more often. It finds nothing while holds are open, whatever was done
/// to the clock.
pub async fn auditor(app: Arc<App>) {
    loop {
        pause(3_000).await;
        // A disk that is full keeps it from reading what was written last.
        if let Ok(report) = app.store.verify_changed().await {
            assert!(report.breaches.is_empty(), "the audit found {:#?}", report.breaches);
        }
    }
}

/// Pays in, and gives back what was charged, each several times.
pub async fn operator(outside: Arc<Outside>, app: Arc<App>, life: u32) {
    for number in 0..3u64 {
        let ms = outside.draw().between(1, 2_000);
        pause(ms).await;
        let charged = answered(&outside);
        let refund = outside.draw().percent(40);
        let twice = outside.draw().percent(50);
        let gift = match charged.filter(|_| refund) {
            Some((customer, call, amount)) => {
                Gift { id: format!("back {call}"), customer, amount, refund: Some(call), confirmed: false }
            }
            None => {
                let amount = i64::try_from(outside.draw().between(1, 400_000)).expect("small");
                let customer = usize::from(outside.draw().percent(50));
                Gift { id: format!("paid {life} {number}"), customer, amount, refund: None, confirmed: false }
            }
        };
        let slot = {
            let mut gifts = lock(&outside.gifts);
            gifts.push(gift.clone());
            gifts.len() - 1
        };
        let credit = Credit {
            id: gift.id.clone(),
            account: outside.customers[gift.customer].account,
            kind: gift.refund.map_or(CreditKind::TopUp, |call| CreditKind::Refund { call }),
            pot: Pot::Paid,
            amount: Money::from_nano(gift.amount),
            expires_at: None,
            reason: "simulated".to_owned(),
            actor: "operator".to_owned(),
        };
        for _ in 0..=u8::from(twice) {
            if app.store.credit(credit.clone()).await.is_ok() {
                lock(&outside.gifts)[slot].confirmed = true;
            }
        }
    }
}

/// A call that was answered for certain, and what it cost.
fn answered(outside: &Outside) -> Option<(usize, CallId, i64)> {
    let attempts = lock(&outside.attempts).clone();
    let mut sure = attempts.iter().filter_map(|attempt| match (&attempt.seen, attempt.fate) {
        (Some((Seen::Answered { charge: Some(charge), replayed: false, .. }, _)), Fate::Whole) if *charge > 0 => {
            let call = attempt.call.as_ref()?.parse().ok()?;
            Some((outside.requests()[attempt.request].customer, call, *charge))
        }
        _ => None,
    });
    sure.next()
}

/// Somebody who speaks to the store: hold, marks, perhaps more, and an end or none.
pub async fn raw(outside: Arc<Outside>, app: Arc<App>) {
    let (wait, customer, amount, marks, waits_for_hold, extends, end) = {
        let mut draw = outside.draw();
        (
            draw.below(4_000),
            usize::from(draw.percent(30)),
            i64::try_from(draw.between(1, 60_000)).expect("small"),
            draw.below(4),
            draw.percent(70),
            draw.percent(30),
            draw.below(100),
        )
    };
    pause(wait).await;
    let slot = {
        let mut raws = lock(&outside.raws);
        raws.push(Raw {
            call: None,
            granted: false,
            durable: None,
            said: Vec::new(),
            closed: false,
            overdue: false,
            fate: Fate::Whole,
            safe: 0,
        });
        raws.len() - 1
    };
    let owner = &outside.customers[customer];
    let call = app.new_call_id();
    lock(&outside.raws)[slot].call = Some(call);
    let life_ms = i64::try_from(outside.draw().between(15_000, 25_000)).expect("small");
    let Ok(mut held) = app.store.hold(wish(&app, owner, call, amount, life_ms)).await else { return };
    lock(&outside.raws)[slot].granted = true;
    let began = outside.now();
    if waits_for_hold {
        if held.durable().await.is_err() {
            app.store.close(end_of(&app, owner, call, 0));
            close_noted(&outside, slot, 0);
            return;
        }
        lock(&outside.raws)[slot].durable = Some(outside.event());
    }
    let mut cost = 0;
    for _ in 0..marks {
        let more = outside.draw().below(8_000);
        let ms = outside.draw().below(700);
        cost += i64::try_from(more).expect("small");
        app.store.mark(Mark {
            call,
            account: owner.account,
            charge: Money::from_nano(cost),
            most: None,
            row: facts(&app, owner, cost),
        });
        let event = outside.event();
        lock(&outside.raws)[slot].said.push((cost, event));
        pause(ms).await;
    }
    if extends {
        // What there is, will do.
        let (more, least) = (Money::from_nano(amount), Money::from_nano(amount.min(1)));
        let extend = Extend { call, account: owner.account, step: 1, more, least };
        let times = outside.draw().between(1, 2);
        for _ in 0..times {
            let _ = app.store.extend(extend).await;
        }
    }
    if end < 15 {
        return;
    }
    let charge = if end < 35 { 0 } else { cost + i64::try_from(outside.draw().below(20_000)).expect("small") };
    let closing = app.store.close(end_of(&app, owner, call, charge));
    close_noted(&outside, slot, charge);
    lock(&outside.raws)[slot].overdue = outside.now() - began >= life_ms;
    if end > 70 {
        let _ = closing.await;
    }
    if end > 90 {
        // A second end is no end.
        app.store.close(end_of(&app, owner, call, charge + 1));
    }
}

fn close_noted(outside: &Outside, slot: usize, charge: i64) {
    let event = outside.event();
    let raw = &mut lock(&outside.raws)[slot];
    raw.said.push((charge, event));
    raw.closed = true;
}

pub fn wish(app: &App, owner: &Customer, call: CallId, amount: i64, life_ms: i64) -> Hold {
    Hold {
        call,
        account: owner.account,
        key: owner.key,
        amount: Money::from_nano(amount),
        least: Money::from_nano(amount),
        price: price(1),
        model: "test".to_owned(),
        endpoint: "/v1/chat/completions",
        paid_only: false,
        topped_up: true,
        expires_at: app.world.steady_ms() + life_ms,
        at: app.world.now_ms(),
        idem: None,
    }
}

pub fn end_of(app: &App, owner: &Customer, call: CallId, charge: i64) -> Close {
    Close {
        call,
        account: owner.account,
        ending: if charge > 0 { Ending::Answered } else { Ending::UpstreamFault },
        reason: String::new(),
        charge: Money::from_nano(charge),
        most: None,
        row: facts(app, owner, charge),
        reply: None,
    }
}

fn facts(app: &App, owner: &Customer, charge: i64) -> UsageFacts {
    let now = app.world.now_ms();
    UsageFacts {
        key: owner.key,
        at: now,
        ended_at: now,
        endpoint: "/v1/chat/completions".into(),
        model: "test".to_owned(),
        provider: Some("sim".to_owned()),
        upstream_model: Some("u".to_owned()),
        status: 200,
        counters: Counters { input: charge.unsigned_abs() * 1_000, ..Counters::default() },
        estimated: false,
        raw_usage: None,
        attempts: 1,
        first_byte_ms: None,
        tier: None,
        price: None,
        dropped: None,
        cost: None,
    }
}
