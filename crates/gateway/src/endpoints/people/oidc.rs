//! `/api/session/oidc`: signing in by an issuer of OpenID Connect, linking one and taking it off.
//!
//! A page of ours asks where to send the browser, and gets a sealed cookie with it. The issuer
//! sends the browser back to `…/return`, the one GET that begins something: it does so for whoever
//! has that cookie, once. People are found by issuer and subject, never by e-mail.

use super::prove::{self, failed};
use super::sessions::{self, CODE, RECOVERY, done, new_cookie, signed_in, somebody};
use super::sign_up::{give_trial, own_account};
use super::verb::{PersonAnswer, PersonRequest, PersonVerb, no_store};
use crate::app::App;
use crate::endpoints::admin::Query;
use crate::endpoints::admin::field::{FieldKind, VerbField, may, must};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::reading;
use crate::endpoints::row::{Access, Family, Row};
use crate::people::issuers::{CarriedWay, MOST_WAYS, WAY_MS, WayGoal, is_own_page, is_way_name, way_name};
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use crate::settings::{IssuerSettings, SignUp};
use crate::who::person;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use futures_util::FutureExt as _;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tollgate_store::{CredentialKind, IssuerSubject, NewPerson, NewSession, PersonRecord, UsedCode, folded_email};
use tollgate_upstream::{Issuer, IssuerClaims, IssuerFault};
use tollgate_wire::error::{Code, ErrorFormat};

pub const FAMILY: Family = Family { tag: "people: issuers", rows, schemas };

const ISSUER: VerbField = must("issuer", FieldKind::Text(40), "The name of the issuer in the settings");
const TO: VerbField = may("return_to", FieldKind::Text(500), "The page of ours that comes afterwards: a path");
const WAY: VerbField =
    may("way", FieldKind::Text(40), "Which way, of several that wait for a code: `way` behind `second_factor`");
/// Who shows an issuer who they are, and comes back so fresh, is as good as with a password.
const FRESH_S: i64 = 600;
const CLOCKS_APART_S: i64 = 60;
const SIGN_IN_PAGE: &str = "/sign-in";

fn rows() -> Vec<Row> {
    let (all, one) = ("/api/session/oidc", "/api/session/oidc/{issuer}");
    let back = "/api/session/oidc/{issuer}/return";
    vec![
        LIST.get(all, Access::Session, "The issuers by which the person signs in").gives(named("List")),
        UNLINK.delete(one, Access::Session, "Takes an issuer off; a way in must be left").gives(named("Done")),
        START
            .post("/api/session/oidc/{issuer}/start", Access::Public, "Where to send a browser that signs in by it")
            .gives(named("IssuerWay")),
        LINK.post("/api/session/oidc/{issuer}/link", Access::Session, "The same, to sign in by it from now on")
            .gives(named("IssuerWay")),
        STEP_UP
            .post("/api/session/oidc/{issuer}/step-up", Access::Session, "The same, to prove again who is signed in")
            .gives(named("IssuerWay")),
        Row::get(back, Access::Public, came_back, "Where the issuer sends the browser back to")
            .with(query)
            .replies_bare(303)
            .refused_with(&[401, 403, 404, 409, 429, 502, 503]),
        FINISH
            .post("/api/session/oidc/{issuer}/finish", Access::Public, "The code of a second factor, after the issuer")
            .gives(named("SignedIn")),
    ]
}

fn query() -> Vec<Value> {
    let one = |(name, about): (&str, &str)| json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string" } });
    let all = [
        ("code", "What the issuer takes for a token, once"),
        ("state", "Of the way that was begun"),
        ("iss", "The issuer, where it names itself (RFC 9207)"),
        ("error", "Why the issuer does not vouch for anybody"),
    ];
    all.map(one).into()
}

fn schemas() -> Value {
    json!({
        "IssuerWay": { "type": "object", "required": ["url", "expires_at_ms"], "properties": {
            "url": { "type": "string", "description": "Of the issuer; the cookie that comes along belongs to it" },
            "expires_at_ms": { "type": "integer" },
        } },
    })
}

fn of_settings<'a>(app: &'a App, name: &str) -> Result<&'a (IssuerSettings, Issuer), Refusal> {
    let missing = || Refusal::about(Code::NotFound, "issuer", "There is no such issuer here.");
    app.people.issuers.find(name).ok_or_else(missing)
}

/// Where an issuer sends browsers back to. Never by the host that a request names.
fn redirect_uri(app: &App, name: &str) -> Result<String, Refusal> {
    let nowhere =
        || Refusal::new(Code::Conflict, "The operator must set `public_url` for issuers to send people back.");
    Ok(format!("{}/api/session/oidc/{name}/return", app.settings.reached_at().ok_or_else(nowhere)?))
}

