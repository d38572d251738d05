//! Looks for trouble, and tells of it. Every replica says what only it can see of itself; one of
//! all of them looks at the rules and at customers' notices; all of them send what waits. Nothing
//! of it is on the way of a call.

pub(super) mod measure;
mod send;

use crate::alerts::judge::{self, AlertReading};
use crate::app::App;
use crate::door::spool::free_bytes;
use crate::people::letter::{Letter, LetterAbout};
use crate::work::video::webhooks;
pub use send::send_due;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_store::{AccountId, AlertFiring, AlertMove, AlertRule, DueNotice, NoticeMail, StoreError};

/// How often somebody looks, and how often a replica asks whether it is to.
const LOOK_MS: i64 = 30_000;
const ASK: Duration = Duration::from_secs(5);
/// How often a replica says how it is.
const FACTS_MS: i64 = 60_000;
/// Accounts with notices that are read at once, and how many times in a look: the next one goes on
/// where this one stopped.
const PAGE: u32 = 1_000;
const PAGES: usize = 20;
/// Looks between two erasures of what is old.
const FORGET_EVERY: u32 = 20;

/// Runs until the stop.
pub async fn run(app: Arc<App>) {
    tokio::join!(looks(&app), send::run(&app));
}

async fn looks(app: &App) {
    let (mut said_at, mut looked, mut after) = (None, 0u32, None);
    loop {
        let now = app.world.steady_ms();
        if said_at.is_none_or(|at| now - at >= FACTS_MS) {
            said_at = Some(now);
            if let Err(error) = say_how_it_is(app).await {
                tracing::warn!(%error, "what this replica sees of itself is not written");
            }
        }
        match app.store.take_alert_turn("look", LOOK_MS).await {
            Ok(true) => {
                looked = looked.wrapping_add(1);
                if let Err(error) = look(app).await {
                    tracing::warn!(%error, "rules of alerts could not be looked at");
                }
                match look_at_notices(app, after).await {
                    Ok(next) => after = next,
                    Err(error) => tracing::warn!(%error, "balances could not be looked at"),
                }
                if looked % FORGET_EVERY == 1
                    && let Err(error) = app.store.forget_alerts().await
                {
                    tracing::warn!(%error, "old alerts cannot be erased");
                }
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "nobody can look for alerts"),
        }
        tokio::select! {
            () = tokio::time::sleep(ASK) => {}
            () = app.shutdown.stopping.cancelled() => return,
        }
    }
}

/// What only this replica sees: its disk, and the certificate of its port.
pub async fn say_how_it_is(app: &App) -> Result<(), StoreError> {
    let dir = app.settings.data_dir.clone();
    let free = tokio::task::spawn_blocking(move || free_bytes(&dir)).await.ok().flatten();
    if let Some(free) = free {
        let free = i64::try_from(free).unwrap_or(i64::MAX);
        app.store.put_alert_fact(measure::DISK, &app.alerts.replica, free).await?;
    }
    if app.settings.tls.is_some() {
        let ends = app.metrics.tls.ends().saturating_mul(1_000);
        app.store.put_alert_fact(measure::CERTIFICATE, &app.alerts.replica, ends).await?;
    }
    Ok(())
}

/// Measures what the rules want, and writes what has changed; how much that was.
pub async fn look(app: &App) -> Result<usize, StoreError> {
    let rules = app.store.alert_rules().await?;
    let firing = app.store.alerts_firing().await?;
    let mut moved = 0;
    for rule in rules.iter().filter(|rule| rule.enabled) {
        match measure::readings(app, &rule.condition).await {
            Ok(readings) => moved += judged(app, rule, &readings, &firing).await?,
            Err(error) => tracing::warn!(rule = rule.name, %error, "a rule of alerts could not be measured"),
        }
    }
    let number = i64::try_from(app.store.alerts_firing().await?.len()).unwrap_or(i64::MAX);
    app.metrics.alerts.firing.set(number);
    if moved > 0 {
        app.alerts.ring();
    }
    Ok(moved)
}

async fn judged(
    app: &App,
    rule: &AlertRule,
    readings: &[AlertReading],
    firing: &[AlertFiring],
) -> Result<usize, StoreError> {
    let now = app.world.now_ms();
    let was = |subject: &str| firing.iter().find(|one| one.rule_id == rule.id && one.subject == subject);
    let mut moved = 0;
    for reading in readings {
        let before = was(&reading.subject);
        if let Some(what) = judge::verdict(rule, before, reading, now) {
            let written = app.store.move_alert(rule, what, &reading.subject, &reading.says, before).await?;
            moved += usize::from(written);
        }
    }
    // What is watched no more, such as a replica that was taken away.
    let seen: BTreeSet<&str> = readings.iter().map(|reading| reading.subject.as_str()).collect();
    for gone in firing.iter().filter(|one| one.rule_id == rule.id && !seen.contains(one.subject.as_str())) {
        let says = format!("{} is not watched any more", gone.subject);
        moved += usize::from(app.store.move_alert(rule, AlertMove::Cleared, &gone.subject, &says, Some(gone)).await?);
    }
    Ok(moved)
}

/// Looks at balances of accounts that want to hear of them; from where the next look goes on.
pub async fn look_at_notices(app: &App, mut after: Option<AccountId>) -> Result<Option<AccountId>, StoreError> {
    let mut sent = false;
    for _ in 0..PAGES {
        let (crossed, next) = app.store.crossed_notices(after, PAGE).await?;
        for due in crossed {
            let out = notice(app, &due).await?;
            sent |= app.store.cross_notice(&due, out).await? && due.low;
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    if sent {
        app.people.ring();
        app.alerts.ring();
    }
    Ok(after)
}

/// What goes out about a balance that has fallen.
async fn notice(app: &App, due: &DueNotice) -> Result<NoticeMail, StoreError> {
    if !due.low || !due.may_send {
        return Ok(NoticeMail::default());
    }
    let (balance, threshold) = (Money::from_nano(due.balance), Money::from_nano(due.threshold));
    let mut letters = Vec::new();
    if due.mail && app.people.post.sends() {
        for owner in app.store.notice_owners(due.account).await? {
            let letter = Letter {
                about: LetterAbout::LowBalance,
                to: owner.email,
                locale: owner.locale,
                link: None,
                place: format!("{balance} USD < {threshold} USD ({})", due.account),
            };
            letters.extend(app.people.sealed(&letter, |bytes| app.world.fill(bytes)));
        }
    }
    let data = json!({
        "account_id": due.account, "balance_nano_usd": due.balance, "threshold_nano_usd": due.threshold,
        "at_ms": app.world.now_ms(),
    });
    let account = app.store.account(due.account).await?.filter(|_| due.webhook);
    let hears = account.and_then(|account| webhooks::of_account(&app.video, &account));
    Ok(NoticeMail { letters, webhook: hears.map(|_| data.to_string()) })
}
