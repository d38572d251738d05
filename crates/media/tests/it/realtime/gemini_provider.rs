//! A client of OpenAI's interface talks to Gemini Live.

use super::{kinds, read, write};
use serde_json::{Value, json};
use tollgate_media::realtime::{GeminiProvider, GeminiProviderSettings, GeminiUsage, LiveForm as _, live_usage};

fn provider(usage: GeminiUsage) -> GeminiProvider {
    let mut provider = GeminiProvider::new(GeminiProviderSettings {
        id: "s1".to_string(),
        model: "gemini-3.1-live".to_string(),
        usage,
    });
    let (said, sent) = provider.more();
    assert!(sent.is_empty() && said[0].contains("session.created"), "{said:?}");
    provider
}

fn say(provider: &mut GeminiProvider, text: &str) -> Vec<Value> {
    let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let (sent, said) = write(provider, &json!({"type": "conversation.item.create", "item": item}));
    assert!(sent.is_empty());
    assert_eq!(kinds(&said), ["conversation.item.added", "conversation.item.done"]);
    write(provider, &json!({"type": "response.create"})).0
}

fn ready(provider: &mut GeminiProvider) -> Vec<Value> {
    let (said, sent) = read(provider, &json!({"setupComplete": {}}));
    assert!(said.is_empty());
    sent
}

#[test]
fn settings_become_one_setup_and_the_rest_waits_for_it() {
    let mut provider = provider(GeminiUsage::default());
    let tool = json!({"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}});
    let session = json!({
        "type": "realtime", "instructions": "be brief", "max_output_tokens": 100, "tools": [tool], "tracing": "auto",
        "audio": {
            "output": {"voice": "Puck"},
            "input": {
                "transcription": {"model": "whisper-1"},
                "turn_detection": {"type": "server_vad", "silence_duration_ms": 700, "interrupt_response": false},
            },
        },
    });
    let (sent, said) = write(&mut provider, &json!({"type": "session.update", "session": session}));
    assert!(sent.is_empty());
    let warnings = said[0]["session"]["warnings"].to_string();
    assert!(warnings.contains("session.tracing") && warnings.contains("transcription.model"), "{warnings}");
    let sent = say(&mut provider, "hello");
    let setup = json!({"setup": {
        "model": "models/gemini-3.1-live",
        "generationConfig": {
            "responseModalities": ["AUDIO"], "maxOutputTokens": 100,
            "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Puck"}}},
        },
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [{"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}}]}],
        "realtimeInputConfig": {
            "automaticActivityDetection": {"prefixPaddingMs": 300, "silenceDurationMs": 700},
            "activityHandling": "NO_INTERRUPTION",
        },
        "inputAudioTranscription": {}, "outputAudioTranscription": {},
    }});
    assert_eq!(sent, [setup]);
    let turns = json!([{"role": "user", "parts": [{"text": "hello"}]}]);
    assert_eq!(ready(&mut provider), [json!({"clientContent": {"turns": turns, "turnComplete": true}})]);
    let late = json!({"type": "session.update", "session": {"type": "realtime", "instructions": "other"}});
    let (_, said) = write(&mut provider, &late);
    assert_eq!(said[0]["error"]["param"], "session");
}

#[test]
fn an_answer_is_told_in_order_with_its_usage() {
    let mut provider = provider(GeminiUsage::default());
    say(&mut provider, "hello");
    ready(&mut provider);
    let audio = json!({"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAA"}});
    let (first, _) = read(&mut provider, &json!({"serverContent": {"modelTurn": {"parts": [audio]}}}));
    assert_eq!(
        kinds(&first),
        [
            "response.created",
            "response.output_item.added",
            "conversation.item.added",
            "response.content_part.added",
            "response.output_audio.delta"
        ]
    );
    let (words, _) = read(&mut provider, &json!({"serverContent": {"outputTranscription": {"text": "Hi"}}}));
    assert_eq!(kinds(&words), ["response.output_audio_transcript.delta"]);
    let usage = json!({
        "promptTokenCount": 20, "responseTokenCount": 9, "thoughtsTokenCount": 3, "totalTokenCount": 32,
        "cachedContentTokenCount": 4, "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": 4}],
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 8}, {"modality": "AUDIO", "tokenCount": 12}],
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": 9}],
    });
    let (last, _) = read(&mut provider, &json!({"serverContent": {"turnComplete": true}, "usageMetadata": usage}));
    assert_eq!(
        kinds(&last),
        [
            "response.output_audio.done",
            "response.output_audio_transcript.done",
            "response.content_part.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done"
        ]
    );
    let response = &last[5]["response"];
    assert_eq!(
        (&response["status"], &response["output"][0]["content"][0]["transcript"]),
        (&json!("completed"), &json!("Hi"))
    );
    let read = live_usage(&response["usage"]).expect("usage");
    let parts = (read.input, read.audio_input, read.cache_read, read.output, read.audio_output);
    assert_eq!(parts, (4, 12, 4, 3, 9));
}

