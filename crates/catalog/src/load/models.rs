//! `[model."NAME"]` tables: the fields of the record and the routes.

use std::collections::BTreeMap;

use super::{CatalogNames, changes, chat, embedding, image, labels, list, music, prices, speech, transcription, video};
use crate::form::{Form, did_you_mean};
use crate::labels::{CHAT, usual_type};
use crate::{BillingUnit, Condition, EndpointType, Faces, Group, Model, Route, RouteCost, probe_every};

const MODALITIES: &[&str] = &["text", "image", "audio", "video", "file"];
/// Larger than any model's; guards against typing mistakes and keeps sums small.
const MAX_TOKENS: u64 = 1_000_000_000;

pub(super) fn read(name: &str, mut form: Form<'_>, names: &CatalogNames<'_>) -> Model {
    check_name(name, &form);
    let place = form.place();
    let billing_unit = form.choice_or("billing_unit", BillingUnit::Tokens, &BillingUnit::ALL);
    let input_modalities = form.words("input_modalities", MODALITIES);
    let output_modalities = form.words("output_modalities", MODALITIES);
    let given_type = labels::given_type(&mut form);
    let supported_endpoint_types = endpoint_types(name, &mut form, billing_unit, given_type.as_deref());
    let reasoning_efforts = form.texts("reasoning_efforts");
    let chat = chat::read(&mut form);
    let reasons = !reasoning_efforts.is_empty() || chat.thinks_always;
    let capabilities = labels::capabilities(&mut form, &supported_endpoint_types);
    let tasks = labels::tasks(&mut form, &supported_endpoint_types, &input_modalities, reasons);
    let needed = prices::needed(billing_unit, &supported_endpoint_types, &input_modalities, &output_modalities);
    let book = prices::read(&mut form, billing_unit, &needed);
    let sold = billing_unit.complete(&book.standard);
    let pictures = supported_endpoint_types.iter().any(|name| name == "image-generation");
    let changes = changes::read(&mut form, billing_unit, &needed);
    let books = || std::iter::once(&book).chain(changes.iter().map(|change| &change.book));
    let image = image::read(&mut form, books(), pictures);
    // Who wrote it matters to the commands that write catalogs, not to who sells it.
    let _origin = form.opt_text("origin");
    let model = Model {
        name: name.to_owned(),
        description: form.text_or("description", ""),
        kind: given_type.unwrap_or_else(|| usual_type(&supported_endpoint_types).to_owned()),
        context_window: form.opt_int("context_window", 1..=MAX_TOKENS),
        max_input_tokens: form.opt_int("max_input_tokens", 1..=MAX_TOKENS),
        max_output_tokens: form.opt_int("max_output_tokens", 1..=MAX_TOKENS),
        input_modalities,
        output_modalities,
        reasoning_efforts,
        resolutions: form.texts("resolutions"),
        max_duration_seconds: form.opt_int("max_duration_seconds", 1..=86_400),
        pricing_notes: form.opt_text("pricing_notes"),
        login_required: form.flag_or("login_required", false),
        icon: labels::icon(&mut form),
        tags: labels::tags(&mut form),
        vendor: vendor(&mut form, names),
        vendor_id: form.opt_int("vendor_id", 0..=i64::MAX),
        owner_by: form.opt_text("owner_by"),
        enable_groups: enabled_groups(&mut form, names.groups),
        supported_endpoint_types,
        capabilities,
        tasks,
        billing_unit,
        default_voice: form.opt_text("default_voice"),
        default_response_format: form.opt_text("default_response_format"),
        speech_input: form.opt_text("speech_input"),
        accepted_upload_formats: form.texts("accepted_upload_formats"),
        requires_topup: form.flag_or("requires_topup", false),
        chat,
        book,
        list: list::read(&mut form, billing_unit, &sold),
        changes,
        routes: routes(&mut form, &sold),
        video: video::read(&mut form),
        image,
        speech: speech::read(&mut form),
        music: music::read(&mut form),
        transcription: transcription::read(&mut form),
        embedding: embedding::read(&mut form),
        place,
    };
    check_limits(&form, &model);
    check_facts(&form, &model);
    form.finish();
    model
}

fn check_name(name: &str, form: &Form<'_>) {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+".contains(c);
    if name.is_empty() || name.len() > 200 || !name.chars().all(fits) {
        form.mistake_here("a model name has 1 to 200 letters, digits or -_.:/@+ (it is used in addresses)");
    }
}

/// What a model answers has room in what it can hold at all.
fn check_limits(form: &Form<'_>, model: &Model) {
    if let (Some(window), Some(output)) = (model.context_window, model.max_output_tokens)
        && output > window
    {
        form.mistake("max_output_tokens", format!("is more than context_window, {window}"));
    }
}

