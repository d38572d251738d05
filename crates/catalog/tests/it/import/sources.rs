//! The five forms of price lists, each with a small list of our own, and two of them compared.

use super::{faces, imported, only, source};
use tollgate_catalog::Face;
use tollgate_catalog::import::{PriceSource, SourceKind};

const GENAI: &str = r#"[{"id": "acme", "pricing_urls": ["https://acme.example/prices"], "models": [
  {"id": "big", "match": {"or": [{"equals": "big"}, {"starts_with": "big-2026"}]}, "name": "Big", "context_window": 200000,
   "prices": {"input_mtok": {"base": 2, "tiers": [{"start": 200000, "price": 4}]}, "output_mtok": 8, "cache_read_mtok": 0.2},
   "price_variants": [{"when": {"service_tier": "flex"}, "prices": {"input_mtok": 1, "output_mtok": 4}},
                      {"when": {"processing": "batch"}, "prices": {"input_mtok": 1}}]},
  {"id": "gone", "match": {"equals": "gone"}, "deprecated": true, "prices": {"input_mtok": 1, "output_mtok": 1}},
  {"id": "dated", "match": {"equals": "dated"}, "prices": [{"prices": {"input_mtok": 1, "output_mtok": 2}},
     {"constraint": {"start_date": "2026-09-01"}, "prices": {"input_mtok": 3, "output_mtok": 4}},
     {"constraint": {"start_date": "2027-01-01"}, "prices": {"input_mtok": 9, "output_mtok": 9}}]},
  {"id": "hours", "match": {"equals": "hours"}, "prices": [{"prices": {"input_mtok": 1, "output_mtok": 2}},
     {"constraint": {"start_time": "01:00:00Z", "end_time": "04:00:00Z"}, "prices": {"input_mtok": 2, "output_mtok": 4}}]}]}]"#;

#[test]
fn genai_prices_has_days_hours_and_other_names() {
    let list = source(SourceKind::GenaiPrices, GENAI);
    assert_eq!(list.left_out, [("gone".to_owned(), "has ended".to_owned())]);
    let big = list.model("big-2026-11").expect("another name of it");
    assert_eq!(faces(&big.list), "input 2000000, output 8000000, cache_read 200000");
    let tiers: Vec<String> = big.tiers.iter().map(|tier| format!("{}: {}", tier.name, faces(&tier.list))).collect();
    assert_eq!(
        tiers,
        [
            "flex: input 1000000, output 4000000, cache_read 200000",
            "long_context: input 4000000, output 8000000, cache_read 200000"
        ]
    );
    let dated = list.model("dated").expect("a model");
    assert_eq!(faces(&dated.list), "input 3000000, output 4000000");
    assert_eq!(dated.notes, ["has other prices from 2027-01-01 on"]);
    // The dear hours are the base.
    let hours = list.model("hours").expect("a model");
    assert_eq!(faces(&hours.list), "input 2000000, output 4000000");
    assert_eq!(
        (hours.tiers[0].name.as_str(), faces(&hours.tiers[0].list).as_str()),
        ("off_peak", "input 1000000, output 2000000")
    );
    let sold = super::sold(&imported(&list, None, &[]).listed[2], "10%");
    assert!(sold.models["hours"].in_words().contains("hours 0,4-23 in UTC"), "{}", sold.models["hours"].in_words());
}

