//! Kinds of mistakes in a catalog, one row each: what was written, and how it is named by file,
//! line and field.

use super::mistakes_of;

/// A model that is right, with more lines in its table; they begin at line 4.
fn model(more: &str) -> String {
    format!(
        "[model.m]\nprice = {{ input = 1, output = 1 }}\nroute = [{{ provider = 'p', upstream_model = 'm' }}]\n{more}\n"
    )
}

#[test]
fn every_kind_of_mistake_is_named_by_file_line_and_field() {
    let speech = "billing_unit = 'characters'\nsupported_endpoint_types = ['audio-speech']\nprice = { input = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n";
    let rows: &[(&str, String, &str)] = &[
        ("a key that is not known", model("colour = 'red'"), "test.toml:4: model.m.colour:"),
        ("a text for a number", model("context_window = 'large'"), "test.toml:4: model.m.context_window:"),
        ("a limit that does not fit", model("context_window = 10\nmax_output_tokens = 11"), "test.toml:5: model.m.max_output_tokens:"),
        ("a type that is not one", model("type = 'chatbot'"), "test.toml:4: model.m.type:"),
        ("a type without endpoints", model("type = 'image'"), "test.toml:1: model.m.supported_endpoint_types:"),
        ("a capability that is not one", model("capabilities = ['text']"), "test.toml:4: model.m.capabilities:"),
        ("a task that is not one", model("tasks = ['chatting']"), "test.toml:4: model.m.tasks:"),
        ("a modality that is not one", model("input_modalities = ['smell']"), "test.toml:4: model.m.input_modalities:"),
        ("an endpoint type that is not one", model("supported_endpoint_types = ['open-ai']"), "test.toml:4: model.m.supported_endpoint_types:"),
        ("a tag with a comma", model("tags = ['fast, cheap']"), "test.toml:4: model.m.tags:"),
        ("an icon from elsewhere", model("icon = 'https://cdn.example/x.svg'"), "test.toml:4: model.m.icon:"),
        ("an icon that climbs", model("icon = '/assets/../secrets.key'"), "test.toml:4: model.m.icon:"),
        ("a vendor without a table", model("vendor = 'acme'"), "test.toml:4: model.m.vendor:"),
        ("a vendor and a number", model("vendor = 'acme'\nvendor_id = 3\n[vendor.acme]\nid = 3"), "test.toml:5: model.m.vendor_id:"),
        ("a vendor without a number", format!("[vendor.acme]\nname = 'Acme'\n{}", model("")), "test.toml:1: vendor.acme.id:"),
        ("a number of two vendors", "[vendor.acme]\nid = 3\n[vendor.other]\nid = 3\n".to_owned(), "test.toml:4: vendor.other.id:"),
        ("a number that is not one", "[vendor.acme]\nid = 0\n".to_owned(), "test.toml:2: vendor.acme.id:"),
        ("a group that is not there", model("enable_groups = ['vip']"), "test.toml:4: model.m.enable_groups:"),
        ("a model for nobody", model("enable_groups = []"), "test.toml:4: model.m.enable_groups:"),
        ("an order of groups that are not there", "auto_groups = ['vip']\n".to_owned(), "test.toml:1: auto_groups:"),
        ("a group without a multiplier", "[group.vip]\n".to_owned(), "test.toml:1: group.vip.multiplier:"),
        ("a group for nothing", "[group.vip]\nmultiplier = 0\n".to_owned(), "test.toml:2: group.vip.multiplier:"),
        ("no price", "[model.m]\nroute = [{ provider = 'p', upstream_model = 'm' }]\n".to_owned(), "test.toml:1: model.m.price:"),
        ("a price in dollars", "[model.m]\nprice = { input = 0.5, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n".to_owned(), "test.toml:2: model.m.price.input:"),
        ("a price below zero", "[model.m]\nprice = { input = 1, output = -1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n".to_owned(), "test.toml:2: model.m.price.output:"),
        ("a price of another unit", format!("[model.m]\n{}", speech.replace("input = 1", "input = 1, per_call = 1, cache_read = 1")), "test.toml:4: model.m.price.cache_read:"),
        ("a paid price that leaves a face out", model("paid = { input = 1 }"), "test.toml:4: model.m.paid.output:"),
        ("a tier without conditions", model("[[model.m.tier]]\nname = 't'\nmultiplier = 2"), "test.toml:4: model.m.tier[0].when:"),
        ("a tier by an endpoint that does not offer the model", model("[[model.m.tier]]\nname = 't'\nmultiplier = 2\nwhen = [{ endpoint = 'realtime' }]"), "test.toml:4: model.m.tier:"),
        ("a tier by thinking that nobody knows of", model("[[model.m.tier]]\nname = 't'\nmultiplier = 2\nwhen = [{ thinking = true }]"), "test.toml:4: model.m.tier:"),
        ("thinking that is not a flag", model("chat = { thinks_unasked = true }\n[[model.m.tier]]\nname = 't'\nmultiplier = 2\nwhen = [{ thinking = 'high' }]"), "test.toml:8: model.m.tier[0].when[0].thinking:"),
        ("two facts in one condition", model("chat = { thinks_unasked = true }\n[[model.m.tier]]\nname = 't'\nmultiplier = 2\nwhen = [{ thinking = true, endpoint = 'openai' }]"), "test.toml:8: model.m.tier[0].when[0]:"),
        ("a list price without a source", model("list = { price = { input = 1 } }"), "test.toml:4: model.m.list.source:"),
        ("no route", "[model.m]\nprice = { input = 1, output = 1 }\n".to_owned(), "test.toml:1: model.m.route:"),
        ("a route twice", "[model.m]\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' },\n{ provider = 'p', upstream_model = 'm' }]\n".to_owned(), "test.toml:4: model.m.route[1]:"),
        ("a name that no address can have", "[model.'a b']\nprice = { input = 1, output = 1 }\nroute = [{ provider = 'p', upstream_model = 'm' }]\n".to_owned(), "test.toml:1: model.\"a b\":"),
        ("speech in a format that is not one", format!("[model.m]\n{speech}speech = {{ formats = ['midi'], max_characters = 1 }}\n"), "test.toml:6: model.m.speech.formats:"),
        ("not TOML", "[model.m\n".to_owned(), "test.toml:1: is not TOML"),
    ];
    for (kind, text, named) in rows {
        let mistakes = mistakes_of(text);
        assert!(mistakes.lines().any(|line| line.starts_with(named)), "{kind}: {named} is not among\n{mistakes}");
    }
    assert!(rows.len() > 30);
}

#[test]
fn a_vendor_is_found_in_any_file_and_suggested() {
    let mistakes = mistakes_of(&format!("[vendor.openai]\nid = 1\n{}", model("vendor = 'opnai'")));
    assert_eq!(mistakes, "test.toml:6: model.m.vendor: no vendor is called \"opnai\"; did you mean \"openai\"?");
}
