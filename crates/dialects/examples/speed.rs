//! Measures the hot paths of this crate:
//! `cargo run --release -p tollgate-dialects --example speed`.
//!
//! With a number (`--example speed -- 10000`) it only reads an ordinary call that often, request
//! and reply, so that a profiler counts the instructions of one call.

use bytes::Bytes;
use std::hint::black_box;
use std::time::Instant;
use tollgate_dialects::chat::{StreamSetup, read_reply};
use tollgate_dialects::{CheckedRequest, ReplyStream, SealNeeds, Setup, Target, ToolNames, Voice, convert, own_seals};
use tollgate_wire::{Dialect, Problem, count};

fn read_request(body: Bytes) -> Result<CheckedRequest, Problem> {
    CheckedRequest::read(Dialect::Chat, body, None)
}

/// Best and median of several rounds, in nanoseconds per call.
fn measure(name: &str, bytes: usize, mut run: impl FnMut()) {
    let rounds = if bytes > 10_000 { 300 } else { 20_000 };
    let mut times: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..rounds {
                run();
            }
            start.elapsed().as_nanos() as f64 / f64::from(rounds)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (best, median) = (times[0], times[times.len() / 2]);
    println!(
        "{name:<36} {bytes:>8} bytes  best {best:>8.0} ns  median {median:>8.0} ns  {:>6.2} GB/s",
        bytes as f64 / best
    );
}

fn stream(rename: bool) -> ReplyStream {
    ReplyStream::from(StreamSetup {
        choices: 1,
        wants_usage: false,
        rename_to: rename.then(|| "public-name".to_owned()),
        max_event_bytes: 1 << 20,
    })
}

/// A request and its reply as the benchmark sends them.
const ASKED: &[u8] = br#"{"max_tokens":256,"messages":[{"content":"You are a careful assistant of a toll company. Answer in one short sentence.","role":"system"},{"content":"How much does a truck with three axles pay for the northern bridge on a Sunday morning?","role":"user"}],"model":"bench-0-0","stream":false,"temperature":0.2}"#;
const ANSWERED: &[u8] = br#"{"choices":[{"finish_reason":"stop","index":0,"logprobs":null,"message":{"content":"A truck with three axles pays 14.50 on the northern bridge on Sundays before noon.","refusal":null,"role":"assistant"}}],"created":1767225600,"id":"chatcmpl-bench0123456789","model":"bench-0-0","object":"chat.completion","usage":{"completion_tokens":17,"prompt_tokens":38,"total_tokens":55}}"#;

/// All that is read of one call, and its reply under another name of the model.
fn call() {
    let request = read_request(black_box(Bytes::from_static(ASKED))).unwrap();
    assert!(request.given().unwrap().is_empty());
    let body = request.own_body("bench-0-0");
    assert!(own_seals(Dialect::Chat, &body, SealNeeds::default()).is_none());
    let answered = black_box(Bytes::from_static(ANSWERED));
    let reply = read_reply(&answered).unwrap();
    black_box(reply.with_model(answered, "public-name"));
    black_box((&request, &reply));
}

