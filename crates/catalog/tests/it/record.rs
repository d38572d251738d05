//! The public record: ratios come from the faces, exactly.

use super::catalog;
use serde_json::{Value, json};
use tollgate_catalog::{RouteHealth, Snapshot, View};

const CATALOG: &str = r#"
[group.partner]
multiplier = "0.8"
[model.chat]
description = "A model"
context_window = 128_000
tags = ["a", "b"]
enable_groups = ["default", "partner"]
price = { input = 3_000_000, output = 15_000_000, cache_read = 300_000, cache_write = 3_750_000 }
paid = { input = 2_500_000, output = 10_000_000, cache_read = 250_000, cache_write = 2_500_000 }
route = [{ provider = "sim", upstream_model = "m" }, { provider = "sim", upstream_model = "n" }]
[model.chat.list]
source = "https://example.com"
verified_at = 2026-01-15
currency = "CNY"
usd_rate = "1/7"
price = { input = 28_000_000, output = 70_000_000 }
[[model.chat.tier]]
name = "pro"
when = [{ dim = "request_attr", path = "mode", equals = "pro" }, { dim = "wall_clock", timezone = "Asia/Tokyo", weekdays = [6, 7] }]
multiplier = "133/100"
[model.third]
price = { input = 3, output = 10 }
route = [{ provider = "sim", upstream_model = "m" }]
list = { source = "s", price = { input = 3, output = 0, cache_read = 9 } }
[group.inner]
multiplier = "1/3"
[model.inner]
enable_groups = ["inner"]
billing_unit = "per_call"
price = { per_call = 2_500 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.ears]
billing_unit = "audio_duration"
supported_endpoint_types = ["audio-transcription"]
price = { input = 6_000_000 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.voice]
input_modalities = ["audio"]
output_modalities = ["audio"]
route = [{ provider = "sim", upstream_model = "m" }]
[model.voice.price]
input = 4_000_000
output = 16_000_000
cache_read = 1_000_000
cache_write = 5_000_000
cache_write_1h = 8_000_000
image_input = 6_000_000
image_output = 7_000_000
audio_input = 32_000_000
audio_output = 64_000_000
per_call = 5
[model.film]
type = "video"
billing_unit = "per_second"
supported_endpoint_types = ["openai-video"]
price = { video_second = 120_000 }
route = [{ provider = "sim", upstream_model = "m" }]
list = { source = "s", price = { video_second = 100_000 } }
"#;

fn text(catalog: &Snapshot, model: &str, view: &View<'_>) -> String {
    serde_json::to_string(&catalog.models[model].record(catalog, view)).expect("JSON")
}

fn record(catalog: &Snapshot, model: &str) -> Value {
    serde_json::from_str(&text(catalog, model, &View::default())).expect("JSON")
}

