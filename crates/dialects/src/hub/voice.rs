//! Who speaks to the client: the identity every reply of a call carries, whatever the provider
//! calls itself.

use tollgate_wire::json::{Array, Node, Object};

/// What the writers of replies and events need to know about the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voice {
    /// Unique per call; each dialect puts its own prefix in front.
    pub id: String,
    /// The public name of the model.
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The same for the end of the answer, as far as it is known.
    pub ended: Option<u64>,
    /// Chat: the client asked for the usage chunk.
    pub wants_usage: bool,
    /// How many choices the client asked for; 0 stands for one.
    pub choices: u64,
    /// Our estimate of the prompt, for a provider that reports nothing; 0 stands for none.
    pub prompt_tokens: u64,
    /// Gemini: one JSON array instead of events.
    pub array: bool,
    /// Responses: the client's parameters, which its response object repeats.
    pub echo: Echo,
}

/// Members of a Responses request that the response object repeats, as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    members: Vec<(String, String)>,
    stored_here: bool,
}

/// What is repeated, and what stands there when the client did not say.
pub(crate) const REPEATED: &[(&str, &str)] = &[
    ("instructions", "null"),
    ("max_output_tokens", "null"),
    ("max_tool_calls", "null"),
    ("parallel_tool_calls", "true"),
    ("previous_response_id", "null"),
    ("prompt_cache_key", "null"),
    ("reasoning", r#"{"effort":null,"summary":null}"#),
    ("safety_identifier", "null"),
    ("store", "true"),
    ("temperature", "1"),
    ("text", r#"{"format":{"type":"text"}}"#),
    ("tool_choice", "\"auto\""),
    ("tools", "[]"),
    ("top_logprobs", "0"),
    ("top_p", "1"),
    ("truncation", "\"disabled\""),
    ("metadata", "{}"),
    ("background", "false"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("user", "null"),
];

impl Echo {
    /// Takes the members from the body of a Responses request.
    pub fn of(body: &[u8]) -> Echo {
        let Ok(text) = std::str::from_utf8(body) else { return Echo::default() };
        let Ok(node) = Node::read(text) else { return Echo::default() };
        let names = REPEATED.iter().map(|(name, _)| *name).chain([CONVERSATION]);
        let repeated_members = names.filter_map(|name| {
            let value = node.get(name)?;
            let repeated = match name {
                "tools" => tools(value),
                CONVERSATION => conversation(value)?,
                _ => value.raw.to_owned(),
            };
            Some((name.to_owned(), repeated))
        });
        Echo { members: repeated_members.collect(), stored_here: false }
    }

    /// The gateway keeps the conversation and its provider does not: within one dialect too, the id
    /// of the response and whether it is stored are ours to tell.
    pub fn stored_here(self) -> Echo {
        Echo { stored_here: true, ..self }
    }

    pub(crate) fn is_stored_here(&self) -> bool {
        self.stored_here
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.as_str())
    }
}

/// Written only where the client named one.
pub(crate) const CONVERSATION: &str = "conversation";

/// A conversation may be named by its id alone; it is written as an object.
fn conversation(named: &Node<'_>) -> Option<String> {
    let id = named.text().or_else(|| named.text_of("id"))?;
    let mut out = Vec::with_capacity(id.len() + 16);
    let mut object = Object::begin(&mut out);
    object.text("id", id);
    object.end();
    String::from_utf8(out).ok()
}

/// Members of a function that strict clients insist on, null where the client said nothing.
const OF_A_FUNCTION: [&str; 3] = ["description", "parameters", "strict"];

fn tools(list: &Node<'_>) -> String {
    let mut out = Vec::with_capacity(list.raw.len() + 64);
    let mut again = Array::begin(&mut out);
    for tool in list.items() {
        if tool.str_of("type") != "function" {
            again.raw(tool.raw);
            continue;
        }
        again.object(|one| {
            tool.members().iter().for_each(|(name, value)| one.raw(name, value.raw));
            let missing = |name: &&str| !tool.members().iter().any(|(known, _)| known == name);
            OF_A_FUNCTION.iter().filter(|name| missing(name)).for_each(|name| one.null(name));
        });
    }
    again.end();
    String::from_utf8(out).unwrap_or_default()
}

impl Voice {
    /// The id with a dialect's prefix; a prefix of our own is taken off first.
    pub(crate) fn prefixed(&self, prefix: &str) -> String {
        let own = self.id.rsplit_once('_').map_or(self.id.as_str(), |(_, own)| own);
        format!("{prefix}{own}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_repeated_with_what_strict_clients_insist_on() {
        let body =
            br#"{"tools":[{"type":"function","name":"f","strict":true},{"type":"web_search"}],"temperature":0.50}"#;
        let echo = Echo::of(body);
        let tools = r#"[{"type":"function","name":"f","strict":true,"description":null,"parameters":null},{"type":"web_search"}]"#;
        assert_eq!((echo.get("tools"), echo.get("temperature")), (Some(tools), Some("0.50")));
    }

    #[test]
    fn a_conversation_is_repeated_as_an_object() {
        for (body, expected) in [
            (&br#"{"conversation":"conv_1"}"#[..], Some(r#"{"id":"conv_1"}"#)),
            (br#"{"conversation":{"id":"conv_1"}}"#, Some(r#"{"id":"conv_1"}"#)),
            (br#"{"conversation":null}"#, None),
            (b"{}", None),
        ] {
            assert_eq!(Echo::of(body).get(CONVERSATION), expected);
        }
    }
}