fn main() {
    if let Some(calls) = std::env::args().nth(1) {
        (0..calls.parse::<u64>().expect("how many calls to read")).for_each(|_| call());
        return;
    }
    let small = Bytes::from_static(
        br#"{"model":"gpt-4o-mini","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is the capital of France?"}],"max_tokens":64,"temperature":0.7,"stream":true}"#,
    );
    measure("read_request, small", small.len(), || {
        black_box(read_request(black_box(small.clone())).unwrap());
    });
    let request = read_request(small.clone()).unwrap();
    measure("upstream_body, two splices", small.len(), || {
        black_box(request.own_body(black_box("other-name")));
    });
    let prose = "The quick brown fox jumps over the lazy dog, and then it sleeps.\\n".repeat(1500);
    let large = Bytes::from(format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prose}"}}]}}"#));
    measure("read_request, 100 KB of prose", large.len(), || {
        black_box(read_request(black_box(large.clone())).unwrap());
    });
    let picture = "QUJDREVG".repeat(125_000);
    let picture = Bytes::from(format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{picture}"}}}}]}}]}}"#
    ));
    measure("read_request, 1 MB picture", picture.len(), || {
        black_box(read_request(black_box(picture.clone())).unwrap());
    });

    let event = Bytes::from_static(
        b"data: {\"id\":\"chatcmpl-BZ0x1y2z3\",\"object\":\"chat.completion.chunk\",\"created\":1763170000,\"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_34a54ae93c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" Paris\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n",
    );
    let mut meter = stream(false);
    measure("feed, one event, unchanged", event.len(), || {
        black_box(meter.feed(black_box(event.clone())).unwrap());
    });
    let mut meter = stream(true);
    measure("feed, one event, model renamed", event.len(), || {
        black_box(meter.feed(black_box(event.clone())).unwrap());
    });
    let twenty = Bytes::from(event.repeat(20));
    let mut meter = stream(false);
    measure("feed, twenty events, unchanged", twenty.len(), || {
        black_box(meter.feed(black_box(twenty.clone())).unwrap());
    });
    let (head, tail) = (event.slice(..100), event.slice(100..));
    let mut meter = stream(false);
    measure("feed, one event in two chunks", event.len(), || {
        black_box(meter.feed(black_box(head.clone())).unwrap());
        black_box(meter.feed(black_box(tail.clone())).unwrap());
    });

    let reply = Bytes::from_static(
        br#"{"id":"chatcmpl-BZ0x1y2z3","object":"chat.completion","created":1763170000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"The capital of France is Paris.","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":24,"completion_tokens":8,"total_tokens":32,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_34a54ae93c"}"#,
    );
    measure("read_reply", reply.len(), || {
        black_box(read_reply(black_box(&reply)).unwrap());
    });
    measure("count::tokens", prose.len(), || {
        black_box(count::tokens(black_box(&prose)));
    });
    measure("read a call, request and reply", ASKED.len() + ANSWERED.len(), call);
    pairs(&small);
}

/// One event of text in each dialect, as its provider sends it.
fn text_event(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => {
            "data: {\"id\":\"chatcmpl-BZ0x1y2z3\",\"object\":\"chat.completion.chunk\",\"created\":1763170000,\"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_34a54ae93c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" Paris\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n"
        }
        Dialect::Anthropic => {
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" Paris\"}}\n\n"
        }
        Dialect::Responses => {
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"item_id\":\"msg_68a1b2c3d4e5\",\"output_index\":0,\"content_index\":0,\"delta\":\" Paris\",\"logprobs\":[]}\n\n"
        }
        Dialect::Gemini => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" Paris\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":24,\"totalTokenCount\":24},\"modelVersion\":\"gemini-2.5-flash\",\"responseId\":\"abc\"}\n\n"
        }
    }
}

/// Every pair of dialects: one streamed event, and a whole request and reply from chat.
fn pairs(small: &Bytes) {
    let voice = Voice { id: "call_1".into(), model: "public-name".into(), created: 1, ..Voice::default() };
    for from in Dialect::ALL {
        let event = Bytes::from_static(text_event(from).as_bytes());
        for to in Dialect::ALL {
            let setup = || Setup {
                from,
                to,
                voice: voice.clone(),
                names: ToolNames::default(),
                rename: false,
                max_event_bytes: 1 << 20,
            };
            let mut stream = ReplyStream::new(setup());
            let mut fed = 0;
            measure(&format!("stream event, {from:?} to {to:?}"), event.len(), || {
                // As long as a long answer: the final object of Responses repeats all of it.
                fed += 1;
                if fed % 4_000 == 0 {
                    stream = ReplyStream::new(setup());
                }
                black_box(stream.feed(black_box(event.clone())).unwrap());
            });
        }
    }
    let request = CheckedRequest::read(Dialect::Chat, small.clone(), None).unwrap();
    let reply = Bytes::from_static(
        br#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"The capital of France is Paris."},"finish_reason":"stop"}],"usage":{"prompt_tokens":24,"completion_tokens":8,"total_tokens":32}}"#,
    );
    for to in Dialect::ALL {
        let target = Target::new(to, "up");
        measure(&format!("request, Chat to {to:?}"), small.len(), || {
            black_box(request.upstream_body(black_box(&target)).unwrap());
        });
        measure(&format!("reply, Chat to {to:?}"), reply.len(), || {
            black_box(convert(Dialect::Chat, to, reply.clone(), &ToolNames::default(), &voice).unwrap());
        });
    }
}
