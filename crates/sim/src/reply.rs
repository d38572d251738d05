//! One call from arrival to reply: check, choose a scenario, record, think, answer.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::dialect::priced;
use crate::record::{Received, Watch};
use crate::refusal::Refusal;
use crate::scenario::{Choice, Scenario as S};
use crate::script::{Ending, Script, Step, with_door};
use crate::server::{Reset, World};
use crate::speech::Speech;
use crate::{clouds, control, dialect, events, fast, fault, hear, image, social, vectors, video, voice};

pub(crate) type Outgoing = Either<Full<Bytes>, Script>;

/// Start of 2026: replies do not depend on when they are asked for.
pub(crate) const CREATED: u64 = 1_767_225_600;

pub(crate) async fn answer(world: &World, reset: Reset, request: Request<Incoming>) -> Response<Outgoing> {
    let (parts, body) = request.into_parts();
    let whole = match (&parts.method, parts.uri.path()) {
        (method, path) if path.starts_with("/_sim/") => {
            control::answer(world, method, path, parts.uri.query().unwrap_or_default())
        }
        (&Method::GET, "/v1/models") => control::models(),
        (&Method::POST, "/v1/chat/completions") => match body.collect().await {
            Ok(body) => return chat(world, reset, &parts, body.to_bytes()).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (&Method::POST, path) if clouds::is_ours(path) => match body.collect().await {
            Ok(body) => return Box::pin(clouds::answer(world, reset, &parts, body.to_bytes())).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (&Method::POST, path) if vectors::is_ours(path) => match body.collect().await {
            Ok(body) => return vectors::answer(world, reset, &parts, body.to_bytes()).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (&Method::POST, path) if dialect::is_ours(path) => match body.collect().await {
            Ok(body) => return dialect::answer(world, reset, &parts, body.to_bytes()).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (_, path) if hear::is_ours(path) => return hear::answer(world, reset, &parts, body).await,
        (_, path) if image::may_be_ours(path) => match body.collect().await.map(|body| body.to_bytes()) {
            Ok(body) if image::is_ours(path, &body) => return image::answer(world, reset, &parts, body).await,
            Ok(body) if voice::is_ours(path) => return voice::answer(world, reset, &parts, body).await,
            Ok(body) => return video::answer(world, reset, &parts, body).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (&Method::POST, path) if voice::is_ours(path) => match body.collect().await {
            Ok(body) => return voice::answer(world, reset, &parts, body.to_bytes()).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (_, path) if path.starts_with("/api/") => match body.collect().await {
            Ok(body) => return social::answer(world, reset, &parts, body.to_bytes()).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        (_, path) if video::is_ours(path) => match body.collect().await {
            Ok(body) => return video::answer(world, reset, &parts, body.to_bytes()).await,
            Err(_) => fault::refuse(&Refusal::new(400, "the body did not arrive")),
        },
        _ => fault::refuse(&Refusal::new(404, "Invalid URL")),
    };
    whole.map(|body| Either::Left(Full::new(body)))
}

pub(crate) async fn chat(world: &World, reset: Reset, parts: &http::request::Parts, body: Bytes) -> Response<Outgoing> {
    if fast::is_fast(&body) {
        return quick(&body, reset);
    }
    let mut received = Received::new(parts, body);
    let (ask, choice) = match read(world, &mut received) {
        Ok(read) => read,
        Err(refusal) => {
            received.status = refusal.status;
            let mut watch = world.records.add(received);
            watch.over(true);
            return fault::refuse(&refusal).map(|body| Either::Left(Full::new(body)));
        }
    };
    let refused = fault::of(&choice);
    let speech = Speech::of(&ask, &choice);
    received.accepted = refused.is_none();
    if received.accepted {
        received.prompt_tokens = speech.prompt_tokens;
        received.completion_tokens = speech.completion_tokens;
    }
    let mut watch = world.records.add(received);
    world.gate.pass(parts.uri.path()).await;
    let think = choice.millis("think_ms").unwrap_or(match choice.scenario {
        S::Slow => std::time::Duration::from_secs(1),
        _ => world.think,
    });
    if !think.is_zero() {
        tokio::time::sleep(think).await;
    }
    if choice.is(S::Hang) {
        std::future::pending::<()>().await;
    }
    let mut response = match refused {
        Some(refused) => {
            watch.over(true);
            watch.status(refused.status().as_u16());
            refused.map(|body| Either::Left(Full::new(body)))
        }
        None => speak(world, &ask, &choice, &speech, watch, reset),
    };
    response.headers_mut().insert("openai-processing-ms", HeaderValue::from_static("7"));
    response
}

fn quick(body: &[u8], reset: Reset) -> Response<Outgoing> {
    // Only a stream has to be read properly: its length is in the model's name.
    let streamed = body.windows(16).any(|window| window == b"\"sim-faststream\"" || window == b"\"sim-faststream-");
    let ask = if streamed { Ask::read(body).ok() } else { None };
    let mut response = match ask.as_ref().and_then(fast::stream) {
        Some(steps) => Response::new(Either::Right(Script::new(steps, Ending::Proper, None, reset))),
        None => return fault::response(200, "application/json", fast::whole()).map(|b| Either::Left(Full::new(b))),
    };
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/event-stream"));
    response
}

fn read(world: &World, received: &mut Received) -> Result<(Ask, Choice), Refusal> {
    if let Some(key) = &world.require_key
        && !received.authorization_is(&format!("Bearer {key}"))
    {
        return Err(Refusal::new(401, "Incorrect API key provided."));
    }
    let ask = Ask::read(&received.body)?;
    received.model.clone_from(&ask.model);
    received.stream = ask.stream;
    let choice = Choice::of(&ask.model, &ask.last_user)?;
    received.scenario = choice.name().to_string();
    if choice.is(S::Strict) || ask.model.starts_with("sim-strict") {
        ask.check_fields()?;
        dialect::chat::check(&received.json())?;
    }
    if choice.is(S::Unthinking) || ask.model.starts_with("sim-unthinking") {
        dialect::chat::check_unthinking(&received.json())?;
    }
    Ok((ask, choice))
}

fn speak(world: &World, ask: &Ask, choice: &Choice, speech: &Speech, watch: Watch, reset: Reset) -> Response<Outgoing> {
    watch.status(200);
    let request_id = format!("req_sim_{}", watch.id);
    let id = if choice.is(S::SameId) { "chatcmpl-sim".to_string() } else { format!("chatcmpl-sim-{}", watch.id) };
    let (steps, ending, length) = if ask.stream {
        let (steps, ending) = events::script(ask, choice, speech, &id);
        (with_door(steps, choice, &world.gate), ending, None)
    } else {
        whole(ask, choice, speech, &id)
    };
    let mut response = Response::new(Either::Right(Script::new(steps, ending, Some(watch), reset)));
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        headers.insert("x-request-id", value);
    }
    if let Some(length) = length {
        headers.insert("content-length", length.into());
    }
    let content_type = if ask.stream { "text/event-stream; charset=utf-8" } else { "application/json" };
    if !choice.is(S::NoContentType) {
        headers.insert("content-type", HeaderValue::from_static(content_type));
    }
    headers.insert("cache-control", HeaderValue::from_static("no-cache"));
    response
}

/// A reply that is not streamed; its content length goes along when it is known.
fn whole(ask: &Ask, choice: &Choice, speech: &Speech, id: &str) -> (Vec<Step>, Ending, Option<usize>) {
    let reply = object(ask, choice, speech, id).to_string();
    let length = Some(reply.len());
    let half = Step::Send(Bytes::copy_from_slice(&reply.as_bytes()[..reply.len() / 2]));
    match choice.scenario {
        S::ErrorMidstream | S::ErrorFirst => {
            let error = events::error(choice).to_string();
            (vec![Step::Send(error.into())], Ending::Broken, None)
        }
        S::CutMidstream => (events::cut(vec![half], choice), Ending::Broken, length),
        S::HangMidstream => (vec![half, Step::Silence], Ending::Broken, length),
        S::Garbage => (vec![Step::Send(events::garbage(choice))], Ending::Broken, None),
        S::HugeLine => (events::huge("{\"id\":\"sim\",\"choices\":\"", "\"}", choice), Ending::Broken, None),
        S::SplitUtf8 => {
            let mut steps = events::split_characters(&reply);
            steps.insert(1, Step::Wait(std::time::Duration::from_millis(1)));
            (steps, Ending::Proper, length)
        }
        _ => (vec![Step::Send(reply.into())], Ending::Proper, length),
    }
}

fn object(ask: &Ask, choice: &Choice, speech: &Speech, id: &str) -> Value {
    let text = speech.text();
    let silent = text.is_empty() && !speech.calls.is_empty();
    let mut message = json!({"role": "assistant", "content": text, "refusal": null, "annotations": []});
    if silent {
        message["content"] = Value::Null;
    }
    if speech.refused {
        message["refusal"] = message["content"].take();
    }
    if !speech.reasoning.is_empty() {
        message["reasoning_content"] = Value::from(speech.reasoning.join(" "));
    }
    if !speech.calls.is_empty() {
        let calls = speech.calls.iter().map(|call| {
            let (kind, body) = call.kind();
            json!({"id": call.id, "type": kind, kind: {"name": call.name, body: call.arguments}})
        });
        message["tool_calls"] = calls.collect();
    }
    if let Some(audio) = speech.made.voice(&text) {
        message["content"] = Value::Null;
        message["audio"] = audio;
    }
    let said =
        |index: u64| json!({"index": index, "message": message, "logprobs": null, "finish_reason": speech.finish});
    let choices: Vec<_> = (0..ask.choices).map(said).collect();
    let mut reply = json!({
        "id": id, "object": "chat.completion", "created": CREATED, "model": reply_model(ask, choice),
        "choices": choices, "service_tier": "default", "system_fingerprint": "fp_sim",
    });
    match choice.scenario {
        S::NoUsage => {}
        S::WrongUsage => reply["usage"] = speech.wrong_usage(choice.text("kind").unwrap_or_default()),
        S::ZeroUsageLast => reply["usage"] = Speech::zero_usage(),
        S::Priced => reply["usage"] = priced(speech.usage()),
        _ => reply["usage"] = speech.usage(),
    }
    reply
}

pub(crate) fn reply_model<'a>(ask: &'a Ask, choice: &'a Choice) -> &'a str {
    choice.text("reply_model").unwrap_or(&ask.model)
}
