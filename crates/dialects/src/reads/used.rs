//! How often tools ran at the provider, from what its answer shows of them: a list per dialect of
//! what each leaves there.

use tollgate_wire::Dialect;
use tollgate_wire::json::Node;

/// Tools by the name that all dialects share.
pub const TOOLS: [&str; 10] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "file_search",
    "image_generation",
    "maps",
    "mcp",
    "tool_search",
    "shell",
    "x_search",
];

/// What a tool leaves in an answer, once for each use, and its place in [`TOOLS`].
const LEFT: &[(Dialect, &str, usize)] = &[
    (Dialect::Anthropic, "web_search_tool_result", 0),
    (Dialect::Anthropic, "web_fetch_tool_result", 1),
    (Dialect::Anthropic, "code_execution_tool_result", 2),
    (Dialect::Anthropic, "bash_code_execution_tool_result", 2),
    (Dialect::Anthropic, "text_editor_code_execution_tool_result", 2),
    (Dialect::Anthropic, "mcp_tool_result", 6),
    (Dialect::Anthropic, "tool_search_tool_result", 7),
    (Dialect::Responses, "web_search_call", 0),
    (Dialect::Responses, "code_interpreter_call", 2),
    (Dialect::Responses, "file_search_call", 3),
    (Dialect::Responses, "image_generation_call", 4),
    (Dialect::Responses, "mcp_call", 6),
    (Dialect::Responses, "tool_search_call", 7),
    (Dialect::Responses, "shell_call_output", 8),
    (Dialect::Responses, "x_search_call", 9),
    (Dialect::Gemini, "executableCode", 2),
    (Dialect::Gemini, "executable_code", 2),
];

/// Opened links, maps and files, by their places in [`TOOLS`].
const GROUNDED: [usize; 3] = [1, 5, 3];

/// Uses by tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolUses {
    /// Answers of this dialect show them.
    shown: bool,
    seen: [u32; TOOLS.len()],
    /// Searches as the provider counts them.
    searches: u32,
}

impl ToolUses {
    /// None yet. Chat completions have no form for what a tool did.
    pub(crate) fn new(from: Dialect) -> ToolUses {
        ToolUses { shown: from != Dialect::Chat, ..ToolUses::default() }
    }

    /// What only its own dialect knows is there.
    pub(crate) fn left(&mut self, origin: Dialect, what: &str) {
        if let Some((.., tool)) = LEFT.iter().find(|(dialect, left, _)| *dialect == origin && *left == what) {
            self.seen[*tool] = self.seen[*tool].saturating_add(1);
        }
    }

    /// A search that was reported as one; where its results are reported too, those are counted.
    pub(crate) fn searched(&mut self, from: Dialect) {
        if from != Dialect::Anthropic {
            self.seen[0] = self.seen[0].saturating_add(1);
        }
    }

    /// The provider's own number of searches.
    pub(crate) fn searches(&mut self, count: u64) {
        self.searches = self.searches.max(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// What Gemini tells beside its parts: links that were opened, and that an answer rests on maps
    /// or files. It may say so in several chunks, each time all of it.
    pub(crate) fn grounded(&mut self, reply: &Node<'_>) {
        let mut uses = [0_usize; 3];
        for candidate in reply.get("candidates").map_or(&[][..], Node::items) {
            let opened = candidate
                .either("urlContextMetadata", "url_context_metadata")
                .and_then(|metadata| metadata.either("urlMetadata", "url_metadata"));
            uses[0] += opened.map_or(0, |list| list.items().len());
            let chunks = candidate
                .either("groundingMetadata", "grounding_metadata")
                .and_then(|metadata| metadata.either("groundingChunks", "grounding_chunks"))
                .map_or(&[][..], Node::items);
            // One use for each answer that rests on it, however many places it names.
            uses[1] += usize::from(chunks.iter().any(|chunk| chunk.get("maps").is_some()));
            uses[2] +=
                usize::from(chunks.iter().any(|chunk| chunk.either("retrievedContext", "retrieved_context").is_some()));
        }
        for (tool, count) in GROUNDED.into_iter().zip(uses) {
            self.seen[tool] = self.seen[tool].max(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Uses of a tool that was asked for, by its name. Where answers show none, one call is one
    /// use.
    pub fn of(&self, name: &str) -> u64 {
        let Some(at) = TOOLS.iter().position(|tool| *tool == name) else { return 0 };
        // What the provider counts is what it charges for.
        if !self.shown {
            return 1;
        }
        let uses = if at == 0 && self.searches > 0 { self.searches } else { self.seen[at] };
        u64::from(uses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gemini_tells_of_links_maps_and_files_beside_its_parts() {
        let mut uses = ToolUses::new(Dialect::Gemini);
        let first = r#"{"candidates":[{"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"a"}]}}]}"#;
        let last = r#"{"candidates":[{"url_context_metadata":{"url_metadata":[{"retrieved_url":"a"},{"retrieved_url":"b"}]},
            "groundingMetadata":{"groundingChunks":[{"maps":{"uri":"x"}},{"maps":{"uri":"y"}},{"web":{}},{"retrievedContext":{}}]}}]}"#;
        for text in [first, last, last] {
            uses.grounded(&Node::read(text).expect("JSON"));
        }
        assert_eq!(
            ["web_fetch", "maps", "file_search", "web_search", "mcp"].map(|name| uses.of(name)),
            [2, 1, 1, 0, 0]
        );
    }
}
