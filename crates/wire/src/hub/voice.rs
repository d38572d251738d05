//! Who speaks to the client: the identity every reply of a call carries, whatever the provider calls itself.

use crate::json::Node;

/// What the writers of replies and events need to know about the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voice {
    /// Unique per call; each dialect puts its own prefix in front.
    pub id: String,
    /// The public name of the model.
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
    /// Chat: the client asked for the usage chunk.
    pub wants_usage: bool,
    /// Gemini: one JSON array instead of events.
    pub array: bool,
    /// Responses: the client's parameters, which its response object repeats.
    pub echo: Echo,
}

/// Members of a Responses request that the response object repeats, as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo(Vec<(String, String)>);

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
        let kept = REPEATED.iter().filter_map(|(name, _)| {
            let value = node.get(name)?;
            Some(((*name).to_owned(), value.raw.to_owned()))
        });
        Echo(kept.collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.as_str())
    }
}

impl Voice {
    /// The id with a dialect's prefix; a prefix of our own is taken off first.
    pub(crate) fn prefixed(&self, prefix: &str) -> String {
        let own = self.id.rsplit_once('_').map_or(self.id.as_str(), |(_, own)| own);
        format!("{prefix}{own}")
    }
}