static START: PersonVerb = PersonVerb { fields: &[ISSUER, TO], answer: |asked| begin(asked, WayGoal::SignIn).boxed() };

static LINK: PersonVerb = PersonVerb {
    fields: &[ISSUER, TO],
    answer: |asked| async move { begin(asked, WayGoal::Link(asked.strong()?.id)).await }.boxed(),
};

static STEP_UP: PersonVerb = PersonVerb {
    fields: &[ISSUER, TO],
    answer: |asked| async move { begin(asked, WayGoal::StepUp(asked.person()?.id)).await }.boxed(),
};

async fn begin(asked: &PersonRequest, goal: WayGoal) -> Result<PersonAnswer, Refusal> {
    let (app, now) = (&asked.app, asked.now());
    let name = asked.text("issuer")?;
    let (_, issuer) = of_settings(app, &name)?;
    let to: String = asked.may("return_to")?.unwrap_or_else(|| "/".to_owned());
    if !is_own_page(&to) {
        let text = "`return_to` is a path of this gateway, such as /keys.";
        return Err(Refusal::about(Code::InvalidParameter, "return_to", text));
    }
    let redirect = redirect_uri(app, &name)?;
    let way = CarriedWay::new(&name, goal, to, now, |bytes| asked.fill(bytes));
    let turn = app.people.issuers.turns.try_acquire().map_err(|_| busy())?;
    let url = issuer.begin(&app.client, &way.way(&redirect), now).await.map_err(|fault| refused(&name, fault))?;
    drop(turn);
    let value = json!({ "object": "issuer_way", "url": url, "expires_at_ms": now + WAY_MS });
    let answer = PersonAnswer::with_cookie(value, carried(asked, &way));
    let people = &app.settings.people;
    Ok(surplus(asked).iter().fold(answer, |answer, old| answer.and_cookie(person::set_way(people, old, "", 0))))
}

/// Ways that a browser need not carry any longer: those that are over, and of the others the oldest
/// where there are too many.
fn surplus(asked: &PersonRequest) -> Vec<String> {
    let (mut over, mut open) = (Vec::new(), Vec::new());
    for (name, value) in person::way_cookies(&asked.app.settings.people, &asked.parts.headers) {
        match asked.app.people.issuers.opened(value, asked.now()) {
            Some(way) => open.push((way.began_at, name.to_owned())),
            None if is_way_name(name) => over.push(name.to_owned()),
            None => {}
        }
    }
    open.sort();
    let room = MOST_WAYS - 1;
    over.extend(open.iter().take(open.len().saturating_sub(room)).map(|(_, name)| name.clone()));
    over
}

fn busy() -> Refusal {
    Refusal::new(Code::Overloaded, "Too many people wait for issuers at the moment.").after(5)
}

/// The cookie of a way.
fn carried(asked: &PersonRequest, way: &CarriedWay) -> Option<HeaderValue> {
    let sealed = asked.app.people.issuers.sealed(way, |bytes| asked.fill(bytes))?;
    person::set_way(&asked.app.settings.people, &way.id(), &sealed, WAY_MS / 1_000)
}

fn refused(name: &str, fault: IssuerFault) -> Refusal {
    tracing::warn!(issuer = name, %fault, "nobody was vouched for");
    match fault {
        IssuerFault::Away | IssuerFault::Unfit(_) => {
            Refusal::new(Code::UpstreamError, format!("Not signed in: {fault}.")).after(5)
        }
        IssuerFault::Code | IssuerFault::Token(_) => {
            Refusal::new(Code::SignInFailed, format!("Not signed in: {fault}."))
        }
    }
}

/// What becomes of a browser that came back.
enum CameBack {
    SignedIn(PersonAnswer, String),
    Linked(String),
    /// The second factor is missing; the way goes on, with what the issuer said.
    Factor(CarriedWay),
}

