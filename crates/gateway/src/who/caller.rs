//! Who is calling: the key and the account behind it, and what that key may do.
//!
//! Missing, unknown, revoked and expired keys get one and the same answer, so that nobody learns
//! which it was.

use super::{Register, client_secret};
use crate::door::peer::Peer;
use crate::refusal::Refusal;
use crate::who::key_cache::KeyLookup;
use crate::world::{Millis, World};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Uri, header};
use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tollgate_catalog::Money;
use tollgate_store::{
    Account, AccountRole, CallReach, HoldRefused, Key, KeyAndAccount, KeyId, KeyScope, Store, StoreError,
};
use tollgate_wire::error::Code;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

pub struct Caller {
    pub key: Key,
    pub account: Account,
    /// Parsed once; an unreadable entry matches nothing.
    networks: Option<Vec<IpNet>>,
    /// A hold was refused since this was read.
    short: AtomicBool,
    /// For a step of a run: what is left of what was confirmed. No call costs more.
    cap: Option<Money>,
}

/// Who asks for a step of a run. A worker puts it into the request; nothing that comes from outside
/// can.
#[derive(Clone)]
pub struct StepCaller(pub Arc<Caller>);

impl Caller {
    pub fn new(found: KeyAndAccount) -> Caller {
        let networks = found.key.cidrs.as_ref().map(|list| list.iter().filter_map(|one| network(one)).collect());
        Caller { key: found.key, account: found.account, networks, short: AtomicBool::new(false), cap: None }
    }

    /// One whose calls cost at most so much.
    pub fn capped(found: KeyAndAccount, cap: Option<Money>) -> Caller {
        Caller { cap, ..Caller::new(found) }
    }

    pub fn cap(&self) -> Option<Money> {
        self.cap
    }

    /// The account could not pay for a call, so what is known of its balance is old.
    pub fn falls_short(&self) {
        self.short.store(true, Ordering::Relaxed);
    }

    /// Whether the account had something to spend when it was last looked at.
    pub fn seems_able_to_pay(&self) -> bool {
        let account = &self.account;
        let has = account.trial_available.nano() > 0 || account.paid_available.nano() > 0;
        has && !self.short.load(Ordering::Relaxed)
    }

    /// Why the smallest of holds would be refused, by what is known here.
    pub fn cannot_pay(&self, now: Millis) -> Option<HoldRefused> {
        let found = KeyAndAccount { key: self.key.clone(), account: self.account.clone() };
        found.would_hold(Money::from_nano(1), Money::from_nano(1), false, now).err()
    }

    /// Whether so much could be held for this caller, by what is known here.
    pub fn could_hold(&self, amount: Money, paid_only: bool, now: Millis) -> bool {
        let found = KeyAndAccount { key: self.key.clone(), account: self.account.clone() };
        let able = amount == Money::ZERO || self.seems_able_to_pay();
        able && found.would_hold(amount, amount, paid_only, now).is_ok()
    }

    pub fn works_at(&self, now: Millis) -> bool {
        // Revoked is revoked at once, whatever the clock of whoever did it says.
        self.key.revoked_at.is_none() && self.key.expires_at.is_none_or(|at| at > now)
    }

    /// The same, without a look at the clock where the key has no end.
    fn works(&self, world: &World) -> bool {
        self.key.revoked_at.is_none() && (self.key.expires_at.is_none() || self.works_at(world.now_ms()))
    }

    fn may_come_from(&self, ip: IpAddr) -> bool {
        self.networks.as_ref().is_none_or(|list| list.iter().any(|net| net.contains(&ip)))
    }

    /// Whose calls are shown to who comes with this key: all of the account, or what the member who
    /// made the key may see. A key that nobody made while signed in is the account's.
    pub async fn reach(&self, store: &Store) -> Result<CallReach, StoreError> {
        let account = self.account.id;
        let Some(person) = self.key.person.filter(|_| !self.account.members_see_all) else { return Ok(account.into()) };
        match store.role_in(account, person).await? {
            Some(AccountRole::Owner | AccountRole::Viewer) => Ok(account.into()),
            // Whoever has left sees as little.
            Some(AccountRole::Member) | None => Ok(CallReach { account, person: Some(person) }),
        }
    }

    /// Whether what another key has begun is shown to who comes with this one.
    pub async fn sees(&self, store: &Store, key: KeyId) -> Result<bool, StoreError> {
        if key == self.key.id {
            return Ok(true);
        }
        store.reaches(self.reach(store).await?, key).await
    }

    pub fn may_use(&self, model: &str) -> bool {
        self.key.models.as_ref().is_none_or(|list| list.iter().any(|one| one == model))
    }
}

