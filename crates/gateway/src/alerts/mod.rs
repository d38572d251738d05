//! Where alerts go: an address is sealed in the store, opened here, spoken to in its own form
//! (`form.rs`) and reached as webhooks of customers are, from outside only. What is judged of what
//! is measured is in `judge.rs`; `workers/alerts.rs` looks and sends.

pub mod form;
pub mod judge;

use crate::call::Till;
use crate::refusal::Refusal;
use crate::secrets::Secrets;
use crate::settings::{WebhookSettings, public_address};
use bytes::Bytes;
use form::PlaceForm;
use http::{HeaderValue, Request, header};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Notify;
use tollgate_store::{AlertEventId, AlertNews, AlertPlaceId, AlertPlaceKind};
use tollgate_upstream::{Client, Outgoing, Payload, read_whole};

/// What secrets of places are made and sealed for.
const PURPOSE: &str = "alert";
const AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));
/// As much of an answer is read as says whether a chat has taken it.
const REPLY_BYTES: usize = 16 * 1024;

/// The state that alerts need.
pub struct AlertDesk {
    till: Arc<Till>,
    outside: Client,
    settings: WebhookSettings,
    secrets: Arc<Secrets>,
    /// Which replica this is, for what only it can see of itself.
    pub replica: String,
    /// Something is to be sent: to places, and to accounts.
    bells: [Notify; 2],
}

/// Where something goes. Addresses of chats are secrets: whoever has one can write there.
#[derive(Clone, Serialize, Deserialize)]
pub struct PlaceAddress {
    /// A URL, or whom mail goes to.
    pub to: String,
    /// What a chat wants signatures made with.
    pub secret: Option<String>,
}

/// What became of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceAnswer {
    Delivered(u16),
    /// It answered, and did not take it.
    Refused(u16),
    /// It wants no more.
    Gone,
    NotReached,
}

impl PlaceAnswer {
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Delivered(_) => "delivered",
            Self::Refused(_) | Self::Gone => "refused",
            Self::NotReached => "not_reached",
        }
    }

    pub fn status(self) -> Option<u16> {
        match self {
            Self::Delivered(status) | Self::Refused(status) => Some(status),
            Self::Gone => Some(410),
            Self::NotReached => None,
        }
    }
}

impl AlertDesk {
    pub fn new(
        till: Arc<Till>,
        outside: Client,
        settings: WebhookSettings,
        secrets: Arc<Secrets>,
        data_dir: &std::path::Path,
    ) -> AlertDesk {
        let replica = std::fs::read_to_string(data_dir.join("replica.id")).unwrap_or_default();
        let name: String = replica.trim().chars().take(8).collect();
        let replica = if name.is_empty() { "server".to_owned() } else { name };
        AlertDesk { till, outside, settings, secrets, replica, bells: [Notify::new(), Notify::new()] }
    }

    /// What was written is sent at once.
    pub fn ring(&self) {
        self.bells.iter().for_each(Notify::notify_one);
    }

    pub async fn rung(&self, of_accounts: bool) {
        self.bells[usize::from(of_accounts)].notified().await;
    }

    /// An address that may be written to, and what may be shown of it.
    pub fn checked(&self, kind: AlertPlaceKind, to: &str) -> Result<String, Refusal> {
        shown(kind, to, &self.settings)
    }

    pub fn seal(&self, address: &PlaceAddress) -> Option<Vec<u8>> {
        seal(&self.secrets, address, |bytes| self.till.world.fill(bytes))
    }

    pub fn open(&self, sealed: &[u8]) -> Option<PlaceAddress> {
        serde_json::from_slice(&self.secrets.open_sealed(PURPOSE, "", sealed)?).ok()
    }

    /// What a webhook of operators is verified with, newest first.
    pub fn secrets_of(&self, place: AlertPlaceId) -> Vec<String> {
        self.secrets.derived(PURPOSE, &place.to_string()).iter().map(|secret| secret.text()).collect()
    }

