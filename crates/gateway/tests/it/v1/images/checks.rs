//! The `image` tables of a catalog are held to what prices can go by and to what makers do, before
//! anything is sold.

use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_gateway::settings::ConfigSource;

const CONFIG: &str = r#"
[provider.openai]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
[provider.grok]
kind = "openai"
base_url = "http://127.0.0.1:9/v1"
[provider.grok.quirks]
picture_fields = ["user"]
[provider.minimax]
kind = "minimax"
base_url = "http://127.0.0.1:9/"
[provider.ark]
kind = "ark"
base_url = "http://127.0.0.1:9/"
[provider.dashscope]
kind = "dashscope"
base_url = "http://127.0.0.1:9/"
[provider.gemini]
kind = "gemini"
base_url = "http://127.0.0.1:9/"
"#;

fn mistakes(provider: &str, table: &str, tier: Option<(&str, &str)>) -> Vec<String> {
    let tier = tier.map(|(path, value)| {
        format!("[[model.m.tier]]\nname = \"t\"\nwhen = [{{ dim = \"request_attr\", path = {path:?}, equals = {value:?} }}]\nprice = {{ per_call = 2 }}\n")
    });
    let catalog = format!(
        "[model.m]\ntype = \"image\"\nsupported_endpoint_types = [\"image-generation\"]\nbilling_unit = \"per_call\"\n\
         price = {{ per_call = 1 }}\nroute = [{{ provider = \"{provider}\", upstream_model = \"u\" }}]\n\
         image = {{ {table} }}\n{}",
        tier.unwrap_or_default()
    );
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("catalog")).expect("a folder");
    std::fs::write(dir.path().join("tollgate.toml"), CONFIG).expect("written");
    std::fs::write(dir.path().join("catalog/images.toml"), catalog).expect("written");
    let source = ConfigSource { file: dir.path().join("tollgate.toml"), environment: Arc::new(BTreeMap::new()) };
    let folder = format!("{}/", dir.path().display());
    let all = source.load().err().unwrap_or_default();
    all.iter().map(|mistake| mistake.to_string().replace(&folder, "")).collect()
}

/// C3: what is sold and not made.
#[test]
fn what_a_maker_does_not_do_is_a_mistake_of_its_key() {
    for (provider, table) in [
        ("openai", "most = 10, edit_images = 16, masks = true, streams = true, partial_images = true"),
        ("minimax", "most = 9, edit_images = 1"),
        ("minimax", "api = \"live\""),
        ("ark", "most = 100, edit_images = 14"),
        ("dashscope", "api = \"tasks\", most = 4, edit_images = 3"),
        ("gemini", "most = 20, edit_images = 16"),
        ("gemini", "api = \"imagen\", most = 4"),
        ("grok", "most = 10"),
    ] {
        assert_eq!(mistakes(provider, table, None), Vec::<String>::new(), "{provider} {table}");
    }
    for (provider, table, key, reason) in [
        ("openai", "api = \"tasks\"", "api", "has no way \"tasks\"; it has \"\""),
        ("dashscope", "api = \"task\"", "api", "has no way \"task\"; it has \"\", \"tasks\""),
        ("minimax", "most = 10", "most", "makes at most 9 in one call"),
        ("gemini", "api = \"imagen\", most = 5", "most", "makes at most 4 in one call"),
        ("minimax", "edit_images = 2", "edit_images", "takes at most 1 to change"),
        ("ark", "edit_images = 16", "edit_images", "takes at most 14 to change"),
        ("gemini", "api = \"imagen\", edit_images = 1", "edit_images", "changes no pictures in this way"),
        ("dashscope", "edit_images = 1, masks = true", "masks", "takes no mask"),
        ("grok", "edit_images = 1, masks = true", "masks", "takes no mask"),
        ("ark", "streams = true", "streams", "cannot stream"),
        ("grok", "streams = true", "streams", "cannot stream"),
    ] {
        let found = mistakes(provider, table, None);
        let expected = format!("model.\"m\".image.{key}: \"{provider}\" is of kind");
        assert!(
            matches!(found.as_slice(), [one] if one.contains(&expected) && one.ends_with(reason)),
            "{table}: {found:#?}"
        );
        assert!(found[0].starts_with("catalog/images.toml:7: "), "{found:#?}");
    }
}

