//! A client of Gemini Live in front of a provider of OpenAI's interface.

use serde_json::{Value, json};

use super::super::form::{LiveFault, LiveForm, LiveFrame};
use super::super::json::parse;
use super::super::resample::Resampler;
use super::super::scan::event_type;
use super::keys::{camel, get, unknown};
use super::locked::LockedSetup;
use super::provider::carrying;
use super::setup::to_session;
use super::usage::to_gemini;
use super::{CARRIED, FORM};

/// Silence that ends a turn whose audio has ended, in milliseconds.
const SILENCE_MS: usize = 1_000;

/// One client of Gemini Live.
pub struct GeminiClient {
    /// The model that writes down what the client says, where the provider needs to be given one.
    transcriber: Option<String>,
    /// What is fixed of its setup.
    locked: Option<LockedSetup>,
    /// The provider is Gemini too: frames are carried through.
    carry: bool,
    set_up: bool,
    answered: bool,
    writes_input: bool,
    writes_output: bool,
    ear: Option<(u32, Resampler)>,
    heard_delta: bool,
    responding: bool,
    /// A request that waits for the end of the response before it.
    wants: bool,
    calls_only: bool,
    own: Vec<String>,
}

/// The model that a client's first frame names.
pub fn gemini_setup_model(frame: &LiveFrame) -> Result<String, LiveFault> {
    let message = parse_frame(frame)?;
    let model = get(&message, "setup")["model"].as_str();
    let model = model.ok_or_else(|| LiveFault("setup.model: the first frame must name a model".to_string()))?;
    Ok(model_name(model).to_string())
}

/// Without the path before it.
pub(super) fn model_name(model: &str) -> &str {
    model.rsplit_once("models/").map_or(model, |(_, name)| name)
}

fn parse_frame(frame: &LiveFrame) -> Result<Value, LiveFault> {
    match frame {
        LiveFrame::Text(text) => parse(text),
        LiveFrame::Binary(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| LiveFault("the frame is not text".to_string()))?;
            parse(text)
        }
    }
}

impl GeminiClient {
    pub fn new(transcriber: Option<String>) -> GeminiClient {
        GeminiClient {
            transcriber,
            locked: None,
            carry: false,
            set_up: false,
            answered: false,
            writes_input: false,
            writes_output: false,
            ear: None,
            heard_delta: false,
            responding: false,
            wants: false,
            calls_only: false,
            own: Vec::new(),
        }
    }

    /// A client that does not decide about all of its setup.
    pub fn locked(self, locked: LockedSetup) -> GeminiClient {
        GeminiClient { locked: Some(locked), ..self }
    }

    fn setup(&mut self, setup: &Value) -> Result<Vec<Value>, LiveFault> {
        if std::mem::replace(&mut self.set_up, true) {
            return Err(LiveFault("setup: it is sent once".to_string()));
        }
        self.writes_input = !get(setup, "inputAudioTranscription").is_null();
        self.writes_output = !get(setup, "outputAudioTranscription").is_null();
        let session = to_session(setup, self.transcriber.as_deref(), !self.carry)?;
        Ok(vec![json!({"type": "session.update", "session": session})])
    }

    fn content(&mut self, content: &Value) -> Result<Vec<Value>, LiveFault> {
        let mut events = Vec::new();
        for turn in get(content, "turns").as_array().into_iter().flatten() {
            self.turn(turn, &mut events)?;
        }
        if *get(content, "turnComplete") == true {
            self.ask(&mut events);
        }
        Ok(events)
    }

