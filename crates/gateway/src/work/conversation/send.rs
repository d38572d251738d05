//! How a conversation is sent along one route, until its answer begins.

use super::long;
use super::reader::ConversationReader;
use super::{Conversation, ConversationCall};
use crate::call::{Begun, Call, EventReader as _, Meter, Priced, Started, WholeAnswer, Work, note};
use crate::door::bodies::Bodies;
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::world::Millis;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::time::Instant;
use tollgate_catalog::{Model, Route};
use tollgate_dialects::{ReplyStream, Setup, StreamEnd, ToolNames, Voice, chat, convert, without_reasoning};
use tollgate_store::AccountId;
use tollgate_upstream::{Blame, Chat, ChatAsk, Fault, Provider, ReplyBody, is_encoded};
use tollgate_wire::{Dialect, StreamFault};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

impl Work for ConversationCall {
    fn priced(&self) -> &dyn Priced {
        &self.conversation
    }

    fn fits(&self, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.conversation.fits(&self.desk.fetcher, serving, model)
    }

    fn meter(&self, model: &Model) -> Meter {
        self.conversation.metering(model)
    }

    async fn attempt(&self, call: &mut Call, provider: &Arc<Provider>, route: &Route) -> Result<Begun, Fault> {
        let chat = provider.kind.chat.ok_or_else(no_conversations)?;
        let from = chat.dialect();
        let conversation = &self.conversation;
        let (body, names) = conversation.body(&self.desk.fetcher, call, provider, route, from).await?;
        let way = Way { conversation, bodies: &self.desk.bodies, provider, chat, route, from, names: &names };
        match way.ask(call, body.clone()).await {
            Err(fault) if fault.seals && !conversation.strict => {
                Box::pin(way.ask_without_seals(call, &body, fault)).await
            }
            other => other,
        }
    }
}

impl Conversation {
    /// The body for this route, and the names of tools that were changed in it; what was left out
    /// is noted in the call.
    async fn body(
        &self,
        fetcher: &Fetcher,
        call: &mut Call,
        provider: &Provider,
        route: &Route,
        from: Dialect,
    ) -> Result<(Bytes, ToolNames), Fault> {
        if self.wants_data(provider, from) {
            // Apart: nearly no call has links, and every one would carry room for fetching.
            let sent = Box::pin(self.with_links(fetcher, call, provider, route, from)).await?;
            call.dropped = sent.dropped;
            return Ok((sent.body, sent.names));
        }
        let asked = self.asked(call).map_err(Fault::refusal)?;
        if from == self.request.dialect && call.model.chat.sampling {
            let (body, dropped) = self.own(&asked, &call.model, route, provider).map_err(Fault::refusal)?;
            call.dropped = dropped;
            return Ok((body, ToolNames::default()));
        }
        let sent = match call.limit {
            None => self.sent(&call.model, route, provider),
            // The one that was made before the hold has no limit.
            Some(_) => self.make(&asked, &call.model, route, provider).map(Arc::new),
        };
        let sent = sent.map_err(Fault::refusal)?;
        call.dropped = sent.dropped.clone();
        Ok((sent.body.clone(), sent.names.clone()))
    }

    fn voice(&self, call: &Call) -> Voice {
        Voice {
            id: call.id.to_string(),
            model: call.model.name.clone(),
            created: seconds(call.began),
            ended: Some(seconds(call.till.world.now_ms())),
            wants_usage: self.request.wants_usage,
            choices: self.request.choices,
            prompt_tokens: self.request.prompt_tokens,
            array: self.array,
            // What the gateway keeps has ids of its own, whatever its provider calls it.
            echo: self.echo.clone().unwrap_or_else(|| self.request.echo()).stored_here(),
        }
    }
}

/// One attempt along one route.
#[derive(Clone, Copy)]
struct Way<'a> {
    conversation: &'a Conversation,
    bodies: &'a Arc<Bodies>,
    provider: &'a Provider,
    /// How it takes conversations.
    chat: &'static dyn Chat,
    route: &'a Route,
    /// The provider's dialect.
    from: Dialect,
    names: &'a ToolNames,
}