#[test]
fn models_dev_has_limits_and_what_models_take() {
    let list = source(
        SourceKind::ModelsDev,
        r#"{"acme": {"doc": "https://acme.example/models", "models": {
            "big": {"name": "Big", "reasoning": true, "temperature": false, "tool_call": true,
                    "reasoning_options": [{"type": "effort", "values": ["low", "high"]}],
                    "cost": {"input": 1.25, "output": 10.00, "cache_read": 0.125, "tiers": [{"tier": {"size": 200000}, "input": 2.5, "output": 15}]},
                    "limit": {"context": 400000, "input": 272000, "output": 128000}, "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]}},
            "old": {"status": "deprecated", "cost": {"input": 1, "output": 1}},
            "draw": {"cost": {"input": 5, "output": 40}, "modalities": {"input": ["text"], "output": ["text", "image"]}},
            "free": {"limit": {"context": 1000, "output": 100}}}}}"#,
    );
    assert_eq!(list.left_out.len(), 2, "{:?}", list.left_out);
    let found = imported(&list, None, &[]);
    assert_eq!(found.stops.len(), 1, "pictures at the price of text: {:?}", found.stops);
    let big = &found.listed[0];
    assert_eq!(faces(&big.list), "input 1250000, output 10000000, cache_read 125000");
    let sold = super::sold(big, "0%");
    let model = &sold.models["big"];
    assert_eq!(
        (model.context_window, model.max_input_tokens, model.max_output_tokens),
        (Some(400_000), Some(272_000), Some(128_000))
    );
    assert_eq!((model.reasoning_efforts.join(","), model.chat.sampling), ("low,high".to_owned(), false));
    assert_eq!(model.input_modalities, ["text", "image", "file"]);
    assert_eq!(faces(&model.book.tiers[0].standard), "input 2500000, output 15000000, cache_read 125000");
}

