//! The golden matrix: every case in every target dialect. Requests, whole replies and streams.
//!
//! Each file in `tests/golden/{requests,replies,events}` begins with its dialect and the original;
//! the rest is what it becomes. After a wanted change:
//! `cargo test -p tollgate-dialects --test it -- --ignored matrix::rewrite`, then read the
//! difference.

use bytes::Bytes;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path as File, PathBuf};
use tollgate_dialects::{
    BrokenStream, CheckedRequest, Echo, Path, ReplyStream, Setup, StreamEnd, Target, ToolNames, Voice, convert,
};
use tollgate_wire::Dialect;

struct Golden {
    path: PathBuf,
    from: Dialect,
    words: String,
    original: String,
    expected: String,
}

const MARK: &str = "\n=== original\n";
const RESULT: &str = "=== result\n";

fn dialect(word: &str) -> Dialect {
    match word {
        "chat" => Dialect::Chat,
        "anthropic" => Dialect::Anthropic,
        "responses" => Dialect::Responses,
        "gemini" => Dialect::Gemini,
        other => panic!("no dialect {other}"),
    }
}

fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "chat",
        Dialect::Anthropic => "anthropic",
        Dialect::Responses => "responses",
        Dialect::Gemini => "gemini",
    }
}

fn files(folder: &str) -> Vec<Golden> {
    let folder = File::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (words, rest) = text.split_once(MARK).unwrap_or_else(|| panic!("{}", path.display()));
        let (original, expected) = rest.split_once(RESULT).unwrap_or((rest, ""));
        let from = words.lines().next().unwrap().strip_prefix("from: ").unwrap();
        Golden {
            from: dialect(from),
            words: words.to_owned(),
            original: original.to_owned(),
            expected: expected.to_owned(),
            path,
        }
    };
    paths.into_iter().map(read).collect()
}

fn target(to: Dialect, words: &str) -> Target {
    let mut target = Target::new(to, "up-model");
    target.strict = words.contains("strict");
    target.adaptive_thinking = !words.contains("budget_thinking");
    target.system_turns = words.contains("system_turns");
    target.sampling = !words.contains("no_sampling");
    target.current_chat = !words.contains("old_chat");
    target.wants_reasoning_back = words.contains("reasoning_back");
    target.gemini3 = !words.contains("gemini2");
    target.native_schema = !words.contains("no_schema");
    target.cache_marks = words.contains("cache_marks");
    target.web_search = words.contains("search_options");
    target.thinks = !words.contains("unthinking");
    target
}

fn pretty(bytes: &[u8]) -> String {
    let value: Value =
        serde_json::from_slice(bytes).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(bytes)));
    serde_json::to_string_pretty(&value).unwrap()
}

fn request(golden: &Golden) -> CheckedRequest {
    let path = Path { model: "gemini-x", stream: golden.words.contains("stream") };
    let path = (golden.from == Dialect::Gemini).then_some(path);
    CheckedRequest::read(golden.from, Bytes::from(golden.original.clone()), path).unwrap()
}