/// R7, B6: a tier that never applies sells what it means at the base price.
#[test]
fn what_prices_go_by_has_one_spelling_and_comes_true() {
    let usual = "default_size = \"1024x1024\", default_quality = \"low\"";
    let with = |more: &str| format!("{usual}, {more}");
    for (table, tier) in [
        (with("qualities = [\"low\", \"high\"]"), Some(("quality", "high"))),
        (usual.to_owned(), Some(("quality", "High"))),
        (usual.to_owned(), Some(("metadata.quality", "high"))),
        (with("sizes = [\"1024x1024\", \"2K\", \"16:9\"]"), Some(("size", "2K"))),
        (usual.to_owned(), Some(("resolution", "4K"))),
        (with("edit_images = 3"), Some(("edit", "true"))),
        (with("edit_images = 3"), Some(("images", "3"))),
        (usual.to_owned(), Some(("n", "10"))),
        (usual.to_owned(), Some(("stream", "true"))),
        (usual.to_owned(), Some(("output_format", "svg"))),
    ] {
        assert_eq!(mistakes("openai", &table, tier), Vec::<String>::new(), "{table} {tier:?}");
    }
    for (table, tier, field, reason) in [
        (
            with("qualities = [\"low\", \"high\"]"),
            Some(("quality", "High")),
            "image.qualities",
            "\"high\" and \"High\" are one quality",
        ),
        (with("qualities = [\"low\", \"Low\"]"), None, "image.qualities", "\"low\" and \"Low\" are one quality"),
        (with("qualities = [\"Low\"]"), None, "image.qualities", "\"Low\" and \"low\" are one quality"),
        (usual.to_owned(), Some(("quality", "LOW")), "image.qualities", "\"low\" and \"LOW\" are one quality"),
        (with("qualities = [\"low\"]"), Some(("quality", "max")), "tier.when", "never \"max\" here; what is sold: low"),
        (usual.to_owned(), Some(("quality", "auto")), "tier.when", "it becomes `image.default_quality`"),
        (with("qualities = [\"high\"]"), None, "image.default_quality", "\"low\" is not one of"),
        (with("sizes = [\"1024x1024\", \"2k\"]"), None, "image.sizes", "\"2k\" is known as \"2K\""),
        (with("sizes = [\"1024x1024\", \"large\"]"), None, "image.sizes", "\"large\" is no size"),
        (with("sizes = [\"2048x2048\"]"), None, "image.default_size", "\"1024x1024\" is not one of"),
        (usual.to_owned(), Some(("size", "1536*1024")), "tier.when", "is known as \"1536x1024\""),
        (with("sizes = [\"1024x1024\"]"), Some(("size", "2K")), "tier.when", "what is sold: 1024x1024"),
        (usual.to_owned(), Some(("resolution", "4k")), "tier.when", "it is one of 1K, 2K, 4K"),
        (usual.to_owned(), Some(("images", "1")), "tier.when", "it is 0 to 0"),
        (usual.to_owned(), Some(("edit", "true")), "tier.when", "has no edits"),
        (with("edit_images = 1"), Some(("edit", "yes")), "tier.when", "true or false"),
        (with("most = 4"), Some(("n", "5")), "tier.when", "it is 1 to 4"),
        (
            usual.to_owned(),
            Some(("aspect_ratio", "16:9")),
            "tier.when",
            "a price cannot depend on \"aspect_ratio\"; it can on size",
        ),
        ("default_size = \"huge\"".to_owned(), None, "image.default_size", "is no size such as"),
        (
            "default_size = \"auto\"".to_owned(),
            Some(("size", "2K")),
            "image.default_size",
            "\"auto\", which has no price",
        ),
        ("default_size = \"1:1\"".to_owned(), Some(("resolution", "4K")), "image.default_size", "says no class"),
        (
            "default_quality = \"auto\"".to_owned(),
            Some(("quality", "high")),
            "image.default_quality",
            "\"auto\", which has no price",
        ),
        (
            String::new(),
            Some(("metadata.quality", "high")),
            "image.default_quality",
            "is missing: prices go by the quality",
        ),
        (String::new(), Some(("metadata.size", "2K")), "image.default_size", "is missing: prices go by the size"),
    ] {
        let found = mistakes("openai", &table, tier);
        let there = found.iter().any(|one| one.contains(field) && one.contains(reason));
        assert!(there && found.len() == 1, "{reason:?} is not all of {found:#?}");
    }
}
