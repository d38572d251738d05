//! News about finished tasks, sent to an address the customer named. The form and the signature are
//! those of the Standard Webhooks (and of OpenAI's own), so that its libraries verify them:
//! `webhook-id`, `webhook-timestamp`, `webhook-signature`.
//!
//! At least once: what is not answered with 2xx is sent again for about a day, with the same id.
//! Addresses inside are never reached.

use super::VideoDesk;
use super::show::ShownTask;
use crate::settings::WebhookSettings;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::{Account, AccountId, Task, TaskState, Webhook, WebhookOutcome};
use tollgate_upstream::{Outgoing, Payload};

pub const PURPOSE: &str = "webhook";
/// Seconds from one try to the next; after the last one nobody is notified any more.
const AGAIN: [i64; 9] = [5, 30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600];
const AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// The secrets an account verifies with, newest first, as its libraries take them.
pub fn secrets(desk: &VideoDesk, account: AccountId) -> Vec<String> {
    desk.secrets.derived(PURPOSE, &account.to_string()).iter().map(|secret| secret.text()).collect()
}

/// Where an account wants to hear of all its tasks: what was set for it, else what the
/// configuration says.
pub fn of_account(desk: &VideoDesk, account: &Account) -> Option<String> {
    let configured = || desk.settings.webhooks.accounts.get(&account.id.to_string()).cloned();
    account.webhook_url.clone().or_else(configured)
}

/// Tells one, and says whether that was the last time.
pub async fn deliver(desk: &VideoDesk, webhook: &Webhook, task: &Task) -> WebhookOutcome {
    let (outcome, status) = attempt(desk, webhook, task).await;
    let word = match (&outcome, status) {
        (Ok(()), _) => "delivered",
        (Err(_), Some(_)) => "refused",
        (Err(_), None) => "not_reached",
    };
    if let Err(error) = desk.till.store.note_delivery(webhook.clone(), status, word).await {
        tracing::warn!(%error, "a try to deliver a webhook could not be written down");
    }
    desk.till.metrics.webhook(if outcome.is_ok() { "told" } else { "failed" });
    match outcome {
        Ok(()) => WebhookOutcome::Over,
        Err(Trouble::Unwanted) => {
            tracing::info!(task = %webhook.task, account = %webhook.account, "a webhook's receiver wants no more (410)");
            WebhookOutcome::Over
        }
        Err(Trouble::Later(why)) => match AGAIN.get(webhook.attempts as usize) {
            Some(seconds) => {
                let (attempt, again) = (webhook.attempts + 1, jittered(desk, seconds * 1000));
                tracing::warn!(task = %webhook.task, account = %webhook.account, attempt, again_in_ms = again, why, "a webhook failed");
                WebhookOutcome::Again(again)
            }
            None => {
                tracing::warn!(task = %webhook.task, account = %webhook.account, why, "a webhook was given up");
                desk.till.metrics.webhook("given_up");
                WebhookOutcome::Over
            }
        },
    }
}

enum Trouble {
    /// The receiver says that it wants no more of it.
    Unwanted,
    Later(String),
}

/// What became of it, and the status that the receiver answered with.
async fn attempt(desk: &VideoDesk, webhook: &Webhook, task: &Task) -> (Result<(), Trouble>, Option<u16>) {
    let body = event(desk, task).to_string();
    let Some(request) = request(desk, webhook, task, body) else { return (Err(Trouble::Unwanted), None) };
    let settings = &desk.settings.webhooks;
    let client = if settings.private { &desk.till.client } else { &desk.outside };
    let Ok(reply) = client.ask(request, settings.patience).await else {
        return (Err(Trouble::Later("the receiver was not reached".to_owned())), None);
    };
    let status = reply.status();
    let outcome = match status {
        status if status.is_success() => Ok(()),
        http::StatusCode::GONE => Err(Trouble::Unwanted),
        // Redirects are not followed: they could lead anywhere.
        status => Err(Trouble::Later(format!("the receiver answered with HTTP {}", status.as_u16()))),
    };
    (outcome, Some(status.as_u16()))
}

