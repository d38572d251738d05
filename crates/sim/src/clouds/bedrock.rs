//! Amazon Bedrock: Converse and ConverseStream, read as strictly as Amazon does.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::Either;
use serde_json::{Value, json};

use super::frames::frame;
use super::{header, signature, whole};
use crate::ask::Ask;
use crate::fault;
use crate::record::Received;
use crate::refusal::Refusal;
use crate::reply::Outgoing;
use crate::scenario::{Choice, Scenario as S};
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};
use crate::speech::Speech;

/// A key of Bedrock's own, and a pair that signs.
pub const BEDROCK_KEY: &str = "sim-bedrock-key";
pub const AWS_ACCESS: &str = "AKIASIMSIMSIM";
pub const AWS_SECRET: &str = "sim-aws-secret";

pub(super) async fn answer(world: &World, reset: Reset, parts: &Parts, path: &str, body: Bytes) -> Response<Outgoing> {
    let mut received = Received::new(parts, body.clone());
    let read = read(parts, path, &body);
    let (ask, choice) = match read {
        Ok(read) => read,
        Err(refusal) => {
            received.status = refusal.status;
            world.records.add(received).over(true);
            return refuse(&refusal);
        }
    };
    received.model.clone_from(&ask.model);
    received.stream = ask.stream;
    received.scenario = choice.name().to_string();
    let speech = Speech::of(&ask, &choice);
    let refused = match choice.scenario {
        S::Error(status) => Some(refuse(&fault::refusal(status, &choice))),
        _ => None,
    };
    received.accepted = refused.is_none();
    if received.accepted {
        received.prompt_tokens = speech.prompt_tokens;
        received.completion_tokens = speech.completion_tokens;
    }
    let mut watch = world.records.add(received);
    if let Some(refused) = refused {
        watch.over(true);
        watch.status(refused.status().as_u16());
        return refused;
    }
    watch.status(200);
    let (steps, ending) = if ask.stream {
        events(&speech, &choice)
    } else {
        (vec![Step::Send(message(&speech, &choice))], Ending::Proper)
    };
    let mut response = Response::new(Either::Right(Script::new(steps, ending, Some(watch), reset)));
    let kind = if ask.stream { "application/vnd.amazon.eventstream" } else { "application/json" };
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    response.headers_mut().insert("x-amzn-requestid", HeaderValue::from_static("sim-request"));
    response
}

fn refuse(refusal: &Refusal) -> Response<Outgoing> {
    let kind = match refusal.status {
        401 | 403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        429 => "ThrottlingException",
        408 => "ModelTimeoutException",
        503 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    };
    let body = json!({"message": refusal.message}).to_string();
    let mut response = fault::response(refusal.status, "application/json", body.into());
    response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(kind));
    whole(response)
}

fn read(parts: &Parts, path: &str, body: &[u8]) -> Result<(Ask, Choice), Refusal> {
    let bearer = format!("Bearer {BEDROCK_KEY}");
    if header(parts, "authorization") != Some(&bearer) && !signature::is_good(parts, &format!("/bedrock{path}"), body) {
        return Err(Refusal::new(403, "The security token included in the request is invalid."));
    }
    let nowhere = || Refusal::new(404, "no such operation");
    let (model, verb) = path.strip_prefix("/model/").and_then(|rest| rest.split_once('/')).ok_or_else(nowhere)?;
    let stream = match verb {
        "converse" => false,
        "converse-stream" => true,
        _ => return Err(nowhere()),
    };
    let Ok(Value::Object(asked)) = serde_json::from_slice::<Value>(body) else {
        return Err(Refusal::new(400, "The body is not a JSON object."));
    };
    let known = ["messages", "system", "inferenceConfig", "toolConfig", "additionalModelRequestFields"];
    only(&asked, &known)?;
    let model = model.replace("%3A", ":");
    // A region before the model's name says where it may run.
    let model = model.strip_prefix("eu.").or(model.strip_prefix("us.")).unwrap_or(&model).to_string();
    let chat = in_chat(&asked, &model, stream)?;
    let ask = Ask::read(chat.to_string().as_bytes())?;
    let choice = Choice::of(&ask.model, &ask.last_user)?;
    Ok((ask, choice))
}