async fn came_back(State(app): State<Arc<App>>, Path(name): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let page = parts.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let page = page.is_some_and(|value| value.contains("text/html"));
    let mut given = Map::new();
    // Issuers send more words than there are; none is needed but these.
    for (word, value) in Query::read(parts.uri.query().unwrap_or("")).map(|query| query.0).unwrap_or_default() {
        if ["code", "state", "iss", "error"].contains(&word.as_str()) && value.len() <= 8_192 {
            given.insert(word, json!(value));
        }
    }
    let own = given.get("state").and_then(Value::as_str).map(way_name);
    let asked = PersonRequest::by_anybody(app.clone(), parts, given);
    let outcome = reading::guarded(back(&asked, &name)).await;
    app.metrics.people.signed_in("issuer", super::ending(&outcome));
    let people = &app.settings.people;
    let mut reply = match outcome {
        Ok(CameBack::SignedIn(answer, to)) => elsewhere(&to, answer.into_cookies()),
        Ok(CameBack::Linked(to)) => elsewhere(&to, Vec::new()),
        Ok(CameBack::Factor(way)) => {
            let cookie = carried(&asked, &way).into_iter().collect();
            let reply = elsewhere(&format!("{SIGN_IN_PAGE}#second_factor={name}&way={}", way.id()), cookie);
            return finished(reply);
        }
        Err(refusal) if page => elsewhere(&format!("{SIGN_IN_PAGE}#error={}", refusal.code.code()), Vec::new()),
        Err(refusal) => reading::refused(&app, ErrorFormat::OpenAi, refusal, ""),
    };
    // The others may still come back.
    if let Some(cookie) = own.and_then(|own| person::set_way(people, &own, "", 0)) {
        reply.headers_mut().append(header::SET_COOKIE, cookie);
    }
    finished(reply)
}

fn elsewhere(to: &str, cookies: Vec<HeaderValue>) -> Response {
    let mut reply = Response::new(Body::empty());
    *reply.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::try_from(to).unwrap_or_else(|_| HeaderValue::from_static("/"));
    reply.headers_mut().insert(header::LOCATION, to);
    for cookie in cookies {
        reply.headers_mut().append(header::SET_COOKIE, cookie);
    }
    reply
}

