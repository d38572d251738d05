//! What translation costs, by itself and without any network:
//! `cargo run --profile dist -p tollgate-dialects --example dialect_speed`.
//!
//! Requests and whole replies in microseconds for each pair of dialects, streams in nanoseconds per
//! event and as a ratio to what a stream costs that stays in its provider's dialect. A stream
//! through the gateway costs a multiple of this on either side: reading, writing, metering, the
//! client's own work. A pair above a bar is marked, and the exit code is 1.

use bytes::Bytes;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tollgate_dialects::{CheckedRequest, Path, ReplyStream, Setup, StreamEnd, Target, ToolNames, Voice, convert};
use tollgate_wire::Dialect;

const EVENTS: usize = 2_000;
const LONG_ENOUGH: Duration = Duration::from_millis(80);

/// About three times what the slowest pair took when it was last written down
/// (docs/performance.md).
const REQUEST_BAR: f64 = 30.0;
const REPLY_BAR: f64 = 20.0;
const EVENT_BAR: f64 = 5_000.0;

fn main() -> ExitCode {
    let mut all = true;
    let words = [Dialect::Chat, Dialect::Anthropic, Dialect::Responses, Dialect::Gemini];
    println!(
        "{:<40} {:>12} {:>12} {:>14} {:>8}",
        "client <- provider", "request us", "reply us", "ns per event", "ratio"
    );
    for from in words {
        let streamed = stream_in(from);
        let reply = reply_in(from);
        let own = per_event(from, from, &streamed);
        for to in words {
            let asked = micros(|| request(to, from));
            let answered = micros(|| {
                black_box(convert(from, to, reply.clone(), &ToolNames::default(), &voice()).expect("a reply"));
            });
            let event = per_event(from, to, &streamed);
            let pair = format!("{} <- {}", to.word(), from.word());
            let met = asked <= REQUEST_BAR && answered <= REPLY_BAR && event <= EVENT_BAR;
            all &= met;
            let mark = if met { "" } else { "  NOT met" };
            println!("{pair:<40} {asked:>12.1} {answered:>12.1} {event:>14.0} {:>8.2}{mark}", event / own);
        }
    }
    println!("(bars: request ≤ {REQUEST_BAR} us, reply ≤ {REPLY_BAR} us, event ≤ {EVENT_BAR} ns)");
    if all { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn voice() -> Voice {
    Voice { id: "call_1".into(), model: "m".into(), created: 1, wants_usage: true, ..Voice::default() }
}

/// A conversation with a tool and its result, in the client's dialect.
fn body(dialect: Dialect) -> String {
    let said = "The gate opens for every coin and counts each one with care. ".repeat(20);
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    match dialect {
        Dialect::Chat => format!(
            r#"{{"model":"m","messages":[{{"role":"system","content":"Be brief."}},{{"role":"user","content":"{said}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"weather","arguments":"{{\"city\":\"Paris\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_1","content":"sunny"}},{{"role":"user","content":"{said}"}}],"tools":[{{"type":"function","function":{{"name":"weather","parameters":{schema}}}}}]}}"#
        ),
        Dialect::Anthropic => format!(
            r#"{{"model":"m","max_tokens":100,"system":"Be brief.","messages":[{{"role":"user","content":"{said}"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"call_1","name":"weather","input":{{"city":"Paris"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"call_1","content":"sunny"}},{{"type":"text","text":"{said}"}}]}}],"tools":[{{"name":"weather","input_schema":{schema}}}]}}"#
        ),
        Dialect::Responses => format!(
            r#"{{"model":"m","instructions":"Be brief.","input":[{{"role":"user","content":"{said}"}},{{"type":"function_call","call_id":"call_1","name":"weather","arguments":"{{\"city\":\"Paris\"}}"}},{{"type":"function_call_output","call_id":"call_1","output":"sunny"}},{{"role":"user","content":"{said}"}}],"tools":[{{"type":"function","name":"weather","parameters":{schema},"strict":false}}]}}"#
        ),
        Dialect::Gemini => format!(
            r#"{{"systemInstruction":{{"parts":[{{"text":"Be brief."}}]}},"contents":[{{"role":"user","parts":[{{"text":"{said}"}}]}},{{"role":"model","parts":[{{"functionCall":{{"id":"call_1","name":"weather","args":{{"city":"Paris"}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"id":"call_1","name":"weather","response":{{"output":"sunny"}}}}}},{{"text":"{said}"}}]}}],"tools":[{{"functionDeclarations":[{{"name":"weather","parameters":{schema}}}]}}]}}"#
        ),
    }
}

/// Reads a client's request and writes it for a provider.
fn request(client: Dialect, provider: Dialect) {
    let path = (client == Dialect::Gemini).then_some(Path { model: "m", stream: false });
    let request = CheckedRequest::read(client, Bytes::from(body(client)), path).expect("a request");
    black_box(request.upstream_body(&Target::new(provider, "theirs")).expect("a body"));
}

/// A whole reply as a provider of this dialect sends it: made from one of chat.
fn reply_in(dialect: Dialect) -> Bytes {
    let said = "The gate opens for every coin and counts each one with care. ".repeat(20);
    let chat = format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"theirs","choices":[{{"index":0,"message":{{"role":"assistant","content":"{said}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":240,"total_tokens":249}}}}"#
    );
    let made = convert(Dialect::Chat, dialect, Bytes::from(chat), &ToolNames::default(), &voice());
    made.expect("a reply").body
}

/// A stream of many words as a provider of this dialect sends it, one event at a time.
fn stream_in(dialect: Dialect) -> Vec<Bytes> {
    let head = r#""id":"c","object":"chat.completion.chunk","created":1,"model":"theirs""#;
    let mut chat: Vec<String> = (0..EVENTS)
        .map(|at| format!("data: {{{head},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{at}\"}},\"finish_reason\":null}}]}}\n\n"))
        .collect();
    chat.push(format!("data: {{{head},\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n"));
    chat.push(format!("data: {{{head},\"choices\":[],\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":{EVENTS},\"total_tokens\":{}}}}}\n\n", EVENTS + 9));
    chat.push("data: [DONE]\n\n".to_owned());
    let chat = chat.into_iter().map(Bytes::from).collect::<Vec<_>>();
    if dialect == Dialect::Chat { chat } else { played(Dialect::Chat, dialect, &chat) }
}

fn played(from: Dialect, to: Dialect, events: &[Bytes]) -> Vec<Bytes> {
    let mut stream = ReplyStream::new(Setup {
        from,
        to,
        voice: voice(),
        names: ToolNames::default(),
        rename: true,
        max_event_bytes: 1 << 20,
    });
    let mut out: Vec<Bytes> = events.iter().map(|event| stream.feed(event.clone()).expect("an event")).collect();
    match stream.finish() {
        StreamEnd::Complete { tail } => out.push(tail),
        end => panic!("{from:?} to {to:?}: {end:?}"),
    }
    out.retain(|piece| !piece.is_empty());
    out
}

fn per_event(from: Dialect, to: Dialect, events: &[Bytes]) -> f64 {
    micros(|| {
        black_box(played(from, to, events));
    }) * 1_000.0
        / EVENTS as f64
}

/// The best of many rounds: everything else is somebody else's work.
fn micros(mut work: impl FnMut()) -> f64 {
    let began = Instant::now();
    let mut best = f64::MAX;
    while began.elapsed() < LONG_ENOUGH {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_nanos() as f64 / 1_000.0);
    }
    best
}
