//! Who is signed in: the session behind the cookie of a request. A function like
//! `operator::authenticate`; nothing is hidden in the request.
//!
//! A cookie opens a change only where the browser says that it comes from our own page (see
//! [`from_our_page`]). Keys open no session endpoint, and cookies no path of keys. A session is
//! read from the store with every request, so that one that ended stops at once on every replica.

use super::Register;
use crate::door::peer::Peer;
use crate::refusal::Refusal;
use crate::settings::PeopleSettings;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use sha2::{Digest as _, Sha256};
use tollgate_store::{
    AccountId, AccountRole, AccountView, Attribution, FoundSession, HouseRole, Membership, PersonId, PersonRecord,
    SessionRecord,
};
use tollgate_wire::error::Code;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// A session is noted as used so often at most.
const SEEN_EVERY_MS: i64 = MINUTE_MS;
/// How long a proof of who somebody is lasts for what needs one.
const STRONG_MS: i64 = 10 * MINUTE_MS;
/// The longest life of any session.
pub const LONGEST_SESSION_MS: i64 = 30 * 24 * HOUR_MS;
/// A change of an account by somebody who has several names it here.
pub const ACCOUNT_HEADER: HeaderName = HeaderName::from_static("tollgate-account");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Somebody who is signed in.
pub struct Person {
    pub id: PersonId,
    pub memberships: Vec<Membership>,
    pub house_role: Option<HouseRole>,
    /// They have proved within the last minutes who they are, in this session.
    pub strong: bool,
    pub record: PersonRecord,
    pub session: SessionRecord,
    /// Of the cookie's value.
    pub hash: [u8; 32],
    /// The account that they look at as its customers see it.
    pub viewing: Option<AccountView>,
}

impl Person {
    /// What stands in the log beside everything that is done.
    pub fn actor(&self) -> String {
        self.record.actor()
    }

    pub fn done(&self) -> Attribution {
        Attribution { person: Some(self.id), ..Attribution::by(self.actor(), String::new()) }
    }

    pub fn must_be_strong(&self) -> Result<(), Refusal> {
        if self.strong {
            return Ok(());
        }
        let text = "Prove again who you are: POST /api/session/step-up, then within ten minutes this.";
        Err(Refusal::new(Code::StepUpRequired, text))
    }

    /// The account that a request is about, in which they have this role or a higher one. Whoever
    /// is in one account only need not name it.
    pub fn account(&self, parts: &Parts, least: AccountRole) -> Result<AccountId, Refusal> {
        Ok(self.membership(parts, least)?.account)
    }

    /// The same, and what they are in it.
    pub fn membership(&self, parts: &Parts, least: AccountRole) -> Result<Membership, Refusal> {
        let name = "Tollgate-Account";
        let membership = match parts.headers.get(ACCOUNT_HEADER) {
            Some(text) => {
                let named: Option<AccountId> = text.to_str().ok().and_then(|text| text.parse().ok());
                let own = self.memberships.iter().find(|one| Some(one.account) == named).cloned();
                let seen = own.or_else(|| self.seen(parts).filter(|one| Some(one.account) == named));
                seen.ok_or_else(|| Refusal::about(Code::NotFound, name, "There is no such account among yours."))?
            }
            None => match self.memberships.as_slice() {
                [one] => one.clone(),
                [] => return Err(Refusal::new(Code::RoleRequired, "You are in no account.")),
                _ => {
                    let text = "You are in several accounts: name one in the header `Tollgate-Account`.";
                    return Err(Refusal::about(Code::MissingParameter, name, text));
                }
            },
        };
        if membership.role < least {
            let text =
                format!("This needs the role {} in the account; yours is {}.", least.word(), membership.role.word());
            return Err(Refusal::new(Code::RoleRequired, text));
        }
        Ok(membership)
    }

    /// What they are in the account that they look at: somebody who reads.
    fn seen(&self, parts: &Parts) -> Option<Membership> {
        let view = self.viewing.filter(|_| reads(&parts.method))?;
        Some(Membership { account: view.account, role: AccountRole::Viewer })
    }
}

