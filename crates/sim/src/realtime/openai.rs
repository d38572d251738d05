//! A session of OpenAI's realtime interface: one conversation, at most one response at a time.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, frame::Frame};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::config::{Config, check_said};
use super::fields::{EVENTS, Wrong, check_response};
use super::play::{Act, Order, Pause, Play, Raw, leaky, waited};
use super::scenario::Choice;
use super::seen::{Note, SeenSession};
use super::sound::{Ear, Heard};
use super::talk::{Entry, Talk, Tokens, read_item, words};
use super::{Maker, Opened, Wire, dashscope, decode, query};
use crate::record::Received;

/// The connection is over, and why is the scenario's or the caller's affair.
pub(super) struct Ended;
type Goes = Result<(), Ended>;

struct Session {
    opened: Opened,
    wire: Wire,
    note: Note,
    config: Config,
    ear: Ear,
    talk: Talk,
    /// Audio of the turn that is being sent, in milliseconds.
    buffer_bytes: u64,
    turn: Option<String>,
    play: Option<Play>,
    pause: Option<Pause>,
    /// The response waits for the client.
    stays: bool,
    uninvited: u64,
    events: u64,
    ids: u64,
}

pub(super) async fn serve(opened: Opened, wire: Wire) {
    let note = opened.floor.world.sessions.add(SeenSession {
        id: opened.number,
        path: opened.parts.uri.path().to_string(),
        query: opened.parts.uri.query().unwrap_or_default().to_string(),
        model: opened.model.clone(),
        ..SeenSession::default()
    });
    let transcribes = query(&opened.parts, "intent").as_deref() == Some("transcription");
    let shown = opened.choice.text("reply_model").unwrap_or(&opened.model).to_string();
    let mut config = Config::new(&format!("sess_sim_{}", opened.number), &shown, transcribes);
    if opened.maker == Maker::DashScope {
        config.object["audio"]["input"]["format"]["rate"] = json!(16_000);
    }
    let ear = Ear::new(config.coding("input"));
    let uninvited = if opened.choice.is("uninvited") { opened.choice.number("count").unwrap_or(1) } else { 0 };
    let mut session = Session {
        opened,
        wire,
        note,
        config,
        ear,
        talk: Talk::default(),
        buffer_bytes: 0,
        turn: None,
        play: None,
        pause: None,
        stays: false,
        uninvited,
        events: 0,
        ids: 0,
    };
    let _ended = session.run().await;
}

impl Session {
    async fn run(&mut self) -> Goes {
        if !self.choice().is("silent") {
            let session = self.config.object.clone();
            self.say(json!({"type": "session.created", "session": session})).await?;
        }
        let every = self.choice().number("ping_ms").unwrap_or(1_000);
        let mut tick = tokio::time::interval(Duration::from_millis(every.max(1)));
        let pings = self.choice().is("ping_only") || self.choice().text("ping_ms").is_some();
        loop {
            let plays = self.play.is_some() && !self.stays;
            tokio::select! {
                biased;
                frame = self.wire.next() => self.frame(frame).await?,
                _ = tick.tick(), if pings => {
                    self.note.write(|seen| seen.pings += 1);
                    self.wire.send(Message::Ping(Bytes::from_static(b"sim"))).await.map_err(|_| Ended)?;
                }
                () = waited(&mut self.pause), if plays => {
                    self.pause = None;
                    let act = self.play.as_mut().map_or(Act::Over, Play::step);
                    self.act(act).await?;
                    // Whoever has heard that it is done may ask for the next one.
                    if self.play.as_ref().is_some_and(Play::is_over) {
                        self.act(Act::Over).await?;
                    }
                }
            }
        }
    }