fn play_request(golden: &Golden) -> String {
    let request = request(golden);
    let mut out = format!(
        "facts: model {}, stream {}, most {:?}, choices {}, tier {:?}\n",
        request.model, request.stream, request.max_output, request.choices, request.service_tier
    );
    for to in Dialect::ALL {
        let target = target(to, &golden.words);
        writeln!(out, "=== {}", word(to)).unwrap();
        if to == golden.from {
            let sent = request.upstream_body(&Target::new(to, request.model.clone())).unwrap();
            assert!(sent.dropped.is_empty());
            if request.stream && to == Dialect::Chat {
                let asks = String::from_utf8(sent.body.to_vec()).unwrap();
                let plain = asks.replace(r#","stream_options":{"include_usage":true}"#, "");
                assert_eq!(plain, golden.original, "every byte but the request for usage");
            } else {
                assert_eq!(sent.body, golden.original, "every byte");
            }
            writeln!(out, "the same bytes").unwrap();
            continue;
        }
        match request.upstream_body(&target) {
            Ok(sent) => {
                writeln!(out, "{}", pretty(&sent.body)).unwrap();
                if !sent.dropped.is_empty() {
                    writeln!(out, "dropped: {}", sent.dropped).unwrap();
                }
                if sent.names != ToolNames::default() {
                    writeln!(out, "names: {:?}", sent.names).unwrap();
                }
            }
            Err(problem) => {
                let param = problem.param.unwrap_or_default();
                writeln!(out, "refused: {} `{param}` {}", problem.code.code(), problem.message).unwrap();
            }
        }
    }
    out
}

fn voice() -> Voice {
    Voice {
        id: "call_0abc".into(),
        model: "public".into(),
        created: 1_700_000_000,
        wants_usage: true,
        choices: 1,
        array: false,
        echo: Echo::of(br#"{"temperature":0.5,"instructions":"Be kind."}"#),
        ..Voice::default()
    }
}

fn play_reply(golden: &Golden) -> String {
    let mut out = String::new();
    for to in Dialect::ALL {
        let body = Bytes::from(golden.original.clone());
        writeln!(out, "=== {}", word(to)).unwrap();
        let Ok(converted) = convert(golden.from, to, body, &ToolNames::default(), &voice()) else {
            writeln!(out, "not a reply").unwrap();
            continue;
        };
        if to == Dialect::ALL[0] {
            let facts = &converted.facts;
            writeln!(
                out,
                "usage: {:?}\nraw: {:?}\noutput: {}, counted: {}, error: {:?}",
                facts.usage, facts.raw_usage, facts.has_output, facts.counted_output, facts.error
            )
            .unwrap();
        }
        if !converted.dropped.is_empty() {
            writeln!(out, "dropped: {}", converted.dropped).unwrap();
        }
        if converted.facts.error.is_none() {
            writeln!(out, "{}", pretty(&converted.body)).unwrap();
        }
    }
    out
}

/// Plays a stream cut into pieces of `size` bytes.
fn play_events(golden: &Golden, to: Dialect, size: usize) -> String {
    let mut voice = voice();
    voice.array = golden.words.contains("array");
    let setup =
        Setup { from: golden.from, to, voice, names: ToolNames::default(), rename: true, max_event_bytes: 1 << 20 };
    let mut stream = ReplyStream::new(setup);
    let mut client = Vec::new();
    let mut fault = None;
    for chunk in golden.original.as_bytes().chunks(size) {
        match stream.feed(Bytes::copy_from_slice(chunk)) {
            Ok(bytes) => client.extend_from_slice(&bytes),
            Err(BrokenStream { before, fault: found }) => {
                client.extend_from_slice(&before);
                fault = Some(found);
                break;
            }
        }
    }
    let mut ending = format!("{fault:?}");
    if fault.is_none() {
        let end = stream.finish();
        ending = match &end {
            StreamEnd::Complete { tail } => {
                client.extend_from_slice(tail);
                "complete".to_owned()
            }
            StreamEnd::Truncated { rest } => {
                client.extend_from_slice(rest);
                "truncated".to_owned()
            }
            StreamEnd::Fault(fault) => format!("{fault:?}"),
        };
    }
    if ending != "complete" {
        let code = tollgate_wire::error::Code::UpstreamError;
        client.extend_from_slice(&stream.error_event(code, "The provider failed."));
    }
    let mut out = String::from_utf8(client).unwrap();
    let (best, estimated) = stream.best_usage(1000);
    let totals = (best.input_total(), best.output_total());
    writeln!(out, "--- end: {ending}; usage: {:?}; raw: {:?}", stream.usage(), stream.raw_usage()).unwrap();
    writeln!(
        out,
        "--- to bill {totals:?}, estimated {estimated}; output {}, counted {}, done {}",
        stream.has_output(),
        stream.counted_output(),
        stream.saw_done()
    )
    .unwrap();
    if let Some(dropped) = stream.dropped() {
        writeln!(out, "--- dropped: {dropped}").unwrap();
    }
    out
}

fn play_all_events(golden: &Golden) -> String {
    let one = |to: Dialect| format!("=== {}\n{}", word(to), play_events(golden, to, usize::MAX));
    Dialect::ALL.into_iter().map(one).collect()
}

type Play = fn(&Golden) -> String;
const FOLDERS: [(&str, Play, usize); 3] =
    [("requests", play_request, 20), ("replies", play_reply, 12), ("events", play_all_events, 15)];

#[test]
fn every_case_in_every_dialect() {
    for (folder, play, least) in FOLDERS {
        let files = files(folder);
        assert!(files.len() >= least, "{folder} has {} cases", files.len());
        for golden in files {
            let played = play(&golden);
            assert!(played == golden.expected, "{}\n{played}", golden.path.display());
        }
    }
}

#[test]
fn streams_do_not_depend_on_the_cuts() {
    for golden in files("events") {
        for to in Dialect::ALL {
            let whole = play_events(&golden, to, usize::MAX);
            for size in [1, 3, 17, 100] {
                assert_eq!(play_events(&golden, to, size), whole, "{} to {to:?}, {size} bytes", golden.path.display());
            }
        }
    }
}

#[test]
#[ignore = "writes the golden files anew"]
fn rewrite() {
    for (folder, play, _) in FOLDERS {
        for golden in files(folder) {
            let text = format!("{}{MARK}{}{RESULT}{}", golden.words, golden.original, play(&golden));
            fs::write(&golden.path, text).unwrap();
        }
    }
}
