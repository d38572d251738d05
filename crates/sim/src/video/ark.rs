//! Ark as documented: content parts with roles, tasks that can be listed and deleted, usage in
//! tokens.

use serde_json::{Value, json};

use super::check::{Is, May, Must, check};
use super::file::{Signing, now, stamp};
use super::picture;
use super::reply::{Answer, Call};
use super::scenario::Choice;
use super::tasks::{New, Phase, Task};

const VENDOR: &str = "ark";
const PATH: &str = "/contents/generations/tasks";
/// Where all endpoints lead.
const NEWEST: &str = "doubao-seedance-2-5-260628";

const CODES: &[(&str, u16, &str)] = &[
    ("MissingParameter", 400, "The request failed because it is missing a required parameter."),
    ("InvalidParameter", 400, "A parameter specified in the request is not valid."),
    ("InvalidParameter.TaskTypeConstraint", 400, "ratio must be adaptive"),
    ("InvalidParameter.TaskTypeMismatch", 400, "the task type does not match the content"),
    (
        "InputTextSensitiveContentDetected",
        400,
        "The request failed because the input text may contain sensitive information.",
    ),
    (
        "InputImageSensitiveContentDetected",
        400,
        "The request failed because the input image may contain sensitive information.",
    ),
    ("InputImageSensitiveContentDetected.PrivacyInformation", 400, "The input image may contain a real person."),
    ("InvalidEndpoint.ClosedEndpoint", 400, "The endpoint is closed."),
    ("AuthenticationError", 401, "The API key or AK/SK in the request is missing or invalid."),
    ("AccountOverdueError", 403, "The request failed because your account has an overdue balance."),
    ("AccessDenied", 403, "The request failed because you do not have access to the requested resource."),
    ("OperationDenied.ServiceNotOpen", 403, "The service is not open."),
    ("InvalidEndpointOrModel.NotFound", 404, "The model or endpoint does not exist."),
    ("ModelNotOpen", 404, "Your account has not activated the model."),
    ("RateLimitExceeded.EndpointRPMExceeded", 429, "The requests per minute limit is exceeded."),
    ("ModelAccountRpmRateLimitExceeded", 429, "The account's RPM limit of the model is exceeded."),
    ("ModelAccountTpmRateLimitExceeded", 429, "The account's TPM limit of the model is exceeded."),
    ("QuotaExceeded", 429, "The number of queued tasks exceeds the limit."),
    ("ServerOverloaded", 429, "The service is overloaded."),
    ("InternalServiceError", 500, "The service encountered an unexpected internal error."),
];

const URL: Is = Is::Obj(&[("url", Is::Link, Must)]);
const PART: Is = Is::Obj(&[
    ("type", Is::OneOf(&["text", "image_url", "video_url", "audio_url", "draft_task"]), Must),
    ("text", Is::Text, May),
    ("image_url", URL, May),
    ("video_url", URL, May),
    ("audio_url", URL, May),
    ("draft_task", Is::Obj(&[("id", Is::Text, Must)]), May),
    ("role", Is::OneOf(&["first_frame", "last_frame", "reference_image", "reference_video", "reference_audio"]), May),
]);
const TOOL: Is = Is::Obj(&[("type", Is::OneOf(&["web_search"]), Must)]);
const BODY: Is = Is::Obj(&[
    ("model", Is::Text, Must),
    ("content", Is::List(1, 60, &PART), Must),
    ("resolution", Is::OneOf(&["480p", "720p", "1080p", "4k"]), May),
    ("ratio", Is::OneOf(&["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"]), May),
    ("duration", Is::Int(-1, 30), May),
    ("seed", Is::Int(-1, 4_294_967_295), May),
    ("camera_fixed", Is::Bool, May),
    ("watermark", Is::Bool, May),
    ("return_last_frame", Is::Bool, May),
    ("generate_audio", Is::Bool, May),
    ("service_tier", Is::OneOf(&["default"]), May),
    ("execution_expires_after", Is::Int(3600, 259_200), May),
    ("callback_url", Is::Link, May),
    ("tools", Is::List(0, 1, &TOOL), May),
    ("safety_identifier", Is::Short(64), May),
    ("priority", Is::Int(0, 9), May),
    ("omni_reference_task_type", Is::OneOf(&["auto", "edit", "extend"]), May),
    ("output_format", Is::OneOf(&["mp4", "mov"]), May),
]);

pub(super) fn answer(call: &Call<'_>) -> Answer {
    if call.bearer().is_err() {
        return error("AuthenticationError", None);
    }
    match (call.method, call.path.strip_prefix(PATH)) {
        ("POST", Some("")) => submit(call),
        ("GET", Some("")) => list(call),
        ("GET", Some(id)) => poll(call, id.trim_start_matches('/')),
        ("DELETE", Some(id)) => delete(call, id.trim_start_matches('/')),
        _ => Answer::json(404, &json!({"error": {"code": "NotFound", "message": "no such path", "type": "NotFound"}})),
    }
}

