//! Measures the check of a social call's parameters:
//! `cargo run --release -p tollgate-catalog --example social_speed`. Fails when a call of any cell
//! needs 5 µs or more.

use std::hint::black_box;
use std::time::Instant;
use tollgate_catalog::load;
use tollgate_catalog::social::{Cell, ParamKind, SHIPPED};

const ROUNDS: u32 = 5_000;
const BAR_NS: u128 = 5_000;

/// Every parameter given, texts as long as their examples.
fn full_call(cell: &Cell) -> Vec<(String, String)> {
    let value = |param: &tollgate_catalog::social::Param| match param.kind {
        ParamKind::Text if !param.choices().is_empty() => param.choices()[0].clone(),
        ParamKind::Text => param.example.clone().unwrap_or_else(|| "7411193113223371043".to_owned()),
        ParamKind::Integer => param.min.unwrap_or(1).max(1).to_string(),
        ParamKind::Boolean => "true".to_owned(),
    };
    cell.params.iter().map(|param| (param.name.clone(), value(param))).collect()
}

fn main() {
    let files: Vec<(String, String)> = SHIPPED.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect();
    let start = Instant::now();
    let catalog = load(&files).expect("the shipped cells");
    println!("loading {} cells           {:>8} µs", catalog.social.cells().count(), start.elapsed().as_micros());
    let mut worst = (0, String::new());
    for cell in catalog.social.cells() {
        let call = full_call(cell);
        let mut best = u128::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                black_box(cell.check(black_box(&call)).expect("a good call"));
            }
            best = best.min(start.elapsed().as_nanos() / u128::from(ROUNDS));
        }
        worst = worst.max((best, cell.model.name.clone()));
    }
    println!("parameter check, slowest cell {:>6} ns  ({})", worst.0, worst.1);
    assert!(worst.0 < BAR_NS, "the bar is {BAR_NS} ns");
}
