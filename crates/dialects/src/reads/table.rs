//! The inventory: which members of a request make a provider read something, and what that is. One
//! list for what may stand in a conversation, whoever's it is (the names of the dialects do not
//! collide), and one for the members around it in each dialect.

use tollgate_wire::Dialect;

/// What a member of a conversation makes the provider read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// The kind of the object it stands in.
    Kind,
    /// A picture, as data or by its address.
    Picture,
    /// A clip, as data or by its address.
    Clip,
    /// Sound.
    Sound,
    /// Sound of an earlier answer, which the provider has.
    Earlier,
    /// A file, as data or by its address or id.
    File,
    /// The id of a file: a picture in an object that is one, else a file.
    FileId,
    /// Responses: the data of a file. Gemini: a file by its address, with its type.
    FileData,
    /// Anthropic and Gemini: data or an address, with a type.
    Typed,
    /// Arguments and results of functions are anything at all: text, whatever their members are
    /// called.
    Anything,
    /// What was found or cited before: addresses in it lead nowhere.
    Cited,
}

const MEMBERS: &[(&str, Means)] = &[
    ("type", Means::Kind),
    // Chat and Responses.
    ("image_url", Means::Picture),
    ("image", Means::Picture),
    ("video_url", Means::Clip),
    ("video", Means::Clip),
    ("input_video", Means::Clip),
    ("input_audio", Means::Sound),
    ("audio_url", Means::Sound),
    ("audio", Means::Earlier),
    ("file", Means::File),
    ("file_url", Means::File),
    ("document_url", Means::File),
    ("file_id", Means::FileId),
    ("file_data", Means::FileData),
    // Anthropic and Gemini.
    ("source", Means::Typed),
    ("inlineData", Means::Typed),
    ("inline_data", Means::Typed),
    ("fileData", Means::FileData),
    ("input", Means::Anything),
    ("args", Means::Anything),
    ("response", Means::Anything),
    ("annotations", Means::Cited),
    ("citations", Means::Cited),
    ("action", Means::Cited),
    ("actions", Means::Cited),
    ("outputs", Means::Cited),
    ("results", Means::Cited),
    ("sources", Means::Cited),
    ("tools", Means::Cited),
    ("reasoning_details", Means::Cited),
];

/// What a member of a conversation means, if it means more than text.
pub(crate) fn means(name: &[u8]) -> Option<Means> {
    MEMBERS.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, means)| *means)
}

/// Kinds of objects whose `file_id` and `source` are a picture.
pub(crate) const PICTURES: &[&str] = &["image", "input_image", "image_url", "image_file", "computer_screenshot"];
/// Kinds that stand for something the provider has.
pub(crate) const REFERENCES: &[&str] = &["item_reference"];
/// Kinds whose `url` tells where something came from.
pub(crate) const CITING: &[&str] = &[
    "url_citation",
    "url",
    "web_search_result",
    "web_search_result_location",
    "web_fetch_result",
    "search_result",
    "search_result_location",
    "open_page",
    "find_in_page",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
];

/// What a member around the conversation makes the provider read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// Something that the provider has: a stored prompt, a cache, a thread, files, a container.
    Stored,
    /// A tool that runs at the provider, of this name.
    Runs(&'static str),
    /// Rules for shortening the conversation; some of them read it once more.
    Shortens,
    /// The most uses of tools that run at the provider.
    MostUses,
    /// A parameter: nothing of it is read.
    Parameter,
}

const CHAT: &[(&str, Top)] = &[
    ("web_search_options", Top::Runs("web_search")),
    ("search_parameters", Top::Runs("web_search")),
    ("enable_search", Top::Runs("web_search")),
    ("plugins", Top::Runs("plugins")),
    ("mcp_servers", Top::Runs("mcp")),
    ("max_tool_calls", Top::MostUses),
    ("prompt", Top::Stored),
    ("thread", Top::Stored),
    ("thread_id", Top::Stored),
    ("assistant_id", Top::Stored),
    ("conversation", Top::Stored),
    ("conversation_id", Top::Stored),
    ("previous_response_id", Top::Stored),
    ("cached_content", Top::Stored),
    ("cachedContent", Top::Stored),
    ("container", Top::Stored),
    ("attachments", Top::Stored),
    ("documents", Top::Stored),
    ("data_sources", Top::Stored),
    ("file_ids", Top::Stored),
    ("extra_body", Top::Stored),
];

const ANTHROPIC: &[(&str, Top)] =
    &[("mcp_servers", Top::Runs("mcp")), ("container", Top::Stored), ("context_management", Top::Shortens)];

const RESPONSES: &[(&str, Top)] = &[
    ("prompt", Top::Stored),
    ("previous_response_id", Top::Stored),
    ("conversation", Top::Stored),
    ("context_management", Top::Shortens),
    ("max_tool_calls", Top::MostUses),
];

const GEMINI: &[(&str, Top)] = &[("cachedContent", Top::Stored), ("cached_content", Top::Stored)];

/// Parameters that are long enough to matter in an estimate and are read by no model.
const PARAMETERS: &[&str] = &[
    "model",
    "stream",
    "stream_options",
    "store",
    "stop",
    "stop_sequences",
    "tool_choice",
    "function_call",
    "toolConfig",
    "tool_config",
    "safetySettings",
    "safety_settings",
    "labels",
    "metadata",
    "client_metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "logit_bias",
    "modalities",
    "audio",
    "reasoning",
    "reasoning_effort",
    "thinking",
    "verbosity",
    "include",
    "truncation",
    "service_tier",
    "serviceTier",
    "cache_control",
    "betas",
    "provider",
    "inference_geo",
    "speed",
];

/// What a member around the conversation means. `None`: nobody knows, so its text is counted.
pub(crate) fn top(dialect: Dialect, name: &[u8]) -> Option<Top> {
    let own = match dialect {
        Dialect::Chat => CHAT,
        Dialect::Anthropic => ANTHROPIC,
        Dialect::Responses => RESPONSES,
        Dialect::Gemini => GEMINI,
    };
    let known = own.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, top)| *top);
    known.or_else(|| PARAMETERS.iter().any(|known| known.as_bytes() == name).then_some(Top::Parameter))
}
