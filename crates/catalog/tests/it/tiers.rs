//! Which tier applies: length, parameters, and the clock on the wall of the tier's own place.

use super::{catalog, table};
use tollgate_catalog::{Facts, Snapshot};

const CATALOG: &str = r#"
[model.long]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.long.tier]]
name = "priority_long_context"
when = [
  { dim = "request_attr", path = "service_tier", equals = "priority" },
  { dim = "context_len", context_len_gt = 200_000 },
]
price = { input = 8_000_000, output = 16_000_000 }
[[model.long.tier]]
name = "priority"
when = [{ dim = "request_attr", path = "service_tier", equals = "priority" }]
price = { input = 4_000_000, output = 8_000_000 }
paid = { input = 3_000_000, output = 6_000_000 }
[[model.long.tier]]
name = "long_context"
when = [{ dim = "context_len", context_len_gt = 200_000 }]
price = { input = 2_000_000, output = 3_000_000 }

[model.peak]
price = { input = 1_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.peak.tier]]
name = "peak"
when = [{ dim = "wall_clock", timezone = "Europe/Berlin", weekdays = [1, 2, 3, 4, 5], hours = [9, 10, 11] }]
multiplier = 2
[[model.peak.tier]]
name = "night"
when = [{ dim = "wall_clock", timezone = "Europe/Berlin", hours = [2] }]
multiplier = "1/2"
[[model.peak.tier]]
name = "sunday"
when = [{ dim = "wall_clock", timezone = "Asia/Shanghai", weekdays = [7] }]
multiplier = "3/4"

[model.crossing]
price = { input = 5_000_000, output = 1_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.crossing.tier]]
name = "long"
when = [{ dim = "context_len", context_len_gt = 100 }]
price = { input = 1_000_000, output = 9_000_000 }
"#;

#[test]
fn the_first_tier_whose_conditions_all_hold_applies() {
    table::check(
        &catalog(CATALOG),
        "
        long |                                  | input=1_000_000 | - | 1
        long | ctx=200_000                      | input=1_000_000 | - | 1
        long | ctx=200_001                      | input=1_000_000 | long_context | 2
        long | service_tier=priority            | input=1_000_000 | priority | 4
        long | service_tier=priority topped-up  | input=1_000_000 | priority | 3
        long | service_tier=Priority            | input=1_000_000 | - | 1
        long | service_tier=flex ctx=300_000    | input=1_000_000 | long_context | 2
        long | service_tier=priority ctx=300_000 | input=1_000_000 | priority_long_context | 8
        long | service_tier=priority ctx=300_000 topped-up | input=1_000_000 | priority_long_context | 8
        ",
    );
}