/// Finds who is signed in, or says why not. Missing, unknown and ended sessions get one answer.
pub async fn authenticate(register: &Register<'_>, parts: &Parts) -> Result<Person, Refusal> {
    enabled(register.people)?;
    let none = || Refusal::new(Code::NotSignedIn, "Sign in first: POST /api/session.");
    let hash = presented(register.people, &parts.headers).ok_or_else(none)?;
    if !reads(&parts.method) {
        from_our_page(register.people, parts)?;
    }
    let FoundSession { session, person, viewing } = register.store.session(hash).await?.ok_or_else(none)?;
    let now = register.world.now_ms();
    if person.disabled_at.is_some() || !is_alive(&session, person.house_role, now) {
        return Err(none());
    }
    if !register.quiet
        && now - session.seen_at >= SEEN_EVERY_MS
        && let Err(error) = register.store.touch_session(hash).await
    {
        tracing::warn!(%error, "a session was used, and that is not noted");
    }
    Peer::prove(parts);
    let strong = (0..STRONG_MS).contains(&(now - session.strong_at));
    let (id, memberships, house_role) = (person.id, person.memberships.clone(), person.house_role);
    // Whoever has no role in the house any more looks at nothing.
    let viewing = viewing.filter(|view| now < view.until && house_role.is_some());
    Ok(Person { id, memberships, house_role, strong, record: person, session, hash, viewing })
}

/// Where people do not sign in, nothing about them is there.
pub fn enabled(people: &PeopleSettings) -> Result<(), Refusal> {
    if people.enabled {
        return Ok(());
    }
    Err(Refusal::new(Code::NotFound, "People do not sign in here: [people] in tollgate.toml is not enabled."))
}

/// Whoever has a role in the house is signed out sooner.
fn is_alive(session: &SessionRecord, role: Option<HouseRole>, now: i64) -> bool {
    let (idle, life) = match role {
        Some(_) => (HOUR_MS, 12 * HOUR_MS),
        None => (12 * HOUR_MS, LONGEST_SESSION_MS),
    };
    now < session.seen_at.saturating_add(idle) && now < session.created_at.saturating_add(life)
}

/// Nothing is changed by it.
pub fn reads(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// A change with a cookie must come from our own page. Browsers say so in `Sec-Fetch-Site`, or, on
/// plain http, at least in `Origin`; whoever says neither is refused.
pub fn from_our_page(people: &PeopleSettings, parts: &Parts) -> Result<(), Refusal> {
    if says_our_page(people, parts) == Some(true) {
        return Ok(());
    }
    let text =
        "A change with a cookie must come from a page of this gateway: `Sec-Fetch-Site: same-origin`, or its `Origin`.";
    Err(Refusal::new(Code::CrossSiteRequest, text))
}

/// Without a cookie a script may leave both out; a page of another site may not ask.
pub fn from_no_other_page(people: &PeopleSettings, parts: &Parts) -> Result<(), Refusal> {
    match says_our_page(people, parts) {
        None | Some(true) => Ok(()),
        Some(false) => from_our_page(people, parts),
    }
}

fn says_our_page(people: &PeopleSettings, parts: &Parts) -> Option<bool> {
    let mut sites = parts.headers.get_all(SEC_FETCH_SITE).iter().peekable();
    if sites.peek().is_some() {
        return Some(sites.all(|site| site == "same-origin"));
    }
    let mut origins = parts.headers.get_all(header::ORIGIN).iter().peekable();
    origins.peek()?;
    Some(origins.all(|origin| origin.to_str().is_ok_and(|origin| is_ours(people, origin, parts))))
}

fn is_ours(people: &PeopleSettings, origin: &str, parts: &Parts) -> bool {
    if let Some(own) = &people.origin {
        return own == origin;
    }
    // A cookie goes to the host it came from, so a page of that host is ours.
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| parts.uri.authority().map(http::uri::Authority::as_str));
    let scheme = if people.secure { "https" } else { "http" };
    host.is_some_and(|host| origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) == Some(host))
}

