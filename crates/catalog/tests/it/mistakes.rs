//! What people read when a catalog is wrong: file, line, field and reason, all at once.

use super::{lines, mistakes_of};
use tollgate_catalog::{load, load_for};

#[test]
fn every_mistake_of_a_file_is_named_at_once() {
    let text = r#"
auto_groups = ["default", "vip"]
colour = "red"
[group.partner]
multiplier = "4/0"
[group.none]
multiplier = 0

[model.unpriced]
route = [{ provider = "sim", upstream_model = "m" }]

[model.half]
price = { input = 1 }
route = [{ provider = "sim", upstream_model = "m" }]

[model.negative]
descripton = "a slip"
context_window = "large"
price = { input = -1, output = 1.5, inptu = 3 }
enable_groups = ["partnr"]
supported_endpoint_types = ["open-ai"]
billing_unit = "tokens"

[[model.negative.route]]
provider = "sim"
weight = -1

[model."bad name"]
billing_unit = "per_call"
price = { per_call = 1, input = 1 }
route = []

[model.dear]
price = { input = 1, output = 1_000_000_000_001 }
route = [{ provider = "sim", upstream_model = "m", weight = 0 }]
"#;
    assert_eq!(
        mistakes_of(text),
        r#"test.toml:2: auto_groups: no group is called "vip"
test.toml:3: colour: is not a known key
test.toml:5: group.partner.multiplier: "4/0" is not a fraction such as "133/100", "0.8" or "5" (at most nine digits)
test.toml:7: group.none.multiplier: must be more than zero
test.toml:9: model.unpriced.price: is missing: a model without a price cannot be sold
test.toml:13: model.half.price.output: is missing: a model billed by tokens needs a price for output, in micro-USD
test.toml:17: model.negative.descripton: is not a known key; did you mean "description"?
test.toml:18: model.negative.context_window: must be a whole number from 1 to 1000000000, not a text
test.toml:19: model.negative.price.input: must be a whole number from 0 to 1000000000000, not -1
test.toml:19: model.negative.price.output: must be a whole number from 0 to 1000000000000, not a decimal number
test.toml:19: model.negative.price.inptu: is not a known key; did you mean "input"?
test.toml:20: model.negative.enable_groups: no group is called "partnr"; did you mean "partner"?
test.toml:21: model.negative.supported_endpoint_types: "open-ai" is not one of openai, anthropic, openai-response, openai-video, image-generation, audio-speech, audio-transcription, realtime, gemini, music-generation, system-one, embeddings, jina-rerank; did you mean "openai"?
test.toml:24: model.negative.route[0].upstream_model: is missing: a text is needed
test.toml:26: model.negative.route[0].weight: must be a whole number from 0 to 1000000, not -1
test.toml:28: model."bad name": a model name has 1 to 200 letters, digits or -_.:/@+ (it is used in addresses)
test.toml:30: model."bad name".price.input: is never charged by a model billed by per_call
test.toml:31: model."bad name".route: is missing: a model needs at least one [[…route]]
test.toml:34: model.dear.price.output: must be a whole number from 0 to 1000000000000, not 1000000000001
test.toml:35: model.dear.route: every route has weight 0: none would be taken"#
    );
}

#[test]
fn tiers_are_checked_as_closely_as_the_base_price() {
    let text = r#"
[model.m]
price = { input = 1, output = 1, cache_read = 1 }
paid = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.m.tier]]
name = "always"
price = { input = 1, output = 1, cache_read = 1 }
[[model.m.tier]]
name = "long"
when = [{ dim = "context_len" }]
price = { input = 1, output = 1, audio_input = 1 }
[[model.m.tier]]
name = "long"
when = [{ dim = "wall_clok", hours = [1] }]
multiplier = 2
price = { input = 1, output = 1, cache_read = 1 }
[[model.m.tier]]
name = "peak"
when = [{ dim = "wall_clock", timezone = "Europe/Berln", hours = [24] }, { dim = "wall_clock", timezone = "UTC" }]
[[model.m.tier]]
name = "free"
when = [{ dim = "request_attr", path = "a" }]
multiplier = 0
[[model.m.tier]]
name = "odd"
when = [{ dim = "context_len", context_len_gt = 1 }]
multiplier = "half"
"#;
    assert_eq!(
        mistakes_of(text),
        r#"test.toml:4: model.m.paid.cache_read: is missing: the base price has it, so it needs a price here too
test.toml:6: model.m.tier[0].when: is missing: without conditions the tier would always apply
test.toml:11: model.m.tier[1].when[0].context_len_gt: is missing: a whole number is needed
test.toml:12: model.m.tier[1].price.cache_read: is missing: the base price has it, so it needs a price here too
test.toml:12: model.m.tier[1].price.audio_input: is not in the base price: put a price for it there too
test.toml:14: model.m.tier[2].name: another tier of the model is called "long" too
test.toml:15: model.m.tier[2].when[0].dim: "wall_clok" is not one of context_len, request_attr, wall_clock; did you mean "wall_clock"?
test.toml:16: model.m.tier[2].multiplier: a tier has either a price or a multiplier of the base price, not both
test.toml:18: model.m.tier[3].price: is missing: a tier needs a price or a multiplier of the base price
test.toml:20: model.m.tier[3].when[0].hours: must be a whole number from 0 to 23, not 24
test.toml:20: model.m.tier[3].when[0].timezone: "Europe/Berln" is not a time zone such as "Europe/Berlin"; did you mean "Europe/Berlin"?
test.toml:20: model.m.tier[3].when[1]: a wall_clock condition needs weekdays, hours or both
test.toml:23: model.m.tier[4].when[0].equals: is missing: a value is needed
test.toml:24: model.m.tier[4].multiplier: must be more than zero
test.toml:28: model.m.tier[5].multiplier: "half" is not a fraction such as "133/100", "0.8" or "5" (at most nine digits)"#
    );
}

