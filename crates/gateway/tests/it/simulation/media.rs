//! Pictures, vectors, speech, recordings, songs, orders of documents and decisions in a simulation:
//! how they are asked for, what the provider sends, and what they may have cost in the end. Most
//! come whole, some pictures as a task; speech and songs pass piece by piece, and half of one is
//! none.

use super::outside::{Attempt, Fate, Request, Seen};
use super::provider::{Ending, Plan, Script};
use crate::v1::transcriptions::{KIND, form, wav};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::UsageRow;

/// The models, beside those of conversations.
pub const MODELS: [&str; 9] =
    ["vectors", "pictures", "painted", "retouched", "voice", "ears", "songs", "rank", "judge"];
/// What is made once: whoever repeats the key of one that was lost has nothing made again.
const BEGUN_ONCE: [&str; 4] = ["pictures", "painted", "retouched", "songs"];
/// Who makes pictures as tasks.
pub const PAINTER: &str = "painter";
/// Tokens of every text, as the provider counts them.
const TOKENS: i64 = 4;

pub fn is_media(model: &str) -> bool {
    MODELS.contains(&model)
}

pub fn is_begun_once(model: &str) -> bool {
    BEGUN_ONCE.contains(&model)
}

/// A request's path, type and body.
pub type Posted = (&'static str, &'static str, Vec<u8>);

pub fn json_to(path: &'static str, body: &Value) -> Posted {
    (path, "application/json", body.to_string().into_bytes())
}

/// Where and how a request is made.
pub fn asked(model: &str, text: &str) -> Posted {
    match model {
        "vectors" => json_to("/v1/embeddings", &json!({ "model": model, "input": text })),
        "pictures" | "painted" => json_to("/v1/images/generations", &json!({ "model": model, "prompt": text })),
        "retouched" => {
            let images = json!([{ "image_url": format!("data:image/png;base64,{PNG}") }]);
            json_to("/v1/images/edits", &json!({ "model": model, "prompt": text, "images": images }))
        }
        "rank" => json_to("/v1/rerank", &json!({ "model": model, "query": text, "documents": ["one", "two"] })),
        "judge" => {
            let question = json!({ "type": "predicate", "name": "red", "instructions": "Is it red?" });
            json_to("/v1/decisions", &json!({ "model": model, "input": text, "questions": [question] }))
        }
        "ears" => {
            let fields = [("model", model), ("prompt", text), ("file", "")];
            ("/v1/audio/transcriptions", KIND, form(&fields, "a.wav", &wav(1_500)))
        }
        "songs" => {
            let body = json!({ "model": model, "prompt": text, "instrumental": true, "response_format": "wav" });
            json_to("/v1/music/generations", &body)
        }
        _ => {
            let body = json!({ "model": model, "input": text, "voice": "v", "response_format": "pcm" });
            json_to("/v1/audio/speech", &body)
        }
    }
}

/// A request that the provider got, as JSON; of a form, its prompt.
pub fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        let (_, prompt) = text.split_once("name=\"prompt\"\r\n\r\n").expect("a prompt");
        json!({ "prompt": prompt.split("\r\n").next() })
    })
}

/// The text of a request that the provider got, whichever kind it is of.
pub fn text_of(body: &Value) -> &str {
    let texts = [&body["messages"][0]["content"], &body["prompt"], &body["query"], &body["input"], &body["input"][0]];
    texts.into_iter().find_map(Value::as_str).unwrap_or_default()
}

