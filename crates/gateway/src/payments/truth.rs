//! What Stripe says of a session, as an order is judged by it.

use crate::settings::StripeSettings;
use tollgate_store::{OrderTruth, PaymentStanding};
use tollgate_upstream::{CheckoutSession, Client, StripeFault};

/// A session that came with its payment and charge. Disputes are asked for where there are some.
pub async fn of(
    stripe: &StripeSettings,
    client: &Client,
    session: &CheckoutSession,
) -> Result<OrderTruth, StripeFault> {
    let charge = session.charge();
    let disputed = match (charge.is_some_and(|charge| charge.disputed), session.payment_id()) {
        (true, Some(payment)) => stripe.api.disputed_minor(client, payment).await?,
        _ => 0,
    };
    Ok(OrderTruth {
        session: session.id.clone(),
        reference: session.client_reference_id.clone().unwrap_or_default(),
        amount_minor: session.amount_total.unwrap_or_default(),
        currency: session.currency.clone().unwrap_or_default(),
        live: session.livemode,
        payment: session.payment_id().map(str::to_owned),
        standing: standing(session),
        refunded_minor: charge.map_or(0, |charge| charge.amount_refunded),
        disputed_minor: disputed,
    })
}

/// Only `paid` is paid: a session that is complete may wait for its money for days, and need none
/// at all where somebody else gave a discount.
fn standing(session: &CheckoutSession) -> PaymentStanding {
    let status = session.status.as_deref().unwrap_or_default();
    let payment = session.payment().map_or("", |payment| payment.status.as_str());
    match (session.payment_status.as_str(), status) {
        ("paid", _) => PaymentStanding::Paid,
        (_, "expired") => PaymentStanding::Expired,
        (_, "complete") if payment == "processing" || payment == "succeeded" => PaymentStanding::OnItsWay,
        (_, "complete") => PaymentStanding::Failed,
        _ => PaymentStanding::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paid_is_paid() {
        for (status, paid, payment, expected) in [
            ("open", "unpaid", None, PaymentStanding::Open),
            ("complete", "paid", Some("succeeded"), PaymentStanding::Paid),
            ("complete", "unpaid", Some("processing"), PaymentStanding::OnItsWay),
            ("complete", "unpaid", Some("requires_payment_method"), PaymentStanding::Failed),
            ("complete", "no_payment_required", None, PaymentStanding::Failed),
            ("expired", "unpaid", None, PaymentStanding::Expired),
        ] {
            let payment = payment.map(|status| serde_json::json!({ "id": "pi_1", "status": status }));
            let session = serde_json::json!({
                "id": "cs_1", "livemode": false, "status": status, "payment_status": paid, "payment_intent": payment,
            });
            let session: CheckoutSession = serde_json::from_value(session).expect("a session");
            assert_eq!(standing(&session), expected, "{status} {paid}");
        }
    }
}
