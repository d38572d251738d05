//! What a new catalog changes, in words.

use super::catalog;
use tollgate_catalog::diff;

fn sold(input: u64, output: u64, hours: &str) -> String {
    format!(
        "[model.m]\nprice = {{ input = {input}, output = {output} }}\nroute = [{{ provider = 'p', upstream_model = 'm' }}]
[[model.m.tier]]\nname = 'night'\nwhen = [{{ dim = 'wall_clock', timezone = 'UTC', hours = {hours} }}]\nmultiplier = '1/2'"
    )
}

#[test]
fn a_change_is_listed_with_its_share() {
    let old = catalog(&sold(3_000_000, 15_000_000, "[0, 1, 2, 22]"));
    for (input, output, hours, want) in [
        (3_300_000, 15_000_000, "[0, 1, 2, 22]", &["input: 3 -> 3.3 USD per million tokens (+10 %)"][..]),
        (
            2_250_000,
            15_000_001,
            "[0, 1, 2, 22]",
            &[
                "input: 3 -> 2.25 USD per million tokens (-25 %)",
                "output: 15 -> 15.000001 USD per million tokens (less than 0.01 %)",
            ],
        ),
        (3_000_000, 15_000_000, "[1, 2]", &["tier night: when hours 1-2 in UTC (was hours 0-2,22 in UTC)"]),
    ] {
        let new = catalog(&sold(input, output, hours));
        let lines: Vec<String> = diff(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(lines, want);
    }
    assert_eq!(
        old.models["m"].in_words().lines().last(),
        Some("  tier night, when hours 0-2,22 in UTC: 1/2 times the base price")
    );
}