/// An address range, or a single address as a range of one.
pub fn network(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Finds the caller of a request or says why not.
pub async fn authenticate(register: &Register<'_>, parts: &Parts) -> Result<Arc<Caller>, Refusal> {
    if let Some(StepCaller(caller)) = parts.extensions.get::<StepCaller>() {
        // Where the run was asked for was looked at then.
        return if caller.works(register.world) { Ok(caller.clone()) } else { Err(no_such_key()) };
    }
    let caller = known(register, parts).await?;
    match caller.key.scope {
        KeyScope::Call => Ok(caller),
        KeyScope::Manage => Err(Refusal::new(
            Code::KeyScope,
            "This key manages its account (`/api/account`) and opens nothing else; calls take a key without a scope.",
        )),
    }
}

/// The key behind a request, whatever it is for, or why there is none.
pub(super) async fn known(register: &Register<'_>, parts: &Parts) -> Result<Arc<Caller>, Refusal> {
    let key = presented(parts)?;
    let found = register.keys.find(register.store, key, register.world).await;
    if matches!(found, KeyLookup::Unknown) && client_secret::secret_in(key).is_some() {
        let text = "A client secret (`ek_…`) opens realtime sessions only; this endpoint takes an API key.";
        return Err(Refusal::new(Code::InvalidApiKey, text).because("client_secret"));
    }
    let caller = match found {
        KeyLookup::Known(caller) => caller,
        KeyLookup::Unknown => return Err(no_such_key()),
        KeyLookup::CannotTell => return Err(cannot_tell()),
    };
    admitted(register, parts, &caller)?;
    Ok(caller)
}

/// The key, or client secret, that a request comes with.
pub(super) fn presented(parts: &Parts) -> Result<&str, Refusal> {
    presented_key(&parts.headers, key_in_query(&parts.uri))
}

/// A key that was found works now, and from where the request comes.
pub(super) fn admitted(register: &Register<'_>, parts: &Parts, caller: &Caller) -> Result<(), Refusal> {
    if !caller.works(register.world) {
        return Err(no_such_key());
    }
    if let Some(ip) = client_address(register.trusted, parts)
        && !caller.may_come_from(ip)
    {
        return Err(Refusal::new(Code::IpNotAllowed, "This key may not be used from this address."));
    }
    Peer::prove(parts);
    Ok(())
}

pub(super) fn cannot_tell() -> Refusal {
    Refusal::new(Code::LedgerUnavailable, "Keys cannot be checked at the moment.").after(2)
}

fn no_such_key() -> Refusal {
    Refusal::new(Code::InvalidApiKey, "The API key is missing, unknown, revoked or expired.")
}

/// Whether a key is presented at all, whatever it is worth.
pub(crate) fn presents_key(headers: &HeaderMap) -> bool {
    [header::AUTHORIZATION, X_API_KEY, X_GOOG_API_KEY].iter().any(|name| headers.contains_key(name))
}

/// The key as the SDKs of the four dialects send it. Two different keys in one request are refused.
pub(crate) fn presented_key<'p>(headers: &'p HeaderMap, in_query: Option<&'p str>) -> Result<&'p str, Refusal> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        // `Token` is what Google's SDK sends with an ephemeral token.
        let known = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
        known.then_some(key.trim())
    });
    let mut key = bearer;
    let named = [X_API_KEY, X_GOOG_API_KEY].map(|name| headers.get(name).and_then(|value| value.to_str().ok()));
    for other in named.into_iter().chain([in_query, key_in_protocol(headers)]).flatten() {
        if key.is_some_and(|key| key != other) {
            return Err(Refusal::new(Code::InvalidApiKey, "Two different API keys were sent."));
        }
        key = Some(other);
    }
    key.filter(|key| !key.is_empty() && key.len() <= 512).ok_or_else(no_such_key)
}

/// Subprotocols that the client of a WebSocket offers.
pub(crate) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// A browser can send no header of its own with a WebSocket: its key is one of the subprotocols.
fn key_in_protocol(headers: &HeaderMap) -> Option<&str> {
    protocols(headers).find_map(|offered| offered.strip_prefix("openai-insecure-api-key."))
}

/// `?key=…`, or `?access_token=…`, which only clients of Gemini's paths send; elsewhere a query may
/// end up in somebody's log.
fn key_in_query(uri: &Uri) -> Option<&str> {
    let path = uri.path();
    if !["/v1beta/", "/v1alpha/", "/v1/models", "/ws/google.ai."].iter().any(|start| path.starts_with(start)) {
        return None;
    }
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("key=").or_else(|| pair.strip_prefix("access_token=")))
}

/// The client's address: the peer, or what a trusted proxy in front of us says.
pub fn client_address(trusted: &[IpNet], parts: &Parts) -> Option<IpAddr> {
    let peer = parts.extensions.get::<Peer>()?.ip();
    if trusted.is_empty() || !trusted.iter().any(|net| net.contains(&peer)) {
        return Some(peer);
    }
    Some(forwarded_for(&parts.headers, |ip| trusted.iter().any(|net| net.contains(&ip))).unwrap_or(peer))
}

