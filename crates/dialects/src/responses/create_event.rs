//! `response.create` on a WebSocket: the request as one message, always answered in events.

use bytes::Bytes;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, Object};

/// The message as the body of a streamed request.
pub fn from_create_event(message: &[u8]) -> Result<Bytes, Problem> {
    let text = std::str::from_utf8(message).map_err(|_| Problem::not_json("The message is not valid UTF-8."))?;
    let node = Node::read(text)?;
    match node.str_of("type") {
        "response.create" => {}
        "" => return Err(Problem::missing("type")),
        _ => return Err(Problem::unsupported("type", "This socket takes `response.create`.")),
    }
    if node.get("stream").is_some_and(|stream| stream.raw == "false") {
        return Err(Problem::unsupported("stream", "A WebSocket is always answered in events."));
    }
    if node.get("generate").is_some_and(|generate| generate.raw == "false") {
        return Err(Problem::unsupported("generate", "A response is always generated."));
    }
    let mut out = Vec::with_capacity(message.len() + 16);
    let mut body = Object::begin(&mut out);
    for (name, value) in node.members() {
        if !matches!(name.as_ref(), "type" | "stream" | "generate") {
            body.raw(name, value.raw);
        }
    }
    body.bool("stream", true);
    body.end();
    Ok(Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_streamed_request() {
        let message = br#"{"type":"response.create","model":"m","input":"x","temperature":0.50,"stream":true}"#;
        let body = from_create_event(message).unwrap();
        assert_eq!(body, r#"{"model":"m","input":"x","temperature":0.50,"stream":true}"#);
        for (message, param) in [
            (r#"{"model":"m"}"#, Some("type")),
            (r#"{"type":"response.steer"}"#, Some("type")),
            (r#"{"type":"response.create","stream":false}"#, Some("stream")),
            (r#"{"type":"response.create","generate":false}"#, Some("generate")),
            ("hello", None),
        ] {
            assert_eq!(from_create_event(message.as_bytes()).unwrap_err().param.as_deref(), param, "{message}");
        }
    }
}