fn error(code: &str, text: Option<&str>) -> Answer {
    let row = CODES.iter().find(|row| row.0 == code);
    let (status, otherwise) = row.map_or((400, "no such code"), |row| (row.1, row.2));
    let message = format!("{} Request id: 021718067849899d92fcbe0865fdffdde", text.unwrap_or(otherwise));
    Answer::json(status, &json!({"error": {"code": code, "message": message, "param": "", "type": "BadRequest"}}))
}

fn submit(call: &Call<'_>) -> Answer {
    let body = call.json();
    if let Err((place, why)) = check(&body, &BODY, "") {
        let code = if why == "is required" { "MissingParameter" } else { "InvalidParameter" };
        return error(code, Some(&format!("The parameter `{place}` {why}.")));
    }
    // An endpoint is shown as the model it leads to.
    let model = match body["model"].as_str().unwrap_or_default() {
        model if model.starts_with("ep-") => NEWEST.to_string(),
        model => model.to_string(),
    };
    let newest = model.contains("seedance-2-5");
    if !newest && !model.contains("seedance-2-0") {
        return error("InvalidEndpointOrModel.NotFound", None);
    }
    let parts = body["content"].as_array().cloned().unwrap_or_default();
    let prompt =
        parts.iter().find(|part| part["type"] == "text").and_then(|part| part["text"].as_str()).unwrap_or_default();
    let choice = match Choice::of(prompt) {
        Ok(choice) => choice,
        Err(mistake) => return error("InvalidParameter", Some(&mistake)),
    };
    match call.trouble(&choice, &body.to_string()) {
        Some(Phase::Limited) => return error("ModelAccountRpmRateLimitExceeded", None),
        Some(_) => return error("InternalServiceError", None),
        None => {}
    }
    if choice.is("refuse") {
        return error(choice.raw("code").unwrap_or("InvalidParameter"), choice.text("text").as_deref());
    }
    if let Err((code, why)) = rules(&body, &parts, newest) {
        return error(code, Some(why));
    }
    let small =
        parts.iter().any(|part| part["image_url"]["url"].as_str().is_some_and(|url| picture::smaller(url, 300)));
    let seconds = body["duration"].as_u64().and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(5);
    let new = New {
        vendor: VENDOR,
        call: "tasks".to_string(),
        model,
        external: body["safety_identifier"].as_str().map(str::to_string),
        seconds,
        body,
        choice,
        doomed: small.then(|| ("InvalidParameter".to_string(), "image side must be at least 300px".to_string())),
    };
    let task = call.add(new, |number| format!("cgt-{}-{:05}", stamp(now()).replace(['T', 'Z'], ""), number % 100_000));
    Answer::took(&task, &json!({"id": task.id}))
}

fn rules(body: &Value, parts: &[Value], newest: bool) -> Result<(), (&'static str, &'static str)> {
    const BAD: &str = "InvalidParameter";
    const CONSTRAINT: &str = "InvalidParameter.TaskTypeConstraint";
    let of = |kind: &str, role: &[Option<&str>]| {
        parts.iter().filter(|part| part["type"] == kind && role.contains(&part["role"].as_str())).count()
    };
    let first = of("image_url", &[None, Some("first_frame")]);
    let last = of("image_url", &[Some("last_frame")]);
    let (images, videos, sounds) = (
        of("image_url", &[Some("reference_image")]),
        of("video_url", &[Some("reference_video")]),
        of("audio_url", &[Some("reference_audio")]),
    );
    let texts = parts.iter().filter(|part| part["type"] == "text").count();
    if first + last + images + videos + sounds + texts != parts.len() || texts > 1 {
        return Err((BAD, "content has a part with the wrong role"));
    }
    if first + last > 0 && images + videos + sounds > 0 {
        return Err((CONSTRAINT, "frames and references cannot be mixed"));
    }
    if first > 1 || last > 1 || last > first {
        return Err((BAD, "last_frame needs first_frame"));
    }
    let most = if newest { (30, 10, 10, 30) } else { (9, 3, 3, 15) };
    if images > most.0 || videos > most.1 || sounds > most.2 {
        return Err((BAD, "too many references"));
    }
    if !newest && first + images + videos == 0 {
        return Err((BAD, "the model needs an image or a video"));
    }
    if first > 0 && newest && body["ratio"].as_str().is_some_and(|ratio| ratio != "adaptive") {
        return Err((CONSTRAINT, "ratio must be adaptive"));
    }
    let seconds = body["duration"].as_i64().unwrap_or(5);
    if seconds != -1 && !(4..=most.3).contains(&seconds) {
        return Err((BAD, "duration is not valid"));
    }
    if body["omni_reference_task_type"] == "edit" && seconds != -1 {
        return Err((CONSTRAINT, "duration must be -1"));
    }
    Ok(())
}

