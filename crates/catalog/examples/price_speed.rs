//! How long a price takes, and how long the reading of a large catalog: the two figures
//! `make bench` holds to their bars.
//!
//!     cargo run --profile dist -p tollgate-catalog --example price_speed

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tollgate_catalog::{Face, Model, PriceFacts, Quantities, Snapshot, load, load_again};

const MODELS: usize = 5_000;
const PRICE_BAR: Duration = Duration::from_micros(1);
const LOAD_BAR: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let files = catalog();
    if std::env::args().any(|a| a == "--dump") {
        print!("{}", files.iter().map(|(_, t)| t.as_str()).collect::<String>());
        return ExitCode::SUCCESS;
    }
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    let first = (0..5).map(|_| timed(|| drop(black_box(read(&files))))).collect();
    let snapshot = read(&files);
    let again = reloads(&files, &snapshot);
    let model = snapshot.model("model-4999").expect("the last model");
    assert_eq!(model.book_at(0).tiers.len(), 6);
    println!("{MODELS} models, {} KiB of TOML, {} tiers each", bytes / 1024, model.book_at(0).tiers.len());
    let figures = [
        ("a price with six tiers, none of which applies", price(model, "default", 100), PRICE_BAR),
        ("the same, and the charge of a call", charge(model), PRICE_BAR),
        ("the bound of a call over six tiers", bound(model), PRICE_BAR),
        ("a reload of 5,000 models, one price and one line changed", again, LOAD_BAR),
    ];
    println!("{:>8}  {:<58} {:>10.1?}", "", "reading all of them for the first time, at the start", median(first));
    let mut all = true;
    for (name, took, bar) in figures {
        let met = took <= bar;
        all &= met;
        println!("{:>8}  {name:<58} {took:>10.1?}  (bar ≤ {bar:?})", if met { "met" } else { "NOT met" });
    }
    if all { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn facts<'a>(attr: &'a dyn Fn(&str) -> Option<String>, at_ms: i64, context_len: u64) -> PriceFacts<'a> {
    PriceFacts { at_ms, context_len, context_max: context_len, attr, topped_up: true, group: "partner" }
}

fn price(model: &Model, tier: &'static str, context_len: u64) -> Duration {
    let attr = move |path: &str| (path == "service_tier").then(|| tier.to_owned());
    each(|n| drop(black_box(model.price(&facts(&attr, AT + n, context_len)).expect("a price"))))
}

fn charge(model: &Model) -> Duration {
    let attr = |path: &str| (path == "service_tier").then(|| "default".to_owned());
    let used = Quantities::NONE.with(Face::Input, 1_000).with(Face::CacheRead, 2_000).with(Face::Output, 300);
    each(|n| {
        let price = model.price(&facts(&attr, AT + n, 3_000)).expect("a price");
        black_box(price.charge(black_box(&used)).expect("a charge"));
    })
}

fn bound(model: &Model) -> Duration {
    let attr = |path: &str| (path == "service_tier").then(|| "default".to_owned());
    let need = Quantities::NONE.with(Face::Input, 3_000).with(Face::Output, 16_384);
    each(|n| {
        let facts = PriceFacts { context_max: 1_000_000, ..facts(&attr, AT + n, 3_000) };
        black_box(model.bound(&facts, |_| Ok(need)).expect("a bound"));
    })
}

/// A Saturday afternoon in Shanghai; calls follow each other by a millisecond.
const AT: i64 = 1_781_330_400_000;

/// The median of fifty runs, per call.
fn each(mut one: impl FnMut(i64)) -> Duration {
    const CALLS: u32 = 20_000;
    let runs = (0..50).map(|_| timed(|| (0..i64::from(CALLS)).for_each(&mut one)) / CALLS).collect();
    median(runs)
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut runs: Vec<Duration>) -> Duration {
    runs.sort_unstable();
    runs[runs.len() / 2]
}

fn read(files: &[(String, String)]) -> Snapshot {
    load(files).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]))
}

