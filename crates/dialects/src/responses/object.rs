//! The response object with every documented field present, null where empty: strict clients
//! insist.

use crate::hub::{CONVERSATION, REPEATED, Voice};
use std::borrow::Cow;
use tollgate_wire::json::{Node, Object};
use tollgate_wire::usage::{Usage, UsageShape};

/// What of a response is known so far.
pub(super) struct ResponseState<'s> {
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

/// What of a response its end decides.
const OF_THE_END: [&str; 4] = ["status", "error", "incomplete_details", "usage"];

/// A response that began with its provider, ended by us: to its client the same in everything but
/// its end, members that nobody knows included. They come after ours and cannot stand in the place
/// of one.
pub(super) fn end(object: &mut Object<'_>, begun: &str, voice: &Voice, state: &ResponseState<'_>) {
    let mut ours = Vec::new();
    let mut inner = Object::begin(&mut ours);
    write(&mut inner, voice, state);
    inner.end();
    let ours = String::from_utf8(ours).unwrap_or_default();
    let (Ok(ours), Ok(begun)) = (Node::read(&ours), Node::read(begun)) else { return write(object, voice, state) };
    let find = |members: &[(Cow<'_, str>, Node<'_>)], name: &str| members.iter().position(|(known, _)| known == name);
    for (name, value) in ours.members() {
        let came = find(begun.members(), name).filter(|_| !OF_THE_END.contains(&name.as_ref()));
        object.raw(name, came.map_or(value.raw, |at| begun.members()[at].1.raw));
    }
    for (at, (name, value)) in begun.members().iter().enumerate() {
        if find(begun.members(), name) == Some(at) && find(ours.members(), name).is_none() {
            object.raw(name, value.raw);
        }
    }
}

fn error(object: &mut Object<'_>, error: Option<(&str, &str)>) {
    match error {
        Some((code, message)) => object.object("error", |error| {
            // Strict clients know a closed list of codes; ours is the type.
            let known = if code == "rate_limit_exceeded" { code } else { "server_error" };
            error.text("code", known);
            error.text("message", message);
            error.text("type", code);
        }),
        None => object.null("error"),
    }
}

pub(super) fn write(object: &mut Object<'_>, voice: &Voice, state: &ResponseState<'_>) {
    object.text("id", &voice.prefixed("resp_"));
    object.text("object", "response");
    object.number("created_at", voice.created);
    if state.status == "completed" {
        object.number("completed_at", voice.ended.unwrap_or(voice.created).max(voice.created));
    } else {
        object.null("completed_at");
    }
    object.text("status", state.status);
    error(object, state.error);
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
        Some(usage) => usage.write(UsageShape::Responses, object.key("usage")),
        None => object.null("usage"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_elsewhere_is_ended_as_it_began() {
        let begun = r#"{"id":"resp_9","status":"in_progress","error":null,"created_at":7,"tools":[{"type":"x"}],"new":1.50,"new":2,"usage":null}"#;
        let voice = Voice { id: "call_1".into(), model: "m".into(), ..Voice::default() };
        let error = Some(("upstream_error", "It broke."));
        let state =
            ResponseState { status: "failed", items: &[], usage: None, searches: 0, reason: None, error, tier: None };
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        end(&mut object, begun, &voice, &state);
        object.end();
        let text = String::from_utf8(out).unwrap();
        let node = Node::read(&text).unwrap();
        let raw = |name: &str| node.members().iter().find(|(known, _)| known == name).map(|(_, value)| value.raw);
        assert_eq!(raw("id"), Some("\"resp_9\""));
        assert_eq!((raw("created_at"), raw("tools")), (Some("7"), Some(r#"[{"type":"x"}]"#)));
        assert_eq!((raw("status"), raw("model"), raw("store")), (Some("\"failed\""), Some("\"m\""), Some("true")));
        assert!(raw("error").is_some_and(|error| error.contains("It broke.")));
        assert!(text.ends_with(r#","new":1.50}"#) && text.matches("\"status\"").count() == 1, "{text}");
    }
}
