//! A session of Gemini Live: one `setup`, then turns. JSON in binary frames, both spellings taken,
//! unknown fields refused by closing with 1007 and a reason. It answers the end of a turn by itself
//! and stops when the client says something.

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::scenario::Choice;
use super::seen::{Note, SeenSession};
use super::sound::{Coding, Ear, Heard};
use super::talk::words;
use super::{Opened, Wire, decode};
use crate::record::{Received, Watch};

struct Ended;
type Goes = Result<(), Ended>;

/// Each piece of audio lasts so long.
const PIECE_MS: u64 = 100;
const WORDS: [&str; 8] = ["the", "toll", "is", "paid", "and", "the", "gate", "opens"];

/// What is still to be said.
enum Step {
    Gate,
    Say(Value, u64),
    Stay,
    Cut,
    Close(u16),
    Over,
}

/// The turn that is being answered.
struct Answer {
    steps: VecDeque<Step>,
    watch: Watch,
    choice: Choice,
    said: u64,
    /// A function was called and has not answered.
    calls: bool,
    gate: bool,
}

struct Live {
    opened: Opened,
    wire: Wire,
    note: Note,
    setup: Value,
    ear: Ear,
    manual: bool,
    /// Counts of everything that was said so far: text, audio.
    context: (u64, u64),
    /// What earlier answers of this turn were billed.
    billed: (u64, u64, u64),
    answer: Option<Answer>,
    stays: bool,
    ids: u64,
}

pub(super) async fn serve(opened: Opened, wire: Wire) {
    let note = opened.floor.world.sessions.add(SeenSession {
        id: opened.number,
        path: opened.parts.uri.path().to_string(),
        query: opened.parts.uri.query().unwrap_or_default().to_string(),
        ..SeenSession::default()
    });
    let mut live = Live {
        opened,
        wire,
        note,
        setup: Value::Null,
        ear: Ear::new(Coding::Pcm(16_000)),
        manual: false,
        context: (0, 0),
        billed: (0, 0, 0),
        answer: None,
        stays: false,
        ids: 0,
    };
    let _ended = live.run().await;
}

/// A member by either spelling.
fn get<'a>(object: &'a Value, name: &str) -> &'a Value {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    if object[name].is_null() { &object[snake.as_str()] } else { &object[name] }
}

fn strict(object: &Value, path: &str, known: &str) -> Result<(), String> {
    for (name, _) in object.as_object().into_iter().flatten() {
        let mut camel = String::new();
        for (index, word) in name.split('_').enumerate() {
            let mut letters = word.chars();
            match letters.next() {
                Some(first) if index > 0 => camel.push(first.to_ascii_uppercase()),
                Some(first) => camel.push(first),
                None => {}
            }
            camel.extend(letters);
        }
        if !known.split_whitespace().any(|known| known == camel) {
            return Err(format!(
                "Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field."
            ));
        }
    }
    Ok(())
}

impl Live {
    async fn run(&mut self) -> Goes {
        loop {
            let plays = self.answer.is_some() && !self.stays;
            let gate = self.answer.as_ref().is_some_and(|answer| answer.gate);
            let world = Arc::clone(&self.opened.floor.world);
            let path = self.opened.parts.uri.path().to_string();
            let passing = async move {
                if gate {
                    world.gate.pass(&path).await;
                }
            };
            tokio::select! {
                biased;
                frame = self.wire.next() => self.frame(frame).await?,
                () = passing, if plays => {
                    if let Some(answer) = &mut self.answer {
                        answer.gate = false;
                    }
                    self.step().await?;
                }
            }
        }
    }

    async fn say(&mut self, message: &Value) -> Goes {
        self.wire.send(Message::binary(message.to_string().into_bytes())).await.map_err(|_| Ended)
    }

