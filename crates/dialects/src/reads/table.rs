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

/// What a member of a conversation means, if it means more than text.
pub(crate) fn means(name: &[u8]) -> Option<Means> {
    Some(match name {
        b"type" => Means::Kind,
        // Chat and Responses.
        b"image_url" | b"image" => Means::Picture,
        b"video_url" | b"video" | b"input_video" => Means::Clip,
        b"input_audio" | b"audio_url" => Means::Sound,
        b"audio" => Means::Earlier,
        b"file" | b"file_url" | b"document_url" => Means::File,
        b"file_id" => Means::FileId,
        b"file_data" => Means::FileData,
        // Anthropic and Gemini.
        b"source" | b"inlineData" | b"inline_data" => Means::Typed,
        b"fileData" => Means::FileData,
        b"input" | b"args" | b"response" => Means::Anything,
        b"annotations" | b"citations" | b"action" | b"actions" | b"outputs" | b"results" | b"sources" | b"tools"
        | b"reasoning_details" => Means::Cited,
        _ => return None,
    })
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

fn in_chat(name: &[u8]) -> Option<Top> {
    Some(match name {
        b"web_search_options" | b"search_parameters" | b"enable_search" => Top::Runs("web_search"),
        b"plugins" => Top::Runs("plugins"),
        b"mcp_servers" => Top::Runs("mcp"),
        b"max_tool_calls" => Top::MostUses,
        b"prompt"
        | b"thread"
        | b"thread_id"
        | b"assistant_id"
        | b"conversation"
        | b"conversation_id"
        | b"previous_response_id"
        | b"cached_content"
        | b"cachedContent"
        | b"container"
        | b"attachments"
        | b"documents"
        | b"data_sources"
        | b"file_ids"
        | b"extra_body" => Top::Stored,
        _ => return None,
    })
}

fn in_anthropic(name: &[u8]) -> Option<Top> {
    Some(match name {
        b"mcp_servers" => Top::Runs("mcp"),
        b"container" => Top::Stored,
        b"context_management" => Top::Shortens,
        _ => return None,
    })
}

fn in_responses(name: &[u8]) -> Option<Top> {
    Some(match name {
        b"prompt" | b"previous_response_id" | b"conversation" => Top::Stored,
        b"context_management" => Top::Shortens,
        b"max_tool_calls" => Top::MostUses,
        _ => return None,
    })
}

fn in_gemini(name: &[u8]) -> Option<Top> {
    matches!(name, b"cachedContent" | b"cached_content").then_some(Top::Stored)
}

/// Parameters that are long enough to matter in an estimate and are read by no model.
fn is_parameter(name: &[u8]) -> bool {
    matches!(
        name,
        b"model"
            | b"stream"
            | b"stream_options"
            | b"store"
            | b"stop"
            | b"stop_sequences"
            | b"tool_choice"
            | b"function_call"
            | b"toolConfig"
            | b"tool_config"
            | b"safetySettings"
            | b"safety_settings"
            | b"labels"
            | b"metadata"
            | b"client_metadata"
            | b"user"
            | b"safety_identifier"
            | b"prompt_cache_key"
            | b"prompt_cache_retention"
            | b"logit_bias"
            | b"modalities"
            | b"audio"
            | b"reasoning"
            | b"reasoning_effort"
            | b"thinking"
            | b"verbosity"
            | b"include"
            | b"truncation"
            | b"service_tier"
            | b"serviceTier"
            | b"cache_control"
            | b"betas"
            | b"provider"
            | b"inference_geo"
            | b"speed"
    )
}

/// What a member around the conversation means. `None`: nobody knows, so its text is counted.
pub(crate) fn top(dialect: Dialect, name: &[u8]) -> Option<Top> {
    let own = match dialect {
        Dialect::Chat => in_chat(name),
        Dialect::Anthropic => in_anthropic(name),
        Dialect::Responses => in_responses(name),
        Dialect::Gemini => in_gemini(name),
    };
    own.or_else(|| is_parameter(name).then_some(Top::Parameter))
}
