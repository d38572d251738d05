//! Usage in disjoint counters: for every shape the provider's totals come back and nothing is
//! negative; odd shapes count as missing; what is written is read back.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tollgate_dialects::{ToolNames, Voice, convert};
use tollgate_wire::Dialect;
use tollgate_wire::usage::{MOST, Usage, UsageReport, UsageShape};

/// A reply of this dialect with this report.
fn reply(dialect: Dialect, usage: Value) -> String {
    match dialect {
        Dialect::Chat => json!({"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}], "usage": usage}),
        Dialect::Anthropic => json!({"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn", "usage": usage}),
        Dialect::Responses => json!({"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}], "usage": usage}),
        Dialect::Gemini => json!({"candidates": [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}], "usageMetadata": usage}),
    }
    .to_string()
}

pub const SHAPES: [UsageShape; 4] =
    [UsageShape::Chat, UsageShape::Anthropic, UsageShape::Responses, UsageShape::Gemini];

pub fn read(shape: UsageShape, text: &str) -> Option<Usage> {
    UsageReport::read(shape, text.as_bytes()).as_ref().and_then(UsageReport::usage)
}

/// What a report becomes: shape, report, then the counters that are not zero.
const TABLE: &[(UsageShape, &str, &str)] = &[
    // OpenAI: everything is inside the two totals.
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":2600,"completion_tokens":300,"total_tokens":2900,
        "prompt_tokens_details":{"cached_tokens":2000,"cache_write_tokens":400,"audio_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":120,"audio_tokens":30,"rejected_prediction_tokens":5}}"#,
        "input 200, read 2000, write5m 400, output 150, reasoning 120, audio_out 30",
    ),
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"audio_tokens":30,"image_tokens":20,"text_tokens":50},
        "completion_tokens_details":{"image_tokens":4,"text_tokens":5}}"#,
        "input 50, image_in 20, audio_in 30, output 5, image_out 4",
    ),
    // Case 132: details above their total.
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":10,"completion_tokens":5,
        "prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":8,"audio_tokens":8},
        "completion_tokens_details":{"reasoning_tokens":9}}"#,
        "read 8, write5m 2, reasoning 5",
    ),
    // xAI and others: reasoning beside the completion, seen from the total.
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}"#,
        "input 32, output 9, reasoning 94",
    ),
    // DeepSeek, Moonshot, Qwen, Perplexity, a proxy in front of Claude.
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":10,"completion_tokens":1,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}"#,
        "input 6, read 4, output 1",
    ),
    (UsageShape::Chat, r#"{"prompt_tokens":10,"completion_tokens":1,"cached_tokens":4}"#, "input 6, read 4, output 1"),
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":1000,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":100,
        "cache_creation_input_tokens":700,"cache_creation":{"ephemeral_5m_input_tokens":700},"cache_type":"ephemeral"}}"#,
        "input 200, read 100, write5m 700, output 1",
    ),
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":10,"completion_tokens":9,"reasoning_tokens":4}"#,
        "input 10, output 5, reasoning 4",
    ),
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":10,"completion_tokens":1,"cache_read_input_tokens":3,"cache_creation_input_tokens":2}"#,
        "input 5, read 3, write5m 2, output 1",
    ),
    // The standard name wins, whatever the order.
    (
        UsageShape::Chat,
        r#"{"cached_tokens":9,"prompt_tokens_details":{"cached_tokens":3},"prompt_tokens":10,"completion_tokens":1}"#,
        "input 7, read 3, output 1",
    ),
    (UsageShape::Chat, r#"{"prompt_tokens":10,"total_tokens":15}"#, "input 10, output 5"),
    (UsageShape::Chat, r#"{"completion_tokens":5,"total_tokens":15}"#, "input 10, output 5"),
    // Case 127; the input stands beside what was cached.
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":9,"cache_read_input_tokens":1,"cache_creation_input_tokens":0,"output_tokens":5}"#,
        "input 9, read 1, output 5",
    ),
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":60,
        "cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":50},"output_tokens":7,
        "output_tokens_details":{"thinking_tokens":4},"server_tool_use":{"web_search_requests":2},"service_tier":"standard"}"#,
        "input 3, read 100, write5m 10, write1h 50, output 3, reasoning 4",
    ),
    // The parts only; the parts below and above the total.
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":1,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":6}}"#,
        "input 1, write5m 5, write1h 6, output 1",
    ),
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":1,"output_tokens":1,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_1h_input_tokens":6}}"#,
        "input 1, write5m 14, write1h 6, output 1",
    ),
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":1,"output_tokens":1,"cache_creation_input_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":6}}"#,
        "input 1, write1h 4, output 1",
    ),
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":5,"output_tokens":2,"output_tokens_details":{"thinking_tokens":9}}"#,
        "input 5, reasoning 2",
    ),
    // Case 133: a stream that broke after its start.
    (UsageShape::Anthropic, r#"{"input_tokens":5}"#, "input 5"),
    // Turns of a tool loop are inside the totals, a compaction is not.
    (
        UsageShape::Anthropic,
        r#"{"input_tokens":50,"output_tokens":20,"iterations":[
        {"type":"compaction","input_tokens":1000,"output_tokens":30,"cache_read_input_tokens":7,"cache_creation_input_tokens":8,
         "cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":5}},
        {"type":"message","input_tokens":30,"output_tokens":15,"cache_read_input_tokens":0,"cache_creation_input_tokens":0},
        {"type":"compaction","input_tokens":100,"output_tokens":3},
        {"type":"fallback_message","input_tokens":20,"output_tokens":5,"model":"m"}]}"#,
        "input 1150, read 7, write5m 3, write1h 5, output 53",
    ),
    (
        UsageShape::Responses,
        r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":30,
        "cache_write_tokens_details":{"ttl_30m_tokens":10,"ttl_12h_tokens":20}},
        "output_tokens":50,"output_tokens_details":{"reasoning_tokens":45},"total_tokens":150}"#,
        "input 30, read 40, write5m 10, write1h 20, output 5, reasoning 45",
    ),
    // Realtime: part of the sound was cached.
    (
        UsageShape::Responses,
        r#"{"total_tokens":320,"input_tokens":200,"output_tokens":120,
        "input_token_details":{"text_tokens":80,"audio_tokens":120,"cached_tokens":60,"cached_tokens_details":{"text_tokens":20,"audio_tokens":40}},
        "output_token_details":{"text_tokens":20,"audio_tokens":100}}"#,
        "input 60, read 60, audio_in 80, output 20, audio_out 100",
    ),
    // Transcription and images.
    (
        UsageShape::Responses,
        r#"{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":4,"audio_tokens":10},"output_tokens":3,"total_tokens":17}"#,
        "input 4, audio_in 10, output 3",
    ),
    (
        UsageShape::Responses,
        r#"{"input_tokens":50,"input_tokens_details":{"text_tokens":10,"image_tokens":40},"output_tokens":500,
        "output_tokens_details":{"image_tokens":490,"text_tokens":10},"total_tokens":550}"#,
        "input 10, image_in 40, output 10, image_out 490",
    ),
    // Part of the pictures was cached.
    (
        UsageShape::Responses,
        r#"{"input_tokens":100,"input_tokens_details":{"text_tokens":20,"image_tokens":80,"cached_tokens":60,
        "cached_tokens_details":{"text_tokens":10,"image_tokens":50}},"output_tokens":1,"total_tokens":101}"#,
        "input 10, read 60, image_in 30, output 1",
    ),
    (
        UsageShape::Chat,
        r#"{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"text_tokens":20,"image_tokens":80,"cached_tokens":50}}"#,
        "read 50, image_in 50, output 1",
    ),
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":100,"candidatesTokenCount":1,"totalTokenCount":101,"cachedContentTokenCount":50,
        "promptTokensDetails":[{"modality":"TEXT","tokenCount":20},{"modality":"IMAGE","tokenCount":80}],
        "cacheTokensDetails":[{"modality":"IMAGE","tokenCount":50}]}"#,
        "input 20, read 50, image_in 30, output 1",
    ),
    // Case 131; thoughts and tool results stand beside.
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":20,"thoughtsTokenCount":30,"toolUsePromptTokenCount":5,"totalTokenCount":155}"#,
        "input 45, read 60, output 20, reasoning 30",
    ),
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":100,"candidatesTokenCount":20,"totalTokenCount":120,"cachedContentTokenCount":30,
        "promptTokensDetails":[{"modality":"TEXT","tokenCount":40},{"modality":"AUDIO","tokenCount":50},{"modality":"IMAGE","tokenCount":10}],
        "cacheTokensDetails":[{"modality":"AUDIO","tokenCount":30}],
        "candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":15},{"modality":"TEXT","tokenCount":5}],"trafficType":"ON_DEMAND"}"#,
        "input 40, read 30, image_in 10, audio_in 20, output 5, image_out 15",
    ),
    (
        UsageShape::Gemini,
        r#"{"prompt_token_count":7,"candidates_token_count":3,"total_token_count":10}"#,
        "input 7, output 3",
    ),
    // Zeros are left out: no candidates yet, only thoughts; the total says what is missing.
    (UsageShape::Gemini, r#"{"promptTokenCount":7,"totalTokenCount":7}"#, "input 7"),
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":7,"thoughtsTokenCount":9,"totalTokenCount":16}"#,
        "input 7, reasoning 9",
    ),
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":7,"thoughtsTokenCount":9,"totalTokenCount":20}"#,
        "input 7, output 4, reasoning 9",
    ),
    (
        UsageShape::Gemini,
        r#"{"candidatesTokenCount":7,"thoughtsTokenCount":9,"totalTokenCount":20}"#,
        "input 4, output 7, reasoning 9",
    ),
    // Thoughts inside the candidates, seen from the total.
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":7,"candidatesTokenCount":12,"thoughtsTokenCount":9,"totalTokenCount":19}"#,
        "input 7, output 3, reasoning 9",
    ),
    (
        UsageShape::Gemini,
        r#"{"promptTokenCount":7,"cachedContentTokenCount":9,"candidatesTokenCount":1}"#,
        "read 7, output 1",
    ),
];

