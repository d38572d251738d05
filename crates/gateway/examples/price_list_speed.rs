//! How long the price list of a large catalog takes, and the counting of a call for route health:
//!
//!     cargo run --profile dist -p tollgate-gateway --example price_list_speed
//!
//! One thread, no traffic. Fails when a figure is above its bar.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tollgate_catalog::{RouteHealth, load};
use tollgate_gateway::routes::switches::PausedNames;
use tollgate_gateway::routes::traffic::{SeenCall, Traffic};
use tollgate_gateway::sale::Serving;
use tollgate_gateway::sale::price_list::{PriceList, Viewer};
use tollgate_gateway::sale::price_page::Packing;
use tollgate_store::AccountId;

const MODELS: usize = 5_000;
const LIST_BAR: Duration = Duration::from_millis(2);
const COUNT_BAR: Duration = Duration::from_micros(1);
const ROUNDS: u32 = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let catalog = load(&[("models.toml".to_owned(), models())]).expect("a catalog");
    let serving = Arc::new(Serving {
        catalog,
        providers: foldhash::HashMap::default(),
        offers: HashMap::new(),
        workflows: Default::default(),
        served: Vec::new(),
        text: Default::default(),
    });
    let list = PriceList::default();
    let first = Instant::now();
    let page =
        list.page(&serving, Viewer::Anybody, 0, PausedNames::default()).await.unwrap_or_else(|_| panic!("no list"));
    println!("{:>10.1?}  writing the list of {MODELS} models, once per catalog and kind of viewer", first.elapsed());
    let health: HashMap<String, RouteHealth> = (0..MODELS)
        .map(|at| {
            (format!("model-{at:04}"), RouteHealth { window_hours: 24, sample_size: 100, good: 99, last_at_ms: 0 })
        })
        .collect();
    let spliced = Instant::now();
    let body = page.whole(1, &health);
    println!("{:>10.1?}  putting health into its {} KiB, once a minute", spliced.elapsed(), body.body.len() / 1024);
    for packing in [Packing::Gzip, Packing::Brotli] {
        let packed = Instant::now();
        let length = body.pack(packing).len();
        println!("{:>10.1?}  {packing:?}, {} KiB, once a minute where asked for", packed.elapsed(), length / 1024);
    }
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let page =
            list.page(&serving, Viewer::Anybody, 0, PausedNames::default()).await.unwrap_or_else(|_| panic!("no list"));
        let body = page.whole(1, &health);
        black_box((body.ready(Packing::Gzip), body.tag(Packing::Gzip), body.known_by("\"other\"")));
    }
    let read = began.elapsed() / ROUNDS;
    let counted = counting();
    let mut met = true;
    for (name, took, bar) in
        [("the list from memory", read, LIST_BAR), ("counting a call of 5,000 × 3 routes", counted, COUNT_BAR)]
    {
        let fine = took <= bar;
        met &= fine;
        println!("{took:>10.1?}  {name} (bar {bar:?}) {}", if fine { "met" } else { "NOT MET" });
    }
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A call and its route, over all models in turns.
fn counting() -> Duration {
    let traffic = Traffic::default();
    let names: Vec<String> = (0..MODELS).map(|at| format!("model-{at:04}")).collect();
    let count = |at: usize| {
        let seen = SeenCall {
            account: AccountId([7; 16]),
            good: !at.is_multiple_of(9),
            first_byte_ms: 300,
            at: 1_700_000_000_000,
        };
        let name = &names[at % MODELS];
        traffic.call(name, seen);
        traffic.attempt(name, ["one", "two", "three"][at / MODELS % 3], "upstream", seen);
    };
    (0..3 * MODELS).for_each(count);
    let calls = 300_000;
    let began = Instant::now();
    (0..calls).for_each(count);
    black_box(traffic.take());
    began.elapsed() / u32::try_from(calls).unwrap_or(u32::MAX)
}

fn models() -> String {
    let mut text = String::new();
    for at in 0..MODELS {
        let _ = write!(
            text,
            r#"
[model."model-{at:04}"]
description = "Model number {at} of a large catalog, with a description of the usual length for such things."
context_window = 1_000_000
max_output_tokens = 65_536
input_modalities = ["text", "image"]
output_modalities = ["text"]
tags = ["chat", "vision", "tools"]
price = {{ input = 3_000_000, output = 15_000_000, cache_read = 300_000 }}
paid = {{ input = 2_000_000, output = 10_000_000, cache_read = 200_000 }}
list = {{ price = {{ input = 3_000_000, output = 15_000_000 }}, source = "https://example.com/prices", verified_at = 2026-11-16 }}
route = [{{ provider = "one", upstream_model = "m" }}, {{ provider = "two", upstream_model = "m" }}, {{ provider = "three", upstream_model = "m" }}]
"#
        );
    }
    text
}
