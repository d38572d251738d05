//! `/api/sign-up`, `/api/email` and `/api/invites`: becoming a person, by oneself or invited. An
//! e-mail that is somebody's already gets the same answer for the same work; its owner gets mail.

use super::prove;
use super::sessions::{EMAIL, PASSWORD, TOKEN, VERIFY_MS, done, new_cookie, session, signed_in, somebody};
use super::verb::{PersonRequest, PersonVerb};
use super::{MailedToken, bad_token, letter, link, mail_token};
use crate::endpoints::admin::field::{FieldKind, VerbField, may};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row};
use crate::people::letter::LetterAbout;
use crate::people::passwords::{LONGEST, SHORTEST, acceptable};
use crate::people::tokens::{OneTimeToken, token_hash};
use crate::people::trial;
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use crate::settings::{IssuerSettings, SignUp};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tollgate_store::{
    AccountId, Attribution, Limits, NewAccount, NewMailToken, NewPerson, NewTrialGrant, PersonRecord, TokenPurpose,
    folded_email,
};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: sign-up", rows, schemas };

const NAME: VerbField = may("name", FieldKind::Text(100), "For people");
const LOCALE: VerbField = may("locale", FieldKind::Word(&["en", "zh"]), "The language of mail");

fn rows() -> Vec<Row> {
    vec![
        HOW.get("/api/sign-up", Access::Public, "Who may sign up, and what a password must be").gives(named("SignUp")),
        SIGN_UP
            .post("/api/sign-up", Access::Public, "Signs up; mails a link that verifies the e-mail")
            .gives(named("Done")),
        VERIFY
            .post("/api/email/verify", Access::Public, "Verifies an e-mail by the mailed token; makes the account")
            .gives(named("Done")),
        RESEND
            .post("/api/email/resend", Access::Public, "Mails the link once more, if the e-mail waits for it")
            .gives(named("Done")),
        ACCEPT
            .post("/api/invites/accept", Access::Public, "Takes an invite; somebody new chooses a password")
            .gives(named("Done")),
    ]
}

fn schemas() -> Value {
    json!({
        "SignUp": { "type": "object", "required": ["sign_up", "password_characters"], "properties": {
            "sign_up": { "enum": ["open", "invite", "closed"] },
            "password_characters": { "type": "integer", "description": "At least" },
            "issuers": { "type": "array", "items": { "type": "object" }, "description": "By which people sign in too" },
            "passkeys": { "type": "boolean", "description": "People sign in by passkeys" },
        } },
    })
}

static HOW: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let sign_up = asked.app.settings.people.sign_up.word();
            let issuer =
                |one: &IssuerSettings| json!({ "name": one.name, "label": one.label, "sign_up": one.sign_up.word() });
            let issuers: Vec<Value> = asked.app.people.issuers.all().map(issuer).collect();
            let passkeys = asked.app.people.passkeys.settings().is_some();
            Ok(json!({
                "sign_up": sign_up, "password_characters": SHORTEST, "issuers": issuers, "passkeys": passkeys,
            })
            .into())
        }
        .boxed()
    },
};

static SIGN_UP: PersonVerb = PersonVerb {
    fields: &[
        EMAIL,
        PASSWORD,
        NAME,
        LOCALE,
        may("account_name", FieldKind::Text(100), "The name of the account that is made; the e-mail unless said"),
    ],
    answer: |asked| {
        async move {
            let app = &asked.app;
            match app.settings.people.sign_up {
                SignUp::Open => {}
                SignUp::Invite => return Err(closed("People sign up by invite here: POST /api/invites/accept.")),
                SignUp::Closed => return Err(closed("Nobody signs up by themselves here; ask the operator.")),
            }
            let email = super::email("email", &asked.text("email")?)?;
            let password = asked.text("password")?;
            acceptable("password", &password, &email)?;
            app.people.waits.begin(GuardedAct::Mail, &folded_email(&email), asked.address(), asked.now())?;
            super::room_for_mail(app).await?;
            let hash = app.people.passwords.hash(password, |salt| asked.fill(salt)).await?;
            let locale: String = asked.may("locale")?.unwrap_or_else(|| "en".to_owned());
            let token = OneTimeToken::new(|bytes| asked.fill(bytes));
            let to = link(app, "verify-email", &token.text);
            let expires_at = asked.now() + VERIFY_MS;
            let wished = asked.may("account_name")?.unwrap_or_else(|| email.clone());
            let new = NewPerson {
                password: Some(hash),
                wished_account: Some(wished),
                token: Some(NewMailToken { hash: token.hash, purpose: TokenPurpose::Verify, expires_at }),
                mail: letter(app, LetterAbout::Verify, &email, &locale, to),
                ..somebody(email.clone(), asked.may("name")?.unwrap_or_default(), locale, false)
            };
            let signs = Attribution::by(email.clone(), "signed up".to_owned());
            if app.store.create_person(new, signs).await?.is_none() {
                known_already(asked, &email).await?;
            }
            app.people.ring();
            Ok(done())
        }
        .boxed()
    },
};

fn closed(text: &str) -> Refusal {
    Refusal::new(Code::SignUpClosed, text)
}

