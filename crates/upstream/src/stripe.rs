//! Stripe, as far as customers pay their credit there: four calls of its API over the client of
//! every provider, and the signature of its news. What a session is for, and what is credited, is
//! none of this room's business.

use crate::outgoing::outgoing;
use crate::{BaseUrl, Client, Outgoing, Payload, Secret, read_whole};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use ring::hmac;
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// The version of the interface that is asked for, whatever the Stripe account is set to.
const VERSION: &str = "2024-06-20";
/// The longest reply that is read.
const REPLY: usize = 1 << 20;
/// How far the time of a signature may be from now, in seconds.
pub const SIGNED_WITHIN: i64 = 300;
/// The most signatures of one message that are looked at.
const SIGNATURES: usize = 16;

/// Where Stripe is, and the key to it.
#[derive(Clone, Debug)]
pub struct StripeAccount {
    base: BaseUrl,
    key: Secret,
    patience: Duration,
}

/// What is to be paid.
#[derive(Clone, Debug)]
pub struct CheckoutWish {
    /// Our id of it: what makes a repeated wish the same session.
    pub reference: String,
    pub amount_minor: i64,
    pub currency: String,
    /// What the customer reads.
    pub product: String,
    pub success_url: String,
    pub cancel_url: String,
    /// Seconds since 1970.
    pub expires_at: i64,
}

/// A page where a customer pays, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CheckoutSession {
    pub id: String,
    pub url: Option<String>,
    pub client_reference_id: Option<String>,
    pub amount_total: Option<i64>,
    pub currency: Option<String>,
    pub livemode: bool,
    /// `open`, `complete`, `expired`.
    pub status: Option<String>,
    /// `paid`, `unpaid`, `no_payment_required`.
    pub payment_status: String,
    pub payment_intent: Option<Expandable<PaymentIntent>>,
}

