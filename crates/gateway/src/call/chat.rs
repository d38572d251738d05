//! A chat call as work: what it needs, and how it is sent along a route until its answer begins.

use super::dispatch::{Begun, Started, Whole};
use super::meter::Meter;
use super::need::{Need, Priced, Work};
use super::open::Call;
use super::tokens::Tokens;
use crate::refusal::Refusal;
use bytes::Bytes;
use http::HeaderValue;
use std::borrow::Cow;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::{Face, Model, Route};
use tollgate_store::Counters;
use tollgate_upstream::{Body, Fault, Provider};
use tollgate_wire::chat;
use tollgate_wire::error::Code;

/// Output tokens reserved for a call that names no limit (money.md R2), so that one such call does not lock a whole balance.
const DEFAULT_OUTPUT: u64 = 16_384;

/// What a provider takes a parameter for when it is not given.
const DEFAULTS: [(&str, &str); 3] = [("service_tier", "auto"), ("n", "1"), ("stream", "false")];

const DEPENDS_ON: &[(Face, &str)] = &[
    (Face::Input, "prompt tokens as the provider counts them"),
    (Face::Input, "how much of the prompt the provider has cached"),
    (Face::Output, "how many tokens are produced"),
];

impl Priced for chat::Request {
    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint_type(&self) -> &'static str {
        "openai"
    }

    fn need(&self, model: &Model) -> Result<Need, Refusal> {
        check_length(self, model)?;
        let limit = model.max_output_tokens.unwrap_or(u64::MAX);
        let each = self.max_output.unwrap_or(DEFAULT_OUTPUT).min(limit).max(1);
        let output = each.checked_mul(self.choices).ok_or_else(|| {
            Refusal::about(Code::InvalidParameter, "max_tokens", "This request is too large to be priced.")
        })?;
        let ceiling = self.max_output.unwrap_or(u64::MAX).min(limit).max(1).saturating_mul(self.choices);
        Ok(Need {
            context_len: self.prompt_tokens,
            // The estimate leans high, so twice the estimate bounds what a provider can report.
            context_max: self.prompt_tokens.saturating_mul(2).min(model.context_window.unwrap_or(u64::MAX)),
            most: Counters { input: self.prompt_tokens, output, calls: 1, ..Counters::default() },
            exact: false,
            output_ceiling: ceiling,
            sized_by: "max_tokens",
            depends_on: DEPENDS_ON,
        })
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        let default = || DEFAULTS.iter().find(|(name, _)| *name == path).map(|(_, value)| Cow::Borrowed(*value));
        self.attr(path).or_else(default)
    }

    fn metered(&self, stated: Counters) -> Counters {
        let output = [stated.output, stated.reasoning, stated.image_output, stated.audio_output];
        if output == [0; 4] && stated.calls == 0 { Counters::default() } else { Counters { calls: 1, ..stated } }
    }
}

fn check_length(request: &chat::Request, model: &Model) -> Result<(), Refusal> {
    let asked = request.prompt_tokens;
    match model.context_window {
        // The estimate leans high, so only what cannot possibly fit is refused here; the provider decides the rest.
        Some(window) if asked / 4 > window => Err(Refusal::about(
            Code::ContextLengthExceeded,
            "messages",
            format!("The messages have about {asked} tokens; `{}` takes at most {window}.", model.name),
        )),
        _ => Ok(()),
    }
}

impl Work for chat::Request {
    fn meter(&self, model: &Model) -> Meter {
        Meter::Tokens(Tokens::new(model, self.prompt_tokens, self.choices))
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let body = self.upstream_body(&route.upstream_model);
        let ask = provider.chat(body, &call.id.to_string());
        let reply = call.app.client.send(provider, ask).await?;
        if !reply.status().is_success() {
            return Err(call.app.client.fault(provider, reply).await);
        }
        let body = Body::new(reply.into_body(), provider.settings.idle);
        if self.stream {
            begin_stream(call, provider, route, self, body).await
        } else {
            whole(call, provider, route, body).await
        }
    }
}

async fn whole(call: &mut Call, provider: &Provider, route: &Route, body: Body) -> Result<Begun, Fault> {
    let bytes = body.whole(provider.settings.max_reply_bytes, call.deadline).await?;
    call.first_byte_at = Some(call.app.world.now_ms());
    let reply = chat::read_reply(&bytes).map_err(|_| Fault::garbage())?;
    if let Some(error) = &reply.error {
        return Err(provider.kind.error_inside(error));
    }
    let meter = call.meter.tokens();
    meter.reported = reply.usage;
    meter.report_is_whole = true;
    meter.raw_usage.clone_from(&reply.raw_usage);
    meter.has_output = reply.has_output;
    meter.counted_output = reply.counted_output;
    let renamed = route.upstream_model != call.model.name;
    let body = if renamed { reply.with_model(bytes, &call.model.name) } else { bytes };
    Ok(Begun::Whole(Whole { content_type: HeaderValue::from_static("application/json"), body }))
}

/// Waits for the first event, so that an early failure keeps its status and another route can be tried.
async fn begin_stream(
    call: &mut Call,
    provider: &Provider,
    route: &Route,
    request: &chat::Request,
    mut body: Body,
) -> Result<Begun, Fault> {
    let mut reader = chat::Stream::new(chat::StreamSetup {
        wants_usage: request.wants_usage,
        rename_to: (route.upstream_model != call.model.name).then(|| call.model.name.clone()),
        max_event_bytes: provider.settings.max_event_bytes,
    });
    loop {
        let Some(chunk) = body.chunk().await? else {
            return match reader.finish() {
                // A provider may leave out the last blank line.
                chat::End::Complete { tail } if reader.saw_done() || !tail.is_empty() => {
                    Ok(started(tail, None, body, reader))
                }
                chat::End::Fault(fault) => Err(Fault::of_stream(provider.kind, &fault)),
                // Not one event: this was no stream at all.
                _ if reader.events() == 0 => Err(Fault::garbage()),
                _ => Err(Fault::truncated()),
            };
        };
        if call.first_byte_at.is_none() {
            call.first_byte_at = Some(call.app.world.now_ms());
        }
        // Comments alone can keep a reply alive for ever; the hold does not live that long.
        if Instant::now() >= call.deadline {
            return Err(Fault::late());
        }
        match reader.feed(chunk) {
            Ok(first) if first.is_empty() && !reader.saw_done() => {}
            Ok(first) => return Ok(started(first, None, body, reader)),
            Err(broken) if reader.has_output() => return Ok(started(broken.before, Some(broken.fault), body, reader)),
            Err(broken) => return Err(Fault::of_stream(provider.kind, &broken.fault)),
        }
    }
}

fn started(first: Bytes, fault: Option<chat::StreamFault>, body: Body, reader: chat::Stream) -> Begun {
    Begun::Stream(Box::new(Started { first, fault, body, reader }))
}
