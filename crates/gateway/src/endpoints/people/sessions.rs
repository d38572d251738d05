//! `/api/session` and `/api/sessions`: signing in and out, who is signed in, and where.

use super::prove::{self, Proved, failed};
use super::verb::{PersonAnswer, PersonRequest, PersonVerb};
use super::{DAY_MS, bad_token, playground};
use crate::endpoints::admin::field::{FieldKind, VerbField, may, must};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row};
use crate::people::passwords::{LONGEST, acceptable};
use crate::people::tokens::token_hash;
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use crate::who::person::{self, NewCookie};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tollgate_store::{Attribution, FoundSession, NewPerson, NewSession, PersonRecord, SessionId, TokenPurpose};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: sessions", rows, schemas };

pub(super) const EMAIL: VerbField = must("email", FieldKind::Text(254), "The e-mail of the person");
pub(super) const PASSWORD: VerbField = must("password", FieldKind::Text(LONGEST), "The password");
pub(super) const CODE: VerbField = may("code", FieldKind::Text(20), "Six digits of the second factor");
pub(super) const RECOVERY: VerbField = may("recovery_code", FieldKind::Text(40), "One of the recovery codes instead");
pub(super) const TOKEN: VerbField = must("token", FieldKind::Text(200), "The one-time token");

fn rows() -> Vec<Row> {
    let (one, all) = ("/api/session", "/api/sessions");
    vec![
        SIGN_IN.post(one, Access::Public, "Signs in; sets the cookie of a new session").gives(named("SignedIn")),
        SHOW.get(one, Access::Session, "Who is signed in, with roles and accounts").gives(named("SignedIn")),
        SIGN_OUT.delete(one, Access::Session, "Signs out").gives(named("Done")),
        LINK.post("/api/session/link", Access::Public, "Signs in with a one-time link").gives(named("SignedIn")),
        STEP_UP
            .post("/api/session/step-up", Access::Session, "Proves again who is signed in, for ten minutes")
            .gives(named("SignedIn")),
        LIST.get(all, Access::Session, "Where the person is signed in").gives(named("List")),
        END_OTHERS.delete(all, Access::Session, "Ends all sessions but this one").gives(named("Done")),
        END.delete("/api/sessions/{session}", Access::Session, "Ends one session").gives(named("Done")),
        FIRST
            .post("/api/first-operator", Access::Public, "The first operator, by the token that `serve` printed")
            .gives(named("SignedIn")),
    ]
}

fn schemas() -> Value {
    json!({
        "SignedIn": {
            "type": "object", "required": ["object", "person", "session", "strong"],
            "properties": {
                "object": { "const": "session" },
                "person": { "type": "object", "description": "Id, e-mail, house role and memberships" },
                "session": { "type": "object", "description": "Id and times; not what opens it" },
                "strong": { "type": "boolean", "description": "Proved within the last ten minutes" },
            },
        },
        "Done": { "type": "object", "required": ["done"], "properties": { "done": { "const": true } } },
    })
}

pub(super) fn done() -> PersonAnswer {
    json!({ "done": true }).into()
}

static SIGN_IN: PersonVerb = PersonVerb {
    fields: &[EMAIL, PASSWORD, CODE, RECOVERY],
    answer: |asked| {
        async move {
            let answer = by_password(asked).await;
            asked.app.metrics.people.signed_in("password", super::ending(&answer));
            answer
        }
        .boxed()
    },
};

async fn by_password(asked: &PersonRequest) -> Result<PersonAnswer, Refusal> {
    let Proved { person, code } = prove::by_password(asked, &asked.text("email")?).await?;
    let cookie = new_cookie(asked);
    let begun = asked.app.store.begin_session(session(asked, &person, &cookie)?, code, &person).await?;
    if !begun {
        // The code was used a moment ago.
        return Err(failed());
    }
    signed_in(asked, &cookie).await
}

static LINK: PersonVerb = PersonVerb {
    fields: &[TOKEN],
    answer: |asked| {
        async move {
            let answer = by_link(asked).await;
            asked.app.metrics.people.signed_in("link", super::ending(&answer));
            answer
        }
        .boxed()
    },
};

async fn by_link(asked: &PersonRequest) -> Result<PersonAnswer, Refusal> {
    let app = &asked.app;
    let begun = app.people.waits.begin(GuardedAct::Token, "", asked.address(), asked.now())?;
    let hash = token_hash(&asked.text("token")?);
    let person = app.store.token_owner(hash, TokenPurpose::SignIn).await?;
    let person = person.filter(|person| person.disabled_at.is_none()).ok_or_else(bad_token)?;
    let cookie = new_cookie(asked);
    let new = session(asked, &person, &cookie)?;
    if !app.store.begin_session_by_token(new, hash, &person).await? {
        return Err(bad_token());
    }
    begun.succeeded();
    signed_in(asked, &cookie).await
}

static SHOW: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let person = asked.person()?;
            shown(asked, person).await.map(PersonAnswer::from)
        }
        .boxed()
    },
};

static SIGN_OUT: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let person = asked.person()?;
            asked.app.store.end_session(person.id, person.session.id, person.done()).await?;
            playground::look_at_keys(asked).await;
            let cookie = person::no_cookie(&asked.app.settings.people);
            Ok(PersonAnswer::with_cookie(json!({ "done": true }), cookie))
        }
        .boxed()
    },
};

static STEP_UP: PersonVerb = PersonVerb {
    fields: &[PASSWORD, CODE, RECOVERY],
    answer: |asked| {
        async move {
            let own = asked.person()?;
            let Proved { person, code } = prove::again(asked, &own.record).await?;
            let cookie = new_cookie(asked);
            if !asked.app.store.strengthen_session(own.hash, cookie.hash, person.id, code).await? {
                return Err(failed());
            }
            signed_in(asked, &cookie).await
        }
        .boxed()
    },
};

