//! Signing in by an issuer of OpenID Connect: what a browser carries with it on the way there and
//! back. It is sealed into a cookie for some minutes, so whoever begins a million ways fills
//! nothing here.

use crate::secrets::Secrets;
use crate::settings::IssuerSettings;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tollgate_store::{IssuerSubject, PersonId, UsedWay};
use tollgate_upstream::{Issuer, IssuerWay};

/// How long somebody may be away at an issuer.
pub const WAY_MS: i64 = 10 * 60_000;
/// Ways that one browser has open at a time: with another one, the oldest is forgotten.
pub const MOST_WAYS: usize = 4;
/// Letters of what a way is called by.
const WAY_NAME: usize = 12;
/// Ways that wait for an issuer at a time.
const AT_ONCE: usize = 16;
const PURPOSE: &str = "issuer way";
const LONGEST_PAGE: usize = 500;

/// The issuers, and how many wait for them.
pub struct IssuerDesk {
    issuers: Vec<(IssuerSettings, Issuer)>,
    pub turns: Semaphore,
    secrets: Arc<Secrets>,
}

/// What a way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WayGoal {
    SignIn,
    /// Somebody who is signed in wants to sign in by it too.
    Link(PersonId),
    /// Somebody who is signed in proves again who they are.
    StepUp(PersonId),
}

/// What a browser carries, sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CarriedWay {
    pub name: String,
    pub goal: WayGoal,
    state: String,
    nonce: String,
    verifier: String,
    /// Where the browser goes afterwards: a page of ours.
    pub to: String,
    pub began_at: i64,
    /// Whom the issuer vouched for, where a second factor is still missing.
    pub vouched: Option<IssuerSubject>,
}

impl CarriedWay {
    pub fn new(name: &str, goal: WayGoal, to: String, now: i64, fill: impl Fn(&mut [u8])) -> CarriedWay {
        let random = || {
            let mut bytes = [0; 32];
            fill(&mut bytes);
            BASE64_URL_SAFE_NO_PAD.encode(bytes)
        };
        let (state, nonce, verifier) = (random(), random(), random());
        CarriedWay { name: name.to_owned(), goal, state, nonce, verifier, to, began_at: now, vouched: None }
    }

    pub fn way<'a>(&'a self, redirect_uri: &'a str) -> IssuerWay<'a> {
        let again = matches!(self.goal, WayGoal::StepUp(_));
        IssuerWay { redirect_uri, state: &self.state, nonce: &self.nonce, verifier: &self.verifier, again }
    }

    /// Whether an answer belongs to this way. By hashes: how much of a guess is right takes no
    /// measurable time.
    pub fn fits(&self, state: &str) -> bool {
        Sha256::digest(self.state.as_bytes()) == Sha256::digest(state.as_bytes())
    }

    /// What its cookie is called by.
    pub fn id(&self) -> String {
        way_name(&self.state)
    }

    /// It ends once.
    pub fn used(&self) -> UsedWay {
        UsedWay { hash: Sha256::digest(self.state.as_bytes()).into(), expires_at: self.began_at + WAY_MS }
    }
}

impl IssuerDesk {
    pub fn new(settings: &[IssuerSettings], secrets: Arc<Secrets>) -> IssuerDesk {
        let issuer = |one: &IssuerSettings| {
            let issuer = Issuer::new(&one.issuer, &one.client_id, one.client_secret.clone(), one.scopes.clone());
            // The settings were checked by the same function.
            issuer.ok().map(|issuer| (one.clone(), issuer.of_kind(one.kind).with_groups_in(one.groups_claim())))
        };
        let issuers = settings.iter().filter_map(issuer).collect();
        IssuerDesk { issuers, turns: Semaphore::new(AT_ONCE), secrets }
    }

    pub fn find(&self, name: &str) -> Option<&(IssuerSettings, Issuer)> {
        self.issuers.iter().find(|(settings, _)| settings.name == name)
    }

    pub fn all(&self) -> impl Iterator<Item = &IssuerSettings> {
        self.issuers.iter().map(|(settings, _)| settings)
    }

    pub fn sealed(&self, way: &CarriedWay, fill: impl FnOnce(&mut [u8])) -> Option<String> {
        let text = serde_json::to_vec(way).ok()?;
        Some(BASE64_URL_SAFE_NO_PAD.encode(self.secrets.seal(PURPOSE, "", &text, fill)?))
    }

    /// A way that is still open.
    pub fn opened(&self, cookie: &str, now: i64) -> Option<CarriedWay> {
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let way: CarriedWay = serde_json::from_slice(&self.secrets.open_sealed(PURPOSE, "", &sealed)?).ok()?;
        (0..WAY_MS).contains(&(now - way.began_at)).then_some(way)
    }
}

/// What the way with this state is called by. It says nothing of the state.
pub fn way_name(state: &str) -> String {
    let mut name = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest([b"way ", state.as_bytes()].concat()));
    name.truncate(WAY_NAME);
    name
}

/// Whether something is what a way is called by.
pub fn is_way_name(name: &str) -> bool {
    name.len() == WAY_NAME && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_".contains(&letter))
}

/// A page of ours, as a path: whatever a browser could take for another host is none.
pub fn is_own_page(to: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    to.starts_with('/')
        && !to.starts_with("//")
        && !to.starts_with("/api/")
        && to.len() <= LONGEST_PAGE
        && to.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_our_own_are_gone_to() {
        for good in ["/", "/keys", "/usage?from=1#x", "/a//b"] {
            assert!(is_own_page(good), "{good}");
        }
        for bad in [
            "",
            "keys",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "/api/session",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/\r\nSet-Cookie: a=b",
            " /x",
            "/ä",
        ] {
            assert!(!is_own_page(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_way_is_opened_in_its_time_by_its_own_seal() {
        let secrets = Arc::new(Secrets::read("an-old-secret-of-thirty-two-characters").expect("secrets"));
        let desk = IssuerDesk::new(&[], secrets);
        let way = CarriedWay::new("a", WayGoal::SignIn, "/".to_owned(), 1_000, |bytes| bytes.fill(3));
        let cookie = desk.sealed(&way, |nonce| nonce.fill(1)).expect("sealed");
        assert!(desk.opened(&cookie, 1_000).is_some_and(|way| way.fits(&way.state)));
        assert!(desk.opened(&cookie, 1_000 + WAY_MS).is_none() && desk.opened(&cookie, 999).is_none());
        assert!(desk.opened(&cookie[1..], 1_000).is_none());
        assert!(!way.fits("") && !way.fits("another"));
    }
}