#[test]
fn what_makes_sound_and_pictures_needs_prices_for_them() {
    let text = r#"
[model.voice]
input_modalities = ["text", "audio"]
output_modalities = ["audio", "image"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;
    assert_eq!(
        mistakes_of(text),
        r#"test.toml:5: model.voice.price.image_output: is missing: a model billed by tokens needs a price for image_output, in micro-USD
test.toml:5: model.voice.price.audio_input: is missing: a model billed by tokens needs a price for audio_input, in micro-USD
test.toml:5: model.voice.price.audio_output: is missing: a model billed by tokens needs a price for audio_output, in micro-USD"#
    );
}

#[test]
fn a_model_is_defined_once_over_all_files() {
    let model =
        "\n[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'sim', upstream_model = 'm' }]\n";
    let files = [("a.toml".to_owned(), model.to_owned()), ("b.toml".to_owned(), format!("{model}[group.g]\n"))];
    let mistakes = load(&files).expect_err("two models of one name");
    assert_eq!(
        lines(&mistakes),
        "b.toml:2: model.m: is already defined in a.toml:2\nb.toml:5: group.g.multiplier: is missing: a fraction such as \"133/100\" is needed"
    );
}

#[test]
fn one_broken_file_does_not_hide_the_mistakes_of_another() {
    let files = [("a.toml".to_owned(), "[model.x\n".to_owned()), ("b.toml".to_owned(), "[model.m]\n".to_owned())];
    let mistakes = load(&files).expect_err("both are wrong");
    assert_eq!(mistakes[0].file, "a.toml");
    assert!(mistakes[0].reason.starts_with("is not TOML"), "{}", mistakes[0]);
    assert_eq!(mistakes.iter().filter(|mistake| mistake.file == "b.toml").count(), 2, "price and route are missing");
}

#[test]
fn a_route_to_a_provider_that_is_not_configured_has_a_place() {
    // Beside another mistake: neither hides the other.
    let text =
        "[model.m]\nprice = { input = 1, output = -1 }\n[[model.m.route]]\nprovider = 'simm'\nupstream_model = 'm'\n";
    let files = [("test.toml".to_owned(), text.to_owned())];
    let mistakes = load_for(&files, &["sim", "other"]).expect_err("two mistakes");
    assert_eq!(mistakes.len(), 2, "{}", lines(&mistakes));
    assert_eq!(
        mistakes[1].to_string(),
        "test.toml:3: model.m.route.provider: no provider is called \"simm\"; did you mean \"sim\"?"
    );
}

#[test]
fn a_unit_needs_its_face_and_takes_no_price_that_it_never_charges() {
    let text = r#"
[model.speech]
billing_unit = "characters"
supported_endpoint_types = ["audio-speech"]
price = { output = 1, cache_read = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.ears]
billing_unit = "audio_duration"
supported_endpoint_types = ["audio-transcription"]
price = { input = 1, output = 5, audio_input = 1 }
paid = { input = 1, output = 0, audio_input = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.film]
billing_unit = "per_second"
supported_endpoint_types = ["openai-video"]
price = { per_call = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.picture]
billing_unit = "per_call"
supported_endpoint_types = ["image-generation"]
price = { per_call = 1, video_second = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;
    assert_eq!(
        mistakes_of(text),
        r#"test.toml:5: model.speech.price.input: is missing: a model billed by characters needs a price for input, in micro-USD
test.toml:5: model.speech.price.output: must be 0 or left out: generated speech is counted, and free
test.toml:5: model.speech.price.cache_read: is never charged by a model billed by characters
test.toml:10: model.ears.price.output: must be 0 or left out: the transcript is counted, and free
test.toml:10: model.ears.price.audio_input: is never charged by a model billed by audio_duration
test.toml:11: model.ears.paid.audio_input: is never charged by a model billed by audio_duration
test.toml:16: model.film.price.video_second: is missing: a model billed by per_second needs a price for video_second, in micro-USD
test.toml:21: model.picture.price.video_second: is never charged by a model billed by per_call"#
    );
}

/// Gemini's clients put the model's name into the address, where nothing else is served.
#[test]
fn only_models_called_gemini_are_served_in_geminis_dialect() {
    let text = r#"
[model.claude]
supported_endpoint_types = ["openai", "gemini"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "gemini-x" }]
[model."gemini-x"]
supported_endpoint_types = ["openai", "gemini"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;
    assert_eq!(
        mistakes_of(text),
        "test.toml:3: model.claude.supported_endpoint_types: \"gemini\" is for models whose name starts with gemini-"
    );
}

#[test]
fn an_endpoint_needs_a_unit_that_its_calls_report() {
    let text = r#"
[model.chat]
billing_unit = "characters"
supported_endpoint_types = ["openai", "audio-speech"]
price = { input = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.ears]
billing_unit = "per_second"
supported_endpoint_types = ["audio-transcription"]
price = { video_second = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.tts]
supported_endpoint_types = ["audio-speech", "audio-transcription"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
[model.picture]
supported_endpoint_types = ["image-generation"]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
"#;
    assert_eq!(
        mistakes_of(text),
        r#"test.toml:4: model.chat.supported_endpoint_types: "openai" cannot be billed by characters, only by tokens or per_call
test.toml:9: model.ears.supported_endpoint_types: "audio-transcription" cannot be billed by per_second, only by audio_duration or per_call or tokens
test.toml:14: model.tts.price.audio_input: is missing: a model billed by tokens needs a price for audio_input, in micro-USD
test.toml:14: model.tts.price.audio_output: is missing: a model billed by tokens needs a price for audio_output, in micro-USD
test.toml:17: model.picture.supported_endpoint_types: "image-generation" cannot be billed by tokens, only by per_call"#
    );
}

/// What a caller leaves out must have a price of its own, where prices go by it.
#[test]
fn pictures_priced_by_size_or_quality_name_what_is_usual() {
    let text = r#"
[model.a]
billing_unit = "per_call"
supported_endpoint_types = ["image-generation"]
price = { per_call = 1 }
image = { partial_images = true, most = 0 }
route = [{ provider = "sim", upstream_model = "m" }]
[[model.a.tier]]
name = "4K"
when = [{ dim = "request_attr", path = "resolution", equals = "4K" }, { dim = "request_attr", path = "quality", equals = "high" }]
price = { per_call = 2 }
"#;
    assert_eq!(
        mistakes_of(text),
        r#"test.toml:6: model.a.image.most: must be a whole number from 1 to 100, not 0
test.toml:6: model.a.image.partial_images: needs `streams = true`: previews come in a stream only
test.toml:6: model.a.image.default_size: is missing: prices go by the size, so what callers leave out must have one
test.toml:6: model.a.image.default_quality: is missing: prices go by the quality, so what callers leave out must have one"#
    );
    let missing = text.replace("image = { partial_images = true, most = 0 }\n", "");
    assert_eq!(
        mistakes_of(&missing),
        "test.toml:2: model.a.image: is missing: prices go by size or quality, so name `default_size`, `default_quality`"
    );
}

#[test]
fn a_list_price_says_its_currency_rate_and_day() {
    let model = |list: &str| {
        format!(
            "[model.m]\nprice = {{ input = 1, output = 1 }}\nroute = [{{ provider = 'p', upstream_model = 'm' }}]\n[model.m.list]\n{list}\n"
        )
    };
    for (list, want) in [
        (
            "price = { output = 1 }",
            "test.toml:4: model.m.list.source: is missing: a text is needed\ntest.toml:5: model.m.list.price.input: is missing: the list price of this face, in millionths of the currency",
        ),
        (
            "source = 's'\nprice = { input = 1, video_second = 1 }",
            "test.toml:6: model.m.list.price.video_second: is not sold by this model: there is nothing to compare it with",
        ),
        (
            "source = 's'\ncurrency = 'yuan'\nprice = { input = 1 }",
            "test.toml:6: model.m.list.currency: is not a currency such as \"USD\" or \"CNY\"",
        ),
        (
            "source = 's'\ncurrency = 'CNY'\nprice = { input = 1 }",
            "test.toml:4: model.m.list.usd_rate: is missing: how many dollars is one unit of the currency?",
        ),
        (
            "source = 's'\nusd_rate = 2\nprice = { input = 1 }",
            "test.toml:6: model.m.list.usd_rate: a dollar is a dollar: leave it out",
        ),
        (
            "source = 's'\ncurrency = 'CNY'\nusd_rate = 0\nprice = { input = 1 }",
            "test.toml:7: model.m.list.usd_rate: must be more than zero",
        ),
        (
            "source = 's'\nverified_at = 'last week'\nprice = { input = 1 }",
            "test.toml:6: model.m.list.verified_at: is not a day such as 2026-01-15",
        ),
    ] {
        assert_eq!(mistakes_of(&model(list)), want, "{list}");
    }
}

#[test]
fn the_most_budget_of_thoughts_is_no_less_than_the_least() {
    let text = r#"
[model.m]
price = { input = 1, output = 1 }
route = [{ provider = "sim", upstream_model = "m" }]
chat = { gemini3 = false, least_budget = 512, most_budget = 128 }
"#;
    assert_eq!(
        mistakes_of(text),
        "test.toml:5: model.m.chat.most_budget: must be a whole number from 512 to 1000000000, not 128"
    );
    assert_eq!(mistakes_of(&text.replace("128", "512")), "no mistake");
}