/// An object, or its id alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Expandable<T> {
    Whole(T),
    Id(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PaymentIntent {
    pub id: String,
    /// `requires_payment_method`, `processing`, `succeeded`, `canceled`, …
    pub status: String,
    pub latest_charge: Option<Expandable<StripeCharge>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StripeCharge {
    pub id: String,
    #[serde(default)]
    pub amount_refunded: i64,
    #[serde(default)]
    pub disputed: bool,
}

impl CheckoutSession {
    pub fn payment(&self) -> Option<&PaymentIntent> {
        match &self.payment_intent {
            Some(Expandable::Whole(payment)) => Some(payment),
            _ => None,
        }
    }

    pub fn payment_id(&self) -> Option<&str> {
        match self.payment_intent.as_ref()? {
            Expandable::Whole(payment) => Some(&payment.id),
            Expandable::Id(id) => Some(id),
        }
    }

    pub fn charge(&self) -> Option<&StripeCharge> {
        match self.payment()?.latest_charge.as_ref()? {
            Expandable::Whole(charge) => Some(charge),
            Expandable::Id(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct StripeList<T> {
    data: Vec<T>,
}

#[derive(Deserialize)]
struct Dispute {
    amount: i64,
    status: String,
}

#[derive(Deserialize)]
struct StripeRefusal {
    error: StripeErrorBody,
}

#[derive(Deserialize)]
struct StripeErrorBody {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    code: Option<String>,
}

/// Why there is no answer. Nothing of it names a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StripeFault {
    /// It was not reached, is busy, or failed: to be asked again.
    Away,
    /// It has no such object.
    NotFound,
    /// It does not take the request; its own words for why.
    Refused(String),
    /// What it said cannot be read.
    Garbage,
}

impl fmt::Display for StripeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away => f.write_str("Stripe does not answer"),
            Self::NotFound => f.write_str("Stripe has no such object"),
            Self::Refused(why) => write!(f, "Stripe refuses the request ({why})"),
            Self::Garbage => f.write_str("Stripe's answer cannot be read"),
        }
    }
}

impl StripeAccount {
    pub fn new(base: BaseUrl, key: Secret, patience: Duration) -> StripeAccount {
        StripeAccount { base, key, patience }
    }

    /// Real money: what the key itself says.
    pub fn is_live(&self) -> bool {
        let key = self.key.expose();
        key.starts_with("sk_live_") || key.starts_with("rk_live_")
    }

    /// Makes a page to pay at. A wish with the same reference gives the same page.
    pub async fn create(&self, client: &Client, wish: &CheckoutWish) -> Result<CheckoutSession, StripeFault> {
        let amount = wish.amount_minor.to_string();
        let expires = wish.expires_at.to_string();
        let fields = [
            ("mode", "payment"),
            ("client_reference_id", &wish.reference),
            ("metadata[order]", &wish.reference),
            ("payment_intent_data[metadata][order]", &wish.reference),
            ("line_items[0][quantity]", "1"),
            ("line_items[0][price_data][currency]", &wish.currency),
            ("line_items[0][price_data][unit_amount]", &amount),
            ("line_items[0][price_data][product_data][name]", &wish.product),
            ("success_url", &wish.success_url),
            ("cancel_url", &wish.cancel_url),
            ("expires_at", &expires),
        ];
        let mut request = self.request(Method::POST, "/v1/checkout/sessions", &fields)?;
        let once = HeaderValue::try_from(&wish.reference).map_err(|_| StripeFault::Garbage)?;
        request.headers_mut().insert("idempotency-key", once);
        self.ask(client, request).await
    }

    /// A page as it is now, with its payment.
    pub async fn session(&self, client: &Client, id: &str) -> Result<CheckoutSession, StripeFault> {
        let path = format!("/v1/checkout/sessions/{}", plain_id(id)?);
        let request = self.request(Method::GET, &path, &[("expand[]", "payment_intent.latest_charge")])?;
        self.ask(client, request).await
    }

    /// The page that a payment was made at.
    pub async fn session_of_payment(
        &self,
        client: &Client,
        payment: &str,
    ) -> Result<Option<CheckoutSession>, StripeFault> {
        let fields = [("payment_intent", plain_id(payment)?), ("limit", "1")];
        let request = self.request(Method::GET, "/v1/checkout/sessions", &fields)?;
        let list: StripeList<CheckoutSession> = self.ask(client, request).await?;
        Ok(list.data.into_iter().next())
    }

    /// What banks hold back or have taken back of a payment: all disputes that were not won.
    pub async fn disputed_minor(&self, client: &Client, payment: &str) -> Result<i64, StripeFault> {
        let fields = [("payment_intent", plain_id(payment)?), ("limit", "100")];
        let request = self.request(Method::GET, "/v1/disputes", &fields)?;
        let list: StripeList<Dispute> = self.ask(client, request).await?;
        // A warning holds nothing back yet.
        let counts = |one: &&Dispute| one.status != "won" && !one.status.starts_with("warning");
        Ok(list.data.iter().filter(counts).fold(0i64, |sum, one| sum.saturating_add(one.amount.max(0))))
    }

    fn request(&self, method: Method, path: &str, fields: &[(&str, &str)]) -> Result<Outgoing, StripeFault> {
        let form = form(fields);
        let posts = method == Method::POST;
        let path = if posts || form.is_empty() { path.to_owned() } else { format!("{path}?{form}") };
        let uri = self.base.join(&path).map_err(|_| StripeFault::Garbage)?;
        let body = if posts { Bytes::from(form) } else { Bytes::new() };
        let mut request = outgoing(method, uri, "application/json", body);
        let headers = request.headers_mut();
        let unusable = || StripeFault::Refused("the key cannot stand in a header".to_owned());
        headers.insert(AUTHORIZATION, self.key.bearer().ok_or_else(unusable)?);
        headers.insert("stripe-version", HeaderValue::from_static(VERSION));
        if posts {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        } else {
            *request.body_mut() = Payload::default();
        }
        Ok(request)
    }

    async fn ask<T: for<'de> Deserialize<'de>>(&self, client: &Client, request: Outgoing) -> Result<T, StripeFault> {
        let reply = client.ask(request, self.patience).await.map_err(|_| StripeFault::Away)?;
        let status = reply.status().as_u16();
        let body = read_whole(reply.into_body(), REPLY, self.patience).await.map_err(|_| StripeFault::Away)?;
        match status {
            200..=299 => serde_json::from_slice(&body).map_err(|_| StripeFault::Garbage),
            404 => Err(StripeFault::NotFound),
            409 | 429 | 500..=599 => Err(StripeFault::Away),
            _ => Err(StripeFault::Refused(refusal(status, &body))),
        }
    }
}

/// Words of a refusal that name a kind and a code, and nothing that was sent.
fn refusal(status: u16, body: &[u8]) -> String {
    let word = |text: &str| text.chars().filter(|c| c.is_ascii_lowercase() || *c == '_').take(64).collect::<String>();
    match serde_json::from_slice::<StripeRefusal>(body) {
        Ok(StripeRefusal { error }) => {
            format!("HTTP {status} {} {}", word(&error.kind), word(error.code.as_deref().unwrap_or_default()))
        }
        Err(_) => format!("HTTP {status}"),
    }
}

/// An id that can stand in a path: what came from outside is not trusted to be one.
fn plain_id(id: &str) -> Result<&str, StripeFault> {
    let plain = !id.is_empty() && id.len() <= 255 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain { Ok(id) } else { Err(StripeFault::NotFound) }
}

/// Fields as Stripe takes them.
fn form(fields: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        if !text.is_empty() {
            text.push('&');
        }
        encode(&mut text, name);
        text.push('=');
        encode(&mut text, value);
    }
    text
}

fn encode(text: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// The secrets that news of Stripe are signed with: several while one is exchanged.
#[derive(Clone)]
pub struct StripeSignature(Vec<hmac::Key>);

impl fmt::Debug for StripeSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StripeSignature(…)")
    }
}

