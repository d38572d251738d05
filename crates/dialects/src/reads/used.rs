//! How often tools ran at the provider, from what its answer shows of them: a list per dialect of
//! what each leaves there.

use tollgate_wire::Dialect;

/// Tools by the name that all dialects share.
pub const TOOLS: [&str; 9] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "file_search",
    "image_generation",
    "maps",
    "mcp",
    "tool_search",
    "shell",
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
    (Dialect::Gemini, "executableCode", 2),
    (Dialect::Gemini, "executable_code", 2),
];

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
