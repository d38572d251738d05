//! Addresses that a request names: which of them may be passed on to a provider, and how what they
//! lead to is fetched.

use crate::settings::FetchSettings;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tollgate_upstream::Client;

#[derive(Clone)]
pub struct Fetcher {
    /// Reaches what lies outside, and what the operator allows beside it.
    pub client: Client,
    /// How many files may be fetched at once.
    pub turns: Arc<Semaphore>,
    pub settings: FetchSettings,
    /// With its files in it a request is no longer than this.
    pub body_bytes: usize,
}
