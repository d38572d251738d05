//! Who is asking: the key and the account behind a request, or the operator.

pub mod caller;
pub mod keys;
pub mod operator;

use crate::world::World;
use ipnet::IpNet;
use keys::KeyBook;
use tollgate_store::Store;

/// What is needed to tell who asks.
#[derive(Clone, Copy)]
pub struct Register<'a> {
    pub keys: &'a KeyBook,
    pub store: &'a Store,
    pub world: &'a World,
    /// Proxies whose word about a client's address counts.
    pub trusted: &'a [IpNet],
}
