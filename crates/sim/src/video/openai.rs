//! OpenAI's own videos as documented: JSON or a form, the bytes behind the key, remixes.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::check::{Is, May, Must, check};
use super::file::{self, now};
use super::mp4;
use super::reply::{Answer, Call};
use super::scenario::Choice;
use super::tasks::{New, Phase, Task};

const VENDOR: &str = "openai";

const BODY: Is = Is::Obj(&[
    ("model", Is::OneOf(&["sora-2", "sora-2-pro"]), Must),
    ("prompt", Is::Short(32_000), Must),
    ("seconds", Is::OneOf(&["4", "8", "12"]), May),
    ("size", Is::OneOf(&["720x1280", "1280x720", "1024x1792", "1792x1024"]), May),
    ("input_reference", Is::Text, May),
]);

pub(super) fn answer(call: &Call<'_>) -> Answer {
    if call.bearer().is_err() {
        return error(401, "invalid_api_key", "Incorrect API key provided: sk-sim-****wxyz.", None);
    }
    let rest: Vec<_> = call.path.trim_start_matches("/videos").trim_start_matches('/').split('/').collect();
    match (call.method, &rest[..]) {
        ("POST", [""]) => submit(call),
        ("GET", [""]) => list(call),
        ("GET", [id]) => poll(call, id),
        ("DELETE", [id]) => delete(call, id),
        ("GET", [id, "content"]) => content(call, id),
        ("POST", [id, "remix"]) => remix(call, id),
        _ => error(404, "not_found", "Invalid URL", None),
    }
}

fn error(status: u16, code: &str, text: &str, param: Option<&str>) -> Answer {
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    let mut answer =
        Answer::json(status, &json!({"error": {"message": text, "type": kind, "param": param, "code": code}}));
    if status == 429 {
        answer.headers.push(("retry-after", "7".to_string()));
    }
    answer
}

/// The documented refusals by code.
fn refused(code: &str) -> Answer {
    match code {
        "insufficient_quota" => error(429, code, "You exceeded your current quota.", None),
        "rate_limit_exceeded" => error(429, code, "Rate limit reached.", None),
        "billing_hard_limit_reached" => error(400, code, "Billing hard limit has been reached.", None),
        "model_not_found" => error(404, code, "The model does not exist.", Some("model")),
        "moderation_blocked" => error(400, code, "Your request was blocked by our moderation system.", None),
        "server_error" => error(500, code, "The server had an error.", None),
        _ => error(400, "invalid_value", "Invalid value.", Some("size")),
    }
}

fn submit(call: &Call<'_>) -> Answer {
    let body = if call.header("content-type").is_some_and(|kind| kind.starts_with("multipart/form-data")) {
        form(call)
    } else {
        call.json()
    };
    if let Err((place, why)) = check(&body, &BODY, "") {
        return error(400, "invalid_value", &format!("Invalid value for '{place}': {why}."), Some(&place));
    }
    let large = body["size"].as_str().is_some_and(|size| size.contains("1792"));
    if large && body["model"] != "sora-2-pro" {
        return error(400, "invalid_value", "Invalid size for this model.", Some("size"));
    }
    let choice = match Choice::of(body["prompt"].as_str().unwrap_or_default()) {
        Ok(choice) => choice,
        Err(mistake) => return error(400, "invalid_value", &mistake, Some("prompt")),
    };
    match call.trouble(&choice, &body.to_string()) {
        Some(Phase::Limited) => return refused("rate_limit_exceeded"),
        Some(_) => return refused("server_error"),
        None => {}
    }
    if choice.is("refuse") {
        return refused(choice.raw("code").unwrap_or_default());
    }
    take(call, body, choice)
}

fn take(call: &Call<'_>, body: Value, choice: Choice) -> Answer {
    let new = New {
        vendor: VENDOR,
        call: "videos".to_string(),
        model: body["model"].as_str().unwrap_or_default().to_string(),
        external: None,
        seconds: body["seconds"].as_str().and_then(|text| text.parse().ok()).unwrap_or(4),
        body,
        choice,
        doomed: None,
    };
    let task = call.add(new, |number| format!("video_68d7512d07848190b3e4{number:012x}"));
    Answer::took(&task, &show(&task, &Phase::Queued))
}

