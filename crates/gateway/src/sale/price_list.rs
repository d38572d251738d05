//! The public price list, written once per catalog and kind of viewer: a catalog of thousands of
//! models is not put into JSON anew for everybody who asks.

use super::price_page::PricePage;
use crate::refusal::Refusal;
use crate::routes::switches::PausedNames;
use crate::sale::Serving;
use crate::world::Millis;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use tokio::sync::Mutex;
use tollgate_catalog::{CatalogRecord, View};
use tollgate_wire::error::Code;

/// Memory for the lists of all kinds of viewers; those that were read longest ago make room.
const MOST_BYTES: usize = 64 << 20;
const MOST_PAGES: usize = 64;

#[derive(Default)]
pub struct PriceList(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    /// The catalog these pages are of, and between which changes of its prices. Another one makes
    /// all of them old.
    of: Weak<Serving>,
    period: usize,
    /// What was paused when they were written: routes that take nothing are not counted.
    paused: PausedNames,
    by_viewer: HashMap<Viewer, (Arc<PricePage>, u64)>,
    reads: u64,
}

/// For whom the list is written. Everybody with the same groups sees the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Viewer {
    Anybody,
    Account { groups: Vec<String>, topped_up: bool },
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
    /// Its records are its last member.
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
    pub async fn page(
        &self,
        serving: &Arc<Serving>,
        viewer: Viewer,
        at_ms: Millis,
        paused: PausedNames,
    ) -> Result<Arc<PricePage>, Refusal> {
        // Whoever asks for the same waits for it instead of writing it again.
        let mut pages = self.0.lock().await;
        let period = serving.catalog.period(at_ms);
        let same = Weak::ptr_eq(&pages.of, &Arc::downgrade(serving)) && pages.period == period;
        if !same || pages.paused != paused {
            *pages = Pages { of: Arc::downgrade(serving), period, paused: paused.clone(), ..Pages::default() };
        }
        pages.reads += 1;
        let now = pages.reads;
        if let Some((page, read)) = pages.by_viewer.get_mut(&viewer) {
            *read = now;
            return Ok(page.clone());
        }
        let (catalog, of) = (serving.clone(), viewer.clone());
        let failed = || Refusal::new(Code::Internal, "The price list could not be written.");
        let written = tokio::task::spawn_blocking(move || written(&catalog, &of, at_ms, &paused)).await;
        let page = Arc::new(written.map_err(|_| failed())?.ok_or_else(failed)?);
        pages.make_room(page.weight());
        pages.by_viewer.insert(viewer, (page.clone(), now));
        Ok(page)
    }
}

impl Pages {
    /// Forgets what was read longest ago until another page has room.
    fn make_room(&mut self, needed: usize) {
        loop {
            let used: usize = self.by_viewer.values().map(|(page, _)| page.weight()).sum();
            if self.by_viewer.len() < MOST_PAGES && used + needed <= MOST_BYTES {
                return;
            }
            let oldest = self.by_viewer.iter().min_by_key(|(_, (_, read))| *read).map(|(viewer, _)| viewer.clone());
            let Some(oldest) = oldest else { return };
            self.by_viewer.remove(&oldest);
        }
    }
}

fn written(serving: &Serving, viewer: &Viewer, at_ms: Millis, paused: &PausedNames) -> Option<PricePage> {
    let (catalog, served) = (&serving.catalog, &serving.served);
    let groups: Vec<&str> = match viewer {
        Viewer::Anybody => catalog.public_groups(),
        Viewer::Account { groups, .. } => catalog.in_order(groups).collect(),
    };
    let (view, paid) = match viewer {
        Viewer::Anybody => (View::of_anybody(&groups, at_ms), None),
        Viewer::Account { topped_up, .. } => {
            (View { groups: &groups, topped_up: *topped_up, known: true, at_ms }, Some(*topped_up))
        }
    };
    let mut record = catalog.record(&view);
    let data = std::mem::take(&mut record.data);
    let head = List {
        success: true,
        pricing_version: catalog.pricing_version(at_ms),
        groups: paid.map(|_| &groups[..]),
        paid_prices: paid,
        supported_endpoint: served.iter().map(|(kind, method, path)| (*kind, Offered { path, method })).collect(),
        catalog: record,
    };
    let records = data.into_iter().map(|mut one| {
        let model = catalog.model(one.model_name)?.clone();
        one.count_routes(paused.open_routes(&model));
        Some((model, serde_json::to_vec(&one).ok()?))
    });
    Some(PricePage::new(&serde_json::to_vec(&head).ok()?, records.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn kinds_of_viewers_are_forgotten_before_they_are_many() {
        let catalog = tollgate_catalog::load(&[]).expect("nothing is wrong");
        let serving = Arc::new(Serving {
            catalog,
            providers: foldhash::HashMap::default(),
            offers: HashMap::new(),
            workflows: Default::default(),
            served: Vec::new(),
            text: Default::default(),
        });
        let list = PriceList::default();
        let viewer = |at: usize| Viewer::Account { groups: vec![format!("g{at}")], topped_up: false };
        let first =
            list.page(&serving, viewer(0), 0, PausedNames::default()).await.unwrap_or_else(|_| panic!("no page"));
        for at in 1..MOST_PAGES + 10 {
            list.page(&serving, viewer(at), 0, PausedNames::default()).await.unwrap_or_else(|_| panic!("no page"));
            // Whoever is asked for again and again stays.
            let again =
                list.page(&serving, viewer(0), 0, PausedNames::default()).await.unwrap_or_else(|_| panic!("no page"));
            assert!(Arc::ptr_eq(&first, &again), "{at}");
        }
        assert_eq!(list.0.lock().await.by_viewer.len(), MOST_PAGES);
        let mut pages = list.0.lock().await;
        pages.make_room(MOST_BYTES + 1);
        assert!(pages.by_viewer.is_empty(), "one that needs all the room gets it");
    }
}
