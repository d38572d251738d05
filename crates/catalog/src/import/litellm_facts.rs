//! What LiteLLM's price map says of a model beside prices.

use super::json::PriceNode;
use super::source::SourceModel;
use crate::Face;

pub(super) fn kind(model: &mut SourceModel, kind: &str, endpoint_types: &[&str]) {
    model.fact("type", kind);
    model.texts("supported_endpoint_types", endpoint_types);
}

/// `max_tokens` is the output here and the context there: it is taken for neither.
pub(super) fn limits(model: &mut SourceModel, record: &PriceNode, writes: bool) {
    let (input, output) = (record.count("max_input_tokens"), record.count("max_output_tokens"));
    model.count("context_window", input);
    if input.is_none() {
        model.notes.push("has no context window".to_owned());
    }
    if !writes {
        return;
    }
    match (input, output) {
        (Some(input), Some(output)) if output > input => {
            model.notes.push("is said to write more than it reads: its output is bounded by its context".to_owned());
            model.count("max_output_tokens", Some(input));
        }
        (_, Some(output)) => model.count("max_output_tokens", Some(output)),
        (_, None) => model.notes.push("has no limit of output".to_owned()),
    }
}

/// What a chat model takes and makes, as far as it has a price.
pub(super) fn chat(model: &mut SourceModel, record: &PriceNode) {
    let supports = |what: &str| record.flag(&format!("supports_{what}"));
    let mut input = vec!["text"];
    input.extend(supports("vision").then_some("image"));
    input.extend((supports("audio_input") && model.list.has(Face::AudioInput)).then_some("audio"));
    input.extend(supports("video_input").then_some("video"));
    input.extend(supports("pdf_input").then_some("file"));
    let mut output = vec!["text"];
    output.extend(model.list.has(Face::ImageOutput).then_some("image"));
    output.extend(model.list.has(Face::AudioOutput).then_some("audio"));
    model.texts("input_modalities", &input);
    model.texts("output_modalities", &output);
    let mut tasks = vec!["chat"];
    tasks.extend(supports("reasoning").then_some("reasoning"));
    tasks.extend(supports("vision").then_some("vision"));
    tasks.extend(supports("function_calling").then_some("tools"));
    model.texts("tasks", &tasks);
}

/// Models that are served at `/v1/responses` and not at `/v1/chat/completions`.
pub(super) fn responses_only(record: &PriceNode) -> bool {
    let paths = record.get("supported_endpoints").map(PriceNode::list).unwrap_or_default();
    let has = |path: &str| paths.contains(&PriceNode::Text(path.to_owned()));
    match record.text("mode") {
        Some("responses") => !has("/v1/chat/completions"),
        _ => has("/v1/responses") && !has("/v1/chat/completions"),
    }
}
