//! A client of Gemini Live talks to a provider of OpenAI's interface, or to Gemini itself.

use super::{frame, kinds, read, write};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate_media::realtime::{
    GeminiClient, GeminiProvider, GeminiProviderSettings, LiveForm as _, LockedSetup, gemini_setup_model,
};

fn client(carry: bool) -> GeminiClient {
    let mut client = GeminiClient::new(Some("gpt-4o-transcribe".to_string()));
    if carry {
        client.pair();
    }
    client
}

fn set_up(client: &mut GeminiClient, setup: &Value) -> Value {
    let (said, _) = read(client, &json!({"setup": setup}));
    let (frames, _) = write(client, &json!({"type": "session.updated", "session": {}}));
    assert_eq!(frames, [json!({"setupComplete": {}})]);
    said[0]["session"].clone()
}

#[test]
fn a_setup_becomes_a_session_in_either_spelling() {
    let camel = json!({
        "model": "models/gemini-live",
        "generationConfig": {
            "responseModalities": ["AUDIO"], "maxOutputTokens": 50,
            "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "marin"}}},
        },
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}}]}],
        "inputAudioTranscription": {}, "outputAudioTranscription": {},
        "realtimeInputConfig": {"automaticActivityDetection": {"silenceDurationMs": 400}},
    });
    let snake = json!({
        "model": "models/gemini-live",
        "generation_config": {
            "response_modalities": ["AUDIO"], "max_output_tokens": 50,
            "speech_config": {"voice_config": {"prebuilt_voice_config": {"voice_name": "marin"}}},
        },
        "system_instruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"function_declarations": [{"name": "f", "parameters": {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}}]}],
        "input_audio_transcription": {}, "output_audio_transcription": {},
        "realtime_input_config": {"automatic_activity_detection": {"silence_duration_ms": 400}},
    });
    assert_eq!(gemini_setup_model(&frame(&json!({"setup": camel}))).as_deref(), Ok("gemini-live"));
    let session = set_up(&mut client(false), &camel);
    assert_eq!(session, set_up(&mut client(false), &snake));
    assert_eq!(session["audio"]["input"]["transcription"]["model"], "gpt-4o-transcribe");
    assert_eq!(session["audio"]["input"]["turn_detection"], json!({"type": "server_vad", "silence_duration_ms": 400}));
    let schema = json!({"type": "object", "properties": {"type": {"type": "string"}}});
    assert_eq!(session["tools"], json!([{"type": "function", "name": "f", "parameters": schema}]));
    assert_eq!((&session["max_output_tokens"], &session["audio"]["output"]["voice"]), (&json!(50), &json!("marin")));
}

#[test]
fn what_has_no_word_over_there_is_refused_by_name() {
    let cases = [
        (json!({"generationConfig": {"temperature": 0.5}}), "setup.generationConfig.temperature"),
        (json!({"tools": [{"googleSearch": {}}]}), "setup.tools.googleSearch"),
        (json!({"session_resumption": {"handle": "x"}}), "setup.sessionResumption.handle"),
        (json!({"proactivity": {}}), "setup.proactivity"),
    ];
    for (setup, field) in cases {
        let refused = client(false).read(frame(&json!({"setup": setup}))).expect_err("refused");
        assert!(refused.0.starts_with(field), "{refused:?}");
    }
    let mut ready = client(false);
    set_up(&mut ready, &json!({"model": "models/x"}));
    for odd in [
        json!({"clientContent": {}, "realtimeInput": {"text": "unpaid"}}),
        json!({"clientContent": {"turnComplete": false, "turn_complete": true}}),
        json!({"telepathy": {}}),
        json!({}),
    ] {
        assert!(ready.read(frame(&odd)).is_err(), "{odd}");
    }
    let early = client(false).read(frame(&json!({"realtimeInput": {"text": "x"}}))).expect_err("refused");
    assert!(early.0.starts_with("setup"), "{early:?}");
    assert!(gemini_setup_model(&frame(&json!({"setup": {}}))).is_err());
}