/// Headers by which proxies say that they pass a request on.
const FORWARDED: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Whether a request was made on this machine: not one that a proxy on it passes on for somebody
/// else.
pub fn is_local(trusted: &[IpNet], peer: &Peer, headers: &HeaderMap) -> bool {
    let passed_on = || FORWARDED.iter().any(|name| headers.contains_key(*name));
    let proxy = |ip: IpAddr| trusted.iter().any(|net| net.contains(&ip));
    peer.ip().is_loopback() && !proxy(peer.ip()) && !passed_on()
}

/// The rightmost address that is not itself a trusted proxy: everything left of it can be forged.
/// So can everything left of an entry that is no address: the search ends there with nothing.
fn forwarded_for(headers: &HeaderMap, trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    let lines: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
    let entries = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or("-").rsplit(','));
    for entry in entries {
        let ip = entry.trim().parse::<IpAddr>().ok()?.to_canonical();
        if !trusted(ip) {
            return Some(ip);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in list {
            map.insert(*name, http::HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn the_key_is_found_where_each_sdk_puts_it() {
        for list in [
            [("authorization", "Bearer sk-a")],
            [("authorization", "bearer sk-a")],
            [("x-api-key", "sk-a")],
            [("x-goog-api-key", "sk-a")],
            [("sec-websocket-protocol", "realtime,openai-insecure-api-key.sk-a, other")],
        ] {
            assert_eq!(presented_key(&headers(&list), None).ok(), Some("sk-a"), "{list:?}");
        }
    }

    #[test]
    fn a_key_in_the_query_is_read_on_geminis_paths_only() {
        for (uri, key) in [
            ("/v1beta/models/gemini-x:generateContent?alt=sse&key=sk-a", Some("sk-a")),
            ("/v1/models?key=sk-a", Some("sk-a")),
            ("/ws/google.ai.generativelanguage.v1beta.X.Y?key=sk-a", Some("sk-a")),
            ("/v1/usage?key=sk-a", None),
        ] {
            assert_eq!(key_in_query(&Uri::from_static(uri)), key, "{uri}");
        }
        let other = headers(&[("x-goog-api-key", "sk-b")]);
        assert_eq!(presented_key(&other, Some("sk-a")).err().map(|r| r.code), Some(Code::InvalidApiKey));
        assert_eq!(presented_key(&headers(&[]), Some("sk-a")).ok(), Some("sk-a"));
    }

    #[test]
    fn two_different_keys_or_none_are_refused() {
        let both = headers(&[("authorization", "Bearer sk-a"), ("x-api-key", "sk-b")]);
        assert_eq!(presented_key(&both, None).err().map(|r| r.code), Some(Code::InvalidApiKey));
        let same = headers(&[("authorization", "Bearer sk-a"), ("x-api-key", "sk-a")]);
        assert_eq!(presented_key(&same, None).ok(), Some("sk-a"));
        for none in [headers(&[]), headers(&[("authorization", "Basic abc")]), headers(&[("authorization", "Bearer ")])]
        {
            assert_eq!(presented_key(&none, None).err().map(|r| r.code), Some(Code::InvalidApiKey));
        }
    }

    #[test]
    fn a_forged_forwarding_line_is_not_believed() {
        let proxy: IpAddr = "10.0.0.1".parse().expect("ip");
        let find = |lines: &[&'static str]| {
            let mut map = HeaderMap::new();
            for line in lines {
                map.append("x-forwarded-for", http::HeaderValue::from_static(line));
            }
            forwarded_for(&map, |ip| ip == proxy).map(|ip| ip.to_string())
        };
        assert_eq!(find(&["8.8.8.8"]).as_deref(), Some("8.8.8.8"));
        assert_eq!(find(&["1.1.1.1, 8.8.8.8, 10.0.0.1"]).as_deref(), Some("8.8.8.8"));
        assert_eq!(find(&["1.1.1.1", "8.8.8.8"]).as_deref(), Some("8.8.8.8"), "the client's own line comes first");
        assert_eq!(find(&["1.1.1.1, 8.8.8.8:4711"]), None, "an entry that is no address ends the search");
        assert_eq!(find(&["::ffff:8.8.8.8"]).as_deref(), Some("8.8.8.8"));
    }

    #[test]
    fn a_single_address_is_a_range_of_one() {
        let one = network("10.1.2.3").expect("an address");
        assert!(one.contains(&"10.1.2.3".parse::<IpAddr>().expect("ip")));
        assert!(!one.contains(&"10.1.2.4".parse::<IpAddr>().expect("ip")));
        assert!(network("10.0.0.0/8").expect("a range").contains(&"10.200.0.1".parse::<IpAddr>().expect("ip")));
        assert!(network("nonsense").is_none());
    }
}