#[test]
fn functions_are_called_and_answered_in_the_same_turn() {
    for (mode, input) in [(GeminiUsage::EachResponse, 15), (GeminiUsage::WholeTurn, 5)] {
        let mut provider = provider(mode);
        say(&mut provider, "weather?");
        ready(&mut provider);
        let call = json!({"id": "c1", "name": "weather", "args": {"city": "Oslo"}});
        let usage = json!({"promptTokenCount": 10, "responseTokenCount": 2});
        let (said, _) = read(&mut provider, &json!({"toolCall": {"functionCalls": [call]}, "usageMetadata": usage}));
        let done = said.last().expect("events");
        assert_eq!((&done["type"], &done["response"]["usage"]["input_tokens"]), (&json!("response.done"), &json!(10)));
        let arguments = said.iter().find(|event| event["type"] == "response.function_call_arguments.done");
        assert_eq!(arguments.expect("a call")["arguments"], r#"{"city":"Oslo"}"#);
        let item = json!({"type": "function_call_output", "call_id": "c1", "output": "{\"sun\":true}"});
        let (sent, _) = write(&mut provider, &json!({"type": "conversation.item.create", "item": item}));
        assert!(sent.is_empty());
        let message = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]});
        let (_, said) = write(&mut provider, &json!({"type": "conversation.item.create", "item": message}));
        assert_eq!(said[0]["error"]["param"], "item", "not in one response");
        let (sent, _) = write(&mut provider, &json!({"type": "response.create"}));
        let answer = json!([{"id": "c1", "name": "weather", "response": {"sun": true}}]);
        assert_eq!(sent, [json!({"toolResponse": {"functionResponses": answer}})]);
        read(&mut provider, &json!({"serverContent": {"modelTurn": {"parts": [{"text": "sunny"}]}}}));
        let usage = json!({"promptTokenCount": 15, "responseTokenCount": 3});
        let (said, _) = read(&mut provider, &json!({"serverContent": {"turnComplete": true}, "usageMetadata": usage}));
        let done = said.last().expect("events");
        assert_eq!(done["response"]["usage"]["input_tokens"], input, "{mode:?}");
    }
    let mut unknown = provider(GeminiUsage::default());
    let item = json!({"type": "function_call_output", "call_id": "nobody", "output": "x"});
    let (_, said) = write(&mut unknown, &json!({"type": "conversation.item.create", "item": item}));
    assert_eq!(said[0]["error"]["param"], "item.call_id");
}

#[test]
fn an_interruption_ends_the_response_with_what_it_cost() {
    let mut provider = provider(GeminiUsage::default());
    let (sent, _) = write(&mut provider, &json!({"type": "input_audio_buffer.append", "audio": "AAAA"}));
    assert_eq!(kinds(&sent), Vec::<&str>::new(), "setup first");
    let waiting = ready(&mut provider);
    assert_eq!(waiting, [json!({"realtimeInput": {"audio": {"data": "AAAA", "mimeType": "audio/pcm;rate=24000"}}})]);
    read(&mut provider, &json!({"serverContent": {"inputTranscription": {"text": "hello"}}}));
    let (said, _) = read(&mut provider, &json!({"serverContent": {"modelTurn": {"parts": [{"text": "a"}]}}}));
    assert_eq!(
        kinds(&said)[..5],
        [
            "input_audio_buffer.committed",
            "conversation.item.added",
            "conversation.item.done",
            "conversation.item.input_audio_transcription.completed",
            "response.created"
        ]
    );
    let (said, _) = read(&mut provider, &json!({"serverContent": {"interrupted": true}}));
    assert_eq!(kinds(&said)[0], "input_audio_buffer.speech_started");
    assert!(!kinds(&said).contains(&"response.done"), "its usage is still to come");
    let usage = json!({"promptTokenCount": 5, "responseTokenCount": 1});
    let (said, _) = read(&mut provider, &json!({"serverContent": {"turnComplete": true}, "usageMetadata": usage}));
    let response = &said.last().expect("events")["response"];
    assert_eq!(response["status_details"], json!({"type": "cancelled", "reason": "turn_detected"}));
    assert_eq!(response["usage"]["total_tokens"], 6);
}