fn poll(call: &Call<'_>, id: &str) -> Answer {
    let Some((task, phase)) = call.book.poll(VENDOR, id) else { return missing() };
    match phase {
        Phase::Limited => error("RateLimitExceeded.EndpointRPMExceeded", None),
        Phase::Broken => error("InternalServiceError", None),
        Phase::Forgotten => missing(),
        phase => Answer::json(200, &show(call, &task, &phase)),
    }
}

fn missing() -> Answer {
    let error = json!({"code": "ResourceNotFound", "message": "The specified task is not found.", "type": "NotFound"});
    Answer::json(404, &json!({"error": error}))
}

fn show(call: &Call<'_>, task: &Task, phase: &Phase) -> Value {
    let word = match phase {
        Phase::Queued => "queued",
        Phase::Running => "running",
        Phase::Strange => "upscaling",
        Phase::Cancelled => "cancelled",
        Phase::Expired => "expired",
        Phase::Failed | Phase::Moderated => "failed",
        _ => "succeeded",
    };
    let body = &task.body;
    let or = |name: &str, otherwise: Value| if body[name].is_null() { otherwise } else { body[name].clone() };
    let mut shown = json!({
        "id": task.id, "model": task.model, "status": word, "error": null, "created_at": task.created, "updated_at": now(),
        "seed": 11, "resolution": or("resolution", json!("720p")), "ratio": or("ratio", json!("16:9")), "duration": task.seconds,
        "framespersecond": 24, "generate_audio": or("generate_audio", json!(true)), "draft": false, "service_tier": "default",
        "execution_expires_after": 172_800,
    });
    if let Some(external) = &task.external {
        shown["safety_identifier"] = json!(external);
    }
    match phase {
        Phase::Failed | Phase::Moderated => {
            let (code, text) = match phase {
                Phase::Moderated => task.reason(
                    "OutputVideoSensitiveContentDetected",
                    "The output video may contain sensitive information.",
                ),
                _ => task.reason("InternalServiceError", "The service encountered an unexpected internal error."),
            };
            shown["error"] =
                json!({"code": code, "message": format!("{text} Request id: 021718067849899d92fcbe0865fdffdde")});
        }
        Phase::Done { url } => {
            if *url {
                shown["content"] = json!({"video_url": call.link(task, Signing::Tos)});
            }
            shown["duration"] = json!(task.reported_seconds());
            if task.tells_usage() {
                let tokens = task.spelt(tokens(task));
                shown["usage"] = json!({"completion_tokens": tokens, "total_tokens": tokens});
            }
        }
        _ => {}
    }
    shown
}

/// A reference clip is so long as far as a fake maker knows.
const CLIP: u32 = 2;

/// Width × height × 24 × seconds ÷ 1024, with the seconds of reference clips.
fn tokens(task: &Task) -> f64 {
    let pixels = match task.body["resolution"].as_str() {
        Some("480p") => 864.0 * 480.0,
        Some("1080p") => 1920.0 * 1080.0,
        Some("4k") => 3840.0 * 2160.0,
        _ => 1280.0 * 720.0,
    };
    let parts = task.body["content"].as_array().map_or(&[][..], Vec::as_slice);
    let clips = parts.iter().filter(|part| part["type"] == "video_url").map(|_| CLIP).sum::<u32>();
    let made = task.reported_seconds();
    // Reported as nothing, nothing was counted.
    let seconds = if made == 0 { 0 } else { made + clips };
    (pixels * 24.0 * f64::from(seconds) / 1024.0).floor()
}

fn list(call: &Call<'_>) -> Answer {
    let wanted = |task: &Task| call.asked("filter.model").is_none_or(|model| model == task.model);
    let (skip, take) = call.page();
    let (tasks, total) = call.book.list(VENDOR, wanted, skip, take);
    let items: Vec<_> = tasks.iter().map(|task| show(call, task, &Phase::Running)).collect();
    Answer::json(200, &json!({"items": items, "total": total}))
}

fn delete(call: &Call<'_>, id: &str) -> Answer {
    match call.book.cancel(VENDOR, id) {
        Some(true) => Answer::json(200, &json!({})),
        Some(false) if call.book.remove(VENDOR, id) == Some(true) => Answer::json(200, &json!({})),
        Some(false) => error("InvalidParameter", Some("The task is running and cannot be cancelled.")),
        None => missing(),
    }
}