#[test]
fn what_it_says_is_asked_and_what_is_answered_is_shown() {
    let mut client = client(false);
    set_up(&mut client, &json!({"model": "models/x", "outputAudioTranscription": {}}));
    let content =
        json!({"client_content": {"turns": [{"role": "user", "parts": [{"text": "hi"}]}], "turn_complete": true}});
    let (said, _) = read(&mut client, &content);
    assert_eq!(kinds(&said), ["conversation.item.create", "response.create"]);
    assert_eq!(said[0]["item"]["content"], json!([{"type": "input_text", "text": "hi"}]));
    write(&mut client, &json!({"type": "response.created", "response": {}}));
    let (frames, _) = write(&mut client, &json!({"type": "response.output_audio.delta", "delta": "AAAA"}));
    let part = json!({"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAA"}});
    assert_eq!(frames[0]["serverContent"]["modelTurn"]["parts"], json!([part]));
    let (frames, _) = write(&mut client, &json!({"type": "response.output_audio_transcript.delta", "delta": "yes"}));
    assert_eq!(frames[0]["serverContent"]["outputTranscription"]["text"], "yes");
    // Another request interrupts the first and is asked when that is over.
    let (said, _) = read(&mut client, &content);
    assert_eq!(kinds(&said), ["conversation.item.create", "response.cancel"]);
    let usage = json!({
        "total_tokens": 9, "input_tokens": 5, "output_tokens": 4,
        "input_token_details": {"text_tokens": 5, "audio_tokens": 0, "cached_tokens": 0},
        "output_token_details": {"text_tokens": 1, "audio_tokens": 3},
    });
    let done = json!({"type": "response.done", "response": {"status": "cancelled", "output": [], "usage": usage}});
    let (frames, said) = write(&mut client, &done);
    assert_eq!(kinds(&said), ["response.create"]);
    assert_eq!(frames[0]["serverContent"]["interrupted"], true);
    assert_eq!(frames[1]["serverContent"]["turnComplete"], true);
    let shown = &frames[1]["usageMetadata"];
    assert_eq!([&shown["promptTokenCount"], &shown["responseTokenCount"]], [&json!(5), &json!(4)]);
    assert_eq!(shown["responseTokensDetails"][1], json!({"modality": "AUDIO", "tokenCount": 3}));
}

#[test]
fn audio_at_16_khz_reaches_providers_that_hear_24() {
    let mut client = client(false);
    set_up(&mut client, &json!({"model": "models/x"}));
    let audio = json!({"data": STANDARD.encode(vec![0_u8; 32_000]), "mime_type": "audio/pcm;rate=16000"});
    let (said, _) = read(&mut client, &json!({"realtime_input": {"audio": audio}}));
    let heard = STANDARD.decode(said[0]["audio"].as_str().expect("audio")).expect("base64");
    assert!(heard.len().abs_diff(48_000) < 100, "{}", heard.len());
    let odd = json!({"realtimeInput": {"audio": {"data": "", "mimeType": "audio/mp3"}}});
    assert!(client.read(frame(&odd)).expect_err("refused").0.contains("mimeType"));
}

#[test]
fn functions_go_there_and_back() {
    let mut client = client(false);
    set_up(&mut client, &json!({"model": "models/x"}));
    write(&mut client, &json!({"type": "response.created", "response": {}}));
    let item = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":1}"});
    let (frames, _) = write(&mut client, &json!({"type": "response.output_item.done", "item": item}));
    assert_eq!(frames, [json!({"toolCall": {"functionCalls": [{"id": "c", "name": "f", "args": {"a": 1}}]}})]);
    let answer =
        json!({"tool_response": {"function_responses": [{"id": "c", "name": "f", "response": {"output": "7"}}]}});
    let (said, _) = read(&mut client, &answer);
    assert_eq!(kinds(&said), ["conversation.item.create"]);
    assert_eq!(said[0]["item"], json!({"type": "function_call_output", "call_id": "c", "output": "7"}));
    let done = json!({"type": "response.done", "response": {"status": "completed", "output": [item], "usage": null}});
    let (frames, said) = write(&mut client, &done);
    assert_eq!(kinds(&said), ["response.create"], "asked when the response is over");
    assert!(frames.is_empty(), "the turn goes on: {frames:?}");
}

