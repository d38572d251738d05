//! DashScope's own ways.

use super::{kinds, read, write};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tollgate_media::realtime::{QwenAudio, QwenProvider, live_usage};

#[test]
fn audio_is_sent_at_the_rate_it_hears() {
    let mut qwen = QwenProvider::new(QwenAudio::default());
    let second = STANDARD.encode(vec![0_u8; 48_000]);
    let (sent, _) = write(&mut qwen, &json!({"type": "input_audio_buffer.append", "audio": second}));
    let heard = STANDARD.decode(sent[0]["audio"].as_str().expect("audio")).expect("base64");
    assert!(heard.len().abs_diff(32_000) < 100, "{}", heard.len());
    let (sent, said) = write(&mut qwen, &json!({"type": "input_audio_buffer.append", "audio": "%%%"}));
    assert!(sent.is_empty());
    assert_eq!(said[0]["error"]["param"], "audio");
}

#[test]
fn a_session_is_said_in_its_words_and_what_it_lacks_is_named() {
    let mut qwen = QwenProvider::new(QwenAudio::default());
    let session = json!({
        "type": "realtime", "model": "q", "output_modalities": ["audio"], "max_output_tokens": 300, "tracing": "auto",
        "tools": [], "tool_choice": "auto", "audio": {"output": {"voice": "Cherry"}, "input": {"turn_detection": null}},
    });
    let (sent, said) = write(&mut qwen, &json!({"type": "session.update", "session": session}));
    assert!(said.is_empty());
    let wanted = json!({
        "modalities": ["audio", "text"], "voice": "Cherry", "turn_detection": null, "tools": [], "max_tokens": 300,
        "input_audio_format": "pcm16", "output_audio_format": "pcm24",
    });
    assert_eq!(sent[0]["session"], wanted);
    let (said, _) = read(&mut qwen, &json!({"type": "session.updated", "event_id": "e", "session": wanted}));
    let shown = &said[0]["session"];
    assert_eq!(shown["audio"]["input"]["format"], json!({"type": "audio/pcm", "rate": 24_000}));
    assert_eq!((&shown["max_output_tokens"], &shown["type"]), (&json!(300), &json!("realtime")));
    assert!(shown["warnings"][0].as_str().expect("a warning").contains("session.tracing"), "{shown}");
    let phone = json!({"type": "realtime", "audio": {"input": {"format": {"type": "audio/pcmu"}}}});
    let (sent, said) = write(&mut qwen, &json!({"type": "session.update", "session": phone}));
    assert!(sent.is_empty());
    assert_eq!(said[0]["error"]["param"], "session.audio.input.format.type");
}

#[test]
fn its_usage_is_read() {
    let mut qwen = QwenProvider::new(QwenAudio::default());
    let usage = json!({
        "total_tokens": 30, "input_tokens": 20, "output_tokens": 10,
        "input_tokens_details": {"text_tokens": 5, "audio_tokens": 15},
        "output_tokens_details": {"text_tokens": 4, "audio_tokens": 6},
    });
    let done = json!({"type": "response.done", "response": {"id": "r", "output": [], "modalities": ["text", "audio"], "output_audio_format": "pcm24", "usage": usage}});
    let (said, _) = read(&mut qwen, &done);
    assert_eq!(kinds(&said), ["response.done"]);
    let format = json!({"type": "audio/pcm", "rate": 24_000});
    assert_eq!(said[0]["response"]["audio"]["output"]["format"], format);
    assert_eq!(said[0]["response"]["usage"]["output_token_details"]["audio_tokens"], 6);
    let read = live_usage(&said[0]["response"]["usage"]).expect("usage");
    assert_eq!((read.input, read.audio_input, read.output, read.audio_output), (5, 15, 4, 6));
}

/// It knows no notes, and LiveKit finds its responses by them.
#[test]
fn what_a_client_notes_with_a_response_comes_back_with_it() {
    let mut qwen = QwenProvider::new(QwenAudio::default());
    let noted = |qwen: &mut QwenProvider, kind: &str| {
        let (said, _) = read(qwen, &json!({"type": kind, "response": {"id": "r", "output": []}}));
        said[0]["response"]["metadata"].clone()
    };
    let asked = json!({"type": "response.create", "response": {"metadata": {"n": "1"}}});
    let (sent, _) = write(&mut qwen, &asked);
    assert!(!sent[0].to_string().contains("metadata"), "{sent:?}");
    assert_eq!(noted(&mut qwen, "response.created"), json!({"n": "1"}));
    assert_eq!(noted(&mut qwen, "response.done"), json!({"n": "1"}));
    // One that nobody asked for has no note, nor does the one after a refusal.
    assert!(noted(&mut qwen, "response.created").is_null());
    write(&mut qwen, &asked);
    read(&mut qwen, &json!({"type": "error", "error": {"message": "no"}}));
    assert!(noted(&mut qwen, "response.created").is_null());
}
