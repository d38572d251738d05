//! What a model is called and shown by: its type, capabilities, tasks, tags and icon.

use crate::form::Form;
use crate::labels::{self, CAPABILITIES, MODEL_TYPES, TASKS};

/// The type that the table names, if it names one.
pub(super) fn given_type(form: &mut Form<'_>) -> Option<String> {
    let choices: Vec<(&str, &str)> = MODEL_TYPES.iter().map(|word| (*word, *word)).collect();
    form.has("type").then(|| form.choice_or("type", labels::CHAT, &choices).to_owned())
}

pub(super) fn capabilities(form: &mut Form<'_>, endpoint_types: &[String]) -> Vec<String> {
    let given = form.words("capabilities", CAPABILITIES);
    if given.is_empty() { labels::usual_capabilities(endpoint_types) } else { given }
}

pub(super) fn tasks(form: &mut Form<'_>, endpoint_types: &[String], input: &[String], reasons: bool) -> Vec<String> {
    let given = form.words("tasks", TASKS);
    if given.is_empty() { labels::usual_tasks(endpoint_types, input, reasons) } else { given }
}

/// They are shown as one text with commas between them.
pub(super) fn tags(form: &mut Form<'_>) -> Vec<String> {
    let tags = form.texts("tags");
    for tag in tags.iter().filter(|tag| tag.contains(',') || tag.trim().is_empty()) {
        form.mistake("tags", format!("{tag:?} is not a tag: it has no comma and is not empty"));
    }
    tags
}

/// A name of our own set, or a path under /assets: pages that show it load nothing from elsewhere.
pub(super) fn icon(form: &mut Form<'_>) -> Option<String> {
    let icon = form.opt_text("icon")?;
    let plain = |text: &str| {
        !text.is_empty() && text.len() <= 100 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let fits = match icon.strip_prefix("/assets/") {
        Some(path) => path.split('/').all(|part| plain(part) && part != ".." && part != "."),
        None => plain(&icon),
    };
    if !fits {
        form.mistake("icon", format!("{icon:?} is neither a name such as \"openai\" nor a path below /assets/"));
    }
    Some(icon)
}
