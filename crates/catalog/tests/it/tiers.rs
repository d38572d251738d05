//! Which tiers can still apply when the length of the input is not known yet, and times that are
//! none.

use super::catalog;
use serde_json::json;
use tollgate_catalog::{PriceFacts, Snapshot};

pub const CATALOG: &str = r#"
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
fn a_time_outside_the_calendar_is_a_refusal() {
    let catalog = catalog(CATALOG);
    let price = catalog.models["peak"].price(&PriceFacts::at(i64::MAX));
    assert_eq!(price.unwrap_err().to_string(), "the time of the call is outside the calendar");
}

fn dearest(catalog: &Snapshot, model: &str, facts: &PriceFacts<'_>) -> String {
    let price = catalog.models[model].dearest(facts).expect("a price");
    let faces: Vec<String> = price.faces.iter().take(2).map(|(face, n)| format!("{}={n}", face.name())).collect();
    format!("{}: {}", price.tier.as_deref().unwrap_or("-"), faces.join(" "))
}

#[test]
fn the_hold_takes_the_dearest_tier_that_can_still_apply() {
    let catalog = catalog(CATALOG);
    let short = PriceFacts { context_len: 50, context_max: 90, ..PriceFacts::at(0) };
    let open = PriceFacts { context_len: 50, ..PriceFacts::at(0) };
    assert_eq!(dearest(&catalog, "long", &short), "-: input=1000000 output=2000000");
    assert_eq!(dearest(&catalog, "long", &open), "long_context: input=2000000 output=3000000");
    let priority = |path: &str| (path == "service_tier").then(|| "priority".to_owned());
    let short_priority = PriceFacts { attr: &priority, ..short };
    let open_priority = PriceFacts { attr: &priority, ..open };
    assert_eq!(dearest(&catalog, "long", &short_priority), "priority: input=4000000 output=8000000");
    assert_eq!(dearest(&catalog, "long", &open_priority), "priority_long_context: input=8000000 output=16000000");
    // Neither is dearer in everything: the bound takes the dearer of each face.
    assert_eq!(dearest(&catalog, "crossing", &open), "dearest of long and base: input=5000000 output=9000000");
    assert_eq!(dearest(&catalog, "crossing", &short), "-: input=5000000 output=1000000");
}

#[test]
fn a_tier_says_which_facts_met_its_conditions() {
    let catalog = catalog(CATALOG);
    let priority = |path: &str| (path == "service_tier").then(|| "priority".to_owned());
    let long = PriceFacts { context_len: 200_001, attr: &priority, ..PriceFacts::at(0) };
    let price = catalog.models["long"].price(&long).expect("a price");
    assert_eq!(
        price.why(0, 200_001),
        [
            json!({"dim": "request_attr", "path": "service_tier", "equals": "priority", "fact": "priority"}),
            json!({"dim": "context_len", "context_len_gt": 200_000, "fact": 200_001}),
        ]
    );
    // A Sunday in Shanghai, while it is still Saturday in Greenwich.
    let sunday = 1_767_456_000_000 + 59_000;
    let price = catalog.models["peak"].price(&PriceFacts::at(sunday)).expect("a price");
    assert_eq!(
        price.why(sunday, 0),
        [
            json!({"dim": "wall_clock", "timezone": "Asia/Shanghai", "weekdays": [7], "fact": "Sun 2026-01-04 00:00:59 +08:00"})
        ]
    );
    assert_eq!(
        catalog.models["long"].price(&PriceFacts::at(0)).expect("a price").why(0, 0),
        [] as [serde_json::Value; 0]
    );
}
