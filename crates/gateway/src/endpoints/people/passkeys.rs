//! `/api/session/passkeys`: signing in by a passkey, proving again by one, adding and removing
//! them.
//!
//! Each ceremony has two requests: the first gives what the browser needs, with a sealed cookie;
//! the second takes what the browser made of it. Signing in asks for no e-mail, so its first answer
//! is the same for everybody, and nothing of it is stored.

use super::prove::failed;
use super::sessions::{self, done, new_cookie, signed_in};
use super::verb::{PersonAnswer, PersonRequest, PersonVerb};
use super::{letter, link, room_for_mail};
use crate::endpoints::admin::field::{FieldKind, VerbField, must};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row};
use crate::people::letter::LetterAbout;
use crate::people::passkeys::{
    ALGORITHMS, CEREMONY_MS, MadeCredential, PasskeyCeremony, PasskeyFault, PasskeyGoal, ShownCredential, ShownProof,
};
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use crate::settings::PasskeySettings;
use crate::who::person;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tollgate_store::{
    AddedPasskey, MOST_PASSKEYS, PasskeyId, PasskeyRecord, PasskeyUse, PersonId, PersonRecord, folded_email,
};
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: passkeys", rows, schemas };

const PASSKEY: VerbField = must("passkey", FieldKind::Id("pkey_"), "The passkey");
const NAME: VerbField = must("name", FieldKind::Text(60), "What its person calls it");
const MADE: VerbField =
    must("credential", FieldKind::Shape("MadePasskey"), "What `navigator.credentials.create` gave, as JSON");
const SHOWN: VerbField =
    must("credential", FieldKind::Shape("ShownPasskey"), "What `navigator.credentials.get` gave, as JSON");

fn rows() -> Vec<Row> {
    let (all, one) = ("/api/session/passkeys", "/api/session/passkeys/{passkey}");
    let options = || named("PasskeyOptions");
    vec![
        START_SIGN_IN
            .post("/api/session/passkeys/sign-in/start", Access::Public, "What a browser needs to sign in by a passkey")
            .gives(options()),
        SIGN_IN
            .post("/api/session/passkeys/sign-in", Access::Public, "Signs in by a passkey; counts as both factors")
            .gives(named("SignedIn")),
        START_STEP_UP
            .post("/api/session/passkeys/step-up/start", Access::Session, "The same, to prove again who is signed in")
            .gives(options()),
        STEP_UP
            .post("/api/session/passkeys/step-up", Access::Session, "Proves again who is signed in, for ten minutes")
            .gives(named("SignedIn")),
        LIST.get(all, Access::Session, "The passkeys of the person").gives(named("PasskeyList")),
        START_ADD
            .post("/api/session/passkeys/start", Access::Session, "What a browser needs to make a passkey")
            .gives(options()),
        ADD.post(all, Access::Session, "Adds the passkey that it made").gives(named("Passkey")),
        RENAME.patch(one, Access::Session, "Gives a passkey another name").gives(named("Done")),
        REMOVE.delete(one, Access::Session, "Removes a passkey; a way in must be left").gives(named("Done")),
    ]
}

fn schemas() -> Value {
    let base64url = |about: &str| json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]*$", "description": about });
    let credential = |response: Value, required: Value| {
        json!({ "type": "object", "required": ["id", "rawId", "type", "response"], "properties": {
            "id": base64url("16 to 1023 bytes"),
            "rawId": base64url("The same"),
            "type": { "const": "public-key" },
            "response": { "type": "object", "required": required, "properties": response },
        } })
    };
    let client = || base64url("What the browser says of the page");
    let time = || json!({ "type": ["integer", "null"] });
    json!({
        "MadePasskey": credential(
            json!({
                "clientDataJSON": client(),
                "attestationObject": base64url("With the public key; its statement is not looked at"),
                "transports": { "type": "array", "items": { "type": "string" } },
            }),
            json!(["clientDataJSON", "attestationObject"]),
        ),
        "ShownPasskey": credential(
            json!({
                "clientDataJSON": client(),
                "authenticatorData": base64url("What the authenticator says"),
                "signature": base64url("Of both"),
                "userHandle": { "type": ["string", "null"], "description": "Whose it is; needed to sign in" },
            }),
            json!(["clientDataJSON", "authenticatorData", "signature"]),
        ),
        "PasskeyOptions": { "type": "object", "required": ["object", "publicKey", "expires_at_ms"], "properties": {
            "object": { "const": "passkey_options" },
            "publicKey": { "type": "object", "required": ["challenge"], "description": "For \
                `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`" },
            "expires_at_ms": { "type": "integer" },
        } },
        "Passkey": {
            "type": "object",
            "required": ["passkey_id", "name", "transports", "backup_eligible", "backed_up", "created_at_ms", "usable"],
            "properties": {
                "object": { "const": "passkey" },
                "passkey_id": { "type": "string" },
                "name": { "type": "string" },
                "rp_id": { "type": "string", "description": "The domain it was made for" },
                "usable": { "type": "boolean", "description": "It signs in here: it is of our domain" },
                "transports": { "type": "array", "items": { "type": "string" } },
                "backup_eligible": { "type": "boolean", "description": "It may be on several devices" },
                "backed_up": { "type": "boolean", "description": "It was, when it was last shown" },
                "created_at_ms": { "type": "integer" },
                "used_at_ms": time(),
                "suspected_at_ms": { "type": ["integer", "null"], "description": "When its counter first went back" },
            },
        },
        "PasskeyList": { "type": "object", "required": ["object", "data"], "properties": {
            "object": { "const": "list" },
            "data": { "type": "array", "maxItems": MOST_PASSKEYS, "items": named("Passkey") },
        } },
    })
}