fn only(members: &serde_json::Map<String, Value>, known: &[&str]) -> Result<(), Refusal> {
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Refusal::bad(name, &format!("extraneous key [{name}] is not permitted"))),
    }
}

/// The same conversation in chat completions, which the rest of the simulator reads.
fn in_chat(asked: &serde_json::Map<String, Value>, model: &str, stream: bool) -> Result<Value, Refusal> {
    let mut messages = Vec::new();
    let system: Vec<&str> = asked
        .get("system")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|one| one["text"].as_str())
        .collect();
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system.join("\n")}));
    }
    for turn in asked.get("messages").and_then(Value::as_array).into_iter().flatten() {
        turn_in_chat(turn, &mut messages)?;
    }
    let mut chat = json!({"model": model, "messages": messages, "stream": stream});
    if let Some(config) = asked.get("inferenceConfig").and_then(Value::as_object) {
        only(config, &["maxTokens", "temperature", "topP", "stopSequences"])?;
        for (theirs, ours) in [("maxTokens", "max_tokens"), ("stopSequences", "stop")] {
            if let Some(value) = config.get(theirs) {
                chat[ours] = value.clone();
            }
        }
    }
    if let Some(config) = asked.get("toolConfig").and_then(Value::as_object) {
        only(config, &["tools", "toolChoice"])?;
        let tools = config.get("tools").and_then(Value::as_array).into_iter().flatten();
        let tools = tools.filter_map(|tool| tool.get("toolSpec")).map(|spec| {
            json!({"type": "function", "function": {"name": spec["name"], "parameters": spec["inputSchema"]["json"]}})
        });
        chat["tools"] = tools.collect();
        if config.get("toolChoice").is_some_and(|choice| choice.get("any").is_some()) {
            chat["tool_choice"] = json!("required");
        }
    }
    Ok(chat)
}

fn turn_in_chat(turn: &Value, messages: &mut Vec<Value>) -> Result<(), Refusal> {
    let role = turn["role"].as_str().filter(|role| matches!(*role, "user" | "assistant"));
    let role = role.ok_or_else(|| Refusal::bad("messages", "role must be user or assistant"))?;
    let blocks = turn["content"].as_array().filter(|list| !list.is_empty());
    let blocks = blocks.ok_or_else(|| Refusal::bad("messages", "content must be a list with something in it"))?;
    let (mut text, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        let members = block.as_object().filter(|members| members.len() == 1);
        let (kind, value) = members
            .and_then(|members| members.iter().next())
            .ok_or_else(|| Refusal::bad("content", "a block has exactly one member"))?;
        match kind.as_str() {
            "text" => text.push(value.as_str().unwrap_or_default()),
            "toolUse" => calls.push(json!({
                "id": value["toolUseId"], "type": "function",
                "function": {"name": value["name"], "arguments": value["input"].to_string()},
            })),
            "toolResult" => {
                let said = value["content"].as_array().into_iter().flatten().filter_map(|one| one["text"].as_str());
                let said: String = said.collect();
                results.push(json!({"role": "tool", "tool_call_id": value["toolUseId"], "content": said}));
            }
            "image" | "document" | "reasoningContent" | "cachePoint" => {}
            other => return Err(Refusal::bad("content", &format!("unknown block [{other}]"))),
        }
    }
    messages.extend(results);
    let mut message = json!({"role": role, "content": text.join("\n")});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    if !text.is_empty() || message.get("tool_calls").is_some() {
        messages.push(message);
    }
    Ok(())
}

fn stop(speech: &Speech) -> &'static str {
    match speech.finish {
        "tool_calls" => "tool_use",
        "length" => "max_tokens",
        _ if speech.refused => "guardrail_intervened",
        _ if speech.stopped_by.is_some() => "stop_sequence",
        _ => "end_turn",
    }
}

