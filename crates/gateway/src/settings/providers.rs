//! The tables `[provider.NAME]`: a provider in the operator's own words, or one of those that are
//! known by name, with whatever differs from its row.

use super::ConfigSource;
use std::collections::HashMap;
use tollgate_catalog::form::{Form, did_you_mean};
use tollgate_catalog::probe_every;
use tollgate_media::realtime::GeminiUsage;
use tollgate_upstream::{
    Ability, BaseUrl, KINDS, KeyNeed, Preset, Provider, ProviderKind, ProviderSettings, Secret, preset, presets,
};
use tollgate_wire::{ChatQuirks, SizeMembers};

impl ConfigSource {
    pub(crate) fn providers(&self, form: &mut Form<'_>) -> HashMap<String, Option<Provider>> {
        let mut all = HashMap::new();
        for (name, mut table) in form.named("provider") {
            let provider = self.provider(&name, &mut table);
            table.finish();
            all.insert(name, provider);
        }
        all
    }

    fn provider(&self, name: &str, form: &mut Form<'_>) -> Option<Provider> {
        let known = known(form);
        let kind = kind_of(form, known);
        let base_url = address(form, known);
        let secret = self.secret(form, kind, known);
        let habits = habits(form, kind.is_some_and(|kind| kind.has(Ability::Social)), known);
        let base_url = match BaseUrl::parse(&base_url) {
            Ok(base_url) => base_url,
            Err(bad) if base_url.is_empty() => {
                tracing::debug!(%bad, "reported as missing already");
                return None;
            }
            Err(bad) => {
                form.mistake("base_url", bad.to_string());
                return None;
            }
        };
        Provider::new(name, kind?, base_url, secret, habits).map_err(|bad| form.mistake_here(bad.to_string())).ok()
    }

    /// The key of a provider. Where it is a pair, both halves are given and joined as the adaptor
    /// takes them. One that is known by name has its key in its usual variable, unless it is said
    /// otherwise.
    fn secret(&self, form: &mut Form<'_>, kind: Option<&ProviderKind>, known: Option<&Preset>) -> Option<Secret> {
        let pairs = kind.is_some_and(|kind| kind.key_pair);
        let written = ["secret_env", "secret_file", "access_env", "access_file"].into_iter().any(|key| form.has(key));
        if let Some(row) = known.filter(|row| !written && row.key == KeyNeed::Needed) {
            form.known(&["secret_env", "secret_file", "access_env", "access_file"]);
            return self.usual_secret(form, row);
        }
        let secret = self.hidden(form, "secret");
        let access = self.hidden(form, "access");
        let given = ["access_env", "access_file"].into_iter().find(|key| form.has(key));
        match (secret, access, given) {
            (secret, None, None) => secret.map(Secret::new),
            (Some(secret), Some(access), Some(_)) if pairs => Some(Secret::pair(&access, &secret)),
            (_, _, Some(given)) if !pairs => {
                form.mistake(given, "this kind takes a single key, in secret_env or secret_file");
                None
            }
            (None, Some(_), Some(given)) => {
                form.mistake(given, "needs the secret beside it, in secret_env or secret_file");
                None
            }
            _ => None,
        }
    }

    fn usual_secret(&self, form: &Form<'_>, row: &Preset) -> Option<Secret> {
        let value = |key: &str, variable: &str| {
            let value = self.environment.get(variable).filter(|value| !value.trim().is_empty());
            if value.is_none() {
                let why = format!("is missing, and the environment variable {variable} is not set");
                form.mistake(key, why);
            }
            value
        };
        let secret = value("secret_env", &row.key_env);
        match &row.access_env {
            None => secret.map(Secret::new),
            Some(variable) => {
                let access = value("access_env", variable);
                Some(Secret::pair(access?, secret?))
            }
        }
    }
}

