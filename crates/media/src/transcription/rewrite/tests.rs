//! Replies of each maker in every format, and in pieces of every length.

use super::super::TranscriptFormat;
use super::*;
use serde_json::{Value, json};

fn target(format: TranscriptFormat) -> TranscriptTarget {
    TranscriptTarget { format, translate: false, with_words: true }
}

/// A reply that is rewritten, fed in pieces of this length.
fn written(
    shape: &'static TranscriptShape,
    reply: &str,
    format: TranscriptFormat,
    facts: &TranscriptFacts,
    piece: usize,
) -> Result<String, NoTranscript> {
    let mut rewrite = TranscriptRewrite::new(shape, target(format));
    let mut out = Vec::new();
    let fed = |rewrite: &mut TranscriptRewrite, out: &mut Vec<u8>| {
        for piece in reply.as_bytes().chunks(piece) {
            out.extend_from_slice(&rewrite.feed(piece)?);
        }
        Ok::<(), NoTranscript>(())
    };
    fed(&mut rewrite, &mut out)?;
    assert!(out.is_empty(), "nothing is written before all was seen");
    let rest: Value = serde_json::from_slice(&rewrite.seen()?).expect("the rest is JSON");
    assert!(!rest.to_string().contains("there"), "neither text nor words are in it: {rest}");
    out.extend_from_slice(&rewrite.begin(facts.clone())?);
    while !rewrite.is_over() {
        fed(&mut rewrite, &mut out)?;
        out.extend_from_slice(&rewrite.end_part()?);
    }
    Ok(String::from_utf8(out).expect("text"))
}

fn facts() -> TranscriptFacts {
    TranscriptFacts { language: Some("en".to_owned()), millis: Some(5_400) }
}

const SCRIBE: &str = r#"{ "text": "Hello there. Good \"day\"\n\u00e9\ud83d\ude00 ü", "language_code": "en", "words": [
    {"text": "Hello", "start": 0.1, "end": 0.4, "type": "word"}, {"text": " ", "start": 0.4, "end": 0.5, "type": "spacing"},
    {"text": "there.", "start": 0.5, "end": 0.9, "type": "word", "speaker": {"id": [1]}}, 7,
    {"text": "Good", "start": 1.0, "end": 1.2}, {"text": "day", "start": 3601.0, "end": 3602.345} ], "after": [1, 2] }"#;

#[test]
fn every_format_in_pieces_of_every_length() {
    let said = "Hello there. Good \"day\"\né😀 ü";
    for piece in [1, 2, 3, 7, 64, 10_000] {
        let of = |format| written(&TranscriptShape::SCRIBE, SCRIBE, format, &facts(), piece).expect("written");
        assert_eq!(of(TranscriptFormat::Text), format!("{said}\n"));
        let json: Value = serde_json::from_str(&of(TranscriptFormat::Json)).expect("JSON");
        assert_eq!(json, json!({ "text": said, "usage": { "type": "duration", "seconds": 6 } }));
        assert_eq!(
            of(TranscriptFormat::Srt),
            "1\n00:00:00,100 --> 00:00:00,900\nHello there.\n\n2\n00:00:01,000 --> 00:00:01,200\nGood\n\n\
             3\n01:00:01,000 --> 01:00:02,345\nday\n\n"
        );
        assert!(of(TranscriptFormat::Vtt).starts_with("WEBVTT\n\n00:00:00.100 --> 00:00:00.900\nHello there.\n\n"));
        let verbose: Value = serde_json::from_str(&of(TranscriptFormat::VerboseJson)).expect("JSON");
        assert_eq!((&verbose["duration"], &verbose["segments"][2]["end"]), (&json!(5.4), &json!(3_602.345)));
        assert_eq!(verbose["words"][1], json!({ "word": "there.", "start": 0.5, "end": 0.9 }));
        assert_eq!((&verbose["text"], &verbose["language"]), (&json!(said), &json!("en")));
        assert_eq!(verbose["words"].as_array().map(Vec::len), Some(4));
    }
}

