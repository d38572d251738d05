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
}