fn here(asked: &PersonRequest) -> Result<&PasskeySettings, Refusal> {
    let none = || Refusal::new(Code::NotFound, "Nobody signs in by a passkey here: [people.passkeys] is not set.");
    asked.app.people.passkeys.settings().ok_or_else(none)
}

/// What a browser needs, and the cookie that belongs to it.
fn begun(asked: &PersonRequest, goal: PasskeyGoal, options: Value) -> Result<PersonAnswer, Refusal> {
    let (app, now) = (&asked.app, asked.now());
    let ceremony = PasskeyCeremony::new(goal, now, |bytes| asked.fill(bytes));
    let mut options = options;
    options["challenge"] = json!(ceremony.challenge);
    options["timeout"] = json!(CEREMONY_MS);
    let sealed = app.people.passkeys.sealed(&ceremony, |nonce| asked.fill(nonce));
    let sealed = sealed.ok_or_else(|| Refusal::new(Code::Internal, "The ceremony cannot be sealed."))?;
    let cookie = person::set_ceremony(&app.settings.people, &sealed, CEREMONY_MS / 1_000);
    let value = json!({ "object": "passkey_options", "publicKey": options, "expires_at_ms": now + CEREMONY_MS });
    Ok(PersonAnswer::with_cookie(value, cookie))
}

fn ceremony(asked: &PersonRequest, goal: PasskeyGoal) -> Result<PasskeyCeremony, Refusal> {
    let app = &asked.app;
    let cookie = person::ceremony_cookie(&app.settings.people, &asked.parts.headers);
    cookie.and_then(|cookie| app.people.passkeys.opened(cookie, goal, asked.now())).ok_or_else(no_ceremony)
}

fn no_ceremony() -> Refusal {
    let text = "This browser did not begin this, or more than five minutes ago, or it has ended; begin again.";
    Refusal::about(Code::TokenInvalid, "credential", text)
}

fn refused(code: Code, fault: &PasskeyFault) -> Refusal {
    Refusal::about(code, fault.field, format!("The passkey is not accepted, `{}`: {}.", fault.field, fault.why))
}

/// Whether it is unknown, somebody else's, of somebody who is locked out, or has not signed.
fn unknown() -> Refusal {
    Refusal::about(Code::SignInFailed, "credential", "This passkey signs nobody in here.")
}

fn named_in_options(all: &[PasskeyRecord], rp_id: &str) -> Vec<Value> {
    let one = |one: &PasskeyRecord| {
        let id = BASE64_URL_SAFE_NO_PAD.encode(&one.credential_id);
        json!({ "type": "public-key", "id": id, "transports": one.transports })
    };
    all.iter().filter(|one| one.rp_id == rp_id).map(one).collect()
}

static START_SIGN_IN: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let options = json!({ "rpId": here(asked)?.rp_id, "allowCredentials": [], "userVerification": "required" });
            begun(asked, PasskeyGoal::SignIn, options)
        }
        .boxed()
    },
};

static SIGN_IN: PersonVerb = PersonVerb {
    fields: &[SHOWN],
    answer: |asked| {
        async move {
            let answer = by_passkey(asked).await;
            asked.app.metrics.people.signed_in("passkey", super::ending(&answer));
            answer
        }
        .boxed()
    },
};