/// The fields of a form; a file becomes its length.
fn form(call: &Call<'_>) -> Value {
    let boundary = call.header("content-type").and_then(|kind| kind.split("boundary=").nth(1)).unwrap_or_default();
    let text = String::from_utf8_lossy(call.body);
    let mut body = json!({});
    for part in text.split(&format!("--{boundary}")) {
        let Some((head, value)) = part.split_once("\r\n\r\n") else { continue };
        let Some(name) = head.split("name=\"").nth(1).and_then(|rest| rest.split('"').next()) else { continue };
        let value = value.strip_suffix("\r\n").unwrap_or(value);
        body[name] = if head.contains("filename=") { json!(format!("{} bytes", value.len())) } else { json!(value) };
    }
    body
}

fn poll(call: &Call<'_>, id: &str) -> Answer {
    match call.book.poll(VENDOR, id) {
        None | Some((_, Phase::Forgotten)) => error(404, "not_found", "Video not found.", None),
        Some((_, Phase::Limited)) => refused("rate_limit_exceeded"),
        Some((_, Phase::Broken)) => refused("server_error"),
        Some((task, phase)) => Answer::json(200, &show(&task, &phase)),
    }
}

fn show(task: &Task, phase: &Phase) -> Value {
    let (word, progress) = match phase {
        Phase::Queued => ("queued", 0),
        Phase::Running => ("in_progress", 50),
        Phase::Strange => ("reviewing", 60),
        Phase::Cancelled => ("cancelled", 0),
        Phase::Done { .. } => ("completed", 100),
        _ => ("failed", 0),
    };
    let done = matches!(phase, Phase::Done { .. });
    let error = match phase {
        Phase::Failed | Phase::Expired => Some(task.reason("server_error", "Video generation failed.")),
        Phase::Moderated => {
            Some(task.reason("moderation_blocked", "Your request was blocked by our moderation system."))
        }
        _ => None,
    };
    let seconds = if done { task.reported_seconds() } else { task.seconds };
    let or = |name: &str, otherwise: &str| task.body[name].as_str().unwrap_or(otherwise).to_string();
    json!({
        "id": task.id, "object": "video", "model": task.model, "status": word, "progress": progress,
        "created_at": task.created, "completed_at": done.then(now), "expires_at": done.then(|| now() + 86_400),
        "seconds": seconds.to_string(), "size": or("size", "720x1280"), "remixed_from_video_id": task.body["remixed_from"],
        "error": error.map(|(code, text)| json!({"code": code, "message": text})), "prompt": task.body["prompt"],
    })
}

fn list(call: &Call<'_>) -> Answer {
    let (all, total) = call.book.list(VENDOR, |_| true, 0, usize::MAX);
    let limit = call.asked("limit").and_then(|text| text.parse().ok()).unwrap_or(20).min(100);
    let after = call.asked("after");
    let skip = after.map_or(0, |id| all.iter().position(|task| task.id == id).map_or(total, |at| at + 1));
    let shown: Vec<_> = all.iter().skip(skip).take(limit).map(|task| show(task, &Phase::Running)).collect();
    Answer::json(200, &json!({"object": "list", "data": shown, "has_more": total > skip + limit}))
}

fn delete(call: &Call<'_>, id: &str) -> Answer {
    let known = call.book.cancel(VENDOR, id);
    call.book.remove(VENDOR, id);
    match known {
        Some(_) => Answer::json(200, &json!({"id": id, "object": "video.deleted", "deleted": true})),
        None => error(404, "not_found", "Video not found.", None),
    }
}

fn content(call: &Call<'_>, id: &str) -> Answer {
    match call.book.get(VENDOR, id) {
        Some(task) if task.choice.is("dead_link") => error(404, "not_found", "The video has expired.", None),
        Some(task) => {
            call.book.signs.packed.store(task.choice.is("packed_file"), Ordering::SeqCst);
            Answer::whole(file::send(&mp4::longer(task.seconds, task.kilobytes()), call.headers))
        }
        None => error(404, "not_found", "Video not found.", None),
    }
}

fn remix(call: &Call<'_>, id: &str) -> Answer {
    let (Some(old), Some(prompt)) = (call.book.get(VENDOR, id), call.json()["prompt"].as_str().map(str::to_string))
    else {
        return error(404, "not_found", "Video not found.", None);
    };
    if old.choice.is("dead_link") {
        return error(404, "not_found", "Video not found.", None);
    }
    let choice = Choice::of(&prompt).unwrap_or(old.choice);
    match call.trouble(&choice, &format!("{id} {prompt}")) {
        Some(Phase::Limited) => return refused("rate_limit_exceeded"),
        Some(_) => return refused("server_error"),
        None => {}
    }
    let mut body = old.body;
    body["prompt"] = json!(prompt);
    body["remixed_from"] = json!(id);
    take(call, body, choice)
}