/// What the cookie is called.
fn cookie_name(people: &PeopleSettings) -> &'static str {
    if people.secure { "__Host-tollgate" } else { "tollgate_session" }
}

/// How the cookies of ways through issuers begin. Each way has its own, so that two pages that sign
/// in at once do not take it from each other.
fn way_prefix(people: &PeopleSettings) -> &'static str {
    if people.secure { "__Host-tollgate-way-" } else { "tollgate_way_" }
}

/// The cookies of ways through issuers that a request comes with: which way, and what it carries.
pub fn way_cookies<'a>(people: &PeopleSettings, headers: &'a HeaderMap) -> impl Iterator<Item = (&'a str, &'a str)> {
    let prefix = way_prefix(people);
    cookies(headers).filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value)))
}

/// The header that gives one to a browser for so long, or takes it away.
pub fn set_way(people: &PeopleSettings, way: &str, value: &str, seconds: i64) -> Option<HeaderValue> {
    set(people, &format!("{}{way}", way_prefix(people)), value, seconds)
}

/// What the cookie of a ceremony with a passkey is called.
fn ceremony_name(people: &PeopleSettings) -> &'static str {
    if people.secure { "__Host-tollgate-passkey" } else { "tollgate_passkey" }
}

/// The cookie of a ceremony with a passkey that a request comes with.
pub fn ceremony_cookie<'a>(people: &PeopleSettings, headers: &'a HeaderMap) -> Option<&'a str> {
    cookie(headers, ceremony_name(people))
}

