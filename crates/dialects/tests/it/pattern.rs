//! Events that are alike are read by their pattern. Whatever comes, that must show nowhere: a
//! stream that arrives byte by byte is never read by a pattern, so it is the measure for one that
//! arrives event by event, or all at once.

use bytes::Bytes;
use proptest::prelude::*;
use tollgate_dialects::chat::{BrokenStream, StreamEnd, StreamSetup};
use tollgate_dialects::{ReplyStream, Setup, ToolNames, Voice};
use tollgate_wire::Dialect;

/// What the client got, and everything the meter says.
fn play<'a>(rename: bool, chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, String) {
    let mut stream = ReplyStream::from(StreamSetup {
        choices: 1,
        wants_usage: true,
        rename_to: rename.then(|| "public".to_owned()),
        max_event_bytes: 400,
    });
    let mut client = Vec::new();
    let mut fault = None;
    for chunk in chunks {
        match stream.feed(Bytes::copy_from_slice(chunk)) {
            Ok(bytes) => client.extend_from_slice(&bytes),
            Err(BrokenStream { before, fault: found }) => {
                client.extend_from_slice(&before);
                fault = Some(found);
                break;
            }
        }
    }
    let facts = (stream.counted_output(), stream.has_output(), stream.events(), stream.saw_done());
    let usage = (stream.usage().copied(), stream.usage_is_current(), stream.raw_usage().map(str::to_owned));
    let mut end = String::new();
    if fault.is_none() {
        let ended = stream.finish();
        if let StreamEnd::Complete { tail: bytes } | StreamEnd::Truncated { rest: bytes } = &ended {
            client.extend_from_slice(bytes);
        }
        end = format!("{ended:?}");
    }
    assert!(!client.contains(&b'\r'), "line feeds only");
    (client, format!("{facts:?} {usage:?} {fault:?} {end}"))
}

fn event(delta: &str, rest: &str, padding: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"upstream\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":null{rest}}}],\"usage\":null{padding}}}\n\n"
    )
}

/// What stands between the quotes of a string: mostly sound, sometimes not.
fn said() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-zäλ中 .,{}:]{0,20}",
        2 => Just(r#"a \"quoted\" \\ word\n\u4e2d"#.to_owned()),
        1 => Just("\u{2028}\u{85}".to_owned()),
        1 => Just(r#"","role":"x"#.to_owned()),
        1 => Just("x".repeat(300)),
        1 => prop_oneof![Just("a\tb".to_owned()), Just("\\x".to_owned()), Just("a\"b".to_owned()), Just("a\nb".to_owned())],
    ]
}

fn one() -> impl Strategy<Value = String> {
    let plain = ",\"finish_reason\":null";
    let padding = |noise: &str| format!(",\"obfuscation\":\"{noise}\"");
    prop_oneof![
        8 => said().prop_map(move |text| event(&format!("{{\"content\":\"{text}\"}}"), plain, "")),
        6 => (said(), "[a-zA-Z0-9]{0,9}").prop_map(move |(text, noise)| {
            event(&format!("{{\"content\":\"{text}\"}}"), plain, &padding(&noise))
        }),
        4 => said().prop_map(move |text| event(&format!("{{\"reasoning_content\":\"{text}\",\"content\":null}}"), plain, "")),
        2 => (said(), said()).prop_map(move |(one, two)| {
            event(&format!("{{\"content\":\"{one}\",\"reasoning\":\"{two}\"}}"), plain, "")
        }),
        2 => said().prop_map(move |text| {
            let tools = format!("{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{text}\"}}}}]}}");
            event(&tools, plain, "")
        }),
        1 => said().prop_map(|text| event(&format!("{{\"content\":\"{text}\"}}"), ",\"finish_reason\":\"stop\"", "")),
        1 => Just("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\n".to_owned()),
        1 => Just(": a comment\n\n".to_owned()),
        1 => said().prop_map(move |text| event(&format!("{{\"content\":\"{text}\"}}"), plain, "").replace('\n', "\r\n")),
        1 => Just("data: {\"error\":{\"message\":\"no\"}}\n\n".to_owned()),
        1 => Just("data: [DONE]\n\n".to_owned()),
    ]
}

