//! Mistakes about videos in catalog and configuration are reported with file, line, field and
//! reason before anything is sold.

use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_gateway::settings::ConfigSource;

const CONFIG: &str = r#"
[provider.dashscope]
kind = "dashscope"
base_url = "http://127.0.0.1:9/"
[provider.minimax]
kind = "minimax"
base_url = "http://127.0.0.1:9/"
[provider.openai]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
[provider.kling]
kind = "kling"
base_url = "http://127.0.0.1:9/"
access_env = "KLING_ACCESS"
secret_env = "KLING_SECRET"
"#;

/// What is wrong with this configuration and this catalog; the folder's name is left out.
fn mistakes(config: &str, catalog: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), config).expect("written");
    std::fs::write(dir.path().join("catalog/video.toml"), catalog).expect("written");
    let names = ["KLING_ACCESS", "KLING_SECRET", "KLING_ACCESS_KEY", "KLING_SECRET_KEY"];
    let environment = names.map(|name| (name, "a-secret"));
    let environment: BTreeMap<_, _> = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let source = ConfigSource { file: dir.path().join("tollgate.toml"), environment: Arc::new(environment) };
    let folder = format!("{}/", dir.path().display());
    let all = source.load().err().unwrap_or_default();
    all.iter().map(|mistake| mistake.to_string().replace(&folder, "")).collect()
}

fn model(provider: &str, more: &str) -> String {
    format!(
        "[model.m]\nbilling_unit = \"per_second\"\nprice = {{ video_second = 100 }}\n\
         route = [{{ provider = \"{provider}\", upstream_model = \"u\" }}]\n{more}"
    )
}

const OFFERED: &str = "supported_endpoint_types = [\"openai-video\"]\n";
const TIER: &str = "tier = [{ name = \"t\", when = [{ dim = \"request_attr\", path = \"resolution\", equals = \"1080P\" }], multiplier = 2 }]\n";

/// The two blocks of docs/video.md are a provider and a model that can be sold as they stand.
#[test]
fn the_example_of_the_documentation_can_be_sold() {
    let page = std::fs::read_to_string("../../docs/video.md").expect("the page");
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().expect("an end")).collect();
    let (provider, model) = (blocks[0], blocks[1]);
    assert!(provider.starts_with("[provider.kling]") && model.contains("type = \"video\""), "{provider}{model}");
    assert_eq!(mistakes(provider, model), Vec::<String>::new());
}

#[test]
fn a_right_one_has_none() {
    let good = model("dashscope", &format!("{OFFERED}{TIER}video = {{ variant = \"a-text-to-video\" }}\n"));
    assert_eq!(mistakes(CONFIG, &good), Vec::<String>::new());
    let same = "video = { variant = \"a-text-to-video\", one_price = [\"resolution\"] }\n";
    assert_eq!(mistakes(CONFIG, &model("dashscope", &format!("{OFFERED}{same}"))), Vec::<String>::new());
    let short = format!("{OFFERED}max_duration_seconds = 2\n{same}");
    assert_eq!(mistakes(CONFIG, &model("dashscope", &short)), Vec::<String>::new(), "the shortest there is");
    // Turned on its side a size costs the same, and its resolution may have the tier; a few
    // pictures cost the maker nothing.
    let large = TIER.replace("1080P", "1024p");
    for (provider, right) in [
        ("openai", format!("{OFFERED}video = {{ variant = \"sora\" }}\n")),
        ("openai", format!("{OFFERED}{large}video = {{ variant = \"sora-pro\" }}\n")),
        ("minimax", format!("{OFFERED}video = {{ variant = \"d-native-audio\", one_price = [\"resolution\"] }}\n")),
    ] {
        assert_eq!(mistakes(CONFIG, &model(provider, &right)), Vec::<String>::new(), "{right}");
    }
}

