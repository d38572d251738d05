//! What a model takes in a conversation and what it refuses, as data: the formats of providers have
//! the fields, but not every model takes all of them. Whoever translates or admits a request asks
//! here, never the model's name.

/// The table `[model."NAME".chat]`. The defaults are those of a current model that refuses nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRules {
    /// Takes `temperature`, `top_p` and `top_k`; else they are left out and reported.
    pub sampling: bool,
    /// Takes adaptive thinking with an effort; else a budget of tokens.
    pub adaptive_thinking: bool,
    /// Takes system turns inside the conversation.
    pub system_turns: bool,
    /// Takes a schema for its output.
    pub native_schema: bool,
    /// Takes `max_completion_tokens` and the role `developer`; else `max_tokens` and `system`.
    /// `None`: as the provider does.
    pub current_chat: Option<bool>,
    /// Takes `prompt_cache_breakpoint` in chat completions and Responses; else cache marks of other
    /// formats are left out and reported.
    pub cache_marks: bool,
    /// Takes `web_search_options` in chat completions; else a wish for web search is left out and
    /// reported.
    pub web_search: bool,
    /// Wants its reasoning back as text on turns with tool calls. `None`: as the provider does.
    pub wants_reasoning_back: Option<bool>,
    /// Takes the content of a message as one text only. `None`: as the provider does.
    pub text_content_only: Option<bool>,
    /// Parameters that are left out and reported, in the place of the provider's list.
    pub drop: Option<Vec<String>>,
    /// The highest temperature, in the place of the provider's.
    pub temperature_max: Option<u8>,
    /// The least and the most budget of thoughts, for a model of Gemini's that thinks by one.
    pub least_budget: u64,
    pub most_budget: Option<u64>,
    /// Its thinking cannot be turned off.
    pub thinks_always: bool,
    /// Whether it thinks where the request does not say. A price that goes by thinking needs it.
    pub thinks_unasked: Option<bool>,
    /// Thinks in levels, takes pictures in tool results, wants signatures on tool calls.
    pub gemini3: bool,
    /// Sent where the provider demands a limit of the output and the caller gives none.
    pub default_max_output: Option<u64>,
    /// Output tokens that a stream is held for at first when its caller names no limit; else as the
    /// gateway is set.
    pub stream_hold: Option<u64>,
    /// Tools are taken in chat completions only with this `reasoning_effort`: of chat clients, and
    /// of all where the provider speaks chat.
    pub tools_need_effort: Option<String>,
    /// Values of `tool_choice` that are refused: `auto`, `none`, `any`, `named`.
    pub refused_tool_choice: Vec<String>,
    /// Roles of messages that must come with a `name`.
    pub named_roles: Vec<String>,
    /// Goes on with an answer that the last message begins.
    pub prefill: bool,
    /// Takes `previous_response_id` and `conversation`; else the whole conversation is sent each
    /// time.
    pub state: bool,
    /// The most tokens that its providers count for one picture.
    pub image_tokens: u64,
    /// The most tokens that its providers read of what the gateway cannot see (links, file ids,
    /// PDFs, clips, stored prompts); `None`: as many as it takes at all.
    pub unseen_tokens: Option<u64>,
    /// Uses of tools that run at the provider that are held for where the request names no limit,
    /// and that the provider gets where it has a field for it.
    pub tool_uses: u64,
    /// Options of tools at the provider that cost the same on purpose: any other that makes a use
    /// cost more there is refused.
    pub one_price: Vec<String>,
}

impl ChatRules {
    /// What a picture counts for at most where the catalog does not say: more than current models
    /// make of one at full detail.
    pub const IMAGE_TOKENS: u64 = 5_000;
    /// Enough for a question with a few searches.
    pub const TOOL_USES: u64 = 4;

    /// What `refused_tool_choice` may contain.
    pub const TOOL_CHOICES: [&'static str; 4] = ["auto", "none", "any", "named"];

    /// What `one_price` may contain.
    pub const TOOL_OPTIONS: [&'static str; 5] = [
        "image_generation.model",
        "image_generation.quality",
        "image_generation.size",
        "image_generation.input_fidelity",
        "image_generation.partial_images",
    ];

    /// Whether a request that says this of thinking makes the model think. `None`: nobody knows.
    pub fn thinks(&self, asked: Option<bool>) -> Option<bool> {
        if self.thinks_always { Some(true) } else { asked.or(self.thinks_unasked) }
    }

    /// Nothing is refused that could be looked for in a request.
    pub fn refuses_nothing(&self) -> bool {
        self.tools_need_effort.is_none()
            && self.refused_tool_choice.is_empty()
            && self.named_roles.is_empty()
            && self.prefill
    }
}

impl Default for ChatRules {
    fn default() -> ChatRules {
        ChatRules {
            sampling: true,
            adaptive_thinking: true,
            system_turns: false,
            native_schema: true,
            current_chat: None,
            cache_marks: false,
            web_search: false,
            wants_reasoning_back: None,
            text_content_only: None,
            drop: None,
            temperature_max: None,
            least_budget: 0,
            most_budget: None,
            thinks_always: false,
            thinks_unasked: None,
            gemini3: true,
            default_max_output: None,
            stream_hold: None,
            tools_need_effort: None,
            refused_tool_choice: Vec::new(),
            named_roles: Vec::new(),
            prefill: true,
            state: true,
            image_tokens: ChatRules::IMAGE_TOKENS,
            unseen_tokens: None,
            tool_uses: ChatRules::TOOL_USES,
            one_price: Vec::new(),
        }
    }
}
