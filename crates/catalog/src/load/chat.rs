//! `[model."NAME".chat]`: what the model takes in a conversation and what it refuses.

use crate::ChatRules;
use crate::form::Form;

/// Larger than any model's.
const MAX_TOKENS: u64 = 1_000_000_000;
/// Each use makes the provider read the conversation again.
const MOST_USES: u64 = 63;

pub(super) fn read(form: &mut Form<'_>) -> ChatRules {
    let usual = ChatRules::default();
    let mut table = form.table("chat");
    let least_budget = table.opt_int("least_budget", 0..=MAX_TOKENS).unwrap_or(usual.least_budget);
    let rules = ChatRules {
        sampling: table.flag_or("sampling", usual.sampling),
        adaptive_thinking: table.flag_or("adaptive_thinking", usual.adaptive_thinking),
        system_turns: table.flag_or("system_turns", usual.system_turns),
        native_schema: table.flag_or("native_schema", usual.native_schema),
        current_chat: table.opt_flag("current_chat"),
        cache_marks: table.flag_or("cache_marks", usual.cache_marks),
        web_search: table.flag_or("web_search", usual.web_search),
        wants_reasoning_back: table.opt_flag("wants_reasoning_back"),
        text_content_only: table.opt_flag("text_content_only"),
        drop: table.opt_texts("drop"),
        temperature_max: table.opt_int("temperature_max", 0..=10),
        least_budget,
        most_budget: table.opt_int("most_budget", least_budget.max(1)..=MAX_TOKENS),
        thinks_always: table.flag_or("thinks_always", usual.thinks_always),
        thinks_unasked: table.opt_flag("thinks_unasked"),
        gemini3: table.flag_or("gemini3", usual.gemini3),
        default_max_output: table.opt_int("default_max_output", 1..=MAX_TOKENS),
        stream_hold: table.opt_int("stream_hold_tokens", 1..=MAX_TOKENS),
        tools_need_effort: table.opt_text("tools_need_effort"),
        refused_tool_choice: table.words("refused_tool_choice", &ChatRules::TOOL_CHOICES),
        named_roles: table.texts("named_roles"),
        prefill: table.flag_or("prefill", usual.prefill),
        state: table.flag_or("state", usual.state),
        image_tokens: table.opt_int("image_tokens", 1..=MAX_TOKENS).unwrap_or(usual.image_tokens),
        unseen_tokens: table.opt_int("unseen_tokens", 1..=MAX_TOKENS),
        tool_uses: table.opt_int("tool_uses", 1..=MOST_USES).unwrap_or(usual.tool_uses),
        one_price: table.words("one_price", &ChatRules::TOOL_OPTIONS),
    };
    table.finish();
    rules
}