/// What the provider sends for media; `None`: it was asked for words.
pub fn reply(path: &str, plan: &Plan) -> Option<(&'static str, Script)> {
    let json = "application/json";
    match path {
        "/v1/embeddings" => {
            let vector = json!({ "object": "embedding", "index": 0, "embedding": [0.5, -0.25] });
            let mut reply = json!({ "object": "list", "data": [vector], "model": "u" });
            if plan.ending != Ending::NoReport {
                reply["usage"] = json!({ "prompt_tokens": TOKENS, "total_tokens": TOKENS });
            }
            Some((json, whole(&reply, plan)))
        }
        "/v1/rerank" => {
            let order = [(1, 0.75), (0, 0.25)].map(|(at, score)| json!({ "index": at, "relevance_score": score }));
            let mut reply = json!({ "model": "u", "object": "list", "results": order });
            if plan.ending != Ending::NoReport {
                reply["usage"] = json!({ "total_tokens": TOKENS });
            }
            Some((json, whole(&reply, plan)))
        }
        "/v1/decisions" => {
            let answer = json!({ "type": "predicate", "name": "red", "probability": 0.75 });
            let mut reply = json!({ "model": "u", "answers": [answer] });
            if plan.ending != Ending::NoReport {
                reply["usage"] = json!({ "input_tokens": TOKENS, "output_tokens": 1, "total_tokens": TOKENS + 1 });
            }
            Some((json, whole(&reply, plan)))
        }
        "/v1/images/generations" | "/v1/images/edits" => {
            Some((json, whole(&json!({ "created": 1, "data": [{ "b64_json": PNG }] }), plan)))
        }
        "/v1/audio/transcriptions" => Some((json, whole(&json!({ "text": "what was said" }), plan))),
        "/v1/music_generation" => {
            let hex: String = wav(1_000).iter().map(|byte| format!("{byte:02x}")).collect();
            let reply = json!({ "data": { "audio": hex, "status": 2 }, "base_resp": { "status_code": 0 } }).to_string();
            let (half, rest) = reply.split_at(reply.len() / 2);
            let pieces = match plan.ending {
                Ending::Cut | Ending::Silence => vec![half.to_owned()],
                _ => vec![half.to_owned(), rest.to_owned()],
            };
            Some((json, Script::of(pieces).paced(Duration::from_millis(plan.delay_ms), plan.ending)))
        }
        "/v1/audio/speech" => {
            let cut = matches!(plan.ending, Ending::Cut | Ending::Silence);
            let pieces = if cut { plan.words / 2 } else { plan.words };
            let script = Script::of((0..pieces).map(|_| "sound...".repeat(60)));
            Some(("audio/pcm", script.paced(Duration::from_millis(plan.delay_ms), plan.ending)))
        }
        _ => None,
    }
}

/// What the painter says to the beginning of a task; the task is named after its request.
pub fn painted(request: usize, plan: &Plan) -> Script {
    whole(&standing(request, "submitted"), plan)
}

/// How a task stands at the painter.
pub fn looked_at(request: &str, is_over: bool) -> Script {
    let mut reply = standing(request, if is_over { "succeed" } else { "processing" });
    if is_over {
        reply["data"]["task_result"] = json!({ "images": [{ "index": 0, "url": "https://painter.example/a.png" }] });
    }
    Script::of([reply.to_string()])
}

fn standing(request: impl ToString, word: &str) -> Value {
    json!({ "code": 0, "message": "SUCCEED", "data": { "task_id": request.to_string(), "task_status": word } })
}

fn whole(reply: &Value, plan: &Plan) -> Script {
    match plan.ending {
        Ending::Cut | Ending::Silence => Script::of(["{\"data\":".to_owned()]).paced(Duration::ZERO, plan.ending),
        _ => Script::of([reply.to_string()]),
    }
}

/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn cost(attempt: &Attempt, request: &Request) -> i64 {
    match request.model {
        "vectors" | "rank" | "judge" => TOKENS * 1_000,
        model if is_begun_once(model) => super::oracle::PER_CALL,
        // Two seconds that have begun.
        "ears" => 2 * 100_000,
        _ => i64::try_from(format!("tell me {}", attempt.request).len()).expect("short") * 1_000,
    }
}

/// Whether a call may have cost this. There are two amounts: nothing, and all of it.
pub fn is_right(attempt: &Attempt, request: &Request, row: &UsageRow, lost_power: bool) -> bool {
    let (charge, all) = (row.charge.nano(), cost(attempt, request));
    // By our own count, which may differ from the provider's.
    let counted = ["vectors", "rank", "judge"].contains(&request.model) && request.plan.ending == Ending::NoReport;
    let paid = if counted { charge > 0 && row.estimated } else { charge == all };
    match &attempt.seen {
        Some((Seen::Failed { status, .. }, _)) if *status != 200 => charge == 0,
        _ if lost_power => charge == 0 || paid,
        Some((Seen::Answered { charge: stated, .. }, _)) => paid && stated.is_none_or(|stated| stated == charge),
        // Whoever has heard the beginning pays for the text, which was read; a crash is our affair.
        Some((Seen::Left, _)) if attempt.fate == Fate::Whole => paid,
        _ => charge == 0 || paid,
    }
}