/// Tiers by facts of a request: each can come true, and nothing about it is guessed.
fn check_facts(form: &Form<'_>, model: &Model) {
    for condition in model.books().flat_map(|book| &book.tiers).flat_map(|tier| &tier.when) {
        let words = || model.supported_endpoint_types.iter().flat_map(|kind| endpoint_words(kind));
        if let Some(kind) = condition.fact(Condition::ENDPOINT).filter(|kind| !words().any(|word| word == *kind)) {
            let own = words().collect::<Vec<_>>().join(", ");
            form.mistake(
                "tier",
                format!("a price goes by the endpoint {kind:?}, which does not offer the model; what does: {own}"),
            );
        }
        let unknown = condition.fact(Condition::THINKING).filter(|_| model.chat.thinks(None).is_none());
        if unknown.is_some() {
            form.mistake(
                "tier",
                "a price goes by thinking: say with `chat.thinks_unasked` whether the model thinks where a request does not say",
            );
        }
        if let Some(value) = condition.fact(Condition::THINKING).filter(|value| !matches!(*value, "true" | "false")) {
            form.mistake("tier", format!("`thinking` is true or false, never {value:?}"));
        }
    }
}

/// What prices call the endpoints of a type.
fn endpoint_words(kind: &str) -> Vec<&str> {
    match kind {
        "system-one" => vec!["systemone", "decisions"],
        "jina-rerank" => vec!["rerank"],
        kind => vec![kind],
    }
}

fn vendor(form: &mut Form<'_>, names: &CatalogNames<'_>) -> Option<String> {
    let name = form.opt_text("vendor")?;
    if !names.vendors.contains_key(&name) {
        let hint = did_you_mean(&name, names.vendors.keys().map(String::as_str));
        form.mistake("vendor", format!("no vendor is called {name:?}{hint}"));
    }
    if form.has("vendor_id") {
        form.mistake("vendor_id", "is the number of `vendor`: leave one of them out");
    }
    Some(name)
}

pub(super) fn enabled_groups(form: &mut Form<'_>, groups: &BTreeMap<String, Group>) -> Vec<String> {
    let Some(mut sold_to) = form.opt_texts("enable_groups") else {
        return vec![Group::DEFAULT.to_owned()];
    };
    if sold_to.is_empty() {
        form.mistake("enable_groups", "sells the model to nobody: name a group");
    }
    for name in sold_to.iter().filter(|name| !groups.contains_key(*name)) {
        let hint = did_you_mean(name, groups.keys().map(String::as_str));
        form.mistake("enable_groups", format!("no group is called {name:?}{hint}"));
    }
    let mut seen = std::collections::BTreeSet::new();
    sold_to.retain(|name| seen.insert(name.clone()));
    sold_to
}

/// A model that converses does so in every chat format, unless its table says in which.
fn endpoint_types(model: &str, form: &mut Form<'_>, unit: BillingUnit, kind: Option<&str>) -> Vec<String> {
    let given = form.has("supported_endpoint_types");
    let mut types = form.words("supported_endpoint_types", &EndpointType::names());
    if let Some(kind) = kind.filter(|kind| !given && *kind != CHAT) {
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

/// What a route costs. A face that the model does not sell is a misunderstanding.
fn cost(route: &mut Form<'_>, sold: &Faces) -> Option<RouteCost> {
    let read = |mut table: Form<'_>| {
        let faces = prices::faces(&mut table);
        for (face, _) in faces.iter().filter(|(face, _)| !sold.is_empty() && !sold.has(*face)) {
            table.mistake(face.name(), "is not sold by this model: its cost would never be counted");
        }
        if faces.is_empty() {
            table.mistake_here("is empty: name what each face costs, in micro-USD");
        }
        table.finish();
        faces
    };
    let tiers: Vec<(String, Faces)> =
        route.named("tier_cost").into_iter().map(|(name, table)| (name, read(table))).collect();
    let faces = route.opt_table("cost").map(read);
    if faces.is_none() && !tiers.is_empty() {
        route.mistake("tier_cost", "needs `cost` beside it: what the route costs outside of tiers");
    }
    faces.map(|faces| RouteCost { faces, tiers })
}

fn routes(form: &mut Form<'_>, sold: &Faces) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for mut table in form.tables("route") {
        let place = table.place();
        let of = Route {
            provider: table.text("provider"),
            upstream_model: table.text("upstream_model"),
            priority: table.int_or("priority", 0, 0..=1_000_000),
            weight: table.int_or("weight", 1, 0..=1_000_000),
            cost: cost(&mut table, sold),
            probe_every: probe_every(&mut table, "probe_every"),
            place,
        };
        let same = |other: &Route| other.provider == of.provider && other.upstream_model == of.upstream_model;
        if !of.provider.is_empty() && routes.iter().any(same) {
            let reason =
                format!("leads to {:?} at {:?} like another route of the model", of.upstream_model, of.provider);
            table.mistake_here(reason);
        }
        routes.push(of);
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
