//! Sends mail that waits in the store. What was written with a change is sent after it, also when
//! the process that made the change died in between; it may be sent twice, and is never lost.

use crate::app::App;
use crate::people::MOST_MAIL;
use crate::people::letter::{Letter, LetterAbout};
use crate::people::post::NotSent;
use std::sync::Arc;
use std::time::Duration;
use tollgate_store::{AccountLetter, DueMail, LetterCause, StoreError};

/// How often the outbox is looked at when nobody rings.
const EVERY: Duration = Duration::from_secs(15);
/// Letters taken at a time, and for how long.
const AT_ONCE: u32 = 4;
const LEASE_MS: i64 = 3 * 60_000;
/// Waits after a failure: half a minute, then twice as long each time.
const FIRST_WAIT_MS: i64 = 30_000;
const LONGEST_WAIT_MS: i64 = 3_600_000;
/// Accounts whose owners are told something in one round.
const ACCOUNTS: u32 = 20;
/// Given up after so long: what is in it has ended.
const GIVEN_UP_MS: i64 = 24 * 3_600_000;

pub async fn run(app: Arc<App>) {
    if !app.people.post.sends() {
        return;
    }
    while !app.shutdown.stopping.is_cancelled() {
        if let Err(error) = tell_owners(&app).await {
            tracing::warn!(%error, "owners of accounts are told later");
        }
        match send_due(&app).await {
            Ok(0) => {}
            Ok(_) => continue,
            Err(error) => tracing::warn!(%error, "mail waits for the database"),
        }
        tokio::select! {
            () = app.shutdown.stopping.cancelled() => return,
            () = app.people.rung() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

/// Writes the letters about accounts that were closed or opened again.
pub async fn tell_owners(app: &App) -> Result<(), StoreError> {
    for told in app.store.account_letters(ACCOUNTS).await? {
        if app.store.mail_waiting().await? >= MOST_MAIL {
            return Ok(());
        }
        let mut letters = Vec::new();
        // What is too old is told to nobody, as a letter that could not be sent for so long.
        if app.world.now_ms().saturating_sub(told.at) <= GIVEN_UP_MS {
            for owner in app.store.notice_owners(told.account).await? {
                let letter = of_account(&told, owner.email, owner.locale);
                letters.extend(app.people.sealed(&letter, |bytes| app.world.fill(bytes)));
            }
        }
        app.store.write_account_letter(&told, letters).await?;
    }
    Ok(())
}

fn of_account(told: &AccountLetter, to: String, locale: String) -> Letter {
    let about = match told.cause {
        LetterCause::Closed => LetterAbout::AccountClosed,
        LetterCause::Reopened => LetterAbout::AccountReopened,
    };
    let name: String = told.name.chars().filter(|c| !c.is_control()).collect();
    Letter { about, to, locale, link: None, place: format!("{name} ({})", told.account) }
}

/// Hands over what is due; how many letters that were.
pub async fn send_due(app: &App) -> Result<usize, StoreError> {
    let due = app.store.take_mail(AT_ONCE, LEASE_MS).await?;
    let count = due.len();
    for mail in due {
        if app.shutdown.stopping.is_cancelled() {
            // Its lease ends.
            break;
        }
        send_one(app, mail).await?;
    }
    Ok(count)
}

async fn send_one(app: &App, mail: DueMail) -> Result<(), StoreError> {
    let id: String = mail.id.iter().map(|byte| format!("{byte:02x}")).collect();
    let Some(letter) = app.people.opened(&mail.sealed) else {
        tracing::error!(mail = id, "a letter was sealed with secrets that are not here any more, and is given up");
        return app.store.end_mail(mail.id).await;
    };
    let (now, meter) = (app.world.now_ms(), &app.metrics.people);
    if app.people.post.was_handed_over(mail.id) {
        // The database did not hear of it then; the letter is not sent again.
        return ended(app, mail.id).await;
    }
    match app.people.post.send(&id, &letter, now).await {
        Ok(()) => {
            meter.letter("sent");
            app.people.post.handed_over(mail.id);
            ended(app, mail.id).await
        }
        Err(error @ (NotSent::Address | NotSent::Refused(_))) => {
            meter.letter("refused");
            tracing::warn!(mail = id, %error, "a letter cannot be sent and is given up");
            app.store.end_mail(mail.id).await
        }
        Err(NotSent::Later(why)) if now - mail.created_at > GIVEN_UP_MS => {
            meter.letter("given_up");
            tracing::error!(mail = id, why, "a letter could not be sent for a day and is given up");
            app.store.end_mail(mail.id).await
        }
        Err(NotSent::Later(why)) => {
            meter.letter("put_off");
            let doubled = FIRST_WAIT_MS.saturating_mul(1 << mail.tries.clamp(1, 10).saturating_sub(1));
            tracing::warn!(mail = id, why, tries = mail.tries, "a letter could not be sent and is tried again");
            app.store.put_mail_off(mail.id, now.saturating_add(doubled.min(LONGEST_WAIT_MS))).await
        }
    }
}

async fn ended(app: &App, mail: [u8; 16]) -> Result<(), StoreError> {
    app.store.end_mail(mail).await?;
    app.people.post.forget(mail);
    Ok(())
}
