//! Google's videos as documented: a long-running operation, and a file that needs the key and
//! redirects.

use serde_json::{Value, json};

use super::check::{Is, May, Must, check};
use super::file::Signing;
use super::reply::{Answer, Call};
use super::scenario::Choice;
use super::tasks::{New, Phase, Task};

const VENDOR: &str = "gemini";

const IMAGE: Is = Is::Obj(&[("bytesBase64Encoded", Is::Text, Must), ("mimeType", Is::Text, Must)]);
const INSTANCE: Is = Is::Obj(&[("prompt", Is::Text, Must), ("image", IMAGE, May), ("lastFrame", IMAGE, May)]);
const BODY: Is = Is::Obj(&[
    ("instances", Is::List(1, 1, &INSTANCE), Must),
    (
        "parameters",
        Is::Obj(&[
            ("aspectRatio", Is::OneOf(&["16:9", "9:16"]), May),
            ("durationSeconds", Is::Int(4, 8), May),
            ("resolution", Is::OneOf(&["720p", "1080p", "4k"]), May),
            ("negativePrompt", Is::Text, May),
            ("personGeneration", Is::OneOf(&["allow_all", "allow_adult", "dont_allow"]), May),
            ("sampleCount", Is::Int(1, 1), May),
            ("seed", Is::Int(0, 4_294_967_295), May),
        ]),
        May,
    ),
]);

pub(super) fn answer(call: &Call<'_>) -> Answer {
    if call.takes(call.header("x-goog-api-key").unwrap_or_default()).is_err() {
        return error("INVALID_ARGUMENT", Some("API key not valid. Please pass a valid API key."));
    }
    let path = call.path.trim_start_matches("/v1beta/");
    if let Some(model) = path.strip_prefix("models/").and_then(|rest| rest.strip_suffix(":predictLongRunning")) {
        return if call.method == "POST" { submit(call, model) } else { error("NOT_FOUND", None) };
    }
    if let Some(id) = path.strip_prefix("files/").and_then(|rest| rest.strip_suffix(":download")) {
        return download(call, id);
    }
    match path.rsplit_once("/operations/") {
        Some((_, id)) if call.method == "GET" => poll(call, path, id),
        _ => error("NOT_FOUND", None),
    }
}

fn error(code: &str, text: Option<&str>) -> Answer {
    let (status, otherwise) = match code {
        "INVALID_ARGUMENT" => (400, "Request contains an invalid argument."),
        "FAILED_PRECONDITION" => {
            (400, "User location is not supported for the API use without a billing account linked.")
        }
        "PERMISSION_DENIED" => (403, "Your API key doesn't have the required permissions."),
        "NOT_FOUND" => (404, "Requested entity was not found."),
        "RESOURCE_EXHAUSTED" => (429, "You exceeded your current quota."),
        "UNAVAILABLE" => (503, "The service may be temporarily overloaded or down."),
        "DEADLINE_EXCEEDED" => (504, "The service is unable to finish processing within the deadline."),
        _ => (500, "An unexpected error occurred on Google's side."),
    };
    let error = json!({"code": status, "message": text.unwrap_or(otherwise), "status": code});
    Answer::json(status, &json!({"error": error}))
}

fn submit(call: &Call<'_>, model: &str) -> Answer {
    let body = call.json();
    if let Err((place, why)) = check(&body, &BODY, "") {
        return error("INVALID_ARGUMENT", Some(&format!("{place} {why}")));
    }
    if !model.starts_with("veo-") {
        return error("NOT_FOUND", None);
    }
    let seconds = body["parameters"]["durationSeconds"].as_u64().unwrap_or(8);
    if seconds % 2 == 1 {
        return error("INVALID_ARGUMENT", Some("durationSeconds must be 4, 6 or 8"));
    }
    let choice = match Choice::of(body["instances"][0]["prompt"].as_str().unwrap_or_default()) {
        Ok(choice) => choice,
        Err(mistake) => return error("INVALID_ARGUMENT", Some(&mistake)),
    };
    match call.trouble(&choice, &body.to_string()) {
        Some(Phase::Limited) => return error("RESOURCE_EXHAUSTED", None),
        Some(_) => return error("INTERNAL", None),
        None => {}
    }
    if choice.is("refuse") {
        return error(choice.raw("code").unwrap_or("INVALID_ARGUMENT"), choice.text("text").as_deref());
    }
    let new = New {
        vendor: VENDOR,
        call: "predictLongRunning".to_string(),
        model: model.to_string(),
        external: None,
        seconds: u32::try_from(seconds).unwrap_or(8),
        body,
        choice,
        doomed: None,
    };
    let task = call.add(new, |number| format!("sim{number:012x}"));
    Answer::took(&task, &json!({"name": format!("models/{model}/operations/{}", task.id)}))
}

fn poll(call: &Call<'_>, name: &str, id: &str) -> Answer {
    let Some((task, phase)) = call.book.poll(VENDOR, id) else { return error("NOT_FOUND", None) };
    match phase {
        Phase::Limited => error("RESOURCE_EXHAUSTED", None),
        Phase::Broken => error("INTERNAL", None),
        Phase::Forgotten => error("NOT_FOUND", None),
        phase => Answer::json(200, &show(call, name, &task, &phase)),
    }
}

fn show(call: &Call<'_>, name: &str, task: &Task, phase: &Phase) -> Value {
    let kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse";
    let done =
        |made: Value| json!({"name": name, "done": true, "response": {"@type": kind, "generateVideoResponse": made}});
    match phase {
        Phase::Queued | Phase::Running | Phase::Strange => json!({"name": name}),
        Phase::Done { url: true } => {
            let uri = format!("http://{}/video/gemini/v1beta/files/{}:download?alt=media", call.host, task.id);
            done(json!({"generatedSamples": [{"video": {"uri": uri}}]}))
        }
        Phase::Done { url: false } => done(json!({})),
        Phase::Moderated => {
            let reason = "Sorry, we can't create videos with input photos containing celebrity or their likenesses.";
            done(json!({"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": [reason]}))
        }
        Phase::Cancelled => {
            json!({"name": name, "done": true, "error": {"code": 1, "message": "The operation was cancelled."}})
        }
        _ => {
            let (code, text) = task.reason("13", "Video generation failed due to an internal server issue.");
            let code: i64 = code.parse().unwrap_or(13);
            json!({"name": name, "done": true, "error": {"code": code, "message": text}})
        }
    }
}

fn download(call: &Call<'_>, id: &str) -> Answer {
    let Some(task) = call.book.get(VENDOR, id) else { return error("NOT_FOUND", None) };
    let mut answer = Answer::json(302, &Value::Null);
    answer.headers.push(("location", call.link(&task, Signing::Plain)));
    answer
}
