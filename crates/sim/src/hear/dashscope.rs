//! DashScope's Qwen-ASR in the form of a conversation: the recording as a data link in
//! `input_audio`, at most 10 MB of it. Models that take files by their address say so on this path.

use super::scenario::Wish;
use super::{Act, Heard, text};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

const MOST: usize = 10_000_000;

fn refuse(status: u16, code: &str, message: &str) -> Act {
    Act::refused(
        status,
        &json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}}),
    )
}

pub(super) fn answer(heard: &Heard<'_>) -> Act {
    if !heard.header("authorization").starts_with("Bearer ") || heard.header("authorization").contains("wrong") {
        return refuse(401, "invalid_api_key", "Incorrect API key provided.");
    }
    if heard.header("content-length").parse() != Ok(heard.length) {
        return refuse(400, "InvalidParameter", "the length was not announced");
    }
    // A body that is too long to be buffered is read as far as its model.
    let whole: Option<Value> = serde_json::from_slice(&heard.body).ok();
    let model = match &whole {
        Some(body) => body["model"].as_str().unwrap_or_default().to_string(),
        None if heard.length > heard.body.len() => {
            let start = String::from_utf8_lossy(&heard.body[..200]).into_owned();
            start.split("\"model\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_string()
        }
        None => return refuse(400, "InvalidParameter", "Request body format invalid"),
    };
    let (name, wish) = match Wish::of(&model, "") {
        Ok(found) => found,
        Err(why) => return refuse(400, "InvalidParameter", &why),
    };
    if name.contains("filetrans") || !name.starts_with("qwen3-asr") {
        return refuse(400, "InvalidParameter", &format!("model {name} is not supported on this path"));
    }
    let bytes = match &whole {
        Some(body) => match audio(body) {
            Ok(bytes) => bytes,
            Err(why) => return refuse(400, "InvalidParameter", &why),
        },
        None => heard.length / 4 * 3,
    };
    let act = match wish.name() {
        "error400" => refuse(400, "InvalidParameter.DataInspection", "Unable to read the media at oss.sim.internal."),
        "error429" => refuse(429, "Throttling.RateQuota", "Requests rate limit exceeded."),
        "error500" => refuse(500, "InternalError", "An internal error has occured."),
        "moderation" => refuse(400, "DataInspectionFailed", "Input data may contain inappropriate content."),
        "garbage" => Act { pieces: vec![Bytes::from_static(b"{\"choices\": [")], ..Act::refused(200, &Value::Null) },
        _ => {
            let seconds = wish.seconds().unwrap_or(3.0);
            Act::refused(
                200,
                &json!({
                    "id": "chatcmpl-sim", "object": "chat.completion", "created": 1_767_225_600, "model": name,
                    "choices": [{"index": 0, "finish_reason": "stop", "message": {
                        "role": "assistant", "content": text(bytes, &wish),
                        "annotations": [{"type": "audio_info", "language": "en", "emotion": "neutral"}],
                    }}],
                    "usage": {"seconds": seconds, "prompt_tokens": 42, "completion_tokens": 12, "total_tokens": 54},
                }),
            )
        }
    };
    Act { model: name.to_string(), wish, ..act }
}

/// The length of the recording in a request.
fn audio(body: &Value) -> Result<usize, String> {
    let known = ["model", "messages", "asr_options", "stream"];
    if let Some((name, _)) = body.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str())) {
        return Err(format!("unknown member {name}"));
    }
    let content = &body["messages"][0]["content"][0];
    let data = content["input_audio"]["data"].as_str().ok_or("no input_audio")?;
    if content["type"] != "input_audio" || body["messages"][0]["role"] != "user" {
        return Err("the message has the wrong shape".to_string());
    }
    let letters =
        data.strip_prefix("data:audio/").and_then(|rest| rest.split_once(";base64,")).ok_or("no data link")?.1;
    if data.len() > MOST {
        return Err("The audio is larger than 10 MB".to_string());
    }
    BASE64_STANDARD.decode(letters).map(|bytes| bytes.len()).map_err(|_| "no base64".to_string())
}
