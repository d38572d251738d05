//! Who is asking: the key and the account behind a request, the person who is signed in, or the
//! operator.

pub mod caller;
pub mod client_secret;
pub mod holder;
pub mod key_cache;
pub mod operator;
pub mod person;

use crate::settings::PeopleSettings;
use crate::world::World;
use http::request::Parts;
use ipnet::IpNet;
use key_cache::KeyCache;
use tollgate_store::Store;

/// What is needed to tell who asks.
#[derive(Clone, Copy)]
pub struct Register<'a> {
    pub keys: &'a KeyCache,
    pub store: &'a Store,
    pub world: &'a World,
    /// Proxies whose word about a client's address counts.
    pub trusted: &'a [IpNet],
    pub people: &'a PeopleSettings,
    /// Nothing is noted of it: a page that stays open is nobody who is there.
    pub quiet: bool,
}

impl Register<'_> {
    /// The same, for a look that is no use of a session.
    pub fn quietly(self) -> Self {
        Register { quiet: true, ..self }
    }
}

/// What a request proves itself with, hashed: its key, or the cookie of a session.
pub fn proof(people: &PeopleSettings, parts: &Parts) -> Option<[u8; 32]> {
    match caller::presents_key(&parts.headers) {
        true => caller::presented(parts).ok().map(key_cache::hash),
        false => person::presented(people, &parts.headers),
    }
}
