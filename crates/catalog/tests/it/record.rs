//! The public record: ratios come from the faces, exactly.

use super::catalog;
use serde_json::json;
use tollgate_catalog::View;

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
[model.film]
type = "video"
billing_unit = "per_second"
supported_endpoint_types = ["openai-video"]
price = { video_second = 120_000 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;

#[test]
fn a_record_says_what_the_catalog_says() {
    let catalog = catalog(CATALOG);
    let record = catalog.models["chat"].record(&catalog, &View::default());
    let text = record.to_string();
    for part in [
        r#""model_ratio":1.5"#,
        r#""completion_ratio":5"#,
        r#""cache_ratio":0.1"#,
        r#""create_cache_ratio":1.25"#,
        r#""quota_type":0"#,
        r#""billing_rate":1,"#,
        r#""billing_rate_source":"default""#,
        r#""tags":"a,b""#,
        r#""specs":"{\"context_window\":128000,\"type\":\"llm\"}""#,
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
                "when": [
                    {"dim": "request_attr", "path": "mode", "equals": "pro"},
                    {"dim": "wall_clock", "timezone": "Asia/Tokyo", "weekdays": [6, 7]},
                ],
            }],
        })
    );
    assert_eq!(record["pricing_version"], json!(catalog.pricing_version));
}

#[test]
fn an_account_sees_its_own_prices() {
    let catalog = catalog(CATALOG);
    let view = View { group: "partner", topped_up: true };
    let text = catalog.models["chat"].record(&catalog, &view).to_string();
    for part in [
        r#""model_ratio":1.25"#,
        r#""completion_ratio":4"#,
        r#""billing_rate":0.8"#,
        r#""billing_rate_source":"group:partner""#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn ratios_without_an_end_stop_at_twelve_places() {
    let catalog = catalog(CATALOG);
    let text = catalog.models["third"].record(&catalog, &View::default()).to_string();
    assert!(text.contains(r#""completion_ratio":3.333333333333,"#), "{text}");
    assert!(text.contains(r#""model_ratio":1.5e-6"#) || text.contains(r#""model_ratio":0.0000015"#), "{text}");
}

#[test]
fn models_sold_by_the_unit_have_a_price_in_dollars() {
    let catalog = catalog(CATALOG);
    let record = catalog.models["film"].record(&catalog, &View::default());
    assert_eq!(record["quota_type"], json!(1));
    assert_eq!(record["model_price"].to_string(), "0.12");
    assert_eq!(record["billing_unit"], json!("per_second"));
    assert_eq!(record["book_faces"]["paid"], json!(null));
}

#[test]
fn the_vendors_list_price_is_compared_not_typed_in() {
    let catalog = catalog(CATALOG);
    let list = &catalog.models["chat"].record(&catalog, &View::default())["vendor_list"];
    assert_eq!(list["list_input"].to_string(), "28");
    assert_eq!(list["list_input_usd"].to_string(), "4");
    assert_eq!(list["selling_usd"].to_string(), "3");
    assert_eq!(list["discount_pct"].to_string(), "25");
    assert_eq!(list["verdict"], json!("below_list"));
    assert_eq!(list["unit"], json!("1M tokens"));
    assert_eq!(list["verified_at"], json!("2026-01-15"));
    assert_eq!(
        list["faces"][1].to_string(),
        json!({"face": "output", "list_usd": 10, "selling_usd": 15, "discount_pct": -50, "verdict": "above_list"})
            .to_string()
    );
    assert_eq!(list["unverified_faces"], json!(["cache_read", "cache_write"]));
}

#[test]
fn the_catalog_is_the_list_of_records() {
    let catalog = catalog(CATALOG);
    let whole = catalog.record(&View::default());
    assert_eq!(whole["auto_groups"], json!(["default"]));
    assert_eq!(whole["data"].as_array().map(Vec::len), Some(3));
}