async fn by_passkey(asked: &PersonRequest) -> Result<PersonAnswer, Refusal> {
    let (app, _) = (&asked.app, here(asked)?);
    let given: ShownCredential = asked.get("credential")?;
    let subject = format!("passkey {}", given.id);
    let guess = app.people.waits.begin(GuardedAct::SignIn, &subject, asked.address(), asked.now())?;
    let ceremony = ceremony(asked, PasskeyGoal::SignIn)?;
    let (proof, passkey) = shown(asked, &ceremony, &given, None).await?;
    let person = app.store.person(passkey.person).await?;
    let person = person.filter(|one| one.disabled_at.is_none() && one.verified_at.is_some()).ok_or_else(unknown)?;
    let cookie = new_cookie(asked);
    let new = sessions::session(asked, &person, &cookie)?;
    let used = proof.used(&passkey);
    let outcome = app.store.begin_session_by_passkey(new, used, ceremony.used(), &person).await?;
    ended(asked, outcome, &passkey, &person).await?;
    guess.succeeded();
    let answer = signed_in(asked, &cookie).await?;
    Ok(answer.and_cookie(person::set_ceremony(&app.settings.people, "", 0)))
}

/// A passkey that was shown, of this person if there is one already.
async fn shown(
    asked: &PersonRequest,
    ceremony: &PasskeyCeremony,
    given: &ShownCredential,
    of: Option<PersonId>,
) -> Result<(ShownProof, PasskeyRecord), Refusal> {
    let app = &asked.app;
    let proof = app.people.passkeys.shown(ceremony, given).map_err(|fault| refused(Code::SignInFailed, &fault))?;
    let passkey = app.store.passkey_by_credential(&proof.credential_id).await?;
    let own = |passkey: &PasskeyRecord| {
        let theirs = of.is_none_or(|person| passkey.person == person);
        theirs && passkey.rp_id == app.people.passkeys.rp_id() && proof.is_of(passkey, of.is_none())
    };
    let passkey = passkey.filter(own).ok_or_else(unknown)?;
    Ok((proof, passkey))
}

async fn ended(
    asked: &PersonRequest,
    outcome: PasskeyUse,
    passkey: &PasskeyRecord,
    person: &PersonRecord,
) -> Result<(), Refusal> {
    match outcome {
        PasskeyUse::Done => Ok(()),
        PasskeyUse::WayUsed => Err(no_ceremony()),
        PasskeyUse::NoSession => Err(failed()),
        PasskeyUse::CounterBack => {
            if asked.app.store.suspect_passkey(person, passkey.id).await? {
                tracing::warn!(person = %person.id, passkey = %passkey.id, "the counter of a passkey went back: is there a copy of it?");
            }
            let text = "The passkey is not accepted: its counter went back, as that of a copy does. \
                        Try again; if that does not help, remove it.";
            Err(Refusal::about(Code::SignInFailed, "credential.response.authenticatorData", text))
        }
    }
}

static START_STEP_UP: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let (own, settings) = (asked.person()?, here(asked)?);
            let all = named_in_options(&asked.app.store.passkeys(own.id).await?, &settings.rp_id);
            if all.is_empty() {
                return Err(Refusal::new(Code::Conflict, "You have no passkey here."));
            }
            let options = json!({ "rpId": settings.rp_id, "allowCredentials": all, "userVerification": "required" });
            begun(asked, PasskeyGoal::StepUp(own.session.id), options)
        }
        .boxed()
    },
};

static STEP_UP: PersonVerb = PersonVerb {
    fields: &[SHOWN],
    answer: |asked| {
        async move {
            let (own, app, _) = (asked.person()?, &asked.app, here(asked)?);
            let given: ShownCredential = asked.get("credential")?;
            let email = folded_email(&own.record.email);
            let guess = app.people.waits.begin(GuardedAct::SignIn, &email, asked.address(), asked.now())?;
            let ceremony = ceremony(asked, PasskeyGoal::StepUp(own.session.id))?;
            let (proof, passkey) = shown(asked, &ceremony, &given, Some(own.id)).await?;
            let cookie = new_cookie(asked);
            let used = proof.used(&passkey);
            let outcome = app.store.strengthen_by_passkey((own.hash, cookie.hash), used, ceremony.used()).await?;
            ended(asked, outcome, &passkey, &own.record).await?;
            guess.succeeded();
            let answer = signed_in(asked, &cookie).await?;
            Ok(answer.and_cookie(person::set_ceremony(&app.settings.people, "", 0)))
        }
        .boxed()
    },
};

static LIST: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let (own, _) = (asked.person()?, here(asked)?);
            let all = asked.app.store.passkeys(own.id).await?;
            let data: Vec<Value> = all.iter().map(|one| record(asked, one)).collect();
            Ok(json!({ "object": "list", "data": data }).into())
        }
        .boxed()
    },
};