/// The same event several times over, with other words: streams are like that.
fn run() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![proptest::collection::vec(one(), 1..4), (one(), 1usize..12).prop_map(|(one, times)| vec![one; times]),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_pattern_shows_nowhere(runs in proptest::collection::vec(run(), 1..8), rename in any::<bool>(), size in 2usize..600) {
        let events: Vec<String> = runs.into_iter().flatten().collect();
        let all: Vec<u8> = events.concat().into_bytes();
        let measure = play(rename, all.chunks(1));
        prop_assert_eq!(&play(rename, events.iter().map(String::as_bytes)), &measure, "event by event");
        prop_assert_eq!(&play(rename, std::iter::once(all.as_slice())), &measure, "in one piece");
        prop_assert_eq!(&play(rename, all.chunks(size)), &measure, "{} bytes at a time", size);
    }
}

/// The same for a stream that stays in another dialect.
fn pass<'a>(dialect: Dialect, chunks: impl Iterator<Item = &'a [u8]>) -> (String, String) {
    let voice = Voice { id: "call_1".into(), model: "public".into(), created: 1, ..Voice::default() };
    let setup =
        Setup { from: dialect, to: dialect, voice, names: ToolNames::default(), rename: true, max_event_bytes: 400 };
    let mut stream = tollgate_dialects::ReplyStream::new(setup);
    let mut client = Vec::new();
    let mut end = String::new();
    for chunk in chunks {
        match stream.feed(Bytes::copy_from_slice(chunk)) {
            Ok(bytes) => client.extend_from_slice(&bytes),
            Err(BrokenStream { before, fault }) => {
                client.extend_from_slice(&before);
                end = format!("{fault:?}");
                break;
            }
        }
    }
    let facts =
        (stream.counted_output(), stream.has_output(), stream.events(), stream.saw_done(), stream.usage_is_current());
    if end.is_empty() {
        end = format!("{:?}", stream.finish());
    }
    // Where a stream ends in an error, its number goes on from the last one that passed.
    client.extend_from_slice(&stream.error_event(tollgate_wire::error::Code::UpstreamError, "x"));
    (String::from_utf8(client).unwrap(), format!("{facts:?} {end}"))
}

fn named(name: &str, rest: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"{rest}}}\n\n")
}

fn claude() -> impl Strategy<Value = String> {
    let delta = |kind: &str, name: &str, text: &str, index: u8| {
        named(
            "content_block_delta",
            &format!(",\"index\":{index},\"delta\":{{\"type\":\"{kind}\",\"{name}\":\"{text}\"}}"),
        )
    };
    prop_oneof![
        8 => (said(), 0u8..2).prop_map(move |(text, index)| delta("text_delta", "text", &text, index)),
        4 => said().prop_map(move |text| delta("thinking_delta", "thinking", &text, 0)),
        2 => said().prop_map(move |text| delta("input_json_delta", "partial_json", &text, 1)),
        1 => Just(named("content_block_start", ",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}")),
        1 => Just(named("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}")),
        1 => Just(named("ping", "")),
        1 => said().prop_map(move |text| delta("text_delta", "text", &text, 0).replace('\n', "\r\n")),
    ]
}

fn responses() -> impl Strategy<Value = String> {
    let delta = |name: &str, text: &str, number: u64, more: &str| {
        named(
            name,
            &format!(",\"sequence_number\":{number},\"item_id\":\"m\",\"output_index\":0,\"delta\":\"{text}\"{more}"),
        )
    };
    let noise = |noise: &str| format!(",\"obfuscation\":\"{noise}\"");
    prop_oneof![
        8 => (said(), 0u64..40).prop_map(move |(text, number)| delta("response.output_text.delta", &text, number, "")),
        6 => (said(), 0u64..40, "[a-z]{0,9}").prop_map(move |(text, number, pad)| {
            delta("response.output_text.delta", &text, number, &noise(&pad))
        }),
        3 => said().prop_map(move |text| delta("response.reasoning_text.delta", &text, 7, "")),
        1 => said().prop_map(|text| named("response.output_text.delta", &format!(",\"item_id\":\"m\",\"delta\":\"{text}\""))),
        1 => Just(named("response.created", ",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"model\":\"up\"}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn a_pattern_shows_in_no_other_dialect(
        claude in proptest::collection::vec(claude(), 1..24),
        responses in proptest::collection::vec(responses(), 1..24),
        size in 2usize..600,
    ) {
        for (dialect, events) in [(Dialect::Anthropic, claude), (Dialect::Responses, responses)] {
            let all: Vec<u8> = events.concat().into_bytes();
            let measure = pass(dialect, all.chunks(1));
            prop_assert_eq!(&pass(dialect, events.iter().map(String::as_bytes)), &measure, "event by event");
            prop_assert_eq!(&pass(dialect, std::iter::once(all.as_slice())), &measure, "in one piece");
            prop_assert_eq!(&pass(dialect, all.chunks(size)), &measure, "{} bytes at a time", size);
        }
    }
}
