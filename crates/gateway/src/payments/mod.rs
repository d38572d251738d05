//! Money that customers pay in. An order is written down first; the payment provider is asked for a
//! page to pay at; what it says afterwards is a hint to look, and what is true is asked for
//! (`truth.rs`). Debts stop an account (`stops.rs`). Redemption codes are in `codes.rs`.

pub mod codes;
mod stops;
mod truth;

use crate::call::Till;
use crate::refusal::Refusal;
use crate::settings::{PaymentSettings, StripeSettings};
use crate::world::Millis;
use codes::CodeGuard;
use std::sync::Arc;
use tokio::sync::Notify;
use tollgate_store::{
    AccountId, NewOrder, OrderId, OrderIdem, OrderMade, OrderSettled, OrderState, PayEvent, PayOrder, StoreError,
};
use tollgate_upstream::{CheckoutSession, CheckoutWish, StripeEvent, StripeFault, Unsigned};
use tollgate_wire::error::Code;

pub const STRIPE: &str = "stripe";
/// How often an order that others change at the same time is asked about.
const ASKED_AGAIN: u32 = 16;
/// News that could not be dealt with for so long are given up: the order itself is looked at too.
const GIVEN_UP: Millis = 3 * 86_400_000;

/// The state that payments need.
pub struct PaymentDesk {
    pub till: Arc<Till>,
    pub settings: PaymentSettings,
    /// There are news.
    pub bell: Notify,
    pub guard: CodeGuard,
}

/// Why an order could not be looked at.
#[derive(Debug)]
pub enum Unsettled {
    Stripe(StripeFault),
    Store(StoreError),
}

impl From<StripeFault> for Unsettled {
    fn from(fault: StripeFault) -> Unsettled {
        Unsettled::Stripe(fault)
    }
}

impl From<StoreError> for Unsettled {
    fn from(error: StoreError) -> Unsettled {
        Unsettled::Store(error)
    }
}

impl std::fmt::Display for Unsettled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unsettled::Stripe(fault) => fault.fmt(f),
            Unsettled::Store(error) => error.fmt(f),
        }
    }
}

impl PaymentDesk {
    pub fn new(till: Arc<Till>, settings: PaymentSettings) -> PaymentDesk {
        let guard = CodeGuard::new(settings.wrong_codes);
        PaymentDesk { till, settings, bell: Notify::new(), guard }
    }

    pub fn stripe(&self) -> Result<&StripeSettings, Refusal> {
        let none = || Refusal::new(Code::NotFound, "This gateway takes no payments; ask its operator to top up.");
        self.settings.stripe.as_ref().ok_or_else(none)
    }

    /// Makes an order and the page to pay it at.
    pub async fn order(
        &self,
        account: AccountId,
        amount_minor: i64,
        actor: String,
        idem: Option<OrderIdem>,
    ) -> Result<PayOrder, Refusal> {
        let stripe = self.stripe()?;
        let wrong = |text: String| Refusal::about(Code::InvalidParameter, "amount_minor", text);
        if !(stripe.least..=stripe.most).contains(&amount_minor) {
            let (least, most, currency) = (stripe.least, stripe.most, &stripe.currency);
            let text =
                format!("`amount_minor` is a whole number from {least} to {most}, in the smallest unit of {currency}.");
            return Err(wrong(text));
        }
        let credit = stripe.credit(amount_minor).filter(|credit| credit.nano() > 0);
        let credit = credit.ok_or_else(|| wrong("`amount_minor` comes to no credit.".to_owned()))?;
        let now = self.till.world.now_ms();
        let session = i64::try_from(stripe.session_time.as_millis()).unwrap_or(i64::MAX);
        let new = NewOrder {
            account,
            provider: STRIPE.to_owned(),
            amount_minor,
            currency: stripe.currency.clone(),
            credit,
            live: stripe.api.is_live(),
            // Whole seconds, as Stripe has them.
            expires_at: now.saturating_add(session).div_euclid(1_000) * 1_000 + 60_000,
            next_look_at: now.saturating_add(i64::try_from(stripe.first_look.as_millis()).unwrap_or(i64::MAX)),
            actor,
            idem,
        };
        let order = match self.till.store.create_order(new, stripe.limits).await? {
            OrderMade::Made(order) | OrderMade::Before(order) => *order,
            OrderMade::OtherWish => {
                let text = "This Idempotency-Key was used for another order.";
                return Err(Refusal::about(Code::IdempotencyConflict, "Idempotency-Key", text));
            }
            OrderMade::TooManyOpen => {
                let text =
                    format!("{} orders wait to be paid: pay one of them, or wait until it ends.", stripe.limits.open);
                return Err(Refusal::new(Code::RateLimitExceeded, text).after(60).because("open_orders"));
            }
            OrderMade::TooManyInAnHour => {
                let text = format!("An account makes {} orders in an hour at most.", stripe.limits.hour);
                return Err(Refusal::new(Code::RateLimitExceeded, text).after(60).because("orders_per_hour"));
            }
        };
        if order.session.is_some() || !order.state.is_open() {
            return Ok(order);
        }
        match self.open(stripe, &order).await {
            Ok((order, _)) => Ok(order),
            Err(Unsettled::Store(error)) => Err(error.into()),
            Err(Unsettled::Stripe(fault)) => {
                tracing::error!(order = %order.id, %fault, "no page to pay at");
                let text = format!(
                    "The payment provider gave no page for {}; nothing was paid. Ask again with the same Idempotency-Key.",
                    order.id
                );
                Err(Refusal::new(Code::UpstreamError, text).after(5))
            }
        }
    }

