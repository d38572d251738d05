//! `/api/password`: changing a password, and getting a new one by mail.

use super::prove::{self, has_password, second_factor};
use super::sessions::{CODE, EMAIL, RECOVERY, TOKEN, done, new_cookie, session, signed_in};
use super::sign_up::{give_trial, own_account};
use super::verb::PersonVerb;
use super::{HOUR_MS, MailedToken, bad_token, letter, link, mail_token};
use crate::endpoints::admin::field::{FieldKind, VerbField, may, must};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row, no_schemas};
use crate::people::letter::LetterAbout;
use crate::people::passwords::{LONGEST, acceptable};
use crate::people::tokens::token_hash;
use crate::people::waits::GuardedAct;
use futures_util::FutureExt as _;
use tollgate_store::{AccountRole, Attribution, PersonRecord, TokenPurpose, folded_email};

pub const FAMILY: Family = Family { tag: "people: passwords", rows, schemas: no_schemas };

const RESET_MS: i64 = HOUR_MS;
const NEW: VerbField =
    must("new_password", FieldKind::Text(LONGEST), "Ten characters at least, none of the common ones");

fn rows() -> Vec<Row> {
    vec![
        CHANGE
            .post("/api/password", Access::Session, "Changes the password; all other sessions end")
            .gives(named("SignedIn")),
        FORGOT
            .post(
                "/api/password/forgot",
                Access::Public,
                "Mails a link for a new password, if the e-mail is somebody's",
            )
            .gives(named("Done")),
        RESET
            .post("/api/password/reset", Access::Public, "Sets a new password by the mailed token; all sessions end")
            .gives(named("Done")),
    ]
}

static CHANGE: PersonVerb = PersonVerb {
    fields: &[
        may("password", FieldKind::Text(LONGEST), "The present password; left out by whoever has none yet"),
        CODE,
        RECOVERY,
        NEW,
    ],
    answer: |asked| {
        async move {
            let (own, app) = (asked.person()?, &asked.app);
            let password = asked.text("new_password")?;
            acceptable("new_password", &password, &own.record.email)?;
            let code = if has_password(&app.store.credentials(own.id).await?) {
                prove::again(asked, &own.record).await?.code
            } else {
                own.must_be_strong()?;
                None
            };
            let hash = app.people.passwords.hash(password, |salt| asked.fill(salt)).await?;
            if !app.store.set_password(&own.record, hash, None, code).await? {
                return Err(prove::failed());
            }
            tell(asked, &own.record).await;
            let cookie = new_cookie(asked);
            app.store.begin_session(session(asked, &own.record, &cookie)?, None, &own.record).await?;
            signed_in(asked, &cookie).await
        }
        .boxed()
    },
};

static FORGOT: PersonVerb = PersonVerb {
    fields: &[EMAIL],
    answer: |asked| {
        async move {
            let mailed = MailedToken {
                purpose: TokenPurpose::Reset,
                about: LetterAbout::Reset,
                page: "reset-password",
                lives_ms: RESET_MS,
            };
            mail_token(asked, mailed, |person| person.disabled_at.is_none()).await
        }
        .boxed()
    },
};

static RESET: PersonVerb = PersonVerb {
    fields: &[TOKEN, NEW, CODE, RECOVERY],
    answer: |asked| {
        async move {
            let app = &asked.app;
            let begun = app.people.waits.begin(GuardedAct::Token, "", asked.address(), asked.now())?;
            let hash = token_hash(&asked.text("token")?);
            let person = app.store.token_owner(hash, TokenPurpose::Reset).await?;
            let person = person.filter(|person| person.disabled_at.is_none()).ok_or_else(bad_token)?;
            let password = asked.text("new_password")?;
            acceptable("new_password", &password, &person.email)?;
            // Whoever reads somebody's mail has not their telephone.
            let credentials = app.store.credentials(person.id).await?;
            let guess = app.people.waits.begin(
                GuardedAct::SignIn,
                &folded_email(&person.email),
                asked.address(),
                asked.now(),
            )?;
            let code = second_factor(asked, &person, &credentials)?;
            let password = app.people.passwords.hash(password, |salt| asked.fill(salt)).await?;
            if !app.store.set_password(&person, password, Some(hash), code).await? {
                return Err(bad_token());
            }
            if person.verified_at.is_none()
                && let Some(account) = own_account(asked, &person).await?
            {
                app.store.put_membership(account, person.id, AccountRole::Owner, signs(&person)).await?;
                give_trial(asked, &person, account, "by a new password").await?;
            }
            guess.succeeded();
            begun.succeeded();
            tell(asked, &person).await;
            Ok(done())
        }
        .boxed()
    },
};

/// The e-mail is theirs now, and so is the account they wished for.
fn signs(person: &PersonRecord) -> Attribution {
    Attribution::by(person.actor(), "signed up".to_owned())
}

/// The owner hears of it, whoever did it. The change stands also where the mail cannot be queued.
async fn tell(asked: &super::verb::PersonRequest, person: &tollgate_store::PersonRecord) {
    let app = &asked.app;
    let to = link(app, "sign-in", "");
    if let Some(mail) = letter(app, LetterAbout::PasswordChanged, &person.email, &person.locale, to) {
        match app.store.queue_mail(mail).await {
            Ok(()) => app.people.ring(),
            Err(error) => tracing::warn!(%error, "nobody is told that a password was changed"),
        }
    }
}