/// The row that the table begins with, if it names one.
fn known(form: &mut Form<'_>) -> Option<&'static Preset> {
    let id = form.opt_text("preset")?;
    let row = preset(&id);
    if row.is_none() {
        let hint = did_you_mean(&id, presets().iter().map(|row| row.id.as_str()));
        form.mistake(
            "preset",
            format!("no provider is known as {id:?}{hint}: `tollgate provider list --all` shows them"),
        );
    }
    row
}

fn kind_of(form: &mut Form<'_>, known: Option<&Preset>) -> Option<&'static ProviderKind> {
    match known.filter(|_| !form.has("kind")).and_then(Preset::kind) {
        Some(kind) => {
            form.known(&["kind"]);
            Some(kind)
        }
        // A preset that nobody knows was reported.
        None if form.has("preset") && !form.has("kind") => None,
        None => {
            let kinds: Vec<_> = KINDS.iter().map(|kind| (kind.name, kind)).collect();
            form.choice("kind", &kinds)
        }
    }
}

/// The base address as written, or that of the row with its blanks filled; empty where a mistake
/// was recorded.
fn address(form: &mut Form<'_>, known: Option<&Preset>) -> String {
    let blanks: HashMap<&str, Option<String>> =
        known.map(|row| row.blanks().into_iter().map(|name| (name, form.opt_text(name))).collect()).unwrap_or_default();
    match known {
        Some(row) if !form.has("base_url") => {
            form.known(&["base_url"]);
            row.address(|name| blanks.get(name).cloned().flatten()).unwrap_or_else(|name| {
                let why = format!("is needed for the address {}: letters, digits and .-_: only", row.base_url);
                form.mistake(&name, why);
                String::new()
            })
        }
        None if form.has("preset") && !form.has("base_url") => String::new(),
        _ => form.text("base_url"),
    }
}

/// What suppliers of social data allow on one route.
const SOCIAL_RATE: usize = 10;

/// How reports of Gemini Live are read.
const LIVE_USAGE: &[(&str, GeminiUsage)] = &[("response", GeminiUsage::EachResponse), ("turn", GeminiUsage::WholeTurn)];

fn habits(form: &mut Form<'_>, social: bool, known: Option<&Preset>) -> ProviderSettings {
    let default = ProviderSettings::default();
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let bills_on = known.and_then(|row| row.stops).map_or(default.bill_on_cancel, |stops| !stops);
    let links = known.map_or(default.takes_links, |row| row.takes_links);
    ProviderSettings {
        bill_on_cancel: form.flag_or("bill_on_cancel", bills_on),
        first_byte: form.duration_or("first_byte_time", default.first_byte),
        idle: form.duration_or("idle_time", default.idle),
        drain_time: form.duration_or("drain_time", default.drain_time),
        drain_bytes: form.size_or("drain_bytes", default.drain_bytes),
        max_event_bytes: bytes(form.size_or("event_bytes", default.max_event_bytes as u64)),
        max_reply_bytes: bytes(form.size_or("reply_bytes", default.max_reply_bytes as u64)),
        estimated_percent: form.int_or("estimated_percent", default.estimated_percent, 0..=100),
        estimated_rows: form.int_or("estimated_rows", default.estimated_rows, 1..=1_000_000),
        pause_time: form.duration_or("pause_time", default.pause_time),
        poll_every: form.opt_duration("poll_every"),
        probe_every: probe_every(form, "probe_every"),
        per_second: form.int_or("requests_per_second", if social { SOCIAL_RATE } else { 0 }, 0..=100_000),
        private_links: form.flag_or("private_links", default.private_links),
        exclusive: form.flag_or("exclusive", default.exclusive),
        takes_links: form.flag_or("takes_links", links),
        live_usage: form.choice_or("live_usage", default.live_usage, LIVE_USAGE),
        live_heard: form.opt_int("live_heard", 1..=1_000),
        live_said: form.opt_int("live_said", 1..=1_000),
        api_version: form.opt_text("api_version"),
        quirks: quirks(form, known.map(|row| row.quirks.clone()).unwrap_or_default()),
        preset: known.map(|row| row.id.clone()),
    }
}

/// `[provider.NAME.quirks]`, over those of the row.
fn quirks(form: &mut Form<'_>, usual: ChatQuirks) -> ChatQuirks {
    let mut table = form.table("quirks");
    let tool_choice = match table.has("tool_choice") {
        false => usual.tool_choice,
        true => tool_choices(&mut table),
    };
    let quirks = ChatQuirks {
        max_tokens_only: table.flag_or("max_tokens_only", usual.max_tokens_only),
        no_developer_role: table.flag_or("no_developer_role", usual.no_developer_role),
        text_content_only: table.flag_or("text_content_only", usual.text_content_only),
        no_null_members: table.flag_or("no_null_members", usual.no_null_members),
        no_stream_options: table.flag_or("no_stream_options", usual.no_stream_options),
        reasoning_back: table.flag_or("reasoning_back", usual.reasoning_back),
        tool_choice,
        drop: table.opt_texts("drop").unwrap_or(usual.drop),
        temperature_max: table.opt_int("temperature_max", 0..=10).or(usual.temperature_max),
        picture_size: table.choice_or("picture_size", usual.picture_size, SizeMembers::ALL),
        picture_fields: table.opt_texts("picture_fields").unwrap_or(usual.picture_fields),
        picture_links: table.flag_or("picture_links", usual.picture_links),
        affinity: table.opt_text("affinity").or(usual.affinity),
        cost_at: table.opt_text("cost_at").or(usual.cost_at),
        hide: table.opt_texts("hide").unwrap_or(usual.hide),
    };
    let header = |name: &str| name.starts_with("x-") && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    if quirks.affinity.as_deref().is_some_and(|name| !header(name)) {
        table.mistake("affinity", "must be a header such as \"x-session-affinity\"");
    }
    let member = |path: &str| path.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(&b));
    if quirks.cost_at.as_deref().is_some_and(|path| path.is_empty() || !member(path)) {
        table.mistake("cost_at", "must be a member of `usage`, such as \"cost\" or \"cost.total_cost\"");
    }
    if let Some(name) = quirks.hide.iter().find(|name| name.is_empty() || name.contains('.') || !member(name)) {
        table.mistake("hide", format!("{name:?} is not a member of `usage`, such as \"cost_details\""));
    }
    if let Some(name) = quirks.drop.iter().find(|name| NEEDED.contains(&name.as_str())) {
        table.mistake("drop", format!("{name:?} cannot be left out of a request"));
    }
    table.finish();
    quirks
}

/// Without these a request is none, or its answer has no limit.
const NEEDED: [&str; 5] = ["model", "messages", "stream", "max_tokens", "max_completion_tokens"];

fn tool_choices(table: &mut Form<'_>) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for pair in table.text_lists("tool_choice") {
        match <[String; 2]>::try_from(pair) {
            Ok([from, to]) if [&from, &to].iter().all(|word| ChatQuirks::CHOICES.contains(&word.as_str())) => {
                pairs.push((from, to));
            }
            _ => table.mistake(
                "tool_choice",
                format!(
                    "must be a list of pairs such as [\"required\", \"any\"], of {}",
                    ChatQuirks::CHOICES.join(", ")
                ),
            ),
        }
    }
    pairs
}
