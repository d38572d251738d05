//! Streams, from golden files: what the upstream sent, what the client gets, what the meter says.
//!
//! Each file is read in one chunk, event by event, and byte by byte; all must agree with the file.
//! After a wanted change: `cargo test -p tollgate-dialects --test it -- --ignored stream::rewrite`.

use bytes::Bytes;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tollgate_dialects::ReplyStream;
use tollgate_dialects::chat::{BrokenStream, HEARTBEAT, StreamEnd, StreamSetup, error_event};
use tollgate_wire::StreamFault;
use tollgate_wire::error::Code;

struct Golden {
    path: PathBuf,
    setup: String,
    upstream: String,
    expected: String,
}

fn golden_files() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chat");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (setup, rest) = text.split_once("\n=== upstream\n").unwrap();
        let (upstream, expected) = rest.split_once("=== client\n").unwrap();
        Golden {
            path,
            setup: setup.trim_start_matches("setup:").trim().to_owned(),
            upstream: upstream.to_owned(),
            expected: expected.to_owned(),
        }
    };
    paths.into_iter().map(read).collect()
}

fn stream(setup: &str) -> ReplyStream {
    ReplyStream::from(StreamSetup {
        choices: setup.split(' ').find_map(|word| word.strip_prefix("n=")).map_or(1, |n| n.parse().unwrap()),
        wants_usage: setup.contains("wants_usage"),
        rename_to: setup.split(' ').find_map(|word| word.strip_prefix("rename=")).map(str::to_owned),
        max_event_bytes: 1 << 20,
    })
}

/// Plays chunks and writes the rest of the golden file.
fn play(setup: &str, chunks: &[&[u8]]) -> String {
    let mut stream = stream(setup);
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
    let mut ending = format!("fault {fault:?}");
    if fault.is_none() {
        let end = stream.finish();
        if let StreamEnd::Complete { tail: bytes } | StreamEnd::Truncated { rest: bytes } = &end {
            client.extend_from_slice(bytes);
        }
        ending = format!("{end:?}");
    }
    let mut out = String::from_utf8(client).unwrap();
    out.push_str("=== facts\n");
    writeln!(out, "end: {ending}").unwrap();
    writeln!(out, "usage: {:?}", stream.usage()).unwrap();
    writeln!(out, "raw usage: {:?}", stream.raw_usage()).unwrap();
    let (best, estimated) = stream.best_usage(1000);
    let totals = (best.input_total(), best.output_total());
    writeln!(out, "to bill with a prompt of 1000: {totals:?}, estimated: {estimated}").unwrap();
    writeln!(
        out,
        "output: {}, counted: {}, done: {}, events: {}",
        stream.has_output(),
        stream.counted_output(),
        stream.saw_done(),
        stream.events()
    )
    .unwrap();
    out
}

#[test]
fn golden_files_hold_however_the_bytes_are_cut() {
    let files = golden_files();
    assert!(files.len() > 30);
    for file in files {
        let upstream = file.upstream.as_bytes();
        let name = file.path.display();
        assert_eq!(play(&file.setup, &[upstream]), file.expected, "{name}, in one chunk");
        let bytes: Vec<&[u8]> = upstream.chunks(1).collect();
        // The tail in `end:` depends on the cuts only when a stream is left unterminated, so facts
        // agree too.
        assert_eq!(play(&file.setup, &bytes), file.expected, "{name}, byte by byte");
        for size in [2, 7, 64, 200] {
            let pieces: Vec<&[u8]> = upstream.chunks(size).collect();
            assert_eq!(play(&file.setup, &pieces), file.expected, "{name}, {size} bytes at a time");
        }
    }
}

#[test]
#[ignore = "writes the golden files anew"]
fn rewrite() {
    for file in golden_files() {
        let played = play(&file.setup, &[file.upstream.as_bytes()]);
        let text = format!("setup: {}\n=== upstream\n{}=== client\n{played}", file.setup, file.upstream);
        fs::write(&file.path, text).unwrap();
    }
}

