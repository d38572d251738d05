//! The traps of LiteLLM's price map, one row each: what is read, left out, or stops.

use super::{faces, imported, litellm, only};
use tollgate_catalog::BillingUnit;
use tollgate_catalog::import::{PriceSource, SourceKind};

const PRICE: &str = r#""input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06"#;

#[test]
fn what_is_no_model_on_sale_is_left_out_with_the_reason() {
    for (name, fields, reason) in [
        ("old", r#""deprecation_date": "2026-11-16", "input_cost_per_token": 1e-06"#, "has ended"),
        ("chat-latest", PRICE, "is an alias that moves"),
        ("us.big", PRICE, "is the same model in one region"),
        ("eu/big", PRICE, "is the same model in one region"),
        ("acme/global/big", PRICE, "is the same model in one region"),
        ("high/1024-x-1024/draw", r#""input_cost_per_image": 0.1"#, "is one size of a model that makes pictures"),
        ("mute", r#""mode": "chat", "max_input_tokens": 1000"#, "has no price"),
        ("finder", r#""mode": "search", "input_cost_per_query": 0.01"#, "is for no endpoint of this gateway"),
        ("guard", r#""mode": "moderation", "input_cost_per_token": 1e-06"#, "is for no endpoint of this gateway"),
    ] {
        let text = format!(
            r#"{{"{name}": {{"litellm_provider": "acme", {fields}}}, "fine": {{"litellm_provider": "acme", {PRICE}}}}}"#
        );
        let source = PriceSource::read(SourceKind::LiteLlm, &text, None, super::TODAY).expect("a list");
        assert_eq!(source.left_out, [(name.to_owned(), reason.to_owned())], "{name}");
        assert_eq!(only(&source).name, "fine");
    }
    // The entry that explains the form is nobody's model.
    let text = format!(
        r#"{{"sample_spec": {{"litellm_provider": "one of …", "input_cost_per_token": 0.0}}, "m": {{"litellm_provider": "acme", {PRICE}}}}}"#
    );
    assert_eq!(only(&super::source(SourceKind::LiteLlm, &text)).name, "m");
}

#[test]
fn names_lose_their_provider_and_stand_once() {
    let text = format!(
        r#"{{"acme/m": {{"litellm_provider": "acme", {PRICE}}}, "m": {{"litellm_provider": "acme", {PRICE}}}, "other/m": {{"litellm_provider": "other", {PRICE}}}}}"#
    );
    let source = PriceSource::read(SourceKind::LiteLlm, &text, Some("acme"), super::TODAY).expect("a list");
    assert_eq!((only(&source).name.as_str(), only(&source).stops.len()), ("m", 0));
    let text = text.replacen("2e-06", "3e-06", 1);
    let source = PriceSource::read(SourceKind::LiteLlm, &text, Some("acme"), super::TODAY).expect("a list");
    assert_eq!(only(&source).stops, ["stands twice, with different prices"]);
}

/// Everything that a person has to look at first, and what comes of it once he has.
#[test]
fn what_has_to_be_looked_at_stops() {
    for (fields, stop, accepted) in [
        (
            r#""input_cost_per_token": 0.0, "output_cost_per_token": 0.0"#,
            "has an input price of zero",
            Some("input 0, output 0"),
        ),
        (
            r#""input_cost_per_token": 1e-06, "output_cost_per_token": 0"#,
            "has an output price of zero",
            Some("input 1000000, output 0"),
        ),
        (r#""input_cost_per_token": 1e-06"#, "has no price of output", None),
        (r#""output_cost_per_token": 1e-06"#, "has no price of input", None),
        (
            r#""input_cost_per_token": 4e-07, "output_cost_per_token": 1.2e-06, "output_cost_per_reasoning_token": 4e-06"#,
            "thinks at a higher price than it answers: the higher one is taken",
            Some("input 400000, output 4000000"),
        ),
        (
            r#""mode": "image_generation", "output_cost_per_image_token": 4e-05"#,
            "is billed by tokens or pixels, and pictures are sold by the piece",
            None,
        ),
        (r#""mode": "image_generation", "output_cost_per_image": 0.0"#, "has a price of zero", Some("per_call 0")),
        (
            r#""mode": "audio_speech", "input_cost_per_token": 1e-06, "output_cost_per_audio_token": 2e-05"#,
            "is billed by tokens, and speech is sold by characters",
            None,
        ),
        (
            r#""mode": "realtime", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06"#,
            "has no price of audio_input",
            None,
        ),
        (r#""mode": "audio_transcription", "input_cost_per_second": 0.0"#, "has a price of zero", Some("input 0")),
        (
            r#""mode": "audio_speech", "input_cost_per_character": 1.5e-05"#,
            "needs a table `speech`, which no price list has: give it with --facts",
            None,
        ),
        (
            r#""mode": "video_generation", "output_cost_per_second": 0.1"#,
            "needs a table `video`, which no price list has: give it with --facts",
            None,
        ),
        (
            r#""input_cost_per_token": "much", "output_cost_per_token": 1e-06"#,
            "the price of input cannot be read",
            None,
        ),
        (
            r#""input_cost_per_token": -1e-06, "output_cost_per_token": 1e-06"#,
            "the price of input cannot be read",
            None,
        ),
    ] {
        let source = litellm("m", fields);
        let found = imported(&source, None, &[]);
        assert!(
            found.listed.is_empty() && found.stops.iter().any(|one| one.reason == stop),
            "{fields}: {:?}",
            found.stops
        );
        let found = imported(&source, None, &["m"]);
        assert_eq!(found.stops, [], "{fields}");
        assert_eq!(found.listed.first().map(|model| faces(&model.list)).as_deref(), accepted, "{fields}");
    }
}

#[test]
fn prices_are_read_digit_by_digit_into_their_faces() {
    for (fields, expected) in [
        (PRICE, "input 2000000, output 8000000"),
        (
            r#""input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06"#,
            "input 3000000, output 15000000, cache_read 300000, cache_write 3750000, cache_write_1h 6000000",
        ),
        // Discounts for the cache differ: what the list does not say is not made up.
        (
            r#""input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "cache_read_input_token_cost": 5e-08"#,
            "input 1000000, output 2000000, cache_read 50000",
        ),
        (
            r#""input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "cache_read_input_token_cost": 0.0"#,
            "input 1000000, output 2000000",
        ),
        // More digits than a micro-USD has: rounded up.
        (
            r#""input_cost_per_token": 5.0000000000000004e-07, "output_cost_per_token": 1.00000000000000002e-06"#,
            "input 500001, output 1000001",
        ),
        // Cached sound is dearer than cached text.
        (
            r#""input_cost_per_token": 4e-06, "output_cost_per_token": 1.6e-05, "cache_read_input_token_cost": 4e-07, "cache_read_input_audio_token_cost": 8e-07, "input_cost_per_audio_token": 3.2e-05, "output_cost_per_audio_token": 6.4e-05"#,
            "input 4000000, output 16000000, cache_read 800000, audio_input 32000000, audio_output 64000000",
        ),
        // A search at the dearest of its sizes, a tool by the use.
        (
            r#""input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "search_context_cost_per_query": {"search_context_size_low": 0.01, "search_context_size_high": 0.025}, "file_search_cost_per_1k_calls": 2.5"#,
            "input 1000000, output 2000000, tool:web_search 25000, tool:file_search 2500",
        ),
        (r#""mode": "embedding", "input_cost_per_token": 2e-08"#, "input 20000, output 0"),
        (r#""mode": "rerank", "input_cost_per_query": 0.002"#, "per_call 2000"),
        (r#""mode": "rerank", "input_cost_per_token": 5e-08"#, "input 50000, output 0"),
        (r#""mode": "image_generation", "output_cost_per_image": 0.04"#, "per_call 40000"),
        // 0.0001 USD a second is 0.006 a minute: 6 USD per million tokens.
        (r#""mode": "audio_transcription", "input_cost_per_second": 0.0001"#, "input 6000000"),
    ] {
        let source = litellm("m", fields);
        let found = imported(&source, None, &[]);
        assert_eq!(found.stops, [], "{fields}");
        assert_eq!(faces(&found.listed[0].list), expected, "{fields}");
        let model = &super::sold(&found.listed[0], "0%").models["m"];
        assert_eq!(faces(&model.book.standard), faces_of_book(expected, model.billing_unit), "{fields}");
    }
}

/// The transcript of a recording is free by the rules, and written down as such.
fn faces_of_book(list: &str, unit: BillingUnit) -> String {
    if unit == BillingUnit::AudioDuration { format!("{list}, output 0") } else { list.to_owned() }
}

#[test]
fn a_limit_is_what_the_list_says_and_nothing_else() {
    for (fields, facts, note) in [
        (r#""max_input_tokens": 272000, "max_output_tokens": 128000"#, (Some(272_000), Some(128_000)), ""),
        // `max_tokens` is the output here and the context there.
        (r#""max_tokens": 4096"#, (None, None), "has no limit of output"),
        (r#""max_input_tokens": 8000, "max_tokens": 8000"#, (Some(8_000), None), "has no limit of output"),
        (
            r#""max_input_tokens": 8000, "max_output_tokens": 16000"#,
            (Some(8_000), Some(8_000)),
            "is said to write more than it reads: its output is bounded by its context",
        ),
        (r#""max_output_tokens": 16000"#, (None, Some(16_000)), "has no context window"),
        (r#""max_input_tokens": "max input tokens""#, (None, None), "has no context window"),
    ] {
        let source = litellm("m", &format!("{PRICE}, {fields}"));
        let model = only(&source);
        let number = |key: &str| model.facts.get(key).and_then(|one| one.as_integer());
        assert_eq!((number("context_window"), number("max_output_tokens")), facts, "{fields}");
        assert!(note.is_empty() || model.notes.iter().any(|one| one == note), "{fields}: {:?}", model.notes);
    }
}

#[test]
fn what_costs_more_elsewhere_is_said_and_not_taken_over() {
    for field in [r#""provider_specific_entry": {"us": 1.1}"#, r#""regional_processing_uplift": 1.1"#] {
        let source = litellm("m", &format!("{PRICE}, {field}"));
        assert!(only(&source).notes.iter().any(|note| note.starts_with("costs more in some regions")), "{field}");
    }
    let source = litellm("m", &format!(r#"{PRICE}, "deprecation_date": "2027-03-01""#));
    assert_eq!(only(&source).notes.iter().filter(|note| *note == "ends on 2027-03-01").count(), 1);
}

/// Tiers, in the order in which they are tried, as a catalog shows them.
#[test]
fn other_prices_under_conditions_become_tiers() {
    for (fields, expected) in [
        (
            r#""input_cost_per_token_above_200k_tokens": 4e-06, "output_cost_per_token_above_200k_tokens": 1.2e-05"#,
            "tier long_context, when more than 200000 input tokens: input 4, output 12",
        ),
        (
            r#""input_cost_per_token_above_128k_tokens": 3e-06, "input_cost_per_token_above_512k_tokens": 6e-06"#,
            "tier long_context, when more than 512000 input tokens: input 6, output 8 | tier long_context_128k, when more than 128000 input tokens: input 3, output 8",
        ),
        (
            r#""input_cost_per_token_priority": 3.5e-06, "output_cost_per_token_priority": 1.4e-05, "input_cost_per_token_flex": 1e-06, "output_cost_per_token_flex": 4e-06"#,
            "tier priority, when service_tier = priority: input 3.5, output 14 | tier flex, when service_tier = flex: input 1, output 4",
        ),
        (
            r#""input_cost_per_token_above_200k_tokens": 4e-06, "input_cost_per_token_priority": 3e-06, "input_cost_per_token_above_200k_tokens_priority": 9e-06"#,
            "tier priority_long_context, when service_tier = priority and more than 200000 input tokens: input 9, output 8 | tier priority, when service_tier = priority: input 3, output 8 | tier long_context, when more than 200000 input tokens: input 4, output 8",
        ),
        (
            r#""tiered_pricing": [{"range": [0, 32000], "input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06}, {"range": [32000, 128000], "input_cost_per_token": 1.8e-06, "output_cost_per_token": 9e-06}]"#,
            "tier over_32k, when more than 32000 input tokens: input 1.8, output 9",
        ),
        // The cheap hours are the exception, so that a hold is never too small.
        (
            r#""off_peak_pricing": {"windows": [{"start": "16:00", "end": "18:00"}], "input_cost_per_token": 1e-06, "output_cost_per_token": 4e-06}"#,
            "tier off_peak, when hours 16-17 in UTC: input 1, output 4",
        ),
    ] {
        let source = litellm("m", &format!("{PRICE}, {fields}"));
        let found = imported(&source, None, &[]);
        assert_eq!(found.stops, [], "{fields}");
        let words = super::sold(&found.listed[0], "0%").models["m"].in_words();
        let tiers: Vec<&str> = words.lines().map(str::trim).filter(|line| line.starts_with("tier ")).collect();
        assert_eq!(tiers.join(" | ").replace(" USD per million tokens", ""), expected, "{fields}");
    }
}