#[test]
fn a_record_says_what_the_catalog_says() {
    let catalog = catalog(CATALOG);
    let record = record(&catalog, "chat");
    let text = text(&catalog, "chat", &View::default());
    for part in [
        r#""model_ratio":1.5"#,
        r#""completion_ratio":5"#,
        r#""cache_ratio":0.1"#,
        r#""create_cache_ratio":1.25"#,
        r#""quota_type":0"#,
        r#""billing_rate":1,"#,
        r#""billing_rate_source":"default""#,
        r#""tags":"a,b""#,
        r#""specs":"{\"type\":\"llm\",\"context_window\":128000}""#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("image_ratio"), "what has no price of its own has no ratio");
    assert_eq!(
        record["book_faces"],
        json!({
            "standard": {"input": 3_000_000, "output": 15_000_000, "cache_read": 300_000, "cache_write": 3_750_000},
            "paid": {"input": 2_500_000, "output": 10_000_000, "cache_read": 250_000, "cache_write": 2_500_000},
            "route_count": 2,
            "tier_count": 1,
            "has_request_condition": true,
            "has_time_condition": true,
            "tiers": [{
                "tier": "pro",
                "standard": {"input": 3_990_000, "output": 19_950_000, "cache_read": 399_000, "cache_write": 4_987_500},
                "paid": {"input": 3_325_000, "output": 13_300_000, "cache_read": 332_500, "cache_write": 3_325_000},
                "multiplier": "133/100",
                "when": [
                    {"dim": "request_attr", "path": "mode", "equals": "pro"},
                    {"dim": "wall_clock", "timezone": "Asia/Tokyo", "weekdays": [6, 7]},
                ],
            }],
        })
    );
    assert_eq!(record["pricing_version"], json!(catalog.pricing_version(0)));
}

#[test]
fn a_tier_says_when_it_applies() {
    let tier = |when: &str| {
        let text = format!(
            "[model.m]\nprice = {{ input = 1, output = 2 }}\nroute = [{{ provider = 'p', upstream_model = 'm' }}]\n[[model.m.tier]]\nname = 't'\nwhen = [{{ {when} }}]\nmultiplier = 2"
        );
        let mut faces = record(&catalog(&text), "m")["book_faces"].take();
        let has = [faces["has_request_condition"].take(), faces["has_time_condition"].take()];
        (has, faces["tiers"][0]["when"][0].take())
    };
    let clock = tier("dim = 'wall_clock', timezone = 'UTC', hours = [0, 9, 23]");
    assert_eq!(clock, tier("dim = 'wall_clock', timezone = 'UTC', hours = [23, 9, 9, 0]"), "said twice is said");
    let twice = tier("dim = 'wall_clock', timezone = 'UTC', weekdays = [7, 1, 7]").1;
    assert_eq!(twice["weekdays"], json!([1, 7]));
    assert_eq!(
        clock,
        ([json!(false), json!(true)], json!({"dim": "wall_clock", "timezone": "UTC", "hours": [0, 9, 23]}))
    );
    let length = tier("dim = 'context_len', context_len_gt = 5");
    assert_eq!(length, ([json!(true), json!(false)], json!({"dim": "context_len", "context_len_gt": 5})));
}

#[test]
fn an_account_sees_its_own_prices() {
    let catalog = catalog(CATALOG);
    let view = View { groups: &["vip", "partner", "default"], topped_up: true, known: true, at_ms: 0 };
    for (model, parts) in [
        (
            "chat",
            [
                r#""model_ratio":1.25"#,
                r#""completion_ratio":4"#,
                r#""billing_rate":0.8"#,
                r#""billing_rate_source":"group:partner""#,
                r#""discount_pct":50"#,
            ],
        ),
        // Sold to everybody but not to partners as such: the next of the account's groups.
        (
            "third",
            [
                r#""billing_rate":1,"#,
                r#""billing_rate_source":"default""#,
                r#""quota_type":0"#,
                r#""model_price":0,"#,
                r#""enable_groups":["default"]"#,
            ],
        ),
    ] {
        let text = text(&catalog, model, &view);
        for part in parts {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
    assert!(catalog.models["inner"].record(&catalog, &view).is_none(), "sold to another group only");
}

#[test]
fn ratios_are_written_digit_by_digit_and_stop_at_twelve_places() {
    let catalog = catalog(CATALOG);
    let text = text(&catalog, "third", &View::default());
    assert!(text.contains(r#""completion_ratio":3.333333333333,"#), "{text}");
    assert!(text.contains(r#""model_ratio":0.0000015,"#), "{text}");
    // More digits than a float holds.
    let dear = "[model.m]\nprice = { input = 3, output = 1_000_000_000_000 }\nroute = [{ provider = 'p', upstream_model = 'm' }]";
    let catalog = super::catalog(dear);
    assert!(
        super::record::text(&catalog, "m", &View::default())
            .contains(r#""completion_ratio":333333333333.333333333333,"#)
    );
}

#[test]
fn every_ratio_comes_from_its_face() {
    let catalog = catalog(CATALOG);
    let record = record(&catalog, "voice");
    for (ratio, want) in [
        ("model_ratio", "2"),
        ("completion_ratio", "4"),
        ("cache_ratio", "0.25"),
        ("create_cache_ratio", "1.25"),
        ("image_ratio", "1.5"),
        ("audio_ratio", "8"),
        ("audio_completion_ratio", "2"),
    ] {
        assert_eq!(record[ratio].to_string(), want, "{ratio}");
    }
    let faces = &record["book_faces"]["standard"];
    assert_eq!(faces.as_object().map(serde_json::Map::len), Some(10), "{faces}");
    assert_eq!(faces["cache_write_1h"], json!(8_000_000));
}

#[test]
fn models_sold_by_the_unit_have_a_price_in_dollars() {
    let catalog = catalog(CATALOG);
    let film = record(&catalog, "film");
    assert_eq!(film["quota_type"], json!(1));
    assert_eq!(film["model_price"].to_string(), "0.12");
    assert_eq!(film["billing_unit"], json!("per_second"));
    assert_eq!(film["book_faces"]["paid"], json!(null));
    assert_eq!(film.get("completion_ratio"), None, "there is nothing to be relative to");
    // Converted to tokens, so priced like tokens; what comes out is free, and the faces say so.
    let ears = record(&catalog, "ears");
    assert_eq!((&ears["quota_type"], &ears["billing_unit"]), (&json!(0), &json!("audio_duration")));
    assert_eq!((ears["model_ratio"].to_string(), ears["completion_ratio"].to_string()), ("3".into(), "0".into()));
    assert_eq!(ears["book_faces"]["standard"], json!({"input": 6_000_000, "output": 0}));
}

#[test]
fn the_vendors_list_price_is_compared_not_typed_in() {
    let catalog = catalog(CATALOG);
    let list = &record(&catalog, "chat")["vendor_list"];
    assert_eq!(list["list_currency"], json!("CNY"));
    assert_eq!(list["list_input"].to_string(), "28");
    assert_eq!(list["list_input_usd"].to_string(), "4");
    assert_eq!(list["selling_usd"].to_string(), "3");
    assert_eq!(list["discount_pct"].to_string(), "25");
    assert_eq!(list["verdict"], json!("below_list"));
    assert_eq!(list["unit"], json!("1M tokens"));
    assert_eq!(list["list_source"], json!("https://example.com"));
    assert_eq!(list["verified_at"], json!("2026-01-15"));
    assert_eq!(
        list["faces"][1],
        json!({"face": "output", "list_usd": 10, "selling_usd": 15, "discount_pct": -50, "verdict": "above_list"})
    );
    assert_eq!(list["unverified_faces"], json!(["cache_read", "cache_write"]));
    // A kind of token the vendor lists and we do not price apart is sold as ordinary input; a free
    // list price has no discount.
    let list = &record(&catalog, "third")["vendor_list"];
    assert_eq!(
        list["faces"],
        json!([
            {"face": "input", "list_usd": 0.000003, "selling_usd": 0.000003, "discount_pct": 0, "verdict": "at_list"},
            {"face": "output", "list_usd": 0, "selling_usd": 0.00001, "discount_pct": null, "verdict": "above_list"},
            {"face": "cache_read", "list_usd": 0.000009, "selling_usd": 0.000003, "discount_pct": 66.66, "verdict": "below_list"},
        ])
    );
    assert_eq!(list["verdict"], json!("at_list"));
    let film = &record(&catalog, "film")["vendor_list"];
    assert_eq!((&film["unit"], film["selling_usd"].to_string()), (&json!("second"), "0.12".into()));
}

#[test]
fn the_catalog_is_the_list_of_records() {
    let catalog = catalog(CATALOG);
    let mut whole = catalog.record(&View::default());
    let health = RouteHealth { window_hours: 24, sample_size: 3, good: 2, last_at_ms: 1_700_000_000_123 };
    whole.data[0].route_health = Some(health);
    let whole = serde_json::to_value(&whole).expect("JSON");
    assert_eq!(whole["auto_groups"], json!(["default"]));
    let names: Vec<&str> =
        whole["data"].as_array().expect("models").iter().filter_map(|one| one["model_name"].as_str()).collect();
    assert_eq!(names, ["chat", "ears", "film", "third", "voice"]);
    assert_eq!(
        whole["data"][0]["route_health"],
        json!({
            "window_hours": 24, "sample_size": 3, "success_ratio": 0.6666, "last_checked_at": "2023-11-14T22:13:20Z",
        })
    );
}