/// What is read from the cache and written to it is not part of the input.
fn usage(speech: &Speech) -> Value {
    let (read, written) = (speech.cached_tokens, speech.written_tokens);
    json!({
        "inputTokens": speech.prompt_tokens - read - written, "outputTokens": speech.completion_tokens,
        "totalTokens": speech.prompt_tokens + speech.completion_tokens,
        "cacheReadInputTokens": read, "cacheWriteInputTokens": written,
    })
}

fn message(speech: &Speech, choice: &Choice) -> Bytes {
    if choice.is(S::Garbage) {
        return Bytes::from_static(b"not what was asked for");
    }
    let mut content = Vec::new();
    if !speech.reasoning.is_empty() {
        let text = json!({"text": speech.reasoning.join(" "), "signature": "c2lt"});
        content.push(json!({"reasoningContent": {"reasoningText": text}}));
    }
    if !speech.pieces.is_empty() {
        content.push(json!({"text": speech.text()}));
    }
    for call in &speech.calls {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        content.push(json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input}}));
    }
    let mut reply = json!({
        "metrics": {"latencyMs": 7}, "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop(speech),
    });
    if !choice.is(S::NoUsage) {
        reply["usage"] = usage(speech);
    }
    reply.to_string().into()
}

fn events(speech: &Speech, choice: &Choice) -> (Vec<Step>, Ending) {
    if choice.is(S::Garbage) {
        return (vec![Step::Send(Bytes::from_static(b"not a frame, and longer than one begins"))], Ending::Broken);
    }
    let said = |kind: &str, payload: Value| Step::Send(frame(kind, &payload, false));
    let mut steps = vec![said("messageStart", json!({"role": "assistant"}))];
    let mut index = 0;
    let mut block = |steps: &mut Vec<Step>, start: Option<Value>, deltas: Vec<Value>| {
        if let Some(start) = start {
            steps.push(said("contentBlockStart", json!({"contentBlockIndex": index, "start": start})));
        }
        for delta in deltas {
            steps.push(said("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta})));
        }
        steps.push(said("contentBlockStop", json!({"contentBlockIndex": index})));
        index += 1;
    };
    if !speech.reasoning.is_empty() {
        let mut deltas = vec![json!({"reasoningContent": {"text": speech.reasoning.join(" ")}})];
        deltas.push(json!({"reasoningContent": {"signature": "c2lt"}}));
        block(&mut steps, None, deltas);
    }
    if !speech.pieces.is_empty() {
        block(&mut steps, None, speech.pieces.iter().map(|piece| json!({"text": piece})).collect());
    }
    for call in &speech.calls {
        let start = json!({"toolUse": {"toolUseId": call.id, "name": call.name}});
        let deltas = call.pieces().iter().map(|piece| json!({"toolUse": {"input": piece}})).collect();
        block(&mut steps, Some(start), deltas);
    }
    match choice.scenario {
        S::ErrorMidstream => {
            steps.truncate(3);
            let error = json!({"message": "The system encountered an unexpected error during processing."});
            steps.push(Step::Send(frame("modelStreamErrorException", &error, true)));
            return (steps, Ending::Broken);
        }
        S::ErrorFirst => {
            let error = json!({"message": "Too many tokens, please wait before trying again."});
            return (vec![Step::Send(frame("throttlingException", &error, true))], Ending::Broken);
        }
        S::CutMidstream => {
            steps.truncate(3);
            steps.push(Step::Cut { reset: false });
            return (steps, Ending::Broken);
        }
        _ => {}
    }
    steps.push(said("messageStop", json!({"stopReason": stop(speech)})));
    if !choice.is(S::NoUsage) {
        steps.push(said("metadata", json!({"usage": usage(speech), "metrics": {"latencyMs": 7}})));
    }
    (steps, Ending::Proper)
}