const EVENT: &[u8] =
    br#"data: {"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;

fn event() -> Vec<u8> {
    [EVENT, b"\n\n"].concat()
}

#[test]
fn unchanged_chunks_are_not_copied() {
    let mut stream = stream("rename=m");
    let chunk = Bytes::from(event().repeat(3));
    let sent = stream.feed(chunk.clone()).unwrap();
    assert_eq!((sent.as_ptr(), sent.len()), (chunk.as_ptr(), chunk.len()));
    // Nor is what comes before half an event.
    let half = Bytes::from([event(), EVENT[..30].to_vec()].concat());
    let sent = stream.feed(half.clone()).unwrap();
    assert_eq!((sent.as_ptr(), sent.len()), (half.as_ptr(), event().len()));
}

#[test]
fn an_event_is_sent_when_its_blank_line_is_there() {
    let mut stream = stream("");
    assert!(stream.feed(Bytes::from_static(EVENT)).unwrap().is_empty());
    assert!(stream.feed(Bytes::from_static(b"\n")).unwrap().is_empty());
    assert_eq!(stream.feed(Bytes::from_static(b"\n")).unwrap(), event());
}

#[test]
fn an_endless_line_is_cut_and_what_came_before_stays() {
    let mut stream =
        ReplyStream::from(StreamSetup { wants_usage: false, rename_to: None, choices: 1, max_event_bytes: 1000 });
    let first = [event(), b"data: ".to_vec()].concat();
    assert_eq!(stream.feed(Bytes::from(first)).unwrap(), event());
    let mut fault = None;
    for _ in 0..100 {
        if let Err(broken) = stream.feed(Bytes::from(vec![b'x'; 64])) {
            fault = Some(broken.fault);
            break;
        }
    }
    assert_eq!(fault, Some(StreamFault::TooLong));
    assert!(stream.feed(Bytes::from(event())).unwrap().is_empty());
    assert!(stream.has_output() && stream.counted_output() > 0);
}

#[test]
fn four_mebibytes_a_byte_at_a_time() {
    let time = |len: usize| {
        let text = "x".repeat(len);
        let line = format!(r#"data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#) + "\n\n";
        let line = Bytes::from(line);
        let mut stream = ReplyStream::from(StreamSetup {
            wants_usage: false,
            rename_to: None,
            choices: 1,
            max_event_bytes: 8 << 20,
        });
        let start = Instant::now();
        let mut sent = 0;
        for at in 0..line.len() {
            sent += stream.feed(line.slice(at..at + 1)).unwrap().len();
        }
        assert_eq!(sent, line.len());
        start.elapsed()
    };
    // A machine that stands still for a moment spoils one try; what is not linear spoils all of
    // them.
    let mut seen = Vec::new();
    let linear = std::iter::repeat_with(|| (time(1 << 20), time(4 << 20))).take(10).any(|(small, large)| {
        seen.push((small, large));
        large < small * 16
    });
    assert!(linear, "{seen:?}");
}

#[test]
fn an_early_report_does_not_hide_later_output() {
    let mut stream = stream("");
    let early = br#"data: {"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":0,"total_tokens":50}}"#;
    stream.feed(Bytes::from([&early[..], b"\n\n"].concat())).unwrap();
    for _ in 0..100 {
        stream.feed(Bytes::from(event())).unwrap();
    }
    let (usage, estimated) = stream.best_usage(9999);
    assert!(estimated && !stream.usage_is_current());
    assert_eq!((usage.input, usage.output), (50, stream.counted_output()));
}

#[test]
fn our_own_events() {
    let event = error_event(Code::UpstreamError, "The provider\nleft.");
    let text = std::str::from_utf8(&event).unwrap();
    assert_eq!(
        text,
        "data: {\"error\":{\"message\":\"The provider\\nleft.\",\"type\":\"server_error\",\"param\":null,\"code\":\"upstream_error\"}}\n\n"
    );
    assert_eq!(HEARTBEAT, b": hb\n");
}
