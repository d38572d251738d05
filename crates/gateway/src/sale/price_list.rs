//! The public price list, written once per catalog and kind of viewer: a catalog of thousands of
//! models is not put into JSON anew for everybody who asks.

use crate::refusal::Refusal;
use crate::sale::Serving;
use bytes::Bytes;
use http::HeaderValue;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tollgate_catalog::{CatalogRecord, View};
use tollgate_wire::error::Code;

/// More kinds of viewers than this are not remembered.
const MAX_PAGES: usize = 64;

/// Types of endpoints, each with the method and the path by which it is asked.
pub type Served = [(&'static str, &'static str, &'static str)];

#[derive(Default)]
pub struct PriceList(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    /// The catalog these pages are of. A new one makes all of them old.
    of: Weak<Serving>,
    by_viewer: HashMap<Viewer, Arc<PriceListPage>>,
}

/// For whom the list is written. Everybody with the same groups sees the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Viewer {
    Anybody,
    Account { groups: Vec<String>, topped_up: bool },
}

pub struct PriceListPage {
    pub body: Bytes,
    pub etag: HeaderValue,
}

/// As new-api writes it, so that its clients and gateways that copy prices from a peer read ours.
#[derive(Serialize)]
struct List<'a> {
    success: bool,
    pricing_version: &'a str,
    /// The viewer's groups in the order they are tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a [&'a str]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paid_prices: Option<bool>,
    supported_endpoint: BTreeMap<&'static str, Offered>,
    #[serde(flatten)]
    catalog: CatalogRecord<'a>,
}

/// How a type of endpoint is asked.
#[derive(Serialize)]
struct Offered {
    path: &'static str,
    method: &'static str,
}

impl PriceList {
    pub fn page(&self, serving: &Arc<Serving>, viewer: Viewer, served: &Served) -> Result<Arc<PriceListPage>, Refusal> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !Weak::ptr_eq(&pages.of, &Arc::downgrade(serving)) {
            *pages = Pages { of: Arc::downgrade(serving), by_viewer: HashMap::new() };
        }
        if let Some(page) = pages.by_viewer.get(&viewer) {
            return Ok(page.clone());
        }
        // Written under the lock: whoever asks for the same waits for it instead of writing it
        // again.
        let page = Arc::new(written(serving, &viewer, served)?);
        if pages.by_viewer.len() < MAX_PAGES {
            pages.by_viewer.insert(viewer, page.clone());
        }
        Ok(page)
    }
}

fn written(serving: &Serving, viewer: &Viewer, served: &Served) -> Result<PriceListPage, Refusal> {
    let catalog = &serving.catalog;
    let groups: Vec<&str> = match viewer {
        Viewer::Anybody => catalog.public_groups(),
        Viewer::Account { groups, .. } => catalog.in_order(groups).collect(),
    };
    let (view, paid) = match viewer {
        Viewer::Anybody => (View::of_anybody(&groups), None),
        Viewer::Account { topped_up, .. } => {
            (View { groups: &groups, topped_up: *topped_up, known: true }, Some(*topped_up))
        }
    };
    let list = List {
        success: true,
        pricing_version: &catalog.pricing_version,
        groups: paid.map(|_| &groups[..]),
        paid_prices: paid,
        supported_endpoint: served.iter().map(|(kind, method, path)| (*kind, Offered { path, method })).collect(),
        catalog: catalog.record(&view),
    };
    let failed = |_| Refusal::new(Code::Internal, "The price list could not be written.");
    let body = Bytes::from(serde_json::to_vec(&list).map_err(failed)?);
    let digest = Sha256::digest(&body);
    let mut etag = String::from("\"");
    for byte in &digest[..12] {
        let _ = write!(etag, "{byte:02x}");
    }
    etag.push('"');
    let etag = HeaderValue::try_from(etag).map_err(|_| Refusal::new(Code::Internal, "The list has no name."))?;
    Ok(PriceListPage { body, etag })
}
