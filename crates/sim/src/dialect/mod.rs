//! Chat in three more dialects: Anthropic `/v1/messages`, OpenAI `/v1/responses`, Gemini
//! `/v1beta/models/{m}:{verb}`.
//!
//! Each dialect has a folder that **reads** a request as strictly as the provider does (unknown
//! fields, order of turns, calls without results, seals that are not its own, schemas it cannot
//! take) and **says** a reply in its shapes. What is said and how it goes wrong is shared:
//! scenarios and options are those of chat completions, and so is the bill.
//!
//! Where the scenarios need a reading: `no_done` leaves out the mark at the end (`message_stop`,
//! `response.completed`; Gemini has none), `no_finish` the reason of the stop. `error_midstream`
//! takes `kind=flat|failed` at Responses (the `error` event or `response.failed` alone; both
//! otherwise) and `kind=bare` at Gemini (an error outside the framing). `reasoning` takes
//! `kind=redacted` at Anthropic. Responses shows a summary only when it is asked for, Gemini
//! thoughts only with `includeThoughts`. Nothing is stored: every `previous_response_id` is
//! unknown. `chat` is how strictly OpenAI itself reads the fourth dialect, for models named
//! `sim-strict`; models named `sim-unthinking` refuse, in both of OpenAI's dialects, any setting of
//! thinking.

mod anthropic;
pub(crate) mod chat;
mod check;
mod error;
mod gemini;
mod responses;
mod seal;
mod stream;
mod usage;
mod whole;

pub(crate) use usage::priced;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::{Either, Full};
use serde_json::{Value, json};

use crate::ask::Ask;
use crate::record::{Received, Watch};
use crate::refusal::Refusal;
use crate::reply::Outgoing;
use crate::scenario::{Choice, Scenario as S};
use crate::script::{Ending, Script, with_door};
use crate::server::{Reset, World};
use crate::speech::Speech;
use crate::{fast, fault};
use check::{Checked, Place};

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Anthropic,
    Responses,
    Gemini,
}

impl Dialect {
    /// A field as the tables here spell it: Google takes `snake_case` for every `camelCase`.
    fn spelt(self, key: &str) -> String {
        if self != Dialect::Gemini {
            return key.to_string();
        }
        let mut words = key.split('_');
        let first = words.next().unwrap_or_default().to_string();
        words.fold(first, |name, word| {
            let mut letters = word.chars();
            name + &letters.next().map(|letter| letter.to_ascii_uppercase().to_string()).unwrap_or_default()
                + letters.as_str()
        })
    }
}

/// What a path asks for.
struct Asked {
    dialect: Dialect,
    /// Only to count the prompt.
    count: bool,
    /// Gemini names model and stream in the path.
    model: String,
    stream: bool,
    /// Gemini streams events only when asked to, else one JSON list.
    sse: bool,
}

impl Asked {
    fn of(path: &str, query: &str) -> Option<Self> {
        let plain = |dialect, count| Self { dialect, count, model: String::new(), stream: false, sse: true };
        match path {
            "/v1/messages" => Some(plain(Dialect::Anthropic, false)),
            "/v1/messages/count_tokens" => Some(plain(Dialect::Anthropic, true)),
            "/v1/responses" => Some(plain(Dialect::Responses, false)),
            "/v1/responses/input_tokens" => Some(plain(Dialect::Responses, true)),
            path => {
                let rest = path.strip_prefix("/v1beta/models/").or(path.strip_prefix("/v1/models/"))?;
                let (model, verb) = rest.split_once(':')?;
                let sse = query.split('&').any(|pair| pair == "alt=sse");
                let asked = Self { model: model.to_string(), sse, ..plain(Dialect::Gemini, verb == "countTokens") };
                let known = ["generateContent", "streamGenerateContent", "countTokens"].contains(&verb);
                known.then_some(Self { stream: verb == "streamGenerateContent", ..asked })
            }
        }
    }
}

/// One reply and all that shapes it.
struct Said<'a> {
    ask: &'a Ask,
    choice: &'a Choice,
    speech: &'a Speech,
    /// Number of the call; ids in the reply carry it.
    number: u64,
}

impl Said<'_> {
    fn model(&self) -> &str {
        crate::reply::reply_model(self.ask, self.choice)
    }

    fn id(&self, prefix: &str) -> String {
        let number = if self.choice.is(S::SameId) { 0 } else { self.number };
        format!("{prefix}sim_{number}")
    }

    fn thoughts(&self) -> String {
        self.speech.reasoning.join(" ")
    }
}

pub(crate) fn is_ours(path: &str) -> bool {
    Asked::of(path, "").is_some()
}