    /// Tells a place that is not a mailbox.
    pub async fn tell(
        &self,
        (kind, place): (AlertPlaceKind, AlertPlaceId),
        address: &PlaceAddress,
        event: AlertEventId,
        news: &AlertNews,
    ) -> PlaceAnswer {
        if kind == AlertPlaceKind::Webhook {
            let body = form::event(event, news).to_string();
            return self.tell_signed(&address.to, &event.to_string(), body, (PURPOSE, &place.to_string())).await;
        }
        let now = self.till.world.now_ms();
        let PlaceForm { url, body } = form::chat(kind, address, &form::text(news), now);
        match Request::post(url.as_str()).body(Payload::from(Bytes::from(body.to_string()))) {
            Ok(request) => self.post(request, kind).await,
            Err(_) => PlaceAnswer::NotReached,
        }
    }

    /// A webhook as the Standard Webhooks have it, signed with the secrets of this purpose and
    /// owner.
    pub async fn tell_signed(&self, url: &str, id: &str, body: String, of: (&str, &str)) -> PlaceAnswer {
        let at = self.till.world.now_ms().div_euclid(1000);
        let signed = format!("{id}.{at}.{body}");
        let secrets = self.secrets.derived(of.0, of.1);
        let signatures: Vec<String> =
            secrets.iter().map(|secret| format!("v1,{}", secret.sign(signed.as_bytes()))).collect();
        let Ok(mut request) = Request::post(url).body(Payload::from(Bytes::from(body))) else {
            return PlaceAnswer::NotReached;
        };
        let headers = request.headers_mut();
        let signature = HeaderValue::try_from(signatures.join(" "));
        let (Ok(id), Ok(signature)) = (HeaderValue::try_from(id), signature) else { return PlaceAnswer::NotReached };
        headers.insert("webhook-id", id);
        headers.insert("webhook-timestamp", HeaderValue::from(at));
        headers.insert("webhook-signature", signature);
        self.post(request, AlertPlaceKind::Webhook).await
    }

    async fn post(&self, mut request: Outgoing, kind: AlertPlaceKind) -> PlaceAnswer {
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
        let client = if self.settings.private { &self.till.client } else { &self.outside };
        let patience = self.settings.patience;
        // Redirects are not followed: they could lead anywhere.
        let Ok(reply) = client.ask(request, patience).await else { return PlaceAnswer::NotReached };
        let status = reply.status().as_u16();
        match status {
            410 => PlaceAnswer::Gone,
            200..=299 if form::says_in_its_body(kind) => {
                match read_whole(reply.into_body(), REPLY_BYTES, patience).await {
                    Ok(body) if form::was_taken(kind, &body) => PlaceAnswer::Delivered(status),
                    _ => PlaceAnswer::Refused(status),
                }
            }
            200..=299 => PlaceAnswer::Delivered(status),
            _ => PlaceAnswer::Refused(status),
        }
    }
}

/// For the command line, which has the secrets and no desk.
pub fn seal(secrets: &Secrets, address: &PlaceAddress, fill: impl FnOnce(&mut [u8])) -> Option<Vec<u8>> {
    secrets.seal(PURPOSE, "", &serde_json::to_vec(address).ok()?, fill)
}

/// What may be shown of an address: a host, or whom mail goes to. Refused where nothing may be
/// sent.
pub fn shown(kind: AlertPlaceKind, to: &str, settings: &WebhookSettings) -> Result<String, Refusal> {
    if kind == AlertPlaceKind::Mail {
        return match crate::people::post::is_address(to) {
            true => Ok(to.to_owned()),
            false => {
                Err(Refusal::about(tollgate_wire::error::Code::InvalidParameter, "to", "`to` is no e-mail address."))
            }
        };
    }
    let url = public_address("to", to, settings)?;
    let uri: Option<http::Uri> = url.parse().ok();
    Ok(uri.and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default())
}
