//! What of a GenerateContentResponse is read into the hub. All else is reported to a client of
//! another dialect.

use super::events_in::MOST_CHOICES;
use crate::hub::Known::{Apart, Dotted, Each, In, Is, Recast, Usage};
use crate::hub::RestMembers;
use tollgate_wire::json::Node;
use tollgate_wire::usage::UsageShape;

pub(super) const RESPONSE: RestMembers = &[
    Each("candidates", candidate),
    Usage("usageMetadata", UsageShape::Gemini),
    Usage("usage_metadata", UsageShape::Gemini),
    Apart(&["responseId", "response_id", "modelVersion", "model_version", "createTime", "create_time"]),
    // Why a prompt was refused ends the answer.
    Recast(&Dotted("promptFeedback", &[Is(&["blockReason", "blockReasonMessage"])])),
];

fn candidate(candidate: &Node<'_>) -> Option<RestMembers> {
    let near = candidate.get("index").and_then(Node::number).unwrap_or(0) < MOST_CHOICES;
    near.then_some(CANDIDATE)
}

/// What is said about the finish is reported by the reader where it is no refusal.
const CANDIDATE: RestMembers = &[
    In("content", &[Apart(&["role"]), Each("parts", part)]),
    Is(&["finishReason", "finish_reason"]),
    Apart(&["index", "finishMessage", "finish_message", "tokenCount", "token_count"]),
    Recast(&Dotted("groundingMetadata", GROUNDING)),
    Recast(&Dotted("grounding_metadata", GROUNDING)),
    Recast(&Dotted("citationMetadata", CITATIONS)),
    Recast(&Dotted("citation_metadata", CITATIONS)),
    Recast(&In("logprobsResult", LOGPROBS)),
    Recast(&In("logprobs_result", LOGPROBS)),
];

/// Parts; others are reported by the name of their first member.
fn part(part: &Node<'_>) -> Option<RestMembers> {
    if part.text_of("text").is_some() {
        return Some(&[Is(&["text", "thought"]), Is(SIGNATURE)]);
    }
    if part.either("functionCall", "function_call").is_some() {
        return Some(&[In("functionCall", CALL), In("function_call", CALL), Is(SIGNATURE), Is(&["thought"])]);
    }
    let data = part.either("inlineData", "inline_data")?;
    let mime = data.either("mimeType", "mime_type").and_then(Node::text)?;
    let known: RestMembers = &[In("inlineData", DATA), In("inline_data", DATA), Is(SIGNATURE), Is(&["thought"])];
    mime.starts_with("image/").then_some(known)
}

const SIGNATURE: &[&str] = &["thoughtSignature", "thought_signature"];
const CALL: RestMembers = &[Is(&["id", "name", "args"])];
const DATA: RestMembers = &[Is(&["mimeType", "mime_type", "data"])];

const GROUNDING: RestMembers = &[
    Is(&["webSearchQueries", "web_search_queries"]),
    Each("groundingChunks", chunk),
    Each("grounding_chunks", chunk),
    Each("groundingSupports", |_| Some(SUPPORT)),
    Each("grounding_supports", |_| Some(SUPPORT)),
];

/// A page of the web; other sources are reported as citations.
fn chunk(chunk: &Node<'_>) -> Option<RestMembers> {
    let known: RestMembers = &[In("web", &[Is(&["uri", "title"])])];
    chunk.get("web").map(|_| known)
}

const SUPPORT: RestMembers = &[
    In("segment", &[Is(&["startIndex", "endIndex", "text"]), Apart(&["partIndex"])]),
    Is(&["groundingChunkIndices", "grounding_chunk_indices"]),
];

const CITATIONS: RestMembers = &[Each("citationSources", source), Each("citations", source)];

fn source(source: &Node<'_>) -> Option<RestMembers> {
    let known: RestMembers = &[Is(&["uri", "title", "startIndex", "endIndex"])];
    source.text_of("uri").map(|_| known)
}

const LOGPROBS: RestMembers = &[
    Each("chosenCandidates", |_| Some(TOKEN)),
    Each("chosen_candidates", |_| Some(TOKEN)),
    Each("topCandidates", |_| Some(&[Each("candidates", |_| Some(TOKEN))])),
    Each("top_candidates", |_| Some(&[Each("candidates", |_| Some(TOKEN))])),
];

const TOKEN: RestMembers = &[Is(&["token", "logProbability", "log_probability"]), Apart(&["tokenId", "token_id"])];
