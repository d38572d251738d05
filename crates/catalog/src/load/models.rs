//! `[model."NAME"]` tables: the fields of the record and the routes.

use std::collections::BTreeMap;

use super::{chat, embedding, image, list, music, prices, speech, transcription, video};
use crate::form::{Form, did_you_mean};
use crate::{BillingUnit, EndpointType, Group, Model, Route};

const MODALITIES: &[&str] = &["text", "image", "audio", "video", "file"];
/// The type of a model that converses, and of one that does not say its type.
const CHAT: &str = "llm";
/// Larger than any model's; guards against typing mistakes and keeps sums small.
const MAX_TOKENS: u64 = 1_000_000_000;

pub(super) fn read(name: &str, mut form: Form<'_>, groups: &BTreeMap<String, Group>) -> Model {
    check_name(name, &form);
    let place = form.place();
    let billing_unit = form.choice_or("billing_unit", BillingUnit::Tokens, &BillingUnit::ALL);
    let input_modalities = form.words("input_modalities", MODALITIES);
    let output_modalities = form.words("output_modalities", MODALITIES);
    let kind = form.text_or("type", CHAT);
    let supported_endpoint_types = endpoint_types(name, &mut form, billing_unit, &kind);
    let needed = prices::needed(billing_unit, &supported_endpoint_types, &input_modalities, &output_modalities);
    let book = prices::read(&mut form, billing_unit, &needed);
    let sold = billing_unit.complete(&book.standard);
    let pictures = supported_endpoint_types.iter().any(|name| name == "image-generation");
    let image = image::read(&mut form, &book, pictures);
    let model = Model {
        name: name.to_owned(),
        description: form.text_or("description", ""),
        kind,
        context_window: form.opt_int("context_window", 1..=MAX_TOKENS),
        max_input_tokens: form.opt_int("max_input_tokens", 1..=MAX_TOKENS),
        max_output_tokens: form.opt_int("max_output_tokens", 1..=MAX_TOKENS),
        input_modalities,
        output_modalities,
        reasoning_efforts: form.texts("reasoning_efforts"),
        resolutions: form.texts("resolutions"),
        max_duration_seconds: form.opt_int("max_duration_seconds", 1..=86_400),
        pricing_notes: form.opt_text("pricing_notes"),
        login_required: form.flag_or("login_required", false),
        icon: form.opt_text("icon"),
        tags: form.texts("tags"),
        vendor_id: form.opt_int("vendor_id", 0..=i64::MAX),
        owner_by: form.opt_text("owner_by"),
        enable_groups: enabled_groups(&mut form, groups),
        supported_endpoint_types,
        capabilities: form.texts("capabilities"),
        tasks: form.texts("tasks"),
        billing_unit,
        default_voice: form.opt_text("default_voice"),
        default_response_format: form.opt_text("default_response_format"),
        speech_input: form.opt_text("speech_input"),
        accepted_upload_formats: form.texts("accepted_upload_formats"),
        requires_topup: form.flag_or("requires_topup", false),
        chat: chat::read(&mut form),
        book,
        list: list::read(&mut form, billing_unit, &sold),
        routes: routes(&mut form),
        video: video::read(&mut form),
        image,
        speech: speech::read(&mut form),
        music: music::read(&mut form),
        transcription: transcription::read(&mut form),
        embedding: embedding::read(&mut form),
        place,
    };
    form.finish();
    model
}

fn check_name(name: &str, form: &Form<'_>) {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
    if name.is_empty() || name.len() > 200 || !name.chars().all(fits) {
        form.mistake_here("a model name has 1 to 200 letters, digits or -_.:/@+ (it is used in addresses)");
    }
}

pub(super) fn enabled_groups(form: &mut Form<'_>, groups: &BTreeMap<String, Group>) -> Vec<String> {
    let Some(mut names) = form.opt_texts("enable_groups") else {
        return vec![Group::DEFAULT.to_owned()];
    };
    if names.is_empty() {
        form.mistake("enable_groups", "sells the model to nobody: name a group");
    }
    for name in names.iter().filter(|name| !groups.contains_key(*name)) {
        let hint = did_you_mean(name, groups.keys().map(String::as_str));
        form.mistake("enable_groups", format!("no group is called {name:?}{hint}"));
    }
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// A model that converses does so in every chat format, unless its table says in which.
fn endpoint_types(model: &str, form: &mut Form<'_>, unit: BillingUnit, kind: &str) -> Vec<String> {
    let given = form.has("supported_endpoint_types");
    let mut types = form.words("supported_endpoint_types", &EndpointType::names());
    if !given && kind != CHAT {
        let reason = format!("is missing: a model of type {kind:?} says which endpoints offer it");
        form.mistake("supported_endpoint_types", reason);
    } else if !given {
        let gemini = model.starts_with("gemini-").then_some("gemini");
        types = ["openai", "anthropic", "openai-response"].into_iter().chain(gemini).map(str::to_owned).collect();
    }
    if types.iter().any(|name| name == "gemini") && !model.starts_with("gemini-") {
        form.mistake("supported_endpoint_types", "\"gemini\" is for models whose name starts with gemini-");
    }
    for kind in types.iter().filter_map(|name| EndpointType::named(name)) {
        if !kind.units.contains(&unit) {
            let units: Vec<&str> = kind.units.iter().map(|unit| unit.name()).collect();
            form.mistake(
                "supported_endpoint_types",
                format!("{:?} cannot be billed by {}, only by {}", kind.name, unit.name(), units.join(" or ")),
            );
        }
    }
    types
}

fn routes(form: &mut Form<'_>) -> Vec<Route> {
    let mut routes = Vec::new();
    for mut table in form.tables("route") {
        let place = table.place();
        routes.push(Route {
            provider: table.text("provider"),
            upstream_model: table.text("upstream_model"),
            priority: table.int_or("priority", 0, 0..=1_000_000),
            weight: table.int_or("weight", 1, 0..=1_000_000),
            place,
        });
        table.finish();
    }
    if routes.is_empty() {
        form.mistake("route", "is missing: a model needs at least one [[…route]]");
    } else if routes.iter().all(|route| route.weight == 0) {
        form.mistake("route", "every route has weight 0: none would be taken");
    }
    routes.sort_by_key(|route| route.priority);
    routes
}