impl Way<'_> {
    /// Sends the request and waits until its answer begins.
    async fn ask(self, call: &mut Call, body: Bytes) -> Result<Begun, Fault> {
        let Way { conversation, provider, route, from, .. } = self;
        let call_id = call.id.to_string();
        let stream = conversation.request.stream;
        let passed = if from == conversation.request.dialect { conversation.passed.as_slice() } else { &[] };
        let ask = ChatAsk { body, call_id: &call_id, model: &route.upstream_model, stream, passed };
        let header = provider.settings.quirks.affinity.as_deref();
        let sticks = header.and_then(|header| affinity(header, call.caller.account.id));
        let reply = call.till.client.converse(provider, ask, sticks).await?;
        if !reply.status().is_success() {
            return Err(self.chat.fault(&Box::pin(call.till.client.refused(provider, reply)).await));
        }
        if is_encoded(reply.headers()) {
            tracing::warn!(call = %call.id, provider = provider.name, "the provider compresses its answers, which it is asked not to do");
            return Err(Fault::encoded());
        }
        let body = ReplyBody::new(reply.into_body(), provider.settings.idle);
        let body = match self.chat.reshape(stream, &call_id) {
            None => body,
            Some(shape) => body.reshaped(shape),
        };
        // Apart, because the reader of a stream is large: every plain call would carry and move
        // room for it.
        if stream { Box::pin(self.stream(call, body)).await } else { self.whole(call, body).await }
    }

    /// The provider did not accept reasoning that was sealed elsewhere: asked once more without it,
    /// under the same hold. The first answer was a refusal, so there is nothing of it to pay for.
    async fn ask_without_seals(self, call: &mut Call, body: &[u8], fault: Fault) -> Result<Begun, Fault> {
        let Some(body) = without_reasoning(self.from, body) else { return Err(fault) };
        note(&call.till, call.id, self.provider, &fault);
        call.attempts += 1;
        call.dropped.add("reasoning");
        self.ask(call, body).await
    }

    async fn whole(self, call: &mut Call, body: ReplyBody) -> Result<Begun, Fault> {
        let most = self.provider.settings.max_reply_bytes;
        let (bytes, room) = match self.brings_media(call) {
            true => Box::pin(long::counted(body, most, call, self.bodies)).await?,
            false => (body.whole(most, call.deadline).await?, None),
        };
        call.first_byte_at = Some(call.till.world.now_ms());
        let to = self.conversation.request.dialect;
        let (body, facts, counted) = if (self.from, to) == (Dialect::Chat, Dialect::Chat) {
            let facts = chat::read_reply(&bytes).map_err(|_| Fault::garbage())?;
            let body = facts.with_model(bytes, &call.model.name);
            // Counting costs as much as reading: only where it may matter.
            let sure = call.meter.tokens().believes(facts.usage.as_ref());
            let counted = if sure { 0 } else { chat::count_output(&body) };
            (body, facts, counted)
        } else {
            let converted = convert(self.from, to, bytes, self.names, &self.conversation.voice(call));
            let converted = converted.map_err(|_| Fault::garbage())?;
            let hidden = self.provider.settings.quirks.hidden_costs();
            let unnamed = hidden.map(|hidden| hidden.unnamed(&converted.dropped));
            call.dropped.extend(unnamed.as_ref().unwrap_or(&converted.dropped));
            (converted.body, converted.facts, converted.counted)
        };
        if let Some(error) = &facts.error {
            return Err(self.chat.error_inside(error));
        }
        let body = match self.provider.settings.quirks.hidden_costs() {
            None => body,
            Some(hidden) => hidden.answer(body),
        };
        let body = match self.conversation.reshape {
            None => body,
            Some(reshape) => reshape(call.id, &body).ok_or_else(unusable)?,
        };
        let meter = call.meter.tokens();
        meter.reported = facts.usage;
        meter.report_is_whole = true;
        meter.raw_usage = facts.raw_usage;
        meter.has_output = facts.has_output;
        meter.has_answer = facts.has_answer;
        meter.counted_output = counted;
        meter.note_tools(|name| facts.tools.of(name));
        let body = match room {
            None => body,
            Some(room) => room.keep(body),
        };
        Ok(Begun::Whole(WholeAnswer { content_type: JSON, body, completion: self.conversation.completion.clone() }))
    }

    /// Waits for the first event, so that an early failure keeps its status and another route can
    /// be tried.
    async fn stream(self, call: &mut Call, mut body: ReplyBody) -> Result<Begun, Fault> {
        let mut reader = self.reader(call);
        loop {
            let Some(chunk) = body.chunk().await? else {
                return match reader.finish() {
                    // A provider may leave out the last blank line.
                    StreamEnd::Complete { tail } if reader.saw_done() || !tail.is_empty() => {
                        Ok(self.started(call, tail, None, body, reader))
                    }
                    StreamEnd::Fault(fault) => Err(Fault::of_stream(self.chat, &fault)),
                    // Not one event: this was no stream at all.
                    _ if reader.events() == 0 => Err(Fault::garbage()),
                    _ => Err(Fault::truncated()),
                };
            };
            if call.first_byte_at.is_none() {
                call.first_byte_at = Some(call.till.world.now_ms());
            }
            // Comments alone can keep a reply alive for ever; the hold does not live that long.
            if Instant::now() >= call.deadline {
                return Err(Fault::late());
            }
            if reader.needs_time() {
                reader.now(seconds(call.till.world.now_ms()));
            }
            match reader.feed(chunk) {
                Ok(first) if first.is_empty() && !reader.saw_done() => {}
                Ok(first) => return Ok(self.started(call, first, None, body, reader)),
                Err(broken) if reader.has_output() => {
                    return Ok(self.started(call, broken.before, Some(broken.fault), body, reader));
                }
                Err(broken) => return Err(Fault::of_stream(self.chat, &broken.fault)),
            }
        }
    }

    /// The longest event that can honestly come: one may repeat the whole request and the whole
    /// answer, or bring a picture.
    fn longest_event(&self, call: &Call) -> usize {
        let request = &self.conversation.request;
        let asked = request.body().len().saturating_mul(ESCAPED);
        let output = request.max_output.or(call.model.max_output_tokens).unwrap_or(0);
        let answered = usize::try_from(output).unwrap_or(usize::MAX).saturating_mul(TOKEN);
        let media = if self.brings_media(call) { MEDIA } else { 0 };
        let limit = self.provider.settings.max_event_bytes;
        limit.saturating_add(asked).saturating_add(answered.min(MOST_ANSWERED)).saturating_add(media)
    }

    /// May pictures or voices be in the answer?
    fn brings_media(&self, call: &Call) -> bool {
        !self.conversation.request.makes.is_empty()
            || call.model.output_modalities.iter().any(|kind| kind != "text")
            || self.conversation.hosted().iter().any(|tool| tool.name == "image_generation")
    }

    fn reader(&self, call: &Call) -> ReplyStream {
        let request = &self.conversation.request;
        let max_event_bytes = self.longest_event(call);
        if (self.from, request.dialect) == (Dialect::Chat, Dialect::Chat) {
            // Whatever the route calls it, the provider may answer in the name of a dated one.
            let rename_to = Some(call.model.name.clone());
            let setup = chat::StreamSetup {
                wants_usage: request.wants_usage,
                rename_to,
                choices: request.choices,
                max_event_bytes,
            };
            return ReplyStream::from(setup);
        }
        ReplyStream::new(Setup {
            from: self.from,
            to: request.dialect,
            voice: self.conversation.voice(call),
            names: self.names.clone(),
            rename: true,
            max_event_bytes,
        })
    }

    fn started(
        &self,
        call: &mut Call,
        first: Bytes,
        fault: Option<StreamFault>,
        body: ReplyBody,
        reader: ReplyStream,
    ) -> Begun {
        let content_type = if self.conversation.array { JSON } else { EVENTS };
        let completion = self.conversation.completion.clone();
        let hidden = self.provider.settings.quirks.hidden_costs();
        let first = match &hidden {
            None => first,
            Some(hidden) => hidden.events(first),
        };
        let reader = Box::new(ConversationReader::new(reader, hidden));
        call.note_dropped(reader.dropped());
        Begun::Stream(Box::new(Started { first, fault, body, reader, content_type, completion }))
    }
}

/// Text that is repeated may be escaped anew, at most by so much.
const ESCAPED: usize = 3;
/// Bytes of a token in JSON, leaning high.
const TOKEN: usize = 16;
/// A limit of tokens is only a number: it makes an event longer by so much at most.
const MOST_ANSWERED: usize = 8 << 20;
/// A picture or a sound in base64.
const MEDIA: usize = 32 << 20;

/// Since 1970.
fn seconds(ms: Millis) -> u64 {
    u64::try_from(ms / 1_000).unwrap_or(0)
}

/// The answer is one, but not what was asked for.
fn unusable() -> Fault {
    Fault { message: "The model's answer has nothing of what was asked for.".to_owned(), ..Fault::garbage() }
}

fn no_conversations() -> Fault {
    Fault { blame: Blame::Operator, ..Fault::unreachable() }
}

/// The calls of an account carry the same value, which tells nobody whose they are.
fn affinity(header: &str, account: AccountId) -> Option<(HeaderName, HeaderValue)> {
    let digest = Sha256::new().chain_update(b"affinity").chain_update(account.0).finalize();
    let value: String = digest[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderName::try_from(header).ok().zip(HeaderValue::try_from(value).ok())
}