    /// Asks for the page of an order. Asked twice it is the same page.
    async fn open(&self, stripe: &StripeSettings, order: &PayOrder) -> Result<(PayOrder, CheckoutSession), Unsettled> {
        let wish = CheckoutWish {
            reference: order.id.to_string(),
            amount_minor: order.amount_minor,
            currency: order.currency.clone(),
            product: stripe.product.clone(),
            success_url: stripe.success_url.clone(),
            cancel_url: stripe.cancel_url.clone(),
            expires_at: order.expires_at.div_euclid(1_000),
        };
        let session = stripe.api.create(&self.till.client, &wish).await?;
        let url = session.url.clone().unwrap_or_default();
        let opened = self.till.store.order_opened(order.id, &session.id, &url).await?;
        Ok((opened, session))
    }

    /// Asks the payment provider what has become of an order, and acts on it.
    pub async fn look(&self, order: &PayOrder) -> Result<OrderSettled, Unsettled> {
        let Some(stripe) = self.settings.stripe.as_ref().filter(|_| order.provider == STRIPE) else {
            return Err(StripeFault::Refused("payments are not configured".to_owned()).into());
        };
        let session = match &order.session {
            Some(session) => session.clone(),
            None => self.open(stripe, order).await?.0.session.unwrap_or_default(),
        };
        self.settle(stripe, order.id, &session).await
    }

    /// Words that are older than what was done by others meanwhile are not acted on: they are asked
    /// for again.
    async fn settle(&self, stripe: &StripeSettings, id: OrderId, session: &str) -> Result<OrderSettled, Unsettled> {
        let mut settled = None;
        for _ in 0..ASKED_AGAIN {
            let order = self.till.store.order(id).await?.ok_or(StripeFault::NotFound)?;
            let session = stripe.api.session(&self.till.client, session).await?;
            let truth = truth::of(stripe, &self.till.client, &session).await?;
            settled = self.till.store.settle_order(&order, &truth).await?;
            if settled.is_some() {
                break;
            }
        }
        let settled = settled.ok_or(StripeFault::Away)?;
        if settled.changed {
            let order = &settled.order;
            tracing::info!(order = %order.id, account = %order.account, state = order.state.name(), credited = settled.credited, "an order has changed");
        }
        if settled.order.state == OrderState::Mismatch {
            tracing::error!(order = %id, note = settled.order.note, "what was paid is not what was ordered: not credited");
        }
        if settled.credited {
            self.collect(&settled.order).await;
        }
        self.stop_or_reopen(&settled).await?;
        Ok(settled)
    }

    /// New money pays old debts first.
    async fn collect(&self, except: &PayOrder) {
        let owing = match self.till.store.orders_owing(except.account).await {
            Ok(owing) => owing,
            Err(error) => return tracing::warn!(%error, "debts could not be read"),
        };
        for debt in owing.iter().filter(|one| one.id != except.id && !one.owed.is_zero()) {
            if let Err(why) = Box::pin(self.look(debt)).await {
                tracing::warn!(order = %debt.id, %why, "a debt could not be collected; it is tried again");
            }
        }
    }

