//! Providers of vectors, from their published formats: OpenAI's `/v1/embeddings` (and, as strict as
//! they are, DashScope's `/compatible-mode/v1/embeddings` and Jina's below `/jina/v1`), Gemini's
//! `:embedContent` and `:batchEmbedContents`, Cohere's `/v2/embed`. And of what is done with such
//! models: rerank by Cohere and Jina, decisions by System One (`/v1/systemone`) and OpenAI
//! (`/v1/decisions`).
//!
//! Scenarios are those of chat completions, chosen by the model's name or a marker in the last
//! text: errors, `hang`, `slow`, `cut_midstream`, `garbage` (half a reply, or `kind=text`),
//! `no_usage`, `wrong_usage`, `empty` (no vector at all). With `kind=` a good reply has one fault:
//! `floats` (a list although base64 was asked for), `short` (one vector is missing), `shuffled`
//! (last vector first), `packed` (it says that it is compressed), `inside` (an error in a reply of
//! status 200). `size` is the number of dimensions where the request names none.
//!
//! The bill: words of all texts, or as many tokens as were given.

mod decide;
mod embed;
mod read;
mod rerank;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::{Either, Full};
use serde_json::{Value, json};

use crate::dialect::priced;
use crate::fast;
use crate::fault;
use crate::record::Received;
use crate::refusal::Refusal;
use crate::reply::Outgoing;
use crate::scenario::{Choice, Scenario as S};
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};

/// Whose format a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    OpenAi,
    DashScope,
    Jina,
    Gemini {
        batch: bool,
    },
    /// Predictions of Vertex AI.
    Vertex,
    Cohere,
    CohereRerank,
    JinaRerank,
    SystemOne,
    Decisions,
}

impl Form {
    /// The form, and the model where the path names it.
    fn of(path: &str) -> Option<(Form, &str)> {
        let plain = |form| Some((form, ""));
        match path {
            "/v1/embeddings" => return plain(Form::OpenAi),
            "/jina/v1/embeddings" => return plain(Form::Jina),
            "/cohere/v2/embed" => return plain(Form::Cohere),
            "/cohere/v2/rerank" => return plain(Form::CohereRerank),
            "/jina/v1/rerank" | "/v1/rerank" => return plain(Form::JinaRerank),
            "/v1/systemone" => return plain(Form::SystemOne),
            "/v1/decisions" => return plain(Form::Decisions),
            _ if path.ends_with("/compatible-mode/v1/embeddings") => return plain(Form::DashScope),
            _ => {}
        }
        let rest = path.strip_prefix("/v1beta/models/").or(path.strip_prefix("/v1/models/"))?;
        let (model, verb) = rest.rsplit_once(':')?;
        match verb {
            "embedContent" => Some((Form::Gemini { batch: false }, model)),
            "batchEmbedContents" => Some((Form::Gemini { batch: true }, model)),
            "predict" => Some((Form::Vertex, model)),
            _ => None,
        }
    }
}

/// What a request comes to, whatever its form.
struct Asked {
    model: String,
    /// The last text: it may have a marker.
    last: String,
    tokens: u64,
    /// The whole reply as it should be.
    reply: Value,
}

pub(crate) fn is_ours(path: &str) -> bool {
    Form::of(path).is_some()
}

