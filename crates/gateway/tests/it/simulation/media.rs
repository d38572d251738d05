//! Pictures, vectors and speech in a simulation: how they are asked for, what the provider sends,
//! and what they may have cost in the end. A picture and vectors come whole; speech passes piece by
//! piece, and half of it is none.

use super::outside::{Attempt, Fate, Request, Seen};
use super::provider::{Ending, Plan, Script};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_store::UsageRow;

/// The models, beside those of conversations.
pub const MODELS: [&str; 3] = ["vectors", "pictures", "voice"];
/// Tokens of every text, as the provider counts them.
const TOKENS: i64 = 4;

pub fn is_media(model: &str) -> bool {
    MODELS.contains(&model)
}

/// Where and how a request is made.
pub fn asked(model: &str, text: &str) -> (&'static str, Value) {
    match model {
        "vectors" => ("/v1/embeddings", json!({ "model": model, "input": text })),
        "pictures" => ("/v1/images/generations", json!({ "model": model, "prompt": text })),
        _ => {
            let body = json!({ "model": model, "input": text, "voice": "v", "response_format": "pcm" });
            ("/v1/audio/speech", body)
        }
    }
}

/// The text of a request that the provider got, whichever kind it is of.
pub fn text_of(body: &Value) -> &str {
    let texts = [&body["messages"][0]["content"], &body["prompt"], &body["input"], &body["input"][0]];
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
        "/v1/images/generations" => Some((json, whole(&json!({ "created": 1, "data": [{ "b64_json": PNG }] }), plan))),
        "/v1/audio/speech" => {
            let cut = matches!(plan.ending, Ending::Cut | Ending::Silence);
            let pieces = if cut { plan.words / 2 } else { plan.words };
            let script = Script::of((0..pieces).map(|_| "sound...".repeat(60)));
            Some(("audio/pcm", script.paced(Duration::from_millis(plan.delay_ms), plan.ending)))
        }
        _ => None,
    }
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
        "vectors" => TOKENS * 1_000,
        "pictures" => super::oracle::PER_CALL,
        _ => i64::try_from(format!("tell me {}", attempt.request).len()).expect("short") * 1_000,
    }
}

/// Whether a call may have cost this. There are two amounts: nothing, and all of it.
pub fn is_right(attempt: &Attempt, request: &Request, row: &UsageRow, lost_power: bool) -> bool {
    let (charge, all) = (row.charge.nano(), cost(attempt, request));
    // By our own count, which may differ from the provider's.
    let counted = request.model == "vectors" && request.plan.ending == Ending::NoReport;
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
