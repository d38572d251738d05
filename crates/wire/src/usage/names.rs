//! The shapes of usage reports as data: which name stands for which number.

use crate::json::Node;
use Name::{Also, Aside, Entries, Modes, Number, Object, Other};

/// How a provider reports usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UsageShape {
    /// Chat completions, OpenAI's own and those of compatible servers (DeepSeek, Qwen, Moonshot,
    /// xAI, …).
    Chat,
    /// Anthropic messages.
    Anthropic,
    /// OpenAI Responses; Realtime, image and transcription reports have the same bones.
    Responses,
    /// Gemini's `usageMetadata`.
    Gemini,
}

/// One number of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Input,
    Output,
    Total,
    CacheRead,
    CacheWrite,
    WriteShort,
    WriteLong,
    AudioIn,
    ImageIn,
    /// The part of `CacheRead` that is sound, and that is pictures.
    CachedAudio,
    CachedImage,
    ToolIn,
    Reasoning,
    AudioOut,
    ImageOut,
    /// Anthropic's iterations that its own totals leave out, summed.
    BesideInput,
    BesideRead,
    BesideWrite,
    BesideShort,
    BesideLong,
    BesideOutput,
}

pub(super) const SLOTS: usize = Slot::BesideOutput as usize + 1;

/// A member of a usage object.
pub(super) enum Name {
    Number(&'static str, Slot),
    /// The same number under another provider's name; the standard name wins.
    Also(&'static str, Slot),
    Object(&'static str, &'static [Name]),
    /// Gemini's list of `{modality, tokenCount}`: sound and pictures.
    Modes(&'static str, Slot, Slot),
    /// Anthropic's `iterations`: entries of the named kinds are summed.
    Entries(&'static str, &'static [&'static str], &'static [Name]),
    /// A part of a number above, or no count of tokens: nobody misses it.
    Aside(&'static str),
    /// An object of such.
    Other(&'static str, &'static [Name]),
}

impl Name {
    pub fn key(&self) -> &'static str {
        match self {
            Number(key, _) | Also(key, _) | Object(key, _) | Modes(key, ..) | Entries(key, ..) => key,
            Aside(key) | Other(key, _) => key,
        }
    }
}

impl UsageShape {
    pub(super) fn names(self) -> &'static [Name] {
        match self {
            UsageShape::Chat => CHAT,
            UsageShape::Anthropic => ANTHROPIC,
            UsageShape::Responses => RESPONSES,
            UsageShape::Gemini => GEMINI,
        }
    }

    /// Names the members of a report that nobody counts and that are not zero.
    pub fn uncounted(self, report: &Node<'_>, tell: &mut dyn FnMut(&str)) {
        report_uncounted(self.names(), report, tell);
    }
}

fn report_uncounted(names: &[Name], report: &Node<'_>, tell: &mut dyn FnMut(&str)) {
    for (member, value) in report.members() {
        match names.iter().find(|name| name.key() == member) {
            Some(Object(_, inner) | Other(_, inner)) => report_uncounted(inner, value, tell),
            Some(_) => {}
            None if !value.is_zero() => tell(member),
            None => {}
        }
    }
}

const CHAT: &[Name] = &[
    Number("prompt_tokens", Slot::Input),
    Number("completion_tokens", Slot::Output),
    Number("total_tokens", Slot::Total),
    Object("prompt_tokens_details", CHAT_INPUT),
    Object("completion_tokens_details", OUTPUT_DETAILS),
    Also("cached_tokens", Slot::CacheRead),
    Also("prompt_cache_hit_tokens", Slot::CacheRead),
    Also("cache_read_input_tokens", Slot::CacheRead),
    Also("cache_creation_input_tokens", Slot::CacheWrite),
    Also("reasoning_tokens", Slot::Reasoning),
    Aside("prompt_cache_miss_tokens"),
];

const CHAT_INPUT: &[Name] = &[
    Number("cached_tokens", Slot::CacheRead),
    Number("cache_write_tokens", Slot::CacheWrite),
    Also("cache_creation_input_tokens", Slot::CacheWrite),
    Object("cache_write_tokens_details", WRITE_DETAILS),
    Object("cache_creation", LIVES),
    Number("audio_tokens", Slot::AudioIn),
    Number("image_tokens", Slot::ImageIn),
    Aside("text_tokens"),
];

const WRITE_DETAILS: &[Name] = &[Number("ttl_30m_tokens", Slot::WriteShort), Number("ttl_12h_tokens", Slot::WriteLong)];

const LIVES: &[Name] =
    &[Number("ephemeral_5m_input_tokens", Slot::WriteShort), Number("ephemeral_1h_input_tokens", Slot::WriteLong)];

const OUTPUT_DETAILS: &[Name] = &[
    Number("reasoning_tokens", Slot::Reasoning),
    Number("audio_tokens", Slot::AudioOut),
    Number("image_tokens", Slot::ImageOut),
    Aside("text_tokens"),
    Aside("accepted_prediction_tokens"),
    Aside("rejected_prediction_tokens"),
];

const ANTHROPIC: &[Name] = &[
    Number("input_tokens", Slot::Input),
    Number("output_tokens", Slot::Output),
    Number("cache_read_input_tokens", Slot::CacheRead),
    Number("cache_creation_input_tokens", Slot::CacheWrite),
    Object("cache_creation", LIVES),
    Object("output_tokens_details", &[Number("thinking_tokens", Slot::Reasoning)]),
    // The kinds `message` and `fallback_message` are inside the numbers above.
    Entries("iterations", &["compaction", "advisor_message"], BESIDE),
    Aside("service_tier"),
    Other("server_tool_use", &[Aside("web_search_requests")]),
];

const BESIDE: &[Name] = &[
    Number("input_tokens", Slot::BesideInput),
    Number("output_tokens", Slot::BesideOutput),
    Number("cache_read_input_tokens", Slot::BesideRead),
    Number("cache_creation_input_tokens", Slot::BesideWrite),
    Object(
        "cache_creation",
        &[
            Number("ephemeral_5m_input_tokens", Slot::BesideShort),
            Number("ephemeral_1h_input_tokens", Slot::BesideLong),
        ],
    ),
];

const RESPONSES: &[Name] = &[
    Number("input_tokens", Slot::Input),
    Number("output_tokens", Slot::Output),
    Number("total_tokens", Slot::Total),
    Object("input_tokens_details", INPUT_DETAILS),
    Object("output_tokens_details", OUTPUT_DETAILS),
    // Realtime and transcription leave out the plural.
    Object("input_token_details", INPUT_DETAILS),
    Object("output_token_details", OUTPUT_DETAILS),
];

const INPUT_DETAILS: &[Name] = &[
    Number("cached_tokens", Slot::CacheRead),
    Number("cache_write_tokens", Slot::CacheWrite),
    Object("cache_write_tokens_details", WRITE_DETAILS),
    Number("audio_tokens", Slot::AudioIn),
    Number("image_tokens", Slot::ImageIn),
    Object(
        "cached_tokens_details",
        &[Number("audio_tokens", Slot::CachedAudio), Number("image_tokens", Slot::CachedImage), Aside("text_tokens")],
    ),
    Aside("text_tokens"),
];

/// Both spellings: Google's own clients send and read either.
const GEMINI: &[Name] = &[
    Number("promptTokenCount", Slot::Input),
    Number("candidatesTokenCount", Slot::Output),
    Number("totalTokenCount", Slot::Total),
    Number("cachedContentTokenCount", Slot::CacheRead),
    Number("thoughtsTokenCount", Slot::Reasoning),
    Number("toolUsePromptTokenCount", Slot::ToolIn),
    Modes("promptTokensDetails", Slot::AudioIn, Slot::ImageIn),
    Modes("cacheTokensDetails", Slot::CachedAudio, Slot::CachedImage),
    Modes("candidatesTokensDetails", Slot::AudioOut, Slot::ImageOut),
    Also("prompt_token_count", Slot::Input),
    Also("candidates_token_count", Slot::Output),
    Also("total_token_count", Slot::Total),
    Also("cached_content_token_count", Slot::CacheRead),
    Also("thoughts_token_count", Slot::Reasoning),
    Also("tool_use_prompt_token_count", Slot::ToolIn),
    Modes("prompt_tokens_details", Slot::AudioIn, Slot::ImageIn),
    Modes("cache_tokens_details", Slot::CachedAudio, Slot::CachedImage),
    Modes("candidates_tokens_details", Slot::AudioOut, Slot::ImageOut),
    // Live sessions.
    Also("responseTokenCount", Slot::Output),
    Modes("responseTokensDetails", Slot::AudioOut, Slot::ImageOut),
    Aside("toolUsePromptTokensDetails"),
    Aside("tool_use_prompt_tokens_details"),
    Aside("trafficType"),
    Aside("traffic_type"),
];