fn shown(usage: &Usage) -> String {
    let all = [
        ("input", usage.input),
        ("read", usage.cache_read),
        ("write5m", usage.cache_write_5m),
        ("write1h", usage.cache_write_1h),
        ("image_in", usage.image_input),
        ("audio_in", usage.audio_input),
        ("output", usage.output),
        ("reasoning", usage.reasoning),
        ("image_out", usage.image_output),
        ("audio_out", usage.audio_output),
    ];
    let said: Vec<_> = all.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name} {n}")).collect();
    said.join(", ")
}

/// MM9: cached tokens of pictures were billed again as tokens of pictures. Each token is in one
/// counter.
#[test]
fn every_shape_as_a_table() {
    for (shape, report, expected) in TABLE {
        let usage = read(*shape, report).unwrap_or_else(|| panic!("{report}"));
        assert_eq!(shown(&usage), *expected, "{shape:?} {report}");
    }
}

/// A number a provider might send; small ones more often, so that details collide with totals.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..40u64, 1 => 0..=MOST]
}

fn object(names: &'static [&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(prop::option::weighted(0.7, prop::option::weighted(0.9, number())), names.len()).prop_map(
        move |values| {
            let members = names.iter().zip(values);
            members.filter_map(|(name, value)| Some(((*name).to_owned(), json!(value?)))).collect()
        },
    )
}