#[test]
fn wall_clock_tiers_follow_local_time_over_daylight_saving() {
    table::check(
        &catalog(CATALOG),
        "
        # Monday in winter: 09:00 in Berlin is 08:00 UTC
        peak | at=2026-01-05T07:59:59.999Z | input=1_000_000 | - | 1
        peak | at=2026-01-05T08:00:00Z     | input=1_000_000 | peak | 2
        peak | at=2026-01-05T10:59:59.999Z | input=1_000_000 | peak | 2
        peak | at=2026-01-05T11:00:00Z     | input=1_000_000 | - | 1
        # in summer it is 07:00 UTC
        peak | at=2026-07-06T06:59:59Z     | input=1_000_000 | - | 1
        peak | at=2026-07-06T07:00:00Z     | input=1_000_000 | peak | 2
        peak | at=2026-07-06T10:00:00Z     | input=1_000_000 | - | 1
        # the last Friday before the change and the first Monday after it
        peak | at=2026-03-27T08:00:00Z     | input=1_000_000 | peak | 2
        peak | at=2026-03-30T07:00:00Z     | input=1_000_000 | peak | 2
        peak | at=2026-03-27T07:00:00Z     | input=1_000_000 | - | 1
        # Saturday has no peak
        peak | at=2026-01-10T09:00:00Z     | input=1_000_000 | - | 1
        # an ordinary night, hour 2
        peak | at=2026-01-06T01:00:00Z     | input=1_000_000 | night | 0.5
        peak | at=2026-01-06T00:59:59Z     | input=1_000_000 | - | 1
        # the night clocks go forward there is no hour 2: 01:59:59 is followed by 03:00 (a Sunday, also in Shanghai)
        peak | at=2026-03-29T00:59:59Z     | input=1_000_000 | sunday | 0.75
        peak | at=2026-03-29T01:00:00Z     | input=1_000_000 | sunday | 0.75
        # the night they go back there are two
        peak | at=2026-10-25T00:00:00Z     | input=1_000_000 | night | 0.5
        peak | at=2026-10-25T00:59:59Z     | input=1_000_000 | night | 0.5
        peak | at=2026-10-25T01:00:00Z     | input=1_000_000 | night | 0.5
        peak | at=2026-10-25T01:59:59Z     | input=1_000_000 | night | 0.5
        peak | at=2026-10-25T02:00:00Z     | input=1_000_000 | sunday | 0.75
        # Sunday begins in Shanghai at 16:00 UTC on Saturday; leap day 2032 is a Sunday
        peak | at=2026-01-10T15:59:59Z     | input=1_000_000 | - | 1
        peak | at=2026-01-10T16:00:00Z     | input=1_000_000 | sunday | 0.75
        peak | at=2026-01-11T15:59:59.999Z | input=1_000_000 | sunday | 0.75
        peak | at=2026-01-11T16:00:00Z     | input=1_000_000 | - | 1
        peak | at=2032-02-29T12:00:00Z     | input=1_000_000 | sunday | 0.75
        # month and year ends: New Year's Eve 2028 is a Sunday, in Berlin the year ends at 23:00 UTC
        peak | at=2028-12-31T15:59:59Z     | input=1_000_000 | sunday | 0.75
        peak | at=2029-01-01T08:30:00Z     | input=1_000_000 | peak | 2
        # before 1970
        peak | at=1969-12-31T23:59:59Z     | input=1_000_000 | - | 1
        ",
    );
}

#[test]
fn a_time_outside_the_calendar_is_a_refusal() {
    let catalog = catalog(CATALOG);
    let price = catalog.models["peak"].price(&Facts::at(i64::MAX));
    assert_eq!(price.unwrap_err().to_string(), "the time of the call is outside the calendar");
}

fn dearest(catalog: &Snapshot, model: &str, facts: &Facts<'_>) -> String {
    let price = catalog.models[model].dearest(facts).expect("a price");
    let faces: Vec<String> = price.faces.iter().take(2).map(|(face, n)| format!("{}={n}", face.name())).collect();
    format!("{}: {}", price.tier.as_deref().unwrap_or("-"), faces.join(" "))
}

#[test]
fn the_hold_takes_the_dearest_tier_that_can_still_apply() {
    let catalog = catalog(CATALOG);
    let short = Facts { context_len: 50, context_max: 90, ..Facts::at(0) };
    let open = Facts { context_len: 50, ..Facts::at(0) };
    assert_eq!(dearest(&catalog, "long", &short), "-: input=1000000 output=2000000");
    assert_eq!(dearest(&catalog, "long", &open), "long_context: input=2000000 output=3000000");
    let priority = |path: &str| (path == "service_tier").then(|| "priority".to_owned());
    let short_priority = Facts { attr: &priority, ..short };
    let open_priority = Facts { attr: &priority, ..open };
    assert_eq!(dearest(&catalog, "long", &short_priority), "priority: input=4000000 output=8000000");
    assert_eq!(dearest(&catalog, "long", &open_priority), "priority_long_context: input=8000000 output=16000000");
    // Neither is dearer in everything: the bound takes the dearer of each face.
    assert_eq!(dearest(&catalog, "crossing", &open), "dearest of long and base: input=5000000 output=9000000");
    assert_eq!(dearest(&catalog, "crossing", &short), "-: input=5000000 output=1000000");
}
