//! The demo catalog is the documentation of the format: it must load, and say what it shows.

use tollgate_catalog::{BillingUnit, ENDPOINT_TYPES, Face, Model, PriceFacts, Quantities, load_for};

const DEMO: &str = include_str!("../../../../catalog/demo.toml");

#[test]
fn the_demo_catalog_loads() {
    let files = [("catalog/demo.toml".to_owned(), DEMO.to_owned())];
    let catalog = load_for(&files, &["sim"]).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    assert_eq!(catalog.providers(), ["sim"]);
    assert_eq!(catalog.auto_groups, ["partner", "default"]);
    let demo = &catalog.models["tollgate-demo"];
    assert_eq!(demo.routes[0].upstream_model, "sim-plain");
    let price = demo.price(&PriceFacts::at(0)).expect("a price");
    let used = Quantities::NONE.with(Face::Input, 1_000).with(Face::Output, 100);
    assert_eq!(price.charge(&used).expect("a charge").to_string(), "0.0045");
    for model in catalog.models.values() {
        assert!(!model.description.is_empty(), "{} has a description", model.name);
        let writes = model.supports("openai");
        assert!(!writes || model.max_output_tokens.is_some(), "{} bounds its output", model.name);
    }
}

#[test]
fn every_key_of_the_format_is_shown_in_the_demo() {
    for key in ["paid", "list", "tier", "when", "multiplier", "weekdays", "priority", "weight", "requires_topup"] {
        assert!(DEMO.contains(key), "{key} is not explained");
    }
    for face in Face::ALL {
        assert!(DEMO.contains(face.name()), "{} is not explained", face.name());
    }
    for (unit, _) in BillingUnit::ALL {
        assert!(DEMO.contains(&format!("#   {unit} ")), "{unit} is not explained");
    }
    for kind in ENDPOINT_TYPES {
        assert!(DEMO.contains(kind.name), "{} is not explained", kind.name);
    }
}

#[test]
fn the_models_of_the_dialects_load_with_it() {
    const DIALECTS: &str = include_str!("../../../../catalog/dialects.toml");
    let files =
        [("catalog/demo.toml".to_owned(), DEMO.to_owned()), ("catalog/dialects.toml".to_owned(), DIALECTS.to_owned())];
    let providers = ["sim", "messages", "responses", "google"];
    let catalog = load_for(&files, &providers).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    let sold =
        |model: &Model| ["openai", "anthropic", "openai-response", "gemini"].iter().all(|one| model.supports(one));
    assert_eq!(catalog.models.values().filter(|model| sold(model)).count(), 4);
}

#[test]
fn the_realtime_models_load_with_it() {
    const REALTIME: &str = include_str!("../../../../catalog/realtime.toml");
    let files =
        [("catalog/demo.toml".to_owned(), DEMO.to_owned()), ("catalog/realtime.toml".to_owned(), REALTIME.to_owned())];
    let providers = ["sim", "gemini", "dashscope"];
    let catalog = load_for(&files, &providers).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    let spoken: Vec<_> = catalog.models.values().filter(|model| model.supports("realtime")).collect();
    assert_eq!(spoken.len(), 3);
}

#[test]
fn the_speech_models_load_with_it() {
    const SPEECH: &str = include_str!("../../../../catalog/speech.toml");
    let files =
        [("catalog/demo.toml".to_owned(), DEMO.to_owned()), ("catalog/speech.toml".to_owned(), SPEECH.to_owned())];
    let providers = ["sim", "minimax", "elevenlabs", "gemini", "dashscope"];
    let catalog = load_for(&files, &providers).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    let speaking: Vec<_> = catalog.models.values().filter(|model| model.speech.is_some()).collect();
    assert_eq!(speaking.len(), 7);
    assert_eq!(catalog.models.values().filter(|model| model.music.is_some()).count(), 2);
    for model in speaking {
        assert!(!model.description.is_empty() && model.supports("audio-speech"), "{}", model.name);
    }
    let short = catalog.models["step-tts-mini"].speech.as_ref().expect("a table");
    assert_eq!((short.max_characters, short.speed, short.sample_rate), (1_000, Some((50, 200)), 24_000));
    let wrapped = catalog.models["qwen3-tts-flash"].speech.as_ref().expect("a table");
    assert_eq!((wrapped.made.len(), short.made.len(), wrapped.speed), (0, 4, None));
    for key in ["formats", "made", "max_characters", "voices", "speed_percent", "instructions", "sample_rate", "extra"]
    {
        assert!(SPEECH.contains(&format!("#   {key} ")), "{key} is not explained");
    }
}

#[test]
fn the_models_for_recordings_load_with_it() {
    const RECORDINGS: &str = include_str!("../../../../catalog/transcription.toml");
    let files = [
        ("catalog/demo.toml".to_owned(), DEMO.to_owned()),
        ("catalog/transcription.toml".to_owned(), RECORDINGS.to_owned()),
    ];
    let catalog =
        load_for(&files, &["sim", "dashscope"]).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    let listening: Vec<_> = catalog.models.values().filter(|model| model.transcription.is_some()).collect();
    assert_eq!(listening.len(), 4);
    for model in listening {
        assert!(!model.description.is_empty() && model.supports("audio-transcription"), "{}", model.name);
        assert_eq!(model.billing_unit, BillingUnit::AudioDuration);
    }
}

#[test]
fn the_picture_models_load_with_it() {
    const IMAGES: &str = include_str!("../../../../catalog/images.toml");
    let files =
        [("catalog/demo.toml".to_owned(), DEMO.to_owned()), ("catalog/images.toml".to_owned(), IMAGES.to_owned())];
    let catalog = load_for(&files, &["sim", "minimax", "gemini"])
        .unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    let drawing: Vec<_> = catalog.models.values().filter(|model| model.supports("image-generation")).collect();
    assert_eq!(drawing.len(), 3);
    for model in drawing {
        assert!(!model.description.is_empty() && model.billing_unit == BillingUnit::PerCall, "{}", model.name);
    }
}

#[test]
fn the_video_models_load_with_it() {
    const VIDEO: &str = include_str!("../../../../catalog/video.toml");
    let files =
        [("catalog/demo.toml".to_owned(), DEMO.to_owned()), ("catalog/video.toml".to_owned(), VIDEO.to_owned())];
    let providers = ["sim", "dashscope", "ark", "kling", "minimax", "openai", "gemini"];
    let catalog = load_for(&files, &providers).unwrap_or_else(|mistakes| panic!("{}", super::lines(&mistakes)));
    let videos: Vec<_> = catalog.models.values().filter(|model| model.video.is_some()).collect();
    assert_eq!(videos.len(), 21);
    for model in videos {
        assert!(!model.description.is_empty() && model.max_duration_seconds.is_some(), "{}", model.name);
    }
    for key in ["variant", "sold", "one_price", "request_attr"] {
        assert!(VIDEO.contains(key), "{key} is not explained");
    }
}