fn modes() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["TEXT", "AUDIO", "IMAGE", "VIDEO", "DOCUMENT"]);
    prop::collection::vec((kind, number()), 0..4)
        .prop_map(|list| list.into_iter().map(|(kind, n)| json!({"modality": kind, "tokenCount": n / 4})).collect())
}

fn chat_report() -> impl Strategy<Value = Value> {
    let top =
        object(&["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "prompt_cache_hit_tokens"]);
    let input = object(&["cached_tokens", "cache_write_tokens", "audio_tokens", "image_tokens", "text_tokens"]);
    let output = object(&["reasoning_tokens", "audio_tokens", "image_tokens", "accepted_prediction_tokens"]);
    (top, input, output).prop_map(|(mut top, input, output)| {
        top.insert("prompt_tokens_details".into(), input.into());
        top.insert("completion_tokens_details".into(), output.into());
        top.into()
    })
}

fn responses_report() -> impl Strategy<Value = Value> {
    let top = object(&["input_tokens", "output_tokens", "total_tokens"]);
    let input = object(&["cached_tokens", "cache_write_tokens", "audio_tokens", "image_tokens"]);
    let writes = object(&["ttl_30m_tokens", "ttl_12h_tokens"]);
    let cached = object(&["audio_tokens", "image_tokens", "text_tokens"]);
    let output = object(&["reasoning_tokens", "audio_tokens"]);
    (top, input, writes, cached, output, any::<bool>()).prop_map(
        |(mut top, mut input, writes, cached, output, plural)| {
            input.insert("cache_write_tokens_details".into(), writes.into());
            input.insert("cached_tokens_details".into(), cached.into());
            let s = if plural { "s" } else { "" };
            top.insert(format!("input_token{s}_details"), input.into());
            top.insert(format!("output_token{s}_details"), output.into());
            top.into()
        },
    )
}

fn anthropic_report() -> impl Strategy<Value = Value> {
    const NAMES: &[&str] = &["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let lives = || object(&["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"]);
    let kind = prop::sample::select(vec!["message", "compaction", "advisor_message", "fallback_message", "later"]);
    let entry = (object(NAMES), kind).prop_map(|(mut entry, kind)| {
        entry.insert("type".into(), kind.into());
        Value::from(entry)
    });
    let thinking = object(&["thinking_tokens"]);
    (object(NAMES), lives(), thinking, prop::collection::vec(entry, 0..4)).prop_map(
        |(mut top, lives, thinking, entries)| {
            top.insert("cache_creation".into(), lives.into());
            top.insert("output_tokens_details".into(), thinking.into());
            top.insert("iterations".into(), entries.into());
            top.into()
        },
    )
}

fn gemini_report() -> impl Strategy<Value = Value> {
    let top = object(&[
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "toolUsePromptTokenCount",
        "cachedContentTokenCount",
        "totalTokenCount",
    ]);
    (top, modes(), modes(), modes()).prop_map(|(mut top, prompt, cache, out)| {
        top.insert("promptTokensDetails".into(), prompt);
        top.insert("cacheTokensDetails".into(), cache);
        top.insert("candidatesTokensDetails".into(), out);
        top.into()
    })
}

/// The inclusive shapes: input and output are what the report says, or what its total leaves.
fn totals_of_inclusive(report: &Value, input: &str, output: &str, usage: &Usage) -> Result<(), TestCaseError> {
    let (input, output, total) = (report[input].as_u64(), report[output].as_u64(), report["total_tokens"].as_u64());
    if let Some(input) = input {
        prop_assert_eq!(usage.input_total(), input);
    }
    match (input, output, total) {
        (Some(input), Some(output), total) if usage.output_total() != output => {
            // Only a total that says so puts the reasoning beside the output.
            prop_assert_eq!(Some(input + usage.output_total()), total);
            prop_assert_eq!(usage.output_total(), output + usage.reasoning);
        }
        (Some(_), Some(_), _) => {}
        _ => prop_assert_eq!(usage.input_total() + usage.output_total(), total.unwrap()),
    }
    Ok(())
}

proptest! {
    #[test]
    fn chat_totals_come_back(report in chat_report()) {
        if let Some(usage) = read(UsageShape::Chat, &report.to_string()) {
            totals_of_inclusive(&report, "prompt_tokens", "completion_tokens", &usage)?;
            let read = [&report["prompt_tokens_details"]["cached_tokens"], &report["cached_tokens"], &report["prompt_cache_hit_tokens"]];
            let most = read.iter().filter_map(|n| n.as_u64()).max().unwrap_or(0);
            prop_assert!(usage.cache_read <= most);
        }
    }

    #[test]
    fn responses_totals_come_back(report in responses_report()) {
        if let Some(usage) = read(UsageShape::Responses, &report.to_string()) {
            totals_of_inclusive(&report, "input_tokens", "output_tokens", &usage)?;
        }
    }

    #[test]
    fn anthropic_totals_come_back(report in anthropic_report()) {
        let Some(usage) = read(UsageShape::Anthropic, &report.to_string()) else { return Ok(()) };
        let beside: Vec<&Value> = report["iterations"].as_array().unwrap().iter()
            .filter(|entry| entry["type"] == "compaction" || entry["type"] == "advisor_message").collect();
        let sum = |name: &str| -> u64 {
            report[name].as_u64().unwrap_or(0) + beside.iter().map(|entry| entry[name].as_u64().unwrap_or(0)).sum::<u64>()
        };
        prop_assert_eq!(usage.input, sum("input_tokens"));
        prop_assert_eq!(usage.cache_read, sum("cache_read_input_tokens"));
        prop_assert_eq!(usage.output_total(), sum("output_tokens"));
        let lives = &report["cache_creation"];
        let parts = lives["ephemeral_5m_input_tokens"].as_u64().unwrap_or(0) + lives["ephemeral_1h_input_tokens"].as_u64().unwrap_or(0);
        let own = if report["cache_creation_input_tokens"].is_u64() { 0 } else { parts };
        prop_assert_eq!(usage.cache_write_5m + usage.cache_write_1h, sum("cache_creation_input_tokens") + own);
    }

    #[test]
    fn gemini_totals_come_back(report in gemini_report()) {
        let Some(usage) = read(UsageShape::Gemini, &report.to_string()) else { return Ok(()) };
        let get = |name: &str| report[name].as_u64();
        let tool = get("toolUsePromptTokenCount").unwrap_or(0);
        let thoughts = get("thoughtsTokenCount").unwrap_or(0);
        match (get("promptTokenCount"), get("candidatesTokenCount")) {
            (Some(prompt), Some(candidates)) => {
                prop_assert_eq!(usage.input_total(), prompt + tool);
                let inside = usage.output_total() == candidates && get("totalTokenCount") == Some(prompt + tool + candidates);
                prop_assert!(inside || usage.output_total() == candidates + thoughts);
            }
            (Some(prompt), None) => {
                prop_assert_eq!(usage.input_total(), prompt + tool);
                let total = get("totalTokenCount").unwrap_or(0).saturating_sub(prompt + tool);
                prop_assert_eq!(usage.output_total(), total.max(thoughts));
            }
            (None, _) => prop_assert_eq!(usage.input_total() + usage.output_total(), get("totalTokenCount").unwrap()),
        }
    }

    #[test]
    fn what_is_written_is_read_back(usage in any_usage()) {
        for shape in SHAPES {
            let mut text = Vec::new();
            usage.write(shape, &mut text);
            let text = String::from_utf8(text).unwrap();
            let expected = reported_in(shape, usage);
            let back = read(shape, &text);
            prop_assert_eq!(back.unwrap_or_default(), expected, "{:?} {}", shape, text);
            prop_assert_eq!(expected.input_total(), usage.input_total());
            prop_assert_eq!(expected.output_total(), usage.output_total());
        }
    }

    /// Tokens are neither made nor lost between dialects, whole or streamed.
    #[test]
    fn tokens_are_conserved_between_dialects(usage in any_usage()) {
        prop_assume!(usage.output_total() > 0 && usage.input_total() > 0);
        for from in Dialect::ALL {
            let mut text = Vec::new();
            usage.write(from.usage(), &mut text);
            let report: Value = serde_json::from_slice(&text).unwrap();
            let body = reply(from, report);
            let reported = reported_in(from.usage(), usage);
            for to in Dialect::ALL {
                let there = convert(from, to, Bytes::from(body.clone()), &ToolNames::default(), &Voice::default()).unwrap();
                prop_assert_eq!(there.facts.usage, Some(reported));
                let back = convert(to, to, there.body, &ToolNames::default(), &Voice::default()).unwrap();
                prop_assert_eq!(back.facts.usage, Some(reported_in(to.usage(), reported)), "{:?} to {:?}", from, to);
            }
        }
    }

    #[test]
    fn merging_never_adds_up(first in chat_report(), second in chat_report()) {
        let report = |value: &Value| UsageReport::read(UsageShape::Chat, value.to_string().as_bytes()).unwrap();
        let (first_read, second_read) = (report(&first), report(&second));
        let mut merged = first_read;
        if !merged.merge(&second_read) {
            prop_assert_eq!(merged, first_read);
            return Ok(());
        }
        // As if the later report had been written over the earlier one.
        let mut written = first.clone();
        overwrite(&mut written, &second);
        let names = ["cached_tokens", "prompt_cache_hit_tokens"];
        if names.iter().all(|name| first[name].is_null() && second[name].is_null()) {
            prop_assert_eq!(merged, report(&written));
        }
        let mut again = merged;
        again.merge(&second_read);
        prop_assert_eq!(again, merged);
    }

    #[test]
    fn no_text_makes_it_panic(text in r#"[\[\]{}:,"0-9eE+.\\a-zA-Z_-]{0,60}"#, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for shape in SHAPES {
            let _ = read(shape, &text);
            let _ = UsageReport::read(shape, &bytes);
        }
    }
}

fn overwrite(old: &mut Value, new: &Value) {
    for (key, value) in new.as_object().unwrap() {
        match value {
            Value::Null => {}
            Value::Object(_) if old[key].is_object() => overwrite(&mut old[key], value),
            _ => old[key] = value.clone(),
        }
    }
}

fn any_usage() -> impl Strategy<Value = Usage> {
    prop::array::uniform10(prop_oneof![Just(0), 0..1000u64, 0..=MOST / 10]).prop_map(|n| Usage {
        input: n[0],
        cache_read: n[1],
        cache_write_5m: n[2],
        cache_write_1h: n[3],
        image_input: n[4],
        audio_input: n[5],
        output: n[6],
        reasoning: n[7],
        image_output: n[8],
        audio_output: n[9],
    })
}

/// What a shape can tell of these counters.
fn reported_in(shape: UsageShape, usage: Usage) -> Usage {
    match shape {
        UsageShape::Chat | UsageShape::Responses => usage,
        UsageShape::Anthropic => Usage {
            input: usage.input + usage.image_input + usage.audio_input,
            image_input: 0,
            audio_input: 0,
            output: usage.output + usage.image_output + usage.audio_output,
            image_output: 0,
            audio_output: 0,
            ..usage
        },
        UsageShape::Gemini => Usage {
            input: usage.input + usage.cache_write_5m + usage.cache_write_1h,
            cache_write_5m: 0,
            cache_write_1h: 0,
            ..usage
        },
    }
}

#[test]
fn merge_rule() {
    let report = |shape, text: &str| UsageReport::read(shape, text.as_bytes()).unwrap();
    let mut usage = report(
        UsageShape::Chat,
        r#"{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}"#,
    );
    usage.merge(&report(UsageShape::Chat, r#"{"prompt_tokens":3,"completion_tokens":7}"#));
    assert_eq!(shown(&usage.usage().unwrap()), "input 1, read 2, output 7");
    assert!(!usage.merge(&report(UsageShape::Chat, r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#)));
    assert_eq!(shown(&usage.usage().unwrap()), "input 1, read 2, output 7");
    // Case 129: the breakdown is only in the first report.
    let mut usage = report(
        UsageShape::Anthropic,
        r#"{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":50,
        "cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":50},"output_tokens":1}"#,
    );
    usage.merge(&report(UsageShape::Anthropic, r#"{"output_tokens":7}"#));
    assert_eq!(shown(&usage.usage().unwrap()), "input 3, read 100, write1h 50, output 7");
    // Case 130: a clone that tells its input at the end.
    let mut usage = report(UsageShape::Anthropic, r#"{"input_tokens":0,"output_tokens":0}"#);
    usage.merge(&report(UsageShape::Anthropic, r#"{"input_tokens":30,"cache_read_input_tokens":7,"output_tokens":4}"#));
    assert_eq!(shown(&usage.usage().unwrap()), "input 30, read 7, output 4");
}

/// Case 128, and what each dialect's client reads.
#[test]
fn written_in_each_shape() {
    let usage = Usage { input: 200, cache_read: 2000, cache_write_5m: 400, output: 300, ..Usage::default() };
    let written = |shape| {
        let mut out = Vec::new();
        usage.write(shape, &mut out);
        serde_json::from_slice::<Value>(&out).unwrap()
    };
    let chat = written(UsageShape::Chat);
    assert_eq!((&chat["prompt_tokens"], &chat["total_tokens"]), (&json!(2600), &json!(2900)));
    assert_eq!(chat["prompt_tokens_details"], json!({"cached_tokens": 2000, "cache_write_tokens": 400}));
    assert_eq!(chat["completion_tokens_details"], json!({}), "an absent reasoning count stays absent");
    let claude = written(UsageShape::Anthropic);
    assert_eq!((&claude["input_tokens"], &claude["cache_creation_input_tokens"]), (&json!(200), &json!(400)));
    let responses = written(UsageShape::Responses);
    assert_eq!(responses["output_tokens_details"], json!({"reasoning_tokens": 0}), "strict clients insist");
    let gemini = written(UsageShape::Gemini);
    assert_eq!((&gemini["promptTokenCount"], &gemini["cachedContentTokenCount"]), (&json!(2600), &json!(2000)));
}
