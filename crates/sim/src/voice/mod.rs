//! The fake makers of speech and music, each written from its maker's documents: OpenAI at
//! `/v1/audio/speech`, the others below `/video/<maker>` (`minimax`, `elevenlabs`, `gemini`,
//! `dashscope`). Strict about what they take; the audio plays. How an answer goes is said in the
//! text: see [`scenarios`].

mod audio;
mod dashscope;
mod elevenlabs;
mod gemini;
mod minimax;
mod music;
mod openai;
mod play;
mod scenario;

pub use scenario::scenarios;

use bytes::Bytes;
use http::Response;
use http_body_util::{Either, Full};
use std::time::Duration;

use crate::record::Received;
use crate::reply::Outgoing;
use crate::script::{Ending, Script, Step};
use crate::server::{Reset, World};
use play::{Asked, Heard};

/// A voice for whoever speaks beside writing; what is not known is bare samples, as `pcm16` is.
pub(crate) fn sample(format: &str, ms: u64) -> Vec<u8> {
    audio::file(audio::Format::named(format).unwrap_or(audio::Format::Pcm), audio::RATE, ms)
}

/// Whether a path belongs to a maker of speech.
pub(crate) fn is_ours(path: &str) -> bool {
    maker(path).is_some()
}

type Maker = fn(&Heard<'_>) -> Result<Asked, Box<Response<Bytes>>>;

fn maker(path: &str) -> Option<Maker> {
    let below = |base: &str| path.strip_prefix(base);
    if path == "/v1/audio/speech" {
        Some(openai::hear)
    } else if path == "/video/minimax/v1/t2a_v2" {
        Some(minimax::hear)
    } else if path == "/video/minimax/v1/music_generation" {
        Some(music::hear_minimax)
    } else if path == "/video/elevenlabs/v1/music" {
        Some(music::hear_elevenlabs)
    } else if below("/video/elevenlabs/v1/text-to-speech/").is_some() {
        Some(elevenlabs::hear)
    } else if below("/video/gemini/v1beta/models/").is_some_and(|rest| rest.ends_with(":generateContent")) {
        Some(gemini::hear)
    } else if path == "/video/dashscope/api/v1/services/aigc/multimodal-generation/generation" {
        Some(dashscope::hear)
    } else if path == "/video/dashscope/api/v1/services/audio/tts/SpeechSynthesizer" {
        Some(dashscope::hear_cosyvoice)
    } else {
        None
    }
}

pub(crate) async fn answer(
    world: &World,
    reset: Reset,
    parts: &http::request::Parts,
    body: Bytes,
) -> Response<Outgoing> {
    let mut received = Received::new(parts, body);
    let json = received.json();
    let heard = Heard { parts, body: &json, require_key: world.require_key.as_deref() };
    let asked = maker(parts.uri.path()).map(|hear| hear(&heard));
    let asked = match asked {
        Some(Ok(asked)) => asked,
        Some(Err(refused)) => {
            received.status = refused.status().as_u16();
            world.records.add(received).over(true);
            return refused.map(|body| Either::Left(Full::new(body)));
        }
        None => return Response::new(Either::Left(Full::default())),
    };
    received.model.clone_from(&asked.model);
    received.scenario = asked.choice.name.to_string();
    let refused = asked.refused();
    received.accepted = refused.is_none();
    received.status = refused.as_ref().map_or(200, |reply| reply.status().as_u16());
    let mut watch = world.records.add(received);
    world.gate.pass(parts.uri.path()).await;
    let slow = if asked.choice.is("slow") { 1_000 } else { u64::try_from(world.think.as_millis()).unwrap_or(0) };
    let think = asked.choice.number("think_ms", slow);
    if think > 0 {
        tokio::time::sleep(Duration::from_millis(think)).await;
    }
    if asked.choice.is("hang") {
        std::future::pending::<()>().await;
    }
    if let Some(refused) = refused {
        watch.over(true);
        return refused.map(|body| Either::Left(Full::new(body)));
    }
    let (head, steps) = asked.play(world);
    let whole = !steps.iter().any(|step| matches!(step, Step::Cut { .. } | Step::Silence));
    let ending = if whole { Ending::Proper } else { Ending::Broken };
    head.map(|()| Either::Right(Script::new(steps, ending, Some(watch), reset)))
}
