//! Charges, row by row: over all units, tiers, groups, prices for paying accounts, roundings and
//! edges of the calendar.

use std::path::Path;
use std::process::Command;

use super::{catalog, table};

const SHOP: &str = include_str!("../tables/shop.toml");
const UNITS: &str = include_str!("../tables/units.txt");
const GROUPS: &str = include_str!("../tables/groups.txt");
const TIERS: &str = include_str!("../tables/tiers.txt");
const CLOCK: &str = include_str!("../tables/clock.txt");
const EDGES: &str = include_str!("../tables/edges.txt");

fn check(rows: &str) -> usize {
    table::check(&catalog(SHOP), rows)
}

#[test]
fn every_unit_is_charged_as_the_table_says() {
    assert!(check(UNITS) >= 50);
}

#[test]
fn groups_and_paying_accounts_have_their_own_prices() {
    assert!(check(GROUPS) >= 30);
}

#[test]
fn the_first_tier_whose_conditions_all_hold_applies() {
    assert!(check(TIERS) >= 20);
}

#[test]
fn wall_clock_tiers_follow_local_time_over_daylight_saving_midnight_and_leap_days() {
    assert!(check(CLOCK) >= 60);
}

#[test]
fn charges_are_rounded_up_once_and_refused_rather_than_wrapped() {
    assert!(check(EDGES) >= 25);
}

#[test]
fn there_are_at_least_120_rows() {
    let rows: usize = [UNITS, GROUPS, TIERS, CLOCK, EDGES].into_iter().map(check).sum();
    assert!(rows >= 120, "{rows}");
}

/// The same tables, computed by Python with its own fractions and time zones: what both say is not
/// a mistake of one.
#[test]
fn an_independent_calculation_comes_to_the_same_sums() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables/sums.py");
    let output = Command::new("python3").arg(script).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