/// The median of reading again after a price and a line near the beginning of the first file
/// changed: every later line moves and every price gets another version.
fn reloads(files: &[(String, String)], before: &Snapshot) -> Duration {
    let mut files = files.to_vec();
    let text = files[1].1.clone();
    let mut known = before.clone();
    let runs = (1..12).map(|run| {
        let changed = format!("{}price = {{ input = {}", "# changed\n".repeat(run), 2_000_000 + run);
        files[1].1 = text.replacen("price = { input = 1000000", &changed, 1);
        let begin = Instant::now();
        let next = load_again(&files, &["sim", "other"], &known).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let took = begin.elapsed();
        assert_ne!(next.pricing_version(0), known.pricing_version(0));
        known = next;
        took
    });
    median(runs.collect())
}

/// Ten files of 500 models, each with prices for paying accounts, a vendor's list, two routes and
/// six tiers.
fn catalog() -> Vec<(String, String)> {
    let mut files = vec![(
        "groups.toml".to_owned(),
        "auto_groups = [\"default\", \"partner\"]\n[group.partner]\nmultiplier = \"0.8\"\n".to_owned(),
    )];
    for file in 0..10 {
        let mut text = String::new();
        for at in file * (MODELS / 10)..(file + 1) * (MODELS / 10) {
            let _ = write!(text, "{}", model(at));
        }
        files.push((format!("models-{file}.toml"), text));
    }
    files
}

fn model(at: usize) -> String {
    let price = 1_000_000 + at;
    let faces = |price: usize| {
        format!(
            "{{ input = {price}, output = {}, cache_read = {}, cache_write = {}, cache_write_1h = {} }}",
            price * 5,
            price / 10,
            price * 5 / 4,
            price * 2
        )
    };
    format!(
        r#"
[model."model-{at}"]
description = "Model number {at} of a large catalog, with a description of the usual length for such things."
type = "llm"
context_window = 1_000_000
max_output_tokens = 65_536
input_modalities = ["text", "image"]
output_modalities = ["text"]
reasoning_efforts = ["low", "medium", "high"]
tags = ["chat", "vision", "tools"]
owner_by = "Vendor {}"
vendor_id = {}
enable_groups = ["default", "partner"]
supported_endpoint_types = ["openai", "anthropic", "openai-response"]
capabilities = ["text-multimodal"]
tasks = ["chat", "reasoning", "vision"]
price = {}
paid = {}
route = [
  {{ provider = "sim", upstream_model = "upstream-{at}", priority = 0, weight = 3 }},
  {{ provider = "other", upstream_model = "upstream-{at}", priority = 1 }},
]
[model."model-{at}".list]
source = "https://example.com/pricing"
verified_at = 2026-01-15
price = {{ input = {price}, output = {} }}
[[model."model-{at}".tier]]
name = "priority_long_context"
when = [{{ dim = "request_attr", path = "service_tier", equals = "priority" }}, {{ dim = "context_len", context_len_gt = 200_000 }}]
price = {}
[[model."model-{at}".tier]]
name = "priority"
when = [{{ dim = "request_attr", path = "service_tier", equals = "priority" }}]
multiplier = "7/4"
[[model."model-{at}".tier]]
name = "flex"
when = [{{ dim = "request_attr", path = "service_tier", equals = "flex" }}]
multiplier = "1/2"
[[model."model-{at}".tier]]
name = "peak"
when = [{{ dim = "wall_clock", timezone = "Asia/Shanghai", weekdays = [1, 2, 3, 4, 5], hours = [9, 10, 11, 14, 15, 16, 17] }}]
multiplier = "3/2"
[[model."model-{at}".tier]]
name = "night"
when = [{{ dim = "wall_clock", timezone = "America/New_York", hours = [0, 1, 2] }}]
multiplier = "3/4"
[[model."model-{at}".tier]]
name = "long_context"
when = [{{ dim = "context_len", context_len_gt = 200_000 }}]
price = {}
"#,
        at % 40,
        at % 40,
        faces(price),
        faces(price * 9 / 10),
        price * 5,
        faces(price * 4),
        faces(price * 2),
    )
}
