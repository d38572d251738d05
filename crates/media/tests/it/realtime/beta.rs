//! Old names for the same things, both ways.

use super::{kinds, read, write};
use serde_json::json;
use tollgate_media::realtime::{BetaClient, BetaProvider, LiveForm as _, LiveFrame};

#[test]
fn a_beta_clients_session_is_said_in_new_words_and_shown_in_old_ones() {
    let mut client = BetaClient::new();
    let update = json!({"type": "session.update", "event_id": "e1", "session": {
        "modalities": ["audio", "text"], "voice": "verse", "input_audio_format": "g711_ulaw",
        "output_audio_format": "pcm16", "turn_detection": null, "temperature": 0.6, "max_response_output_tokens": 77,
        "input_audio_transcription": {"model": "whisper-1"}, "instructions": "x", "tools": [],
    }});
    let (said, _) = read(&mut client, &update);
    let session = json!({
        "type": "realtime", "output_modalities": ["audio"], "instructions": "x", "tools": [], "max_output_tokens": 77,
        "audio": {
            "input": {
                "format": {"type": "audio/pcmu"}, "turn_detection": null, "transcription": {"model": "whisper-1"},
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24_000}, "voice": "verse"},
        },
    });
    assert_eq!(said, [json!({"type": "session.update", "event_id": "e1", "session": session})]);
    let (got, _) = write(&mut client, &json!({"type": "session.updated", "event_id": "e2", "session": session}));
    let shown = &got[0]["session"];
    assert_eq!(shown["modalities"], json!(["audio", "text"]));
    assert_eq!([&shown["input_audio_format"], &shown["output_audio_format"]], ["g711_ulaw", "pcm16"]);
    assert_eq!((&shown["voice"], &shown["temperature"]), (&json!("verse"), &json!(0.6)));
    assert_eq!(shown["max_response_output_tokens"], 77);
    assert_eq!(shown["turn_detection"], json!(null));
    assert!(shown["warnings"][0].as_str().expect("a warning").contains("session.temperature"), "{shown}");
    assert!(shown.get("audio").is_none() && shown.get("type").is_none(), "{shown}");
}

#[test]
fn deltas_change_their_type_and_nothing_else() {
    let mut client = BetaClient::new();
    let event = r#"{"event_id":"a", "delta":"\"type\":\"response.output_text.delta\"","type" : "response.output_audio.delta","x":1.50}"#;
    let got = client.write(event.to_string()).expect("written");
    let wanted = event.replace("\"response.output_audio.delta\"", "\"response.audio.delta\"");
    assert_eq!(got, [LiveFrame::Text(wanted)]);
    let unknown = r#"{"type":"response.telepathy","n":1e3}"#.to_string();
    assert_eq!(client.write(unknown.clone()).expect("written"), [LiveFrame::Text(unknown)]);
}

#[test]
fn items_come_once_to_a_beta_client() {
    let mut client = BetaClient::new();
    let item =
        json!({"id": "i", "role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "x"}]});
    let added = json!({"type": "conversation.item.added", "item": item});
    let (got, _) = write(&mut client, &added);
    assert_eq!((kinds(&got)[0], &got[0]["item"]["content"][0]["type"]), ("conversation.item.created", &json!("text")));
    let (got, _) = write(&mut client, &json!({"type": "conversation.item.done", "item": item}));
    assert!(got.is_empty());
    let (got, _) = write(
        &mut client,
        &json!({"type": "response.done", "response": {
            "id": "r", "output": [item], "output_modalities": ["text"], "max_output_tokens": 5,
            "audio": {"output": {"voice": "marin", "format": {"type": "audio/pcm", "rate": 24_000}}}, "usage": null,
        }}),
    );
    let shown = json!({
        "id": "r", "modalities": ["text"], "max_output_tokens": 5, "voice": "marin", "output_audio_format": "pcm16",
        "output": [{"id": "i", "role": "assistant", "type": "message", "content": [{"type": "text", "text": "x"}]}],
        "usage": null,
    });
    assert_eq!(got[0]["response"], shown);
}

#[test]
fn a_beta_provider_is_understood() {
    let mut provider = BetaProvider::new();
    let (got, _) =
        write(&mut provider, &json!({"type": "response.create", "response": {"output_modalities": ["text"]}}));
    assert_eq!(got, [json!({"type": "response.create", "response": {"modalities": ["text"]}})]);
    let item = json!({"id": "i", "role": "user", "type": "message", "status": "completed", "content": []});
    let (said, _) = read(&mut provider, &json!({"type": "conversation.item.created", "item": item}));
    assert_eq!(kinds(&said), ["conversation.item.added", "conversation.item.done"]);
    let (said, _) = read(&mut provider, &json!({"type": "response.audio_transcript.delta", "delta": "a"}));
    assert_eq!(kinds(&said), ["response.output_audio_transcript.delta"]);
    assert!(provider.read(LiveFrame::Binary(bytes::Bytes::from_static(b"x"))).is_err());
}
