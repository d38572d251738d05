//! Proving who somebody is: a password, and the code of a second factor where there is one. Whether
//! the e-mail is unknown, the password wrong or the person locked out, the answer and the work are
//! the same.

use super::verb::PersonRequest;
use crate::people::tokens::recovery_hash;
use crate::people::totp;
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use tollgate_store::{CredentialKind, PasswordHash, PersonRecord, StoredCredential, UsedCode, folded_email};
use tollgate_wire::error::Code;

/// Somebody who has proved who they are, and the code that is used up with what comes next.
pub struct Proved {
    pub person: PersonRecord,
    pub code: Option<UsedCode>,
}

pub fn failed() -> Refusal {
    Refusal::new(Code::SignInFailed, "E-mail, password or code is wrong.")
}

/// E-mail, password and code of a sign-in.
pub async fn by_password(asked: &PersonRequest, email: &str) -> Result<Proved, Refusal> {
    let found = asked.app.store.person_by_email(email).await?;
    prove(asked, email, found).await
}

/// The same for somebody who is known.
pub async fn again(asked: &PersonRequest, person: &PersonRecord) -> Result<Proved, Refusal> {
    prove(asked, &person.email, Some(person.clone())).await
}

async fn prove(asked: &PersonRequest, email: &str, found: Option<PersonRecord>) -> Result<Proved, Refusal> {
    let app = &asked.app;
    let begun = app.people.waits.begin(GuardedAct::SignIn, &folded_email(email), asked.address(), asked.now())?;
    let credentials = match &found {
        Some(person) => app.store.credentials(person.id).await?,
        None => Vec::new(),
    };
    let stored = password_of(&credentials);
    let compared = app.people.passwords.compare(asked.text("password")?, stored.as_ref()).await?;
    let good = |person: &PersonRecord| person.disabled_at.is_none() && person.verified_at.is_some();
    let Some(person) = found.filter(|person| compared.right && good(person)) else { return Err(failed()) };
    let code = second_factor(asked, &person, &credentials)?;
    if compared.outdated {
        let again = app.people.passwords.hash(asked.text("password")?, |salt| asked.fill(salt)).await?;
        app.store.rehash_password(person.id, again).await?;
    }
    begun.succeeded();
    Ok(Proved { person, code })
}

/// The password of somebody whose e-mail is to be verified.
pub async fn of_unverified(asked: &PersonRequest, person: &PersonRecord) -> Result<(), Refusal> {
    let app = &asked.app;
    let email = folded_email(&person.email);
    let begun = app.people.waits.begin(GuardedAct::SignIn, &email, asked.address(), asked.now())?;
    let stored = password_of(&app.store.credentials(person.id).await?);
    if !app.people.passwords.compare(asked.text("password")?, stored.as_ref()).await?.right {
        return Err(failed());
    }
    begun.succeeded();
    Ok(())
}

fn password_of(credentials: &[StoredCredential]) -> Option<PasswordHash> {
    let one = credentials.iter().find(|one| one.kind == CredentialKind::Password)?;
    Some(PasswordHash { secret: one.secret.clone(), parameters: one.parameters.clone() })
}

pub fn has_password(credentials: &[StoredCredential]) -> bool {
    password_of(credentials).is_some()
}

/// The code, if one is needed. It is used up by the change that follows, in one transaction with
/// it.
pub fn second_factor(
    asked: &PersonRequest,
    person: &PersonRecord,
    credentials: &[StoredCredential],
) -> Result<Option<UsedCode>, Refusal> {
    let Some(factor) = credentials.iter().find(|one| one.kind == CredentialKind::Totp) else { return Ok(None) };
    if let Some(code) = asked.may::<String>("recovery_code")? {
        let hash = recovery_hash(&code);
        let known = credentials.iter().any(|one| one.kind == CredentialKind::Recovery && one.secret == hash);
        return if known { Ok(Some(UsedCode::Recovery(hash))) } else { Err(failed()) };
    }
    let Some(code) = asked.may::<String>("code")? else {
        let text = "The password is right; the code of the second factor is missing: `code`, or `recovery_code`.";
        return Err(Refusal::about(Code::SecondFactorRequired, "code", text));
    };
    let secret = asked.app.people.open_totp(&person.id.to_string(), &factor.secret).ok_or_else(|| {
        tracing::error!(person = %person.id, "a second factor was sealed with secrets that are not here any more");
        failed()
    })?;
    let step = totp::step_of(&secret, &code, asked.now());
    // A code that was used is a wrong one; the store decides between two at once.
    let step = step.filter(|step| factor.used_at.is_none_or(|used| *step > used)).ok_or_else(failed)?;
    Ok(Some(UsedCode::Totp(step)))
}