#[test]
fn each_mistake_names_file_line_and_field() {
    for (says, provider, more, expected) in [
        (
            "no variant",
            "dashscope",
            OFFERED.to_owned(),
            "catalog/video.toml:1: model.\"m\".video: is missing: a model that offers",
        ),
        (
            "not offered",
            "dashscope",
            format!("{TIER}video = {{ variant = \"a-text-to-video\" }}\nsupported_endpoint_types = []\n"),
            "catalog/video.toml:6: model.\"m\".video: is of no use without",
        ),
        (
            "misspelt",
            "dashscope",
            format!("{OFFERED}video = {{ variant = \"a-text-to-vidoe\" }}\n"),
            "catalog/video.toml:6: model.\"m\".video.variant: no variant is called \"a-text-to-vidoe\"; did you mean \"a-text-to-video\"?",
        ),
        (
            "another maker",
            "kling",
            format!("{OFFERED}{TIER}video = {{ variant = \"a-text-to-video\" }}\n"),
            "catalog/video.toml:4: route.provider: \"kling\" is of kind \"kling\", which does not make videos by the rules of \"a-text-to-video\"",
        ),
        (
            "two values at the base price",
            "dashscope",
            format!("{OFFERED}video = {{ variant = \"a-text-to-video\" }}\n"),
            "catalog/video.toml:6: model.\"m\".video: 720P, 1080P of `resolution` would all be sold at the base price",
        ),
        (
            "a dear mode without a tier",
            "kling",
            format!("{OFFERED}video = {{ variant = \"c-multi-image\" }}\n"),
            "catalog/video.toml:6: model.\"m\".video: std, pro, 4k of `mode` would all be sold",
        ),
        (
            "a larger size without a tier",
            "openai",
            format!("{OFFERED}video = {{ variant = \"sora-pro\" }}\n"),
            "catalog/video.toml:6: model.\"m\".video: 720x1280, 1280x720, 1024x1792, 1792x1024 of `size` would all be sold",
        ),
        (
            "pictures the maker charges for",
            "minimax",
            format!(
                "{OFFERED}video = {{ variant = \"d-native-audio\", one_price = [\"resolution\"], sold = {{ reference_images = [\"5\", \"6\"] }} }}\n"
            ),
            "catalog/video.toml:6: model.\"m\".video: 5, 6 of `reference_images` would all be sold",
        ),
        (
            "a tier beside no size",
            "dashscope",
            format!("{OFFERED}{TIER}video = {{ variant = \"a-image-to-video\", tier_beside_size = true }}\n"),
            "catalog/video.toml:7: model.\"m\".video.tier_beside_size: \"a-image-to-video\" sends no size as it was written",
        ),
        (
            "a tier that never applies",
            "dashscope",
            format!("{OFFERED}{}video = {{ variant = \"a-text-to-video\" }}\n", TIER.replace("1080P", "1080p")),
            "catalog/video.toml:7: model.\"m\".tier.when: `resolution` is never \"1080p\" here; what is sold: 720P, 1080P",
        ),
        (
            "a tier by something that is no fact",
            "dashscope",
            format!("{OFFERED}{}video = {{ variant = \"a-text-to-video\" }}\n", TIER.replace("resolution", "quality")),
            "catalog/video.toml:7: model.\"m\".tier.when: a price cannot depend on \"quality\"",
        ),
        (
            "a parameter the variant does not have",
            "dashscope",
            format!("{OFFERED}{TIER}video = {{ variant = \"a-text-to-video\", sold = {{ mode = [\"pro\"] }} }}\n"),
            "catalog/video.toml:7: model.\"m\".video: \"a-text-to-video\" has no parameter \"mode\"",
        ),
        (
            "shown and not sold",
            "dashscope",
            format!("{OFFERED}{TIER}resolutions = [\"480P\"]\nvideo = {{ variant = \"a-text-to-video\" }}\n"),
            "catalog/video.toml:8: model.\"m\".resolutions: \"480P\" is not sold; what is sold: 720P, 1080P",
        ),
        (
            "shorter than any",
            "kling",
            format!(
                "{OFFERED}max_duration_seconds = 2\nvideo = {{ variant = \"c-standard\", sold = {{ mode = [\"std\"], sound = [\"off\"] }} }}\n"
            ),
            "catalog/video.toml:7: model.\"m\".max_duration_seconds: is 2, and \"c-standard\" makes no video shorter than 3 seconds",
        ),
    ] {
        let found = mistakes(CONFIG, &model(provider, &more));
        assert!(found.iter().any(|one| one.starts_with(expected)), "{says}: {found:#?}");
    }
}

/// Whatever is sold: a route to a provider that cannot do it is reported with the field, the
/// provider and the ability.
#[test]
fn a_route_leads_to_a_provider_that_has_the_ability() {
    let others = "[provider.claude]\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9\"\n\
                  [provider.posts]\nkind = \"social-source\"\nbase_url = \"http://127.0.0.1:9\"\n";
    let config = format!("{CONFIG}{others}");
    let chat = |provider: &str| {
        format!(
            "[model.m]\nprice = {{ input = 1, output = 1 }}\nroute = [{{ provider = \"{provider}\", upstream_model = \"u\" }}]\n"
        )
    };
    let video = model("claude", &format!("{OFFERED}{TIER}video = {{ variant = \"a-text-to-video\" }}\n"));
    for (catalog, line, message) in [
        (chat("kling"), 3, "\"kling\" is of kind \"kling\", which has no chat; it has video, images"),
        (chat("posts"), 3, "\"posts\" is of kind \"social-source\", which has no chat; it has social data"),
        (video, 4, "\"claude\" is of kind \"anthropic\", which has no video; it has chat"),
    ] {
        assert_eq!(mistakes(&config, &catalog), [format!("catalog/video.toml:{line}: route.provider: {message}")]);
    }
    let cells = std::fs::read_to_string("../../catalog/social/bilibili.toml").expect("the page");
    let found = mistakes(CONFIG, &cells.replace("provider = \"tikhub\"", "provider = \"openai\""));
    let message = "route.provider: \"openai\" is of kind \"openai\", which has no social data; it has chat, video";
    assert!(!found.is_empty() && found.iter().all(|one| one.contains(message)), "{found:#?}");
}

#[test]
fn a_pair_of_keys_is_for_those_who_take_one() {
    let single = CONFIG.replace("kind = \"dashscope\"", "kind = \"dashscope\"\naccess_env = \"KLING_ACCESS\"");
    let found = mistakes(&single, "");
    assert_eq!(
        found,
        ["tollgate.toml:4: provider.dashscope.access_env: this kind takes a single key, in secret_env or secret_file"]
    );
    let half = CONFIG.replace("secret_env = \"KLING_SECRET\"\n", "");
    let found = mistakes(&half, "");
    assert_eq!(
        found,
        ["tollgate.toml:14: provider.kling.access_env: needs the secret beside it, in secret_env or secret_file"]
    );
}
