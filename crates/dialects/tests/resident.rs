//! What streams keep, as the kernel counts it: the memory of this process, which also holds what a
//! debug text (`memory.rs`) does not show, such as room that was reserved and never used. One test
//! alone in its process, so that nobody else's memory is measured.

use bytes::Bytes;
use tollgate_dialects::{ReplyStream, Setup, ToolNames, Voice};
use tollgate_wire::Dialect;

/// Streams that are open at the same time, and the pieces of 16 KiB that each is fed: first these,
/// then those.
const STREAMS: usize = 12;
const FIRST: usize = 8;
const THEN: usize = 40;
/// What may be added by the second lot, of 7.5 MiB: what is buffered of one event, and what the
/// allocator leaves lying about.
const MORE: usize = 2 << 20;

/// Bytes of this process in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel's own account");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).expect("KiB") << 10
}

fn stream(from: Dialect, to: Dialect) -> ReplyStream {
    let voice = Voice { id: "call_1".into(), model: "public".into(), created: 7, ..Voice::default() };
    ReplyStream::new(Setup { from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 })
}

/// What begins a stream, and one piece of a thought: no dialect keeps thoughts for anything.
fn pieces(from: Dialect) -> (&'static str, Bytes) {
    let text = "opens the gate. ".repeat(1 << 10);
    let (before, piece) = match from {
        Dialect::Chat => (
            "",
            format!(
                r#"data: {{"id":"c","model":"up","choices":[{{"index":0,"delta":{{"reasoning_content":"{text}"}}}}]}}"#
            ),
        ),
        Dialect::Anthropic => (
            concat!(
                r#"data: {"type":"message_start","message":{"id":"m","model":"up","usage":{"input_tokens":1,"output_tokens":1}}}"#,
                "\n\n",
                r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
                "\n\n"
            ),
            format!(
                r#"data: {{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":"{text}"}}}}"#
            ),
        ),
        Dialect::Responses => (
            concat!(
                r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"r","model":"up"}}"#,
                "\n\n"
            ),
            format!(
                r#"data: {{"type":"response.reasoning_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"{text}"}}"#
            ),
        ),
        Dialect::Gemini => (
            "",
            format!(
                r#"data: {{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{{"text":"{text}","thought":true}}]}}}}],"modelVersion":"up"}}"#
            ),
        ),
    };
    (before, Bytes::from(format!("{piece}\n\n")))
}

/// How much the process grew while open streams of this pair were fed the second lot.
fn grown(from: Dialect, to: Dialect) -> usize {
    let (before, piece) = pieces(from);
    let mut open: Vec<ReplyStream> = (0..STREAMS).map(|_| stream(from, to)).collect();
    for stream in &mut open {
        stream.feed(Bytes::from_static(before.as_bytes())).expect("an event");
    }
    let mut feed = |pieces: usize| {
        for _ in 0..pieces {
            for stream in &mut open {
                // A copy of its own, as from a socket.
                stream.feed(Bytes::copy_from_slice(&piece)).expect("an event");
            }
        }
        resident()
    };
    let first = feed(FIRST);
    feed(THEN).saturating_sub(first)
}

#[test]
fn the_process_does_not_grow_with_its_streams() {
    let fed = STREAMS * THEN * (16 << 10);
    assert!(fed > 3 * MORE);
    // The measure itself: a Responses client of another provider needs all of it at the end, and
    // that must show.
    let buffered = grown(Dialect::Chat, Dialect::Responses);
    assert!(buffered > fed / 2, "{buffered} of {fed} bytes were seen");
    for from in Dialect::ALL {
        for to in Dialect::ALL.into_iter().filter(|to| *to != Dialect::Responses || from == Dialect::Responses) {
            let more = grown(from, to);
            assert!(more < MORE, "{from:?} to {to:?}: {more} of {fed} bytes are buffered");
        }
    }
}
