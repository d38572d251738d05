//! Whether a provider may take several steps for one request, and read the conversation again for each.

use super::request::Request;
use crate::dialect::Dialect;
use crate::json::{Broken, Node, Scan};

impl Request {
    /// Some tool of the request runs at the provider. Functions of the client's own do not: with a call of one the answer ends.
    pub fn runs_tools(&self) -> bool {
        if !self.has_tools {
            return false;
        }
        let mut runs = false;
        let read = Scan::new(self.body()).object(|key, scan| {
            let raw = scan.value()?;
            runs |= match key.raw() {
                b"tools" => run_by_provider(self.dialect, raw),
                b"web_search_options" | b"mcp_servers" | b"context_management" => raw != b"null",
                _ => false,
            };
            Ok::<(), Broken>(())
        });
        runs || read.is_err()
    }
}

fn run_by_provider(dialect: Dialect, tools: &[u8]) -> bool {
    let Some(list) = std::str::from_utf8(tools).ok().and_then(|text| Node::read(text).ok()) else { return true };
    list.items().iter().any(|tool| match dialect {
        Dialect::Gemini => {
            tool.members().iter().any(|(name, _)| !matches!(&**name, "functionDeclarations" | "function_declarations"))
        }
        _ => !matches!(tool.str_of("type"), "" | "function" | "custom" | "namespace"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Path;
    use bytes::Bytes;

    #[test]
    fn only_the_clients_own_functions_take_no_steps() {
        let chat = r#""model":"m","messages":[{"role":"user","content":"hi"}]"#;
        let input = r#""model":"m","input":"hi""#;
        let contents = r#""contents":[{"parts":[{"text":"hi"}]}]"#;
        let claude = r#""model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]"#;
        for (dialect, body, more, runs) in [
            (Dialect::Chat, chat, "", false),
            (Dialect::Chat, chat, r#","tools":[{"type":"function","function":{"name":"f"}}]"#, false),
            (Dialect::Chat, chat, r#","web_search_options":{}"#, true),
            (
                Dialect::Responses,
                input,
                r#","tools":[{"type":"function","name":"f"},{"type":"custom","name":"g"}]"#,
                false,
            ),
            (Dialect::Responses, input, r#","tools":[{"type":"function","name":"f"},{"type":"web_search"}]"#, true),
            (Dialect::Anthropic, claude, r#","tools":[{"name":"f","input_schema":{"type":"object"}}]"#, false),
            (Dialect::Anthropic, claude, r#","tools":[{"type":"web_search_20250305","name":"web_search"}]"#, true),
            (Dialect::Gemini, contents, r#","tools":[{"functionDeclarations":[{"name":"f"}]}]"#, false),
            (Dialect::Gemini, contents, r#","tools":[{"googleSearch":{}}]"#, true),
        ] {
            let body = Bytes::from(format!("{{{body}{more}}}"));
            let request = Request::read(dialect, body, Some(Path { model: "m", stream: false })).expect("a request");
            assert_eq!(request.runs_tools(), runs, "{dialect:?}{more}");
        }
    }
}
