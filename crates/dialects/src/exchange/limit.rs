//! A limit of the output for a request whose caller named none.

use super::request::CheckedRequest;
use bytes::Bytes;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, Object};

impl CheckedRequest {
    /// The same request with this limit of the output, in the field of its own dialect. `current`
    /// is the name that the model knows in chat: `max_completion_tokens`, or the older
    /// `max_tokens`.
    pub fn limited(&self, most: u64, current: bool) -> Result<CheckedRequest, Problem> {
        let text = std::str::from_utf8(self.body()).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        let mut out = Vec::with_capacity(text.len() + 64);
        let mut body = Object::begin(&mut out);
        match self.dialect {
            Dialect::Gemini => in_config(&node, &mut body, most),
            dialect => {
                let names: &[&str] = match dialect {
                    Dialect::Responses => &["max_output_tokens"],
                    Dialect::Chat if current => &["max_completion_tokens", "max_tokens"],
                    _ => &["max_tokens", "max_completion_tokens"],
                };
                // One that is there is null: the caller named no limit.
                body.members_of(&node, |name| names.contains(&name));
                body.number(names[0], most);
            }
        }
        body.end();
        self.again(Bytes::from(out))
    }
}

/// Gemini's limit is inside its `generationConfig`, which may not be there.
fn in_config(node: &Node<'_>, body: &mut Object<'_>, most: u64) {
    let is_config = |name: &str| matches!(name, "generationConfig" | "generation_config");
    let mut written = false;
    for (name, value) in node.members() {
        if !is_config(name) {
            body.raw(name, value.raw);
            continue;
        }
        // It may be there twice, in both spellings, and either one may be null.
        let last = std::mem::replace(&mut written, true);
        body.object(name, |config| {
            config.members_of(value, |name| matches!(name, "maxOutputTokens" | "max_output_tokens"));
            if !last {
                config.number("maxOutputTokens", most);
            }
        });
    }
    if !written {
        body.object("generationConfig", |config| config.number("maxOutputTokens", most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Path;

    fn limited(dialect: Dialect, body: &str, current: bool) -> String {
        let path = Path { model: "m", stream: false };
        let request =
            CheckedRequest::read(dialect, Bytes::copy_from_slice(body.as_bytes()), Some(path)).expect("a request");
        assert_eq!(request.max_output, None);
        let limited = request.limited(300, current).expect("the same with a limit");
        assert_eq!((limited.max_output, limited.prompt_tokens), (Some(300), request.prompt_tokens));
        String::from_utf8(limited.body().to_vec()).expect("text")
    }

    #[test]
    fn every_dialect_has_its_own_field() {
        let chat = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":null,"n":2}"#;
        let start = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"n":2,"#;
        assert_eq!(limited(Dialect::Chat, chat, true), format!(r#"{start}"max_completion_tokens":300}}"#));
        assert_eq!(limited(Dialect::Chat, chat, false), format!(r#"{start}"max_tokens":300}}"#));
        let responses = r#"{"model":"m","input":"hi","max_output_tokens":null}"#;
        assert_eq!(
            limited(Dialect::Responses, responses, true),
            r#"{"model":"m","input":"hi","max_output_tokens":300}"#
        );
        let contents = r#"{"contents":[{"parts":[{"text":"hi"}]}]"#;
        for (config, written) in [
            ("", r#""generationConfig":{"maxOutputTokens":300}"#),
            (r#","generationConfig":{"topK":3}"#, r#""generationConfig":{"topK":3,"maxOutputTokens":300}"#),
            (r#","generation_config":{"max_output_tokens":null}"#, r#""generation_config":{"maxOutputTokens":300}"#),
        ] {
            assert_eq!(
                limited(Dialect::Gemini, &format!("{contents}{config}}}"), true),
                format!("{contents},{written}}}")
            );
        }
    }
}