    /// Believes a message of Stripe and writes it down; what it says is looked at afterwards.
    pub async fn hear(&self, header: &str, body: &[u8]) -> Result<(), Refusal> {
        let stripe = self.stripe()?;
        let now = self.till.world.now_ms();
        let refused = |why: &str| Refusal::about(Code::InvalidRequest, "Stripe-Signature", why);
        stripe.signature.verify(header, body, now.div_euclid(1_000)).map_err(|why| match why {
            Unsigned::Malformed => refused("`Stripe-Signature` has no time or no signature."),
            Unsigned::NotNow => refused("`Stripe-Signature` is older than 300 seconds, or from the future."),
            Unsigned::Forged => refused("`Stripe-Signature` is not of this body and a secret of this gateway."),
        })?;
        let event = StripeEvent::read(body)
            .ok_or_else(|| Refusal::new(Code::InvalidRequest, "The body is not an event of Stripe."))?;
        let event = PayEvent {
            id: event.id,
            provider: STRIPE.to_owned(),
            kind: event.kind,
            order: None,
            // Of the other mode, test or live: kept, and nothing to look at.
            subject: event.subject.filter(|_| event.live == stripe.api.is_live()),
            received_at: now,
            tries: 0,
            next_at: now,
        };
        self.till.store.note_pay_event(event).await?;
        self.bell.notify_one();
        Ok(())
    }

    /// Deals with news. Whatever becomes of it is written down.
    pub async fn deal_with(&self, event: &PayEvent) -> Result<(), StoreError> {
        let now = self.till.world.now_ms();
        let (outcome, again) = match self.look_at_subject(event).await {
            Ok(outcome) => (outcome.to_owned(), None),
            Err(why) if now.saturating_sub(event.received_at) > GIVEN_UP => {
                tracing::error!(event = event.id, kind = event.kind, %why, "news of a payment were given up");
                (format!("given up: {why}"), None)
            }
            Err(why) => {
                tracing::warn!(event = event.id, kind = event.kind, tries = event.tries, %why, "news of a payment have to wait");
                let wait = 2_000i64.saturating_mul(1 << event.tries.min(10)).min(3_600_000);
                (format!("later: {why}"), Some(now.saturating_add(wait)))
            }
        };
        self.till.metrics.payment_event(if again.is_some() { "later" } else { "done" });
        self.till.store.end_pay_event(event, &outcome, again).await
    }

    async fn look_at_subject(&self, event: &PayEvent) -> Result<&'static str, Unsettled> {
        let Some(stripe) = &self.settings.stripe else { return Ok("payments are off") };
        let Some(subject) = &event.subject else { return Ok("nothing to look at") };
        if let Some(order) = self.till.store.order_of(STRIPE, subject).await? {
            self.look(&order).await?;
            return Ok("looked");
        }
        // An answer to our first question was lost, or these news were faster than it.
        let found = if subject.starts_with("pi_") {
            let found = stripe.api.session_of_payment(&self.till.client, subject).await?;
            match found {
                Some(session) => Some(stripe.api.session(&self.till.client, &session.id).await?),
                None => None,
            }
        } else {
            match stripe.api.session(&self.till.client, subject).await {
                Err(StripeFault::NotFound) => None,
                found => Some(found?),
            }
        };
        let Some(session) = found else { return Ok("no such session") };
        let reference = session.client_reference_id.as_deref().and_then(|text| text.parse().ok());
        let Some(reference) = reference else { return Ok("not an order of ours") };
        let Some(order) = self.till.store.order(reference).await? else { return Ok("not an order of ours") };
        if order.session.as_ref().is_some_and(|own| *own != session.id) {
            tracing::error!(order = %order.id, "another session names this order; it is not believed");
            return Ok("another session of the order");
        }
        self.settle(stripe, order.id, &session.id).await?;
        Ok("looked")
    }

    /// A regular look at an order; whatever comes of it, there is a next time.
    pub async fn look_again(&self, order: &PayOrder) -> Result<(), StoreError> {
        let over = self.till.world.sure_ms() > order.expires_at.saturating_add(86_400_000);
        match self.look(order).await {
            Ok(settled) if settled.changed => Ok(()),
            Err(Unsettled::Stripe(StripeFault::Refused(why))) if over && order.session.is_none() => {
                tracing::info!(order = %order.id, why, "an order that was never offered is over");
                self.till.store.change_order(order.id, expired).await.map(drop)
            }
            Err(why) => {
                tracing::warn!(order = %order.id, %why, "an order could not be looked at");
                self.till.store.order_looked_at(order.id).await.map(drop)
            }
            Ok(_) => self.till.store.order_looked_at(order.id).await.map(drop),
        }
    }
}

fn expired(order: &mut PayOrder) {
    if order.state.is_open() {
        (order.state, order.next_look_at) = (OrderState::Expired, None);
    }
}