/// Why a message is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsigned {
    Malformed,
    /// Too old, or from the future.
    NotNow,
    Forged,
}

impl StripeSignature {
    /// `None`: there is no secret, or an empty one, with which anybody could sign.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Option<StripeSignature> {
        let keys: Option<Vec<hmac::Key>> = secrets
            .into_iter()
            .map(|secret| {
                let secret = secret.trim();
                (secret.len() >= 16).then(|| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
            })
            .collect();
        keys.filter(|keys| !keys.is_empty()).map(StripeSignature)
    }

    /// Whether Stripe said this, now. `header` is `t=…,v1=…`, with several `v1` while a secret is
    /// exchanged; compared in constant time.
    pub fn verify(&self, header: &str, body: &[u8], now_s: i64) -> Result<(), Unsigned> {
        let (mut at, mut given) = (None, Vec::new());
        for part in header.split(',') {
            match part.trim().split_once('=') {
                Some(("t", text)) => at = Some(text),
                Some(("v1", text)) if given.len() < SIGNATURES => given.push(text),
                _ => {}
            }
        }
        let Some((text, at)) = at.and_then(|text| Some((text, text.parse::<i64>().ok()?))) else {
            return Err(Unsigned::Malformed);
        };
        if given.is_empty() {
            return Err(Unsigned::Malformed);
        }
        let mut signed = Vec::with_capacity(text.len() + 1 + body.len());
        signed.extend_from_slice(text.as_bytes());
        signed.push(b'.');
        signed.extend_from_slice(body);
        let fits = |given: &str| {
            let bytes = hex(given);
            bytes.is_some_and(|bytes| self.0.iter().any(|key| hmac::verify(key, &signed, &bytes).is_ok()))
        };
        if !given.into_iter().any(fits) {
            return Err(Unsigned::Forged);
        }
        if now_s.saturating_sub(at).saturating_abs() > SIGNED_WITHIN {
            return Err(Unsigned::NotNow);
        }
        Ok(())
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect()
}

/// News of Stripe: that something has happened, and to what. What it says beyond that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeEvent {
    pub id: String,
    pub kind: String,
    pub live: bool,
    /// A session or a payment; none: nothing that concerns us.
    pub subject: Option<String>,
}

