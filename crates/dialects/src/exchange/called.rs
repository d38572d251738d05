//! What a caller calls the fields that the form in the middle has one name for. Writers refuse a
//! field by that name, whoever the caller is; the caller looks for its own.

use tollgate_wire::Dialect;
use tollgate_wire::Problem;

/// The name in the middle, and that of Anthropic, Responses and Gemini. Chat's is the one in the
/// middle. Where a dialect has no such field, the name stays.
const NAMES: &[(&str, [&str; 3])] = &[
    ("messages", ["messages", "input", "contents"]),
    ("n", ["n", "n", "generationConfig.candidateCount"]),
    ("stop", ["stop_sequences", "stop", "generationConfig.stopSequences"]),
    ("temperature", ["temperature", "temperature", "generationConfig.temperature"]),
    ("top_p", ["top_p", "top_p", "generationConfig.topP"]),
    ("top_k", ["top_k", "top_k", "generationConfig.topK"]),
    ("seed", ["seed", "seed", "generationConfig.seed"]),
    ("frequency_penalty", ["frequency_penalty", "frequency_penalty", "generationConfig.frequencyPenalty"]),
    ("presence_penalty", ["presence_penalty", "presence_penalty", "generationConfig.presencePenalty"]),
    ("logprobs", ["logprobs", "include", "generationConfig.responseLogprobs"]),
    ("top_logprobs", ["top_logprobs", "top_logprobs", "generationConfig.logprobs"]),
    ("verbosity", ["verbosity", "text.verbosity", "verbosity"]),
    ("tool_choice", ["tool_choice", "tool_choice", "toolConfig"]),
    (
        "tool_choice.allowed_tools",
        ["tool_choice", "tool_choice", "toolConfig.functionCallingConfig.allowedFunctionNames"],
    ),
    ("parallel_tool_calls", ["tool_choice.disable_parallel_tool_use", "parallel_tool_calls", "parallel_tool_calls"]),
    ("service_tier", ["service_tier", "service_tier", "serviceTier"]),
    ("user", ["metadata.user_id", "safety_identifier", "user"]),
    ("metadata", ["metadata", "metadata", "labels"]),
];

/// The refusal with the caller's name of the field.
pub(super) fn by_caller(problem: Problem, caller: Dialect) -> Problem {
    let place = match caller {
        Dialect::Chat => return problem,
        Dialect::Anthropic => 0,
        Dialect::Responses => 1,
        Dialect::Gemini => 2,
    };
    let row = NAMES.iter().find(|(name, _)| problem.param.as_deref() == Some(name));
    match row.map(|(_, names)| names[place]) {
        Some(name) if problem.param.as_deref() != Some(name) => problem.about(name),
        _ => problem,
    }
}
