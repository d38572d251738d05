//! Any text at all as a record: it is read as another reader of JSON reads it, or refused with a
//! line that it has; never a panic. As part of the tests there is a fixed number of inputs from a
//! fixed seed; `make fuzz SECONDS=60` goes on for so long, from another seed each time, which it
//! prints (`TOLLGATE_FUZZ_SEED` has it again).

use super::generated::Numbers;
use serde_json::Value;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tollgate_workflows::{MAX_DEPTH, PlacedJson, read_record};

/// Inputs in an ordinary test run.
const INPUTS: u64 = 4_000;
const RECORD: &str = include_str!("../example/storyline-to-clip.json");
/// What readers of JSON stumble over.
const ODD: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0061",
    "\\ud800",
    "\n",
    "\r\n",
    "\u{2028}",
    "\u{feff}",
    "\0",
    "1e999",
    "-0",
    "0.1e-7",
    "18446744073709551616",
    "nul",
    "null",
    "\"slug\": 1,",
    "/*",
    "日",
];

#[expect(clippy::disallowed_methods, reason = "`make fuzz` says how long, and from where")]
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[expect(clippy::disallowed_methods, reason = "another seed each time")]
fn some_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or(1)
}

/// A place between two letters.
fn place(numbers: &mut Numbers, text: &str) -> usize {
    let mut at = numbers.below(text.len() as u64 + 1) as usize;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The record with pieces cut out, doubled, moved, and odd ones put in.
fn mutated(numbers: &mut Numbers) -> String {
    let mut text = match numbers.below(3) {
        0 => "[".repeat(numbers.below(2 * MAX_DEPTH as u64) as usize),
        1 => RECORD.to_owned(),
        _ => numbers.record().to_string(),
    };
    for _ in 0..=numbers.below(6) {
        let (one, other) = (place(numbers, &text), place(numbers, &text));
        let (from, to) = (one.min(other), one.max(other).min(one.min(other) + 200));
        let to = (from..=to).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(from);
        match numbers.below(4) {
            0 => drop(text.drain(from..to)),
            1 => {
                let piece = text[from..to].to_owned();
                let at = place(numbers, &text);
                text.insert_str(at, &piece);
            }
            _ => text.insert_str(from, ODD[numbers.below(ODD.len() as u64) as usize]),
        }
    }
    text
}

/// Every path of a value, as the reader names them.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn try_one(text: &str) {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let theirs = serde_json::from_str::<Value>(text);
    match PlacedJson::read(text) {
        Ok(placed) => {
            assert_eq!(theirs.ok().as_ref(), Some(&placed.value), "two readers, two values: {text:?}");
            assert!(depth(&placed.value) <= MAX_DEPTH + 1, "{text:?}");
            for path in ["", "slug", "inputs[1].id", "inputs[0].allowed_values[0]", "no.such[7]"] {
                assert!((1..=lines).contains(&placed.line(path)), "{path} of {text:?}");
            }
        }
        Err((line, violation)) => {
            assert!((1..=lines).contains(&line), "line {line}: {text:?}");
            let deep = theirs.as_ref().is_ok_and(|value| depth(value) > MAX_DEPTH);
            let twice = violation.reason == "stands twice in its object";
            assert!(theirs.is_err() || deep || twice, "refused for {violation:?}: {text:?}");
        }
    }
    let read = read_record("x.json", text, "x");
    if let Err(mistakes) = read.read {
        assert!(!mistakes.is_empty() && mistakes.iter().all(|one| (1..=lines).contains(&one.line)), "{text:?}");
    }
}

#[test]
fn any_text_is_read_as_json_or_refused_at_a_line() {
    let seconds = given("TOLLGATE_FUZZ_SECONDS");
    let seed = given("TOLLGATE_FUZZ_SEED").unwrap_or_else(|| if seconds.is_some() { some_seed() } else { 18 });
    println!("records: TOLLGATE_FUZZ_SEED={seed}");
    let mut numbers = Numbers(seed);
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut inputs = 0;
    while until.map_or(inputs < INPUTS, |until| Instant::now() < until) {
        try_one(&mutated(&mut numbers));
        inputs += 1;
    }
    println!("{inputs} texts");
}
