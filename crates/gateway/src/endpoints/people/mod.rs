//! What people do by a session: signing in and out, passwords, passkeys, second factors, members of
//! an account. Every endpoint is a verb (`verb.rs`): fields, and a function that answers.

pub mod members;
pub mod oidc;
pub mod passkeys;
pub mod passwords;
pub mod playground;
mod prove;
pub mod sessions;
pub mod sign_up;
pub mod totp;
mod verb;
pub mod view;

use self::verb::{PersonAnswer, PersonRequest};
use crate::app::App;
use crate::people::MOST_MAIL;
use crate::people::letter::{Letter, LetterAbout};
use crate::people::post::is_address;
use crate::people::tokens::OneTimeToken;
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use std::sync::Arc;
use tollgate_store::{NewMailToken, PersonRecord, TokenPurpose, folded_email};
use tollgate_wire::error::Code;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A page of ours, with a token behind the `#`: that part is in no log of a server or proxy.
pub(super) fn link(app: &App, page: &str, token: &str) -> Option<String> {
    let base = app.settings.reached_at()?;
    Some(if token.is_empty() { format!("{base}/{page}") } else { format!("{base}/{page}#token={token}") })
}

/// A letter, sealed for the outbox; `None` where there is no mail.
pub(super) fn letter(app: &App, about: LetterAbout, to: &str, locale: &str, link: Option<String>) -> Option<Vec<u8>> {
    let letter = Letter { about, to: to.to_owned(), locale: locale.to_owned(), link, place: String::new() };
    app.people.sealed(&letter, |bytes| app.world.fill(bytes))
}

/// An e-mail that mail can go to.
pub(super) fn email(field: &str, text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    if is_address(text) {
        return Ok(text.to_owned());
    }
    Err(Refusal::about(Code::InvalidParameter, field, format!("`{field}` is an e-mail address.")))
}

/// Room for one more letter.
pub(super) async fn room_for_mail(app: &Arc<App>) -> Result<(), Refusal> {
    if app.people.post.sends() && app.store.mail_waiting().await? >= MOST_MAIL {
        return Err(Refusal::new(Code::Overloaded, "Too much mail waits to be sent.").after(60));
    }
    Ok(())
}

/// A one-time token that is mailed.
struct MailedToken {
    purpose: TokenPurpose,
    about: LetterAbout,
    /// The page of the console that its link opens.
    page: &'static str,
    lives_ms: i64,
}

/// Mails a token to the e-mail of a request, if it belongs to somebody who may have one. The answer
/// is the same if not.
async fn mail_token(
    asked: &PersonRequest,
    mailed: MailedToken,
    may: impl Fn(&PersonRecord) -> bool,
) -> Result<PersonAnswer, Refusal> {
    let app = &asked.app;
    let email = email("email", &asked.text("email")?)?;
    app.people.waits.begin(GuardedAct::Mail, &folded_email(&email), asked.address(), asked.now())?;
    room_for_mail(app).await?;
    let token = OneTimeToken::new(|bytes| asked.fill(bytes));
    if let Some(person) = app.store.person_by_email(&email).await?.filter(may) {
        let to = link(app, mailed.page, &token.text);
        if let Some(mail) = letter(app, mailed.about, &person.email, &person.locale, to) {
            let expires_at = asked.now() + mailed.lives_ms;
            let token = NewMailToken { hash: token.hash, purpose: mailed.purpose, expires_at };
            app.store.mail_token(token, person.id, mail).await?;
            app.people.ring();
        }
    }
    Ok(sessions::done())
}

/// What a try to sign in came to, for whoever counts them.
pub(super) fn ending<T>(outcome: &Result<T, Refusal>) -> &'static str {
    match outcome.as_ref().map_err(|refusal| refusal.code) {
        Ok(_) => "passed",
        Err(Code::SignInFailed | Code::TokenInvalid) => "failed",
        Err(Code::SecondFactorRequired) => "second_factor",
        Err(Code::RateLimitExceeded) => "waits",
        Err(code) if code.status() >= 500 => "unavailable",
        Err(_) => "refused",
    }
}

/// Whatever was wrong with it.
fn bad_token() -> Refusal {
    Refusal::about(Code::TokenInvalid, "token", "`token` is unknown, was used, or its time is over.")
}
