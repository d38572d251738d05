//! `[[social.PLATFORM.CAPABILITY.param]]` and `require_one_of`.

use crate::form::{Form, did_you_mean};
use crate::social::{Param, ParamKind, ParamValue};

/// Longer than any cursor seen; a query string has to carry it.
const LONGEST: usize = 16_384;

pub(super) fn read(form: &mut Form<'_>) -> Vec<Param> {
    let mut params: Vec<Param> = Vec::new();
    for mut table in form.tables("param") {
        let name = table.text("name");
        if params.iter().any(|other| other.name == name) {
            table.mistake("name", format!("{name:?} is already a parameter of this cell"));
        }
        params.push(one(name, &mut table));
        table.finish();
    }
    params
}

fn one(name: String, form: &mut Form<'_>) -> Param {
    let kind = form.choice("type", &ParamKind::ALL).unwrap_or(ParamKind::Text);
    let text_keys = form.texts("text_keys");
    let allowed = form.texts("allowed");
    let param = Param {
        name,
        kind,
        required: form.flag_or("required", false),
        default: value(form, "default", kind),
        upstream_default: value(form, "upstream_default", kind),
        example: form.opt_text("example"),
        en: form.text("en"),
        zh: form.text_or("zh", ""),
        min: form.opt_int("min", i64::MIN..=i64::MAX),
        max: form.opt_int("max", i64::MIN..=i64::MAX),
        min_length: form.int_or("min_length", 0, 0..=LONGEST),
        max_length: form.int_or("max_length", LONGEST, 1..=LONGEST),
        strict: form.flag_or("allowed_strict", false),
        allowed,
        text_keys,
    };
    consistent(&param, form);
    param
}

fn consistent(param: &Param, form: &Form<'_>) {
    if param.kind == ParamKind::Text && !form.has("max_length") {
        form.mistake("max_length", "is missing: a text needs a limit");
    }
    for key in ["min_length", "max_length", "text_keys", "allowed_strict"] {
        if param.kind != ParamKind::Text && form.has(key) {
            form.mistake(key, "is for parameters of type string");
        }
    }
    for key in ["min", "max"] {
        if param.kind != ParamKind::Integer && form.has(key) {
            form.mistake(key, "is for parameters of type integer");
        }
    }
    if param.min > param.max && param.max.is_some() {
        form.mistake("min", "is above max");
    }
    if param.min_length > param.max_length {
        form.mistake("min_length", "is above max_length");
    }
    if param.strict && param.allowed.is_empty() {
        form.mistake("allowed_strict", "needs a list of allowed values");
    }
}

fn value(form: &mut Form<'_>, key: &str, kind: ParamKind) -> Option<ParamValue> {
    match kind {
        ParamKind::Text => form.opt_text(key).map(ParamValue::Text),
        ParamKind::Integer => form.opt_int(key, i64::MIN..=i64::MAX).map(ParamValue::Integer),
        ParamKind::Boolean => form.opt_flag(key).map(ParamValue::Boolean),
    }
}

pub(super) fn groups(form: &mut Form<'_>, params: &[Param]) -> Vec<Vec<usize>> {
    let mut groups = Vec::new();
    for names in form.text_lists("require_one_of") {
        if names.len() < 2 {
            form.mistake("require_one_of", "a group has at least two names; one alone is required = true");
        }
        let mut group = Vec::with_capacity(names.len());
        for name in names {
            match params.iter().position(|param| param.name == name) {
                Some(at) => group.push(at),
                None => {
                    let hint = did_you_mean(&name, params.iter().map(|param| param.name.as_str()));
                    form.mistake("require_one_of", format!("no parameter is called {name:?}{hint}"));
                }
            }
        }
        if !group.is_empty() {
            groups.push(group);
        }
    }
    groups
}