static LIST: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let own = asked.person()?;
            let sessions = asked.app.store.sessions(own.id).await?;
            let shown = |one: &tollgate_store::SessionRecord| {
                let mut shown = json!(one);
                shown["current"] = json!(one.id == own.session.id);
                shown
            };
            let data: Vec<Value> = sessions.iter().map(shown).collect();
            Ok(json!({ "object": "list", "data": data }).into())
        }
        .boxed()
    },
};

static END: PersonVerb = PersonVerb {
    fields: &[must("session", FieldKind::Id("sess_"), "The session")],
    answer: |asked| {
        async move {
            let own = asked.person()?;
            let missing = || Refusal::about(Code::NotFound, "session", "You have no such session.");
            let id: SessionId = asked.text("session")?.parse().map_err(|_| missing())?;
            if !asked.app.store.end_session(own.id, id, own.done()).await? {
                return Err(missing());
            }
            playground::look_at_keys(asked).await;
            Ok(done())
        }
        .boxed()
    },
};

static END_OTHERS: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let own = asked.person()?;
            asked.app.store.end_sessions(own.id, Some(own.session.id), own.done()).await?;
            playground::look_at_keys(asked).await;
            Ok(done())
        }
        .boxed()
    },
};

static FIRST: PersonVerb = PersonVerb {
    fields: &[TOKEN, EMAIL, PASSWORD, may("name", FieldKind::Text(100), "For people")],
    answer: |asked| {
        async move {
            let app = &asked.app;
            let begun = app.people.waits.begin(GuardedAct::Token, "", asked.address(), asked.now())?;
            let email = super::email("email", &asked.text("email")?)?;
            let password = asked.text("password")?;
            acceptable("password", &password, &email)?;
            let hash = token_hash(&asked.text("token")?);
            let password = app.people.passwords.hash(password, |salt| asked.fill(salt)).await?;
            let new = NewPerson {
                password: Some(password),
                ..somebody(email.clone(), asked.may("name")?.unwrap_or_default(), String::new(), true)
            };
            let done = Attribution::by(email, "the first operator, by the printed token");
            let person = app.store.create_first_operator(hash, new, done).await?.ok_or_else(bad_token)?;
            begun.succeeded();
            tracing::warn!(person = %person.id, "the first operator");
            let cookie = new_cookie(asked);
            app.store.begin_session(session(asked, &person, &cookie)?, None, &person).await?;
            signed_in(asked, &cookie).await
        }
        .boxed()
    },
};

/// A person without anything yet.
pub(super) fn somebody(email: String, name: String, locale: String, verified: bool) -> NewPerson {
    NewPerson {
        email,
        name,
        locale,
        time_zone: String::new(),
        verified,
        wished_account: None,
        password: None,
        house_role: None,
        membership: None,
        token: None,
        mail: None,
    }
}

pub(super) fn new_cookie(asked: &PersonRequest) -> NewCookie {
    NewCookie::new(|bytes| asked.fill(bytes))
}

/// A session that begins; the one whose cookie was sent along ends.
/// Each leaves a row for good, so there is an end to them as to any other change.
pub(super) fn session(asked: &PersonRequest, person: &PersonRecord, cookie: &NewCookie) -> Result<NewSession, Refusal> {
    asked.app.people.waits.begin(GuardedAct::Change, &person.id.to_string(), asked.address(), asked.now())?;
    let replaces = person::presented(&asked.app.settings.people, &asked.parts.headers);
    let (address, agent) = (asked.address().to_string(), asked.agent());
    Ok(NewSession { hash: cookie.hash, person: person.id, address, agent, replaces, strong: true, issuer_role: None })
}

/// What is known of the session that a new cookie opens.
pub(super) async fn signed_in(asked: &PersonRequest, cookie: &NewCookie) -> Result<PersonAnswer, Refusal> {
    let found = asked.app.store.session(cookie.hash).await?.ok_or_else(failed)?;
    let value = record(asked, &found, true).await?;
    Ok(PersonAnswer::with_cookie(value, cookie.header(&asked.app.settings.people)))
}

async fn shown(asked: &PersonRequest, own: &person::Person) -> Result<Value, Refusal> {
    let (session, person, viewing) = (own.session.clone(), own.record.clone(), own.viewing);
    record(asked, &FoundSession { session, person, viewing }, own.strong).await
}

async fn record(asked: &PersonRequest, found: &FoundSession, strong: bool) -> Result<Value, Refusal> {
    let FoundSession { session, person, viewing } = found;
    let mut accounts = Vec::new();
    // Names of the first ones: whoever is in more chooses by id.
    for one in person.memberships.iter().take(50) {
        let account = asked.app.store.account(one.account).await?;
        accounts.push(json!({
            "account_id": one.account, "role": one.role, "name": account.map(|account| account.name),
        }));
    }
    let credentials = asked.app.store.credentials(person.id).await?;
    let has = |kind| credentials.iter().any(|one| one.kind == kind);
    let rp_id = asked.app.people.passkeys.rp_id();
    let passkeys = asked.app.store.passkeys(person.id).await?;
    Ok(json!({
        "object": "session",
        "person": person,
        "accounts": accounts,
        "session": session,
        "viewing": viewing,
        "strong": strong,
        "password": has(tollgate_store::CredentialKind::Password),
        "totp": has(tollgate_store::CredentialKind::Totp),
        "passkeys": passkeys.iter().filter(|one| one.rp_id == rp_id).count(),
        "sign_up": asked.app.settings.people.sign_up.word(),
    }))
}

/// How long links that are mailed live.
pub(super) const VERIFY_MS: i64 = DAY_MS;