    async fn close(&mut self, code: u16, reason: &str) -> Goes {
        let reason: String = reason.chars().take(120).collect();
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        self.wire.close(Some(frame)).await.map_err(|_| Ended)?;
        while let Some(Ok(message)) = self.wire.next().await {
            if let Message::Close(Some(frame)) = message {
                self.note.write(|seen| seen.closed = Some(frame.code.into()));
            }
        }
        Err(Ended)
    }

    async fn frame(&mut self, frame: Option<Result<Message, Error>>) -> Goes {
        let bytes = match frame {
            Some(Ok(Message::Text(text))) => Bytes::from(text),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Pong(_))) => {
                self.note.write(|seen| seen.pongs += 1);
                return Ok(());
            }
            Some(Ok(Message::Close(frame))) => {
                let code = frame.map_or(1005, |frame| frame.code.into());
                self.note.write(|seen| seen.closed = Some(code));
                let _gone = self.wire.flush().await;
                return Err(Ended);
            }
            Some(Ok(_)) => return Ok(()),
            None | Some(Err(_)) => {
                self.note.write(|seen| seen.closed = seen.closed.or(Some(1006)));
                return Err(Ended);
            }
        };
        self.note.frame(&bytes);
        let read = serde_json::from_slice::<Value>(&bytes).map_err(|_| "Invalid JSON".to_string());
        let done = match read {
            Ok(message) => self.message(&message).await,
            Err(why) => Err(why),
        };
        match done {
            Ok(goes) => goes,
            Err(why) => self.close(1007, &why).await,
        }
    }

    async fn message(&mut self, message: &Value) -> Result<Goes, String> {
        strict(message, "", "setup clientContent realtimeInput toolResponse")?;
        let setup = get(message, "setup");
        if setup.is_object() {
            return self.set_up(setup).await;
        }
        if self.setup.is_null() {
            return Err("setup must be the first message and only the first".to_string());
        }
        let content = get(message, "clientContent");
        if content.is_object() {
            strict(content, "client_content", "turns turnComplete")?;
            return self.content(content).await;
        }
        let input = get(message, "realtimeInput");
        if input.is_object() {
            strict(input, "realtime_input", "audio video text activityStart activityEnd audioStreamEnd mediaChunks")?;
            return self.input(input).await;
        }
        let answer = get(message, "toolResponse");
        strict(answer, "tool_response", "functionResponses")?;
        for one in get(answer, "functionResponses").as_array().into_iter().flatten() {
            strict(one, "function_responses", "id name response scheduling willContinue")?;
            self.context.0 += words(&one["response"].to_string());
        }
        if !self.answer.as_ref().is_some_and(|answer| answer.calls) {
            return Err("no function was called".to_string());
        }
        let choice = self.opened.choice.clone();
        self.answer = None;
        let plain = if choice.is("tool") { Choice::of_model("plain").unwrap_or(choice) } else { choice };
        self.begin(plain);
        Ok(Ok(()))
    }

    async fn set_up(&mut self, setup: &Value) -> Result<Goes, String> {
        if !self.setup.is_null() {
            return Err("setup must be the first message and only the first".to_string());
        }
        strict(
            setup,
            "setup",
            "model generationConfig systemInstruction tools realtimeInputConfig inputAudioTranscription \
             outputAudioTranscription sessionResumption contextWindowCompression proactivity",
        )?;
        let generation = get(setup, "generationConfig");
        strict(
            generation,
            "setup.generation_config",
            "responseModalities speechConfig maxOutputTokens temperature topP topK mediaResolution thinkingConfig",
        )?;
        let realtime = get(setup, "realtimeInputConfig");
        strict(realtime, "setup.realtime_input_config", "automaticActivityDetection activityHandling turnCoverage")?;
        let detection = get(realtime, "automaticActivityDetection");
        strict(
            detection,
            "automatic_activity_detection",
            "disabled startOfSpeechSensitivity endOfSpeechSensitivity prefixPaddingMs silenceDurationMs",
        )?;
        for tool in get(setup, "tools").as_array().into_iter().flatten() {
            for one in get(tool, "functionDeclarations").as_array().into_iter().flatten() {
                strict(one, "function_declarations", "name description parameters parametersJsonSchema behavior")?;
            }
        }
        let model = setup["model"].as_str().and_then(|model| model.strip_prefix("models/"));
        let model = model.ok_or_else(|| "model must be models/NAME".to_string())?.to_string();
        self.manual = *get(detection, "disabled") == true;
        self.ear.silence_ms = get(detection, "silenceDurationMs").as_u64().unwrap_or(200).max(10);
        let system = get(setup, "systemInstruction")["parts"][0]["text"].as_str().unwrap_or_default();
        let choice = Choice::of_model(&model).ok_or_else(|| format!("models/{model} is not found"))?;
        let choice = choice.marked(system)?;
        self.context.0 = words(system);
        self.note.write(|seen| seen.model.clone_from(&model));
        (self.opened.choice, self.opened.model, self.setup) = (choice, model, setup.clone());
        if self.opened.choice.is("close_first") {
            return Ok(self.close(1008, "models/sim is not available to sim-project-12345").await);
        }
        if self.opened.choice.is("silent") {
            return Ok(Ok(()));
        }
        if let Err(ended) = self.say(&json!({"setupComplete": {}})).await {
            return Ok(Err(ended));
        }
        if !get(setup, "sessionResumption").is_null() {
            let handle = json!({"sessionResumptionUpdate": {"newHandle": "sim-handle-secret", "resumable": true}});
            return Ok(self.say(&handle).await);
        }
        if let Some(ms) = self.opened.choice.number("going_ms") {
            let away = json!({"goAway": {"timeLeft": format!("{}s", ms / 1000)}});
            return Ok(self.say(&away).await);
        }
        Ok(Ok(()))
    }

    async fn content(&mut self, content: &Value) -> Result<Goes, String> {
        let mut text = String::new();
        for turn in get(content, "turns").as_array().into_iter().flatten() {
            for part in turn["parts"].as_array().into_iter().flatten() {
                strict(part, "parts", "text inlineData functionCall functionResponse thought thoughtSignature")?;
                text.push_str(part["text"].as_str().unwrap_or_default());
            }
        }
        let choice = self.opened.choice.marked(&text)?;
        self.context.0 += words(&text);
        if let Err(ended) = self.interrupt().await {
            return Ok(Err(ended));
        }
        if *get(content, "turnComplete") == true {
            self.begin(choice);
        }
        Ok(Ok(()))
    }

    async fn input(&mut self, input: &Value) -> Result<Goes, String> {
        let chunks = get(input, "mediaChunks").as_array().into_iter().flatten();
        let audio = [get(input, "audio")];
        for data in audio.into_iter().filter(|data| data.is_object()).chain(chunks) {
            let kind = get(data, "mimeType").as_str().unwrap_or_default().to_string();
            if !kind.starts_with("audio/pcm") {
                return Err(format!("mime type {kind} is not supported"));
            }
            let rate = kind.split("rate=").nth(1).and_then(|rate| rate.parse().ok()).unwrap_or(16_000);
            self.ear.coding = Coding::Pcm(rate);
            let bytes = data["data"].as_str().and_then(decode).ok_or("data is not base64")?;
            let ms = u64::try_from(bytes.len()).unwrap_or(0) / self.ear.coding.bytes_per_ms();
            self.context.1 += ms.div_ceil(40);
            self.note.write(|seen| seen.audio_ms += ms);
            if self.manual {
                continue;
            }
            for heard in self.ear.hear(&bytes) {
                let goes = match heard {
                    Heard::Started { .. } => self.interrupt().await,
                    Heard::Stopped { .. } => self.heard().await,
                };
                if goes.is_err() {
                    return Ok(goes);
                }
            }
        }
        if let Some(text) = input["text"].as_str() {
            let choice = self.opened.choice.marked(text)?;
            self.context.0 += words(text);
            if self.interrupt().await.is_err() {
                return Ok(Err(Ended));
            }
            self.begin(choice);
        }
        if self.manual && !get(input, "activityStart").is_null() {
            return Ok(self.interrupt().await);
        }
        if self.manual && !get(input, "activityEnd").is_null() || *get(input, "audioStreamEnd") == true {
            self.ear.forget();
            return Ok(self.heard().await);
        }
        Ok(Ok(()))
    }

    /// The client has stopped speaking.
    async fn heard(&mut self) -> Goes {
        if !get(&self.setup, "inputAudioTranscription").is_null() {
            self.say(&json!({"serverContent": {"inputTranscription": {"text": "hello toll"}}})).await?;
        }
        if self.answer.is_none() {
            let choice = self.opened.choice.clone();
            self.begin(choice);
        }
        Ok(())
    }

    async fn interrupt(&mut self) -> Goes {
        let silent = get(get(&self.setup, "realtimeInputConfig"), "activityHandling") == "NO_INTERRUPTION";
        if silent || self.answer.as_ref().is_none_or(|answer| answer.choice.is("ignore_cancel")) {
            return Ok(());
        }
        let Some(mut answer) = self.answer.take() else { return Ok(()) };
        self.stays = false;
        self.say(&json!({"serverContent": {"interrupted": true}})).await?;
        let mut end = json!({"serverContent": {"turnComplete": true}});
        let usage = self.usage(answer.said, &answer.choice);
        self.note.write(|seen| seen.billed.push(usage.clone()));
        if !answer.choice.is("no_usage") {
            end["usageMetadata"] = usage;
        }
        answer.watch.over(true);
        self.say(&end).await
    }

    fn usage(&mut self, said: u64, choice: &Choice) -> Value {
        let (text, audio) = self.context;
        let text = choice.number("text_in").unwrap_or(text);
        let audio = choice.number("audio_in").unwrap_or(audio);
        let (mut asked, mut heard, mut spoken) = (text, audio, said);
        if choice.text("cumulative").is_some() || self.opened.choice.text("cumulative").is_some() {
            (asked, heard, spoken) = (asked + self.billed.0, heard + self.billed.1, spoken + self.billed.2);
        }
        self.billed = (asked, heard, spoken);
        let modality = if self.speaks() { "AUDIO" } else { "TEXT" };
        json!({
            "promptTokenCount": asked + heard, "responseTokenCount": spoken, "totalTokenCount": asked + heard + spoken,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": asked}, {"modality": "AUDIO", "tokenCount": heard},
            ],
            "responseTokensDetails": [{"modality": modality, "tokenCount": spoken}],
        })
    }

    fn speaks(&self) -> bool {
        get(get(&self.setup, "generationConfig"), "responseModalities")[0] != "TEXT"
    }

    fn begin(&mut self, choice: Choice) {
        let mut received = Received::new(&self.opened.parts, Bytes::new());
        (received.method, received.accepted, received.status) = ("WS".to_string(), true, 200);
        received.model.clone_from(&self.opened.model);
        received.scenario = choice.name.to_string();
        received.prompt_tokens = self.context.0 + self.context.1;
        let watch = self.opened.floor.world.records.add(received);
        let mut steps = VecDeque::from([Step::Gate]);
        let declared = get(&get(&self.setup, "tools")[0], "functionDeclarations")[0]["name"].as_str();
        let after = choice.number("after").unwrap_or(3);
        if choice.is("tool") {
            self.ids += 1;
            let args = choice.text("args").and_then(|args| serde_json::from_str(args).ok());
            let call = json!({
                "id": format!("call-sim-{}-{}", self.opened.number, self.ids),
                "name": choice.text("tool").or(declared).unwrap_or("lookup"),
                "args": args.unwrap_or_else(|| json!({"city": "Oslo"})),
            });
            steps.push_back(Step::Say(json!({"toolCall": {"functionCalls": [call]}}), 4));
            steps.push_back(Step::Stay);
        } else {
            self.pieces(&choice, after, &mut steps);
        }
        let calls = choice.is("tool");
        self.answer = Some(Answer { steps, watch, choice, said: 0, calls, gate: true });
        self.stays = false;
    }

    fn pieces(&self, choice: &Choice, after: u64, steps: &mut VecDeque<Step>) {
        let each = if self.speaks() { 2 } else { 1 };
        let wanted = choice.number("ms").map(|ms| ms / PIECE_MS).or(choice.number("tokens")).unwrap_or(8);
        let most = get(get(&self.setup, "generationConfig"), "maxOutputTokens").as_u64().unwrap_or(u64::MAX);
        let total = wanted.min(most / each);
        let transcribed = !get(&self.setup, "outputAudioTranscription").is_null();
        for at in 0..total {
            if at == after {
                match choice.name {
                    "hold" | "hang" => steps.push_back(Step::Stay),
                    "cut" => steps.push_back(Step::Cut),
                    "close" => {
                        let code = choice.number("code").and_then(|code| u16::try_from(code).ok());
                        steps.push_back(Step::Close(code.unwrap_or(1011)));
                    }
                    _ => {}
                }
            }
            let word = WORDS[usize::try_from(at).unwrap_or(0) % WORDS.len()];
            let word = if at == 0 { word.to_string() } else { format!(" {word}") };
            if self.speaks() {
                let tone = Coding::Pcm(24_000).tone(at * PIECE_MS, PIECE_MS);
                let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, tone);
                let part = json!({"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": data}});
                steps.push_back(Step::Say(json!({"serverContent": {"modelTurn": {"parts": [part]}}}), 2));
                if transcribed {
                    steps.push_back(Step::Say(json!({"serverContent": {"outputTranscription": {"text": word}}}), 0));
                }
            } else {
                let turn = json!({"parts": [{"text": word}]});
                steps.push_back(Step::Say(json!({"serverContent": {"modelTurn": turn}}), 1));
            }
        }
        steps.push_back(Step::Say(json!({"serverContent": {"generationComplete": true}}), 0));
        steps.push_back(Step::Over);
    }

    async fn step(&mut self) -> Goes {
        let step = self.answer.as_mut().and_then(|answer| answer.steps.pop_front());
        match step {
            None | Some(Step::Gate) => Ok(()),
            Some(Step::Say(mut message, tokens)) => {
                let mut said = 0;
                if let Some(answer) = &mut self.answer {
                    answer.said += tokens;
                    said = answer.said;
                    answer.watch.sent_one();
                }
                if message["toolCall"].is_object() {
                    let choice = self.opened.choice.clone();
                    let usage = self.usage(said, &choice);
                    self.note.write(|seen| seen.billed.push(usage.clone()));
                    message["usageMetadata"] = usage;
                    if let Some(answer) = &mut self.answer {
                        answer.watch.over(true);
                    }
                }
                self.say(&message).await
            }
            Some(Step::Stay) => {
                self.stays = true;
                Ok(())
            }
            Some(Step::Cut) => {
                self.opened.floor.reset.arm();
                Err(Ended)
            }
            Some(Step::Close(code)) => self.close(code, "sim-edge-7.internal is going away").await,
            Some(Step::Over) => {
                let Some(mut answer) = self.answer.take() else { return Ok(()) };
                answer.watch.over(true);
                let usage = self.usage(answer.said, &answer.choice);
                self.billed = (0, 0, 0);
                self.context.0 += answer.said;
                self.note.write(|seen| seen.billed.push(usage.clone()));
                let mut end = json!({"serverContent": {"turnComplete": true}});
                if !answer.choice.is("no_usage") {
                    end["usageMetadata"] = usage;
                }
                self.say(&end).await
            }
        }
    }
}
