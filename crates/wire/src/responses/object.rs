//! The response object with every documented field present, null where empty: strict clients insist.

use crate::hub::{CONVERSATION, REPEATED, Voice};
use crate::json::Object;
use crate::usage::{Shape, Usage};

/// What of a response is known so far.
pub(super) struct State<'s> {
    pub status: &'static str,
    /// The finished items, as JSON.
    pub items: &'s [String],
    pub usage: Option<&'s Usage>,
    /// How often the web was searched.
    pub searches: u64,
    /// `incomplete_details.reason`.
    pub reason: Option<&'s str>,
    pub error: Option<(&'s str, &'s str)>,
    pub tier: Option<&'s str>,
}

pub(super) fn write(object: &mut Object<'_>, voice: &Voice, state: &State<'_>) {
    object.text("id", &voice.prefixed("resp_"));
    object.text("object", "response");
    object.number("created_at", voice.created);
    if state.status == "completed" {
        object.number("completed_at", voice.ended.unwrap_or(voice.created).max(voice.created));
    } else {
        object.null("completed_at");
    }
    object.text("status", state.status);
    match state.error {
        Some((code, message)) => object.object("error", |error| {
            // Strict clients know a closed list of codes; ours is the type.
            let known = if code == "rate_limit_exceeded" { code } else { "server_error" };
            error.text("code", known);
            error.text("message", message);
            error.text("type", code);
        }),
        None => object.null("error"),
    }
    match state.reason {
        Some(reason) => object.object("incomplete_details", |details| details.text("reason", reason)),
        None => object.null("incomplete_details"),
    }
    object.text("model", &voice.model);
    object.array("output", |list| state.items.iter().for_each(|item| list.raw(item)));
    for (name, usual) in REPEATED {
        object.raw(name, voice.echo.get(name).unwrap_or(usual));
    }
    object.maybe_raw(CONVERSATION, voice.echo.get(CONVERSATION));
    object.text("service_tier", state.tier.unwrap_or("default"));
    if state.searches > 0 {
        // The kinds that were not used are there with zeros.
        object.object("tool_usage", |tools| {
            tools.object("image_gen", |images| {
                images.number("input_tokens", 0);
                images.raw("input_tokens_details", r#"{"image_tokens":0,"text_tokens":0}"#);
                images.number("output_tokens", 0);
                images.number("total_tokens", 0);
            });
            tools.object("web_search", |search| search.number("num_requests", state.searches));
        });
    }
    match state.usage {
        Some(usage) => usage.write(Shape::Responses, object.key("usage")),
        None => object.null("usage"),
    }
}
