//! Usage in disjoint counters: the provider's totals come back, nothing is negative, odd shapes count as missing.

use proptest::prelude::*;
use tollgate_wire::usage::{ChatUsage, MOST, Usage};

fn read(text: &str) -> Option<Usage> {
    ChatUsage::read(text.as_bytes()).as_ref().and_then(Usage::from_chat)
}

#[test]
fn the_usual_report() {
    let usage = read(
        r#"{"prompt_tokens":2600,"completion_tokens":300,"total_tokens":2900,
        "prompt_tokens_details":{"cached_tokens":2000,"cache_write_tokens":400,"audio_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":120,"audio_tokens":30,"rejected_prediction_tokens":5}}"#,
    )
    .unwrap();
    let expected = Usage {
        input: 200,
        cache_read: 2000,
        cache_write_5m: 400,
        output: 150,
        reasoning: 120,
        audio_output: 30,
        ..Usage::default()
    };
    assert_eq!(usage, expected);
}

#[test]
fn overlap_never_makes_a_counter_negative() {
    let usage = read(
        r#"{"prompt_tokens":10,"completion_tokens":5,
        "prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":8,"audio_tokens":8},
        "completion_tokens_details":{"reasoning_tokens":9}}"#,
    )
    .unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.cache_write_5m, usage.audio_input), (0, 8, 2, 0));
    assert_eq!((usage.output, usage.reasoning), (0, 5));
}

#[test]
fn reasoning_outside_the_completion_is_seen_in_the_total() {
    let usage = read(
        r#"{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}"#,
    )
    .unwrap();
    assert_eq!((usage.output, usage.reasoning, usage.output_total()), (9, 94, 103));
}

#[test]
fn names_of_other_providers() {
    let usage =
        read(r#"{"prompt_tokens":10,"completion_tokens":1,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}"#);
    assert_eq!(usage.unwrap().cache_read, 4);
    // The standard name wins, whatever the order.
    let usage = read(
        r#"{"cached_tokens":9,"prompt_tokens_details":{"cached_tokens":3},"prompt_tokens":10,"completion_tokens":1}"#,
    );
    assert_eq!(usage.unwrap().cache_read, 3);
}

#[test]
fn one_side_from_the_total() {
    assert_eq!(read(r#"{"prompt_tokens":10,"total_tokens":15}"#).unwrap().output, 5);
    assert_eq!(read(r#"{"completion_tokens":5,"total_tokens":15}"#).unwrap().input, 10);
    assert_eq!(read(r#"{"prompt_tokens":20,"total_tokens":15}"#), None);
}

#[test]
fn odd_shapes_are_missing() {
    for text in [
        "null",
        "[]",
        "7",
        "{}",
        "{",
        "",
        r#"{"prompt_tokens":10}"#,
        r#"{"total_tokens":10}"#,
        r#"{"prompt_tokens":"10","completion_tokens":5}"#,
        r#"{"prompt_tokens":10.5,"completion_tokens":5}"#,
        r#"{"prompt_tokens":1e3,"completion_tokens":5}"#,
        r#"{"prompt_tokens":-10,"completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":99999999999999999999999999}"#,
        r#"{"prompt_tokens":10,"completion_tokens":1000000001}"#,
        r#"{"prompt_tokens":10,"completion_tokens":true}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":[]}"#,
        r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#,
    ] {
        assert_eq!(read(text), None, "{text}");
    }
    assert!(read(r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null}"#).is_some());
    assert!(read(r#"{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":null,"other":{"x":[1.5]}}"#).is_some());
}

fn counter() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![0..50u64, 0..=MOST])
}

fn any_report() -> impl Strategy<Value = ChatUsage> {
    let one = (counter(), counter(), counter(), counter(), counter());
    let two = (counter(), counter(), counter(), counter(), counter());
    (one, two).prop_map(|(a, b)| ChatUsage {
        prompt: a.0,
        completion: a.1,
        total: a.2,
        cached: a.3,
        cache_write: a.4,
        audio_in: b.0,
        image_in: b.1,
        reasoning: b.2,
        audio_out: b.3,
        image_out: b.4,
    })
}

proptest! {
    #[test]
    fn totals_come_back(report in any_report()) {
        let Some(usage) = Usage::from_chat(&report) else { return Ok(()) };
        if let Some(prompt) = report.prompt {
            prop_assert_eq!(usage.input_total(), prompt);
        }
        if let Some(completion) = report.completion {
            let outside = completion + report.reasoning.unwrap_or(0);
            prop_assert!(usage.output_total() == completion || usage.output_total() == outside);
        }
        if let (Some(total), true) = (report.total, report.prompt.is_none() || report.completion.is_none()) {
            prop_assert_eq!(usage.input_total() + usage.output_total(), total);
        }
    }

    #[test]
    fn merging_never_adds_up(first in any_report(), second in any_report()) {
        let mut merged = first;
        merged.merge(&second);
        for (merged, first, second) in [
            (merged.prompt, first.prompt, second.prompt),
            (merged.completion, first.completion, second.completion),
            (merged.reasoning, first.reasoning, second.reasoning),
        ] {
            prop_assert!(merged == first || merged == second);
        }
        let mut again = merged;
        again.merge(&second);
        prop_assert_eq!(again, merged);
    }
}

#[test]
fn merge_rule() {
    let report = |text: &str| ChatUsage::read(text.as_bytes()).unwrap();
    let mut usage = report(r#"{"prompt_tokens":3,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}"#);
    usage.merge(&report(r#"{"prompt_tokens":3,"completion_tokens":7}"#));
    assert_eq!((usage.prompt, usage.completion, usage.cached), (Some(3), Some(7), Some(2)));
    usage.merge(&report(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#));
    assert_eq!((usage.prompt, usage.completion), (Some(3), Some(7)));
}