#[test]
fn a_client_cancels_and_hears_nothing_more_of_it() {
    let mut provider = provider(GeminiUsage::default());
    say(&mut provider, "hello");
    ready(&mut provider);
    read(&mut provider, &json!({"serverContent": {"modelTurn": {"parts": [{"text": "a"}]}}}));
    let (sent, _) = write(&mut provider, &json!({"type": "response.cancel"}));
    assert_eq!(sent, [json!({"clientContent": {"turns": [], "turnComplete": false}})]);
    let (said, _) = read(&mut provider, &json!({"serverContent": {"modelTurn": {"parts": [{"text": "b"}]}}}));
    assert!(said.is_empty());
    let (said, _) = read(&mut provider, &json!({"serverContent": {"interrupted": true, "turnComplete": true}}));
    let response = &said.last().expect("events")["response"];
    assert_eq!(response["status_details"]["reason"], "client_cancelled");
    assert_eq!(response["output"][0]["content"][0]["text"], "a");
    let (_, said) = write(&mut provider, &json!({"type": "response.cancel"}));
    assert_eq!(said[0]["error"]["code"], "response_cancel_not_active");
}

#[test]
fn turns_that_the_client_ends_itself_are_marked() {
    let mut provider = provider(GeminiUsage::default());
    let session = json!({"type": "realtime", "audio": {"input": {"turn_detection": null}}});
    write(&mut provider, &json!({"type": "session.update", "session": session}));
    write(&mut provider, &json!({"type": "input_audio_buffer.append", "audio": "AAAA"}));
    let (_, said) = write(&mut provider, &json!({"type": "input_audio_buffer.commit"}));
    assert_eq!(kinds(&said)[0], "input_audio_buffer.committed");
    write(&mut provider, &json!({"type": "response.create"}));
    let sent = ready(&mut provider);
    let names: Vec<_> = sent.iter().filter_map(|frame| frame["realtimeInput"].as_object()?.keys().next()).collect();
    assert_eq!(names, ["activityStart", "audio", "activityEnd"]);
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let session = |session: Value| json!({"type": "session.update", "session": session});
    let cases = [
        (session(json!({"audio": {"input": {"format": {"type": "audio/pcmu"}}}})), "session.audio.input.format"),
        (
            session(json!({"audio": {"input": {"turn_detection": {"type": "server_vad", "create_response": false}}}})),
            "session.audio.input.turn_detection.create_response",
        ),
        (session(json!({"type": "transcription"})), "session.type"),
        (session(json!({"tools": [{"type": "mcp"}]})), "session.tools"),
        (json!({"type": "response.create", "response": {"instructions": "x"}}), "response.instructions"),
        (json!({"type": "response.create", "response": {"conversation": "none"}}), "response.conversation"),
        (json!({"type": "conversation.item.retrieve", "item_id": "x"}), "type"),
        (
            json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user",
                "content": [{"type": "input_image", "image_url": "https://x"}]}}),
            "item.content[0].image_url",
        ),
    ];
    for (event, param) in cases {
        let mut provider = provider(GeminiUsage::default());
        let (sent, said) = write(&mut provider, &event);
        assert_eq!((sent.len(), &said[0]["error"]["param"]), (0, &json!(param)), "{event}");
    }
}

#[test]
fn usage_that_cannot_be_true_is_none() {
    for usage in [
        json!({"promptTokenCount": 5, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 6}]}),
        json!({"promptTokenCount": 5, "cachedContentTokenCount": 6}),
        json!({"responseTokenCount": 1, "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": 2}]}),
    ] {
        let mut provider = provider(GeminiUsage::default());
        say(&mut provider, "hello");
        ready(&mut provider);
        read(&mut provider, &json!({"serverContent": {"modelTurn": {"parts": [{"text": "a"}]}}}));
        let (said, _) = read(&mut provider, &json!({"serverContent": {"turnComplete": true}, "usageMetadata": usage}));
        assert_eq!(said.last().expect("events")["response"]["usage"], Value::Null, "{usage}");
    }
}

#[test]
fn an_item_may_name_the_last_one_before_it() {
    let mut provider = provider(GeminiUsage::default());
    let mut add = |previous: Value, id: &str| {
        let item =
            json!({"id": id, "type": "message", "role": "user", "content": [{"type": "input_text", "text": "t"}]});
        let event = json!({"type": "conversation.item.create", "previous_item_id": previous, "item": item});
        write(&mut provider, &event).1[0].clone()
    };
    assert_eq!(add(json!("root"), "a")["type"], "conversation.item.added");
    let second = add(json!("a"), "b");
    assert_eq!((&second["type"], &second["previous_item_id"]), (&json!("conversation.item.added"), &json!("a")));
    assert_eq!(add(Value::Null, "c")["previous_item_id"], "b");
    for elsewhere in ["root", "a", "none"] {
        assert_eq!(add(json!(elsewhere), "d")["error"]["param"], "previous_item_id", "{elsewhere}");
    }
}