pub(crate) async fn answer(world: &World, reset: Reset, parts: &Parts, body: Bytes) -> Response<Outgoing> {
    let Some(asked) = Asked::of(parts.uri.path(), parts.uri.query().unwrap_or_default()) else {
        return refuse(Dialect::Gemini, &Refusal::new(404, "no such method"));
    };
    let quick = fast::is_fast(&body) || asked.model.starts_with("sim-fast");
    let mut received = Received::new(parts, body);
    let (ask, choice) = match read(world, parts, &asked, &mut received) {
        Ok(read) => read,
        Err(refusal) => {
            received.status = refusal.status;
            world.records.add(received).over(true);
            return refuse(asked.dialect, &refusal);
        }
    };
    let speech = Speech::of(&ask, &choice);
    if quick {
        let said = Said { ask: &ask, choice: &choice, speech: &speech, number: 0 };
        return speak(world, &asked, &said, None, reset);
    }
    let refused = error::of(asked.dialect, &choice);
    received.accepted = refused.is_none() && !asked.count;
    if received.accepted {
        received.prompt_tokens = speech.prompt_tokens;
        received.completion_tokens = speech.completion_tokens;
    }
    let mut watch = world.records.add(received);
    think(world, &choice).await;
    let number = watch.id;
    let reply = refused.or_else(|| asked.count.then(|| count(asked.dialect, &speech)));
    match reply {
        Some(reply) => {
            watch.over(true);
            watch.status(reply.status().as_u16());
            reply.map(|body| Either::Left(Full::new(body)))
        }
        None => speak(world, &asked, &Said { ask: &ask, choice: &choice, speech: &speech, number }, Some(watch), reset),
    }
}

async fn think(world: &World, choice: &Choice) {
    let pause = choice.millis("think_ms").unwrap_or(match choice.scenario {
        S::Slow => std::time::Duration::from_secs(1),
        _ => world.think,
    });
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
    if choice.is(S::Hang) {
        std::future::pending::<()>().await;
    }
}

fn read(world: &World, parts: &Parts, asked: &Asked, received: &mut Received) -> Checked<(Ask, Choice)> {
    error::check_key(world, asked.dialect, parts, received)?;
    let Ok(body @ Value::Object(_)) = serde_json::from_slice(&received.body) else {
        return Err(Refusal::new(400, "The request body is not valid JSON."));
    };
    let root = Place::root(asked.dialect, &body);
    received.model = body["model"].as_str().unwrap_or(&asked.model).to_string();
    let ask = match asked.dialect {
        Dialect::Anthropic => anthropic::read(&root, asked.count)?,
        Dialect::Responses => responses::read(&root, asked.count)?,
        Dialect::Gemini => gemini::read(&root, asked)?,
    };
    received.stream = ask.stream;
    let choice = Choice::of(&ask.model, &ask.last_user)?;
    received.scenario = choice.name().to_string();
    match asked.dialect {
        Dialect::Gemini => {
            gemini::check_signatures(&root, &choice, &ask.model)?;
            gemini::check_budget(&root, &ask.model)?;
        }
        Dialect::Responses if choice.is(S::Unthinking) || ask.model.starts_with("sim-unthinking") => {
            check::no_thinking(&root)?;
        }
        _ => {}
    }
    Ok((ask, choice))
}

fn speak(world: &World, asked: &Asked, said: &Said<'_>, watch: Option<Watch>, reset: Reset) -> Response<Outgoing> {
    if let Some(watch) = &watch {
        watch.status(200);
    }
    let (steps, ending, length) = if said.ask.stream {
        let (steps, ending) = stream::script(asked, said);
        (with_door(steps, said.choice, &world.gate), ending, None)
    } else {
        whole::steps(asked.dialect, said)
    };
    debug_assert!(watch.is_some() || ending == Ending::Proper, "the fast scenarios do not go wrong");
    let mut response = Response::new(Either::Right(Script::new(steps, ending, watch, reset)));
    let headers = response.headers_mut();
    let request_id = match asked.dialect {
        Dialect::Anthropic => "request-id",
        _ => "x-request-id",
    };
    if let Ok(value) = HeaderValue::from_str(&said.id("req_")) {
        headers.insert(request_id, value);
    }
    if let Some(length) = length {
        headers.insert("content-length", length.into());
    }
    let streamed = said.ask.stream && asked.sse;
    let content_type = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
    if !said.choice.is(S::NoContentType) {
        headers.insert("content-type", HeaderValue::from_static(content_type));
    }
    response
}

fn count(dialect: Dialect, speech: &Speech) -> Response<Bytes> {
    let tokens = speech.prompt_tokens;
    let body = match dialect {
        Dialect::Anthropic => json!({"input_tokens": tokens}),
        Dialect::Responses => json!({"object": "response.input_tokens", "input_tokens": tokens}),
        Dialect::Gemini => {
            let details = json!([{"modality": "TEXT", "tokenCount": tokens}]);
            json!({"totalTokens": tokens, "promptTokensDetails": details})
        }
    };
    fault::response(200, "application/json", body.to_string().into())
}

fn refuse(dialect: Dialect, refusal: &Refusal) -> Response<Outgoing> {
    error::reply(dialect, refusal, &[]).map(|body| Either::Left(Full::new(body)))
}