pub(crate) async fn answer(world: &World, reset: Reset, parts: &Parts, body: Bytes) -> Response<Outgoing> {
    let path = parts.uri.path();
    let Some((form, model)) = Form::of(path) else {
        return whole(fault::refuse(&Refusal::new(404, "no such path")));
    };
    if form == Form::OpenAi && fast::is_fast(&body) {
        return whole(fault::response(200, "application/json", embed::quick()));
    }
    let mut received = Received::new(parts, body);
    let read = check_key(world, form, parts, &received).and_then(|()| read(form, model, &mut received));
    let (asked, choice) = match read {
        Ok(read) => read,
        Err(refusal) => {
            received.status = refusal.status;
            world.records.add(received).over(true);
            return whole(refused(form, &refusal));
        }
    };
    let error = error_of(form, &choice);
    received.accepted = error.is_none();
    received.prompt_tokens = if received.accepted { asked.tokens } else { 0 };
    let mut watch = world.records.add(received);
    world.gate.pass(path).await;
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
    if let Some(error) = error {
        watch.over(true);
        watch.status(error.status().as_u16());
        return whole(error);
    }
    watch.status(200);
    if choice.text("kind") == Some("packed") {
        watch.over(true);
        return whole(fault::packed(200));
    }
    let text = asked.reply.to_string();
    let half = Step::Send(Bytes::copy_from_slice(&text.as_bytes()[..text.len() / 2]));
    let (steps, ending) = match choice.scenario {
        S::CutMidstream => (crate::events::cut(vec![half], &choice), Ending::Broken),
        S::HangMidstream => (vec![half, Step::Silence], Ending::Broken),
        S::Garbage if choice.text("kind").is_some() => {
            (vec![Step::Send(crate::events::garbage(&choice))], Ending::Broken)
        }
        S::Garbage => (vec![half], Ending::Broken),
        _ => (vec![Step::Send(text.into())], Ending::Proper),
    };
    let mut response = Response::new(Either::Right(Script::new(steps, ending, Some(watch), reset)));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

fn read(form: Form, model: &str, received: &mut Received) -> Result<(Asked, Choice), Refusal> {
    let Ok(body @ Value::Object(_)) = serde_json::from_slice(&received.body) else {
        return Err(Refusal::new(400, "We could not parse the JSON body of your request."));
    };
    let named = body["model"].as_str().filter(|_| !matches!(form, Form::Gemini { .. } | Form::Vertex)).unwrap_or(model);
    received.model = named.to_string();
    let asked = match form {
        Form::CohereRerank | Form::JinaRerank => rerank::read(form, named, &body)?,
        Form::SystemOne | Form::Decisions => decide::read(form, named, &body)?,
        _ => embed::read(form, named, &body)?,
    };
    let choice = Choice::of(&asked.model, &asked.last)?;
    received.scenario = choice.name().to_string();
    let reply = spoil(form, asked.reply.clone(), &choice);
    Ok((Asked { reply, ..asked }, choice))
}

fn check_key(world: &World, form: Form, parts: &Parts, received: &Received) -> Result<(), Refusal> {
    let Some(key) = &world.require_key else { return Ok(()) };
    let known = match form {
        Form::Gemini { .. } => parts.headers.get("x-goog-api-key").is_some_and(|own| own == key.as_str()),
        _ => received.authorization_is(&format!("Bearer {key}")),
    };
    if known { Ok(()) } else { Err(Refusal::new(401, "Incorrect API key provided.")) }
}

/// The HTTP error a scenario answers with, if that is what it does.
fn error_of(form: Form, choice: &Choice) -> Option<Response<Bytes>> {
    let S::Error(status) = choice.scenario else { return fault::of(choice) };
    let mut reply = refused(form, &fault::refusal(status, choice));
    if matches!(status, 429 | 503) {
        reply.headers_mut().insert("retry-after", choice.number("retry_after").unwrap_or(7).into());
    }
    Some(reply)
}

/// An error as each of them words it.
fn refused(form: Form, refusal: &Refusal) -> Response<Bytes> {
    let (status, message) = (refusal.status, &refusal.message);
    let body = match form {
        Form::OpenAi | Form::DashScope | Form::Decisions => refusal.json(),
        Form::Jina | Form::JinaRerank => json!({"detail": message}),
        Form::SystemOne if status < 500 => {
            json!({"detail": [{"loc": ["body", refusal.param], "msg": message, "type": "value_error"}]})
        }
        Form::SystemOne => json!({"detail": message}),
        Form::Cohere | Form::CohereRerank => json!({"id": "sim-0f1e2d3c", "message": message}),
        Form::Gemini { .. } | Form::Vertex => {
            let word = if status < 500 { "INVALID_ARGUMENT" } else { "INTERNAL" };
            json!({"error": {"code": status, "message": message, "status": word}})
        }
    };
    fault::response(status, "application/json", body.to_string().into())
}

/// The reply with the fault that a scenario puts into it.
fn spoil(form: Form, mut reply: Value, choice: &Choice) -> Value {
    let (list, report) = match form {
        Form::OpenAi | Form::DashScope | Form::Jina => ("/data", "usage"),
        Form::Gemini { .. } => ("/embeddings", "usageMetadata"),
        Form::Vertex => ("/predictions", "metadata"),
        Form::Cohere => ("/embeddings/float", "meta"),
        Form::CohereRerank => ("/results", "meta"),
        Form::JinaRerank => ("/results", "usage"),
        Form::SystemOne | Form::Decisions => ("/answers", "usage"),
    };
    match choice.scenario {
        S::NoUsage => {
            reply.as_object_mut().map(|members| members.remove(report));
        }
        S::WrongUsage => {
            let tokens =
                |number: Value| json!({"prompt_tokens": number, "input_tokens": number, "total_tokens": number});
            reply[report] = match choice.text("kind") {
                Some("huge") => tokens(json!(900_000_000)),
                Some("strings") => tokens(json!("7")),
                Some("null") => Value::Null,
                _ => tokens(json!(-5)),
            };
        }
        S::Priced => reply[report] = priced(reply[report].take()),
        S::Empty => {
            if let Some(all) = reply.pointer_mut(list) {
                *all = if all.is_object() { json!({}) } else { json!([]) };
            }
        }
        _ => {}
    }
    match (choice.text("kind"), reply.pointer_mut(list)) {
        (Some("short"), Some(Value::Array(all))) => {
            all.pop();
        }
        (Some("shuffled"), Some(Value::Array(all))) => all.reverse(),
        (Some("inside"), _) => {
            return json!({"error": {"message": "The model is overloaded.", "type": "server_error", "code": "overloaded"}});
        }
        _ => {}
    }
    if let Some(name) = choice.text("reply_model") {
        reply["model"] = Value::from(name);
    }
    reply
}

fn whole(reply: Response<Bytes>) -> Response<Outgoing> {
    reply.map(|body| Either::Left(Full::new(body)))
}