fn record(asked: &PersonRequest, passkey: &PasskeyRecord) -> Value {
    let mut value = json!(passkey);
    value["object"] = json!("passkey");
    value["usable"] = json!(passkey.rp_id == asked.app.people.passkeys.rp_id());
    value
}

fn full() -> Refusal {
    Refusal::new(Code::Conflict, format!("You have {MOST_PASSKEYS} passkeys, which is the most; remove one first."))
}

static START_ADD: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let (own, settings) = (asked.strong()?, here(asked)?);
            let there = asked.app.store.passkeys(own.id).await?;
            if i64::try_from(there.len()).is_ok_and(|count| count >= MOST_PASSKEYS) {
                return Err(full());
            }
            let offered = ALGORITHMS.map(|alg| json!({ "type": "public-key", "alg": alg }));
            let (email, name) = (&own.record.email, &own.record.name);
            let options = json!({
                "rp": { "id": settings.rp_id, "name": settings.rp_name },
                "user": {
                    "id": BASE64_URL_SAFE_NO_PAD.encode(own.id.0),
                    "name": email,
                    "displayName": if name.is_empty() { email } else { name },
                },
                "pubKeyCredParams": offered,
                "excludeCredentials": named_in_options(&there, &settings.rp_id),
                "authenticatorSelection": {
                    "residentKey": "required", "requireResidentKey": true, "userVerification": "required",
                },
                "attestation": "none",
            });
            begun(asked, PasskeyGoal::Add(own.session.id), options)
        }
        .boxed()
    },
};

static ADD: PersonVerb = PersonVerb {
    fields: &[NAME, MADE],
    answer: |asked| {
        async move {
            let (own, app, _) = (asked.strong()?, &asked.app, here(asked)?);
            let (name, given): (String, MadeCredential) = (asked.text("name")?, asked.get("credential")?);
            let ceremony = ceremony(asked, PasskeyGoal::Add(own.session.id))?;
            let new = app.people.passkeys.made(&ceremony, &given, name.trim().to_owned());
            let new = new.map_err(|fault| refused(Code::InvalidParameter, &fault))?;
            let mail = mail(asked, &own.record, LetterAbout::PasskeyAdded).await?;
            match app.store.add_passkey(&own.record, new, ceremony.used(), mail).await? {
                AddedPasskey::Added(passkey) => {
                    app.people.ring();
                    let gone = person::set_ceremony(&app.settings.people, "", 0);
                    Ok(PersonAnswer::with_cookie(record(asked, &passkey), gone))
                }
                AddedPasskey::WayUsed => Err(no_ceremony()),
                AddedPasskey::Known => Err(Refusal::new(Code::Conflict, "This passkey is somebody's already.")),
                AddedPasskey::Full => Err(full()),
            }
        }
        .boxed()
    },
};

/// The letter about a passkey that comes or goes. There is an end to them.
async fn mail(asked: &PersonRequest, person: &PersonRecord, about: LetterAbout) -> Result<Option<Vec<u8>>, Refusal> {
    let app = &asked.app;
    app.people.waits.begin(GuardedAct::Passkey, &person.id.to_string(), asked.address(), asked.now())?;
    room_for_mail(app).await?;
    Ok(letter(app, about, &person.email, &person.locale, link(app, "settings", "")))
}

fn wanted(asked: &PersonRequest) -> Result<PasskeyId, Refusal> {
    asked.text("passkey")?.parse().map_err(|_| missing())
}

fn missing() -> Refusal {
    Refusal::about(Code::NotFound, "passkey", "You have no such passkey.")
}

static RENAME: PersonVerb = PersonVerb {
    fields: &[PASSKEY, NAME],
    answer: |asked| {
        async move {
            let (own, _) = (asked.person()?, here(asked)?);
            let (id, name) = (wanted(asked)?, asked.text("name")?);
            if !asked.app.store.rename_passkey(&own.record, id, name.trim()).await? {
                return Err(missing());
            }
            Ok(done())
        }
        .boxed()
    },
};

static REMOVE: PersonVerb = PersonVerb {
    fields: &[PASSKEY],
    answer: |asked| {
        async move {
            let (own, app, settings) = (asked.strong()?, &asked.app, here(asked)?);
            let id = wanted(asked)?;
            let there = app.store.passkeys(own.id).await?;
            if !there.iter().any(|one| one.id == id) {
                return Err(missing());
            }
            let mail = mail(asked, &own.record, LetterAbout::PasskeyRemoved).await?;
            if !app.store.remove_passkey(&own.record, id, &settings.rp_id, mail).await? {
                let text = "Set a password or add another passkey first: without this one you could not sign in.";
                return Err(Refusal::new(Code::Conflict, text));
            }
            app.people.ring();
            Ok(done())
        }
        .boxed()
    },
};
