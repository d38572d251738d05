//! Forms of realtime sessions: what each side says, and what the middle makes of it.

mod beta;
mod gemini_client;
mod gemini_provider;
mod qwen;

use serde_json::Value;
use tollgate_media::realtime::{LiveForm, LiveFrame};

pub fn frame(message: &Value) -> LiveFrame {
    LiveFrame::Text(message.to_string())
}

pub fn parsed(frames: &[LiveFrame]) -> Vec<Value> {
    let read = |frame: &LiveFrame| match frame {
        LiveFrame::Text(text) => serde_json::from_str(text).expect("JSON"),
        LiveFrame::Binary(_) => panic!("binary"),
    };
    frames.iter().map(read).collect()
}

pub fn events(texts: &[String]) -> Vec<Value> {
    texts.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
}

pub fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

/// What a side says, with what follows by itself.
pub fn read(form: &mut dyn LiveForm, message: &Value) -> (Vec<Value>, Vec<Value>) {
    let mut said = form.read(frame(message)).expect("understood");
    let (more, frames) = form.more();
    said.extend(more);
    (events(&said), parsed(&frames))
}

/// What a side gets, with what it says by itself.
pub fn write(form: &mut dyn LiveForm, event: &Value) -> (Vec<Value>, Vec<Value>) {
    let mut frames = form.write(event.to_string()).expect("understood");
    let (said, more) = form.more();
    frames.extend(more);
    (parsed(&frames), events(&said))
}