/// The owner of the e-mail hears of it, and nobody else does.
async fn known_already(asked: &PersonRequest, email: &str) -> Result<(), Refusal> {
    let app = &asked.app;
    let Some(person) = app.store.person_by_email(email).await? else { return Ok(()) };
    let to = link(app, "sign-in", "");
    if let Some(mail) = letter(app, LetterAbout::KnownAlready, &person.email, &person.locale, to) {
        app.store.queue_mail(mail).await?;
    }
    Ok(())
}

/// The password too: whoever opens the link need not be the one who signed up with somebody else's
/// e-mail and a password of their own.
static VERIFY: PersonVerb = PersonVerb {
    fields: &[TOKEN, PASSWORD],
    answer: |asked| {
        async move {
            let app = &asked.app;
            let begun = app.people.waits.begin(GuardedAct::Token, "", asked.address(), asked.now())?;
            let hash = token_hash(&asked.text("token")?);
            let person = app.store.token_owner(hash, TokenPurpose::Verify).await?;
            let person = person.filter(|person| person.disabled_at.is_none()).ok_or_else(bad_token)?;
            prove::of_unverified(asked, &person).await?;
            let account = own_account(asked, &person).await?;
            if !app.store.verify_email(hash, &person, account, trial_for(asked, &person, account)).await? {
                return Err(bad_token());
            }
            begun.succeeded();
            credit_trial(asked, &person).await;
            Ok(done())
        }
        .boxed()
    },
};

/// What they get for a start, where the operator gives any.
fn trial_for(asked: &PersonRequest, person: &PersonRecord, account: Option<AccountId>) -> Option<NewTrialGrant> {
    trial::grant(asked.app.settings.people.trial.as_ref(), &person.email, asked.address(), account, asked.now())
}

/// The same where the e-mail was verified otherwise than by its own token.
pub(super) async fn give_trial(
    asked: &PersonRequest,
    person: &PersonRecord,
    account: AccountId,
    how: &str,
) -> Result<(), Refusal> {
    if let Some(grant) = trial_for(asked, person, Some(account)) {
        asked.app.store.grant_trial(grant, person, how).await?;
        credit_trial(asked, person).await;
    }
    Ok(())
}

/// Puts it into the ledger. What is not done here is done by the next round.
async fn credit_trial(asked: &PersonRequest, person: &PersonRecord) {
    if let Err(error) = asked.app.store.credit_trial_of(person.id).await {
        tracing::warn!(%error, person = %person.id, "trial credit is given with the next round");
    }
}

/// The account that somebody wished for. Its id follows from theirs, so that it is made once.
pub(super) async fn own_account(asked: &PersonRequest, person: &PersonRecord) -> Result<Option<AccountId>, Refusal> {
    let Some(name) = person.wished_account.clone() else { return Ok(None) };
    let id = Some(AccountId(person.id.0));
    let new = NewAccount { id, name, groups: Vec::new(), limits: Limits::default() };
    Ok(Some(asked.app.store.create_account(new).await?.id))
}

static RESEND: PersonVerb = PersonVerb {
    fields: &[EMAIL],
    answer: |asked| {
        async move {
            let mailed = MailedToken {
                purpose: TokenPurpose::Verify,
                about: LetterAbout::Verify,
                page: "verify-email",
                lives_ms: VERIFY_MS,
            };
            mail_token(asked, mailed, |person| person.disabled_at.is_none() && person.verified_at.is_none()).await
        }
        .boxed()
    },
};

static ACCEPT: PersonVerb = PersonVerb {
    fields: &[
        TOKEN,
        may("password", FieldKind::Text(LONGEST), "Of somebody new: the password they want"),
        NAME,
        LOCALE,
    ],
    answer: |asked| {
        async move {
            let app = &asked.app;
            let begun = app.people.waits.begin(GuardedAct::Token, "", asked.address(), asked.now())?;
            let hash = token_hash(&asked.text("token")?);
            let invite = app.store.invite_by_hash(hash).await?.ok_or_else(bad_token)?;
            let known = app.store.person_by_email(&invite.email).await?;
            if let Some(person) = known.as_ref().filter(|person| person.verified_at.is_some()) {
                // Their own password and second factor stand between the mail and what they may do.
                if person.disabled_at.is_some() || !app.store.accept_invite(hash, &invite, person, None).await? {
                    return Err(bad_token());
                }
                begun.succeeded();
                return Ok(done());
            }
            let password: String = asked.get("password")?;
            acceptable("password", &password, &invite.email)?;
            let password = app.people.passwords.hash(password, |salt| asked.fill(salt)).await?;
            if let Some(person) = known {
                // Whoever signed up with this e-mail has not shown that it is theirs; this one has.
                let free = person.disabled_at.is_none();
                if !free || !app.store.accept_invite(hash, &invite, &person, Some(password)).await? {
                    return Err(bad_token());
                }
                begun.succeeded();
                return Ok(done());
            }
            let locale: String = asked.may("locale")?.unwrap_or_else(|| "en".to_owned());
            let name: String = asked.may("name")?.unwrap_or_default();
            let new = NewPerson { password: Some(password), ..somebody(invite.email.clone(), name, locale, true) };
            let person = app.store.accept_invite_as(hash, &invite, new).await?.ok_or_else(bad_token)?;
            begun.succeeded();
            let cookie = new_cookie(asked);
            app.store.begin_session(session(asked, &person, &cookie)?, None, &person).await?;
            let mut answer = signed_in(asked, &cookie).await?;
            answer.value["done"] = json!(true);
            Ok(answer)
        }
        .boxed()
    },
};
