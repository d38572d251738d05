//! What kind of value a parameter has. A value of another kind is a mistake of the caller's: its
//! own provider would refuse it, and one of another dialect gets no such parameter, so that it
//! would be lost.

use super::ask::Member;
use super::fields::same_name;
use tollgate_wire::Dialect;
use tollgate_wire::Problem;
use tollgate_wire::json::{Node, NodeKind};

#[derive(Clone, Copy)]
enum Want {
    Bool,
    Number,
    Whole,
    Text,
    List,
    Object,
    /// One text, or a list of them.
    Texts,
    /// A list of texts.
    TextList,
    /// A text, or a list of parts.
    Content,
    /// A text, or an object with parts.
    TextOrObject,
}

use Want::{Bool, Content, List, Number, Object, Text, TextList, TextOrObject, Texts, Whole};

const CHAT: &[(&str, Want)] = &[
    ("temperature", Number),
    ("top_p", Number),
    ("top_k", Number),
    ("frequency_penalty", Number),
    ("presence_penalty", Number),
    ("seed", Number),
    ("max_tokens", Whole),
    ("max_completion_tokens", Whole),
    ("n", Whole),
    ("stop", Texts),
    ("logprobs", Bool),
    ("top_logprobs", Whole),
    ("reasoning_effort", Text),
    ("reasoning", Object),
    ("reasoning.effort", Text),
    ("reasoning.max_tokens", Whole),
    ("reasoning.exclude", Bool),
    ("verbosity", Text),
    ("response_format", Object),
    ("tools", List),
    ("functions", List),
    ("parallel_tool_calls", Bool),
    ("prompt_cache_key", Text),
    ("service_tier", Text),
    ("safety_identifier", Text),
    ("user", Text),
    ("store", Bool),
];

const ANTHROPIC: &[(&str, Want)] = &[
    ("temperature", Number),
    ("top_p", Number),
    ("top_k", Number),
    ("max_tokens", Whole),
    ("stop_sequences", TextList),
    ("system", Content),
    ("tools", List),
    ("tool_choice.disable_parallel_tool_use", Bool),
    ("thinking", Object),
    ("output_config", Object),
    ("output_config.effort", Text),
    ("output_config.format", Object),
    ("metadata", Object),
    ("metadata.user_id", Text),
    ("service_tier", Text),
];

const RESPONSES: &[(&str, Want)] = &[
    ("temperature", Number),
    ("top_p", Number),
    ("presence_penalty", Number),
    ("frequency_penalty", Number),
    ("max_output_tokens", Whole),
    ("top_logprobs", Whole),
    ("instructions", Text),
    ("reasoning", Object),
    ("reasoning.effort", Text),
    ("reasoning.summary", Text),
    ("text", Object),
    ("text.format", Object),
    ("text.verbosity", Text),
    ("tools", List),
    ("parallel_tool_calls", Bool),
    ("include", List),
    ("prompt_cache_key", Text),
    ("service_tier", Text),
    ("safety_identifier", Text),
    ("user", Text),
    ("store", Bool),
];

const GEMINI: &[(&str, Want)] = &[
    ("generationConfig", Object),
    ("generationConfig.temperature", Number),
    ("generationConfig.topP", Number),
    ("generationConfig.topK", Number),
    ("generationConfig.presencePenalty", Number),
    ("generationConfig.frequencyPenalty", Number),
    ("generationConfig.seed", Number),
    ("generationConfig.candidateCount", Whole),
    ("generationConfig.maxOutputTokens", Whole),
    ("generationConfig.logprobs", Whole),
    ("generationConfig.responseLogprobs", Bool),
    ("generationConfig.stopSequences", TextList),
    ("generationConfig.responseMimeType", Text),
    ("generationConfig.thinkingConfig", Object),
    ("generationConfig.thinkingConfig.thinkingLevel", Text),
    ("generationConfig.thinkingConfig.thinkingBudget", Number),
    ("generationConfig.thinkingConfig.includeThoughts", Bool),
    ("systemInstruction", TextOrObject),
    ("tools", List),
    ("toolConfig", Object),
    ("serviceTier", Text),
];

/// Refuses a parameter of the request that was left over because its value is of another kind.
pub(super) fn right_kind(origin: Dialect, member: &Member<'_>) -> Result<(), Problem> {
    let table = match origin {
        Dialect::Chat => CHAT,
        Dialect::Anthropic => ANTHROPIC,
        Dialect::Responses => RESPONSES,
        Dialect::Gemini => GEMINI,
    };
    let path = member.path();
    let Some((_, want)) = table.iter().find(|(name, _)| same_name(name, &path)) else { return Ok(()) };
    let Ok(node) = Node::read(member.raw) else { return Ok(()) };
    if node.is_null() || want.fits(&node) || (origin == Dialect::Gemini && want.fits_as_text(&node)) {
        return Ok(());
    }
    Err(Problem::wrong(&path, want.words()))
}

impl Want {
    fn fits(self, node: &Node<'_>) -> bool {
        let texts = || node.is_list() && node.items().iter().all(|item| item.text().is_some());
        match self {
            Bool => node.bool().is_some(),
            Number => matches!(node.kind, NodeKind::Number),
            Whole => node.number().is_some(),
            Text => node.text().is_some(),
            List => node.is_list(),
            Object => node.is_map(),
            Texts => node.text().is_some() || texts(),
            TextList => texts(),
            Content => node.text().is_some() || node.is_list(),
            TextOrObject => node.text().is_some() || node.is_map(),
        }
    }

    /// Google reads numbers in texts too.
    fn fits_as_text(self, node: &Node<'_>) -> bool {
        let number = || node.text().and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_finite);
        matches!(self, Number | Whole) && number()
    }

    fn words(self) -> &'static str {
        match self {
            Bool => "true or false",
            Number => "a number",
            Whole => "a whole number",
            Text => "a text",
            List => "a list",
            Object => "an object",
            Texts => "a text or a list of texts",
            TextList => "a list of texts",
            Content => "a text or a list of parts",
            TextOrObject => "a text or an object",
        }
    }
}
