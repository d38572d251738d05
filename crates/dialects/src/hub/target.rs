//! What is known about the model a request goes to. Conversion asks these flags, never the model's
//! name.

use tollgate_wire::Dialect;

/// The receiving side of a translated request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub dialect: Dialect,
    /// The model's name at the provider.
    pub model: String,
    /// Refuse what would otherwise be dropped and recorded (`x-tollgate-strict: true`).
    pub strict: bool,
    /// Sent when the caller sets no limit and the dialect demands one (Anthropic): the model's own
    /// most.
    pub default_max_output: u64,
    /// The most the model says in one answer, thoughts included; a limit above it is cut and
    /// reported.
    pub most_output: Option<u64>,
    /// The efforts of reasoning the model knows; another one becomes the nearest of them. Empty:
    /// all.
    pub efforts: Vec<String>,
    /// Thinks at all. OpenAI refuses settings of it, or to be asked for sealed thoughts, where a
    /// model does not.
    pub thinks: bool,
    /// Takes `temperature`, `top_p` and `top_k`.
    pub sampling: bool,
    /// Anthropic: takes adaptive thinking with an effort; else a budget of tokens.
    pub adaptive_thinking: bool,
    /// Anthropic: takes system turns inside the conversation.
    pub system_turns: bool,
    /// Anthropic: takes `output_config.format`.
    pub native_schema: bool,
    /// Chat: takes `max_completion_tokens`, the role `developer` and tools with free text; else
    /// `max_tokens`, `system` and functions.
    pub current_chat: bool,
    /// Chat and Responses: takes `prompt_cache_breakpoint`, which most servers refuse.
    pub cache_marks: bool,
    /// Chat: takes `web_search_options`.
    pub web_search: bool,
    /// Chat: wants `reasoning_content` back on turns with tool calls (DeepSeek).
    pub wants_reasoning_back: bool,
    /// Gemini before 3: the least and the most budget of thoughts it takes.
    pub budgets: std::ops::RangeInclusive<u64>,
    /// Gemini before 3: its thinking cannot be turned off.
    pub thinks_always: bool,
    /// Gemini 3: thinks in levels, takes media in function responses, wants signatures on calls.
    pub gemini3: bool,
}

impl Target {
    /// A current model of this dialect.
    pub fn new(dialect: Dialect, model: impl Into<String>) -> Target {
        Target {
            dialect,
            model: model.into(),
            strict: false,
            default_max_output: 8_192,
            most_output: None,
            efforts: Vec::new(),
            thinks: true,
            sampling: true,
            adaptive_thinking: true,
            system_turns: false,
            native_schema: true,
            current_chat: true,
            cache_marks: false,
            web_search: false,
            wants_reasoning_back: false,
            budgets: 0..=u64::MAX,
            thinks_always: false,
            gemini3: true,
        }
    }

    /// Cache marks mean something there.
    pub(crate) fn takes_marks(&self) -> bool {
        match self.dialect {
            Dialect::Anthropic => true,
            Dialect::Chat | Dialect::Responses => self.cache_marks,
            Dialect::Gemini => false,
        }
    }

    /// Tools with free text are known there; elsewhere a function with one text argument stands for
    /// them.
    pub(crate) fn takes_free_text(&self) -> bool {
        match self.dialect {
            Dialect::Responses => true,
            Dialect::Chat => self.current_chat,
            Dialect::Anthropic | Dialect::Gemini => false,
        }
    }
}
