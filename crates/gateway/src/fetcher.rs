//! Addresses that a request names: which of them may be passed on to a provider, and how what they
//! lead to is fetched.

use crate::settings::FetchSettings;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tollgate_upstream::{Client, Unfetched};

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

impl Fetcher {
    /// Why a link was not fetched, behind the name of its field.
    pub fn in_words(&self, why: Unfetched) -> String {
        let settings = &self.settings;
        match why {
            Unfetched::NotAnAddress => "is not an http(s) address".to_owned(),
            Unfetched::Personal => "must carry no user or password".to_owned(),
            Unfetched::Inside => "must lead to a public address".to_owned(),
            Unfetched::Unreachable => "cannot be fetched: its server cannot be reached".to_owned(),
            Unfetched::TooManyRedirects => "cannot be fetched: it leads from one address to another".to_owned(),
            Unfetched::Status(status) => format!("cannot be fetched: its server answered with {status}"),
            Unfetched::Encoded => "cannot be fetched: its server sends it compressed".to_owned(),
            Unfetched::TooLarge => format!("leads to more than {} bytes", settings.link_bytes),
            Unfetched::TooMuch => {
                let most = self.body_bytes;
                format!("makes the request larger than {most} bytes with the data of its links")
            }
            Unfetched::NotMedia => "leads to neither a picture (PNG, JPEG, GIF, WebP, HEIC) nor a PDF".to_owned(),
            Unfetched::Late => "cannot be fetched: it did not arrive in time".to_owned(),
        }
    }
}