/// The address that the browser has now has a code in it.
fn finished(mut reply: Response) -> Response {
    no_store(&mut reply);
    reply.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

async fn back(asked: &PersonRequest, name: &str) -> Result<CameBack, Refusal> {
    let (app, now) = (&asked.app, asked.now());
    person::enabled(&app.settings.people)?;
    let (settings, issuer) = of_settings(app, name)?;
    let begun = app.people.waits.begin(GuardedAct::Token, "", asked.address(), now)?;
    let state: String = asked.may("state")?.unwrap_or_default();
    let way = ways_of(asked, name).find(|way| way.vouched.is_none() && way.fits(&state)).ok_or_else(no_way)?;
    if let Some(error) = asked.may::<String>("error")? {
        let plain = error.len() <= 40 && error.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let why = if plain { error } else { "an error".to_owned() };
        return Err(Refusal::new(Code::SignInFailed, format!("Not signed in: the issuer answered {why}.")));
    }
    let (code, named): (String, Option<String>) = (asked.get("code")?, asked.may("iss")?);
    let redirect = redirect_uri(app, name)?;
    let turn = app.people.issuers.turns.try_acquire().map_err(|_| busy())?;
    let claims = issuer.end(&app.client, &way.way(&redirect), (&code, named.as_deref()), now).await;
    drop(turn);
    let claims = claims.map_err(|fault| refused(name, fault))?;
    in_domain(settings, &claims)?;
    let email = claims.email.clone().unwrap_or_default();
    let house_role = settings.house_role(&claims.groups);
    let is = IssuerSubject { issuer: settings.issuer.clone(), subject: claims.subject.clone(), email, house_role };
    let fresh_since = match way.goal {
        WayGoal::StepUp(_) => way.began_at / 1_000 - CLOCKS_APART_S,
        WayGoal::SignIn | WayGoal::Link(_) => now / 1_000 - FRESH_S,
    };
    let fresh = claims.auth_time.is_some_and(|at| at >= fresh_since);
    let outcome = match way.goal {
        WayGoal::Link(_) => linked(asked, &way, &is).await?,
        WayGoal::StepUp(_) if !fresh => {
            let text = "Not signed in: the issuer does not say that it asked again who you are (`auth_time`).";
            return Err(Refusal::new(Code::SignInFailed, text));
        }
        WayGoal::SignIn | WayGoal::StepUp(_) => {
            let person = known_or_new(asked, settings, &claims, &is).await?;
            if has_factor(asked, &person).await? {
                let mut way = way;
                way.vouched = Some(is);
                CameBack::Factor(way)
            } else {
                let to = way.to.clone();
                CameBack::SignedIn(signs_in(asked, &way, &is, &person, (None, fresh)).await?, to)
            }
        }
    };
    begun.succeeded();
    Ok(outcome)
}

/// The open ways through an issuer that the browser carries.
fn ways_of<'a>(asked: &'a PersonRequest, name: &'a str) -> impl Iterator<Item = CarriedWay> + use<'a> {
    let issuers = &asked.app.people.issuers;
    let carried = person::way_cookies(&asked.app.settings.people, &asked.parts.headers).take(2 * MOST_WAYS);
    carried.filter_map(|(_, value)| issuers.opened(value, asked.now())).filter(move |way| way.name == name)
}

fn no_way() -> Refusal {
    let text = "This browser did not begin this sign-in, or too long ago, or it has ended; begin again.";
    Refusal::about(Code::TokenInvalid, "state", text)
}

/// Whom the issuer is believed about at all.
fn in_domain(settings: &IssuerSettings, claims: &IssuerClaims) -> Result<(), Refusal> {
    if settings.email_domains.is_empty() {
        return Ok(());
    }
    let verified = claims.email_verified || !settings.require_email_verified;
    let domain = claims.email.as_deref().and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
    let known = |own: &String| domain.is_some_and(|domain| domain.eq_ignore_ascii_case(own));
    if verified && settings.email_domains.iter().any(known) {
        return Ok(());
    }
    Err(Refusal::new(Code::SignUpClosed, "Not signed in: your e-mail there is of no domain that may sign in here."))
}

async fn known_or_new(
    asked: &PersonRequest,
    settings: &IssuerSettings,
    claims: &IssuerClaims,
    is: &IssuerSubject,
) -> Result<PersonRecord, Refusal> {
    let store = &asked.app.store;
    let person = match store.person_by_link(&is.issuer, &is.subject).await? {
        Some(person) => person,
        None => new_person(asked, settings, claims, is).await?,
    };
    if person.disabled_at.is_some() {
        return Err(failed());
    }
    // Also after a crash in between.
    if person.wished_account.is_some() {
        let account = if person.memberships.is_empty() { own_account(asked, &person).await? } else { None };
        if let Some(account) = account.filter(|_| claims.email_verified) {
            give_trial(asked, &person, account, "by an issuer").await?;
        }
        store.fulfil_wish(person.id, account).await?;
    }
    Ok(person)
}

/// Somebody whom the issuer vouches for and nobody knows here. An e-mail that is somebody's already
/// is theirs: they sign in as they do, and link the issuer themselves.
async fn new_person(
    asked: &PersonRequest,
    settings: &IssuerSettings,
    claims: &IssuerClaims,
    is: &IssuerSubject,
) -> Result<PersonRecord, Refusal> {
    let closed = |text: &str| Refusal::new(Code::SignUpClosed, text);
    // Whoever is in a group that works here is invited by that, and needs no account.
    let of_the_house = is.house_role.is_some();
    if settings.sign_up == SignUp::Closed && !of_the_house {
        return Err(closed("Nobody signs up by this issuer; sign in as usual and link it, or ask the operator."));
    }
    if settings.require_email_verified && !claims.email_verified {
        return Err(closed("Not signed up: the issuer does not say that your e-mail is verified."));
    }
    let email = claims.email.as_deref().unwrap_or_default();
    let email = super::email("email", email).map_err(|_| closed("Not signed up: the issuer names no e-mail."))?;
    // Whoever is at many an issuer is not many people here for nothing.
    asked.app.people.waits.begin(GuardedAct::Mail, &folded_email(&email), asked.address(), asked.now())?;
    let invited_only = settings.sign_up != SignUp::Open && !of_the_house;
    let name = claims.name.clone().unwrap_or_default();
    let name: String = name.chars().take(100).collect();
    let new = NewPerson {
        wished_account: (settings.sign_up == SignUp::Open && !of_the_house).then(|| email.clone()),
        ..somebody(email.clone(), name, "en".to_owned(), true)
    };
    let store = &asked.app.store;
    if let Some(person) = store.create_linked_person(new, is.clone(), invited_only).await? {
        return Ok(person);
    }
    if store.person_by_email(&email).await?.is_some() {
        let text = "Your e-mail is known here: sign in as usual, then link the issuer. It is not linked by e-mail.";
        return Err(Refusal::new(Code::Conflict, text));
    }
    Err(closed("People sign up by invite here, and there is none for your e-mail."))
}

async fn has_factor(asked: &PersonRequest, person: &PersonRecord) -> Result<bool, Refusal> {
    let credentials = asked.app.store.credentials(person.id).await?;
    Ok(credentials.iter().any(|one| one.kind == CredentialKind::Totp))
}

/// Begins the session, or makes the one that is there stronger.
async fn signs_in(
    asked: &PersonRequest,
    way: &CarriedWay,
    is: &IssuerSubject,
    person: &PersonRecord,
    (code, strong): (Option<UsedCode>, bool),
) -> Result<PersonAnswer, Refusal> {
    let (store, cookie) = (&asked.app.store, new_cookie(asked));
    let used = (way.used(), code);
    let begun = match way.goal {
        WayGoal::StepUp(owner) => {
            let own = person::authenticate(&asked.app.register(), &asked.parts).await?;
            if own.id != owner || person.id != owner {
                return Err(failed());
            }
            store.strengthen_by_issuer((own.hash, cookie.hash), owner, is, used).await?
        }
        _ => {
            let new = NewSession { strong, issuer_role: is.house_role, ..sessions::session(asked, person, &cookie)? };
            store.begin_session_by_issuer(new, is, used, person).await?
        }
    };
    if !begun {
        return Err(no_way());
    }
    signed_in(asked, &cookie).await
}

async fn linked(asked: &PersonRequest, way: &CarriedWay, is: &IssuerSubject) -> Result<CameBack, Refusal> {
    let own = person::authenticate(&asked.app.register(), &asked.parts).await?;
    if way.goal != WayGoal::Link(own.id) {
        return Err(no_way());
    }
    if !asked.app.store.link_issuer(&own.record, is, way.used()).await? {
        let text = "Not linked: whoever you are there is linked already, here or to you, or the way was used.";
        return Err(Refusal::new(Code::Conflict, text));
    }
    Ok(CameBack::Linked(way.to.clone()))
}

/// With the second factor that they have here: an issuer does not stand in for it.
static FINISH: PersonVerb = PersonVerb {
    fields: &[ISSUER, WAY, CODE, RECOVERY],
    answer: |asked| {
        async move {
            let answer = finish(asked).await;
            asked.app.metrics.people.signed_in("issuer", super::ending(&answer));
            answer
        }
        .boxed()
    },
};

async fn finish(asked: &PersonRequest) -> Result<PersonAnswer, Refusal> {
    let app = &asked.app;
    let (issuer, wanted): (String, Option<String>) = (asked.text("issuer")?, asked.may("way")?);
    let waiting = ways_of(asked, &issuer).filter(|way| way.vouched.is_some());
    let waiting = waiting.filter(|way| wanted.as_ref().is_none_or(|wanted| way.id() == *wanted));
    let way = waiting.max_by_key(|way| way.began_at).ok_or_else(no_way)?;
    let is = way.vouched.clone().ok_or_else(no_way)?;
    let person = app.store.person_by_link(&is.issuer, &is.subject).await?.filter(|one| one.disabled_at.is_none());
    let person = person.ok_or_else(failed)?;
    let email = folded_email(&person.email);
    let begun = app.people.waits.begin(GuardedAct::SignIn, &email, asked.address(), asked.now())?;
    let credentials = app.store.credentials(person.id).await?;
    let code = prove::second_factor(asked, &person, &credentials)?;
    let answer = signs_in(asked, &way, &is, &person, (code, true)).await?;
    begun.succeeded();
    Ok(answer.and_cookie(person::set_way(&app.settings.people, &way.id(), "", 0)))
}

static LIST: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let links = asked.app.store.issuer_links(asked.person()?.id).await?;
            let shown = |link: &tollgate_store::IssuerLink| {
                let known = asked.app.people.issuers.all().find(|one| one.issuer == link.is.issuer);
                let mut shown = json!(link);
                shown["name"] = json!(known.map(|one| &one.name));
                shown["label"] = json!(known.map(|one| &one.label));
                shown
            };
            let data: Vec<Value> = links.iter().map(shown).collect();
            Ok(json!({ "object": "list", "data": data }).into())
        }
        .boxed()
    },
};

static UNLINK: PersonVerb = PersonVerb {
    fields: &[ISSUER],
    answer: |asked| {
        async move {
            let own = asked.strong()?;
            let (settings, _) = of_settings(&asked.app, &asked.text("issuer")?)?;
            let rp_id = asked.app.people.passkeys.rp_id();
            if asked.app.store.unlink_issuer(&own.record, &settings.issuer, rp_id).await? {
                return Ok(done());
            }
            let links = asked.app.store.issuer_links(own.id).await?;
            if links.iter().any(|link| link.is.issuer == settings.issuer) {
                let text = "Set a password or add a passkey first: without this issuer you could not sign in.";
                return Err(Refusal::new(Code::Conflict, text));
            }
            Err(Refusal::about(Code::NotFound, "issuer", "You are not linked to this issuer."))
        }
        .boxed()
    },
};