/// What is sent. The same task is always the same event.
fn event(desk: &VideoDesk, task: &Task) -> Value {
    let base = desk.reached_at.clone();
    let shown: Value = serde_json::from_slice(&ShownTask::of(desk, base.as_deref(), task).openai()).unwrap_or_default();
    let completed = task.state == TaskState::Completed;
    json!({
        "object": "event",
        "id": event_id(task),
        "type": if completed { "video.completed" } else { "video.failed" },
        "created_at": task.ended_at.unwrap_or(task.created_at).div_euclid(1000),
        "data": shown,
    })
}

fn event_id(task: &Task) -> String {
    task.id.to_string().replacen("task_", "evt_", 1)
}

fn request(desk: &VideoDesk, webhook: &Webhook, task: &Task, body: String) -> Option<Outgoing> {
    let id = event_id(task);
    let at = desk.till.world.now_ms().div_euclid(1000);
    let signed = format!("{id}.{at}.{body}");
    // Both while a secret is being exchanged.
    let secrets = desk.secrets.derived(PURPOSE, &webhook.account.to_string());
    let signatures: Vec<String> =
        secrets.iter().map(|secret| format!("v1,{}", secret.sign(signed.as_bytes()))).collect();
    let mut request = Request::post(webhook.url.as_str()).body(Payload::from(Bytes::from(body))).ok()?;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert("webhook-id", HeaderValue::try_from(id).ok()?);
    headers.insert("webhook-timestamp", HeaderValue::from(at));
    headers.insert("webhook-signature", HeaderValue::try_from(signatures.join(" ")).ok()?);
    Some(request)
}

/// Up to a fifth later, so that many do not come back together.
fn jittered(desk: &VideoDesk, ms: i64) -> i64 {
    let mut random = [0; 4];
    desk.till.world.fill(&mut random);
    ms + i64::from(u32::from_le_bytes(random)) % (ms / 5 + 1)
}

/// How long one try can take; a lease is longer.
pub fn longest(settings: &WebhookSettings) -> Duration {
    settings.patience + Duration::from_secs(30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::video::StoredResult;

    /// Where nobody has said under which address we are reached, an event carries no link rather
    /// than one that leads nowhere.
    #[tokio::test]
    async fn an_event_has_a_link_of_ours_where_we_can_be_reached() {
        let file = StoredResult {
            url: "https://files.example/v.mp4".to_owned(),
            expires_at: None,
            public: false,
            needs_key: false,
            file: None,
            copy: None,
            length: None,
        };
        let task = crate::testing::bare_task(TaskState::Completed);
        let task = Task { result: Some(file.text()), ended_at: Some(0), ..task };
        for (listen, public_url, link) in [
            ("127.0.0.1:8080", None, Some("http://127.0.0.1:8080/v1/videos/")),
            ("0.0.0.0:8080", None, None),
            ("[::]:8080", None, None),
            ("0.0.0.0:8080", Some("https://gate.example"), Some("https://gate.example/v1/videos/")),
        ] {
            let app = crate::testing::bare_app_with(|settings| {
                settings.listen = listen.parse().expect("an address");
                settings.public_url = public_url.map(str::to_owned);
            });
            let app = app.await;
            let data = event(&app.video, &task)["data"].clone();
            assert_eq!(data["status"], "completed");
            let url_shown = data["metadata"]["url"].as_str();
            assert_eq!(url_shown.map(|url| &url[..link.map_or(0, str::len)]), link, "{listen}: {data}");
            assert_eq!(data["expires_at"].is_null(), link.is_none(), "{listen}: {data}");
            app.store.shut().await;
        }
    }

    #[test]
    fn it_is_tried_for_about_a_day() {
        let all: i64 = AGAIN.iter().sum();
        assert!((20 * 3600..30 * 3600).contains(&all), "{all}");
        assert!(AGAIN.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