/// The header that gives it to a browser for so long, or takes it away.
pub fn set_ceremony(people: &PeopleSettings, value: &str, seconds: i64) -> Option<HeaderValue> {
    set(people, ceremony_name(people), value, seconds)
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    cookies(headers).find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// The hash of the cookie that a request comes with.
pub fn presented(people: &PeopleSettings, headers: &HeaderMap) -> Option<[u8; 32]> {
    let value = cookie(headers, cookie_name(people))?;
    // Anything but what we have made is not looked for.
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(value).ok().filter(|bytes| bytes.len() == 32)?;
    Some(hash_of(&bytes))
}

/// Whether a request comes with a cookie of ours, whatever it is worth.
pub fn has_cookie(people: &PeopleSettings, headers: &HeaderMap) -> bool {
    people.enabled && presented(people, headers).is_some()
}

/// The value of a cookie, and its hash.
pub struct NewCookie {
    value: String,
    pub hash: [u8; 32],
}

impl NewCookie {
    pub fn new(fill: impl FnOnce(&mut [u8])) -> NewCookie {
        let mut random = [0; 32];
        fill(&mut random);
        NewCookie { value: BASE64_URL_SAFE_NO_PAD.encode(random), hash: hash_of(&random) }
    }

    /// The header that gives it to a browser.
    pub fn header(&self, people: &PeopleSettings) -> Option<HeaderValue> {
        set_cookie(people, &self.value, LONGEST_SESSION_MS / 1_000)
    }
}

/// The header that takes the cookie away.
pub fn no_cookie(people: &PeopleSettings) -> Option<HeaderValue> {
    set_cookie(people, "", 0)
}

fn set_cookie(people: &PeopleSettings, value: &str, seconds: i64) -> Option<HeaderValue> {
    set(people, cookie_name(people), value, seconds)
}

fn set(people: &PeopleSettings, name: &str, value: &str, seconds: i64) -> Option<HeaderValue> {
    let secure = if people.secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    let mut header: HeaderValue = text.parse().ok()?;
    header.set_sensitive(true);
    Some(header)
}

fn hash_of(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method("POST").uri("/api/session");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn a_change_comes_from_our_own_page() {
        let people = PeopleSettings { enabled: true, ..PeopleSettings::default() }
            .reached_at(Some("https://gate.example"), false);
        let ours = ("origin", "https://gate.example");
        for (headers, expected) in [
            (&[][..], None),
            (&[ours], Some(true)),
            (&[("origin", "https://evil.example")], Some(false)),
            (&[("origin", "null")], Some(false)),
            (&[("origin", "http://gate.example")], Some(false)),
            (&[("origin", "https://gate.example.evil.example")], Some(false)),
            (&[("sec-fetch-site", "same-origin")], Some(true)),
            (&[("sec-fetch-site", "same-site"), ours], Some(false)),
            (&[("sec-fetch-site", "cross-site"), ours], Some(false)),
            (&[("sec-fetch-site", "none"), ours], Some(false)),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], Some(false)),
            (&[ours, ("origin", "https://evil.example")], Some(false)),
        ] {
            let parts = asked(headers);
            assert_eq!(says_our_page(&people, &parts), expected, "{headers:?}");
            assert_eq!(from_our_page(&people, &parts).is_ok(), expected == Some(true), "{headers:?}");
            assert_eq!(from_no_other_page(&people, &parts).is_ok(), expected != Some(false), "{headers:?}");
        }
        let unknown = PeopleSettings { enabled: true, ..PeopleSettings::default() }.reached_at(None, false);
        let local = [("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8080")];
        assert_eq!(says_our_page(&unknown, &asked(&local)), Some(true));
        let other = [("host", "127.0.0.1:8080"), ("origin", "http://127.0.0.1:8081")];
        assert_eq!(says_our_page(&unknown, &asked(&other)), Some(false));
    }

    #[test]
    fn a_cookie_is_for_our_host_alone() {
        let https = PeopleSettings::default().reached_at(Some("https://gate.example"), false);
        let cookie = NewCookie::new(|bytes| bytes.fill(7));
        let text = cookie.header(&https).expect("a header");
        let text = text.to_str().expect("text").to_owned();
        assert!(text.starts_with("__Host-tollgate=") && text.ends_with("; Secure"), "{text}");
        assert!(text.contains("; Path=/; HttpOnly; SameSite=Lax;") && !text.contains("Domain"), "{text}");
        let pair = text.split(';').next().unwrap_or_default();
        let headers = asked(&[("cookie", &format!("a=b; {pair}"))]).headers;
        assert_eq!(presented(&https, &headers), Some(cookie.hash));
        let http = PeopleSettings::default().reached_at(None, false);
        assert_eq!(presented(&http, &headers), None, "another name");
        assert!(presented(&https, &asked(&[("cookie", "__Host-tollgate=short")]).headers).is_none());
    }

    #[test]
    fn a_session_ends_idle_and_old_and_sooner_with_a_role_in_the_house() {
        let at = |created_at, seen_at| SessionRecord {
            id: tollgate_store::SessionId([0; 16]),
            created_at,
            seen_at,
            strong_at: created_at,
            address: String::new(),
            agent: String::new(),
        };
        let (customer, operator) = (None, Some(HouseRole::Operator));
        for (session, role, now, alive) in [
            (at(0, 0), customer, 12 * HOUR_MS - 1, true),
            (at(0, 0), customer, 12 * HOUR_MS, false),
            (at(0, 30 * 24 * HOUR_MS - 2), customer, 30 * 24 * HOUR_MS - 1, true),
            (at(0, 30 * 24 * HOUR_MS - 2), customer, 30 * 24 * HOUR_MS, false),
            (at(0, 0), operator, HOUR_MS - 1, true),
            (at(0, 0), operator, HOUR_MS, false),
            (at(0, 12 * HOUR_MS - 2), operator, 12 * HOUR_MS - 1, true),
            (at(0, 12 * HOUR_MS - 2), operator, 12 * HOUR_MS, false),
        ] {
            assert_eq!(is_alive(&session, role, now), alive, "{session:?} {now}");
        }
    }
}