#[test]
fn lines_of_the_provider_stay_as_they_are() {
    let reply = json!({ "transcripts": [
        { "text": "你好，", "sentences": [{ "begin_time": 0, "end_time": 900, "text": "你好，", "language": "zh" }] },
        { "text": "a long line that nobody cuts", "sentences": [
            { "begin_time": 900, "end_time": 20_000, "text": "a long line that nobody cuts", "words": [
                { "begin_time": 900, "end_time": 1_000, "text": "a", "punctuation": "," },
            ] },
        ] },
    ] });
    let nothing = TranscriptFacts::default();
    for piece in [1, 5, 10_000] {
        let of = |format| {
            written(&TranscriptShape::DASHSCOPE, &reply.to_string(), format, &nothing, piece).expect("written")
        };
        let expected = "1\n00:00:00,000 --> 00:00:00,900\n你好，\n\n2\n00:00:00,900 --> 00:00:20,000\na long line that nobody cuts\n\n";
        assert_eq!(of(TranscriptFormat::Srt), expected);
        assert_eq!(of(TranscriptFormat::Text), "你好，\na long line that nobody cuts\n");
        let verbose: Value = serde_json::from_str(&of(TranscriptFormat::VerboseJson)).expect("JSON");
        assert_eq!((&verbose["duration"], &verbose["segments"][1]["start"]), (&json!(1.0), &json!(0.9)));
        assert_eq!((&verbose["language"], &verbose["words"][0]["word"]), (&json!("zh"), &json!("a,")));
    }
}

#[test]
fn without_times_there_are_no_subtitles_unless_nothing_was_said() {
    let of = |reply: &str, format| written(&TranscriptShape::OPENAI, reply, format, &facts(), 3);
    for format in [TranscriptFormat::Srt, TranscriptFormat::Vtt, TranscriptFormat::VerboseJson] {
        assert_eq!(of(r#"{"text":"Hello"}"#, format), Err(NoTranscript), "{format}");
        assert!(of(r#"{"text":" "}"#, format).is_ok(), "{format}");
    }
    assert_eq!(of(r#"{"text":"Hello"}"#, TranscriptFormat::Text).as_deref(), Ok("Hello\n"));
}

#[test]
fn what_breaks_off_is_no_transcript() {
    for reply in
        ["", r#"{"text":"half"#, r#"{"text":"a lone \ud83d half"}"#, r#"{"text":"a"} more"#, "{\"text\":\"\u{1}\"}"]
    {
        for piece in [1, 1_000] {
            let mut rewrite = TranscriptRewrite::new(&TranscriptShape::OPENAI, target(TranscriptFormat::Text));
            let fed = reply.as_bytes().chunks(piece).try_for_each(|piece| rewrite.feed(piece).map(drop));
            assert!(fed.and_then(|()| rewrite.seen()).is_err(), "{reply}");
        }
    }
}

/// A day of speech: what is held of it never grows.
#[test]
fn a_long_transcript_never_sits_in_memory() {
    const WORDS: u32 = 200_000;
    let feed = |rewrite: &mut TranscriptRewrite| {
        let (mut most, mut all) = (0, 0);
        let mut piece = |text: &str| {
            let out = rewrite.feed(text.as_bytes()).expect("a transcript");
            (most, all) = (out.len().max(most), all + out.len());
            assert!(rewrite.held() < 4 << 10, "{}", rewrite.held());
        };
        piece(r#"{"text":""#);
        (0..WORDS).for_each(|_| piece("there "));
        piece(r#"","words":["#);
        for at in 0..WORDS {
            let comma = if at > 0 { "," } else { "" };
            piece(&format!(r#"{comma}{{"text":"there","start":{at}.1,"end":{at}.9,"type":"word"}}"#));
        }
        piece("]}");
        (most, all)
    };
    let mut rewrite = TranscriptRewrite::new(&TranscriptShape::SCRIBE, target(TranscriptFormat::VerboseJson));
    assert_eq!(feed(&mut rewrite), (0, 0));
    rewrite.seen().expect("a reply");
    rewrite.begin(facts()).expect("a transcript");
    let mut parts = Vec::new();
    while !rewrite.is_over() {
        let (most, all) = feed(&mut rewrite);
        assert!(most < 1 << 10, "{most}");
        parts.push(all);
        rewrite.end_part().expect("a part");
    }
    assert_eq!(parts.len(), 3);
    assert!(parts[0] == 1_200_000 && parts.iter().sum::<usize>() > 10 << 20, "{parts:?}");
}