impl StripeEvent {
    /// `None`: it is not an event.
    pub fn read(body: &[u8]) -> Option<StripeEvent> {
        let event: serde_json::Value = serde_json::from_slice(body).ok()?;
        let word = |value: &serde_json::Value| {
            let text = value.as_str()?;
            (!text.is_empty() && text.len() <= 255 && text.bytes().all(|b| b.is_ascii_graphic()))
                .then(|| text.to_owned())
        };
        let (id, kind) = (word(&event["id"])?, word(&event["type"])?);
        let object = &event["data"]["object"];
        let subject = match kind.as_str() {
            "checkout.session.completed"
            | "checkout.session.async_payment_succeeded"
            | "checkout.session.async_payment_failed"
            | "checkout.session.expired" => word(&object["id"]),
            kind if kind.starts_with("charge.dispute.")
                || kind.starts_with("refund.")
                || kind == "charge.refunded"
                || kind == "charge.refund.updated" =>
            {
                word(&object["payment_intent"]).or_else(|| word(&object["payment_intent"]["id"]))
            }
            _ => None,
        };
        Some(StripeEvent { id, kind, live: event["livemode"].as_bool()?, subject })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(secret: &str, at: i64, body: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::sign(&key, format!("{at}.{body}").as_bytes()).as_ref().iter().map(|b| format!("{b:02x}")).collect()
    }

    const SECRET: &str = "whsec_0123456789abcdef";

    #[test]
    fn only_what_was_signed_now_with_a_secret_of_ours_is_believed() {
        let ours = StripeSignature::new([SECRET, "whsec_the_second_one_x"]).expect("secrets");
        let good = sign(SECRET, 1_000, "{}");
        let second = sign("whsec_the_second_one_x", 1_000, "{}");
        let foreign = sign("whsec_somebody_elses_x", 1_000, "{}");
        for (header, body, now, verdict) in [
            (format!("t=1000,v1={good}"), "{}", 1_000, Ok(())),
            (format!("t=1000,v1={second}"), "{}", 1_300, Ok(())),
            (format!("t=1000,v1={foreign},v1={good},v0=x"), "{}", 700, Ok(())),
            (format!("t=1000,v1={good}"), "{}", 1_301, Err(Unsigned::NotNow)),
            (format!("t=1000,v1={good}"), "{}", 699, Err(Unsigned::NotNow)),
            (format!("t=1001,v1={good}"), "{}", 1_000, Err(Unsigned::Forged)),
            (format!("t=1000,v1={good}"), "{ }", 1_000, Err(Unsigned::Forged)),
            (format!("t=1000,v1={foreign}"), "{}", 1_000, Err(Unsigned::Forged)),
            (format!("t=1000,v1={}", &good[..62]), "{}", 1_000, Err(Unsigned::Forged)),
            (format!("t=1000,v0={good}"), "{}", 1_000, Err(Unsigned::Malformed)),
            (format!("v1={good}"), "{}", 1_000, Err(Unsigned::Malformed)),
            (String::new(), "{}", 1_000, Err(Unsigned::Malformed)),
        ] {
            assert_eq!(ours.verify(&header, body.as_bytes(), now), verdict, "{header}");
        }
    }

    #[test]
    fn an_empty_secret_is_none() {
        for secrets in [vec![], vec![""], vec!["   "], vec![SECRET, ""], vec!["short"]] {
            assert!(StripeSignature::new(secrets.clone()).is_none(), "{secrets:?}");
        }
        assert!(!format!("{:?}", StripeSignature::new([SECRET])).contains("whsec"));
    }

    #[test]
    fn an_event_names_what_it_is_about() {
        let read = |text: &str| StripeEvent::read(text.as_bytes());
        let one =
            r#"{"id":"evt_1","type":"checkout.session.completed","livemode":false,"data":{"object":{"id":"cs_1"}}}"#;
        assert_eq!(read(one).and_then(|event| event.subject).as_deref(), Some("cs_1"));
        let refund = r#"{"id":"evt_2","type":"charge.refunded","livemode":true,"data":{"object":{"id":"ch","payment_intent":"pi_1"}}}"#;
        assert_eq!(read(refund).and_then(|event| event.subject).as_deref(), Some("pi_1"));
        let other = r#"{"id":"evt_3","type":"invoice.paid","livemode":true,"data":{"object":{"id":"in_1"}}}"#;
        assert_eq!(read(other).map(|event| event.subject), Some(None));
        for bad in ["", "{}", "[]", r#"{"id":"","type":"x","livemode":true}"#, r#"{"id":"a","type":"x"}"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn fields_are_written_as_stripe_reads_them() {
        assert_eq!(form(&[("a[b]", "c d&=é"), ("x", "1")]), "a%5Bb%5D=c%20d%26%3D%C3%A9&x=1");
        assert!(plain_id("cs_test_a1").is_ok() && plain_id("cs/../x").is_err() && plain_id("").is_err());
    }
}