#[test]
fn between_two_geminis_frames_stay_as_they_are() {
    let mut client = client(true);
    let mut provider = GeminiProvider::new(GeminiProviderSettings {
        id: "s".to_string(),
        model: "theirs".to_string(),
        ..GeminiProviderSettings::default()
    });
    assert_eq!(client.kind(), provider.kind());
    provider.pair();
    // The core bounds the answer with an update of its own.
    let bound = json!({"type": "session.update", "session": {"type": "realtime", "max_output_tokens": 64}});
    assert_eq!(write(&mut provider, &bound).0, Vec::<Value>::new());
    let pass = |client: &mut GeminiClient, provider: &mut GeminiProvider, message: &Value| -> Vec<Value> {
        let (said, _) = read(client, message);
        said.iter().flat_map(|event| write(provider, event).0).collect()
    };
    let setup = json!({"setup": {"model": "models/mine", "generation_config": {"temperature": 0.3}, "proactivity": {"proactive_audio": true}}});
    let sent = pass(&mut client, &mut provider, &setup);
    let wanted = json!({"setup": {"model": "models/theirs", "generationConfig": {"temperature": 0.3, "maxOutputTokens": 64}, "proactivity": {"proactive_audio": true}}});
    assert_eq!(sent, [wanted]);
    let back = |provider: &mut GeminiProvider, client: &mut GeminiClient, message: &Value| -> Vec<Value> {
        let (said, _) = read(provider, message);
        said.iter().flat_map(|event| write(client, event).0).collect()
    };
    let ready = json!({"setupComplete": {}});
    assert_eq!(back(&mut provider, &mut client, &ready), std::slice::from_ref(&ready));
    let content =
        json!({"client_content": {"turns": [{"role": "user", "parts": [{"text": "hi"}]}], "turn_complete": true}});
    assert_eq!(pass(&mut client, &mut provider, &content), std::slice::from_ref(&content));
    let audio = json!({"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm;rate=16000"}}});
    assert_eq!(pass(&mut client, &mut provider, &audio), std::slice::from_ref(&audio));
    let start = json!({"realtimeInput": {"activityStart": {}}});
    assert_eq!(pass(&mut client, &mut provider, &start), std::slice::from_ref(&start));
    let turn = json!({"serverContent": {"modelTurn": {"parts": [{"text": "a", "thoughtSignature": "s"}]}, "groundingMetadata": {"x": 1}}});
    assert_eq!(back(&mut provider, &mut client, &turn), std::slice::from_ref(&turn));
    let end = json!({"serverContent": {"turnComplete": true}, "usageMetadata": {"promptTokenCount": 3, "responseTokenCount": 1}});
    assert_eq!(back(&mut provider, &mut client, &end), std::slice::from_ref(&end));
    let handle = json!({"sessionResumptionUpdate": {"newHandle": "secret", "resumable": true}});
    assert_eq!(back(&mut provider, &mut client, &handle), Vec::<Value>::new());
}

/// What a token fixes holds, whatever the client says and however it spells it.
#[test]
fn a_locked_setup_is_not_the_client_s() {
    let text = json!({"generationConfig": {"responseModalities": ["TEXT"]}});
    let named = json!({"model": "models/m", "generationConfig": {"responseModalities": ["TEXT"]}});
    let asked = json!({
        "model": "models/mine", "generation_config": {"response_modalities": ["AUDIO"], "max_output_tokens": 9},
        "system_instruction": {"parts": [{"text": "mine"}]}, "session_resumption": {},
    });
    let seen = |setup: &Value, mask: Option<&str>| {
        let locked = LockedSetup::new(setup.clone(), mask).expect("a setup");
        assert_eq!(LockedSetup::from_json(&locked.to_json()), locked);
        let mut client = client(true).locked(locked);
        let (said, _) = read(&mut client, &json!({"setup": asked}));
        said[0]["gemini"]["setup"].clone()
    };
    // All of it, but for the name of the model where it has none.
    let resumption =
        json!({"sessionResumption": {}, "model": "models/mine", "generationConfig": {"responseModalities": ["TEXT"]}});
    assert_eq!(seen(&text, None), resumption);
    assert_eq!(seen(&named, None)["model"], "models/m");
    // Some fields: the others are the client's, and one that the token leaves empty is empty.
    let some = seen(&text, Some("generationConfig.response_modalities, systemInstruction"));
    let expected = json!({"responseModalities": ["TEXT"], "max_output_tokens": 9});
    let mut generation = some["generationConfig"].clone();
    if let Some(most) = generation.as_object_mut().and_then(|object| object.remove("maxOutputTokens")) {
        generation["max_output_tokens"] = most;
    }
    assert_eq!(generation, expected);
    assert!(some.get("systemInstruction").is_none() && some["model"] == "models/mine", "{some}");
    assert_eq!(seen(&Value::Null, None), asked, "nothing is fixed");
    for (setup, says) in [(json!(1), "an object"), (json!({"tools": [{"googleSearch": {}}]}), "functionDeclarations")] {
        let refused = LockedSetup::new(setup, None).expect_err("refused");
        assert!(refused.0.contains(says), "{}", refused.0);
    }
}
