//! Sessions, their payments, refunds and disputes, and how Stripe writes them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub number: u64,
    pub reference: String,
    pub amount: i64,
    pub currency: String,
    pub product: String,
    pub success_url: String,
    pub cancel_url: String,
    pub expires_at: i64,
    pub live: bool,
    /// `open`, `complete` or `expired`.
    pub status: &'static str,
    pub payment: Payment,
    pub refunded: i64,
    /// Amount and status of each dispute.
    pub disputes: Vec<(i64, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payment {
    None,
    Processing,
    Failed,
    Paid,
}

/// All that Stripe knows.
#[derive(Default)]
pub struct StripeBook {
    pub(crate) sessions: BTreeMap<String, Session>,
    /// What was asked with which `Idempotency-Key`, and the session it made.
    pub(crate) repeated: BTreeMap<String, (String, String)>,
    events: u64,
    /// Requests that were answered, by method and path without ids.
    pub(crate) asked: BTreeMap<String, u64>,
    /// So many requests are answered with 500 first.
    pub(crate) broken: u32,
}

impl StripeBook {
    /// Sessions that were made, oldest first.
    pub fn sessions(&self) -> Vec<String> {
        let mut all: Vec<_> = self.sessions.iter().map(|(id, one)| (one.number, id.clone())).collect();
        all.sort();
        all.into_iter().map(|(_, id)| id).collect()
    }

    /// The order that a session was made for.
    pub fn reference(&self, session: &str) -> String {
        self.sessions.get(session).map(|one| one.reference.clone()).unwrap_or_default()
    }

    /// The next requests are answered with 500.
    pub fn break_down(&mut self, requests: u32) {
        self.broken = requests;
    }

    /// How often something was asked: `POST /v1/checkout/sessions`, `GET /v1/checkout/sessions/`.
    pub fn asked(&self, what: &str) -> u64 {
        self.asked.get(what).copied().unwrap_or_default()
    }

    fn change(&mut self, session: &str, change: impl FnOnce(&mut Session)) {
        if let Some(one) = self.sessions.get_mut(session) {
            change(one);
        }
    }

    /// The customer pays, and the money is there.
    pub fn pay(&mut self, session: &str) {
        self.change(session, |one| {
            if one.status != "expired" {
                (one.status, one.payment) = ("complete", Payment::Paid);
            }
        });
    }

    /// The customer pays by a way that takes days.
    pub fn promise(&mut self, session: &str) {
        self.change(session, |one| (one.status, one.payment) = ("complete", Payment::Processing));
    }

    /// It did not work.
    pub fn fail(&mut self, session: &str) {
        self.change(session, |one| (one.status, one.payment) = ("complete", Payment::Failed));
    }

    /// Nobody paid in time.
    pub fn expire(&mut self, session: &str) {
        self.change(session, |one| {
            if one.payment == Payment::None {
                one.status = "expired";
            }
        });
    }

    /// The operator gives so much back, in all.
    pub fn refund(&mut self, session: &str, minor: i64) {
        self.change(session, |one| one.refunded = minor.min(one.amount));
    }

    /// The bank takes so much back, until it is decided.
    pub fn dispute(&mut self, session: &str, minor: i64) {
        self.change(session, |one| one.disputes.push((minor, "needs_response")));
    }

    pub fn decide(&mut self, session: &str, won: bool) {
        self.change(session, |one| {
            one.disputes.iter_mut().for_each(|(_, status)| *status = if won { "won" } else { "lost" })
        });
    }

    /// What was paid is not what was asked for.
    pub fn tamper(&mut self, session: &str, amount: i64, currency: &str, live: bool) {
        self.change(session, |one| (one.amount, one.currency, one.live) = (amount, currency.to_owned(), live));
    }

    /// A session that names an order of somebody else.
    pub fn misname(&mut self, session: &str, reference: &str) {
        self.change(session, |one| one.reference = reference.to_owned());
    }

    /// News of this kind about a session, with an id of their own.
    pub fn event(&mut self, kind: &str, session: &str, now_s: i64) -> String {
        self.events += 1;
        let Some(one) = self.sessions.get(session) else { return String::new() };
        let payment = format!("pi_{}", one.number);
        let object = if kind.starts_with("checkout.session.") {
            shown(session, one, false)
        } else if kind.starts_with("charge.dispute.") {
            json!({ "id": format!("dp_{}", one.number), "object": "dispute", "payment_intent": payment,
                "charge": format!("ch_{}", one.number), "amount": one.disputes.last().map_or(0, |last| last.0) })
        } else if kind.starts_with("refund.") {
            json!({ "id": format!("re_{}", one.number), "object": "refund", "payment_intent": payment })
        } else {
            json!({ "id": format!("ch_{}", one.number), "object": "charge", "payment_intent": payment,
                "amount": one.amount, "amount_refunded": one.refunded })
        };
        json!({
            "id": format!("evt_{}", self.events), "object": "event", "api_version": "2024-06-20", "created": now_s,
            "type": kind, "livemode": one.live, "pending_webhooks": 1, "data": { "object": object },
        })
        .to_string()
    }
}

/// A session as Stripe writes it, with its payment whole or by its id.
pub(crate) fn shown(id: &str, one: &Session, whole: bool) -> Value {
    let payment_id = format!("pi_{}", one.number);
    let paid = one.payment == Payment::Paid;
    let status = match one.payment {
        Payment::None => "requires_payment_method",
        Payment::Processing => "processing",
        Payment::Failed => "requires_payment_method",
        Payment::Paid => "succeeded",
    };
    let charge = json!({
        "id": format!("ch_{}", one.number), "object": "charge", "amount": one.amount, "amount_refunded": one.refunded,
        "refunded": one.refunded == one.amount, "disputed": !one.disputes.is_empty(), "payment_intent": payment_id,
    });
    let payment = match (one.payment, whole) {
        (Payment::None, _) => Value::Null,
        (_, false) => json!(payment_id),
        (_, true) => json!({
            "id": payment_id, "object": "payment_intent", "status": status, "amount": one.amount,
            "latest_charge": if paid { charge } else { Value::Null },
        }),
    };
    json!({
        "id": id, "object": "checkout.session", "mode": "payment", "client_reference_id": one.reference,
        "amount_subtotal": one.amount, "amount_total": one.amount, "currency": one.currency, "livemode": one.live,
        "status": one.status, "payment_status": if paid { "paid" } else { "unpaid" },
        "payment_intent": payment, "metadata": { "order": one.reference }, "expires_at": one.expires_at,
        "success_url": one.success_url, "cancel_url": one.cancel_url,
    })
}