    fn choice(&self) -> &Choice {
        &self.opened.choice
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}_sim_{}_{}", self.opened.number, self.ids)
    }

    async fn say(&mut self, mut event: Value) -> Goes {
        self.events += 1;
        event["event_id"] = json!(format!("event_sim_{}_{}", self.opened.number, self.events));
        if self.opened.maker.words().is_some_and(|words| !dashscope::says(&mut event, words)) {
            return Ok(());
        }
        self.wire.send(Message::text(event.to_string())).await.map_err(|_| Ended)
    }

    async fn wrong(&mut self, wrong: &Wrong, event_id: &Value) -> Goes {
        self.say(json!({"type": "error", "error": wrong.json(event_id)})).await
    }

    async fn frame(&mut self, frame: Option<Result<Message, Error>>) -> Goes {
        match frame {
            Some(Ok(Message::Text(text))) => {
                self.note.frame(text.as_bytes());
                if self.choice().is("silent") || self.choice().is("ping_only") {
                    return Ok(());
                }
                let mut event: Value = match serde_json::from_str(&text) {
                    Ok(event) => event,
                    Err(_) => return self.wrong(&Wrong::new("invalid_json", "Invalid JSON."), &Value::Null).await,
                };
                if let Some(words) = self.opened.maker.words()
                    && let Err(wrong) = dashscope::hears(&mut event, words)
                {
                    return self.wrong(&wrong, &event["event_id"]).await;
                }
                match self.event(&event).await {
                    Ok(goes) => goes,
                    Err(wrong) => self.wrong(&wrong, &event["event_id"]).await,
                }
            }
            Some(Ok(Message::Binary(bytes))) => {
                self.note.frame(&bytes);
                self.wrong(&Wrong::new("invalid_message", "Binary messages are not supported."), &Value::Null).await
            }
            Some(Ok(Message::Pong(_))) => {
                self.note.write(|seen| seen.pongs += 1);
                Ok(())
            }
            Some(Ok(Message::Close(frame))) => {
                let (code, reason) = frame.map_or((1005, String::new()), |f| (f.code.into(), f.reason.to_string()));
                self.note.write(|seen| (seen.closed, seen.reason) = (Some(code), reason));
                // What remains is the answer to the close, which the library has written.
                let _gone = self.wire.flush().await;
                Err(Ended)
            }
            Some(Ok(_)) => Ok(()),
            None | Some(Err(_)) => {
                self.note.write(|seen| seen.closed = seen.closed.or(Some(1006)));
                Err(Ended)
            }
        }
    }

    async fn event(&mut self, event: &Value) -> Result<Goes, Wrong> {
        let kind = event["type"].as_str().ok_or_else(|| Wrong::missing("type"))?;
        let Some((_, fields)) = EVENTS.iter().find(|row| row.0 == kind) else {
            return Err(Wrong::value("type", &event["type"]));
        };
        if let Some(name) = event.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| {
            *name != "type" && *name != "event_id" && !fields.split_whitespace().any(|field| field == *name)
        }) {
            return Err(Wrong::field("unknown_parameter", name, &format!("Unknown parameter: '{name}'.")));
        }
        match kind {
            "session.update" => self.update(event).await,
            "input_audio_buffer.append" => self.append(event).await,
            "input_audio_buffer.commit" => self.commit_by_hand().await,
            "input_audio_buffer.clear" => {
                self.buffer_bytes = 0;
                self.ear.forget();
                Ok(self.say(json!({"type": "input_audio_buffer.cleared"})).await)
            }
            "response.create" => self.create(event).await,
            "response.cancel" => self.cancel_by_hand(event).await,
            _ => self.item_event(kind, event).await,
        }
    }

    async fn update(&mut self, event: &Value) -> Result<Goes, Wrong> {
        if !event["session"].is_object() {
            return Err(Wrong::missing("session"));
        }
        let instructions = event["session"]["instructions"].as_str().unwrap_or_default();
        let choice = self.choice().marked(instructions).map_err(|why| Wrong::new("invalid_value", &why))?;
        self.config.update(&event["session"])?;
        if choice.is("uninvited") && !self.choice().is("uninvited") {
            self.uninvited = choice.number("count").unwrap_or(1);
        }
        self.opened.choice = choice;
        self.ear.coding = self.config.coding("input");
        self.ear.silence_ms = self.config.turn_detection()["silence_duration_ms"].as_u64().unwrap_or(200).max(10);
        let session = self.config.object.clone();
        if let Err(ended) = self.say(json!({"type": "session.updated", "session": session})).await {
            return Ok(Err(ended));
        }
        Ok(self.next_uninvited().await)
    }

    /// A response that nobody asked for, as server VAD makes them.
    async fn next_uninvited(&mut self) -> Goes {
        if self.uninvited == 0 || self.play.is_some() {
            return Ok(());
        }
        self.uninvited -= 1;
        let choice = Choice::of_model("plain").unwrap_or_else(|| self.choice().clone());
        self.begin(choice, &Value::Null, Bytes::new()).await
    }

    async fn append(&mut self, event: &Value) -> Result<Goes, Wrong> {
        let audio = event["audio"].as_str().ok_or_else(|| Wrong::missing("audio"))?;
        let bytes = decode(audio).ok_or_else(|| {
            Wrong::field("invalid_value", "audio", "Invalid 'audio'. Expected base64-encoded audio bytes.")
        })?;
        let length = u64::try_from(bytes.len()).unwrap_or(0);
        self.buffer_bytes += length;
        let ms = length / self.ear.coding.bytes_per_ms();
        self.note.write(|seen| seen.audio_ms += ms);
        if self.config.turn_detection().is_null() {
            return Ok(Ok(()));
        }
        for heard in self.ear.hear(&bytes) {
            if let Err(ended) = self.heard(heard).await {
                return Ok(Err(ended));
            }
        }
        Ok(Ok(()))
    }

    async fn heard(&mut self, heard: Heard) -> Goes {
        match heard {
            Heard::Started { at_ms } => {
                let item_id = self.new_id("item");
                self.turn = Some(item_id.clone());
                self.say(json!({
                    "type": "input_audio_buffer.speech_started", "audio_start_ms": at_ms, "item_id": item_id,
                }))
                .await?;
                if self.config.turn_detection()["interrupt_response"] != false {
                    self.cancel("turn_detected").await?;
                }
                Ok(())
            }
            Heard::Stopped { at_ms } => {
                let item_id = self.turn.clone().unwrap_or_default();
                self.say(json!({
                    "type": "input_audio_buffer.speech_stopped", "audio_end_ms": at_ms, "item_id": item_id,
                }))
                .await?;
                self.commit().await?;
                let answers = self.config.turn_detection()["create_response"] != false;
                if answers && !self.config.transcribes_only() && self.play.is_none() {
                    let choice = self.choice().clone();
                    return self.begin(choice, &Value::Null, Bytes::new()).await;
                }
                Ok(())
            }
        }
    }

    async fn commit_by_hand(&mut self) -> Result<Goes, Wrong> {
        let ms = self.buffer_bytes / self.ear.coding.bytes_per_ms();
        if ms < 100 {
            let message = format!(
                "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has {ms}.00ms of audio."
            );
            return Err(Wrong::new("input_audio_buffer_commit_empty", &message));
        }
        self.ear.forget();
        Ok(self.commit().await)
    }

    async fn commit(&mut self) -> Goes {
        let ms = std::mem::take(&mut self.buffer_bytes) / self.ear.coding.bytes_per_ms();
        let item_id = match self.turn.take() {
            Some(id) => id,
            None => self.new_id("item"),
        };
        let previous = self.talk.last_id();
        self.say(json!({"type": "input_audio_buffer.committed", "previous_item_id": previous, "item_id": item_id}))
            .await?;
        let content = json!([{"type": "input_audio", "transcript": null}]);
        let item = json!({
            "id": item_id, "object": "realtime.item", "type": "message", "status": "completed", "role": "user",
            "content": content,
        });
        self.add(item, Tokens { audio: ms.div_ceil(100), ..Tokens::default() }).await?;
        if self.config.transcription().is_object() {
            self.transcribe(&item_id, ms).await?;
        }
        Ok(())
    }

    async fn add(&mut self, item: Value, tokens: Tokens) -> Goes {
        let previous = self.talk.last_id();
        self.talk.items.push(Entry { item: item.clone(), tokens });
        for kind in ["conversation.item.added", "conversation.item.done"] {
            self.say(json!({"type": kind, "previous_item_id": previous, "item": item})).await?;
        }
        Ok(())
    }

    /// What was heard, at the price of the model that hears it: by seconds for whisper, else by
    /// tokens.
    async fn transcribe(&mut self, item_id: &str, ms: u64) -> Goes {
        let model = self.config.transcription()["model"].as_str().unwrap_or_default().to_string();
        let text = self.choice().text("heard").unwrap_or("hello toll").replace('_', " ");
        let by_time = match self.choice().text("usage") {
            Some(kind) => kind == "duration",
            None => model.starts_with("whisper"),
        };
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a test")]
        let usage = if by_time {
            json!({"type": "duration", "seconds": ms as f64 / 1000.0})
        } else {
            let (heard, said) = (ms.div_ceil(100), words(&text));
            json!({
                "type": "tokens", "total_tokens": heard + said, "input_tokens": heard, "output_tokens": said,
                "input_token_details": {"text_tokens": 0, "audio_tokens": heard},
            })
        };
        let mut received = Received::new(&self.opened.parts, Bytes::new());
        (received.method, received.model, received.accepted) = ("WS".to_string(), model, true);
        received.scenario = "transcription".to_string();
        self.opened.floor.world.records.add(received).over(true);
        self.note.write(|seen| seen.transcribed.push(usage.clone()));
        let base = "conversation.item.input_audio_transcription";
        let place = json!({"item_id": item_id, "content_index": 0});
        let mut delta = place.clone();
        super::config::merge(&mut delta, &json!({"type": format!("{base}.delta"), "delta": text, "logprobs": null}));
        self.say(delta).await?;
        let mut done = place;
        let usage = if self.choice().text("usage") == Some("none") { Value::Null } else { usage };
        super::config::merge(
            &mut done,
            &json!({"type": format!("{base}.completed"), "transcript": text, "usage": usage, "logprobs": null}),
        );
        self.say(done).await
    }

    async fn item_event(&mut self, kind: &str, event: &Value) -> Result<Goes, Wrong> {
        if kind == "conversation.item.create" {
            let item = &event["item"];
            if !item.is_object() {
                return Err(Wrong::missing("item"));
            }
            let per_ms = self.ear.coding.bytes_per_ms();
            let ms = |audio: &str| decode(audio).map(|bytes| u64::try_from(bytes.len()).unwrap_or(0) / per_ms);
            let tokens = read_item(item, ms)?;
            let mut item = item.clone();
            if item["id"].is_null() {
                item["id"] = json!(self.new_id("item"));
            }
            item["object"] = json!("realtime.item");
            item["status"] = json!("completed");
            return Ok(self.add(item, tokens).await);
        }
        let id = event["item_id"].as_str().ok_or_else(|| Wrong::missing("item_id"))?;
        let at = self.talk.find(id)?;
        Ok(match kind {
            "conversation.item.retrieve" => {
                let item = self.talk.items[at].item.clone();
                self.say(json!({"type": "conversation.item.retrieved", "item": item})).await
            }
            "conversation.item.delete" => {
                self.talk.items.remove(at);
                self.say(json!({"type": "conversation.item.deleted", "item_id": id})).await
            }
            _ => {
                let end = event["audio_end_ms"].as_u64().ok_or_else(|| Wrong::missing("audio_end_ms"))?;
                if self.talk.items[at].item["role"] != "assistant" {
                    return Err(Wrong::field("invalid_value", "item_id", "Only assistant messages can be truncated."));
                }
                let tokens = &mut self.talk.items[at].tokens;
                tokens.audio = tokens.audio.min(end.div_ceil(50));
                self.say(json!({
                    "type": "conversation.item.truncated", "item_id": id, "content_index": event["content_index"],
                    "audio_end_ms": end,
                }))
                .await
            }
        })
    }

    async fn create(&mut self, event: &Value) -> Result<Goes, Wrong> {
        if self.config.transcribes_only() {
            return Err(Wrong::new("invalid_event", "A transcription session makes no responses."));
        }
        if let Some(play) = &self.play {
            let message = format!(
                "Conversation already has an active response in progress: {}. Wait until the response is finished before creating a new one.",
                play.id
            );
            return Err(Wrong::new("conversation_already_has_active_response", &message));
        }
        let response = &event["response"];
        check_response(response)?;
        check_said("response", response)?;
        let own = response["instructions"].as_str().unwrap_or_default();
        let said = match response["input"].as_array() {
            Some(input) => input.iter().map(super::talk::text_of).collect::<Vec<_>>().join(" "),
            None => self.talk.last_user(),
        };
        let choice = self.choice().marked(own).and_then(|choice| choice.marked(&said));
        let mut choice = choice.map_err(|why| Wrong::new("invalid_value", &why))?;
        let answered = self.talk.items.last().is_some_and(|entry| entry.item["type"] == "function_call_output");
        if choice.is("tool") && answered {
            // It has what it asked for.
            choice = Choice::of_model("plain").unwrap_or(choice);
        }
        Ok(self.begin(choice, response, Bytes::from(event.to_string())).await)
    }

    /// Takes a response on, unless the scenario has something else to say.
    async fn begin(&mut self, choice: Choice, response: &Value, body: Bytes) -> Goes {
        let world = Arc::clone(&self.opened.floor.world);
        let mut received = Received::new(&self.opened.parts, body);
        (received.method, received.stream) = ("WS".to_string(), true);
        received.model.clone_from(&self.opened.model);
        received.scenario = choice.name.to_string();
        received.accepted = !["error_event", "close_first", "expired"].contains(&choice.name);
        let refused = !received.accepted;
        let instructions = response["instructions"].as_str().or(self.config.object["instructions"].as_str());
        let tools = if response["tools"].is_null() { &self.config.object["tools"] } else { &response["tools"] };
        let input = self.talk.bill(instructions.unwrap_or_default(), tools, &choice);
        received.prompt_tokens = input.0.all();
        let mut watch = world.records.add(received);
        if refused {
            watch.over(true);
            return self.refuse(&choice).await;
        }
        watch.status(200);
        let out_of_band = response["conversation"] == "none";
        let conversation = if out_of_band { Value::Null } else { json!(format!("conv_sim_{}", self.opened.number)) };
        let order = Order {
            id: self.new_id("resp"),
            choice,
            watch,
            session: &self.config.object,
            response,
            coding: self.config.coding("output"),
            conversation,
            previous: self.talk.last_id(),
            input,
        };
        let play = Play::new(order);
        self.config.spoken |= play.is_audio();
        self.play = Some(play);
        self.stays = false;
        Ok(())
    }

    async fn refuse(&mut self, choice: &Choice) -> Goes {
        match choice.name {
            "close_first" => self.close(choice.close_code(), "sim-edge-7.internal is going away").await,
            "expired" => {
                let error = json!({
                    "type": "invalid_request_error", "code": "session_expired", "param": null, "event_id": null,
                    "message": "Your session hit the maximum duration of 60 minutes.",
                });
                self.say(json!({"type": "error", "error": error})).await?;
                self.close(1001, "session expired").await
            }
            _ => self.say(json!({"type": "error", "error": leaky(choice)})).await,
        }
    }

    async fn cancel_by_hand(&mut self, event: &Value) -> Result<Goes, Wrong> {
        let named = event["response_id"].as_str();
        match &self.play {
            Some(play) if named.is_none_or(|id| id == play.id) => Ok(self.cancel("client_cancelled").await),
            _ => {
                let message = "Cancellation failed: no active response found";
                Err(Wrong::new("response_cancel_not_active", message))
            }
        }
    }

    async fn cancel(&mut self, reason: &str) -> Goes {
        let Some(play) = &mut self.play else { return Ok(()) };
        let acts = play.cancel(reason);
        if acts.is_empty() {
            return Ok(());
        }
        (self.pause, self.stays) = (None, false);
        for act in acts {
            self.act(act).await?;
        }
        self.act(Act::Over).await
    }

    async fn act(&mut self, act: Act) -> Goes {
        match act {
            Act::Say(events) => self.say_all(events).await,
            Act::Keep(item, tokens, events) => {
                let out_of_band = self.play.as_ref().is_some_and(Play::is_out_of_band);
                if !out_of_band {
                    self.talk.items.push(Entry { item, tokens });
                }
                self.say_all(events).await
            }
            Act::Wait(time) => {
                if !time.is_zero() {
                    self.pause = Some(Box::pin(tokio::time::sleep(time)));
                }
                Ok(())
            }
            Act::Gate => {
                let world = Arc::clone(&self.opened.floor.world);
                let path = self.opened.parts.uri.path().to_string();
                self.pause = Some(Box::pin(async move { world.gate.pass(&path).await }));
                Ok(())
            }
            Act::Stay => {
                self.stays = true;
                Ok(())
            }
            Act::Raw(raw) => self.raw(raw).await,
            Act::Over => {
                if let Some(mut play) = self.play.take() {
                    play.watch.over(!play.usage.is_null());
                    let usage = std::mem::take(&mut play.usage);
                    self.note.write(|seen| seen.billed.push(usage));
                }
                self.next_uninvited().await
            }
        }
    }

    async fn say_all(&mut self, events: Vec<Value>) -> Goes {
        for event in events {
            if let Some(play) = &self.play {
                play.watch.sent_one();
            }
            self.say(event).await?;
        }
        Ok(())
    }

    async fn raw(&mut self, raw: Raw) -> Goes {
        let message = match raw {
            Raw::Text(text) => Message::text(text),
            Raw::Binary(bytes) => Message::binary(bytes),
            Raw::BadText(bytes) => Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), true)),
            Raw::Close(code, reason) => return self.close(code, reason).await,
            Raw::Cut { reset } => {
                if let Some(play) = &mut self.play {
                    play.watch.over(false);
                }
                if reset {
                    self.opened.floor.reset.arm();
                }
                return Err(Ended);
            }
        };
        self.wire.send(message).await.map_err(|_| Ended)
    }

    /// Says why, and waits for the answer.
    async fn close(&mut self, code: u16, reason: &'static str) -> Goes {
        if let Some(play) = &mut self.play {
            play.watch.over(false);
        }
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        self.wire.close(Some(frame)).await.map_err(|_| Ended)?;
        while let Some(Ok(message)) = self.wire.next().await {
            if let Message::Close(Some(frame)) = message {
                self.note.write(|seen| seen.closed = Some(frame.code.into()));
            }
        }
        Err(Ended)
    }
}