    fn turn(&mut self, turn: &Value, events: &mut Vec<Value>) -> Result<(), LiveFault> {
        let model = turn["role"] == "model";
        let mut parts = Vec::new();
        for part in turn["parts"].as_array().into_iter().flatten() {
            let data = get(part, "inlineData");
            let kind = get(data, "mimeType").as_str().unwrap_or_default();
            if let Some(text) = part["text"].as_str() {
                parts.push(json!({"type": if model { "output_text" } else { "input_text" }, "text": text}));
            } else if kind.starts_with("image/") {
                let url = format!("data:{kind};base64,{}", data["data"].as_str().unwrap_or_default());
                parts.push(json!({"type": "input_image", "image_url": url}));
            } else if kind.starts_with("audio/pcm") {
                let audio = self.hear(data)?;
                parts.push(json!({"type": "input_audio", "audio": audio}));
            } else if get(part, "functionResponse").is_object() {
                events.push(output(get(part, "functionResponse")));
            } else if get(part, "functionCall").is_object() {
                let call = get(part, "functionCall");
                events.push(json!({"type": "conversation.item.create", "item": {
                    "type": "function_call", "call_id": call["id"], "name": call["name"],
                    "arguments": call["args"].to_string(),
                }}));
            } else {
                return Err(LiveFault("clientContent.turns.parts: text, inlineData or a function".to_string()));
            }
        }
        if !parts.is_empty() {
            let role = if model { "assistant" } else { "user" };
            let item = json!({"type": "message", "role": role, "content": parts});
            events.push(json!({"type": "conversation.item.create", "item": item}));
        }
        Ok(())
    }

    /// Audio at the rate that providers of OpenAI's interface hear.
    fn hear(&mut self, data: &Value) -> Result<String, LiveFault> {
        let kind = get(data, "mimeType").as_str().unwrap_or("audio/pcm");
        let rate = kind.split(';').find_map(|part| part.trim().strip_prefix("rate="));
        let rate: u32 = rate.map_or(Ok(16_000), str::parse).unwrap_or(0);
        if !kind.starts_with("audio/pcm") || !(8_000..=48_000).contains(&rate) || !rate.is_multiple_of(8_000) {
            let why = format!("realtimeInput.audio.mimeType: `{kind}` is not audio/pcm at 8 to 48 kHz");
            return Err(LiveFault(why));
        }
        let audio = data["data"].as_str().unwrap_or_default();
        if self.ear.as_ref().is_none_or(|(heard, _)| *heard != rate) {
            self.ear = Some((rate, Resampler::new(rate, 24_000)));
        }
        match &mut self.ear {
            Some((_, ear)) if !ear.is_same() => ear.push_base64(audio),
            _ => Ok(audio.to_string()),
        }
    }

    fn realtime(&mut self, input: &Value) -> Result<Vec<Value>, LiveFault> {
        let mut events = Vec::new();
        let chunks = get(input, "mediaChunks").as_array().into_iter().flatten();
        let named = [get(input, "audio"), get(input, "video")];
        for data in named.into_iter().filter(|data| data.is_object()).chain(chunks) {
            let kind = get(data, "mimeType").as_str().unwrap_or_default();
            if kind.starts_with("image/") {
                let url = format!("data:{kind};base64,{}", data["data"].as_str().unwrap_or_default());
                let item = json!({
                    "type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}],
                });
                events.push(json!({"type": "conversation.item.create", "item": item}));
            } else if self.carry {
                events.push(json!({
                    "type": "input_audio_buffer.append", "audio": data["data"], "gemini_mime": get(data, "mimeType"),
                }));
            } else {
                let audio = self.hear(data)?;
                events.push(json!({"type": "input_audio_buffer.append", "audio": audio}));
            }
        }
        if let Some(text) = input["text"].as_str() {
            let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
            events.push(json!({"type": "conversation.item.create", "item": item}));
            self.ask(&mut events);
        }
        if !get(input, "activityStart").is_null() && self.responding && !self.carry {
            events.push(json!({"type": "response.cancel"}));
        }
        if !get(input, "activityEnd").is_null() {
            events.push(json!({"type": "input_audio_buffer.commit"}));
            self.ask(&mut events);
        }
        if *get(input, "audioStreamEnd") == true && !self.carry {
            let silence = "A".repeat(SILENCE_MS * 48 / 3 * 4);
            events.push(json!({"type": "input_audio_buffer.append", "audio": silence}));
        }
        Ok(events)
    }