#[test]
fn openrouter_has_texts_overrides_and_prices_that_vary() {
    let record = |more: &str, pricing: &str| {
        format!(
            r#"{{"data": [{{"id": "acme/big", "name": "Big", "context_length": 1000, "top_provider": {{"max_completion_tokens": 2000}} {more}, "pricing": {{{pricing}}}}}]}}"#
        )
    };
    let usual = r#""prompt": "0.00000125", "completion": "0.00001", "request": "0", "web_search": "0.01""#;
    let list = source(SourceKind::OpenRouter, &record("", usual));
    assert_eq!(faces(&only(&list).list), "input 1250000, output 10000000, tool:web_search 10000");
    assert_eq!(only(&list).facts["max_output_tokens"].as_integer(), Some(1_000), "no more than its context");
    let tiered = format!(
        r#"{usual}, "overrides": [{{"min_prompt_tokens": 200001, "prompt": "0.0000025"}}, {{"utc_start": "0100", "utc_end": "0300", "prompt": "0.000005"}}]"#
    );
    let found = imported(&source(SourceKind::OpenRouter, &record("", &tiered)), None, &[]);
    let words = super::sold(&found.listed[0], "0%").models["acme/big"].in_words();
    let tiers: Vec<&str> = words.lines().filter(|line| line.contains("tier ")).collect();
    assert!(
        tiers[0].contains("hours 1-2 in UTC: input 5,")
            && tiers[1].contains("more than 200000 input tokens: input 2.5,"),
        "{words}"
    );
    for (pricing, stop) in [
        (r#""prompt": "-1", "completion": "-1""#, "has a price that varies"),
        (r#""prompt": "0.000001", "completion": "0.000002", "discount": "0.2""#, "has a discount"),
        (r#""prompt": "0", "completion": "0""#, "has an input price of zero"),
    ] {
        let found = imported(&source(SourceKind::OpenRouter, &record("", pricing)), None, &[]);
        assert!(found.stops.iter().any(|one| one.reason.starts_with(stop)), "{pricing}: {:?}", found.stops);
    }
    let free = r#"{"data": [{"id": "acme/big:free", "pricing": {"prompt": "0", "completion": "0"}}]}"#;
    assert!(PriceSource::read(SourceKind::OpenRouter, free, None, super::TODAY).is_err(), "nothing is left");
}

#[test]
fn new_api_has_ratios_in_two_forms() {
    let list = r#"{"success": true, "data": [
        {"model_name": "big", "quota_type": 0, "model_ratio": 0.625, "model_price": 0, "completion_ratio": 8, "cache_ratio": 0.1, "create_cache_ratio": 1.25, "audio_ratio": 2, "audio_completion_ratio": 4}]}"#;
    let map = r#"{"success": true, "data": {"model_ratio": {"big": 0.625}, "completion_ratio": {"big": 8}, "cache_ratio": {"big": 0.1},
        "create_cache_ratio": {"big": 1.25}, "audio_ratio": {"big": 2}, "audio_completion_ratio": {"big": 4}}}"#;
    for text in [list, map] {
        let found = source(SourceKind::NewApi, text);
        let expected = "input 1250000, output 10000000, cache_read 125000, cache_write 1562500, audio_input 2500000, audio_output 10000000";
        assert_eq!(faces(&only(&found).list), expected);
        assert_eq!(only(&found).stops, <[String; 0]>::default());
    }
    for (fields, stop) in [
        (r#""quota_type": 1, "model_price": 0.04"#, "has a price whose unit is not said: it is taken for one call"),
        (r#""model_ratio": 37.5, "completion_ratio": 1"#, "has the ratio of a model without a price"),
        (r#""model_ratio": 1, "billing_expr": "input * 2""#, "has a price that is a formula"),
        (r#""model_ratio": 0, "completion_ratio": 1"#, "has an input price of zero"),
    ] {
        let found = source(SourceKind::NewApi, &format!(r#"{{"data": [{{"model_name": "m", {fields}}}]}}"#));
        assert!(only(&found).stops.iter().any(|one| one == stop), "{fields}: {:?}", only(&found).stops);
    }
}

#[test]
fn two_lists_that_agree_verify_and_others_are_marked_or_stop() {
    let first = super::litellm(
        "big",
        r#""input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "cache_creation_input_token_cost": 2.5e-06"#,
    );
    let genai = source(SourceKind::GenaiPrices, GENAI);
    let alone = &imported(&first, None, &[]).listed[0];
    assert_eq!(alone.unverified, [Face::Input, Face::Output, Face::CacheWrite]);
    let both = &imported(&first, Some(&genai), &[]).listed[0];
    assert_eq!(both.unverified, [Face::CacheWrite], "two lists agree on the rest");
    assert_eq!(both.facts["description"].as_str(), Some("Big"), "facts of both");
    // The public record says so too.
    let catalog = super::sold(both, "10%");
    let view = tollgate_catalog::View { groups: &["default"], topped_up: false, known: true, at_ms: 0 };
    let record = serde_json::to_value(catalog.models["big"].record(&catalog, &view)).expect("JSON");
    assert_eq!(record["vendor_list"]["unverified_faces"], serde_json::json!(["cache_write"]));
    assert_eq!(record["vendor_list"]["verified_at"], super::TODAY);
    assert_eq!(record["vendor_list"]["discount_pct"], serde_json::json!(-10));
    let lone = super::sold(alone, "10%");
    let record = serde_json::to_value(lone.models["big"].record(&lone, &view)).expect("JSON");
    assert_eq!(record["vendor_list"]["verified_at"], serde_json::Value::Null, "nobody has verified it");

    let other = super::litellm("big", r#""input_cost_per_token": 2e-06, "output_cost_per_token": 9e-06"#);
    let found = imported(&other, Some(&genai), &[]);
    assert_eq!(found.stops[0].reason, "has two list prices of output: 9 and 8 USD");
    let accepted = &imported(&other, Some(&genai), &["b*"]).listed[0];
    assert_eq!(
        (faces(&accepted.list).as_str(), accepted.unverified.as_slice()),
        ("input 2000000, output 9000000", &[Face::Output][..])
    );
}

#[test]
fn a_list_of_another_form_is_refused() {
    let lists = [GENAI, r#"{"data": []}"#, r#"{"a": {"models": {}}}"#, "[]", "{}", "null", "3"];
    for (name, kind) in SourceKind::ALL {
        for text in lists {
            let right = kind == SourceKind::GenaiPrices && text == GENAI;
            let read = PriceSource::read(kind, text, None, super::TODAY);
            assert_eq!(read.is_ok(), right, "{name}: {text}");
        }
        assert_eq!(name.parse(), Ok(kind));
    }
    assert!("litelm".parse::<SourceKind>().is_err());
}