    /// The provider is to answer, as soon as it is through with what it says now.
    fn ask(&mut self, events: &mut Vec<Value>) {
        if self.responding && !self.carry {
            if !std::mem::replace(&mut self.wants, true) {
                events.push(json!({"type": "response.cancel"}));
            }
        } else {
            events.push(json!({"type": "response.create"}));
        }
    }

    fn tools(&mut self, answer: &Value) -> Vec<Value> {
        let answers = get(answer, "functionResponses").as_array().into_iter().flatten();
        let mut events: Vec<Value> = answers.map(output).collect();
        if self.responding && !self.carry {
            self.wants = true;
        } else {
            events.push(json!({"type": "response.create"}));
        }
        events
    }

    fn server_event(&mut self, kind: &str, event: &Value) -> Result<Vec<Value>, LiveFault> {
        let model_turn =
            |part: Value| vec![json!({"serverContent": {"modelTurn": {"role": "model", "parts": [part]}}})];
        Ok(match kind {
            "session.updated" if self.set_up && !std::mem::replace(&mut self.answered, true) => {
                vec![json!({"setupComplete": {}})]
            }
            "response.created" => {
                (self.responding, self.calls_only) = (true, true);
                Vec::new()
            }
            "response.output_audio.delta" => {
                self.calls_only = false;
                model_turn(json!({"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": event["delta"]}}))
            }
            "response.output_text.delta" => {
                self.calls_only = false;
                model_turn(json!({"text": event["delta"]}))
            }
            "response.output_audio_transcript.delta" if self.writes_output => {
                vec![json!({"serverContent": {"outputTranscription": {"text": event["delta"]}}})]
            }
            "conversation.item.input_audio_transcription.delta" if self.writes_input => {
                self.heard_delta = true;
                vec![json!({"serverContent": {"inputTranscription": {"text": event["delta"]}}})]
            }
            "conversation.item.input_audio_transcription.completed" if self.writes_input => {
                if std::mem::take(&mut self.heard_delta) {
                    return Ok(Vec::new());
                }
                vec![json!({"serverContent": {"inputTranscription": {"text": event["transcript"]}}})]
            }
            "response.output_item.done" if event["item"]["type"] == "function_call" => {
                let item = &event["item"];
                let arguments = item["arguments"].as_str().unwrap_or_default();
                let args: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
                let call = json!({"id": item["call_id"], "name": item["name"], "args": args});
                vec![json!({"toolCall": {"functionCalls": [call]}})]
            }
            "response.done" => self.done(&event["response"])?,
            "error" => return self.error(&event["error"]),
            _ => Vec::new(),
        })
    }

    fn done(&mut self, response: &Value) -> Result<Vec<Value>, LiveFault> {
        self.responding = false;
        if std::mem::take(&mut self.wants) {
            self.own.push(json!({"type": "response.create"}).to_string());
        }
        let usage = if response["usage"].is_object() { to_gemini(&response["usage"]) } else { Value::Null };
        let with_usage = |mut frame: Value| {
            if !usage.is_null() {
                frame["usageMetadata"] = usage.clone();
            }
            frame
        };
        Ok(match response["status"].as_str() {
            Some("failed") => {
                let why = response["status_details"]["error"]["message"].as_str().unwrap_or("the response failed");
                return Err(LiveFault(why.to_string()));
            }
            Some("cancelled") => vec![
                json!({"serverContent": {"interrupted": true}}),
                with_usage(json!({"serverContent": {"turnComplete": true}})),
            ],
            // The turn goes on when the functions have answered.
            _ if self.calls_only && !response["output"].as_array().is_none_or(Vec::is_empty) => {
                if usage.is_null() {
                    Vec::new()
                } else {
                    vec![json!({"usageMetadata": usage})]
                }
            }
            _ => vec![
                json!({"serverContent": {"generationComplete": true}}),
                with_usage(json!({"serverContent": {"turnComplete": true}})),
            ],
        })
    }

    /// Gemini has no message for errors: it closes with a reason. So do we, unless the session goes
    /// on or is about to be closed anyway.
    fn error(&self, error: &Value) -> Result<Vec<Value>, LiveFault> {
        let harmless = [
            "response_cancel_not_active",
            "conversation_already_has_active_response",
            "session_ending",
            "insufficient_balance",
        ];
        if harmless.iter().any(|code| error["code"] == *code) {
            return Ok(Vec::new());
        }
        Err(LiveFault(error["message"].as_str().unwrap_or("the provider refused").to_string()))
    }
}

impl LiveForm for GeminiClient {
    fn read(&mut self, frame: LiveFrame) -> Result<Vec<String>, LiveFault> {
        let message = parse_frame(&frame)?;
        check_members(&message)?;
        let message = match &self.locked {
            Some(locked) if get(&message, "setup").is_object() => locked.applied(message),
            _ => message,
        };
        let (setup, content) = (get(&message, "setup"), get(&message, "clientContent"));
        let (input, tools) = (get(&message, "realtimeInput"), get(&message, "toolResponse"));
        let events = if setup.is_object() {
            self.setup(setup)?
        } else if !self.set_up {
            return Err(LiveFault("setup: it has to be the first message".to_string()));
        } else if content.is_object() {
            self.content(content)?
        } else if input.is_object() {
            self.realtime(input)?
        } else if tools.is_object() {
            self.tools(tools)
        } else {
            return Err(LiveFault("setup, clientContent, realtimeInput or toolResponse is needed".to_string()));
        };
        let mut out: Vec<String> = events.iter().map(Value::to_string).collect();
        let rebuilt = events.last().is_some_and(|event| !event["gemini_mime"].is_null());
        if self.carry && !rebuilt {
            out.pop();
            // One that is passed on as it is, for the frame in it.
            let bare = || json!({"type": "output_audio_buffer.clear"});
            let last = events.into_iter().last().unwrap_or_else(bare);
            out.push(carrying(last, message));
        }
        Ok(out)
    }

    fn write(&mut self, event: String) -> Result<Vec<LiveFrame>, LiveFault> {
        let kind = event_type(&event).unwrap_or_default().to_string();
        let mut event = parse(&event)?;
        let frames = if self.carry && kind != "error" {
            let carried = event.as_object_mut().and_then(|event| event.remove(CARRIED));
            carried.into_iter().collect()
        } else if self.carry && !event[CARRIED].is_null() {
            vec![event[CARRIED].take()]
        } else {
            self.server_event(&kind, &event)?
        };
        Ok(frames.into_iter().map(|frame| LiveFrame::Text(frame.to_string())).collect())
    }

    fn kind(&self) -> &'static str {
        FORM
    }

    fn pair(&mut self) {
        self.carry = true;
    }

    fn more(&mut self) -> (Vec<String>, Vec<LiveFrame>) {
        (std::mem::take(&mut self.own), Vec::new())
    }
}

/// One message says one thing, in one spelling: nobody may read another message than the one that
/// was counted.
fn check_members(message: &Value) -> Result<(), LiveFault> {
    let known = ["setup", "clientContent", "realtimeInput", "toolResponse"];
    if let Some(name) = unknown(message, &known) {
        let name: String = name.chars().take(64).collect();
        return Err(LiveFault(format!("{name}: a message is {}", known.join(", "))));
    }
    if message.as_object().is_none_or(|members| members.len() != 1) {
        return Err(LiveFault(format!("a message is one of {}", known.join(", "))));
    }
    for inner in message.as_object().into_iter().flatten().map(|(_, inner)| inner) {
        let names = inner.as_object().into_iter().flatten().map(|(name, _)| name);
        if let Some(twice) = names.into_iter().find(|name| {
            let other = camel(name);
            other != **name && inner.get(&other).is_some()
        }) {
            return Err(LiveFault(format!("{}: it is there in two spellings", camel(twice))));
        }
    }
    Ok(())
}

/// What a function has answered.
fn output(answer: &Value) -> Value {
    let said = &answer["response"];
    let text = said["output"].as_str().map_or_else(|| said.to_string(), str::to_string);
    json!({"type": "conversation.item.create", "item": {
        "type": "function_call_output", "call_id": answer["id"], "output": text,
    }})
}
